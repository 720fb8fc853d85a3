//! Eight transmit queues with a netem each on two CPUs: where do their watchdogs go off, and which CPU takes
//! packets out of which queue?
//!
//! Queues, delays and limits are those of the report that asked the question; four queues belong to each
//! CPU. The first CPU's lane never waits, as one that is busy with softirqs: it sends through its own queues.
//! The second lane has nothing to do but its watchdogs; its queues are filled by a thread beside it that is
//! no lane. So when that thread finds that a packet has to wait and arms the watchdog, the lane of its CPU is
//! idle, and timer migration looks for one that is not. In the report the senders were softirqs on top of
//! idle CPUs. (A lane that sends is not idle, so it would never give a watchdog away.)
//!
//! Both senders look for room in their windows every [`LOOK`], as a card interrupts, and send what there is
//! room for; packets that left make room. The driver does nothing but count. `load.rs` has all that.

mod load;

use crate::error::LabError;
use crate::plan::{
    Better, Citation, CitedFigure, Compare, ExactCheck, RowPlan, RowScenario, RowVariant, ScenarioCompare,
    TrialContext, TrialFigures, TrialSpans, VariantRole,
};
use load::{Discipline, QueueSetup, trial};
use quietcore_live::timer::Policy;
use quietcore_net::Watchdog;
use quietcore_trace::Question;
use std::time::Duration;

pub(crate) const PLAN: RowPlan = RowPlan {
    name: "mq-netem",
    question: "eight transmit queues with netem: do watchdogs that may move take queues to another CPU?",
    figures: &[
        ("packets", "per second"),
        ("taken out elsewhere", "packets"),
        ("taken out elsewhere, of all", "%"),
        ("taken out elsewhere, idle CPU's", "%"),
        ("taken out by its sender", "%"),
        ("watchdogs elsewhere", "%"),
        ("watchdogs", "per second"),
        ("lock waits", "per second"),
        ("waited for locks, of CPU time", "%"),
        ("late p50", "us"),
        ("late p99", "us"),
        ("queued", "packets"),
    ],
    variants: &[
        RowVariant {
            name: "no delay",
            what: "fifos instead of netem: nothing waits for a watchdog",
            role: VariantRole::NoiseFloor,
            run: |context| run(context, Discipline::Fifo, Policy::Push, Watchdog::Pinned),
        },
        RowVariant {
            name: "movable",
            what: "timers migrate, watchdogs too, as kernels did until 2014",
            role: VariantRole::Before,
            run: |context| run(context, Discipline::Netem, Policy::Push, Watchdog::Movable),
        },
        RowVariant {
            name: "pinned",
            what: "timers migrate, watchdogs stay with their queue's CPU",
            role: VariantRole::After,
            run: |context| run(context, Discipline::Netem, Policy::Push, Watchdog::Pinned),
        },
        RowVariant {
            name: "migration off",
            what: "no timer migrates (kernel.timer_migration = 0)",
            role: VariantRole::After,
            run: |context| run(context, Discipline::Netem, Policy::Stay, Watchdog::Movable),
        },
    ],
    compares: &[
        Compare { figure: 3, better: Better::Lower },
        Compare { figure: 8, better: Better::Lower },
        Compare { figure: 10, better: Better::Lower },
        Compare { figure: 0, better: Better::Higher },
    ],
    exact_checks: &[
        ExactCheck { variant: "pinned", figure: ELSEWHERE, value: 0.0 },
        ExactCheck { variant: "migration off", figure: ELSEWHERE, value: 0.0 },
    ],
    notes: &[
        "Two CPUs, four queues each: a busy CPU attracts the watchdogs of one other CPU, not of seven as on the machine \
         that this was first seen on, and a lock is wanted by two. What moves can be seen here; how much that costs a machine with eight, hardly.",
        "The busy CPU's own queues are never taken out elsewhere: it is not idle when it arms. The other's are, by the busy \
         lane; but their sender takes out what it finds due, and a watchdog that would then be the busy CPU's first event is \
         not moved. That one stays: the second lane, which runs it, is awake when it arms again, and so not idle, where a \
         kernel's CPU is that runs softirqs on top of nothing.",
    ],
    spans: TrialSpans { full: Duration::from_secs(2), quick: Duration::from_millis(350) },
    cited: Some(Citation {
        question: Question::PacketTimers,
        figures: &[
            CitedFigure { what: "_raw_spin_lock's share of a profile, before", verbatim: "39.24%" },
            CitedFigure { what: "the same, after", verbatim: "4.83%" },
        ],
    }),
    scenario: Some(RowScenario {
        name: "mq-netem.toml",
        text: include_str!("../../../scenarios/mq-netem.toml"),
        compares: &[
            ScenarioCompare::lower(
                "packets taken out elsewhere, 8 CPUs",
                "elsewhere_share",
                "push/movable/2172",
                "push/pinned/2172",
            )
            .in_unit("%", 0.01),
            ScenarioCompare::lower(
                "time of busy CPUs in locks of queues, twice the load",
                "lock_share",
                "push/movable/4344",
                "push/pinned/4344",
            )
            .in_unit("%", 0.01),
            ScenarioCompare::lower(
                "late p99, twice the load",
                "packet_late_p99",
                "push/movable/4344",
                "push/pinned/4344",
            ),
        ],
    }),
};

/// A position in the figures.
const ELSEWHERE: usize = 1;

fn run(
    context: &TrialContext,
    discipline: Discipline,
    policy: Policy,
    watchdog: Watchdog,
) -> Result<TrialFigures, LabError> {
    trial(context, QueueSetup { discipline, policy, watchdog })
}

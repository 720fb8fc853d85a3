//! The device, its senders, and what a trial counts.

use crate::error::LabError;
use crate::harness::{LaneBody, LaneHarness, LaneMode, stay_on};
use crate::observe::{Observed, observe};
use crate::plan::{TrialContext, TrialFigures, percent, quantile_us};
use crate::slice::SliceLog;
use crate::sync::{StopFlag, lock};
use quietcore_live::{
    CpuId, Machine, Nanos,
    timer::{ExactPolicy, Policy},
};
use quietcore_net::{Device, DeviceError, DeviceOptions, Network, QueueStatistics, Watchdog};
use quietcore_qdisc::{Fifo, FifoLimit, Netem, NetemDelay, NetemSettings, Packet};
use std::ops::Range;
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// As the report that asked the question typed them: `netem limit .. delay ..ms`.
const NETEMS: [(u32, u64); QUEUES] = [
    (70_000, 6),
    (70_000, 8),
    (70_000, 10),
    (70_000, 12),
    (70_000, 14),
    (70_000, 16),
    (80_000, 18),
    (90_000, 20),
];
const QUEUES: usize = 8;
/// The first half belongs to the first CPU.
const HALVES: [Range<usize>; 2] = [0..QUEUES / 2, QUEUES / 2..QUEUES];
/// Packets on their way through a queue; together thousands.
const WINDOW: u64 = 500;
/// Between two looks of a sender.
const LOOK: Duration = Duration::from_micros(100);
/// Longer than the longest delay: windows are full, and spread over it.
const SETTLE: Duration = Duration::from_millis(60);
/// In a trace one of so many packets is shown.
const SHOWN: u64 = 64;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Discipline {
    Fifo,
    Netem,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct QueueSetup {
    pub(crate) discipline: Discipline,
    pub(crate) policy: Policy,
    pub(crate) watchdog: Watchdog,
}

/// A packet: when it may leave.
#[derive(Debug)]
struct Frame {
    due: u64,
}

impl Packet for Frame {
    fn len(&self) -> u32 {
        // An acknowledgement with a time stamp, in Ethernet.
        66
    }
}

impl Frame {
    /// By how many ns it leaves after it might, when it leaves `now`.
    fn late(&self, now: Nanos) -> u64 {
        now.0.saturating_sub(self.due)
    }
}

/// A queue's sender and driver.
#[derive(Debug)]
struct QueueWindow {
    /// Packets that it may send.
    room: u64,
    sent: u64,
    /// How late each left.
    late: Vec<u64>,
}

impl QueueWindow {
    /// A packet leaves so late; whether a trace shows it.
    fn take(&mut self, late: u64) -> bool {
        self.room += 1;
        self.sent += 1;
        self.late.push(late);
        self.sent.is_multiple_of(SHOWN)
    }
}

type QueueWindows = Arc<Vec<Mutex<QueueWindow>>>;

struct QueueLoad {
    machine: &'static Machine,
    device: Device<Frame>,
    windows: QueueWindows,
    delays: [u64; QUEUES],
    slices: SliceLog,
}

impl QueueLoad {
    /// Sends what there is room for in `queues`.
    fn refill(&self, queues: Range<usize>) {
        let rooms = queues.clone().map(|queue| std::mem::take(&mut lock(&self.windows[queue]).room));
        let rooms: Vec<u64> = rooms.collect();
        if rooms.iter().all(|room| *room == 0) {
            return;
        }
        self.slices.around(self.machine, "send through queues from", Some(queues.start as u64), || {
            for (queue, room) in queues.zip(rooms) {
                for _ in 0..room {
                    let due = self.machine.now().0 + self.delays[queue];
                    // QueueWindows are far below limits: none is refused.
                    let _ = self.device.send_through(queue, Frame { due });
                }
            }
        });
    }

    fn statistics(&self) -> Vec<QueueStatistics> {
        (0..QUEUES).map(|queue| self.device.statistics(queue)).collect()
    }
}

/// Counts what leaves, and makes room for the next.
fn driver(
    machine: &'static Machine,
    windows: &QueueWindows,
    slices: SliceLog,
) -> impl Fn(usize, Frame) -> Result<(), Frame> + use<> {
    let windows = Arc::clone(windows);
    move |queue, frame| {
        if lock(&windows[queue]).take(frame.late(machine.now())) {
            slices.around(machine, "one of 64 packets leaves queue", Some(queue as u64), || {});
        }
        Ok(())
    }
}

/// The lane that never waits, and sends.
fn busy(load: &Arc<OnceLock<QueueLoad>>, stop: &StopFlag) -> LaneBody {
    let (load, stop) = (Arc::clone(load), stop.clone());
    Box::new(move |machine, mut cpu| {
        let mut next = Nanos(0);
        while machine.is_running() {
            let _ = cpu.turn();
            let now = machine.now();
            if now < next || stop.is_set() {
                continue;
            }
            next = Nanos(now.0 + LOOK.as_nanos() as u64);
            if let Some(load) = load.get() {
                load.refill(HALVES[0].clone());
            }
        }
    })
}

/// The thread that sends for the other CPU, whose lane sleeps.
fn beside(load: Arc<OnceLock<QueueLoad>>, cpu: CpuId, stop: StopFlag) -> JoinHandle<Result<(), String>> {
    thread::spawn(move || {
        stay_on(cpu)?;
        while !stop.is_set() {
            if let Some(load) = load.get() {
                load.refill(HALVES[1].clone());
            }
            thread::sleep(LOOK);
        }
        Ok(())
    })
}

pub(crate) fn trial(context: &TrialContext, setup: QueueSetup) -> Result<TrialFigures, LabError> {
    let [first, second] = context.cpus;
    let (load, stop) = (Arc::new(OnceLock::new()), StopFlag::default());
    // As hrtimers, which are pushed when they are started wherever timers are.
    let exact = if setup.policy == Policy::Push { ExactPolicy::Kernel } else { ExactPolicy::Pull };
    let builder = Machine::builder().policy(setup.policy).exact_policy(exact);
    let (network, builder) = Network::new(builder);
    let lanes = vec![(first, busy(&load, &stop)), (second, LaneMode::Parks.play())];
    let harness = LaneHarness::start_with(builder, context, lanes)?;
    let made = device(context, harness.machine, &network, setup)?;
    let load_here = load.get_or_init(|| made);
    let sender = beside(Arc::clone(&load), second, stop.clone());
    context.wait_for(SETTLE);
    load_here.windows.iter().for_each(|window| lock(window).late.clear());
    let queues = observe(context, context.span, || Ok(load_here.statistics()))?;
    let mut late: Vec<u64> =
        load_here.windows.iter().flat_map(|window| std::mem::take(&mut lock(window).late)).collect();
    stop.set();
    let ended = sender.join().unwrap_or_else(|_| Err("the thread that sends panicked".to_owned()));
    ended.map_err(LabError::Trial)?;
    drop(harness);
    late.sort_unstable();
    Ok(figures(&queues, &late))
}

fn device(
    context: &TrialContext,
    machine: &'static Machine,
    network: &Network,
    setup: QueueSetup,
) -> Result<QueueLoad, DeviceError> {
    let window = || Mutex::new(QueueWindow { room: WINDOW, sent: 0, late: Vec::new() });
    let windows: QueueWindows = Arc::new((0..QUEUES).map(|_| window()).collect());
    let cpu_of = |queue| if HALVES[0].contains(&queue) { context.cpus[0] } else { context.cpus[1] };
    let map = (0..QUEUES).map(|queue| [cpu_of(queue)].into_iter().collect()).collect();
    let options = DeviceOptions::new(QUEUES).transmit_map(map).watchdog(setup.watchdog);
    let slices = context.slices.clone();
    let device = Device::new(network, machine, options, driver(machine, &windows, slices.clone()))?;
    let mut delays = [0; QUEUES];
    for (queue, (limit, millis)) in NETEMS.into_iter().enumerate() {
        if setup.discipline == Discipline::Fifo {
            device.graft(queue, Fifo::new(FifoLimit::Packets(limit)));
            continue;
        }
        delays[queue] = millis * 1_000_000;
        let delay = NetemDelay { latency: Nanos(delays[queue]), ..NetemDelay::default() };
        let settings = NetemSettings { delay, limit, ..NetemSettings::default() };
        // Nothing is drawn: delays have no jitter.
        let netem = Netem::new(settings, || 0, machine.now()).expect("limit and delay go together");
        device.graft(queue, netem);
    }
    Ok(QueueLoad { machine, device, windows, delays, slices })
}

/// `late` is sorted.
fn figures(queues: &Observed<Vec<QueueStatistics>>, late: &[u64]) -> TrialFigures {
    let (seconds, Observed { before, after, .. }) = (queues.took.as_secs_f64(), queues);
    let grown = |queues: Range<usize>, of: &dyn Fn(&QueueStatistics) -> u64| -> f64 {
        queues.map(|queue| of(&after[queue]) - of(&before[queue])).sum::<u64>() as f64
    };
    let all = |of: &dyn Fn(&QueueStatistics) -> u64| grown(0..QUEUES, of);
    let taken = |it: &QueueStatistics| it.dequeued_at_home + it.dequeued_elsewhere + it.dequeued_by_strangers;
    let elsewhere = |it: &QueueStatistics| it.dequeued_elsewhere;
    let waited = all(&|it| it.waited.as_nanos() as u64);
    let idle = HALVES[1].clone();
    vec![
        Some(all(&taken) / seconds),
        // Of no packet that was taken out none can have been taken out elsewhere.
        (all(&taken) > 0.0).then(|| all(&elsewhere)),
        percent(all(&elsewhere), all(&taken)),
        percent(grown(idle.clone(), &elsewhere), grown(idle.clone(), &taken)),
        percent(grown(idle.clone(), &|it| it.dequeued_by_strangers), grown(idle, &taken)),
        percent(all(&|it| it.watchdogs_elsewhere), all(&|it| it.watchdogs)),
        Some(all(&|it| it.watchdogs) / seconds),
        Some(all(&|it| it.contended) / seconds),
        percent(waited, 2.0 * seconds * 1e9),
        quantile_us(late, 0.5),
        quantile_us(late, 0.99),
        Some(after.iter().map(|it| it.qdisc.qlen).sum::<u64>() as f64),
    ]
}

#[cfg(test)]
mod tests {
    use super::{Frame, Observed, QUEUES, QueueWindow, figures};
    use quietcore_live::Nanos;
    use quietcore_net::QueueStatistics;
    use std::time::Duration;

    /// Goal: each figure is its own, of what grew, and shares are of the queues that they name. Method: the
    /// first and the last queue of each CPU with counts of which each is another; two seconds, by hand.
    #[test]
    fn figures_of_a_round() {
        let (mut before, mut after) =
            (vec![QueueStatistics::default(); QUEUES], vec![QueueStatistics::default(); QUEUES]);
        // The busy CPU's: 960 at home, 40 elsewhere, of 1000.
        (before[0].dequeued_at_home, after[0].dequeued_at_home) = (100, 900);
        (before[3].dequeued_elsewhere, after[3].dequeued_elsewhere) = (5, 45);
        after[3].dequeued_at_home = 160;
        (after[0].watchdogs, after[0].contended, after[0].waited) = (30, 8, Duration::from_millis(10));
        // The idle CPU's: 180 at home, 700 elsewhere, 120 by strangers, of 1000.
        (after[4].dequeued_at_home, after[7].dequeued_elsewhere) = (180, 600);
        (after[4].dequeued_elsewhere, after[7].dequeued_by_strangers) = (100, 120);
        (after[7].watchdogs, after[4].watchdogs_elsewhere) = (70, 42);
        (after[4].contended, after[7].waited) = (14, Duration::from_millis(30));
        (before[3].qdisc.qlen, after[3].qdisc.qlen, after[7].qdisc.qlen) = (9, 2, 3);
        let late: Vec<u64> = (1..=200).map(|us| us * 1_000).collect();
        let expected = [1000.0, 740.0, 37.0, 70.0, 12.0, 42.0, 50.0, 11.0, 1.0, 100.0, 198.0, 5.0];
        let queues = Observed { before, after, took: Duration::from_secs(2) };
        assert_eq!(figures(&queues, &late), expected.map(Some));
    }

    /// Goal: a packet is late from when it might leave, and makes room for another; a trace shows one of 64.
    /// Method: 65 packets, of which the last two leave early and late.
    #[test]
    fn packets_are_late_and_make_room() {
        let (frame, mut window) = (Frame { due: 500 }, QueueWindow { room: 3, sent: 0, late: vec![] });
        let shown: Vec<u64> = (1..64).filter(|_| window.take(1)).collect();
        assert_eq!(shown, [0; 0]);
        assert_eq!([400, 570].map(|now| window.take(frame.late(Nanos(now)))), [true, false]);
        assert_eq!((window.room, window.sent, &window.late[63..]), (68, 65, &[0, 70][..]));
    }

    /// Goal: where no packet was taken out none was taken out elsewhere, which proves nothing. Method: queues
    /// that did nothing.
    #[test]
    fn no_packets_are_no_figure() {
        let idle = vec![QueueStatistics::default(); QUEUES];
        let queues = Observed { before: idle.clone(), after: idle, took: Duration::from_secs(2) };
        let found = figures(&queues, &[]);
        let none: Vec<usize> = (0..found.len()).filter(|at| found[*at].is_none()).collect();
        assert_eq!(none, [1, 2, 3, 4, 5, 9, 10]);
    }
}

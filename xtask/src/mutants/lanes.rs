//! Mutants of what lanes run besides timers: queues and their words, work, tasks, softirqs; and of what the
//! core decides about strangers' timers on isolated CPUs.

use super::killer::Killer::Test;
use super::killer::Mutant;
use super::killer::Suite::{LiveModels, LiveUnits, Machine, Models, Tasks, Units};

const BASES: &str = "crates/core/src/base/bases.rs";
const CALL: &str = "crates/core/src/softirq/call.rs";
const CALL_MODELS: &str = "crates/core/src/softirq/call/models.rs";
const CONTROL: &str = "crates/core/src/machine/control.rs";
const RAISE: &str = "crates/core/src/softirq/raise.rs";
const TURN: &str = "crates/core/src/machine/turn.rs";
const CPU: &str = "crates/live/src/lane/cpu.rs";
const LANE: &str = "crates/live/src/lane/turn.rs";
const LANE_WAIT: &str = "crates/live/src/lane/wait.rs";
const MACHINE: &str = "crates/live/src/machine/mod.rs";
const PLACE: &str = "crates/live/src/run_queue/place.rs";
const QUEUE: &str = "crates/live/src/run_queue/queue.rs";
const QUEUE_WORDS: &str = "crates/live/src/words/run_queue.rs";
const ROUND: &str = "crates/live/src/softirq/round.rs";
const TASK: &str = "crates/live/src/task/poll.rs";
const WORK: &str = "crates/live/src/words/work.rs";

pub(super) const LANES: &[Mutant] = &[
    Mutant {
        name: "gate-no-fence-lane",
        rule: "a lane looks at its gate after it has said what it does",
        file: QUEUE_WORDS,
        right: "self.0.store(word(activity) | MOVABLE, Ordering::Relaxed);\n        fence(Ordering::SeqCst);\n",
        wrong: "self.0.store(word(activity) | MOVABLE, Ordering::Relaxed);\n",
        killers: &[Test(LiveModels, "words::run_queue::models::nothing_starts_behind_a_closed_gate")],
    },
    Mutant {
        name: "gate-no-fence-isolating",
        rule: "the isolating thread looks at what a lane does after the gate is closed",
        file: QUEUE_WORDS,
        right: "self.0.store(CLOSED, Ordering::Relaxed);\n        fence(Ordering::SeqCst);\n",
        wrong: "self.0.store(CLOSED, Ordering::Relaxed);\n",
        killers: &[Test(LiveModels, "words::run_queue::models::nothing_starts_behind_a_closed_gate")],
    },
    Mutant {
        name: "gate-ignored",
        rule: "behind a closed gate nothing starts",
        file: QUEUE_WORDS,
        right: "let is_open = gate.is_open();",
        wrong: "let is_open = gate.is_open() || true;",
        killers: &[Test(LiveUnits, "words::run_queue::tests::activities")],
    },
    Mutant {
        name: "todo-leave-relaxed",
        rule: "what was left is seen with the word that says so",
        file: QUEUE_WORDS,
        right: "self.0.fetch_or(1, Ordering::Release);",
        wrong: "self.0.fetch_or(1, Ordering::Relaxed);",
        killers: &[Test(LiveModels, "words::run_queue::models::what_is_left_is_found")],
    },
    Mutant {
        name: "todo-take-relaxed",
        rule: "the lane that takes the word finds what was left",
        file: QUEUE_WORDS,
        right: "self.0.swap(0, Ordering::Acquire)",
        wrong: "self.0.swap(0, Ordering::Relaxed)",
        killers: &[Test(LiveModels, "words::run_queue::models::what_is_left_is_found")],
    },
    Mutant {
        name: "work-entry-again",
        rule: "an entry that a cancel has left in a queue is used again",
        file: WORK,
        right: "let before = self.0.fetch_or(PENDING | QUEUED, Ordering::Release);",
        wrong: "let before = self.0.fetch_or(PENDING, Ordering::Release) & !QUEUED;",
        killers: &[Test(LiveUnits, "words::work::tests::one_entry")],
    },
    Mutant {
        name: "work-queued-forgotten",
        rule: "what was queued during a run is the runner's to put into a queue",
        file: WORK,
        right: "|word| if word & PENDING != 0 { PENDING | QUEUED } else { 0 })",
        wrong: "|_| 0)",
        killers: &[Test(LiveUnits, "words::work::tests::one_entry")],
    },
    Mutant {
        name: "work-queue-relaxed",
        rule: "a run sees what was done before the work was queued",
        file: WORK,
        right: "self.0.fetch_or(PENDING | QUEUED, Ordering::Release)",
        wrong: "self.0.fetch_or(PENDING | QUEUED, Ordering::Relaxed)",
        killers: &[Test(LiveModels, "words::work::models::work_that_is_queued_runs_once")],
    },
    Mutant {
        name: "work-begin-relaxed",
        rule: "the same, where the run begins",
        file: WORK,
        right: "self.change(Ordering::Acquire, |word|",
        wrong: "self.change(Ordering::Relaxed, |word|",
        killers: &[Test(LiveModels, "words::work::models::work_that_is_queued_runs_once")],
    },
    Mutant {
        name: "queued-on-the-marked",
        rule: "nothing goes to a lane that is marked",
        file: PLACE,
        right: "queue.gate.is_open()) && !self.core.is_marked(cpu)",
        wrong: "queue.gate.is_open())",
        killers: &[Test(Tasks, "rules::a_lane_that_blocks_gets_nothing")],
    },
    Mutant {
        name: "idle-lane-sleeps-on",
        rule: "what waits behind others wakes a lane that sleeps",
        file: PLACE,
        right: "} else if waited > may_wait || is_here && !self.lanes.watch() {",
        wrong: "} else if waited == usize::MAX && may_wait == usize::MAX {",
        killers: &[Test(Tasks, "rules::what_waits_behind_others_wakes_a_lane")],
    },
    Mutant {
        name: "pulled-from-nobody",
        rule: "a real-time task behind one that runs is pulled",
        file: PLACE,
        right: "Activity::Normal | Activity::Realtime(_) => true,",
        wrong: "Activity::Normal | Activity::Realtime(_) => false,",
        killers: &[Test(Tasks, "rules::a_lane_takes_what_another_does_not_get_to")],
    },
    Mutant {
        name: "stolen-from-nobody",
        rule: "a normal task behind one that runs is stolen",
        file: PLACE,
        right: "            1 => is_busy(),\n            _ => true,",
        wrong: "            1 => is_busy() && false,\n            _ => is_busy() && false,",
        killers: &[Test(Tasks, "rules::a_lane_takes_what_another_does_not_get_to")],
    },
    Mutant {
        name: "normal-before-realtime",
        rule: "real-time tasks go first",
        file: QUEUE,
        right: "let next = if let Some((priority, item)) = queues.realtime.pop() {",
        wrong: "let next = if queues.bound.is_empty()
            && queues.free.is_empty()
            && let Some((priority, item)) = queues.realtime.pop()
        {",
        killers: &[Test(Tasks, "realtime::in_order")],
    },
    Mutant {
        name: "closed-with-the-rest",
        rule: "a queue that closes keeps nothing that may move",
        file: QUEUE,
        right: "        items.extend(queues.free.drain(..));\n        self.tell(&queues, priorities);\n        (items, is_busy)",
        wrong: "        self.tell(&queues, priorities);\n        (items, is_busy)",
        killers: &[Test(LiveUnits, "run_queue::queue::tests::closing_gives_back_what_may_move")],
    },
    Mutant {
        name: "seen-to-run-for-ever",
        rule: "an item that has run is in no item's way",
        file: QUEUE,
        right: "queues.running = None;",
        wrong: "queues.running = queues.running.take();",
        killers: &[Test(LiveUnits, "run_queue::queue::tests::what_runs_is_seen_until_it_ends")],
    },
    Mutant {
        name: "waits-on-what-is-left",
        rule: "a lane asks once more before it waits",
        file: LANE_WAIT,
        right: "let has_items = self.has_items();",
        wrong: "let has_items = false;",
        killers: &[Test(Tasks, "rules::no_wait_while_something_is_left")],
    },
    Mutant {
        name: "timers-after-the-turn",
        rule: "timers that are due go before the next item",
        file: LANE,
        right: "(now, self.run_timers(now))",
        wrong: "(now, 0)",
        killers: &[Test(Tasks, "rules::a_timer_goes_before_the_next_item")],
    },
    Mutant {
        name: "given-for-ever",
        rule: "what ksoftirqd has done is the lane's again",
        file: ROUND,
        right: "self.given = self.given.intersection(waiting);",
        wrong: "let _ = self.given.intersection(waiting);",
        killers: &[Test(Tasks, "rounds::what_ksoftirqd_did_is_the_lanes_again")],
    },
    Mutant {
        name: "given-and-taken-back",
        rule: "what is left to ksoftirqd stays there until the limit",
        file: ROUND,
        right: "self.deferral.hold(long.union(self.given), now)",
        wrong: "self.deferral.hold(long, now)",
        killers: &[Test(Tasks, "rounds::what_was_given_stays_given")],
    },
    Mutant {
        name: "no-donation",
        rule: "past the limit a lane waits for what ksoftirqd has begun",
        file: ROUND,
        right: "if !overdue.is_empty() {",
        wrong: "if !overdue.is_empty() && overdue.is_empty() {",
        killers: &[Test(Tasks, "rounds::a_lane_waits_for_what_is_overdue")],
    },
    Mutant {
        name: "long-before-realtime",
        rule: "a real-time task that waits goes before long vectors",
        file: ROUND,
        right: "(before == Before::Realtime || queue.must_end_early())",
        wrong: "before == Before::Realtime",
        killers: &[Test(Tasks, "rounds::long_ones_wait_for_a_task_that_waits")],
    },
    Mutant {
        name: "abort-ignored",
        rule: "a task that was aborted is not polled",
        file: TASK,
        right: "if state.aborted.is_set() || !Machine::of(state.machine).is_running() {",
        wrong: "if !state.machine.is_running() {",
        killers: &[Test(Tasks, "rules::an_aborted_task_is_not_polled")],
    },
    Mutant {
        name: "task-panics-loose",
        rule: "a panic is the result of its task",
        file: TASK,
        right: "match catch_unwind(AssertUnwindSafe(|| future.poll(context))) {",
        wrong: "match Ok::<_, Panic>(future.poll(context)) {",
        killers: &[Test(Tasks, "spawning::panics_are_results")],
    },
    Mutant {
        name: "tasks-outlive-the-machine",
        rule: "a shutdown reaches tasks that are in no queue",
        file: MACHINE,
        right: "        self.tasks.wake_all();\n",
        wrong: "",
        killers: &[Test(Tasks, "rules::a_shutdown_reaches_tasks_that_wait")],
    },
    Mutant {
        name: "tasks-outlive-the-thread",
        rule: "tasks of a thread end with its hold on the CPU",
        file: CPU,
        right: "end_local_tasks(self.lane.machine, self.cpu(), &self.tasks);",
        wrong: "let _ = (end_local_tasks, &self.tasks);",
        killers: &[Test(Tasks, "spawning::tasks_of_one_thread")],
    },
    Mutant {
        name: "call-cleared-after-look",
        rule: "a handler clears the call before it looks",
        file: CALL_MODELS,
        right: "        self.call.arrive();\n        self.seen.store(self.armed.load(Ordering::Relaxed), Ordering::Relaxed);\n",
        wrong: "        self.seen.store(self.armed.load(Ordering::Relaxed), Ordering::Relaxed);\n        self.call.arrive();\n",
        killers: &[Test(Models, "softirq::call::models::no_arm_is_missed")],
    },
    Mutant {
        name: "call-never-sent",
        rule: "the first to arm sends the call",
        file: CALL,
        right: "self.0.swap(UNDER_WAY, Ordering::Release) == IDLE",
        wrong: "self.0.swap(UNDER_WAY, Ordering::Release) == u32::MAX",
        killers: &[Test(Models, "softirq::call::models::no_arm_is_missed")],
    },
    Mutant {
        name: "bitmap-calls-nobody",
        rule: "under the bitmap an arm from another CPU calls",
        file: RAISE,
        right: "matches!(self, Self::Bitmap)",
        wrong: "matches!(self, Self::Unconditional)",
        killers: &[Test(Units, "softirq::raise::tests::who_may_miss_an_arm_is_called")],
    },
    Mutant {
        name: "isolated-takes-its-guests",
        rule: "an isolated CPU runs nothing that a stranger armed there",
        file: BASES,
        right: "(runner == id.cpu && id.kind != BaseKind::Guest || ",
        wrong: "(runner == id.cpu || ",
        killers: &[Test(Machine, "isolation::a_stranger_that_looked_before")],
    },
    Mutant {
        name: "guests-armed-again-stay",
        rule: "a stranger's timer that is armed again leaves an isolated CPU",
        file: TURN,
        right: "(base.cpu != runner || base.kind == BaseKind::Guest)",
        wrong: "base.cpu != runner",
        killers: &[Test(Machine, "isolation::armed_again_by_a_stranger")],
    },
    Mutant {
        name: "guests-not-waited-for",
        rule: "what a stranger armed on a CPU is foreign there",
        file: CONTROL,
        right: "filter(|id| id.cpu != cpu || id.kind == BaseKind::Guest)",
        wrong: "filter(|id| id.cpu != cpu)",
        killers: &[Test(Machine, "isolation::a_strangers_callback_is_waited_for")],
    },
];

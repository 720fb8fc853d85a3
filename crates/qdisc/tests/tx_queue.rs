//! The run loop of a transmit queue: a table of scripts, and random scripts against a model that only knows
//! whole runs.

use quietcore_core::Nanos;
use quietcore_qdisc::{
    Cbq, CbqClass, CbqOverlimit, CbqSettings, ClassId, Enqueued, Netem, NetemSettings, Rate,
};
use quietcore_qdisc::{
    DEVICE_WEIGHT, Dequeued, Fifo, FifoLimit, Packet, Qdisc, Statistics, TxQueue, TxTake, TxThen,
};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng as _, SeedableRng as _};
use std::collections::VecDeque;

/// A number that leaves at a moment.
#[derive(Debug, PartialEq, Eq, Clone, Copy)]
struct Timed {
    id: u64,
    due: u64,
}

impl Packet for Timed {
    fn len(&self) -> u32 {
        60
    }
}

/// First in, first out, each at its moment.
#[derive(Debug, Default)]
struct Timetable(VecDeque<Timed>);

impl Qdisc<Timed> for Timetable {
    fn kind(&self) -> &'static str {
        "timetable"
    }

    fn enqueue(&mut self, _: Nanos, packet: Timed) -> Enqueued {
        self.0.push_back(packet);
        Enqueued::Queued
    }

    fn dequeue(&mut self, now: Nanos) -> Dequeued<Timed> {
        match self.0.front() {
            None => Dequeued::Empty,
            Some(first) if first.due > now.0 => Dequeued::Throttled(Nanos(first.due)),
            Some(_) => self.0.pop_front().map_or(Dequeued::Empty, Dequeued::Packet),
        }
    }

    fn reset(&mut self, _: Nanos) {
        self.0.clear();
    }

    fn statistics(&self) -> Statistics {
        let mut all = Statistics::default();
        self.0.iter().for_each(|packet| all.arrived(packet.len()));
        all
    }
}

/// What a script does, at the moment `now`.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// So many packets come that leave at this moment.
    Come(usize, u64),
    /// A whole run, whose driver takes so many packets in all.
    Run(usize),
    Wake,
    /// While the driver has a batch: it says that it has room, though it takes nothing.
    RunWokenMeanwhile,
    /// While the driver has a batch: another discipline comes, and the driver takes nothing.
    RunGraftedMeanwhile,
    /// The driver panics over a batch.
    RunPanics,
    Watchdog,
    Now(u64),
}

const BATCH: usize = 16;
const MS: u64 = 1_000_000;

/// A queue, and what has left it.
struct Bench {
    queue: TxQueue<Timed>,
    now: u64,
    next: u64,
    sent: Vec<u64>,
}

impl Bench {
    fn new() -> Self {
        Self { queue: TxQueue::new(Box::<Timetable>::default()), now: 0, next: 0, sent: Vec::new() }
    }

    /// What a run has to do next; `None` of steps that are no run.
    fn step(&mut self, step: Step) -> Option<TxThen> {
        match step {
            Step::Come(count, due) => {
                for _ in 0..count {
                    let packet = Timed { id: self.next, due };
                    assert_eq!(self.queue.enqueue(Nanos(self.now), packet), Enqueued::Queued);
                    self.next += 1;
                }
                return None;
            }
            Step::Wake => self.queue.wake(),
            Step::Watchdog => self.queue.watchdog_expired(),
            Step::Now(now) => self.now = now,
            Step::Run(room) => return Some(self.run(room, |_| ())),
            Step::RunWokenMeanwhile => return Some(self.run(0, TxQueue::wake)),
            Step::RunGraftedMeanwhile => {
                return Some(self.run(0, |queue| drop(queue.graft(Box::<Timetable>::default()))));
            }
            Step::RunPanics => {
                assert!(self.queue.begin());
                let mut batch = VecDeque::new();
                return Some(match self.queue.take(Nanos(self.now), &mut batch, BATCH) {
                    TxTake::Over(then) => then,
                    TxTake::Batch(_) => self.queue.abandon(Nanos(self.now), &mut batch),
                });
            }
        }
        None
    }

    fn run(&mut self, mut room: usize, mut meanwhile: impl FnMut(&mut TxQueue<Timed>)) -> TxThen {
        assert!(self.queue.begin(), "no run is under way between two steps");
        let mut batch = VecDeque::new();
        loop {
            match self.queue.take(Nanos(self.now), &mut batch, BATCH) {
                TxTake::Over(then) => return then,
                TxTake::Batch(dequeued) => assert!(dequeued <= batch.len() && batch.len() <= BATCH),
            }
            assert!(!self.queue.begin(), "one run at a time");
            meanwhile(&mut self.queue);
            while room > 0
                && let Some(packet) = batch.pop_front()
            {
                self.sent.push(packet.id);
                room -= 1;
            }
            if let Some(then) = self.queue.transmitted(Nanos(self.now), &mut batch) {
                assert!(!self.queue.is_running());
                return then;
            }
        }
    }
}

/// Goal: each way in which a run ends, and what follows. Method: a script each, with what its last run left
/// to do, what has left, and what is held then.
#[test]
fn scripts() {
    use Step::{Come, Now, Run, RunGraftedMeanwhile, RunPanics, RunWokenMeanwhile, Wake, Watchdog};
    let all = usize::MAX;
    let table: &[(&str, &[Step], TxThen, usize, u64)] = &[
        ("nothing is there", &[Run(all)], TxThen::Nothing, 0, 0),
        ("all leave", &[Come(20, 0), Run(all)], TxThen::Nothing, 20, 0),
        ("one is throttled", &[Come(1, 0), Come(1, 9), Run(all)], TxThen::Arm(Nanos(9)), 1, 1),
        ("the same moment again", &[Come(1, 9), Run(all), Run(all)], TxThen::Nothing, 0, 1),
        (
            "the watchdog went off early",
            &[Come(1, 9), Run(all), Watchdog, Run(all)],
            TxThen::Arm(Nanos(9)),
            0,
            1,
        ),
        ("in time", &[Come(1, 9), Run(all), Watchdog, Now(9), Run(all)], TxThen::Nothing, 1, 0),
        ("the weight is reached", &[Come(70, 0), Run(all)], TxThen::Again, DEVICE_WEIGHT, 6),
        ("and the rest", &[Come(70, 0), Run(all), Run(all)], TxThen::Nothing, 70, 0),
        ("exactly the weight", &[Come(DEVICE_WEIGHT, 0), Run(all)], TxThen::Again, DEVICE_WEIGHT, 0),
        ("the driver is full", &[Come(20, 0), Run(5)], TxThen::Arm(Nanos(MS)), 5, 15),
        ("it stays full", &[Come(3, 0), Run(0), Run(0)], TxThen::Nothing, 0, 3),
        ("later", &[Come(3, 0), Run(0), Now(7), Run(0)], TxThen::Arm(Nanos(MS + 7)), 0, 3),
        ("it has room again", &[Come(20, 0), Run(5), Wake, Run(all)], TxThen::Nothing, 20, 0),
        ("woken while the driver has the packets", &[Come(3, 0), RunWokenMeanwhile], TxThen::Again, 0, 3),
        ("woken before, and full", &[Come(3, 0), Wake, Run(0)], TxThen::Arm(Nanos(MS)), 0, 3),
        ("another discipline meanwhile", &[Come(3, 0), RunGraftedMeanwhile], TxThen::Arm(Nanos(MS)), 0, 0),
        ("a panic", &[Come(3, 0), RunPanics], TxThen::Arm(Nanos(MS)), 0, 3),
        ("after a panic", &[Come(3, 0), RunPanics, Run(all)], TxThen::Nothing, 3, 0),
    ];
    for (name, steps, then, sent, held) in table {
        let mut bench = Bench::new();
        let last = steps.iter().filter_map(|step| bench.step(*step)).last();
        assert_eq!(last, Some(*then), "{name}");
        assert_eq!(bench.sent, (0..*sent as u64).collect::<Vec<_>>(), "{name}");
        assert_eq!(bench.queue.statistics().qlen, *held, "{name}");
    }
}

/// Goal: whatever happens, the queue does what a model does that knows whole runs only: what leaves, in what
/// order, what is left to do, for when the watchdog is armed. Method: random scripts, and the model, which
/// has one list, each packet with its moment, and how many of the first ones the driver has seen.
#[test]
fn random_scripts_do_what_the_model_does() {
    for seed in 0..400 {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let mut below = |most: u64| random.next_u64() % most;
        let mut bench = Bench::new();
        let mut list: VecDeque<Timed> = VecDeque::new();
        let (mut armed, mut seen, mut sent) = (None, 0, Vec::new());
        for at in 0..60 {
            let step = match below(9) {
                0..=2 => Step::Come(below(40) as usize, bench.now + below(3) * below(MS)),
                3 => Step::Run(usize::MAX),
                4 => Step::Run(below(100) as usize),
                5 if below(2) == 0 => Step::Wake,
                5 => Step::Watchdog,
                6 => Step::RunWokenMeanwhile,
                7 if below(2) == 0 => Step::RunPanics,
                7 => Step::RunGraftedMeanwhile,
                _ => Step::Now(bench.now + below(2 * MS)),
            };
            let first = bench.next;
            let then = bench.step(step);
            if let Step::Come(count, due) = step {
                list.extend((first..).take(count).map(|id| Timed { id, due }));
            }
            if matches!(step, Step::Watchdog) {
                armed = None;
            }
            let Some(then) = then else { continue };
            // Those that may leave: seen by the driver before, or due and behind none that is not.
            let due = list.iter().position(|packet| packet.due > bench.now).unwrap_or(list.len()).max(seen);
            let room = if let Step::Run(room) = step { room } else { 0 };
            let weight = DEVICE_WEIGHT.next_multiple_of(BATCH);
            let leaving = due.min(room).min(weight);
            sent.extend(list.drain(..leaving).map(|packet| packet.id));
            let is_full = due > leaving && leaving < weight;
            let mut until = None;
            let mut expected = TxThen::Nothing;
            if leaving == weight && !is_full {
                (expected, seen) = (TxThen::Again, 0);
            } else if is_full {
                // The batch that the driver did not take whole.
                let batch_begin = leaving - leaving % BATCH;
                seen = due.min(batch_begin + BATCH) - leaving;
                match step {
                    Step::RunWokenMeanwhile => expected = TxThen::Again,
                    Step::RunGraftedMeanwhile => {
                        (armed, seen) = (None, 0);
                        list.clear();
                        until = Some(bench.now + MS);
                    }
                    _ => until = Some(bench.now + MS),
                }
            } else {
                seen = 0;
                until = list.front().map(|first| first.due);
            }
            if until.is_some() && until != armed {
                armed = until;
                expected = TxThen::Arm(Nanos(armed.unwrap_or_default()));
            }
            assert_eq!(then, expected, "seed {seed}, step {at}: {step:?}");
            assert_eq!(bench.sent, sent, "seed {seed}, step {at}: {step:?}");
            assert_eq!(bench.queue.armed(), armed.map(Nanos), "seed {seed}, step {at}: {step:?}");
            assert_eq!(bench.queue.statistics().qlen, list.len() as u64, "seed {seed}, step {at}");
        }
    }
}

/// Goal: a queue is on one list at most, and can be put on one again when the list has come to it.
#[test]
fn one_list_at_a_time() {
    let mut queue = TxQueue::<Timed>::new(Box::new(Fifo::new(FifoLimit::Packets(1))));
    assert!(queue.schedule());
    assert!(!queue.schedule() && queue.is_scheduled());
    queue.scheduled();
    assert!(queue.schedule());
}

/// Goal: a discipline without a second timer is never asked for one, and what comes back is counted, of this
/// discipline only. Method: a netem, and a driver that takes one of two; then another discipline.
#[test]
fn statistics_have_what_came_back() {
    let netem = Netem::new(NetemSettings::default(), || 4, Nanos(0)).expect("defaults");
    let mut queue = TxQueue::new(Box::new(netem));
    for byte in 0..2 {
        assert_eq!(queue.enqueue(Nanos(0), vec![byte; 60]), Enqueued::Queued);
    }
    let mut batch = VecDeque::new();
    assert!(queue.begin());
    assert_eq!(queue.take(Nanos(0), &mut batch, BATCH), TxTake::Batch(2));
    assert_eq!(batch.pop_front(), Some(vec![0; 60]));
    assert_eq!(queue.transmitted(Nanos(0), &mut batch), Some(TxThen::Arm(Nanos(MS))));
    let told = queue.statistics();
    assert_eq!((told.qlen, told.backlog, told.requeues), (1, 60, 1));
    assert_eq!(queue.arm_delays(), None);
    assert!(queue.holds_packets());
    let (_, gone) = queue.graft(Box::new(Fifo::new(FifoLimit::Packets(7))));
    let told = queue.statistics();
    assert_eq!((gone.len(), told.qlen, told.backlog, told.requeues), (1, 0, 0, 0), "another one begins");
}

/// Goal: a queue that begins with a discipline that has a second timer asks for it, once for each moment.
/// Method: cbq with a class far above its rate, and a run that sends its first packet.
#[test]
fn the_second_timer_is_asked_for() {
    let rate = |bytes| Rate::bytes_per_second(bytes).expect("not 0");
    let settings = CbqSettings { default_class: 1, ..CbqSettings::new(rate(10_000_000)) };
    let mut cbq = Cbq::new(settings);
    let overlimit = CbqOverlimit::Delay;
    let class = CbqClass { bounded: true, max_burst: 0, overlimit, ..CbqClass::new(rate(1_000)) };
    cbq.add_class(None, ClassId::new(1, 1), class).expect("a class");
    let mut queue = TxQueue::new(Box::new(cbq));
    for id in 0..4 {
        assert_eq!(queue.enqueue(Nanos(0), Timed { id, due: 0 }), Enqueued::Queued);
    }
    assert_eq!(queue.arm_delays(), None, "it waits for nothing yet");
    let mut batch = VecDeque::new();
    assert!(queue.begin());
    while let TxTake::Batch(_) = queue.take(Nanos(0), &mut batch, BATCH) {
        batch.clear();
        assert_eq!(queue.transmitted(Nanos(0), &mut batch), None);
    }
    let until = queue.arm_delays().expect("it is above its rate");
    assert_eq!(queue.qdisc_mut().delays().until(), Some(until));
    assert_eq!(queue.arm_delays(), None, "it is armed so already");
    queue.delays_expired(until);
    assert_eq!(queue.arm_delays(), None, "it waits no more");
}

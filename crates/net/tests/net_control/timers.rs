//! Timers of a queue: the second one, of `cbq`, at the root of a queue and deep inside; and moments that have
//! passed when a timer is asked for.

use super::world::{Parcel, World, parcel};
use quietcore::Nanos;
use quietcore::qdisc::{
    Cbq, CbqClass, CbqOverlimit, CbqSettings, ClassId, DelayTimer, Dequeued, Enqueued, Fifo, FifoLimit, Htb,
    HtbClass, HtbSettings, InnerQdisc, Qdisc, Rate, Statistics,
};

fn rate(bytes: u64) -> Rate {
    Rate::bytes_per_second(bytes).expect("not 0")
}

/// One class of 100 kB/s of a link of 10 MB/s, which waits for the delay timer when it is above its rate.
fn delayed() -> Cbq<Parcel> {
    let settings =
        CbqSettings { default_class: 1, average_packet: 100, ..CbqSettings::new(rate(10_000_000)) };
    let mut cbq = Cbq::new(settings);
    let overlimit = CbqOverlimit::Delay;
    let class = CbqClass { bounded: true, max_burst: 0, overlimit, ..CbqClass::new(rate(100_000)) };
    cbq.add_class(None, ClassId::new(1, 1), class).expect("a class");
    cbq
}

fn ten_packets_leave(graft: impl FnOnce(&World)) {
    let world = World::new(1);
    graft(&world);
    world.send_all(10, &parcel(1, 100));
    world.gate.pass(10);
    let done = world.device.statistics(0);
    assert_eq!((done.qdisc.sent_packets, done.qdisc.qlen), (10, 0));
    assert!(done.delay_timers > 0);
}

/// Goal: classes that are delayed come back by the second timer. Method: cbq as a queue's discipline, and
/// inside of htb: ten packets leave, and the timer was counted; a queue without one has no such timer.
#[test]
fn the_delay_timer_runs() {
    let mut outer = Htb::new(HtbSettings { default_class: 1, ..HtbSettings::default() });
    outer.add_class(None, ClassId::new(1, 1), HtbClass::new(rate(1_000_000_000))).expect("a class");
    outer.set_inner(ClassId::new(1, 1), InnerQdisc::new(delayed())).expect("a leaf");
    assert_eq!(Qdisc::delays(&outer), DelayTimer::Idle);
    ten_packets_leave(|world| world.device.graft(0, delayed()));
    ten_packets_leave(|world| world.device.graft(0, outer));
    let world = World::new(1);
    world.tc("tc qd add dev eth1 root tbf rate 8mbit burst 100 limit 10kb");
    world.send_all(3, &parcel(1, 100));
    world.gate.pass(3);
    assert_eq!(world.device.statistics(0).delay_timers, 0);
}

/// A fifo that lets nothing go before its delay timer has gone off, which each packet asks for.
#[derive(Debug)]
struct Held {
    queue: Fifo<Parcel>,
    delays: DelayTimer,
}

impl Qdisc<Parcel> for Held {
    fn kind(&self) -> &'static str {
        "held"
    }

    fn enqueue(&mut self, now: Nanos, packet: Parcel) -> Enqueued {
        self.delays = DelayTimer::Until(Nanos(now.0 + 1_000_000));
        self.queue.enqueue(now, packet)
    }

    fn dequeue(&mut self, now: Nanos) -> Dequeued<Parcel> {
        if self.delays == DelayTimer::Idle { self.queue.dequeue(now) } else { Dequeued::Empty }
    }

    fn reset(&mut self, now: Nanos) {
        self.queue.reset(now);
    }

    fn statistics(&self) -> Statistics {
        self.queue.statistics()
    }

    fn delays(&self) -> DelayTimer {
        self.delays
    }

    fn end_delays(&mut self, _: Nanos) {
        self.delays = DelayTimer::Idle;
    }
}

/// Goal: each run of the delay timer is counted once, and ends delays. Method: a discipline that lets nothing
/// go before that, one packet at a time.
#[test]
fn each_delay_ends_by_one_timer() {
    let world = World::new(1);
    world.device.graft(0, Held { queue: Fifo::new(FifoLimit::Packets(10)), delays: DelayTimer::Idle });
    for count in 1..=3 {
        world.send(parcel(1, 100));
        world.gate.pass(1);
        assert_eq!(world.device.statistics(0).delay_timers, count);
    }
    assert_eq!(world.device.statistics(0).watchdogs, 0);
}

/// Goal: two disciplines ask for one timer, and a change tells whether there is one. Method: `delays` of cbq
/// before and after its class waits for it, through a change where it runs.
#[test]
fn a_change_brings_the_timer() {
    let world = World::new(1);
    let mut cbq = delayed();
    let class = CbqClass { bounded: true, max_burst: 0, ..CbqClass::new(rate(100_000)) };
    cbq.change_class(ClassId::new(1, 1), class).expect("it is there");
    assert_eq!(Qdisc::delays(&cbq), DelayTimer::Absent);
    world.device.graft(0, cbq);
    world.device.with_qdisc(0, |qdisc| {
        let any: &mut dyn std::any::Any = qdisc;
        let cbq = any.downcast_mut::<Cbq<Parcel>>().expect("it is one");
        let overlimit = CbqOverlimit::Delay;
        cbq.change_class(ClassId::new(1, 1), CbqClass { overlimit, ..class }).expect("it is there");
    });
    world.send_all(10, &parcel(1, 100));
    world.gate.pass(10);
    assert!(world.device.statistics(0).delay_timers > 0);
}

/// A fifo that names a moment in the past before each packet.
#[derive(Debug)]
struct Late {
    queue: Fifo<Parcel>,
    is_due: bool,
}

impl Qdisc<Parcel> for Late {
    fn kind(&self) -> &'static str {
        "late"
    }

    fn enqueue(&mut self, now: Nanos, packet: Parcel) -> Enqueued {
        self.queue.enqueue(now, packet)
    }

    fn dequeue(&mut self, now: Nanos) -> Dequeued<Parcel> {
        self.is_due = !self.is_due;
        if self.is_due && self.queue.statistics().qlen > 0 {
            return Dequeued::Throttled(Nanos(now.0.saturating_sub(1)));
        }
        self.queue.dequeue(now)
    }

    fn reset(&mut self, now: Nanos) {
        self.queue.reset(now);
    }

    fn statistics(&self) -> Statistics {
        self.queue.statistics()
    }
}

/// Goal: where the moment has passed, the queue is run by the softirq of its CPU, neither by a timer nor by
/// who asked. Method: a discipline that names such moments, packets of a thread that plays no CPU.
#[test]
fn what_is_due_is_a_softirq() {
    let world = World::new(1);
    world.device.graft(0, Late { queue: Fifo::new(FifoLimit::Packets(10)), is_due: false });
    for _ in 0..5 {
        world.send(parcel(1, 100));
        world.gate.next();
    }
    let done = world.device.statistics(0);
    assert_eq!((done.qdisc.sent_packets, done.watchdogs), (5, 0));
    assert_eq!((done.dequeued_at_home, done.dequeued_by_strangers), (5, 0));
}

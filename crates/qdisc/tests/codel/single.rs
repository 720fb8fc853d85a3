//! `codel`.

use crate::model::{Control, List, Totals, units};
use crate::{Datagram, MILLISECOND, Step, laws, steps};
use proptest::prelude::*;
use quietcore_core::Nanos;
use quietcore_qdisc::{
    CeSelector, Codel, CodelLaw, CodelSettings, CodelStatistics, Dequeued, Enqueued, Qdisc, Statistics,
};

#[derive(Debug, Default)]
struct Model {
    settings: CodelSettings,
    control: Control,
    list: List,
    all: Totals,
    over: u64,
    sent: (u64, u64),
    last: u64,
}

impl Model {
    fn enqueue(&mut self, now: u64, packet: Datagram) -> Enqueued {
        if self.list.len() as u64 >= u64::from(self.settings.limit) {
            self.over += 1;
            self.all.dropped += 1;
            return Enqueued::Dropped;
        }
        self.all.bytes += u64::from(packet.bytes);
        self.list.push_back((units(now), packet));
        Enqueued::Queued
    }

    fn dequeue(&mut self, now: u64) -> Option<Datagram> {
        self.last = units(now);
        let packet = self.control.dequeue(&self.settings.law, units(now), (&mut self.list, &mut self.all))?;
        self.sent = (self.sent.0 + 1, self.sent.1 + u64::from(packet.bytes));
        Some(packet)
    }

    fn change(&mut self, settings: CodelSettings) {
        self.settings = settings;
        while self.list.len() as u64 > u64::from(settings.limit) {
            let (_, packet) = self.list.pop_front().expect("there are more than the limit");
            self.all.bytes -= u64::from(packet.bytes);
            self.all.dropped += 1;
        }
    }

    fn told(&self) -> (Statistics, CodelStatistics) {
        let mut statistics = Statistics::default();
        (statistics.sent_packets, statistics.sent_bytes) = self.sent;
        statistics.dropped = self.all.dropped;
        (statistics.backlog, statistics.qlen) = (self.all.bytes, self.list.len() as u64);
        let mut codel = self.control.told(self.last);
        codel.longest_packet = self.all.longest;
        (codel.ecn_marks, codel.ce_marks) = (self.all.ecn_marks, self.all.ce_marks);
        codel.limit_drops = self.over;
        (statistics, codel)
    }
}

fn settings() -> impl Strategy<Value = CodelSettings> {
    let limit = prop_oneof![3 => Just(1_000_u32), 1 => 0_u32..30];
    (limit, laws()).prop_map(|(limit, law)| CodelSettings { limit, law })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(600) })]

    /// Goal: packets, marks, verdicts and counts are the model's. Method: random settings and steps, both
    /// compared after each.
    #[test]
    fn packets_leave_as_the_model_says(first in settings(), script in steps(1, settings())) {
        let mut queue = Codel::new(first);
        let mut model = Model { settings: first, ..Model::default() };
        let (mut now, mut number) = (1_000_000, 0);
        for step in script {
            match step {
                Step::Wait(span) => now += span,
                Step::Enqueue(packet) => {
                    number += 1;
                    let packet = Datagram { number, ..packet };
                    prop_assert_eq!(queue.enqueue(Nanos(now), packet), model.enqueue(now, packet));
                }
                Step::Dequeue => {
                    prop_assert_eq!(queue.dequeue(Nanos(now)).packet(), model.dequeue(now));
                }
                Step::Drain => {
                    while let Some(packet) = queue.dequeue(Nanos(now)).packet() {
                        prop_assert_eq!(Some(packet), model.dequeue(now));
                    }
                    prop_assert_eq!(model.dequeue(now), None);
                }
                Step::Reset => {
                    queue.reset(Nanos(now));
                    (model.control, model.all.bytes) = (Control::default(), 0);
                    model.list.clear();
                }
                Step::Change(settings) => {
                    queue.change(settings);
                    model.change(settings);
                }
            }
            prop_assert_eq!((queue.statistics(), queue.codel_statistics()), model.told(), "{:?}", step);
        }
    }
}

/// A queue into which 20 packets of 1,000 bytes come each 10 ms and out of which one leaves each millisecond:
/// the moments, in milliseconds, in which it dropped, up to `until`.
fn overloaded(queue: &mut Codel<Datagram>, from: u64, until: u64) -> Vec<u64> {
    let mut moments = Vec::new();
    for millisecond in from..until {
        let now = Nanos(millisecond * MILLISECOND);
        for _ in 0..if millisecond % 10 == 0 { 20 } else { 0 } {
            let _ = queue.enqueue(now, Datagram { bytes: 1_000, ..Datagram::default() });
        }
        let before = queue.statistics().dropped;
        assert!(queue.dequeue(now).packet().is_some());
        moments.extend((before..queue.statistics().dropped).map(|_| millisecond));
    }
    moments
}

fn unlimited() -> CodelSettings {
    CodelSettings { limit: u32::MAX, ..CodelSettings::default() }
}

/// Goal: gaps between drops are the interval divided by the square roots of 1, 2, 3 ...: RFC 8289, section
/// 3.3. Method: an overloaded queue; each moment against the sum of the gaps, which a step of Newton's
/// method leaves nearly a third short at the second gap and less later.
#[test]
fn drops_come_closer_as_square_roots_do() {
    let moments = overloaded(&mut Codel::new(unlimited()), 0, 3_000);
    let first = moments[0];
    assert!((105..=107).contains(&first), "5 ms and an interval: {first}");
    assert!(moments.len() > 150, "{} drops", moments.len());
    let mut sum = first as f64;
    for (number, moment) in (1..).zip(&moments[1..]) {
        sum += 100.0 / f64::from(number).sqrt();
        let off = *moment as f64 - sum;
        assert!((-40.0..=1.5).contains(&off), "drop {number} at {moment} ms, {sum} by the roots");
    }
    let gap = (moments[moments.len() - 1] - moments[moments.len() - 101]) as f64 / 100.0;
    let roots: f64 = (moments.len() - 101..moments.len() - 1).map(|n| 1.0 / (n as f64).sqrt()).sum();
    assert!((gap / roots - 1.0).abs() < 0.02, "a gap of {gap} ms, {roots} by the roots");
}

/// Goal: the first gaps are, to the unit, what the kernel's 16 bits give: roots of 65535, 32769, 36864 and
/// 31968 parts of 65536. Method: what is told of the next drop, when one is.
#[test]
fn the_first_gaps_are_exact() {
    let mut queue = Codel::new(unlimited());
    let mut gaps = Vec::new();
    for millisecond in 0..400 {
        let now = Nanos(millisecond * 1_024 * 1_000);
        for _ in 0..2 {
            let _ = queue.enqueue(now, Datagram { bytes: 1_000, ..Datagram::default() });
        }
        let before = (queue.statistics().dropped, queue.codel_statistics().drop_next);
        assert!(queue.dequeue(now).packet().is_some());
        if queue.statistics().dropped > before.0 {
            // What was left of the gap before, in this millisecond.
            let late = before.1.map_or(0, |left| left - 1_024_000);
            let next = queue.codel_statistics().drop_next.expect("it drops");
            gaps.push((next - late) / 1_024);
        }
    }
    let interval = 100_000_000 / 1_024;
    let roots = [65_535, 32_769, 36_864, 31_968];
    assert_eq!(gaps[..4], roots.map(|root| interval * root / 65_536));
}

/// Goal: a queue that is bad again within 16 intervals begins near the pace that it had; after them it
/// begins anew. Method: an overload, an empty queue for a while, another overload: drops in half a second.
#[test]
fn the_pace_is_remembered_for_16_intervals() {
    let drops = |pause: u64| {
        let mut queue = Codel::new(unlimited());
        let last = *overloaded(&mut queue, 0, 1_000).last().expect("it dropped");
        while queue.dequeue(Nanos(1_000 * MILLISECOND)).packet().is_some() {}
        let again = (last + pause) / 10 * 10;
        overloaded(&mut queue, again, again + 500).len()
    };
    // The first drop is 106 ms after the overload began, and the moment of the next one, up to 25 ms, is
    // what the span counts from.
    let (remembered, forgotten) = (drops(1_400), drops(1_700));
    assert!(remembered > 2 * forgotten, "{remembered} drops, and {forgotten}");
}

/// Goal: nothing is dropped while no more than a packet's bytes wait behind, however long packets wait.
/// Method: three packets of seconds ago, so that one waits behind the second: of the length of the link's,
/// or a byte longer.
#[test]
fn one_packet_that_waits_is_no_queue() {
    for (bytes, dropped) in [(1_514, 0), (1_515, 1)] {
        let mut queue = Codel::new(CodelSettings::default());
        for _ in 0..3 {
            assert!(queue.enqueue(Nanos(0), Datagram { bytes, ..Datagram::default() }).is_accepted());
        }
        for now in [1_000, 1_200] {
            assert!(queue.dequeue(Nanos(now * MILLISECOND)).packet().is_some());
        }
        assert_eq!(queue.statistics().dropped, dropped, "{bytes} bytes");
    }
}

/// Goal: a packet is dropped when the interval is over, a unit of time after its end. Method: packets of
/// seconds ago; one leaves, and another an interval later, or a unit later than that.
#[test]
fn at_its_end_the_interval_is_not_over() {
    let interval = units(CodelLaw::default().interval.0);
    for (late, dropped) in [(0, 0), (1, 1)] {
        let mut queue = Codel::new(CodelSettings::default());
        for _ in 0..5 {
            assert!(queue.enqueue(Nanos(0), Datagram { bytes: 1_514, ..Datagram::default() }).is_accepted());
        }
        for unit in [1_000_000, 1_000_000 + interval + late] {
            assert!(queue.dequeue(Nanos(unit * 1_024)).packet().is_some());
        }
        assert_eq!(queue.statistics().dropped, dropped, "{late} units late");
    }
}

/// Goal: with `ecn` what can be marked is marked and leaves; what cannot is dropped. Method: an overload of
/// either.
#[test]
fn what_can_be_marked_is_not_dropped() {
    for markable in [true, false] {
        let law = CodelLaw { ecn: true, ..CodelLaw::default() };
        let mut queue = Codel::new(CodelSettings { law, ..unlimited() });
        let mut marked = 0;
        for millisecond in 0..600 {
            let now = Nanos(millisecond * MILLISECOND);
            for _ in 0..2 {
                let packet = Datagram { bytes: 1_000, markable, ..Datagram::default() };
                assert!(queue.enqueue(now, packet).is_accepted());
            }
            marked += queue.dequeue(now).packet().map_or(0, |packet| packet.marks);
        }
        let counted = (queue.codel_statistics().ecn_marks, queue.statistics().dropped);
        let expected = if markable { (u64::from(marked), 0) } else { (0, counted.1) };
        assert_eq!(counted, expected);
        assert!(counted.0 + counted.1 > 5);
    }
}

/// Goal: longer than `ce_threshold` is marked, the threshold itself is not; the selector chooses. Method:
/// both sides, in units of 1024 ns; traffic classes that agree in the bits of the mask, and not.
#[test]
fn late_packets_are_marked() {
    let ce_threshold = Some(Nanos(1_024_000));
    let only = CeSelector { value: 1, mask: 3 };
    for (late, ce_selector, traffic_class, marks) in [
        (1_000, CeSelector::default(), None, 0),
        (1_001, CeSelector::default(), None, 1),
        (1_001, only, None, 0),
        (1_001, only, Some(0b101), 1),
        (1_001, only, Some(0b10), 0),
    ] {
        let law = CodelLaw { ce_threshold, ce_selector, ..CodelLaw::default() };
        let mut queue = Codel::new(CodelSettings { law, ..unlimited() });
        let packet = Datagram { bytes: 100, markable: true, traffic_class, ..Datagram::default() };
        assert!(queue.enqueue(Nanos(0), packet).is_accepted());
        let sent = queue.dequeue(Nanos(late * 1_024)).packet().expect("it is there");
        assert_eq!((sent.marks, queue.codel_statistics().ce_marks), (marks, marks.into()), "{late}");
    }
}

/// Goal: neither huge numbers nor the end of time panic. Method: the largest of everything.
#[test]
fn extremes() {
    let law = CodelLaw { interval: Nanos(u64::MAX), ce_threshold: Some(Nanos(0)), ..CodelLaw::default() };
    for interval in [0, u64::MAX] {
        let law = CodelLaw { interval: Nanos(interval), ..law };
        let mut queue = Codel::new(CodelSettings { law, ..unlimited() });
        for _ in 0..4 {
            let packet = Datagram { bytes: u32::MAX, ..Datagram::default() };
            assert!(queue.enqueue(Nanos(0), packet).is_accepted());
        }
        for now in [u64::MAX - 5_000, u64::MAX - 2_000, u64::MAX] {
            let _ = queue.dequeue(Nanos(now));
        }
        assert_eq!(queue.dequeue(Nanos(u64::MAX)).packet().is_some(), interval > 0);
        assert_eq!(queue.dequeue(Nanos(u64::MAX)), Dequeued::Empty);
    }
}

//! `fq_codel`.

use crate::model::{Control, List, Totals, units};
use crate::{Datagram, Step, laws, steps};
use proptest::prelude::*;
use quietcore_core::Nanos;
use quietcore_qdisc::{
    ClassId, Classful, CodelStatistics, Dequeued, Enqueued, FqCodel, FqCodelError, FqCodelSettings,
    FqCodelStatistics, Packet, Qdisc, Statistics,
};
use std::collections::VecDeque;

#[derive(Debug, Default)]
struct Flow {
    list: List,
    control: Control,
    deficit: i64,
    listed: bool,
}

/// RFC 8290, sections 4 and 5, with what the kernel adds: a limit of memory, and batches.
#[derive(Debug)]
struct Model {
    settings: FqCodelSettings,
    flows: Vec<Flow>,
    new: VecDeque<usize>,
    old: VecDeque<usize>,
    all: Totals,
    counted: FqCodelStatistics,
    sent: (u64, u64),
    last: u64,
}

impl Model {
    fn new(settings: FqCodelSettings) -> Self {
        let flows = (0..settings.flows).map(|_| Flow::default()).collect();
        let (new, old) = (VecDeque::new(), VecDeque::new());
        let counted = FqCodelStatistics::default();
        Self { settings, flows, new, old, all: Totals::default(), counted, sent: (0, 0), last: 0 }
    }

    fn packets(&self) -> u64 {
        self.flows.iter().map(|flow| flow.list.len() as u64).sum()
    }

    fn memory(&self) -> u64 {
        self.all.bytes + 256 * self.packets()
    }

    fn enqueue(&mut self, now: u64, packet: Datagram) -> Enqueued {
        let index = usize::from(packet.class) - 1;
        let flow = &mut self.flows[index];
        flow.list.push_back((units(now), packet));
        self.all.bytes += u64::from(packet.bytes);
        if !flow.listed {
            (flow.listed, flow.deficit) = (true, i64::from(self.settings.quantum));
            self.new.push_back(index);
            self.counted.new_flows += 1;
        }
        let no_memory = self.memory() > u64::from(self.settings.memory_limit);
        if !no_memory && self.packets() <= u64::from(self.settings.limit) {
            return Enqueued::Queued;
        }
        let bytes = |flow: &Flow| flow.list.iter().map(|(_, packet)| u64::from(packet.bytes)).sum::<u64>();
        let most = self.flows.iter().map(bytes).max().expect("there are flows");
        let longest = self.flows.iter_mut().find(|flow| bytes(flow) == most).expect("it is one of them");
        let (mut count, mut gone) = (0_u32, 0);
        loop {
            let (_, packet) = longest.list.pop_front().expect("it has bytes");
            (count, gone) = (count + 1, gone + u64::from(packet.bytes));
            if count >= self.settings.drop_batch || gone >= most / 2 {
                break;
            }
        }
        longest.control.count += count;
        self.all.bytes -= gone;
        self.all.dropped += u64::from(count);
        self.counted.limit_drops += u64::from(count);
        self.counted.memory_drops += if no_memory { u64::from(count) } else { 0 };
        if self.flows[index].list.is_empty() { Enqueued::Dropped } else { Enqueued::Queued }
    }

    fn next(&mut self, now: u64) -> Option<Datagram> {
        self.last = units(now);
        loop {
            let is_new = !self.new.is_empty();
            let index = if is_new { self.new[0] } else { *self.old.front()? };
            let flow = &mut self.flows[index];
            let list = if is_new { &mut self.new } else { &mut self.old };
            if flow.deficit <= 0 {
                flow.deficit += i64::from(self.settings.quantum);
                list.pop_front();
                self.old.push_back(index);
                continue;
            }
            let both = (&mut flow.list, &mut self.all);
            match flow.control.dequeue(&self.settings.law, units(now), both) {
                Some(packet) => {
                    flow.deficit -= i64::from(packet.bytes);
                    return Some(packet);
                }
                None => {
                    list.pop_front();
                    if is_new && !self.old.is_empty() {
                        self.old.push_back(index);
                    } else {
                        flow.listed = false;
                    }
                }
            }
        }
    }

    fn dequeue(&mut self, now: u64) -> Option<Datagram> {
        let packet = self.next(now)?;
        self.sent = (self.sent.0 + 1, self.sent.1 + u64::from(packet.bytes));
        Some(packet)
    }

    fn change(&mut self, now: u64, settings: FqCodelSettings) {
        self.settings = settings;
        while (self.packets() > u64::from(settings.limit) || self.memory() > settings.memory_limit.into())
            && self.next(now).is_some()
        {
            self.all.dropped += 1;
        }
    }

    fn reset(&mut self) {
        self.flows.iter_mut().for_each(|flow| *flow = Flow::default());
        self.new.clear();
        self.old.clear();
        self.all.bytes = 0;
    }

    fn told(&self) -> (Statistics, FqCodelStatistics) {
        let mut statistics = Statistics::default();
        (statistics.sent_packets, statistics.sent_bytes) = self.sent;
        statistics.dropped = self.all.dropped;
        (statistics.backlog, statistics.qlen) = (self.all.bytes, self.packets());
        let mut counted = self.counted;
        counted.longest_packet = self.all.longest;
        (counted.ecn_marks, counted.ce_marks) = (self.all.ecn_marks, self.all.ce_marks);
        counted.memory = self.memory();
        (counted.new_flows_len, counted.old_flows_len) = (self.new.len() as u64, self.old.len() as u64);
        (statistics, counted)
    }

    fn check_flows(&self, queue: &FqCodel<Datagram>) {
        let listed: Vec<ClassId> = (1_u16..)
            .zip(&self.flows)
            .filter(|(_, flow)| flow.listed)
            .map(|(minor, _)| ClassId::new(1, minor))
            .collect();
        assert_eq!(queue.classes(), listed);
        for class in listed {
            let flow = &self.flows[usize::from(class.minor()) - 1];
            let told = queue.flow(class).expect("it is listed");
            assert_eq!(told.deficit, flow.deficit, "{class}");
            assert_eq!(told.statistics.qlen, flow.list.len() as u64, "{class}");
            let CodelStatistics { count, last_count, delay, drop_next, .. } = flow.control.told(self.last);
            let codel = (told.codel.count, told.codel.last_count, told.codel.delay, told.codel.drop_next);
            assert_eq!(codel, (count, last_count, delay, drop_next), "{class}");
        }
    }
}

const FLOWS: u16 = 5;

fn settings() -> impl Strategy<Value = FqCodelSettings> {
    let limit = prop_oneof![3 => Just(10_240_u32), 2 => 0_u32..40];
    let memory_limit = prop_oneof![3 => Just(32_u32 << 20), 1 => 0_u32..100_000];
    (limit, memory_limit, 1_u32..3_000, 1_u32..20, laws()).prop_map(
        |(limit, memory_limit, quantum, drop_batch, law)| FqCodelSettings {
            major: 1,
            flows: FLOWS.into(),
            limit,
            memory_limit,
            quantum,
            drop_batch,
            law,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(600) })]

    /// Goal: packets, marks, verdicts, counts and every flow are the model's. Method: random settings and
    /// steps, both compared after each.
    #[test]
    fn packets_leave_as_the_model_says(first in settings(), script in steps(FLOWS, settings())) {
        let mut queue = FqCodel::new(first).expect("settings that can be");
        let mut model = Model::new(first);
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
                    model.reset();
                }
                Step::Change(settings) => {
                    queue.change(Nanos(now), settings).expect("settings that can be");
                    model.change(now, settings);
                }
            }
            prop_assert_eq!((queue.statistics(), queue.fq_codel_statistics()), model.told(), "{:?}", step);
            model.check_flows(&queue);
        }
    }
}

fn put(queue: &mut FqCodel<Datagram>, flow: u64, bytes: u32) -> Enqueued {
    queue.enqueue(Nanos(0), Datagram { flow, bytes, ..Datagram::default() })
}

/// Goal: a flow stays in one queue, and flows are spread evenly. Method: 64,000 flows over 64 queues, by
/// numbers that count up; each queue has a thousand of them, more or less six deviations (one is 31).
#[test]
fn flows_are_spread() {
    let settings = FqCodelSettings { flows: 64, limit: u32::MAX, ..FqCodelSettings::default() };
    let settings = FqCodelSettings { memory_limit: u32::MAX, ..settings };
    let mut queue = FqCodel::new(settings).expect("settings that can be");
    for flow in 0..64_000 {
        assert_eq!(put(&mut queue, flow, 40), Enqueued::Queued);
    }
    let held: Vec<u64> =
        queue.classes().iter().map(|class| queue.flow(*class).expect("listed").statistics.qlen).collect();
    assert_eq!(held.len(), 64);
    assert!(held.iter().all(|held| held.abs_diff(1_000) < 190), "{held:?}");
    let mut queue = FqCodel::new(FqCodelSettings::default()).expect("defaults");
    (0..9).for_each(|_| assert_eq!(put(&mut queue, 77, 40), Enqueued::Queued));
    assert_eq!(queue.classes().len(), 1);
}

/// Goal: shares are equal in bytes whatever packets have, and a flow that begins is served at once. Method:
/// flows of 1,500 and of 100 bytes; then one packet of a third.
#[test]
fn turns_are_fair_in_bytes() {
    let mut queue = FqCodel::new(FqCodelSettings::default()).expect("defaults");
    for (class, bytes, count) in [(1, 1_500, 100), (2, 100, 1_500)] {
        for _ in 0..count {
            let packet = Datagram { class, bytes, ..Datagram::default() };
            assert_eq!(queue.enqueue(Nanos(0), packet), Enqueued::Queued);
        }
    }
    let mut sent = [0_u32; 2];
    for _ in 0..800 {
        let packet = queue.dequeue(Nanos(0)).packet().expect("there are more");
        sent[usize::from(packet.class) - 1] += packet.bytes;
        assert!(sent[0].abs_diff(sent[1]) < 2 * 1_514 + 1_500, "{sent:?}");
    }
    let late = Datagram { class: 3, bytes: 60, ..Datagram::default() };
    assert_eq!(queue.enqueue(Nanos(0), late), Enqueued::Queued);
    assert_eq!(queue.dequeue(Nanos(0)).packet(), Some(late));
}

/// Goal: no room is made at the cost of others than the longest queue, from its head, half of it at most, and
/// no more than a batch. Method: a queue of 101 packets beside one of 2, one too many.
#[test]
fn the_longest_queue_makes_room() {
    for (drop_batch, dropped) in [(64, 51), (8, 8)] {
        let settings = FqCodelSettings { limit: 102, drop_batch, ..FqCodelSettings::default() };
        let mut queue = FqCodel::new(settings).expect("settings that can be");
        for number in 0..103 {
            let class = if number % 50 == 49 { 2 } else { 1 };
            let packet = Datagram { number, class, bytes: 100, ..Datagram::default() };
            assert_eq!(queue.enqueue(Nanos(0), packet), Enqueued::Queued);
        }
        let counted = queue.fq_codel_statistics();
        assert_eq!((counted.limit_drops, queue.statistics().dropped), (dropped, dropped));
        assert_eq!(counted.memory_drops, 0);
        let first = queue.dequeue(Nanos(0)).packet().expect("there are more").number;
        // One packet of the other queue was among the first 52.
        assert_eq!(first, if dropped == 51 { 52 } else { 8 });
    }
}

/// Goal: a filter's class is a queue; one that there is not drops, and the sender is not told. Method: the
/// last one, the one behind it, and none; a packet whose priority names another.
#[test]
fn filters_choose_queues() {
    let settings = FqCodelSettings { major: 7, flows: 4, ..FqCodelSettings::default() };
    let mut queue = FqCodel::new(settings).expect("settings that can be");
    assert!(queue.has_filters() && queue.slots().is_empty());
    for (minor, verdict) in [(4, Enqueued::Queued), (5, Enqueued::Lost), (0, Enqueued::Lost)] {
        let packet = Datagram { bytes: 60, ..Datagram::default() };
        assert_eq!(queue.enqueue_filtered(Nanos(0), ClassId::new(7, minor), packet), verdict, "7:{minor}");
    }
    assert_eq!((queue.classes(), queue.statistics().dropped), (vec![ClassId::new(7, 4)], 2));
    let mut queue = FqCodel::new(FqCodelSettings { major: 1, ..settings }).expect("settings that can be");
    let packet = Datagram { class: 2, bytes: 60, ..Datagram::default() };
    assert_eq!(queue.enqueue_filtered(Nanos(0), ClassId::new(1, 4), packet), Enqueued::Queued);
    assert_eq!(queue.classes(), [ClassId::new(1, 2)]);
}

/// Goal: settings that cannot be are refused, and change nothing. Method: both sides of each limit.
#[test]
fn settings_that_cannot_be() {
    let settings = FqCodelSettings { flows: 1, quantum: 1, drop_batch: 1, ..FqCodelSettings::default() };
    let mut queue = FqCodel::<Datagram>::new(settings).expect("the least");
    for (wrong, error) in [
        (FqCodelSettings { flows: 0, ..settings }, FqCodelError::Flows(0)),
        (FqCodelSettings { flows: 65_537, ..settings }, FqCodelError::Flows(65_537)),
        (FqCodelSettings { flows: 2, ..settings }, FqCodelError::FlowsChanged { are: 1 }),
        (FqCodelSettings { quantum: 0, ..settings }, FqCodelError::Quantum(0)),
        (FqCodelSettings { quantum: 1 << 20 | 1, ..settings }, FqCodelError::Quantum(1_048_577)),
        (FqCodelSettings { drop_batch: 0, ..settings }, FqCodelError::DropBatch),
    ] {
        assert_eq!(queue.change(Nanos(0), wrong), Err(error));
        assert_eq!(queue.settings(), &settings);
    }
    assert_eq!(queue.change(Nanos(0), FqCodelSettings { quantum: 1 << 20, ..settings }), Ok(()));
    assert!(FqCodel::<Datagram>::new(FqCodelSettings { flows: 65_536, ..settings }).is_ok());
}

/// Goal: neither huge numbers nor the end of time panic. Method: the largest of everything.
#[test]
fn extremes() {
    let settings = FqCodelSettings { limit: u32::MAX, memory_limit: u32::MAX, ..FqCodelSettings::default() };
    let mut queue = FqCodel::new(settings).expect("settings that can be");
    for flow in [0, u64::MAX] {
        let _ = put(&mut queue, flow, u32::MAX);
    }
    assert_eq!(queue.statistics().dropped, 2, "more than 4 GiB is no room");
    assert_eq!(put(&mut queue, u64::MAX, 1_000_000_000), Enqueued::Queued);
    let long = queue.dequeue(Nanos(u64::MAX)).packet().expect("nothing is behind it");
    assert_eq!((Packet::len(&long), queue.dequeue(Nanos(u64::MAX))), (1_000_000_000, Dequeued::Empty));
}

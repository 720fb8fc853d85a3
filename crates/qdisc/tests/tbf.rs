//! `tbf` against a model that is written from the description of the kernel's, and what it promises.
//!
//! The model keeps packets in a `Vec`, computes with signed 128-bit numbers, and knows neither `Rate` nor
//! `InnerQdisc`.

mod common;

use common::Parcel;
use proptest::prelude::*;
use quietcore_core::Nanos;
use quietcore_qdisc::{
    ClassId, Dequeued, Enqueued, Fifo, FifoLimit, InnerQdisc, LinkLayer, Qdisc, Rate, Statistics, Tbf,
    TbfError, TbfLimit, TbfSettings,
};

fn packet(number: u32, bytes: u32) -> Parcel {
    Parcel { number, class: ClassId(0), bytes }
}

/// What a rate is made of.
#[derive(Clone, Copy, Debug)]
struct Line {
    rate: u64,
    overhead: i32,
    mpu: u32,
    cells: bool,
}

impl Line {
    const fn plain(rate: u64) -> Self {
        Self { rate, overhead: 0, mpu: 0, cells: false }
    }

    fn built(self) -> Rate {
        let layer = if self.cells { LinkLayer::Atm } else { LinkLayer::Ethernet };
        let rate = Rate::bytes_per_second(self.rate).expect("no test has a rate of 0");
        rate.overhead(self.overhead).mpu(self.mpu).link_layer(layer)
    }

    /// Nanoseconds that a packet takes.
    fn cost(self, bytes: u32) -> i128 {
        let mut bytes = (i128::from(bytes) + i128::from(self.overhead)).max(i128::from(self.mpu));
        if self.cells {
            bytes = (bytes + 47) / 48 * 53;
        }
        bytes * 1_000_000_000 / i128::from(self.rate)
    }
}

/// What is asked for, in plain numbers.
#[derive(Clone, Copy, Debug)]
struct Asked {
    line: Line,
    burst: u32,
    limit: TbfLimit,
    peak: Option<(Line, u32)>,
}

impl Asked {
    fn built(self) -> TbfSettings {
        let settings = TbfSettings::new(self.line.built(), self.burst, self.limit);
        self.peak.map_or(settings, |(line, minburst)| settings.peak(line.built(), minburst))
    }

    fn longest(self) -> u32 {
        self.peak.map_or(self.burst, |(_, minburst)| minburst.min(self.burst))
    }

    /// Whether it makes sense.
    fn can_be(self) -> bool {
        let sound = |(line, minburst): (Line, u32)| {
            let slow = line.rate <= self.line.rate;
            minburst > 0 && !slow && line.cost(self.longest()) <= self.line.cost(self.burst)
        };
        self.burst > 0 && self.limit != TbfLimit::Bytes(0) && self.peak.is_none_or(sound)
    }
}

/// The model.
#[derive(Debug)]
struct Model {
    asked: Asked,
    limit: u128,
    queue: Vec<Parcel>,
    tokens: i128,
    ptokens: i128,
    t_c: i128,
    dropped: u64,
    overlimits: u64,
    sent: Vec<(Nanos, Parcel)>,
}

impl Model {
    fn new(asked: Asked, now: Nanos) -> Self {
        let limit = match asked.limit {
            TbfLimit::Bytes(bytes) => u128::from(bytes),
            TbfLimit::Latency(Nanos(span)) => {
                let at = |rate: u64, burst: u32| {
                    u128::from(span) * u128::from(rate) / 1_000_000_000 + u128::from(burst)
                };
                let first = at(asked.line.rate, asked.burst);
                asked.peak.map_or(first, |(line, minburst)| first.min(at(line.rate, minburst)))
            }
        };
        let (queue, sent) = (vec![], vec![]);
        let mut model =
            Self { asked, limit, queue, tokens: 0, ptokens: 0, t_c: 0, dropped: 0, overlimits: 0, sent };
        model.reset(now);
        model
    }

    fn reset(&mut self, now: Nanos) {
        self.queue.clear();
        self.t_c = i128::from(now.0);
        self.tokens = self.asked.line.cost(self.asked.burst);
        self.ptokens = self.asked.peak.map_or(0, |(line, minburst)| line.cost(minburst));
    }

    fn backlog(&self) -> u64 {
        self.queue.iter().map(|packet| u64::from(packet.bytes)).sum()
    }

    fn enqueue(&mut self, packet: Parcel) -> Enqueued {
        let fits = u128::from(self.backlog()) + u128::from(packet.bytes) <= self.limit;
        if packet.bytes > self.asked.longest() || !fits {
            self.dropped += 1;
            return Enqueued::Dropped;
        }
        self.queue.push(packet);
        Enqueued::Queued
    }

    fn dequeue(&mut self, now: Nanos) -> Dequeued<Parcel> {
        let Some(head) = self.queue.first().copied() else { return Dequeued::Empty };
        let buffer = self.asked.line.cost(self.asked.burst);
        let elapsed = (i128::from(now.0) - self.t_c).min(buffer);
        let t = (elapsed + self.tokens).min(buffer) - self.asked.line.cost(head.bytes);
        let p = self.asked.peak.map_or(0, |(line, minburst)| {
            (elapsed + self.ptokens).min(line.cost(minburst)) - line.cost(head.bytes)
        });
        if t < 0 || p < 0 {
            self.overlimits += 1;
            let wait = u64::try_from((-t).max(-p)).expect("one is below 0");
            return Dequeued::Throttled(Nanos(now.0 + wait));
        }
        (self.tokens, self.ptokens, self.t_c) = (t, p, i128::from(now.0));
        self.sent.push((now, head));
        Dequeued::Packet(self.queue.remove(0))
    }

    fn statistics(&self) -> Statistics {
        let mut expected = Statistics::default();
        expected.sent_bytes = self.sent.iter().map(|(_, packet)| u64::from(packet.bytes)).sum();
        expected.sent_packets = self.sent.len() as u64;
        (expected.dropped, expected.overlimits) = (self.dropped, self.overlimits);
        (expected.backlog, expected.qlen) = (self.backlog(), self.queue.len() as u64);
        expected
    }
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Wait(u64),
    Enqueue(u32),
    Dequeue,
    /// At the moment that is named, if one is, and a nanosecond before.
    DequeueInTime,
    Reset,
}

/// Both, side by side.
#[derive(Debug)]
struct Pair {
    subject: Tbf<Parcel>,
    model: Model,
    now: Nanos,
    number: u32,
}

impl Pair {
    fn new(asked: Asked) -> Self {
        let now = Nanos(1_000_000);
        let subject = Tbf::new(asked.built(), now).expect("settings that can be");
        Self { subject, model: Model::new(asked, now), now, number: 0 }
    }

    fn dequeue(&mut self) -> Dequeued<Parcel> {
        let given = self.subject.dequeue(self.now);
        assert_eq!(given, self.model.dequeue(self.now), "at {:?}", self.now);
        given
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Wait(span) => self.now.0 += span,
            Step::Enqueue(bytes) => {
                self.number += 1;
                let packet = packet(self.number, bytes);
                let verdict = self.subject.enqueue(self.now, packet);
                assert_eq!(verdict, self.model.enqueue(packet), "{packet:?} at {:?}", self.now);
            }
            Step::Dequeue => {
                let _ = self.dequeue();
            }
            Step::DequeueInTime => {
                if let Dequeued::Throttled(until) = self.dequeue() {
                    assert!(until > self.now, "{until:?} is no moment to wait for at {:?}", self.now);
                    self.now = Nanos(until.0 - 1);
                    assert_eq!(self.dequeue(), Dequeued::Throttled(until), "not earlier");
                    self.now = until;
                    assert!(self.dequeue().packet().is_some(), "not at {until:?}, as was said");
                }
            }
            Step::Reset => {
                self.subject.reset(self.now);
                self.model.reset(self.now);
            }
        }
        assert_eq!(self.subject.statistics(), self.model.statistics(), "after {step:?} at {:?}", self.now);
    }
}

fn steps(with_reset: u32) -> impl Strategy<Value = Vec<Step>> {
    let wait = prop_oneof![0_u64..100, 0_u64..100_000, 0_u64..50_000_000, 0_u64..20_000_000_000];
    let step = prop_oneof![
        20 => wait.prop_map(Step::Wait),
        40 => (1_u32..3_000).prop_map(Step::Enqueue),
        25 => Just(Step::Dequeue),
        25 => Just(Step::DequeueInTime),
        with_reset => Just(Step::Reset),
    ];
    proptest::collection::vec(step, 1..250)
}

fn lines() -> impl Strategy<Value = Line> {
    let rate =
        prop_oneof![1_u64..20, 900_u64..70_000, 100_000_u64..2_000_000, 900_000_000_u64..5_000_000_000];
    let plain = rate.prop_map(Line::plain);
    (plain, -30_i32..60, 0_u32..200, any::<bool>(), any::<bool>()).prop_map(
        |(line, overhead, mpu, cells, bare)| {
            if bare { line } else { Line { overhead, mpu, cells, ..line } }
        },
    )
}

fn limits() -> impl Strategy<Value = TbfLimit> {
    prop_oneof![
        (0_u64..20_000).prop_map(TbfLimit::Bytes),
        (0_u64..1_000_000_000).prop_map(|span| TbfLimit::Latency(Nanos(span))),
    ]
}

fn asked() -> impl Strategy<Value = Asked> {
    let peak = (lines(), 0_u32..3_000, 1_u64..4);
    (lines(), 0_u32..4_000, limits(), proptest::option::of(peak)).prop_map(|(line, burst, limit, peak)| {
        // A peak rate with nothing in common with the rate is mostly below it: half of them are a multiple.
        let peak = peak.map(|(peak, minburst, times)| {
            let rate = if times > 1 { line.rate * times } else { peak.rate };
            (Line { rate, ..peak }, minburst)
        });
        Asked { line, burst, limit, peak }
    })
}

/// That in no span more was sent, at the rate, than the span and `depth`, all in nanoseconds.
fn check_windows(sent: &[(Nanos, Parcel)], line: Line, depth: i128) {
    for (first, (begin, _)) in sent.iter().enumerate() {
        let mut used = 0;
        for (end, packet) in &sent[first..] {
            used += line.cost(packet.bytes);
            let span = i128::from(end.0 - begin.0);
            assert!(used <= depth + span, "{used} ns sent within {span} ns after {begin:?}");
        }
    }
}

/// The same in bytes, where a packet more may come from rounding.
fn check_bytes(sent: &[(Nanos, Parcel)], rate: u64, burst: u32) {
    let longest = sent.iter().map(|(_, packet)| packet.bytes).max().unwrap_or(0);
    for (first, (begin, _)) in sent.iter().enumerate() {
        let mut bytes = 0;
        for (end, packet) in &sent[first..] {
            bytes += u128::from(packet.bytes);
            let span = u128::from(end.0 - begin.0);
            let allowed = u128::from(burst + longest) + span * u128::from(rate) / 1_000_000_000;
            assert!(bytes <= allowed, "{bytes} bytes within {span} ns after {begin:?}, of {allowed}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(600) })]

    /// Goal: verdicts, packets, moments and statistics are the model's, and what cannot be is refused.
    /// Method: random settings and steps, both side by side.
    #[test]
    fn as_the_model(asked in asked(), steps in steps(2)) {
        let refused = Tbf::<Parcel>::new(asked.built(), Nanos(0)).is_err();
        prop_assert_eq!(refused, !asked.can_be());
        if !refused {
            let mut pair = Pair::new(asked);
            for step in steps {
                pair.step(step);
            }
        }
    }

    /// Goal: no span sees more than the burst and the rate's, nor with a peak rate more than that allows.
    /// Method: random steps, then every span between two packets.
    #[test]
    fn windows(rate in 1_000_u64..2_000_000, burst in 1_000_u32..6_000, peak in 2_u64..5, steps in steps(0)) {
        let line = Line::plain(rate);
        let (fast, minburst) = (Line::plain(rate * peak), 1_600);
        for peak in [None, Some((fast, minburst))] {
            let mut pair = Pair::new(Asked { line, burst, limit: TbfLimit::Bytes(30_000), peak });
            for step in &steps {
                pair.step(*step);
            }
            while pair.model.backlog() > 0 {
                pair.step(Step::DequeueInTime);
            }
            let sent = &pair.model.sent;
            check_windows(sent, line, line.cost(burst));
            check_bytes(sent, rate, burst);
            if peak.is_some() {
                check_windows(sent, fast, fast.cost(minburst));
                check_bytes(sent, fast.rate, minburst);
            }
        }
    }
}

const MICROS: u64 = 1_000;

/// 1 byte per microsecond, a burst of 1000.
fn slow() -> TbfSettings {
    TbfSettings::new(Line::plain(1_000_000).built(), 1_000, TbfLimit::Bytes(10_000))
}

fn filled(settings: TbfSettings, lengths: &[u32]) -> Tbf<Parcel> {
    let mut queue = Tbf::new(settings, Nanos(0)).expect("settings that can be");
    for (number, bytes) in (0..).zip(lengths) {
        assert_eq!(queue.enqueue(Nanos(0), packet(number, *bytes)), Enqueued::Queued);
    }
    queue
}

/// Goal: a short packet does not pass a long one that waits, and asking early costs nothing. Method: by
/// hand; many questions in between.
#[test]
fn nobody_passes_the_head() {
    let mut queue = filled(slow(), &[900, 1_000, 1]);
    assert_eq!(queue.dequeue(Nanos(0)), Dequeued::Packet(packet(0, 900)));
    let due = Nanos(900 * MICROS);
    for early in [0, 1, 100 * MICROS, 101 * MICROS, due.0 - 1] {
        assert_eq!(queue.dequeue(Nanos(early)), Dequeued::Throttled(due), "at {early}");
    }
    assert_eq!(queue.dequeue(due), Dequeued::Packet(packet(1, 1_000)));
    let due = Nanos(due.0 + MICROS);
    assert_eq!(queue.dequeue(Nanos(due.0 - 1)), Dequeued::Throttled(due));
    assert_eq!(queue.dequeue(due), Dequeued::Packet(packet(2, 1)));
    assert_eq!((queue.dequeue(due), queue.statistics().overlimits), (Dequeued::Empty, 6));
}

/// Goal: the longest packet is as long as the smaller bucket. Method: that, and a byte more.
#[test]
fn too_long_is_dropped() {
    let peak = slow().peak(Line::plain(2_000_000).built(), 600);
    for (settings, longest) in [(slow(), 1_000), (peak, 600)] {
        let mut queue = filled(settings, &[longest]);
        let verdict = queue.enqueue(Nanos(0), packet(9, longest + 1));
        assert_eq!((verdict, queue.statistics().dropped), (Enqueued::Dropped, 1));
        assert_eq!(queue.dequeue(Nanos(0)), Dequeued::Packet(packet(0, longest)));
    }
}

/// Goal: the peak rate spaces what the burst would let through at once. Method: a burst of five by hand.
#[test]
fn the_peak_rate_spaces_a_burst() {
    let settings = slow().peak(Line::plain(4_000_000).built(), 200);
    let mut queue = filled(settings, &[200; 6]);
    let mut now = Nanos(0);
    for number in 0..5 {
        assert_eq!(queue.dequeue(now), Dequeued::Packet(packet(number, 200)));
        now.0 += 50 * MICROS;
    }
    // 200 us have refilled 200 bytes of the 1000 that were sent: the sixth is not short of any.
    assert_eq!(queue.dequeue(Nanos(now.0 - 50 * MICROS)), Dequeued::Throttled(now));
    assert!(queue.dequeue(now).packet().is_some());
}

/// Goal: a pause fills the bucket of the peak rate by no more than the first one holds, as in the kernel,
/// which is seen where packets cost more at the peak rate. Method: 100 bytes cost 100 us and 550 us.
#[test]
fn a_pause_counts_as_long_as_the_bucket() {
    let mut queue = filled(slow().peak(Line::plain(2_000_000).built().overhead(1_000), 3_000), &[100; 6]);
    let mut now = Nanos(0);
    for pause in [0, 0, 0, 2_000 * MICROS, 0] {
        now.0 += pause;
        assert!(queue.dequeue(now).packet().is_some(), "at {now:?}");
    }
    // 350 us were left, 1000 us came in, and 1100 us went out.
    assert_eq!(queue.dequeue(now), Dequeued::Throttled(Nanos(now.0 + 300 * MICROS)));
}

/// Goal: every error, with the value. Method: one wrong setting each.
#[test]
fn settings_that_cannot_be() {
    let line = |rate| Line::plain(rate).built();
    let error = |settings| Tbf::<Parcel>::new(settings, Nanos(0)).err();
    let mut wrong = slow();
    wrong.burst = 0;
    assert_eq!(error(wrong), Some(TbfError::Burst(0)));
    wrong = slow();
    wrong.limit = TbfLimit::Bytes(0);
    assert_eq!(error(wrong), Some(TbfError::Limit(0)));
    assert_eq!(error(slow().peak(line(2_000_000), 0)), Some(TbfError::Minburst(0)));
    let below = TbfError::PeakRate { rate: 1_000_000, peak: 999_999 };
    assert_eq!(error(slow().peak(line(999_999), 100)), Some(below));
    let same = TbfError::PeakRate { rate: 1_000_000, peak: 1_000_000 };
    assert_eq!(error(slow().peak(line(1_000_000), 100)), Some(same));
    let costly = line(2_000_000).overhead(1_500);
    let overhead = TbfError::PeakOverhead { time: Nanos(1_250 * MICROS), bucket: Nanos(1_000 * MICROS) };
    assert_eq!(error(slow().peak(costly, 1_000)), Some(overhead));
    assert_eq!(error(slow().peak(costly, 500)), None);
    for (error, text) in [
        (below, "peak rate of 999999 bytes/s is not above the rate of 1000000 bytes/s"),
        (overhead, "longest packet takes 1.2 ms at the peak rate, more than the bucket's 1 ms"),
        (TbfError::Limit(0), "limit of 0 bytes lets no packet wait"),
    ] {
        assert_eq!(error.to_string(), text);
    }
}

/// Goal: other settings begin with full buckets. Method: an empty one that takes a second to fill, and a
/// change to what it is.
#[test]
fn a_change_fills_the_buckets() {
    let settings = TbfSettings::new(Line::plain(100).built(), 100, TbfLimit::Bytes(1_000));
    let mut queue = Tbf::new(settings, Nanos(0)).expect("settings that can be");
    for number in 0..3 {
        assert!(queue.enqueue(Nanos(0), packet(number, 100)).is_accepted());
    }
    assert!(queue.dequeue(Nanos(0)).packet().is_some());
    assert_eq!(queue.dequeue(Nanos(7)), Dequeued::Throttled(Nanos(1_000_000_000)));
    queue.change(settings, Nanos(7)).expect("settings that can be");
    assert!(queue.dequeue(Nanos(7)).packet().is_some());
    assert_eq!(queue.dequeue(Nanos(7)), Dequeued::Throttled(Nanos(1_000_000_007)));
}

/// Goal: an inner discipline that has to wait is asked again when it said; its counts are kept; what is too
/// long is not waited for. Method: a slower tbf inside, then a fifo that was filled before.
#[test]
fn other_disciplines_inside() {
    let slower = TbfSettings::new(Line::plain(500_000).built(), 1_000, TbfLimit::Bytes(10_000));
    let inner = Tbf::new(slower, Nanos(0)).expect("settings that can be");
    let mut queue = filled(slow(), &[]).with_inner(InnerQdisc::new(inner));
    for number in 0..2 {
        assert!(queue.enqueue(Nanos(0), packet(number, 1_000)).is_accepted());
    }
    assert!(queue.dequeue(Nanos(0)).packet().is_some());
    assert_eq!(queue.dequeue(Nanos(0)), Dequeued::Throttled(Nanos(2_000 * MICROS)), "the inner one says so");
    assert_eq!((queue.statistics().qlen, queue.statistics().overlimits), (1, 0));
    assert!(queue.dequeue(Nanos(2_000 * MICROS)).packet().is_some());

    let mut fifo = Fifo::new(FifoLimit::Packets(3));
    for (number, bytes) in [(0, 1_001), (1, 10), (2, 5_000)] {
        assert!(fifo.enqueue(Nanos(0), packet(number, bytes)).is_accepted());
    }
    let mut queue = filled(slow(), &[7]).with_inner(InnerQdisc::new(fifo));
    assert_eq!(queue.statistics().dropped, 1, "what waited before");
    assert_eq!(queue.dequeue(Nanos(0)), Dequeued::Packet(packet(1, 10)));
    assert_eq!((queue.dequeue(Nanos(0)), queue.statistics().dropped), (Dequeued::Empty, 3));
    assert_eq!((queue.statistics().sent_bytes, queue.statistics().qlen), (10, 0));
}

/// Goal: neither huge numbers nor the end of time panic. Method: the largest of everything.
#[test]
fn extremes() {
    let slowest = TbfSettings::new(Line::plain(1).built(), u32::MAX, TbfLimit::Latency(Nanos(u64::MAX)));
    let mut queue = filled(slowest, &[u32::MAX, u32::MAX]);
    assert!(queue.dequeue(Nanos(0)).packet().is_some());
    assert_eq!(queue.dequeue(Nanos(0)), Dequeued::Throttled(Nanos(u64::from(u32::MAX) * 1_000_000_000)));
    assert!(queue.dequeue(Nanos(u64::MAX)).packet().is_some());
    let fastest = TbfSettings::new(Line::plain(u64::MAX).built(), 1, TbfLimit::Latency(Nanos(u64::MAX)));
    assert!(filled(fastest, &[1]).dequeue(Nanos(u64::MAX)).packet().is_some());
}

//! Links in virtual time: each toxic by itself, changes of toxics, and random scripts of everything.

use super::{AppliedToxic, LinkCounts, PIECE_COST, StreamLink, WAITING_MAX};
use crate::stream::draws::DrawKey;
use crate::stream::stage::StreamItem;
use crate::stream::toxic::ToxicKind;
use bytes::Bytes;
use proptest::prelude::*;
use quietcore_core::Nanos;

const MS: u64 = 1_000_000;

fn toxics(kinds: &[ToxicKind]) -> Vec<AppliedToxic> {
    let toxic = |(id, kind): (u64, &ToxicKind)| AppliedToxic {
        id,
        revision: 0,
        kind: *kind,
        toxicity: 1.0,
        name: id.to_string(),
    };
    (0..).zip(kinds).map(toxic).collect()
}

fn link(seed: u64, kinds: &[ToxicKind]) -> StreamLink {
    let mut link = StreamLink::new(DrawKey::new(seed), 1 << 22, Nanos(0));
    link.apply(&toxics(kinds), Nanos(0));
    link
}

/// What can be written, and whether something ended.
fn take(link: &mut StreamLink) -> Vec<StreamItem> {
    let mut taken = Vec::new();
    while let Some(item) = link.exit().cloned() {
        if item.len() > 0 {
            link.written(item.len() as usize)
        } else {
            link.done()
        }
        taken.push(item);
    }
    taken
}

/// Until nothing is left to wait for: when which item left, and for data their length.
fn run(link: &mut StreamLink) -> Vec<(u64, String)> {
    let mut left = Vec::new();
    let mut now = link.clock.0;
    loop {
        left.extend(take(link).into_iter().map(|item| match item {
            StreamItem::Data(bytes) => (now, bytes.len().to_string()),
            item => (now, format!("{item:?}")),
        }));
        let Some(next) = link.next_expiry() else { return left };
        assert!(next.0 > now, "what is due was left");
        now = next.0;
        link.advance(next);
    }
}

fn left(moments: &[(u64, &str)]) -> Vec<(u64, String)> {
    moments.iter().map(|(moment, what)| (*moment, (*what).to_owned())).collect()
}

fn bytes(length: usize) -> Bytes {
    Bytes::from(vec![7; length])
}

/// Goal: without toxics, and with those that do not apply, everything passes at once. Method: data, and an
/// end.
#[test]
fn without_toxics_everything_passes() {
    let latency = ToxicKind::Latency { latency: 1, jitter: 0 };
    let mut unlucky = toxics(&[latency]);
    unlucky[0].toxicity = 0.0;
    for toxics in [vec![], unlucky] {
        let mut link = StreamLink::new(DrawKey::new(1), 1000, Nanos(0));
        link.apply(&toxics, Nanos(0));
        link.feed(bytes(5), Nanos(3));
        link.end(StreamItem::End, Nanos(3));
        assert_eq!(run(&mut link), left(&[(3, "5"), (3, "End")]));
        assert_eq!(link.counts(), LinkCounts { came: 5, went: 5, ..LinkCounts::default() });
    }
}

/// Goal: latency is exact, two of them add up, and jitter stays in its range and lets nothing overtake.
/// Method: moments of one piece, looked at when they come or late, and of many.
#[test]
fn latency_is_exact() {
    let latency = |latency: u64, jitter: u64| ToxicKind::Latency { latency, jitter };
    let mut plain = link(1, &[latency(20, 0), latency(5, 0)]);
    plain.feed(bytes(3), Nanos(7));
    plain.end(StreamItem::End, Nanos(9));
    assert_eq!(run(&mut plain), left(&[(25 * MS + 7, "3"), (25 * MS + 9, "End")]));
    let mut unwatched = link(1, &[latency(20, 0), latency(5, 0)]);
    unwatched.feed(bytes(3), Nanos(7));
    unwatched.advance(Nanos(24 * MS));
    assert_eq!(unwatched.next_expiry(), Some(Nanos(25 * MS + 7)), "however late the look");
    let mut jittery = link(1, &[latency(20, 5)]);
    let mut moments = Vec::new();
    for at in 0..200 {
        let now = Nanos(at * 100 * MS);
        jittery.feed(bytes(3), now);
        let (leaves, _) = run(&mut jittery)[0];
        moments.push(leaves - now.0);
    }
    assert!(moments.iter().all(|delay| (15 * MS..=25 * MS).contains(delay)), "{moments:?}");
    assert!(moments.iter().min() < Some(&(16 * MS)) && moments.iter().max() > Some(&(24 * MS)));
    let mut crowded = link(1, &[latency(20, 20)]);
    (0..50).for_each(|length| crowded.feed(bytes(length + 1), Nanos(length as u64)));
    let lengths: Vec<_> = run(&mut crowded).into_iter().map(|(_, length)| length).collect();
    assert_eq!(lengths, (1..=50).map(|length: u32| length.to_string()).collect::<Vec<_>>());
}

/// Goal: a rate is kept to the nanosecond, over any time that the link is busy; with 0 nothing passes.
/// Method: pieces that do not divide it, a pause, and the toxic's end.
#[test]
fn a_rate_is_exact() {
    let mut link = link(1, &[ToxicKind::Bandwidth { rate: 3 }]);
    link.feed(bytes(100), Nanos(0));
    let moments = [(10 * MS, "30"), (20 * MS, "30"), (30 * MS, "30"), (33_333_334, "10")];
    assert_eq!(run(&mut link), left(&moments));
    link.feed(bytes(1), Nanos(50 * MS));
    link.feed(bytes(1), Nanos(50 * MS));
    link.feed(bytes(1), Nanos(50 * MS));
    assert_eq!(run(&mut link), left(&[(50_333_334, "1"), (50_666_667, "1"), (51 * MS, "1")]));
    let mut cut = self::link(1, &[ToxicKind::Bandwidth { rate: 0 }]);
    cut.feed(bytes(9), Nanos(0));
    cut.end(StreamItem::End, Nanos(0));
    assert_eq!(run(&mut cut), []);
    cut.apply(&[], Nanos(5));
    assert_eq!(run(&mut cut), left(&[(5, "9"), (5, "End")]));
}

/// Goal: an end is late, data are not, and a reset is not. Method: one of each.
#[test]
fn a_close_is_slow() {
    for (end, late) in [(StreamItem::End, 8 * MS), (StreamItem::Close, 8 * MS), (StreamItem::Reset, 0)] {
        let mut link = link(1, &[ToxicKind::SlowClose { delay: 8 }]);
        link.feed(bytes(2), Nanos(0));
        link.end(end.clone(), Nanos(1));
        assert_eq!(run(&mut link), left(&[(1, "2"), (late + 1, &format!("{end:?}"))]), "{end:?}");
    }
}

/// Goal: data are dropped, counted, and the connection is closed when it is time, or when the toxic is
/// removed and something was dropped. Method: with and without a moment, with and without data.
#[test]
fn a_timeout_drops_and_closes() {
    let mut timed = link(1, &[ToxicKind::Timeout { timeout: 30 }]);
    timed.feed(bytes(4), Nanos(1));
    assert_eq!(run(&mut timed), left(&[(30 * MS, "Close")]));
    assert_eq!(timed.counts(), LinkCounts { came: 4, dropped: 4, ..LinkCounts::default() });
    let mut endless = link(1, &[ToxicKind::Timeout { timeout: 0 }]);
    endless.feed(bytes(4), Nanos(1));
    assert_eq!(run(&mut endless), []);
    endless.apply(&[], Nanos(2));
    assert_eq!(run(&mut endless), left(&[(2, "Close")]));
    let mut silent = link(1, &[ToxicKind::Timeout { timeout: 0 }]);
    silent.apply(&[], Nanos(2));
    silent.feed(bytes(4), Nanos(3));
    silent.end(StreamItem::End, Nanos(3));
    assert_eq!(run(&mut silent), left(&[(3, "4"), (3, "End")]));
    let mut torn = link(1, &[ToxicKind::Timeout { timeout: 0 }]);
    torn.feed(bytes(4), Nanos(1));
    torn.end(StreamItem::End, Nanos(2));
    assert_eq!(run(&mut torn), left(&[(2, "Close")]), "no proper end of a stream that misses something");
}

/// Goal: a reset comes at its moment, behind what came before, even after the end of the stream. Method: at
/// once, and later.
#[test]
fn a_reset_comes_at_its_moment() {
    let mut now = link(1, &[ToxicKind::ResetPeer { timeout: 0 }]);
    assert_eq!(run(&mut now), left(&[(0, "Reset")]));
    let mut later = link(1, &[ToxicKind::ResetPeer { timeout: 10 }]);
    later.feed(bytes(4), Nanos(1));
    later.end(StreamItem::End, Nanos(2));
    assert_eq!(run(&mut later), left(&[(2, "4"), (2, "End"), (10 * MS, "Reset")]));
}

/// Goal: pieces have their sizes and pauses, and are the whole. Method: fixed and varied sizes.
#[test]
fn data_are_sliced() {
    let slicer =
        |average_size, size_variation, delay| ToxicKind::Slicer { average_size, size_variation, delay };
    let mut even = link(1, &[slicer(4, 0, 1000)]);
    even.feed(bytes(10), Nanos(0));
    assert_eq!(run(&mut even), left(&[(0, "4"), (MS, "4"), (2 * MS, "2")]));
    even.feed(bytes(3), Nanos(9 * MS));
    assert_eq!(run(&mut even), left(&[(9 * MS, "3")]));
    let mut varied = link(1, &[slicer(10, 4, 0)]);
    varied.feed(bytes(10_000), Nanos(0));
    let sizes: Vec<usize> = run(&mut varied).iter().map(|(_, size)| size.parse().unwrap()).collect();
    assert_eq!(sizes.iter().sum::<usize>(), 10_000);
    assert!(sizes[..sizes.len() - 1].iter().all(|size| (6..=14).contains(size)), "{sizes:?}");
    assert!([6, 14].iter().all(|size| sizes.contains(size)), "{sizes:?}");
    let mut whole = link(1, &[slicer(0, 0, 0)]);
    whole.feed(bytes(10_000), Nanos(0));
    assert_eq!(run(&mut whole), left(&[(0, "10000")]));
}

/// Goal: as many bytes pass as the limit says, in all versions of the toxic, and then the connection is
/// closed.
/// Method: across pieces, at the edge, with 0, and changed on the way.
#[test]
fn data_are_limited() {
    let limit = |bytes| [ToxicKind::LimitData { bytes }];
    let mut over = link(1, &limit(10));
    (0..3).for_each(|_| over.feed(bytes(4), Nanos(0)));
    assert_eq!(run(&mut over), left(&[(0, "4"), (0, "4"), (0, "2"), (0, "Close")]));
    assert_eq!(over.counts(), LinkCounts { came: 12, went: 10, dropped: 2, stalls: 0 });
    let mut edge = link(1, &limit(4));
    edge.feed(bytes(4), Nanos(0));
    assert_eq!(run(&mut edge), left(&[(0, "4"), (0, "Close")]));
    let mut none = link(1, &limit(0));
    assert_eq!(run(&mut none), []);
    none.feed(bytes(1), Nanos(0));
    assert_eq!(run(&mut none), left(&[(0, "Close")]));
    let mut changed = link(1, &limit(10));
    changed.feed(bytes(6), Nanos(0));
    let mut higher = toxics(&limit(8));
    higher[0].revision = 1;
    changed.apply(&higher, Nanos(0));
    changed.feed(bytes(6), Nanos(0));
    assert_eq!(run(&mut changed), left(&[(0, "6"), (0, "2"), (0, "Close")]));
}

/// Goal: a loss is a timeout's stall of all that is behind it, twice as long for two in a row; it is counted,
/// and as frequent as it is told. Method: all are lost, none, some.
#[test]
fn a_loss_is_a_stall() {
    let loss = |percent| [ToxicKind::Loss { percent, rto: 200 }];
    let mut all = link(1, &loss(100.0));
    all.feed(bytes(1449), Nanos(0));
    assert_eq!(run(&mut all), left(&[(255 * 200 * MS, "1448"), (255 * 200 * MS, "1")]));
    assert_eq!(all.counts().stalls, 2);
    let mut none = link(1, &loss(0.0));
    none.feed(bytes(1449), Nanos(0));
    assert_eq!(run(&mut none), left(&[(0, "1448"), (0, "1")]));
    let mut some = link(1, &loss(10.0));
    (0..2000).for_each(|_| some.feed(bytes(1000), Nanos(0)));
    assert!((150..250).contains(&some.counts().stalls), "{:?}", some.counts());
    let moments: Vec<_> = run(&mut some).into_iter().map(|(at, _)| at).collect();
    assert!(moments.is_sorted() && moments.iter().all(|at| at % (200 * MS) == 0));
    let twice = moments.iter().filter(|at| **at >= 600 * MS).count();
    assert!(twice > 0, "two in a row");
}

/// Goal: the same seed gives the same moments, another seed others. Method: one script, three links.
#[test]
fn moments_are_those_of_the_seed() {
    let kinds = [
        ToxicKind::Loss { percent: 20.0, rto: 50 },
        ToxicKind::Latency { latency: 20, jitter: 10 },
        ToxicKind::Slicer { average_size: 100, size_variation: 50, delay: 10 },
    ];
    let moments = |seed| {
        let mut link = link(seed, &kinds);
        (0..20).for_each(|at| link.feed(bytes(500), Nanos(at * MS)));
        run(&mut link)
    };
    assert_eq!(moments(1), moments(1));
    assert_ne!(moments(1), moments(2));
}

/// Goal: what is held is bounded, also of pieces that are small, and what waits for a slow stage is bounded
/// tighter. Method: as much as there is room for.
#[test]
fn memory_is_bounded() {
    let fill = |mut link: StreamLink, piece: usize| {
        while link.room() > 0 {
            let length = piece.min(link.room());
            link.feed(bytes(length), Nanos(0));
        }
        link.counts().held()
    };
    let latency = ToxicKind::Latency { latency: 1, jitter: 0 };
    let large = fill(link(1, &[latency]), 1 << 16);
    assert!(large > (1 << 22) - (1 << 14) && large <= 1 << 22, "{large}");
    let small = fill(link(1, &[latency]), 1);
    assert!(small <= (1 << 22) / PIECE_COST + 1, "{small}");
    let slow = fill(link(1, &[ToxicKind::Bandwidth { rate: 1 }]), 1 << 12);
    assert!(slow <= WAITING_MAX + (1 << 13), "{slow}");
    let unread = fill(link(1, &[]), 1 << 12);
    assert!(unread <= WAITING_MAX + (1 << 13), "{unread}");
}

/// Goal: when nothing can be written any more all is dropped and counted, and nothing is waited for.
#[test]
fn what_cannot_be_written_is_dropped() {
    let mut link = link(1, &[ToxicKind::Latency { latency: 1, jitter: 0 }]);
    link.feed(bytes(5), Nanos(0));
    link.break_off();
    link.feed(bytes(6), Nanos(0));
    assert_eq!((link.next_expiry(), link.exit()), (None, None));
    assert_eq!(link.counts(), LinkCounts { came: 11, dropped: 11, ..LinkCounts::default() });
}

/// A toxic that drops nothing.
fn harmless() -> impl Strategy<Value = ToxicKind> {
    prop_oneof![
        (0..40_u64, 0..40_u64).prop_map(|(latency, jitter)| ToxicKind::Latency { latency, jitter }),
        (0..200_u64).prop_map(|rate| ToxicKind::Bandwidth { rate }),
        (0..50_u64).prop_map(|delay| ToxicKind::SlowClose { delay }),
        (0..99_u64, 0..120_u64, 0..500_u64).prop_map(|(average_size, size_variation, delay)| {
            ToxicKind::Slicer { average_size, size_variation, delay }
        }),
        (0.0..60.0_f64, 0..50_u64).prop_map(|(percent, rto)| ToxicKind::Loss { percent, rto }),
    ]
}

#[derive(Clone, Debug)]
enum Step {
    Feed(usize),
    Wait(u64),
    /// So many bytes can be written.
    Write(usize),
    Add(ToxicKind),
    Remove(usize),
    Change(usize, ToxicKind),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (1..3000_usize).prop_map(Step::Feed),
        4 => (0..30 * MS).prop_map(Step::Wait),
        2 => (0..5000_usize).prop_map(Step::Write),
        1 => harmless().prop_map(Step::Add),
        1 => (0..8_usize).prop_map(Step::Remove),
        1 => (0..8_usize, harmless()).prop_map(|(at, kind)| Step::Change(at, kind)),
    ]
}

/// A link, what it was fed, what came out, and its toxics.
struct Subject {
    link: StreamLink,
    now: u64,
    fed: Vec<u8>,
    written: Vec<u8>,
    toxics: Vec<AppliedToxic>,
    ids: u64,
}

impl Subject {
    fn carry_out(&mut self, step: &Step) {
        let Self { link, now, fed, toxics, ids, .. } = self;
        *ids += 1;
        match step {
            Step::Feed(length) => {
                let new: Vec<u8> = (fed.len()..fed.len() + length).map(|at| (at % 251) as u8).collect();
                fed.extend(&new);
                link.feed(Bytes::from(new), Nanos(*now));
            }
            Step::Wait(span) => {
                *now += span;
                link.advance(Nanos(*now));
            }
            Step::Write(most) => return self.write(*most),
            Step::Add(kind) => toxics.push(AppliedToxic {
                id: *ids,
                revision: 0,
                kind: *kind,
                toxicity: 0.9,
                name: ids.to_string(),
            }),
            Step::Remove(at) if !toxics.is_empty() => drop(toxics.remove(at % toxics.len())),
            Step::Change(at, kind) if !toxics.is_empty() => {
                let at = at % toxics.len();
                (toxics[at].kind, toxics[at].revision) = (*kind, *ids);
            }
            Step::Remove(_) | Step::Change(..) => {}
        }
        self.link.apply(&self.toxics, Nanos(self.now));
    }

    fn write(&mut self, mut most: usize) {
        while let Some(StreamItem::Data(bytes)) = self.link.exit()
            && most > 0
        {
            let length = bytes.len().min(most);
            self.written.extend(&bytes[..length]);
            self.link.written(length);
            most -= length;
        }
    }
}

proptest! {
    /// Goal: whatever the toxics, and however they change, bytes leave in order and none is lost or made;
    /// when the toxics are gone everything leaves, the end behind it. Method: random scripts against a list.
    #[test]
    fn bytes_leave_as_they_came(seed: u64, steps in prop::collection::vec(step(), 1..60)) {
        let link = StreamLink::new(DrawKey::new(seed), 1 << 22, Nanos(0));
        let (fed, written, toxics) = (vec![], vec![], vec![]);
        let mut subject = Subject { link, now: 0, fed, written, toxics, ids: 0 };
        for step in &steps {
            subject.carry_out(step);
            prop_assert!(subject.fed.starts_with(&subject.written));
            let counts = subject.link.counts();
            let lengths = [&subject.fed, &subject.written].map(|bytes| bytes.len() as u64);
            prop_assert_eq!([counts.came, counts.went], lengths);
            prop_assert_eq!(counts.dropped, 0);
        }
        subject.link.end(StreamItem::End, Nanos(subject.now));
        subject.link.apply(&[], Nanos(subject.now));
        subject.write(usize::MAX);
        prop_assert_eq!(&subject.written, &subject.fed);
        prop_assert_eq!(subject.link.exit(), Some(&StreamItem::End));
        subject.link.done();
        prop_assert_eq!((subject.link.exit(), subject.link.pieces), (None, 0));
    }

    /// Goal: when it is looked does not matter for when what leaves. Method: the same script, looked at each
    /// moment and only once at the end.
    #[test]
    fn looking_late_changes_nothing(
        seed: u64,
        kinds in prop::collection::vec(harmless(), 0..4),
        pieces in prop::collection::vec((0..20 * MS, 1..3000_usize), 1..20),
    ) {
        let [mut often, mut seldom] = [(); 2].map(|()| link(seed, &kinds));
        let mut now = 0;
        for (span, length) in &pieces {
            // Often: every expiry up to the next piece.
            now += span;
            while let Some(next) = often.next_expiry().filter(|next| next.0 <= now) {
                often.advance(next);
            }
            for link in [&mut often, &mut seldom] {
                link.feed(bytes(*length), Nanos(now));
            }
            prop_assert_eq!(often.next_expiry(), seldom.next_expiry());
        }
        let end = Nanos(now + 3600 * 1000 * MS);
        while let Some(next) = often.next_expiry().filter(|next| *next <= end) {
            often.advance(next);
        }
        for link in [&mut often, &mut seldom] {
            link.advance(end);
        }
        prop_assert_eq!(take(&mut often), take(&mut seldom));
        prop_assert_eq!(often.next_expiry(), seldom.next_expiry());
    }
}

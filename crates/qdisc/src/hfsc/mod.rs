//! `hfsc`: guarantees of delay and rate, and fair shares of what is left, in a tree of classes.
//!
//! Two criteria choose the packet that leaves. The real-time one keeps the guarantees of the leaves: of those
//! whose next packet is eligible, the earliest deadline is first ([`realtime`]). Only when none is eligible,
//! link sharing gives what is left by the tree ([`share`]). What a leaf had by link sharing does not count
//! against its guarantee. All is computed from two-piece service curves ([`curve`], [`shifted`]).
//!
//! Invariants: a leaf that holds a packet ready is in the agenda if it has a guarantee, and in its parent's
//! orders if it has a share; `dequeue` at the moment that `Throttled` named gives a packet, unless a leaf's
//! own queue was the reason.
//!
//! Cost: a packet costs the depth of the tree, times the logarithm of the classes of a parent; classes that
//! their upper limits hold back are passed over one by one.
//!
//! Deliberately absent: filters; a packet's priority names its class. A sum of guarantees greater than the
//! link is not refused, and not kept.
//!
//! Source: Stoica, Zhang, Ng, "A Hierarchical Fair Service Curve Algorithm for Link-Sharing, Real-Time and
//! Priority Services" (SIGCOMM 1997); Linux net/sched/sch_hfsc.c, by behaviour. Deviations: moments are whole
//! nanoseconds, amounts exact (the kernel: ticks of 1024 ns, slopes in fixed point), and ties go by the order
//! of creation; convex curves have an exact minimum (see [`shifted`]); a share that ends in a rate of 0, a
//! limit without a share and a parent without one are refused; a leaf's queue may be throttled, and then is
//! not backlogged until it gives a packet.

mod curve;
mod inner;
mod manage;
mod realtime;
mod settings;
mod share;
mod shifted;
pub(crate) mod tc;
mod tree;

pub use curve::{CurveError, ServiceCurve};
pub use manage::HfscError;
pub use settings::{HfscClass, HfscStatistics};

use crate::class_map::ClassMap;
use crate::classful::{end_inner_delays, inner_delays};
use crate::sorted::SortedSet;
use crate::{ClassId, DelayTimer, Dequeued, Enqueued, Packet, Qdisc, Statistics};
use alloc::vec::Vec;
use core::fmt::Debug;
use quietcore_core::Nanos;
use realtime::{Agenda, RealTime};
use settings::{HfscKey, ROOT};
use share::ChildOrders;
use tree::HfscTree;

/// The hierarchical fair service curve discipline.
///
/// ```
/// use quietcore_core::Nanos;
/// use quietcore_qdisc::{ClassId, Dequeued, Hfsc, HfscClass, Qdisc, ServiceCurve};
///
/// // Of 125000 bytes per second, voice has 160 within 5 ms, whatever the bulk is.
/// let (voice, bulk) = (ClassId::new(1, 0x10), ClassId::new(1, 0x20));
/// let mut queue = Hfsc::new();
/// let curve = ServiceCurve::from_delay(160, Nanos(5_000_000), 8_000)?;
/// queue.add_class(None, voice, HfscClass::guaranteed_share(curve))?;
/// let rest = Some(ServiceCurve::linear(117_000));
/// queue.add_class(None, bulk, HfscClass { link_share: rest, ..HfscClass::default() })?;
///
/// for _ in 0..3 {
///     assert!(queue.enqueue_to(Nanos(0), bulk, vec![1; 1_500]).is_accepted());
/// }
/// assert!(queue.enqueue_to(Nanos(0), voice, vec![2; 160]).is_accepted());
/// let first = queue.dequeue(Nanos(0)).packet().expect("nothing is held back");
/// assert_eq!(first[0], 2, "voice is first, though it came last");
/// assert_eq!(queue.class_statistics(voice).map(|voice| voice.realtime_bytes), Some(160));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Hfsc<P> {
    tree: HfscTree<P>,
    names: ClassMap<HfscKey>,
    default: Option<ClassId>,
    agenda: Agenda,
    /// Leaves whose queues hold packets but give none, by when they are asked again.
    dormant: SortedSet<(Nanos, HfscKey)>,
    /// What was sent, and what was dropped besides what the classes count.
    statistics: Statistics,
}

/// By which criterion a packet left.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Criterion {
    RealTime,
    LinkShare,
}

impl<P: Packet + Debug + Send + 'static> Default for Hfsc<P> {
    fn default() -> Self {
        Self::new()
    }
}

impl<P: Packet + Debug + Send + 'static> Hfsc<P> {
    /// One without classes, and without a default class.
    #[must_use]
    pub fn new() -> Self {
        Self {
            tree: HfscTree::new(),
            names: ClassMap::new(),
            default: None,
            agenda: Agenda::default(),
            dormant: SortedSet::new(),
            statistics: Statistics::default(),
        }
    }

    /// The class of packets whose priority names no leaf; it need not be there yet. Without one they are
    /// dropped.
    pub fn set_default_class(&mut self, class: Option<ClassId>) {
        self.default = class;
    }

    /// Takes a packet for a class; dropped if that is no leaf.
    pub fn enqueue_to(&mut self, now: Nanos, class: ClassId, packet: P) -> Enqueued {
        match self.leaf_of(class) {
            Some(key) => self.enqueue_leaf(now, key, packet),
            None => self.refuse(),
        }
    }

    fn leaf_of(&self, class: ClassId) -> Option<HfscKey> {
        self.key(class).ok().filter(|key| self.tree.class(*key).leaf.is_some())
    }

    fn refuse(&mut self) -> Enqueued {
        self.statistics.dropped += 1;
        Enqueued::Dropped
    }

    fn enqueue_leaf(&mut self, now: Nanos, key: HfscKey, packet: P) -> Enqueued {
        let leaf = self.tree.leaf_mut(key);
        let verdict = leaf.child.enqueue(now, packet);
        if leaf.head.is_none() {
            self.refresh(key, now);
        }
        verdict
    }

    /// Looks at what a leaf has next, and puts it where it belongs.
    fn refresh(&mut self, key: HfscKey, now: Nanos) {
        self.look(key, now);
        self.tree.settle(key, None, now);
    }

    /// Looks at what a leaf has next, and puts it into the agenda.
    fn look(&mut self, key: HfscKey, now: Nanos) {
        let class = self.tree.class_mut(key);
        let bytes = class.realtime_bytes;
        let Some(leaf) = &mut class.leaf else { return };
        let was_idle = leaf.head.is_none();
        if let Some(wake) = leaf.wake.take() {
            self.dormant.remove(&(wake, key));
        }
        leaf.head = match leaf.child.peek(now) {
            Dequeued::Packet(length) => Some(length),
            Dequeued::Empty => None,
            Dequeued::Throttled(until) => {
                let wake = until.max(Nanos(now.0.saturating_add(1)));
                leaf.wake = Some(wake);
                self.dormant.insert((wake, key));
                None
            }
        };
        let Some(realtime) = &mut leaf.realtime else { return };
        if !was_idle {
            if leaf.head.is_some_and(|length| realtime.is_told(bytes, length)) {
                return; // one of the same length left by the share: it is where it belongs
            }
            self.agenda.remove(key, realtime);
        }
        if let Some(length) = leaf.head {
            if was_idle {
                realtime.begin(now, bytes);
            }
            realtime.next(bytes, length);
            self.agenda.insert(key, realtime, now);
        }
    }

    /// Asks leaves again whose queues may give a packet by now.
    fn wake(&mut self, now: Nanos) {
        // Once each, even at the end of time, when none can name a later moment.
        let due = self.dormant.iter().take_while(|(wake, _)| *wake <= now).map(|(_, key)| *key);
        for key in due.collect::<Vec<_>>() {
            self.refresh(key, now);
        }
    }

    fn send(&mut self, now: Nanos, key: HfscKey, criterion: Criterion) -> P {
        let packet = self.tree.leaf_mut(key).child.dequeue(now).packet().expect("it was looked at");
        let bytes = packet.len();
        let class = self.tree.class_mut(key);
        if criterion == Criterion::RealTime {
            class.realtime_bytes += u64::from(bytes);
        }
        self.look(key, now);
        self.tree.settle(key, Some(bytes), now);
        self.statistics.count_sent(packet.size());
        packet
    }

    /// When there is more, nothing being there now; `None` if nothing is queued.
    fn next_moment(&self) -> Option<Nanos> {
        let eligible = self.agenda.next_eligible();
        let fit = self.tree.class(ROOT).children.first_fit();
        let wake = self.dormant.first().map(|(wake, _)| *wake);
        [eligible, fit, wake].into_iter().flatten().min()
    }
}

impl<P: Packet + Debug + Send + 'static> Qdisc<P> for Hfsc<P> {
    fn kind(&self) -> &'static str {
        "hfsc"
    }

    /// Takes a packet for the leaf that its priority names, else for the default class.
    fn enqueue(&mut self, now: Nanos, packet: P) -> Enqueued {
        let named = self.leaf_of(ClassId(packet.priority()));
        match named.or_else(|| self.leaf_of(self.default?)) {
            Some(key) => self.enqueue_leaf(now, key, packet),
            None => self.refuse(),
        }
    }

    /// What may leave at `now`. What is held back for ever, by curves that end in a rate of 0, is throttled
    /// until the end of time.
    fn dequeue(&mut self, now: Nanos) -> Dequeued<P> {
        self.wake(now);
        if let Some(key) = self.agenda.choose(now) {
            return Dequeued::Packet(self.send(now, key, Criterion::RealTime));
        }
        if let Some(key) = self.tree.choose(now) {
            return Dequeued::Packet(self.send(now, key, Criterion::LinkShare));
        }
        let Some(moment) = self.next_moment() else { return Dequeued::Empty };
        self.statistics.overlimits += 1;
        Dequeued::Throttled(moment)
    }

    fn reset(&mut self, now: Nanos) {
        self.agenda.clear();
        self.dormant.clear();
        for class in self.tree.classes_mut() {
            class.children = ChildOrders::default();
            class.share = class.share.forgotten(&class.config);
            if let Some(leaf) = &mut class.leaf {
                leaf.child.reset(now);
                (leaf.head, leaf.wake) = (None, None);
                leaf.realtime = class.config.realtime.map(RealTime::new);
            }
        }
    }

    fn statistics(&self) -> Statistics {
        let mut statistics = self.statistics;
        self.tree.classes().for_each(|class| statistics.include(&class.queue()));
        statistics
    }

    fn delays(&self) -> DelayTimer {
        inner_delays(self)
    }

    fn end_delays(&mut self, now: Nanos) {
        end_inner_delays(self, now);
    }
}

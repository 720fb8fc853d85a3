//! `htb`: a tree of classes, each with a rate of its own, a ceil, and what the others leave.
//!
//! Every class has two token buckets. While that of its `ceil` is in debt it waits; else, while that of its
//! `rate` is, it may borrow from the class above; else it may send, and lend to classes below it.
//! Packets of no class go first and unshaped. Then leaves that send on their own tokens go before those that
//! borrow, near lenders before far ones, lower priorities before higher ones; within that, rounds by class
//! id, a quantum each (deficit round robin). A borrower pays with tokens of the lender, and of all above it,
//! and against the ceil of every class on the way.
//!
//! Over any window of `w` a leaf sends at most `cburst + ceil * w` bytes and a packet. Classes with leaves
//! below hold that for what is borrowed from them: leaves send on their own tokens whatever is above, so the
//! bound of a parent holds if its leaves' rates and bursts fit into its own, as an administrator should
//! provide.
//!
//! `settings.rs` is what is told and asked, `node.rs` one class, `round_robin.rs` a round, `tree.rs` which
//! class may send, `serve.rs` what all disciplines do, `inner.rs` what is inside, `tc.rs` what `tc` types and
//! shows. A moment that `Throttled` names may be one
//! at which a class's mode changes but nothing leaves yet; the next one named is later then.
//!
//! Deliberately absent: filters, hysteresis of modes, offload to devices. Source: Linux
//! net/sched/sch_htb.c, by behaviour. Deviations: all mode changes that are due are made first, not in
//! batches and not level by level (which shows in `overlimits` only), so nothing is ever due when
//! `Throttled` is said; the moment of a change is kept exact when a class is charged again, so the watchdog
//! is never early; whose turn it is is found when it is needed; a leaf whose own queue is throttled steps
//! aside until then; a leaf that holds packets does not become a parent, where the kernel drops them; a new
//! priority counts at once; giants are counted as before rate tables went; [`reset`](Qdisc::reset) fills all
//! buckets.

mod inner;
mod node;
mod round_robin;
mod serve;
mod settings;
pub(crate) mod tc;
mod tree;

pub use settings::{HtbClass, HtbClassStatistics, HtbError, HtbQuantumWarning, HtbSettings};

use crate::{ClassId, Enqueued, Fifo, FifoLimit, InnerQdisc, Packet, Qdisc, Statistics};
use core::fmt::Debug;
use node::HtbNode;
use quietcore_core::Nanos;
use tree::HtbTree;

/// The level of a class that has classes below it and none above.
const TOP_LEVEL: u8 = node::LEVELS as u8 - 1;

/// A tree of classes that share a link.
///
/// A packet goes to the leaf that its [priority](Packet::priority) names as a [`ClassId`], else to the
/// default class, else past all classes. The time of a call grows with the logarithm of the number of
/// classes; of [`statistics`](Qdisc::statistics), with the number.
///
/// ```
/// use quietcore_core::Nanos;
/// use quietcore_qdisc::{ClassId, Dequeued, Htb, HtbClass, HtbSettings, Qdisc, Rate};
///
/// let mut htb = Htb::new(HtbSettings { default_class: 0x20, ..HtbSettings::default() });
/// let [root, fast, slow] = [0x1, 0x10, 0x20].map(|minor| ClassId::new(1, minor));
/// let all = Rate::bytes_per_second(1_000_000).expect("not 0");
/// let rate = |bytes| HtbClass { ceil: all, ..HtbClass::new(Rate::bytes_per_second(bytes).expect("not 0")) };
/// htb.add_class(None, root, HtbClass::new(all))?;
/// htb.add_class(Some(root), fast, rate(900_000))?;
/// htb.add_class(Some(root), slow, rate(100_000))?;
///
/// for _ in 0..4 {
///     assert!(htb.enqueue(Nanos(0), vec![0; 1_000]).is_accepted(), "to the default class");
/// }
/// // 1,600 bytes are its burst: the second packet leaves while some of it is left.
/// for _ in 0..2 {
///     assert!(htb.dequeue(Nanos(0)).packet().is_some());
/// }
/// // It is above its rate for 4 ms; but no other class sends, so it only waits for the link: 400 us.
/// assert_eq!(htb.dequeue(Nanos(0)), Dequeued::Throttled(Nanos(400_000)));
/// assert!(htb.dequeue(Nanos(400_000)).packet().is_some());
/// # Ok::<(), quietcore_qdisc::HtbError>(())
/// ```
#[derive(Debug)]
pub struct Htb<P> {
    settings: HtbSettings,
    tree: HtbTree<P>,
    /// Packets of no class.
    direct: Fifo<P>,
    direct_packets: u64,
    /// What left, and what was dropped with classes that are gone; what is queued is asked of the queues.
    counted: Statistics,
}

impl<P: Packet + Debug + Send + 'static> Htb<P> {
    /// One without classes: all packets go straight through.
    #[must_use]
    pub fn new(settings: HtbSettings) -> Self {
        let direct = Fifo::new(FifoLimit::Packets(settings.direct_qlen));
        Self { settings, tree: HtbTree::new(), direct, direct_packets: 0, counted: Statistics::default() }
    }

    /// Adds a class below `parent`, or below none: a leaf with full buckets and a `pfifo` of 1,000 packets.
    ///
    /// # Errors
    /// [`HtbError`] if there is no such parent, it holds packets or is on the 8th level already, or `id` is
    /// taken or not of this discipline.
    pub fn add_class(
        &mut self,
        parent: Option<ClassId>,
        id: ClassId,
        class: HtbClass,
    ) -> Result<(), HtbError> {
        if id.0 >> 16 != u32::from(self.settings.major) || id.0.trailing_zeros() >= 16 {
            return Err(HtbError::Foreign(id));
        }
        if self.tree.classes.contains_key(id) {
            return Err(HtbError::Exists(id));
        }
        if let Some(parent) = parent {
            self.make_parent(parent, id)?;
        }
        let mut node = HtbNode::new(class, parent, InnerQdisc::first());
        node.quantum = class.quantum_bytes(self.settings.r2q).0;
        self.tree.classes.insert(id, node);
        Ok(())
    }

    /// Lets `id` become one that has another class, `child`, below it.
    fn make_parent(&mut self, id: ClassId, child: ClassId) -> Result<(), HtbError> {
        let node = self.tree.classes.get(id).ok_or(HtbError::UnknownParent(id))?;
        if !node.is_empty() {
            return Err(HtbError::HoldsPackets(id));
        }
        if node.level == 0 {
            let above = node.parent.map_or(TOP_LEVEL + 1, |parent| self.tree.node(parent).level);
            if above == 1 {
                return Err(HtbError::TooDeep(child));
            }
            self.tree.leaf_to_parent(id, above - 1);
        }
        self.tree.node_mut(id).children += 1;
        Ok(())
    }

    /// Changes what a class is told. Tokens and debts, which are kept as time, stay.
    ///
    /// # Errors
    /// [`HtbError::Unknown`].
    pub fn change_class(&mut self, id: ClassId, class: HtbClass) -> Result<(), HtbError> {
        self.known(id)?;
        let (quantum, _) = class.quantum_bytes(self.settings.r2q);
        self.tree.change(id, |node| node.set(class, quantum));
        Ok(())
    }

    /// Removes a leaf; what is queued in it is dropped. Its parent, if that was its last, is a leaf again
    /// with full buckets and a new `pfifo`.
    ///
    /// # Errors
    /// [`HtbError::Unknown`] and [`HtbError::HasChildren`].
    pub fn remove_class(&mut self, id: ClassId) -> Result<(), HtbError> {
        if self.known(id)?.level > 0 {
            return Err(HtbError::HasChildren(id));
        }
        let Some(mut gone) = self.tree.remove_leaf(id) else { return Ok(()) };
        gone.replace_queue(None);
        self.counted.dropped += gone.statistics().queue.dropped;
        if let Some(parent) = gone.parent {
            let node = self.tree.node_mut(parent);
            node.children -= 1;
            if node.children == 0 {
                self.tree.parent_to_leaf(parent, InnerQdisc::first());
            }
        }
        Ok(())
    }

    /// Gives a leaf another queue; what is queued in the old one is dropped.
    ///
    /// # Errors
    /// [`HtbError::Unknown`] and [`HtbError::HasChildren`].
    pub fn set_inner(&mut self, id: ClassId, queue: InnerQdisc<P>) -> Result<(), HtbError> {
        if self.known(id)?.level > 0 {
            return Err(HtbError::HasChildren(id));
        }
        self.tree.deactivate(id);
        let node = self.tree.node_mut(id);
        node.replace_queue(Some(queue));
        if !node.is_empty() {
            self.tree.activate(id);
        }
        Ok(())
    }

    /// Takes a packet for a class, as if a filter had named it: where that is no leaf, it goes where packets
    /// go that name no class.
    pub fn enqueue_to(&mut self, now: Nanos, class: ClassId, packet: P) -> Enqueued {
        let handle = ClassId::new(self.settings.major, 0);
        let default = ClassId::new(self.settings.major, self.settings.default_class);
        let is_leaf = |id: &ClassId| self.tree.classes.get(*id).is_some_and(|node| node.level == 0);
        // The name of the discipline itself means no class.
        let leaf = if class == handle { None } else { [class, default].into_iter().find(is_leaf) };
        let Some(leaf) = leaf else { return self.enqueue_direct(now, packet) };
        let node = self.tree.node_mut(leaf);
        let verdict = node.queue.as_mut().map_or(Enqueued::Dropped, |queue| queue.enqueue(now, packet));
        if verdict != Enqueued::Queued && node.is_empty() {
            // What made room may have dropped all.
            self.tree.deactivate(leaf);
        } else if node.activity == 0 && !node.is_empty() {
            self.tree.activate(leaf);
        }
        verdict
    }

    fn enqueue_direct(&mut self, now: Nanos, packet: P) -> Enqueued {
        let verdict = self.direct.enqueue(now, packet);
        self.direct_packets += u64::from(verdict == Enqueued::Queued);
        verdict
    }

    /// How many packets had no class.
    #[must_use]
    pub const fn direct_packets(&self) -> u64 {
        self.direct_packets
    }

    /// What it was told.
    #[must_use]
    pub const fn settings(&self) -> &HtbSettings {
        &self.settings
    }

    /// Its classes by id: what each was told, and the class above it.
    pub fn classes(&self) -> impl Iterator<Item = (ClassId, Option<ClassId>, &HtbClass)> {
        self.tree.classes.iter().map(|(id, node)| (id, node.parent, &node.settings))
    }

    /// What a class has done; `None` of one that does not exist.
    #[must_use]
    pub fn class(&self, id: ClassId) -> Option<HtbClassStatistics> {
        let node = self.tree.classes.get(id)?;
        let (_, quantum_warning) = node.settings.quantum_bytes(self.settings.r2q);
        Some(HtbClassStatistics { quantum_warning, ..node.statistics() })
    }

    fn known(&self, id: ClassId) -> Result<&HtbNode<P>, HtbError> {
        self.tree.classes.get(id).ok_or(HtbError::Unknown(id))
    }
}

//! Migration hierarchy: which CPU expires an idle CPU's global timers.
//!
//! Groups of eight form a tree. A group with an active child has exactly one *migrator*, which looks after
//! the events of the idle ones; the last CPU to go idle carries the tree's first expiry home and must wake
//! for it.
//!
//! A CPU is in one of four states in the books ([`Book`]): awake, parked, absent (stalled: it publishes, but
//! nothing is expected of it), unavailable (isolated or offline: it neither pulls nor is pulled).
//!
//! Invariants ([`Hierarchy::check`]; T1 to T8 and the proofs are in this folder's README.md). Not here:
//! timers, clocks, threads, sleeping. Expiries arrive as arguments; who must wake up when is returned.
//! Source: Linux 6.12 to 7.2, kernel/time/timer_migration.c. Deviations: `seq` has 48 bits; absent CPUs; one
//! walk for all purposes (`walk.rs`); parent and mask are one word; nothing is held while timers run
//! (`remote.rs`).

mod available;
mod check;
mod event;
mod remote;
mod shape;
mod state;
mod view;
mod walk;

pub use remote::Pulled;
pub use shape::{GroupId, GroupShape, Join, Levels, Tree};
pub use state::{ChildMask, Snapshot};
pub use view::View;

use crate::lock::Locked;
use crate::sync::{AtomicU32, AtomicU64, Ordering, site};
use crate::time::{NEVER, from_word, to_word};
use crate::{CpuId, Nanos, RawLock};
use alloc::boxed::Box;
use alloc::vec;
use event::{Child, Event, Group, Link, pack_link, unpack_link};
use walk::Walker;

/// What the books say of a CPU.
///
/// ```
/// use quietcore_core::SequentialLock;
/// use quietcore_core::tmigr::{Book, Hierarchy};
/// use quietcore_core::CpuId;
///
/// let hierarchy: Hierarchy<SequentialLock> = Hierarchy::new(&[0, 0]);
/// assert_eq!(hierarchy.book(CpuId::default()), Book::Unavailable);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Book {
    /// Publishes nothing; may be migrator.
    Awake,
    /// Idle: publishes its first global expiry; may have to wake up for the whole tree; can be kicked.
    Parked,
    /// Stalled: publishes always, even what is overdue; never migrator, never waited for, never kicked.
    Absent,
    /// Isolated or offline: publishes nothing, pulls nothing.
    Unavailable,
}

/// Whether a CPU turns, apart from whether it is available.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Presence {
    Awake,
    Parked,
    Absent,
}

#[derive(Debug)]
struct Books {
    presence: Presence,
    is_available: bool,
    /// What this CPU's event says, while it is parked or absent.
    published: Option<Nanos>,
}

impl Books {
    fn book(&self) -> Book {
        match self.presence {
            _ if !self.is_available => Book::Unavailable,
            Presence::Awake => Book::Awake,
            Presence::Parked => Book::Parked,
            Presence::Absent => Book::Absent,
        }
    }
}

#[derive(Debug)]
struct MigrationCpu<L: RawLock> {
    /// Group and mask in one word, as in a group; 0 until the CPU joins.
    leaf: AtomicU32,
    /// When this CPU must wake up for the whole tree. Written under the books' lock, polled without.
    wakeup: AtomicU64,
    books: Locked<L, Books>,
}

impl<L: RawLock> MigrationCpu<L> {
    fn leaf(&self) -> Option<Link> {
        // Acquire: pairs with Release in `connect`, so that the group is found initialised.
        unpack_link(self.leaf.load(Ordering::Acquire))
    }

    fn wakeup(&self) -> Option<Nanos> {
        // Relaxed: a late look costs one tick.
        from_word(self.wakeup.load(Ordering::Relaxed))
    }

    /// For the holder of the books.
    fn set_wakeup(&self, wakeup: Option<Nanos>) {
        // Relaxed: see `wakeup`.
        self.wakeup.store(to_word(wakeup), Ordering::Relaxed);
    }
}

/// The tree, and every CPU's place in it.
///
/// All calls are allowed from all threads when the world's lock allows it, unless they say "by the CPU
/// itself". Cost: a walk is at most one compare-and-swap and two locks per level; there are 4 levels for 4096
/// CPUs.
///
/// ```
/// use quietcore_core::tmigr::Hierarchy;
/// use quietcore_core::{CpuId, Nanos, SequentialLock};
///
/// let hierarchy: Hierarchy<SequentialLock> = Hierarchy::new(&[0; 2]);
/// let (first, second) = (CpuId::new(0)?, CpuId::new(1)?);
/// for cpu in [first, second] {
///     assert!(hierarchy.connect(cpu));
///     hierarchy.set_available(cpu, None);
/// }
/// // One goes idle: the other, still awake, will look after its timer ...
/// assert_eq!(hierarchy.deactivate(first, Some(Nanos(500))), None);
/// // ... and must wake up for it once it is idle itself.
/// assert_eq!(hierarchy.deactivate(second, None), Some(Nanos(500)));
/// # Ok::<(), quietcore_core::CpuError>(())
/// ```
#[derive(Debug)]
pub struct Hierarchy<L: RawLock> {
    groups: Box<[Group<L>]>,
    cpus: Box<[MigrationCpu<L>]>,
    /// The node of each CPU.
    nodes: Box<[u16]>,
    tree: Locked<L, Tree>,
}

impl<L: RawLock> Hierarchy<L> {
    /// A tree for as many CPUs as `nodes` is long, with the node of each; nobody has joined.
    ///
    /// All memory there will ever be is allocated here, so joining cannot fail half way.
    ///
    /// ```
    /// # use quietcore_core::{SequentialLock, tmigr::Hierarchy};
    /// let hierarchy: Hierarchy<SequentialLock> = Hierarchy::new(&[0, 0, 1, 1]);
    /// assert!(hierarchy.tree().groups().is_empty());
    /// ```
    #[must_use]
    pub fn new(nodes: &[u16]) -> Self {
        let node_count = nodes.iter().max().map_or(1, |last| usize::from(*last) + 1);
        let mut per_node = vec![0_u16; node_count];
        nodes.iter().for_each(|&node| per_node[usize::from(node)] += 1);
        per_node.retain(|&cpus| cpus > 0);
        let levels = Levels::new(nodes.len() as u16, per_node.len() as u16);
        let groups = (0..Tree::capacity(&per_node, levels)).map(|_| Group::new()).collect();
        let cpu = |_: &u16| MigrationCpu {
            leaf: AtomicU32::new(0),
            wakeup: AtomicU64::new(NEVER),
            books: Locked::new(Books { presence: Presence::Awake, is_available: false, published: None }),
        };
        let cpus = nodes.iter().map(cpu).collect();
        Self { groups, cpus, nodes: nodes.into(), tree: Locked::new(Tree::new(levels)) }
    }

    fn cpu(&self, cpu: CpuId) -> &MigrationCpu<L> {
        &self.cpus[cpu.index()]
    }

    /// The shape as it is now. Takes the lock of growth; a copy.
    ///
    /// ```
    /// # use quietcore_core::{CpuId, SequentialLock, tmigr::Hierarchy};
    /// # let hierarchy: Hierarchy<SequentialLock> = Hierarchy::new(&[0]);
    /// hierarchy.connect(CpuId::default());
    /// assert_eq!(hierarchy.tree().groups().len(), 1);
    /// ```
    #[must_use]
    pub fn tree(&self) -> Tree {
        self.tree.lock_remote().clone()
    }

    /// The word of a group; `None` when there is no such group yet.
    ///
    /// ```
    /// # use quietcore_core::{SequentialLock, tmigr::{GroupId, Hierarchy}};
    /// # let hierarchy: Hierarchy<SequentialLock> = Hierarchy::new(&[0]);
    /// assert_eq!(hierarchy.group_state(GroupId::default()).map(|word| word.active()), Some(0));
    /// ```
    #[must_use]
    pub fn group_state(&self, group: GroupId) -> Option<Snapshot> {
        self.groups.get(group.index()).map(|group| group.word.load())
    }

    /// The first expiry that a group's migrator has to look after, as a poll sees it.
    ///
    /// ```
    /// # use quietcore_core::{SequentialLock, tmigr::{GroupId, Hierarchy}};
    /// # let hierarchy: Hierarchy<SequentialLock> = Hierarchy::new(&[0]);
    /// assert_eq!(hierarchy.group_next_expiry(GroupId::default()), None);
    /// ```
    #[must_use]
    pub fn group_next_expiry(&self, group: GroupId) -> Option<Nanos> {
        self.groups.get(group.index()).and_then(Group::next_expiry)
    }

    /// What the books say of `cpu`.
    ///
    /// ```
    /// # use quietcore_core::{CpuId, SequentialLock, tmigr::{Book, Hierarchy}};
    /// # let hierarchy: Hierarchy<SequentialLock> = Hierarchy::new(&[0]);
    /// # let cpu = CpuId::default();
    /// hierarchy.connect(cpu);
    /// hierarchy.set_available(cpu, None);
    /// assert_eq!(hierarchy.book(cpu), Book::Awake);
    /// ```
    #[must_use]
    pub fn book(&self, cpu: CpuId) -> Book {
        self.cpu(cpu).books.lock_remote().book()
    }

    /// The same if the books can be had within the lock's bound.
    pub(crate) fn try_book(&self, cpu: CpuId) -> Option<Book> {
        self.cpu(cpu).books.try_lock_remote().map(|books| books.book())
    }

    /// When `cpu` must wake up for the whole tree.
    ///
    /// ```
    /// # use quietcore_core::{CpuId, SequentialLock, tmigr::Hierarchy};
    /// # let hierarchy: Hierarchy<SequentialLock> = Hierarchy::new(&[0]);
    /// assert_eq!(hierarchy.wakeup(CpuId::default()), None);
    /// ```
    #[must_use]
    pub fn wakeup(&self, cpu: CpuId) -> Option<Nanos> {
        self.cpu(cpu).wakeup()
    }

    /// `cpu` leaves idle. By the CPU itself. Does nothing if it was awake.
    ///
    /// ```
    /// # use quietcore_core::{CpuId, Nanos, SequentialLock, tmigr::{Book, Hierarchy}};
    /// # let hierarchy: Hierarchy<SequentialLock> = Hierarchy::new(&[0]);
    /// # let cpu = CpuId::default();
    /// # hierarchy.connect(cpu);
    /// # hierarchy.set_available(cpu, None);
    /// hierarchy.deactivate(cpu, Some(Nanos(9)));
    /// hierarchy.activate(cpu);
    /// assert_eq!((hierarchy.book(cpu), hierarchy.wakeup(cpu)), (Book::Awake, None));
    /// ```
    pub fn activate(&self, cpu: CpuId) {
        site!(BeforeCpuLock);
        let this = self.cpu(cpu);
        let mut books = this.books.lock_owner();
        self.activate_locked(this, &mut books);
    }

    /// The same if the books can be had within the lock's bound; says whether it happened. For a CPU that
    /// comes back from being absent, which must not wait.
    ///
    /// ```
    /// # use quietcore_core::{CpuId, SequentialLock, tmigr::Hierarchy};
    /// # let hierarchy: Hierarchy<SequentialLock> = Hierarchy::new(&[0]);
    /// assert!(hierarchy.try_activate(CpuId::default()));
    /// ```
    #[must_use = "a CPU whose books were not to be had is still absent"]
    pub fn try_activate(&self, cpu: CpuId) -> bool {
        site!(BeforeCpuLock);
        let this = self.cpu(cpu);
        let Some(mut books) = this.books.try_lock_remote() else { return false };
        self.activate_locked(this, &mut books);
        true
    }

    fn activate_locked(&self, this: &MigrationCpu<L>, books: &mut Books) {
        let was = core::mem::replace(&mut books.presence, Presence::Awake);
        if was == Presence::Awake || !books.is_available {
            return;
        }
        books.published = None;
        this.set_wakeup(None);
        let _ = self.walk_up(Child::Cpu { is_active: true, event: None }, this.leaf(), Walker::Awake);
    }

    /// `cpu` goes idle with `next` as its first global expiry, or none to publish. By the CPU itself.
    ///
    /// Returns when it must wake up for others: `None` unless it was the last one awake. A CPU that is not
    /// available gets `next` back: it looks after its own.
    ///
    /// ```
    /// # use quietcore_core::{CpuId, Nanos, SequentialLock, tmigr::Hierarchy};
    /// # let hierarchy: Hierarchy<SequentialLock> = Hierarchy::new(&[0]);
    /// # let cpu = CpuId::default();
    /// # hierarchy.connect(cpu);
    /// # hierarchy.set_available(cpu, None);
    /// assert_eq!(hierarchy.deactivate(cpu, Some(Nanos(9))), Some(Nanos(9)));
    /// ```
    pub fn deactivate(&self, cpu: CpuId, next: Option<Nanos>) -> Option<Nanos> {
        site!(BeforeCpuLock);
        let this = self.cpu(cpu);
        let mut books = this.books.lock_owner();
        let was = core::mem::replace(&mut books.presence, Presence::Parked);
        if !books.is_available {
            return next;
        }
        let first = self.leave(cpu, &mut books, was, next);
        this.set_wakeup(first);
        first
    }

    /// [`deactivate`](Self::deactivate) of a CPU that wakes up for nobody: the caller must see to it that
    /// somebody does for what is returned.
    #[must_use = "nobody wakes up for what is returned"]
    pub(crate) fn stand_down(&self, cpu: CpuId, next: Option<Nanos>) -> Option<Nanos> {
        site!(BeforeCpuLock);
        let this = self.cpu(cpu);
        let mut books = this.books.lock_owner();
        let was = core::mem::replace(&mut books.presence, Presence::Parked);
        if !books.is_available {
            return next;
        }
        this.set_wakeup(None);
        self.leave(cpu, &mut books, was, next)
    }

    /// `cpu` stalls: it publishes `next`, even if that is overdue, and nothing is expected of it. By the CPU
    /// itself before it blocks, or by whoever watches it. Returns the first expiry of a tree in which nobody
    /// is awake: the caller must see to it, since an absent CPU cannot.
    ///
    /// ```
    /// # use quietcore_core::{CpuId, Nanos, SequentialLock, tmigr::{Book, Hierarchy}};
    /// # let hierarchy: Hierarchy<SequentialLock> = Hierarchy::new(&[0]);
    /// # let cpu = CpuId::default();
    /// # hierarchy.connect(cpu);
    /// # hierarchy.set_available(cpu, None);
    /// assert_eq!(hierarchy.go_absent(cpu, Some(Nanos(9))), Some(Nanos(9)));
    /// assert_eq!((hierarchy.book(cpu), hierarchy.wakeup(cpu)), (Book::Absent, None));
    /// ```
    #[must_use = "nobody else wakes up for what is returned"]
    pub fn go_absent(&self, cpu: CpuId, next: Option<Nanos>) -> Option<Nanos> {
        site!(BeforeCpuLock);
        let this = self.cpu(cpu);
        let mut books = this.books.lock_remote();
        self.go_absent_locked(cpu, &mut books, next)
    }

    /// The same if the books can be had within the lock's bound. `Err` when they cannot.
    pub(crate) fn try_go_absent(&self, cpu: CpuId, next: Option<Nanos>) -> Result<Option<Nanos>, Busy> {
        site!(BeforeCpuLock);
        let Some(mut books) = self.cpu(cpu).books.try_lock_remote() else { return Err(Busy) };
        Ok(self.go_absent_locked(cpu, &mut books, next))
    }

    /// The same of a CPU that is awake. `Err` also when it is not.
    pub(crate) fn try_go_absent_from_awake(
        &self,
        cpu: CpuId,
        next: Option<Nanos>,
    ) -> Result<Option<Nanos>, Busy> {
        site!(BeforeCpuLock);
        let books = self.cpu(cpu).books.try_lock_remote();
        let Some(mut books) = books.filter(|books| books.presence == Presence::Awake) else {
            return Err(Busy);
        };
        Ok(self.go_absent_locked(cpu, &mut books, next))
    }

    fn go_absent_locked(&self, cpu: CpuId, books: &mut Books, next: Option<Nanos>) -> Option<Nanos> {
        let was = core::mem::replace(&mut books.presence, Presence::Absent);
        if !books.is_available {
            return None;
        }
        self.cpu(cpu).set_wakeup(None);
        self.leave(cpu, books, was, next)
    }

    /// Takes a CPU that was `was` out of the active ones, with `next` as its event.
    fn leave(&self, cpu: CpuId, books: &mut Books, was: Presence, next: Option<Nanos>) -> Option<Nanos> {
        books.published = next;
        let event = next.map(|expires| Event { expires, cpu });
        let leaf = self.cpu(cpu).leaf();
        if was == Presence::Awake {
            self.walk_up(Child::Cpu { is_active: false, event }, leaf, Walker::Other)
        } else {
            self.publish_up(event, leaf)
        }
    }

    /// The first global expiry of an idle or absent CPU is `next` now. By anybody.
    ///
    /// Returns the first expiry of a tree in which nobody is awake, if that is news: somebody must wake up
    /// for it. If `cpu` is parked, its [`wakeup`](Self::wakeup) says so too.
    ///
    /// ```
    /// # use quietcore_core::{CpuId, Nanos, SequentialLock, tmigr::Hierarchy};
    /// # let hierarchy: Hierarchy<SequentialLock> = Hierarchy::new(&[0]);
    /// # let cpu = CpuId::default();
    /// # hierarchy.connect(cpu);
    /// # hierarchy.set_available(cpu, None);
    /// # hierarchy.deactivate(cpu, Some(Nanos(9)));
    /// assert_eq!(hierarchy.publish(cpu, Some(Nanos(5))), Some(Nanos(5)));
    /// assert_eq!(hierarchy.wakeup(cpu), Some(Nanos(5)));
    /// ```
    #[must_use = "nobody else wakes up for what is returned"]
    pub fn publish(&self, cpu: CpuId, next: Option<Nanos>) -> Option<Nanos> {
        site!(BeforeCpuLock);
        let mut books = self.cpu(cpu).books.lock_remote();
        self.publish_locked(cpu, &mut books, next)
    }

    /// The same if the books can be had within the lock's bound. `Err` when they cannot.
    pub(crate) fn try_publish(&self, cpu: CpuId, next: Option<Nanos>) -> Result<Option<Nanos>, Busy> {
        site!(BeforeCpuLock);
        let Some(mut books) = self.cpu(cpu).books.try_lock_remote() else { return Err(Busy) };
        Ok(self.publish_locked(cpu, &mut books, next))
    }

    fn publish_locked(&self, cpu: CpuId, books: &mut Books, next: Option<Nanos>) -> Option<Nanos> {
        let this = self.cpu(cpu);
        if !books.is_available || books.presence == Presence::Awake || books.published == next {
            return None;
        }
        books.published = next;
        let first = self.publish_up(next.map(|expires| Event { expires, cpu }), this.leaf());
        if books.presence == Presence::Parked {
            this.set_wakeup(first);
        }
        first
    }

    /// The first expiry that a parked or absent CPU has published; `None` for any other.
    ///
    /// ```
    /// # use quietcore_core::{CpuId, SequentialLock, tmigr::Hierarchy};
    /// # let hierarchy: Hierarchy<SequentialLock> = Hierarchy::new(&[0]);
    /// assert_eq!(hierarchy.published(CpuId::default()), None);
    /// ```
    #[must_use]
    pub fn published(&self, cpu: CpuId) -> Option<Nanos> {
        let books = self.cpu(cpu).books.lock_remote();
        books.published.filter(|_| books.is_available && books.presence != Presence::Awake)
    }

    /// `cpu` joins, before it comes online for the first time; says whether it was the first time. By an
    /// online CPU, one at a time (a lock sees to that). Returns only when the tree is whole.
    ///
    /// ```
    /// # use quietcore_core::{CpuId, SequentialLock, tmigr::Hierarchy};
    /// # let hierarchy: Hierarchy<SequentialLock> = Hierarchy::new(&[0]);
    /// assert!(hierarchy.connect(CpuId::default()));
    /// assert!(!hierarchy.connect(CpuId::default()));
    /// ```
    pub fn connect(&self, cpu: CpuId) -> bool {
        let this = self.cpu(cpu);
        let mut tree = self.tree.lock_remote();
        if this.leaf().is_some() {
            return false;
        }
        let join = tree.join(self.nodes[cpu.index()]);
        assert!(tree.groups().len() <= self.groups.len(), "more groups than were allocated for");
        for &(group, parent) in &join.new_links {
            let Some((_, mask)) = tree.group(group).parent else { continue };
            self.groups[parent.index()].set_child(mask, group.index());
            self.groups[group.index()].set_parent((parent.index(), mask));
        }
        let (leaf, mask) = (join.leaf.0.index(), join.leaf.1);
        self.groups[leaf].set_child(mask, cpu.index());
        // Release: pairs with Acquire in `leaf`.
        this.leaf.store(pack_link((leaf, mask)), Ordering::Release);
        if let Some(old_root) = join.old_root {
            self.carry_up(old_root);
        }
        true
    }

    /// Tells a new root whether the old one is active.
    ///
    /// Interleaving 18 (KERNEL 3): a CPU makes the old root active and is delayed before it looks for a
    /// parent; it saw none. Or it looks later and sees ours. `load_in_order` stands between the two: who
    /// changed the word before it is seen here, who changes it after it sees the link. Then the new root gets
    /// what the old one says *now*, never what this CPU believes. Tests:
    /// `site::root_growth_activates_inactive_root`, `site::root_growth_false_active`, model
    /// `tests/loom/growth.rs`.
    fn carry_up(&self, old_root: GroupId) {
        let group = &self.groups[old_root.index()];
        site!(AfterLink);
        let _ = group.word.load_in_order();
        let _ = self.walk_up(Child::Group(group), group.parent(), Walker::Other);
    }
}

/// A lock was not to be had within its bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Busy;

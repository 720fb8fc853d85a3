//! What a kind of discipline is to `tc`: how it is made of what was typed, changed, and shown.
//!
//! A kind's options, as the grammar reads them, implement [`QdiscKind`], and those of its classes
//! [`ClassKind`]; `tc/kinds.rs` is the list of all.

use crate::classful::{Classful, TcDescription};
use crate::refusal::TcRefusal;
use crate::{ClassId, Distribution, Packet};
use alloc::boxed::Box;
use alloc::string::String;
use core::any::Any;
use core::fmt::Debug;
use quietcore_core::Nanos;

/// Random numbers.
pub type RandomWords = Box<dyn FnMut() -> u32 + Send>;

/// Where a device's packets come from, which decides what can be known of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PacketOrigin {
    /// From the program itself: they tell all that [`Packet`] asks for.
    #[default]
    Program,
    /// From a TUN interface or a socket, as bytes. What a sender asked its own kernel for stays there: when a
    /// packet is to leave (`SCM_TXTIME`), the rate of its socket (`SO_MAX_PACING_RATE`), its socket's
    /// priority.
    Bytes,
}

/// What a discipline is told besides what was typed.
#[derive(Clone, Copy, Debug)]
pub struct QdiscContext {
    /// The major number of its own name, and of its classes'.
    pub handle: u16,
    /// The moment.
    pub now: Nanos,
    /// Of its random numbers, if no line names one.
    pub seed: u64,
    /// The random numbers of a seed; by default, of every seed the same few.
    pub random: fn(u64) -> RandomWords,
    /// The table of delays that a word behind `distribution` names, if none of netem's own has that name, or
    /// why there is none; by default there is none.
    pub distribution: fn(&str) -> Result<Distribution, String>,
    /// Transmit queues of the device; by default one.
    pub queues: u16,
    /// Options that rest on what packets cannot tell are refused; by default they tell all.
    pub origin: PacketOrigin,
}

impl Default for QdiscContext {
    fn default() -> Self {
        let distribution = |_: &str| Err("no table has that name".into());
        let origin = PacketOrigin::Program;
        Self {
            handle: 1,
            now: Nanos(0),
            seed: 0,
            random: |_| Box::new(|| 4),
            distribution,
            queues: 1,
            origin,
        }
    }
}

/// Where the random numbers of a discipline come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SeedUse {
    /// It needs none.
    None,
    /// From [`QdiscContext::seed`].
    Drawn,
    /// From the seed that the line names.
    Named(u64),
}

/// The options of a kind of discipline.
pub(crate) trait QdiscKind<P: Packet + Debug + Send>: Sized {
    /// What is made of them.
    type Made: Classful<P>;

    /// Makes one.
    fn make(&self, context: &QdiscContext) -> Result<Self::Made, TcRefusal>;

    /// Tells one that runs something else; what it holds stays. Gives what it has been told in all then.
    fn change(self, queue: &mut Self::Made, before: &Self, context: &QdiscContext)
    -> Result<Self, TcRefusal>;

    /// What `tc` shows of one that was told this.
    fn describe(&self, queue: &Self::Made) -> TcDescription;
}

/// The options of a kind of class.
pub(crate) trait ClassKind<P: Packet + Debug + Send>: Sized {
    /// What they are classes of.
    type Of: Classful<P>;

    /// Adds a class below `parent`, or below none.
    fn add(&self, queue: &mut Self::Of, parent: Option<ClassId>, id: ClassId) -> Result<(), TcRefusal>;

    /// Tells a class something else; gives what it has been told in all then.
    fn change(self, queue: &mut Self::Of, id: ClassId, before: &Self, now: Nanos) -> Result<Self, TcRefusal>;

    /// What `tc` shows of a class that was told this.
    fn describe(&self, queue: &Self::Of, id: ClassId) -> TcDescription;
}

/// The discipline of a kind.
pub(crate) fn known<P: Packet + Debug, Q: Classful<P>>(queue: &dyn Classful<P>) -> Option<&Q> {
    (queue as &dyn Any).downcast_ref()
}

/// The discipline of a kind, to be changed; `named` is the kind.
pub(crate) fn known_mut<'a, P: Packet + Debug, Q: Classful<P>>(
    queue: &'a mut dyn Classful<P>,
    named: &'static str,
) -> Result<&'a mut Q, TcRefusal> {
    let found = queue.kind();
    (queue as &mut dyn Any).downcast_mut().ok_or(TcRefusal::OtherKind { found, named })
}

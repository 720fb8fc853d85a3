//! What is inside a netem: through which packets leave when their moment has come.

use super::Netem;
use crate::{Child, Packet};
use core::fmt;

impl<P: Packet + fmt::Debug + Send, R: FnMut() -> u32 + Send> Netem<P, R> {
    /// Packets whose moment has come leave through `inner`.
    ///
    /// ```
    /// # use quietcore_core::Nanos;
    /// # use quietcore_qdisc::{Child, Fifo, Limit, Netem, NetemSettings};
    /// # let netem = Netem::<Vec<u8>, _>::new(NetemSettings::default(), || 4, Nanos(0))?;
    /// let netem = netem.with_inner(Child::new(Fifo::new(Limit::Packets(10))));
    /// # let _ = netem;
    /// # Ok::<(), quietcore_qdisc::NetemError>(())
    /// ```
    #[must_use]
    pub fn with_inner(mut self, inner: Child<P>) -> Self {
        self.set_inner(Some(inner));
        self
    }

    /// From now on packets leave through `inner`, or straight; what the one before held is dropped.
    ///
    /// ```
    /// # use quietcore_core::Nanos;
    /// # use quietcore_qdisc::{Child, Fifo, Limit, Netem, NetemSettings};
    /// # let mut netem = Netem::<Vec<u8>, _>::new(NetemSettings::default(), || 4, Nanos(0))?;
    /// netem.set_inner(Some(Child::new(Fifo::new(Limit::Packets(10)))));
    /// assert_eq!(netem.inner().map(Child::kind), Some("pfifo"));
    /// # Ok::<(), quietcore_qdisc::NetemError>(())
    /// ```
    pub fn set_inner(&mut self, inner: Option<Child<P>>) {
        if let Some(before) = core::mem::replace(&mut self.inner, inner) {
            let before = before.statistics();
            self.statistics.dropped += before.dropped + before.qlen;
        }
    }

    /// Through which packets leave.
    ///
    /// ```
    /// # use quietcore_core::Nanos;
    /// # use quietcore_qdisc::{Netem, NetemSettings};
    /// # let netem = Netem::<Vec<u8>, _>::new(NetemSettings::default(), || 4, Nanos(0))?;
    /// assert!(netem.inner().is_none());
    /// # Ok::<(), quietcore_qdisc::NetemError>(())
    /// ```
    pub const fn inner(&self) -> Option<&Child<P>> {
        self.inner.as_ref()
    }

    /// The same, to be changed.
    ///
    /// ```
    /// # use quietcore_core::Nanos;
    /// # use quietcore_qdisc::{Netem, NetemSettings};
    /// # let mut netem = Netem::<Vec<u8>, _>::new(NetemSettings::default(), || 4, Nanos(0))?;
    /// assert!(netem.inner_mut().is_none());
    /// # Ok::<(), quietcore_qdisc::NetemError>(())
    /// ```
    pub const fn inner_mut(&mut self) -> Option<&mut Child<P>> {
        self.inner.as_mut()
    }
}

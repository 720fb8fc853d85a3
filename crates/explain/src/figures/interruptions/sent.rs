//! Interrupts that CPUs send each other, from the sending to the handler, by which each has its sender.
//!
//! A processor keeps one interrupt of a kind waiting while it handles another one: of several that are sent
//! before the first handler begins, the first one brings that about, and the last one the handler that may
//! follow; those between them come to nothing of their own, and so does the last one where it was sent before
//! the first was taken. What is sent after a handler began is the cause of the next one, as what was left was
//! none then.

use super::cause::Initiator;
use quietcore_trace::NameId;

/// What started something, after so many marks of lost events: once there is another one, it is not known
/// any more whether that has begun.
#[derive(Clone, Copy, Debug)]
pub(super) struct Started<T> {
    pub(super) what: T,
    pub(super) marks: u64,
}

impl<T> Started<T> {
    /// If no events were lost since.
    pub(super) fn known(self, marks: u64) -> Option<T> {
        (self.marks == marks).then_some(self.what)
    }
}

/// An interrupt that is on its way.
#[derive(Clone, Copy, Debug)]
pub(super) struct SentIpi {
    pub(super) by: Initiator,
    pub(super) function: Option<NameId>,
}

/// Those of one kind that are on their way to one CPU.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SentIpis {
    first: Option<Started<SentIpi>>,
    last: Option<Started<SentIpi>>,
    /// The first one was left when a handler began.
    is_left: bool,
}

impl SentIpis {
    pub(super) fn send(&mut self, sent: Started<SentIpi>) {
        let place = if self.first.is_none() || self.is_left { &mut self.first } else { &mut self.last };
        *place = Some(sent);
        self.is_left = false;
    }

    /// What the handler that begins comes from.
    pub(super) fn take(&mut self) -> Option<Started<SentIpi>> {
        let first = std::mem::replace(&mut self.first, self.last.take());
        self.is_left = self.first.is_some();
        first
    }

    /// Those that are known.
    pub(super) fn known(self, marks: u64) -> impl Iterator<Item = SentIpi> {
        [self.first, self.last].into_iter().flatten().filter_map(move |sent| sent.known(marks))
    }
}

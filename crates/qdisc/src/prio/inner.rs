//! The classes of a [`Prio`]: its bands, `major:1` the first.

use super::Prio;
use crate::classful::Classful;
use crate::{ClassId, Enqueued, InnerQdisc, Packet, Qdisc};
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt::Debug;
use quietcore_core::Nanos;

impl<P: Packet + Debug + Send> Classful<P> for Prio<P> {
    fn classes(&self) -> Vec<ClassId> {
        (1..=u16::from(self.settings.bands)).map(|minor| ClassId::new(self.settings.major, minor)).collect()
    }

    fn inner(&self, class: ClassId) -> Option<&InnerQdisc<P>> {
        self.bands.get(self.band_of(class)?)
    }

    fn change_inner(&mut self, _: Nanos, class: ClassId, change: &mut dyn FnMut(&mut InnerQdisc<P>)) {
        if let Some(band) = self.band_of(class) {
            change(&mut self.bands[band]);
        }
    }

    fn graft_inner(&mut self, _: Nanos, class: ClassId, inner: Option<Box<dyn Qdisc<P>>>) -> bool {
        let Some(band) = self.band_of(class) else { return false };
        self.counted.dropped += self.bands[band].graft(inner);
        true
    }

    /// Where the packet's priority names a class of this discipline, that is meant, as in the kernel.
    fn enqueue_filtered(&mut self, now: Nanos, class: ClassId, packet: P) -> Enqueued {
        let named = self.named_class(packet.priority());
        self.enqueue_to(now, named.unwrap_or(class), packet)
    }

    fn has_filters(&self) -> bool {
        true
    }
}

//! The classes of an [`Ets`]: its bands, `major:1` the first.

use super::Ets;
use crate::classful::{Classful, TcDescription};
use crate::refusal::TcRefusal;
use crate::tc::TcProperties;
use crate::{ClassId, Enqueued, InnerQdisc, Packet, Qdisc};
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt::Debug;
use quietcore_core::Nanos;

impl<P: Packet + Debug + Send> Classful<P> for Ets<P> {
    fn classes(&self) -> Vec<ClassId> {
        (1..=u16::from(self.settings.bands)).map(|minor| ClassId::new(self.settings.major, minor)).collect()
    }

    fn has_fixed_classes(&self) -> bool {
        true
    }

    fn inner(&self, class: ClassId) -> Option<&InnerQdisc<P>> {
        self.bands.get(self.band_of(class)?)
    }

    fn change_inner(&mut self, _: Nanos, class: ClassId, change: &mut dyn FnMut(&mut InnerQdisc<P>)) {
        if let Some(band) = self.band_of(class) {
            change(&mut self.bands[band]);
            self.settle(band);
        }
    }

    fn graft_inner(&mut self, _: Nanos, class: ClassId, inner: Option<Box<dyn Qdisc<P>>>) -> bool {
        let Some(band) = self.band_of(class) else { return false };
        self.counted.dropped += self.bands[band].graft(inner);
        self.settle(band);
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

    fn classes_have_filters(&self) -> bool {
        false
    }

    fn top_is_root(&self) -> bool {
        true
    }

    fn describe_class(&self, class: ClassId) -> TcDescription {
        let mut options = TcProperties::default();
        if let Some(band) = self.band_of(class).filter(|band| self.shares(*band)) {
            options.add("quantum", "quantum {} ", self.settings.quanta[band]);
        }
        TcDescription { options, ..TcDescription::default() }
    }

    fn remove_class(&mut self, class: ClassId) -> Result<(), TcRefusal> {
        if self.band_of(class).is_none() {
            return Err(TcRefusal::UnknownClass(class));
        }
        let what = alloc::format!("Operation not supported: class {class} of ets is one of its bands");
        Err(TcRefusal::NotPossible { what, remedy: "`qdisc change` says how many bands there are" })
    }
}

//! `drr` and its classes in `tc`: the option, its default, what is shown.
//!
//! Source: tc-drr(8), and `tc` by behaviour.

use super::{Drr, DrrError};
use crate::classful::TcDescription;
use crate::kind::{ClassKind, QdiscContext, QdiscKind};
use crate::refusal::TcRefusal;
use crate::tc::table::{Complete, options};
use crate::tc::units::Bytes;
use crate::tc::{TcProperties, TcValue};
use crate::{ClassId, Packet};
use core::fmt::Debug;
use quietcore_core::Nanos;

/// A whole packet of Ethernet's.
const QUANTUM: u32 = 1_514;
/// The kernel takes none that is shorter, so that a packet costs few turns.
const QUANTUM_MIN: u32 = 256;

options! {
    /// What was typed behind `drr`: nothing.
    pub struct DrrOptions of "drr" {}
}

options! {
    /// What was typed behind `drr`, for a class.
    pub struct DrrClassOptions of "drr" {
        /// Bytes that it sends in its turn.
        quantum: Bytes = "quantum",
    }
}

impl Complete for DrrOptions {}
impl Complete for DrrClassOptions {}

impl DrrClassOptions {
    /// 0 is left to be refused.
    fn told(&self) -> u32 {
        let typed = self.quantum.map_or(QUANTUM, |quantum| quantum.0);
        if typed == 0 { typed } else { typed.max(QUANTUM_MIN) }
    }
}

impl<P: Packet + Debug + Send> QdiscKind<P> for DrrOptions {
    type Made = Drr<P>;

    fn make(&self, context: &QdiscContext) -> Result<Drr<P>, TcRefusal> {
        Ok(Drr::new(context.handle))
    }

    /// There is nothing to change, and the kernel does not mind.
    fn change(self, _: &mut Drr<P>, _: &Self, _: &QdiscContext) -> Result<Self, TcRefusal> {
        Ok(self)
    }

    fn describe(&self, _: &Drr<P>) -> TcDescription {
        TcDescription::default()
    }
}

impl<P: Packet + Debug + Send> ClassKind<P> for DrrClassOptions {
    type Of = Drr<P>;

    /// Below no other, whatever the line says: there are no levels.
    fn add(&self, queue: &mut Drr<P>, _: Option<ClassId>, id: ClassId) -> Result<(), TcRefusal> {
        Ok(queue.add_class(id, self.told())?)
    }

    fn change(self, queue: &mut Drr<P>, id: ClassId, before: &Self, _: Nanos) -> Result<Self, TcRefusal> {
        let this = Self { quantum: self.quantum.or(before.quantum) };
        queue.change_class(id, this.told())?;
        Ok(this)
    }

    fn describe(&self, queue: &Drr<P>, id: ClassId) -> TcDescription {
        let (mut options, mut figures) = (TcProperties::default(), TcProperties::default());
        let quantum = queue.quantum(id).unwrap_or_default();
        options.add("quantum", "quantum {} ", TcValue::size(quantum.into()));
        figures.add("deficit", " deficit {} ", TcValue::size(queue.deficit(id).unwrap_or_default()));
        TcDescription { options, figures }
    }
}

impl From<DrrError> for TcRefusal {
    fn from(error: DrrError) -> Self {
        match error {
            DrrError::Unknown(class) => Self::UnknownClass(class),
            DrrError::Exists(class) => Self::ClassExists(class),
            DrrError::Quantum => Self::setting(
                "drr",
                "quantum",
                0,
                "it could never send: leave it out, or name a packet's size",
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Bytes, Drr, DrrClassOptions, DrrOptions};
    use crate::ClassId;
    use crate::kind::{ClassKind as _, QdiscContext, QdiscKind as _};
    use crate::tc::TcStyle;
    use std::string::ToString as _;
    use std::vec::Vec;

    /// Goal: a quantum is that of the line, a packet's without one, 256 at least as in the kernel, and stays
    /// when a change names none. Method: those, and 0, which is refused.
    #[test]
    fn quanta_of_classes() {
        let mut queue: Drr<Vec<u8>> =
            DrrOptions::default().make(&QdiscContext::default()).expect("no options");
        let class = |minor| ClassId::new(1, minor);
        let typed = |bytes| DrrClassOptions { quantum: Some(Bytes(bytes)) };
        let none = DrrClassOptions::default();
        for (minor, options, quantum, text) in [
            (1, none.clone(), 1_514, "quantum 1514b "),
            (2, typed(1), 256, "quantum 256b "),
            (3, typed(257), 257, "quantum 257b "),
            (4, typed(8_192), 8_192, "quantum 8Kb "),
        ] {
            options.add(&mut queue, None, class(minor)).expect("a new one");
            assert_eq!(queue.quantum(class(minor)), Some(quantum));
            assert_eq!(options.describe(&queue, class(minor)).options.text(TcStyle::default()), text);
        }
        let refused = typed(0).add(&mut queue, None, class(5)).map_err(|refusal| refusal.to_string());
        let said = "drr: `quantum 0` cannot be: it could never send: leave it out, or name a packet's size";
        assert_eq!(refused, Err(said.into()));
        let changed = none.change(&mut queue, class(4), &typed(8_192), quietcore_core::Nanos(0));
        assert_eq!((changed, queue.quantum(class(4))), (Ok(typed(8_192)), Some(8_192)));
        let changed = typed(300).change(&mut queue, class(4), &typed(8_192), quietcore_core::Nanos(0));
        assert_eq!((changed, queue.quantum(class(4))), (Ok(typed(300)), Some(300)));
    }
}

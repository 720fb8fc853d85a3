//! `pfifo_fast` in `tc`: it has no options; what is shown.
//!
//! Source: tc-pfifo_fast(8), and `tc` by behaviour.

use super::PfifoFast;
use crate::Packet;
use crate::classful::TcDescription;
use crate::kind::{QdiscContext, QdiscKind};
use crate::refusal::TcRefusal;
use crate::tc::TcProperties;
use crate::tc::table::{Complete, options};
use core::fmt::Debug;

options! {
    /// What was typed behind `pfifo_fast`: nothing.
    pub struct PfifoFastOptions of "pfifo_fast" {}
}

impl Complete for PfifoFastOptions {}

impl<P: Packet + Debug + Send> QdiscKind<P> for PfifoFastOptions {
    type Made = PfifoFast<P>;

    fn make(&self, _: &QdiscContext) -> Result<PfifoFast<P>, TcRefusal> {
        Ok(PfifoFast::new())
    }

    /// There is nothing to change, and the kernel does not mind.
    fn change(self, _: &mut PfifoFast<P>, _: &Self, _: &QdiscContext) -> Result<Self, TcRefusal> {
        Ok(self)
    }

    fn describe(&self, queue: &PfifoFast<P>) -> TcDescription {
        let mut options = TcProperties::default();
        options.add("bands", "bands {} priomap", queue.bands.len() as u64);
        options.list("priomap", " {}", queue.priomap);
        options.add_json("multiqueue", false);
        TcDescription { options, ..TcDescription::default() }
    }
}

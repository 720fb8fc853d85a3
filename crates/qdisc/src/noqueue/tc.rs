//! `noqueue` in `tc`: it has no options, and nothing is shown of it.
//!
//! Source: `tc` by behaviour.

use super::Noqueue;
use crate::Packet;
use crate::classful::TcDescription;
use crate::kind::{QdiscContext, QdiscKind};
use crate::refusal::TcRefusal;
use crate::tc::table::{Complete, options};
use core::fmt::Debug;

options! {
    /// What was typed behind `noqueue`: nothing.
    pub struct NoqueueOptions of "noqueue" {}
}

impl Complete for NoqueueOptions {}

impl<P: Packet + Debug + Send> QdiscKind<P> for NoqueueOptions {
    type Made = Noqueue<P>;

    fn make(&self, _: &QdiscContext) -> Result<Noqueue<P>, TcRefusal> {
        Ok(Noqueue::new())
    }

    /// There is nothing to change, and the kernel does not mind.
    fn change(self, _: &mut Noqueue<P>, _: &Self, _: &QdiscContext) -> Result<Self, TcRefusal> {
        Ok(self)
    }

    fn describe(&self, _: &Noqueue<P>) -> TcDescription {
        TcDescription::default()
    }
}

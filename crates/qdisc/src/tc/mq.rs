//! `mq`, which has one discipline per queue of a device: what makes one is the device.
//!
//! Source: tc-mq(8).

use super::table::{Complete, options};
use crate::classful::TcDescription;
use crate::kind::{QdiscContext, QdiscKind};
use crate::refusal::TcRefusal;
use crate::{Fifo, Packet};
use core::fmt::Debug;

options! {
    /// What was typed behind `mq`: nothing.
    pub struct MqOptions of "mq" {}
}

impl Complete for MqOptions {}

/// Nothing is made of them.
impl<P: Packet + Debug + Send> QdiscKind<P> for MqOptions {
    type Made = Fifo<P>;

    fn make(&self, _: &QdiscContext) -> Result<Fifo<P>, TcRefusal> {
        let what = "mq can only be a device's root".into();
        Err(TcRefusal::NotPossible { what, remedy: "use `root`" })
    }

    fn change(self, _: &mut Fifo<P>, _: &Self, _: &QdiscContext) -> Result<Self, TcRefusal> {
        Ok(self)
    }

    fn describe(&self, _: &Fifo<P>) -> TcDescription {
        TcDescription::default()
    }
}

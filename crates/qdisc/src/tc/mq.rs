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
impl QdiscKind for MqOptions {
    type Made<P: Packet + Debug + Send> = Fifo<P>;

    fn make<P: Packet + Debug + Send>(&self, _: &QdiscContext) -> Result<Fifo<P>, TcRefusal> {
        let what = "mq can only be a device's root".into();
        Err(TcRefusal::NotPossible { what, remedy: "use `root`" })
    }

    fn change<P: Packet + Debug + Send>(
        self,
        _: &mut Fifo<P>,
        _: &Self,
        _: &QdiscContext,
    ) -> Result<Self, TcRefusal> {
        Ok(self)
    }

    fn describe<P: Packet + Debug + Send>(&self, _: &Fifo<P>) -> TcDescription {
        TcDescription::default()
    }
}

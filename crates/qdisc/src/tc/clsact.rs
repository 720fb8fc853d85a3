//! `ingress` and `clsact`, which queue nothing: they have filters of packets that come in, or are sent. What
//! makes one is the device.
//!
//! Source: tc(8); iproute2 6.1 by behaviour.

use super::table::{Complete, options};
use crate::classful::TcDescription;
use crate::kind::{QdiscContext, QdiscKind};
use crate::refusal::TcRefusal;
use crate::{ClassId, Fifo, Packet};
use core::fmt::Debug;

/// Their place: a device has one of both.
pub const CLSACT: ClassId = ClassId::new(0xffff, 0xfff1);
/// The parent of filters of packets that come in.
pub const CLSACT_INGRESS: ClassId = ClassId::new(0xffff, 0xfff2);
/// The parent of filters of packets that are sent.
pub const CLSACT_EGRESS: ClassId = ClassId::new(0xffff, 0xfff3);

options! {
    /// What was typed behind `ingress`: nothing.
    pub struct IngressOptions of "ingress" {}
}

options! {
    /// What was typed behind `clsact`: nothing.
    pub struct ClsactOptions of "clsact" {}
}

impl Complete for IngressOptions {}
impl Complete for ClsactOptions {}

fn refused<P>() -> Result<Fifo<P>, TcRefusal> {
    let what = "ingress and clsact are beside a device's root".into();
    Err(TcRefusal::NotPossible { what, remedy: "leave `root` and `parent` out" })
}

/// Nothing is made of them.
impl<P: Packet + Debug + Send> QdiscKind<P> for IngressOptions {
    type Made = Fifo<P>;

    fn make(&self, _: &QdiscContext) -> Result<Fifo<P>, TcRefusal> {
        refused()
    }

    fn change(self, _: &mut Fifo<P>, _: &Self, _: &QdiscContext) -> Result<Self, TcRefusal> {
        Ok(self)
    }

    fn describe(&self, _: &Fifo<P>) -> TcDescription {
        TcDescription::default()
    }
}

/// The same.
impl<P: Packet + Debug + Send> QdiscKind<P> for ClsactOptions {
    type Made = Fifo<P>;

    fn make(&self, _: &QdiscContext) -> Result<Fifo<P>, TcRefusal> {
        refused()
    }

    fn change(self, _: &mut Fifo<P>, _: &Self, _: &QdiscContext) -> Result<Self, TcRefusal> {
        Ok(self)
    }

    fn describe(&self, _: &Fifo<P>) -> TcDescription {
        TcDescription::default()
    }
}

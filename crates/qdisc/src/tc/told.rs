//! From what was typed to what a discipline is told: the steps that several kinds share.

use super::TcProperties;
use super::units::{BitRate, Bytes};
use crate::refusal::TcRefusal;
use crate::{LinkLayer, Rate};

/// Options that the parser has seen to; a command made by hand may lack them.
pub(crate) fn needed<T: Copy>(
    of: &'static str,
    option: &'static str,
    typed: Option<T>,
) -> Result<T, TcRefusal> {
    typed.ok_or_else(|| TcRefusal::setting(of, option, "", "it has no default"))
}

/// A rate in whole bytes per second, of which there is one at least.
pub(crate) fn rate_of(of: &'static str, option: &'static str, rate: BitRate) -> Result<Rate, TcRefusal> {
    let bytes = Rate::bytes_per_second(rate.bytes_per_second());
    bytes.ok_or_else(|| TcRefusal::setting(of, option, rate, "a rate is one byte per second (8bit) at least"))
}

/// What counts besides a packet's bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LinkCosts {
    pub(crate) overhead: Option<u16>,
    pub(crate) mpu: Option<Bytes>,
    pub(crate) layer: Option<LinkLayer>,
}

impl LinkCosts {
    /// A rate at which they count.
    pub(crate) fn at(self, rate: Rate) -> Rate {
        let rate = rate.overhead(i32::from(self.overhead.unwrap_or(0))).mpu(self.mpu.map_or(0, |mpu| mpu.0));
        rate.link_layer(self.layer.unwrap_or_default())
    }
}

/// How packets are packed: not as they are, or with `-d`.
pub(crate) fn add_link_layer(shown: &mut TcProperties, layer: LinkLayer) {
    const TEMPLATE: &str = "linklayer {} ";
    match layer {
        LinkLayer::Atm => shown.add("linklayer", TEMPLATE, "atm"),
        LinkLayer::Ethernet => shown.details(|shown| shown.add("linklayer", TEMPLATE, "ethernet")),
    }
}

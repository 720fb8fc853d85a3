//! `tbf` in `tc`: the options, their defaults, what is shown.
//!
//! Source: tc-tbf(8), and `tc` by behaviour.

use super::{Tbf, TbfError, TbfLimit, TbfSettings};
use crate::classful::TcDescription;
use crate::kind::{QdiscContext, QdiscKind};
use crate::refusal::TcRefusal;
use crate::tc::burst::Burst;
use crate::tc::error::TcProblem;
use crate::tc::table::{Complete, first_missing, options};
use crate::tc::text::{byte_rate_text, size_text, time_text};
use crate::tc::told::{LinkCosts, needed, rate_of};
use crate::tc::units::{BitRate, Bytes};
use crate::{LinkLayer, Packet, Rate};
use alloc::format;
use alloc::string::{String, ToString};
use core::fmt::Debug;
use quietcore_core::Nanos;

options! {
    /// What was typed behind `tbf`.
    pub struct TbfOptions of "tbf" {
        /// How fast the bucket fills.
        rate: BitRate = "rate",
        /// How much it holds.
        burst: Burst = "burst" | "buffer" | "maxburst",
        /// Bytes that may wait.
        limit: Bytes = "limit",
        /// How long a packet may wait.
        latency: Nanos = "latency",
        /// Bytes that any packet counts at least.
        mpu: Bytes = "mpu",
        /// How fast the bucket may empty.
        peakrate: BitRate = "peakrate",
        /// How much may leave at once in spite of that.
        mtu: Burst = "mtu" | "minburst",
        /// Bytes more per packet.
        overhead: u16 = "overhead",
        /// How packets are packed.
        linklayer: LinkLayer = "linklayer",
    }
}

impl Complete for TbfOptions {
    fn lacks(&self) -> Option<TcProblem> {
        if self.limit.is_some() && self.latency.is_some() {
            return Some(TcProblem::Excludes { option: "latency", other: "limit" });
        }
        if self.peakrate.is_some() && self.mtu.is_none() {
            return Some(TcProblem::Needs { option: "peakrate", needs: "`mtu`" });
        }
        let bounded = self.limit.is_some() || self.latency.is_some();
        let needed = [
            (self.rate.is_some(), "`rate`"),
            (self.burst.is_some(), "`burst`"),
            (bounded, "`limit` or `latency`"),
        ];
        first_missing("tbf", &needed)
    }
}

impl TbfOptions {
    fn told(&self) -> Result<TbfSettings, TcRefusal> {
        let costs = LinkCosts { overhead: self.overhead, mpu: self.mpu, layer: self.linklayer };
        let rate = costs.at(rate_of("tbf", "rate", needed("tbf", "rate", self.rate)?)?);
        let burst = needed("tbf", "burst", self.burst)?;
        let limit = match (self.limit, self.latency) {
            (Some(bytes), _) => TbfLimit::Bytes(u64::from(bytes.0)),
            (None, latency) => TbfLimit::Latency(needed("tbf", "latency", latency)?),
        };
        let mut settings = TbfSettings::new(rate, burst.size.0, limit);
        if let Some(peak) = self.peakrate {
            let minburst = needed("tbf", "mtu", self.mtu)?;
            settings = settings.peak(costs.at(rate_of("tbf", "peakrate", peak)?), minburst.size.0);
        }
        Ok(settings)
    }

    /// What a tbf says of its settings.
    fn refused(&self, error: &TbfError) -> TcRefusal {
        let text = |value: Option<&dyn ToString>| value.map_or_else(String::new, ToString::to_string);
        let (option, value) = match error {
            TbfError::Burst { .. } => ("burst", text(self.burst.as_ref().map(|burst| burst as _))),
            TbfError::Limit { .. } => ("limit", text(self.limit.as_ref().map(|limit| limit as _))),
            TbfError::Minburst { .. } => ("mtu", text(self.mtu.as_ref().map(|mtu| mtu as _))),
            _ => ("peakrate", text(self.peakrate.as_ref().map(|peak| peak as _))),
        };
        TcRefusal::setting("tbf", option, value, error.to_string())
    }
}

impl<P: Packet + Debug + Send> QdiscKind<P> for TbfOptions {
    type Made = Tbf<P>;

    fn make(&self, context: &QdiscContext) -> Result<Tbf<P>, TcRefusal> {
        Tbf::new(self.told()?, context.now).map_err(|error| self.refused(&error))
    }

    fn change(self, queue: &mut Tbf<P>, _: &Self, context: &QdiscContext) -> Result<Self, TcRefusal> {
        queue.change(self.told()?, context.now).map_err(|error| self.refused(&error))?;
        Ok(self)
    }

    fn describe(&self, queue: &Tbf<P>) -> TcDescription {
        TcDescription { options: text(queue.settings()), ..TcDescription::default() }
    }
}

fn text(told: &TbfSettings) -> String {
    let (rate, burst) = (byte_rate_text(told.rate.get()), size_text(u64::from(told.burst)));
    let mut text = format!("rate {rate} burst {burst}");
    if let Some(peak) = told.peak {
        let (rate, minburst) = (byte_rate_text(peak.rate.get()), size_text(u64::from(peak.minburst)));
        text += &format!(" peakrate {rate} minburst {minburst}");
    }
    // How long the last byte of the limit waits, behind a burst.
    let limit = told.limit_bytes();
    let wait = |rate: Rate, burst: u32| rate.time_of(limit).0.checked_sub(rate.time_of(u64::from(burst)).0);
    let at_peak = told.peak.map_or(Some(0), |peak| wait(peak.rate, peak.minburst));
    match (wait(told.rate, told.burst), at_peak) {
        (Some(latency), Some(at_peak)) => text + &format!(" lat {}", time_text(Nanos(latency.max(at_peak)))),
        _ => text + &format!(" limit {}", size_text(limit)),
    }
}

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
use crate::tc::text::{size_text, time_text};
use crate::tc::tick::{kernel_time, micros, shown_size, ticks};
use crate::tc::told::{LinkCosts, add_link_layer, needed, rate_of};
use crate::tc::units::{BitRate, Bytes};
use crate::tc::{TcJson, TcProperties, TcValue};
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
        TcDescription { options: shown(queue.settings()), ..TcDescription::default() }
    }
}

fn shown(told: &TbfSettings) -> TcProperties {
    let mut shown = TcProperties::default();
    let (costs, bucket) = (told.rate, bucket_of(told.rate, told.burst));
    shown.add("rate", "rate {} ", TcValue::byte_rate(told.rate.get()));
    add_bucket(&mut shown, ["burst", "burst"], told.rate, bucket);
    let peak = told.peak.map(|peak| (peak.rate, bucket_of(peak.rate, peak.minburst)));
    if let Some((rate, bucket)) = peak {
        shown.add_text("peakrate {} ", TcValue::byte_rate(rate.get()));
        add_bucket(&mut shown, ["mtu", "minburst"], rate, bucket);
    }
    // How long the last byte of the limit waits, behind a burst.
    let limit = told.limit_bytes();
    let wait = |rate: Rate, bucket: Nanos| {
        let bucket = micros(ticks(bucket)) as f64;
        1e6 * limit as f64 / rate.get() as f64 - bucket
    };
    let latency = peak.map_or(f64::MIN, |(rate, bucket)| wait(rate, bucket)).max(wait(told.rate, bucket));
    if latency < 0.0 {
        shown.add("limit", "limit {} ", TcValue::size(limit));
    } else {
        // Less than a millisecond is told in whole microseconds.
        let micros = latency as u64;
        let text =
            if micros < 1_000 { format!("{micros}us") } else { time_text(Nanos((latency * 1e3) as u64)) };
        shown.add("lat", "lat {} ", TcValue::new(text, TcJson::Unsigned(micros)));
    }
    if costs.overhead_bytes() != 0 {
        shown.add("overhead", "overhead {} ", costs.overhead_bytes());
    }
    add_link_layer(&mut shown, costs.layer());
    shown
}

/// How long the kernel says that a bucket takes to fill.
const fn bucket_of(rate: Rate, bytes: u32) -> Nanos {
    kernel_time(rate, rate.counted(bytes))
}

/// A bucket, by its name with `-d` and without.
fn add_bucket(shown: &mut TcProperties, names: [&'static str; 2], rate: Rate, bucket: Nanos) {
    let size = shown_size(rate, bucket);
    let [detailed, plain] = names;
    shown.details_or(
        |shown| {
            shown.text_only(format!("{detailed} "));
            // The kernel looks no times up: all sizes are whole bytes.
            shown.add(detailed, "{}", format!("{}/1", size_text(size)));
            let mpu = u64::from(rate.least());
            shown.add("mpu", " mpu {} ", TcValue::size(mpu));
        },
        |shown| {
            shown.text_only(format!("{plain} "));
            shown.add(plain, "{} ", TcValue::size(size));
        },
    );
}

#[cfg(test)]
mod tests {
    use super::{BitRate, Burst, Bytes, Tbf, TbfLimit, TbfOptions, TbfSettings};
    use crate::kind::{QdiscContext, QdiscKind as _};
    use crate::tc::TcStyle;
    use crate::{LinkLayer, Rate};
    use quietcore_core::Nanos;
    use std::format;
    use std::string::{String, ToString as _};
    use std::vec::Vec;

    fn burst(bytes: u32) -> Option<Burst> {
        Some(Burst { size: Bytes(bytes), cell: None })
    }

    fn typed() -> TbfOptions {
        TbfOptions {
            rate: Some(BitRate(8_000)),
            burst: burst(1_301),
            limit: Some(Bytes(4_901)),
            peakrate: Some(BitRate(16_000)),
            mtu: burst(1_401),
            ..TbfOptions::default()
        }
    }

    /// Goal: each option is what it sets. Method: all of them, no two alike; a latency instead of a limit.
    #[test]
    fn every_option_is_told() {
        let costs = |bytes| {
            let rate = Rate::bytes_per_second(bytes).expect("not 0");
            rate.overhead(14).mpu(64).link_layer(LinkLayer::Atm)
        };
        let (mpu, overhead, linklayer) = (Some(Bytes(64)), Some(14), Some(LinkLayer::Atm));
        let all = TbfOptions { mpu, overhead, linklayer, ..typed() };
        let told = TbfSettings::new(costs(1_000), 1_301, TbfLimit::Bytes(4_901)).peak(costs(2_000), 1_401);
        assert_eq!(all.told(), Ok(told));
        let late = TbfOptions { limit: None, latency: Some(Nanos(7)), peakrate: None, mtu: None, ..all };
        assert_eq!(late.told(), Ok(TbfSettings::new(costs(1_000), 1_301, TbfLimit::Latency(Nanos(7)))));
    }

    fn made(options: &TbfOptions) -> Result<Tbf<Vec<u8>>, String> {
        options.make(&QdiscContext::default()).map_err(|refusal| refusal.to_string())
    }

    /// Goal: it is shown by what it was told and by how long a packet waits at most, or by its limit if that
    /// is less than a bucket. Method: 3600 bytes behind the bucket take 3.6 s at 1000 bytes per second; 3500
    /// behind the other take 1.75 s at 2000 of them, 4900 take 2.45 s; then limits of a bucket, and below it.
    #[test]
    fn it_is_shown() {
        let shown = |options: TbfOptions| {
            options.describe(&made(&options).expect("it can be")).options.text(TcStyle::default())
        };
        let peak = "peakrate 16Kbit minburst";
        assert_eq!(shown(typed()), format!("rate 8Kbit burst 1301b {peak} 1400b lat 3.6s "));
        let at_peak = TbfOptions { burst: burst(4_001), mtu: burst(1), ..typed() };
        assert_eq!(shown(at_peak), format!("rate 8Kbit burst 4001b {peak} 0b lat 2.45s "));
        let plain = TbfOptions { peakrate: None, mtu: None, ..typed() };
        assert_eq!(
            shown(TbfOptions { burst: burst(4_901), ..plain.clone() }),
            "rate 8Kbit burst 4901b lat 0us "
        );
        assert_eq!(shown(TbfOptions { burst: burst(4_902), ..plain }), "rate 8Kbit burst 4902b limit 4901b ");
    }

    /// Goal: what cannot be is refused with the option, its value and the reason. Method: each option that
    /// can be wrong or missing.
    #[test]
    fn every_refusal_has_its_text() {
        let least = "cannot be: a rate is one byte per second (8bit) at least";
        let missing = |option: &str| format!("tbf: `{option} ` cannot be: it has no default");
        for (options, refused) in [
            (TbfOptions { rate: None, ..typed() }, missing("rate")),
            (TbfOptions { burst: None, ..typed() }, missing("burst")),
            (TbfOptions { limit: None, ..typed() }, missing("latency")),
            (TbfOptions { mtu: None, ..typed() }, missing("mtu")),
            (TbfOptions { rate: Some(BitRate(7)), ..typed() }, format!("tbf: `rate 7bit` {least}")),
            (TbfOptions { peakrate: Some(BitRate(6)), ..typed() }, format!("tbf: `peakrate 6bit` {least}")),
            (
                TbfOptions { burst: burst(0), ..typed() },
                "tbf: `burst 0b` cannot be: burst of 0 bytes lets no packet pass".into(),
            ),
            (
                TbfOptions { limit: Some(Bytes(0)), ..typed() },
                "tbf: `limit 0b` cannot be: limit of 0 bytes lets no packet wait".into(),
            ),
            (
                TbfOptions { mtu: burst(0), ..typed() },
                "tbf: `mtu 0b` cannot be: minburst of 0 bytes lets no packet pass".into(),
            ),
            (
                TbfOptions { rate: Some(BitRate(24_000)), ..typed() },
                "tbf: `peakrate 16kbit` cannot be: peak rate of 2000 bytes/s is not above the rate of 3000 \
                 bytes/s"
                    .into(),
            ),
        ] {
            assert_eq!(made(&options).map(|_| ()), Err(refused), "{options:?}");
        }
    }
}

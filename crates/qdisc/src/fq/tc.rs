//! `fq` in `tc`: the options, their defaults, what is shown.
//!
//! Source: tc-fq(8), and `tc` by behaviour.

use super::{Fq, FqError, FqSettings, FqStatistics, Horizon};
use crate::Packet;
use crate::classful::{Classful, TcDescription};
use crate::kind::{PacketOrigin, QdiscContext, QdiscKind};
use crate::refusal::TcRefusal;
use crate::tc::error::TcError;
use crate::tc::scalar::Show;
use crate::tc::table::{Complete, OptionTable as _, options, switch};
use crate::tc::units::{BitRate, Bytes};
use crate::tc::value::OptionValue;
use crate::tc::words::LineWords;
use crate::tc::{TcProperties, TcValue, time_text};
use alloc::format;
use alloc::string::ToString as _;
use core::fmt::{self, Debug, Formatter};
use quietcore_core::Nanos;

options! {
    /// What was typed behind `fq`.
    pub struct FqOptions of "fq" {
        /// Packets that it holds at most.
        limit: u32 = "limit",
        /// Packets of one flow that it holds at most.
        flow_limit: u32 = "flow_limit",
        /// Bytes that a flow sends in its turn.
        quantum: Bytes = "quantum",
        /// Bytes that a new flow sends at once.
        initial_quantum: Bytes = "initial_quantum",
        /// The most that a flow is paced to.
        maxrate: BitRate = "maxrate",
        /// Buckets of flows.
        buckets: u32 = "buckets",
        /// Which bits of a hash tell flows without a socket apart.
        orphan_mask: u32 = "orphan_mask",
        /// Whether flows are paced.
        pacing: Pacing = "pacing" | "nopacing",
        /// How long a flow has been idle when it gets a new quantum.
        refill_delay: Nanos = "refill_delay",
        /// Below it, each packet is paced for itself.
        low_rate_threshold: BitRate = "low_rate_threshold",
        /// So late, packets are marked.
        ce_threshold: Nanos = "ce_threshold",
        /// How late the timer may be.
        timer_slack: Nanos = "timer_slack",
        /// How far ahead a packet may ask to leave.
        horizon: Nanos = "horizon",
        /// What happens to packets that ask for more.
        beyond: BeyondHorizon = "horizon_drop" | "horizon_cap",
        /// How many bands; three is all that there are.
        bands: u32 = "bands" in 3..=3,
        /// Each priority's band.
        priomap: Priomap = "priomap",
        /// Each band's share.
        weights: Weights = "weights",
    }
}

impl Complete for FqOptions {}

switch! {
    /// Whether `fq` paces.
    pub enum Pacing {
        /// `pacing`.
        On = "pacing",
        /// `nopacing`.
        Off = "nopacing",
    }
}

switch! {
    /// What `fq` does with a packet that asks to leave beyond the horizon.
    pub enum BeyondHorizon {
        /// `horizon_drop`: it is dropped.
        Drop = "horizon_drop",
        /// `horizon_cap`: it leaves at the horizon.
        Cap = "horizon_cap",
    }
}

/// Each priority's band, from 0 to 2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Priomap(
    /// Bands.
    pub [u8; 16],
);

/// Each band's share of the bytes, from 1 to 2^31 - 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Weights(
    /// Shares.
    pub [u32; 3],
);

impl OptionValue for Priomap {
    fn take(words: &mut LineWords<'_>, name: &'static str) -> Result<Self, TcError> {
        let mut bands = [0; 16];
        for band in &mut bands {
            *band = words.scalar(name)?;
            words.in_range(*band, 0..=2)?;
        }
        Ok(Self(bands))
    }

    fn put(&self, name: &'static str, out: &mut Formatter<'_>) -> fmt::Result {
        write!(out, " {name}")?;
        self.0.iter().try_for_each(|band| band.show(out))
    }
}

impl OptionValue for Weights {
    fn take(words: &mut LineWords<'_>, name: &'static str) -> Result<Self, TcError> {
        let mut weights = [0; 3];
        for weight in &mut weights {
            *weight = words.scalar(name)?;
            words.in_range(*weight, 1..=i32::MAX.unsigned_abs())?;
        }
        Ok(Self(weights))
    }

    fn put(&self, name: &'static str, out: &mut Formatter<'_>) -> fmt::Result {
        write!(out, " {name}")?;
        self.0.iter().try_for_each(|weight| weight.show(out))
    }
}

impl<P: Packet + Debug + Send> Classful<P> for Fq<P> {}

impl FqOptions {
    fn told(&self) -> FqSettings {
        let kernel = FqSettings::default();
        let (Horizon::Drop(span) | Horizon::Cap(span)) = kernel.horizon;
        let span: Nanos = self.horizon.unwrap_or(span);
        let caps = self.beyond == Some(BeyondHorizon::Cap);
        let low_rate = self.low_rate_threshold.map(BitRate::bytes_per_second);
        FqSettings {
            limit: self.limit.unwrap_or(kernel.limit),
            flow_limit: self.flow_limit.unwrap_or(kernel.flow_limit),
            quantum: self.quantum.map_or(kernel.quantum, |bytes| bytes.0),
            initial_quantum: self.initial_quantum.map_or(kernel.initial_quantum, |bytes| bytes.0),
            // As the kernel: a rate of 0 is none.
            maxrate: self.maxrate.map(BitRate::bytes_per_second).filter(|rate| *rate > 0),
            buckets: self.buckets.map_or(kernel.buckets, whole_power),
            orphan_mask: self.orphan_mask.map(u64::from),
            pacing: self.pacing != Some(Pacing::Off),
            refill_delay: self.refill_delay.unwrap_or(kernel.refill_delay),
            low_rate_threshold: low_rate.unwrap_or(kernel.low_rate_threshold),
            ce_threshold: self.ce_threshold,
            timer_slack: self.timer_slack.unwrap_or(kernel.timer_slack),
            horizon: if caps { Horizon::Cap(span) } else { Horizon::Drop(span) },
            priomap: self.priomap.map_or(kernel.priomap, |map| map.0),
            weights: self.weights.map_or(kernel.weights, |weights| weights.0),
        }
    }
}

/// What bytes do not tell.
const NO_DEPARTURE: &str = "packets do not tell here when they are to leave (SCM_TXTIME does not cross a TUN \
                            interface or a socket)";
const NO_PACING_RATE: &str = "senders do not tell here how fast they want to be (SO_MAX_PACING_RATE does not \
                              cross a TUN interface or a socket)";

impl FqOptions {
    /// Refuses what would do nothing for packets of which only bytes are known; they are paced to `maxrate`.
    fn check_origin(&self, maxrate: Option<BitRate>, origin: PacketOrigin) -> Result<(), TcRefusal> {
        if origin == PacketOrigin::Program {
            return Ok(());
        }
        let untold = match (self.horizon, self.beyond) {
            (Some(horizon), _) => Some(format!("horizon {}", time_text(horizon))),
            (None, Some(BeyondHorizon::Cap)) => Some("horizon_cap".into()),
            (None, Some(BeyondHorizon::Drop)) => Some("horizon_drop".into()),
            (None, None) => None,
        };
        if let Some(option) = untold {
            let what = format!("fq: `{option}` cannot be: {NO_DEPARTURE}");
            return Err(TcRefusal::NotPossible { what, remedy: "leave it out" });
        }
        if self.pacing == Some(Pacing::On) && maxrate.is_none() {
            let what = format!("fq: `pacing` cannot be: {NO_PACING_RATE}");
            return Err(TcRefusal::NotPossible { what, remedy: "name a `maxrate`, or leave it out" });
        }
        Ok(())
    }
}

/// The power of 2 from which on there are as many as that; 0 stays.
const fn whole_power(buckets: u32) -> u32 {
    match buckets.checked_next_power_of_two() {
        Some(power) if buckets > 0 => power,
        _ => buckets,
    }
}

/// What an fq says of its settings.
fn refused(error: &FqError) -> TcRefusal {
    let (option, value) = match error {
        FqError::Quantum(bytes) => ("quantum", u64::from(*bytes)),
        FqError::Buckets(count) => ("buckets", u64::from(*count)),
        FqError::Band { band, .. } => ("priomap", u64::from(*band)),
        FqError::Weight { weight, .. } => ("weights", u64::from(*weight)),
    };
    TcRefusal::setting("fq", option, value, error.to_string())
}

impl<P: Packet + Debug + Send> QdiscKind<P> for FqOptions {
    type Made = Fq<P>;

    fn make(&self, context: &QdiscContext) -> Result<Fq<P>, TcRefusal> {
        self.check_origin(self.maxrate, context.origin)?;
        Fq::new(self.told()).map_err(|error| refused(&error))
    }

    fn change(self, queue: &mut Fq<P>, before: &Self, context: &QdiscContext) -> Result<Self, TcRefusal> {
        self.check_origin(self.maxrate.or(before.maxrate), context.origin)?;
        // A change is of what it names.
        let merged = self.merged(before.clone());
        queue.change(merged.told()).map_err(|error| refused(&error))?;
        Ok(merged)
    }

    fn describe(&self, queue: &Fq<P>) -> TcDescription {
        TcDescription { options: shown(queue.settings()), figures: figures(&queue.fq_statistics()) }
    }
}

/// What it has counted besides what all disciplines count.
fn figures(counted: &FqStatistics) -> TcProperties {
    let mut figures = TcProperties::default();
    figures.add("flows", "  flows {}", counted.flows);
    figures.add("inactive", " (inactive {}", counted.inactive_flows);
    figures.add("throttled", " throttled {})\n", counted.throttled_flows);
    figures.add("gc", "  gc {}", counted.collected_flows);
    figures.add("highprio", " highprio {}", counted.fast_path_packets);
    figures.add("throttled", " throttled {}", counted.throttled);
    if counted.unthrottle_latency.0 > 0 {
        figures.add("latency", " latency {}", TcValue::nanos(counted.unthrottle_latency));
    }
    for (name, template, count) in [
        ("ce_mark", " ce_mark {}", counted.ce_marks),
        ("flows_plimit", " flows_plimit {}", counted.flow_limit_drops),
        ("horizon_drops", " horizon_drops {}", counted.horizon_drops),
        ("horizon_caps", " horizon_caps {}", counted.horizon_caps),
    ] {
        if count > 0 {
            figures.add(name, template, count);
        }
    }
    figures
}

/// As `tc` 6.1 shows it, which knows no bands: those are ours.
fn shown(told: &FqSettings) -> TcProperties {
    let mut shown = TcProperties::default();
    shown.add("limit", "limit {}p ", told.limit);
    shown.add("flow_limit", "flow_limit {}p ", told.flow_limit);
    shown.add("buckets", "buckets {} ", told.buckets);
    shown.add("orphan_mask", "orphan_mask {} ", told.orphan_mask.unwrap_or(1_023));
    if !told.pacing {
        shown.add("pacing", "nopacing ", false);
    }
    shown.ours(|shown| {
        shown.text_only("bands 3 priomap ");
        shown.list("priomap", "{} ", told.priomap);
        shown.text_only("weights ");
        shown.list("weights", "{} ", told.weights);
    });
    shown.add("quantum", "quantum {} ", TcValue::size(u64::from(told.quantum)));
    shown.add("initial_quantum", "initial_quantum {} ", TcValue::size(u64::from(told.initial_quantum)));
    if let Some(rate) = told.maxrate {
        shown.add("maxrate", "maxrate {} ", TcValue::byte_rate(rate));
    }
    shown.add("low_rate_threshold", "low_rate_threshold {} ", TcValue::byte_rate(told.low_rate_threshold));
    shown.add("refill_delay", "refill_delay {} ", TcValue::micros(told.refill_delay));
    if let Some(span) = told.ce_threshold {
        shown.add("ce_threshold", "ce_threshold {} ", TcValue::micros(span));
    }
    shown.add("timer_slack", "timer_slack {} ", TcValue::nanos(told.timer_slack));
    let (Horizon::Drop(span) | Horizon::Cap(span)) = told.horizon;
    shown.add("horizon", "horizon {} ", TcValue::micros(span));
    match told.horizon {
        Horizon::Drop(_) => shown.mark_null("horizon_drop", "horizon_drop "),
        Horizon::Cap(_) => shown.mark_null("horizon_cap", "horizon_cap "),
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::{BeyondHorizon, BitRate, Bytes, Fq, FqOptions, FqStatistics, Pacing, PacketOrigin, Priomap};
    use super::{TcRefusal, Weights, figures, shown};
    use crate::Qdisc as _;
    use crate::kind::{QdiscContext, QdiscKind as _};
    use crate::tc::TcStyle;
    use quietcore_core::Nanos;
    use std::format;
    use std::string::ToString as _;
    use std::vec;
    use std::vec::Vec;

    /// Goal: each option is what it sets, and shown as what it is. Method: all of them, no two alike.
    #[test]
    fn every_option_is_told_and_shown() {
        let typed = FqOptions {
            limit: Some(11),
            flow_limit: Some(12),
            quantum: Some(Bytes(1_301)),
            initial_quantum: Some(Bytes(1_401)),
            maxrate: Some(BitRate(15_000_000)),
            buckets: Some(16),
            orphan_mask: Some(17),
            pacing: Some(Pacing::Off),
            refill_delay: Some(Nanos(18_000_000)),
            low_rate_threshold: Some(BitRate(19_000)),
            ce_threshold: Some(Nanos(20_000)),
            timer_slack: Some(Nanos(21)),
            horizon: Some(Nanos(22_000_000_000)),
            beyond: Some(BeyondHorizon::Cap),
            bands: None,
            priomap: Some(Priomap([0, 1, 2, 0, 0, 1, 1, 2, 2, 1, 2, 0, 2, 1, 0, 2])),
            weights: Some(Weights([23_000, 24_000, 25_000])),
        };
        let told = typed.told();
        assert_eq!(
            shown(&told).text(OURS),
            "limit 11p flow_limit 12p buckets 16 orphan_mask 17 nopacing bands 3 \
             priomap 0 1 2 0 0 1 1 2 2 1 2 0 2 1 0 2 weights 23000 24000 25000 quantum 1301b \
             initial_quantum 1401b maxrate 15Mbit low_rate_threshold 19Kbit refill_delay 18ms \
             ce_threshold 20us timer_slack 21ns horizon 22s horizon_cap "
        );
        assert_eq!((told.maxrate, told.low_rate_threshold), (Some(1_875_000), 2_375), "bytes per second");
        let rate = |bits| FqOptions { maxrate: Some(BitRate(bits)), ..FqOptions::default() }.told().maxrate;
        assert_eq!((rate(7), rate(8)), (None, Some(1)), "less than a byte per second is no rate");
    }

    /// Goal: each count stands behind its own name. Method: counts, no two alike.
    #[test]
    fn every_count_has_its_name() {
        let counted = FqStatistics {
            flows: 31,
            inactive_flows: 12,
            throttled_flows: 13,
            next_throttled: Some(Nanos(14)),
            throttled: 15,
            collected_flows: 16,
            fast_path_packets: 17,
            flow_limit_drops: 18,
            band_drops: [19, 20, 21],
            band_packets: [22, 23, 24],
            horizon_drops: 25,
            horizon_caps: 26,
            ce_marks: 27,
            too_long_packets: 28,
            unthrottle_latency: Nanos(29_000),
        };
        assert_eq!(
            figures(&counted).text(OURS),
            "  flows 31 (inactive 12 throttled 13)\n  gc 16 highprio 17 throttled 15 latency 29us ce_mark 27 \
             flows_plimit 18 horizon_drops 25 horizon_caps 26"
        );
    }

    const OURS: TcStyle = TcStyle {
        statistics: true,
        details: false,
        binary: false,
        pretty: false,
        numeric: false,
        ours: true,
    };

    /// Goal: an fq that was told nothing is shown with all defaults, and with what it counted. Method: two
    /// packets that go straight through.
    #[test]
    fn defaults_and_counts_are_shown() {
        let mut queue: Fq<Vec<u8>> = FqOptions::default().make(&QdiscContext::default()).expect("made");
        for _ in 0..2 {
            assert!(queue.enqueue(Nanos(0), vec![0; 100]).is_accepted());
            assert!(queue.dequeue(Nanos(0)).packet().is_some());
        }
        let shown = FqOptions::default().describe(&queue);
        assert_eq!(
            shown.options.text(OURS),
            "limit 10000p flow_limit 100p buckets 1024 orphan_mask 1023 bands 3 \
             priomap 1 2 2 2 1 2 0 0 1 1 1 1 1 1 1 1 weights 589824 196608 65536 quantum 3028b \
             initial_quantum 15140b low_rate_threshold 550Kbit refill_delay 40ms timer_slack 10us \
             horizon 10s horizon_drop "
        );
        assert_eq!(
            shown.figures.text(OURS),
            "  flows 0 (inactive 0 throttled 0)\n  gc 0 highprio 2 throttled 0"
        );
    }

    /// Goal: what cannot be is refused with the option, its value and the reason. Method: each that can be
    /// wrong.
    #[test]
    fn every_refusal_has_its_text() {
        let none = FqOptions::default();
        let mut bands = [1; 16];
        bands[9] = 7;
        for (options, refused) in [
            (
                FqOptions { quantum: Some(Bytes(0)), ..none.clone() },
                "fq: `quantum 0` cannot be: quantum of 0 bytes lets no flow send",
            ),
            (
                FqOptions { buckets: Some(0), ..none.clone() },
                "fq: `buckets 0` cannot be: 0 buckets keep no flow",
            ),
            (
                FqOptions { priomap: Some(Priomap(bands)), ..none.clone() },
                "fq: `priomap 7` cannot be: priority 9 is mapped to band 7 of 3, which begin at 0",
            ),
            (
                FqOptions { weights: Some(Weights([16_384, 16_385, 5])), ..none },
                "fq: `weights 5` cannot be: weight 5 of band 2 is below 16384",
            ),
        ] {
            let made = options.make(&QdiscContext::default()).map(|_: Fq<Vec<u8>>| ());
            assert_eq!(made.map_err(|refusal| refusal.to_string()), Err(refused.into()));
        }
    }

    /// Goal: where packets are bytes, what rests on what those do not tell is refused, with the reason; where
    /// they tell it, it is taken, and so is what rests on nothing. Method: each option, made and as a change.
    #[test]
    fn what_bytes_do_not_tell() {
        let none = FqOptions::default();
        let paced = FqOptions { pacing: Some(Pacing::On), ..none.clone() };
        let rate = FqOptions { maxrate: Some(BitRate(8_000_000)), ..none.clone() };
        let all = QdiscContext::default();
        let bytes = QdiscContext { origin: PacketOrigin::Bytes, ..all };
        let made =
            |options: &FqOptions, context: &QdiscContext| options.make(context).map(|_: Fq<Vec<u8>>| ());
        let (late, rate_of) = ("SCM_TXTIME", "SO_MAX_PACING_RATE");
        for (options, option, why) in [
            (FqOptions { horizon: Some(Nanos(50_000_000)), ..none.clone() }, "horizon 50ms", late),
            (FqOptions { beyond: Some(BeyondHorizon::Cap), ..none.clone() }, "horizon_cap", late),
            (FqOptions { beyond: Some(BeyondHorizon::Drop), ..none.clone() }, "horizon_drop", late),
            (paced.clone(), "pacing", rate_of),
        ] {
            let is_said = |said: Option<TcRefusal>| {
                let said = said.map(|refusal| refusal.to_string()).unwrap_or_default();
                said.starts_with(&format!("fq: `{option}` cannot be: ")) && said.contains(why)
            };
            assert!(is_said(made(&options, &bytes).err()), "{option}");
            assert_eq!(made(&options, &all), Ok(()), "a program's packets tell it");
            let mut queue: Fq<Vec<u8>> = none.make(&bytes).expect("it names nothing");
            assert!(is_said(options.change(&mut queue, &none, &bytes).err()), "{option}");
        }
        let both = FqOptions { maxrate: rate.maxrate, ..paced.clone() };
        assert_eq!((made(&both, &bytes), made(&rate, &bytes)), (Ok(()), Ok(())));
        let mut queue: Fq<Vec<u8>> = rate.make(&bytes).expect("a rate for all");
        assert_eq!(paced.change(&mut queue, &rate, &bytes), Ok(both), "it has its rate");
        let unpaced = FqOptions { pacing: Some(Pacing::Off), ..none };
        assert_eq!(made(&unpaced, &bytes), Ok(()));
    }
}

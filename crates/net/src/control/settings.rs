//! From what was typed behind a discipline's kind to what the discipline is told, with the defaults of `tc`.
//!
//! Source: the manual's page of each kind, and `tc` by behaviour. Deviations: `gap` alone reorders every
//! packet that it lets, as the kernel does (`tc` refuses it); a `change` of netem states all of it, where the
//! kernel keeps corruption, a rate and slots that are not named again.

use super::ControlError;
use super::text::time;
use quietcore_live::Nanos;
use quietcore_qdisc::tc::{self, BitRate, FqOptions, NetemOptions, Percent, TbfOptions};
use quietcore_qdisc::{
    Chance, Delay, Distribution, FqError, FqSettings, Horizon, LinkLayer, Loss, NetemError, NetemRate,
    NetemSettings, OnLoss, Probability, Rate, Slot, SlotSpacing, TbfError, TbfLimit, TbfSettings,
};

/// Packets, or bytes, of a fifo without a limit: what the kernel takes from the device's queue length, and
/// that many packets of Ethernet.
pub(super) const PFIFO_LIMIT: u32 = 1000;
pub(super) const BFIFO_LIMIT: u32 = PFIFO_LIMIT * 1514;

/// An option that cannot be as it is.
pub(super) fn refuse(
    of: &'static str,
    option: &'static str,
    value: impl ToString,
    remedy: impl Into<String>,
) -> ControlError {
    ControlError::Setting { of, option, value: value.to_string(), remedy: remedy.into() }
}

/// A rate in whole bytes per second, of which there is one at least.
pub(super) fn rate_of(of: &'static str, option: &'static str, rate: BitRate) -> Result<Rate, ControlError> {
    let bytes = Rate::bytes_per_second(rate.bytes_per_second());
    bytes.ok_or_else(|| refuse(of, option, rate, "a rate is one byte per second (8bit) at least"))
}

/// What counts besides a packet's bytes.
pub(super) fn with_costs(
    rate: Rate,
    (overhead, mpu): (Option<u16>, Option<tc::Bytes>),
    layer: Option<LinkLayer>,
) -> Rate {
    let rate = rate.overhead(i32::from(overhead.unwrap_or(0))).mpu(mpu.map_or(0, |mpu| mpu.0));
    rate.link_layer(layer.unwrap_or_default())
}

pub(super) fn probability(percent: Percent) -> Probability {
    Probability::from_share(percent.share())
}

fn maybe(percent: Option<Percent>) -> Probability {
    percent.map_or(Probability::NEVER, probability)
}

fn chance(typed: Option<tc::Chance>) -> Chance {
    typed.map_or_else(Chance::default, |typed| Chance {
        probability: probability(typed.percent),
        correlation: maybe(typed.correlation),
    })
}

fn table(distribution: tc::Distribution) -> Option<Distribution> {
    match distribution {
        tc::Distribution::Uniform => None,
        tc::Distribution::Normal => Some(Distribution::normal()),
        tc::Distribution::Pareto => Some(Distribution::pareto()),
        tc::Distribution::ParetoNormal => Some(Distribution::paretonormal()),
    }
}

/// What is not typed of a model follows from its first number, as `tc` has it.
fn loss(typed: Option<tc::Loss>) -> Loss {
    match typed {
        None => Loss::None,
        Some(tc::Loss::Random(random)) => Loss::Random(chance(Some(random))),
        Some(tc::Loss::State { p13, others: [p31, p32, p23, p14] }) => {
            let p13 = probability(p13);
            let p31 = p31.map_or(p13.complement(), probability);
            let p23 = p23.map_or(Probability::ALWAYS, probability);
            Loss::FourStates { p13, p31, p32: maybe(p32), p23, p14: maybe(p14) }
        }
        Some(tc::Loss::GeModel { p, others: [r, lost_in_bad, lost_in_good] }) => {
            let p = probability(p);
            Loss::GilbertElliott {
                p,
                r: r.map_or(p.complement(), probability),
                h: lost_in_bad.map_or(Probability::NEVER, |lost| probability(lost).complement()),
                lost_in_good: maybe(lost_in_good),
            }
        }
    }
}

fn slot(typed: tc::Slot) -> Slot {
    let spacing = match typed.timing {
        tc::SlotTiming::Between { min, max } => SlotSpacing::Between { min, max: max.unwrap_or(min) },
        tc::SlotTiming::Distributed { distribution, delay, jitter } => SlotSpacing::Distributed(Delay {
            latency: delay,
            jitter,
            correlation: Probability::NEVER,
            distribution: table(distribution),
        }),
    };
    let bytes = typed.bytes.map_or(0, |bytes| u64::from(bytes.0));
    Slot { spacing, packets: typed.packets.unwrap_or(0), bytes }
}

fn link_rate(typed: tc::LinkRate) -> Result<NetemRate, ControlError> {
    let bytes_per_second = rate_of("netem", "rate", typed.rate)?.get();
    let (overhead, cell) = (typed.overhead.unwrap_or(0), typed.cell.unwrap_or(0));
    let cell_overhead = typed.cell_overhead.unwrap_or(0);
    Ok(NetemRate { bytes_per_second, overhead, cell, cell_overhead })
}

pub(super) fn netem(typed: &NetemOptions) -> Result<NetemSettings, ControlError> {
    let delay = typed.delay.map_or_else(Delay::default, |delay| Delay {
        latency: delay.time,
        jitter: delay.jitter.unwrap_or_default(),
        correlation: maybe(delay.correlation),
        distribution: typed.distribution.and_then(table),
    });
    let gap = typed.gap.unwrap_or(u32::from(typed.reorder.is_some()));
    let settings = NetemSettings {
        limit: typed.limit.unwrap_or(1000),
        delay,
        loss: loss(typed.loss),
        on_loss: if typed.ecn.is_some() { OnLoss::Mark } else { OnLoss::Drop },
        duplicate: chance(typed.duplicate),
        corrupt: chance(typed.corrupt),
        reorder: chance(typed.reorder),
        gap,
        rate: typed.rate.map(link_rate).transpose()?.unwrap_or_default(),
        slot: typed.slot.map(slot),
    };
    settings.check().map_err(|error| {
        let (option, value, remedy) = match error {
            NetemError::ReorderWithoutDelay => {
                let option = if typed.reorder.is_some() { "reorder" } else { "gap" };
                (option, gap.to_string(), "reordering is not possible without some delay".into())
            }
            NetemError::SlotSpacing { min, max } => {
                ("slot", format!("{} {}", time(min), time(max)), "the shortest spacing comes first".into())
            }
            other => ("delay", delay_text(typed), other.to_string()),
        };
        refuse("netem", option, value, remedy)
    })?;
    Ok(settings)
}

fn delay_text(typed: &NetemOptions) -> String {
    typed.delay.map_or_else(String::new, |delay| time(delay.time))
}

/// Options that the parser has seen to; a command made by hand may lack them.
pub(super) fn needed<T: Copy>(
    of: &'static str,
    option: &'static str,
    typed: Option<T>,
) -> Result<T, ControlError> {
    typed.ok_or_else(|| refuse(of, option, "", "it has no default"))
}

pub(super) fn tbf(typed: &TbfOptions) -> Result<TbfSettings, ControlError> {
    let costs = |rate| with_costs(rate, (typed.overhead, typed.mpu), typed.linklayer);
    let rate = costs(rate_of("tbf", "rate", needed("tbf", "rate", typed.rate)?)?);
    let burst = needed("tbf", "burst", typed.burst)?;
    let limit = match (typed.limit, typed.latency) {
        (Some(bytes), _) => TbfLimit::Bytes(u64::from(bytes.0)),
        (None, latency) => TbfLimit::Latency(needed("tbf", "latency", latency)?),
    };
    let mut settings = TbfSettings::new(rate, burst.size.0, limit);
    if let Some(peak) = typed.peakrate {
        let minburst = needed("tbf", "mtu", typed.mtu)?;
        settings = settings.peak(costs(rate_of("tbf", "peakrate", peak)?), minburst.size.0);
    }
    Ok(settings)
}

/// What a tbf says of its settings.
pub(super) fn tbf_error(typed: &TbfOptions, error: &TbfError) -> ControlError {
    let text = |value: Option<&dyn ToString>| value.map_or_else(String::new, ToString::to_string);
    let (option, value) = match error {
        TbfError::Burst { .. } => ("burst", text(typed.burst.as_ref().map(|burst| burst as _))),
        TbfError::Limit { .. } => ("limit", text(typed.limit.as_ref().map(|limit| limit as _))),
        TbfError::Minburst { .. } => ("mtu", text(typed.mtu.as_ref().map(|mtu| mtu as _))),
        _ => ("peakrate", text(typed.peakrate.as_ref().map(|peak| peak as _))),
    };
    refuse("tbf", option, value, error.to_string())
}

/// What is typed now, and for the rest what was typed before: a change of fq is of what it names.
pub(super) fn fq_merged(now: FqOptions, before: &FqOptions) -> FqOptions {
    FqOptions {
        limit: now.limit.or(before.limit),
        flow_limit: now.flow_limit.or(before.flow_limit),
        quantum: now.quantum.or(before.quantum),
        initial_quantum: now.initial_quantum.or(before.initial_quantum),
        maxrate: now.maxrate.or(before.maxrate),
        buckets: now.buckets.or(before.buckets),
        orphan_mask: now.orphan_mask.or(before.orphan_mask),
        pacing: now.pacing.or(before.pacing),
        refill_delay: now.refill_delay.or(before.refill_delay),
        low_rate_threshold: now.low_rate_threshold.or(before.low_rate_threshold),
        ce_threshold: now.ce_threshold.or(before.ce_threshold),
        timer_slack: now.timer_slack.or(before.timer_slack),
        horizon: now.horizon.or(before.horizon),
        beyond: now.beyond.or(before.beyond),
        bands: now.bands.or(before.bands),
        priomap: now.priomap.or(before.priomap),
        weights: now.weights.or(before.weights),
    }
}

pub(super) fn fq(typed: &FqOptions) -> FqSettings {
    let mut settings = FqSettings::default();
    settings.limit = typed.limit.unwrap_or(settings.limit);
    settings.flow_limit = typed.flow_limit.unwrap_or(settings.flow_limit);
    settings.quantum = typed.quantum.map_or(settings.quantum, |bytes| bytes.0);
    settings.initial_quantum = typed.initial_quantum.map_or(settings.initial_quantum, |bytes| bytes.0);
    // As the kernel: a rate of 0 is none.
    settings.maxrate = typed.maxrate.map(BitRate::bytes_per_second).filter(|rate| *rate > 0);
    settings.buckets = typed.buckets.unwrap_or(settings.buckets);
    settings.orphan_mask = typed.orphan_mask.map(u64::from);
    settings.pacing = typed.pacing != Some(tc::Pacing::Off);
    settings.refill_delay = typed.refill_delay.unwrap_or(settings.refill_delay);
    let threshold = typed.low_rate_threshold.map(BitRate::bytes_per_second);
    settings.low_rate_threshold = threshold.unwrap_or(settings.low_rate_threshold);
    settings.ce_threshold = typed.ce_threshold;
    settings.timer_slack = typed.timer_slack.unwrap_or(settings.timer_slack);
    let (Horizon::Drop(span) | Horizon::Cap(span)) = settings.horizon;
    let span: Nanos = typed.horizon.unwrap_or(span);
    let caps = typed.beyond == Some(tc::BeyondHorizon::Cap);
    settings.horizon = if caps { Horizon::Cap(span) } else { Horizon::Drop(span) };
    settings.priomap = typed.priomap.map_or(settings.priomap, |map| map.0);
    settings.weights = typed.weights.map_or(settings.weights, |weights| weights.0);
    settings
}

/// What an fq says of its settings.
pub(super) fn fq_error(error: &FqError) -> ControlError {
    let (option, value) = match error {
        FqError::Quantum { bytes } => ("quantum", u64::from(*bytes)),
        FqError::Buckets { count } => ("buckets", u64::from(*count)),
        FqError::Band { band, .. } => ("priomap", u64::from(*band)),
        FqError::Weight { weight, .. } => ("weights", u64::from(*weight)),
        _ => ("fq", 0),
    };
    refuse("fq", option, value, error.to_string())
}

//! `netem` in `tc`: the defaults of its options, and what is made of them.
//!
//! Source: tc-netem(8), and `tc` by behaviour. Deviations: `gap` alone reorders every packet that it lets, as
//! the kernel does (`tc` refuses it); a `change` states all of it, where the kernel keeps corruption, a rate
//! and slots that are not named again.

use super::options::{
    DistributionName, LinkRate, NetemOptions, SlotTiming, TypedChance, TypedLoss, TypedSlot,
};
use super::text::text;
use super::{
    Chance, Netem, NetemDelay, NetemError, NetemLoss, NetemRate, NetemSettings, NetemSlot, OnLoss,
    Probability, SlotSpacing,
};
use crate::classful::TcDescription;
use crate::kind::{QdiscContext, QdiscKind, RandomWords};
use crate::refusal::TcRefusal;
use crate::tc::text::time_text;
use crate::tc::told::rate_of;
use crate::tc::units::Percent;
use crate::{Distribution, Packet};
use alloc::format;
use alloc::string::{String, ToString as _};
use core::fmt::Debug;

fn probability(percent: Percent) -> Probability {
    Probability::from_share(percent.share())
}

fn maybe(percent: Option<Percent>) -> Probability {
    percent.map_or(Probability::NEVER, probability)
}

fn chance(typed: Option<TypedChance>) -> Chance {
    typed.map_or_else(Chance::default, |typed| Chance {
        probability: probability(typed.percent),
        correlation: maybe(typed.correlation),
    })
}

fn table(distribution: DistributionName) -> Option<Distribution> {
    match distribution {
        DistributionName::Uniform => None,
        DistributionName::Normal => Some(Distribution::normal()),
        DistributionName::Pareto => Some(Distribution::pareto()),
        DistributionName::ParetoNormal => Some(Distribution::paretonormal()),
    }
}

/// What is not typed of a model follows from its first number, as `tc` has it.
fn loss(typed: Option<TypedLoss>) -> NetemLoss {
    match typed {
        None => NetemLoss::None,
        Some(TypedLoss::Random(random)) => NetemLoss::Random(chance(Some(random))),
        Some(TypedLoss::State { p13, others: [p31, p32, p23, p14] }) => {
            let p13 = probability(p13);
            let p31 = p31.map_or(p13.complement(), probability);
            let p23 = p23.map_or(Probability::ALWAYS, probability);
            NetemLoss::FourStates { p13, p31, p32: maybe(p32), p23, p14: maybe(p14) }
        }
        Some(TypedLoss::GeModel { p, others: [r, lost_in_bad, lost_in_good] }) => {
            let p = probability(p);
            NetemLoss::GilbertElliott {
                p,
                r: r.map_or(p.complement(), probability),
                h: lost_in_bad.map_or(Probability::NEVER, |lost| probability(lost).complement()),
                lost_in_good: maybe(lost_in_good),
            }
        }
    }
}

fn slot(typed: TypedSlot) -> NetemSlot {
    let spacing = match typed.timing {
        SlotTiming::Between { min, max } => SlotSpacing::Between { min, max: max.unwrap_or(min) },
        SlotTiming::Distributed { distribution, delay, jitter } => SlotSpacing::Distributed(NetemDelay {
            latency: delay,
            jitter,
            correlation: Probability::NEVER,
            distribution: table(distribution),
        }),
    };
    let bytes = typed.bytes.map_or(0, |bytes| u64::from(bytes.0));
    NetemSlot { spacing, packets: typed.packets.unwrap_or(0), bytes }
}

fn link_rate(typed: LinkRate) -> Result<NetemRate, TcRefusal> {
    let bytes_per_second = rate_of("netem", "rate", typed.rate)?.get();
    let (overhead, cell) = (typed.overhead.unwrap_or(0), typed.cell.unwrap_or(0));
    let cell_overhead = typed.cell_overhead.unwrap_or(0);
    Ok(NetemRate { bytes_per_second, overhead, cell, cell_overhead })
}

fn told(typed: &NetemOptions) -> Result<NetemSettings, TcRefusal> {
    let delay = typed.delay.map_or_else(NetemDelay::default, |delay| NetemDelay {
        latency: delay.time,
        jitter: delay.jitter.unwrap_or_default(),
        correlation: maybe(delay.correlation),
        distribution: typed.distribution.and_then(table),
    });
    Ok(NetemSettings {
        limit: typed.limit.unwrap_or(1000),
        delay,
        loss: loss(typed.loss),
        on_loss: if typed.ecn.is_some() { OnLoss::Mark } else { OnLoss::Drop },
        duplicate: chance(typed.duplicate),
        corrupt: chance(typed.corrupt),
        reorder: chance(typed.reorder),
        gap: gap(typed),
        rate: typed.rate.map(link_rate).transpose()?.unwrap_or_default(),
        slot: typed.slot.map(slot),
    })
}

fn gap(typed: &NetemOptions) -> u32 {
    typed.gap.unwrap_or(u32::from(typed.reorder.is_some()))
}

fn refused(typed: &NetemOptions, error: &NetemError) -> TcRefusal {
    let (option, value, remedy) = match error {
        NetemError::ReorderWithoutDelay => {
            let option = if typed.reorder.is_some() { "reorder" } else { "gap" };
            (option, gap(typed).to_string(), "reordering is not possible without some delay".into())
        }
        NetemError::SlotSpacing { min, max } => {
            let value = format!("{} {}", time_text(*min), time_text(*max));
            ("slot", value, "the shortest spacing comes first".into())
        }
        other @ NetemError::TooLong(_) => {
            let value = typed.delay.map_or_else(String::new, |delay| time_text(delay.time));
            ("delay", value, other.to_string())
        }
    };
    TcRefusal::setting("netem", option, value, remedy)
}

impl<P: Packet + Debug + Send> QdiscKind<P> for NetemOptions {
    type Made = Netem<P, RandomWords>;

    fn make(&self, context: &QdiscContext) -> Result<Self::Made, TcRefusal> {
        let random = (context.random)(self.seed.unwrap_or(context.seed));
        Netem::new(told(self)?, random, context.now).map_err(|error| refused(self, &error))
    }

    fn change(self, queue: &mut Self::Made, _: &Self, context: &QdiscContext) -> Result<Self, TcRefusal> {
        queue.change(told(&self)?, context.now).map_err(|error| refused(&self, &error))?;
        if let Some(seed) = self.seed {
            queue.set_random((context.random)(seed));
        }
        Ok(self)
    }

    fn describe(&self, queue: &Self::Made) -> TcDescription {
        let marked = self.ecn.map(|_| format!("ecn_mark {}", queue.marked()));
        TcDescription { options: text(self), notes: marked.into_iter().collect(), ..TcDescription::default() }
    }
}

//! `netem` in `tc`: the defaults of its options, and what is made of them.
//!
//! Source: tc-netem(8), and `tc` by behaviour. Deviations: `gap` alone reorders every packet that it lets, as
//! the kernel does (`tc` refuses it).

use super::options::{
    DistributionName, LinkRate, NetemOptions, SlotTiming, TypedChance, TypedLoss, TypedSlot,
};
use super::text::shown;
use super::{
    Chance, Netem, NetemDelay, NetemError, NetemLoss, NetemRate, NetemSettings, NetemSlot, OnLoss,
    Probability, SlotSpacing,
};
use crate::classful::TcDescription;
use crate::kind::{QdiscContext, QdiscKind, RandomWords};
use crate::refusal::TcRefusal;
use crate::tc::TcProperties;
use crate::tc::text::time_text;
use crate::tc::told::rate_of;
use crate::tc::units::Percent;
use crate::{Distribution, Packet};
use alloc::format;
use alloc::string::{String, ToString as _};
use core::fmt::Debug;

/// How a table is found by its name.
type FindTable = fn(&str) -> Result<Distribution, String>;

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

fn table(distribution: &DistributionName, find: FindTable) -> Result<Option<Distribution>, TcRefusal> {
    Ok(Some(match distribution {
        DistributionName::Uniform => return Ok(None),
        DistributionName::Normal => Distribution::normal(),
        DistributionName::Pareto => Distribution::pareto(),
        DistributionName::ParetoNormal => Distribution::paretonormal(),
        DistributionName::Table(name) => {
            find(name).map_err(|why| TcRefusal::NoDistribution { name: name.to_string(), why })?
        }
    }))
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

fn slot(typed: &TypedSlot, find: FindTable) -> Result<NetemSlot, TcRefusal> {
    let spacing = match &typed.timing {
        SlotTiming::Between { min, max } => SlotSpacing::Between { min: *min, max: max.unwrap_or(*min) },
        SlotTiming::Distributed { distribution, delay, jitter } => SlotSpacing::Distributed(NetemDelay {
            latency: *delay,
            jitter: *jitter,
            correlation: Probability::NEVER,
            distribution: table(distribution, find)?,
        }),
    };
    let bytes = typed.bytes.map_or(0, |bytes| u64::from(bytes.0));
    Ok(NetemSlot { spacing, packets: typed.packets.unwrap_or(0), bytes })
}

fn link_rate(typed: LinkRate) -> Result<NetemRate, TcRefusal> {
    let bytes_per_second = rate_of("netem", "rate", typed.rate)?.get();
    let (overhead, cell) = (typed.overhead.unwrap_or(0), typed.cell.unwrap_or(0));
    let cell_overhead = typed.cell_overhead.unwrap_or(0);
    Ok(NetemRate { bytes_per_second, overhead, cell, cell_overhead })
}

fn told(typed: &NetemOptions, find: FindTable) -> Result<NetemSettings, TcRefusal> {
    let distribution = typed.distribution.as_ref().map(|name| table(name, find)).transpose()?.flatten();
    let delay = typed.delay.map_or_else(NetemDelay::default, |delay| NetemDelay {
        latency: delay.time,
        jitter: delay.jitter.unwrap_or_default(),
        correlation: maybe(delay.correlation),
        distribution,
    });
    Ok(NetemSettings {
        limit: typed.limit.unwrap_or(1000),
        delay,
        loss: loss(typed.loss),
        on_loss: if typed.ecn.is_some() { OnLoss::Mark } else { OnLoss::Drop },
        duplicate: chance(typed.told_duplicate()),
        corrupt: chance(typed.corrupt),
        reorder: chance(typed.reorder),
        gap: gap(typed),
        rate: typed.rate.map(link_rate).transpose()?.unwrap_or_default(),
        slot: typed.slot.as_ref().map(|typed| slot(typed, find)).transpose()?,
    })
}

fn gap(typed: &NetemOptions) -> u32 {
    typed.gap.unwrap_or(u32::from(typed.reorder.is_some()))
}

fn refused(typed: &NetemOptions, error: &NetemError) -> TcRefusal {
    let (option, value, remedy) = match error {
        NetemError::ReorderWithoutDelay => {
            let (option, value) = match typed.reorder {
                Some(TypedChance { percent, correlation: None }) => ("reorder", percent.to_string()),
                Some(TypedChance { percent, correlation: Some(like) }) => {
                    ("reorder", format!("{percent} {like}"))
                }
                None => ("gap", gap(typed).to_string()),
            };
            (option, value, "reordering is not possible without some delay".into())
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
        Netem::new(told(self, context.distribution)?, random, context.now)
            .map_err(|error| refused(self, &error))
    }

    /// As the kernel: what a line does not name is as it is without it, but for corruption, a rate, slots and
    /// a distribution, which stay.
    fn change(
        self,
        queue: &mut Self::Made,
        before: &Self,
        context: &QdiscContext,
    ) -> Result<Self, TcRefusal> {
        let kept = before.clone();
        let mut this = Self { corrupt: self.corrupt.or(kept.corrupt), rate: self.rate.or(kept.rate), ..self };
        let mut settings = told(&this, context.distribution)?;
        // Tables that stay are not looked up again: their file may have gone, or be another.
        if this.distribution.is_none() {
            settings.delay.distribution.clone_from(&queue.settings().delay.distribution);
            this.distribution = kept.distribution;
        }
        if this.slot.is_none() {
            settings.slot.clone_from(&queue.settings().slot);
            this.slot = kept.slot;
        }
        queue.change(settings, context.now).map_err(|error| refused(&this, &error))?;
        if let Some(seed) = this.seed {
            queue.set_random((context.random)(seed));
        }
        Ok(this)
    }

    fn describe(&self, queue: &Self::Made) -> TcDescription {
        let mut figures = TcProperties::default();
        if self.ecn.is_some() {
            figures.ours(|figures| figures.add("ecn_mark", "  [quietcore] ecn_mark {}", queue.marked()));
        }
        TcDescription { options: shown(self), figures }
    }
}

#[cfg(test)]
mod tests {
    use super::super::options::{Ecn, TypedDelay};
    use super::{
        Chance, Distribution, DistributionName, FindTable, LinkRate, Netem, NetemDelay, NetemLoss,
        NetemOptions, NetemRate, NetemSettings, NetemSlot, OnLoss, Percent, Probability, SlotSpacing,
        SlotTiming, TypedChance, TypedLoss, TypedSlot, told,
    };
    use crate::kind::{QdiscContext, QdiscKind as _};
    use crate::tc::units::{BitRate, Bytes};
    use alloc::format;
    use alloc::string::{String, ToString as _};
    use alloc::vec::Vec;
    use quietcore_core::Nanos;

    fn found(name: &str) -> Result<Distribution, String> {
        let table = Distribution::from_table(&[-8_192, 8_192]).ok().filter(|_| name == "steps");
        table.ok_or_else(|| "not there".into())
    }

    fn percent(percent: u64) -> Percent {
        Percent::from_billionths(percent * 1_000_000_000).expect("at most 100")
    }

    fn likely(at: u64) -> Probability {
        Probability::from_share(percent(at).share())
    }

    fn chance(at: u64, like_before: u64) -> (Option<TypedChance>, Chance) {
        let typed = TypedChance { percent: percent(at), correlation: Some(percent(like_before)) };
        (Some(typed), Chance { probability: likely(at), correlation: likely(like_before) })
    }

    /// Goal: each option is what it sets. Method: all of them, no two alike.
    #[test]
    fn every_option_is_told() {
        let ((loss, lost), (corrupt, corrupted)) = (chance(1, 2), chance(3, 4));
        let ((duplicate, duplicated), (reorder, reordered)) = (chance(5, 6), chance(7, 8));
        let typed = NetemOptions {
            limit: Some(9),
            delay: Some(TypedDelay {
                time: Nanos(10),
                jitter: Some(Nanos(11)),
                correlation: Some(percent(12)),
            }),
            distribution: Some(DistributionName::Pareto),
            loss: loss.map(TypedLoss::Random),
            ecn: Some(Ecn::Mark),
            corrupt,
            duplicate,
            reorder,
            gap: Some(13),
            rate: Some(LinkRate {
                rate: BitRate(14_000),
                overhead: Some(15),
                cell: Some(16),
                cell_overhead: Some(17),
            }),
            slot: Some(TypedSlot {
                timing: SlotTiming::Between { min: Nanos(18), max: Some(Nanos(19)) },
                packets: Some(20),
                bytes: Some(Bytes(21)),
            }),
            seed: Some(22),
        };
        let settings = NetemSettings {
            limit: 9,
            delay: NetemDelay {
                latency: Nanos(10),
                jitter: Nanos(11),
                correlation: likely(12),
                distribution: Some(Distribution::pareto()),
            },
            loss: NetemLoss::Random(lost),
            on_loss: OnLoss::Mark,
            duplicate: duplicated,
            corrupt: corrupted,
            reorder: reordered,
            gap: 13,
            rate: NetemRate { bytes_per_second: 1_750, overhead: 15, cell: 16, cell_overhead: 17 },
            slot: Some(NetemSlot {
                spacing: SlotSpacing::Between { min: Nanos(18), max: Nanos(19) },
                packets: 20,
                bytes: 21,
            }),
        };
        assert_eq!(told(&typed, found), Ok(settings));
    }

    /// Goal: what is not typed has its default. Method: no option; a rate, a slot and a reordering without
    /// what may be left out.
    #[test]
    fn what_is_not_typed() {
        assert_eq!(told(&NetemOptions::default(), found), Ok(NetemSettings::default()));
        let rate = LinkRate { rate: BitRate(8_000), overhead: None, cell: None, cell_overhead: None };
        let timing = SlotTiming::Between { min: Nanos(18), max: None };
        let typed = NetemOptions {
            rate: Some(rate),
            slot: Some(TypedSlot { timing, packets: None, bytes: None }),
            reorder: Some(TypedChance { percent: percent(7), correlation: None }),
            ..NetemOptions::default()
        };
        let settings = NetemSettings {
            rate: NetemRate { bytes_per_second: 1_000, ..NetemRate::default() },
            slot: Some(NetemSlot {
                spacing: SlotSpacing::Between { min: Nanos(18), max: Nanos(18) },
                packets: 0,
                bytes: 0,
            }),
            reorder: Chance { probability: likely(7), ..Chance::default() },
            gap: 1,
            ..NetemSettings::default()
        };
        assert_eq!(told(&typed, found), Ok(settings));
    }

    /// Goal: each name is its distribution. Method: slots of all four, and of a table that is found, whose
    /// delay and jitter differ.
    #[test]
    fn distributions_by_name() {
        for (distribution, expected) in [
            (DistributionName::Uniform, None),
            (DistributionName::Normal, Some(Distribution::normal())),
            (DistributionName::Pareto, Some(Distribution::pareto())),
            (DistributionName::ParetoNormal, Some(Distribution::paretonormal())),
            (DistributionName::Table("steps".into()), Distribution::from_table(&[-8_192, 8_192]).ok()),
        ] {
            let shown = format!("{distribution:?}");
            let timing = SlotTiming::Distributed { distribution, delay: Nanos(3), jitter: Nanos(2) };
            let slot = Some(TypedSlot { timing, packets: None, bytes: None });
            let options = NetemOptions { slot, ..NetemOptions::default() };
            let made = told(&options, found).expect("it can be");
            let delay = NetemDelay {
                latency: Nanos(3),
                jitter: Nanos(2),
                distribution: expected,
                ..NetemDelay::default()
            };
            let spacing = made.slot.map(|slot| slot.spacing);
            assert_eq!(spacing, Some(SlotSpacing::Distributed(delay)), "{shown}");
        }
    }

    fn context(find: FindTable) -> QdiscContext {
        QdiscContext { distribution: find, ..QdiscContext::default() }
    }

    /// Goal: a table that is not found is refused by its name and the reason. Method: of delays, and of
    /// slots.
    #[test]
    fn a_table_that_is_not_there() {
        let missing = DistributionName::Table("gone".into());
        let delay = Some(TypedDelay { time: Nanos(3), jitter: Some(Nanos(2)), correlation: None });
        let timing =
            SlotTiming::Distributed { distribution: missing.clone(), delay: Nanos(3), jitter: Nanos(2) };
        for options in [
            NetemOptions { delay, distribution: Some(missing), ..NetemOptions::default() },
            NetemOptions {
                slot: Some(TypedSlot { timing, packets: None, bytes: None }),
                ..NetemOptions::default()
            },
        ] {
            let made: Result<Netem<Vec<u8>, _>, _> = options.make(&context(found));
            let refusal = made.map(|_| ()).expect_err("it is not there").to_string();
            assert!(refusal.starts_with("netem: no distribution data for \"gone\": not there;"), "{refusal}");
        }
    }

    /// Goal: a change that names no table and no slot keeps both, though their file has gone; one that names
    /// another has that. Method: tables that are found when it is made and not when it is changed.
    #[test]
    fn tables_stay_without_their_file() {
        let steps = DistributionName::Table("steps".into());
        let jittery =
            |time| Some(TypedDelay { time: Nanos(time), jitter: Some(Nanos(2)), correlation: None });
        let timing =
            SlotTiming::Distributed { distribution: steps.clone(), delay: Nanos(3), jitter: Nanos(2) };
        let slot = Some(TypedSlot { timing, packets: None, bytes: None });
        let options =
            NetemOptions { delay: jittery(5), distribution: Some(steps), slot, ..NetemOptions::default() };
        let mut queue: Netem<Vec<u8>, _> = options.make(&context(found)).expect("it is there");
        let before = queue.settings().clone();
        let gone = context(|_| Err("gone".into()));
        let change = NetemOptions { delay: jittery(6), ..NetemOptions::default() };
        let options = change.change(&mut queue, &options, &gone).expect("nothing is looked up");
        let delay = NetemDelay { latency: Nanos(6), ..before.delay.clone() };
        assert_eq!(queue.settings(), &NetemSettings { delay, ..before });
        let normal = Some(DistributionName::Normal);
        let change = NetemOptions { delay: jittery(6), distribution: normal, ..NetemOptions::default() };
        change.change(&mut queue, &options, &gone).expect("it is one of netem's own");
        assert_eq!(queue.settings().delay.distribution, Some(Distribution::normal()));
    }
}

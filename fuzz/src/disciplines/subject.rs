//! Any discipline with any settings, and what can be changed about it while it works.

use super::numbers::{Random, class_id, numbers, rate, span};
use super::parcel::Parcel;
use super::queues;
use arbitrary::{Result, Unstructured};
use quietcore_core::Nanos;
use quietcore_qdisc::{
    Cake, Cbq, CbqClass, CbqOverlimit, CbqSettings, Chance, Classful, Codel, Distribution, Drr, Ets, Fifo,
    FifoLimit, Fq, FqCodel, FqSettings, Hfsc, HfscClass, Horizon, Htb, HtbClass, HtbSettings, InnerQdisc,
    Multiq, Netem, NetemDelay, NetemLoss, NetemRate, NetemSettings, NetemSlot, Noqueue, OnLoss, PfifoFast,
    Prio, PrioSettings, Probability, Qdisc, Red, ServiceCurve, Sfq, SlotSpacing, Tbf, TbfLimit, TbfSettings,
};

/// One of them.
#[derive(Debug)]
pub enum Subject {
    Fifo(Fifo<Parcel>),
    Tbf(Tbf<Parcel>),
    Netem(Netem<Parcel, Random>),
    Fq(Fq<Parcel>),
    Htb(Htb<Parcel>),
    Hfsc(Hfsc<Parcel>),
    Cbq(Cbq<Parcel>),
    Prio(Prio<Parcel>),
    Codel(Codel<Parcel>),
    FqCodel(FqCodel<Parcel>),
    Cake(Cake<Parcel, Random>),
    Sfq(Sfq<Parcel, Random>),
    Red(Red<Parcel, Random>),
    PfifoFast(PfifoFast<Parcel>),
    Noqueue(Noqueue<Parcel>),
    Multiq(Multiq<Parcel>),
    Drr(Drr<Parcel>),
    Ets(Ets<Parcel>),
}

impl Subject {
    /// As what every discipline is.
    pub fn qdisc(&mut self) -> &mut dyn Classful<Parcel> {
        match self {
            Self::Fifo(queue) => queue,
            Self::Tbf(queue) => queue,
            Self::Netem(queue) => queue,
            Self::Fq(queue) => queue,
            Self::Htb(queue) => queue,
            Self::Hfsc(queue) => queue,
            Self::Cbq(queue) => queue,
            Self::Prio(queue) => queue,
            Self::Codel(queue) => queue,
            Self::FqCodel(queue) => queue,
            Self::Cake(queue) => queue,
            Self::Sfq(queue) => queue,
            Self::Red(queue) => queue,
            Self::PfifoFast(queue) => queue,
            Self::Noqueue(queue) => queue,
            Self::Multiq(queue) => queue,
            Self::Drr(queue) => queue,
            Self::Ets(queue) => queue,
        }
    }

    /// `None` where the settings do not go together.
    pub fn arbitrary(now: Nanos, u: &mut Unstructured<'_>) -> Result<Option<Self>> {
        Ok(Some(match u.int_in_range(0..=17_u8)? {
            0 => Self::Fifo(fifo(u)?),
            1 => {
                let Some(tbf) = tbf(now, u)? else { return Ok(None) };
                Self::Tbf(if u.arbitrary()? { tbf.with_inner(inner(now, u)?) } else { tbf })
            }
            2 => {
                let duplicates = if u.arbitrary()? { chance(u)? } else { Chance::default() };
                let Some(netem) = netem(duplicates, now, u)? else { return Ok(None) };
                Self::Netem(if u.ratio(1, 3)? { netem.with_inner(inner(now, u)?) } else { netem })
            }
            3 => {
                let Some(fq) = fq(u)? else { return Ok(None) };
                Self::Fq(fq)
            }
            4 => Self::Htb(Htb::new(HtbSettings {
                default_class: u.int_in_range(0..=4)?,
                direct_qlen: u.int_in_range(0..=20)?,
                ..HtbSettings::default()
            })),
            5 => Self::Hfsc(Hfsc::new()),
            6 => Self::Cbq(Cbq::new(CbqSettings {
                default_class: u.int_in_range(0..=4)?,
                average_packet: u.int_in_range(1..=9_000)?,
                ..CbqSettings::new(rate(u)?)
            })),
            7 => {
                let Ok(prio) = Prio::new(prio_settings(u)?) else { return Ok(None) };
                Self::Prio(prio)
            }
            other => return Self::arbitrary_queue(other, now, u),
        }))
    }

    /// One that manages its queue, or shares by flows or bands.
    fn arbitrary_queue(kind: u8, now: Nanos, u: &mut Unstructured<'_>) -> Result<Option<Self>> {
        Ok(match kind {
            8 => Some(Self::Codel(Codel::new(queues::codel(u)?))),
            9 => {
                let flows = u.int_in_range(0..=8)?;
                FqCodel::new(queues::fq_codel(flows, u)?).ok().map(Self::FqCodel)
            }
            10 => queues::sfq(now, u)?.map(Self::Sfq),
            11 => queues::red(now, u)?.map(Self::Red),
            12 => Some(Self::PfifoFast(PfifoFast::new())),
            13 => Some(Self::Noqueue(Noqueue::new())),
            14 => Some(Self::Multiq(queues::multiq(u)?)),
            15 => Some(Self::Drr(Drr::new(1))),
            16 => queues::cake(u)?.map(Self::Cake),
            _ => Ets::new(queues::ets(u)?).ok().map(Self::Ets),
        })
    }

    /// Whether one packet may come out twice.
    pub fn duplicates(&self) -> bool {
        matches!(self, Self::Netem(netem) if netem.settings().duplicate != Chance::default())
    }

    /// Whether all that it holds, its classes hold.
    pub fn holds_by_class(&self) -> bool {
        matches!(self, Self::Prio(_) | Self::Multiq(_) | Self::Drr(_) | Self::Ets(_))
    }

    /// Changes something, if it has something to change; what is refused is no matter.
    pub fn change(&mut self, now: Nanos, u: &mut Unstructured<'_>) -> Result<()> {
        if u.ratio(1, 4)? {
            let class = class_id(u)?;
            let inner = if u.ratio(7, 8)? { Some(inner_boxed(now, u)?) } else { None };
            let _ = self.qdisc().graft_inner(now, class, inner);
            return Ok(());
        }
        let (class, parent) = (class_id(u)?, u.arbitrary::<bool>()?.then(|| class_id(u)).transpose()?);
        let verb = u.int_in_range(0..=4_u8)?;
        match self {
            Self::Netem(queue) => {
                let settings = netem_settings(queue.settings().duplicate, u)?;
                let _ = queue.change(settings, now);
            }
            Self::Htb(queue) => match verb {
                0 | 1 => _ = queue.add_class(parent, class, htb_class(u)?),
                2 => _ = queue.change_class(class, htb_class(u)?),
                3 => _ = queue.remove_class(class),
                _ => _ = queue.set_inner(class, inner(now, u)?),
            },
            Self::Hfsc(queue) => match verb {
                0 | 1 => {
                    _ = queue.add_class(parent, class, hfsc_class(u)?);
                    queue.set_default_class(Some(class));
                }
                2 => _ = queue.change_class(now, class, hfsc_class(u)?),
                3 => _ = queue.remove_class(class),
                _ => _ = queue.set_leaf(now, class, inner_boxed(now, u)?),
            },
            Self::Cbq(queue) => match verb {
                0 | 1 => _ = queue.add_class(parent, class, cbq_class(u)?),
                2 => _ = queue.change_class(class, cbq_class(u)?),
                3 => _ = queue.remove_class(class),
                _ => _ = queue.set_inner(class, inner(now, u)?),
            },
            Self::Prio(queue) => match verb {
                0 | 1 => _ = queue.change(prio_settings(u)?),
                _ => _ = queue.graft_inner(now, class, Some(inner_boxed(now, u)?)),
            },
            Self::Codel(queue) => queue.change(queues::codel(u)?),
            Self::FqCodel(queue) => {
                // Another number of flows is refused.
                let flows = queue.settings().flows + u32::from(u.ratio(1, 8)?);
                let _ = queue.change(now, queues::fq_codel(flows, u)?);
            }
            Self::Cake(queue) => _ = queue.change(queues::cake_settings(u)?),
            Self::Red(queue) => {
                if let Some(settings) = queues::red_settings(u)? {
                    let _ = queue.change(settings, now);
                }
            }
            Self::Drr(queue) => queues::change_drr(queue, verb, u)?,
            Self::Ets(queue) => match verb {
                0..=2 => _ = queue.change(queues::ets(u)?),
                _ => _ = queue.set_quantum(u.int_in_range(0..=16)?, u.int_in_range(0..=9_000)?),
            },
            Self::Fifo(_) | Self::Tbf(_) | Self::Fq(_) | Self::Sfq(_) => {}
            Self::PfifoFast(_) | Self::Noqueue(_) | Self::Multiq(_) => {}
        }
        Ok(())
    }
}

fn prio_settings(u: &mut Unstructured<'_>) -> Result<PrioSettings> {
    let priomap = u.arbitrary::<[u8; 16]>()?.map(|band| band % 4);
    Ok(PrioSettings { bands: u.int_in_range(2..=5)?, priomap, ..PrioSettings::default() })
}

fn probability(u: &mut Unstructured<'_>) -> Result<Probability> {
    Ok(Probability::from_share(u.arbitrary()?))
}

fn chance(u: &mut Unstructured<'_>) -> Result<Chance> {
    Ok(Chance { probability: probability(u)?, correlation: probability(u)? })
}

fn inner(now: Nanos, u: &mut Unstructured<'_>) -> Result<InnerQdisc<Parcel>> {
    Ok(InnerQdisc::boxed(inner_boxed(now, u)?))
}

fn inner_boxed(now: Nanos, u: &mut Unstructured<'_>) -> Result<Box<dyn Qdisc<Parcel>>> {
    Ok(match u.int_in_range(0..=10_u8)? {
        0 => Box::new(fifo(u)?),
        1 => boxed_or_fifo(tbf(now, u)?, u)?,
        2 => boxed_or_fifo(netem(Chance::default(), now, u)?, u)?,
        3 => boxed_or_fifo(fq(u)?, u)?,
        4 => Box::new(Codel::new(queues::codel(u)?)),
        5 => boxed_or_fifo(FqCodel::new(queues::fq_codel(4, u)?).ok(), u)?,
        6 => boxed_or_fifo(queues::sfq(now, u)?, u)?,
        7 => boxed_or_fifo(queues::red(now, u)?, u)?,
        8 => Box::new(PfifoFast::new()),
        9 => boxed_or_fifo(queues::cake(u)?, u)?,
        _ => boxed_or_fifo(Ets::new(queues::ets(u)?).ok(), u)?,
    })
}

fn boxed_or_fifo(
    made: Option<impl Qdisc<Parcel>>,
    u: &mut Unstructured<'_>,
) -> Result<Box<dyn Qdisc<Parcel>>> {
    Ok(match made {
        Some(made) => Box::new(made),
        None => Box::new(fifo(u)?),
    })
}

fn fifo(u: &mut Unstructured<'_>) -> Result<Fifo<Parcel>> {
    Ok(Fifo::new(if u.arbitrary()? {
        FifoLimit::Packets(u.int_in_range(0..=50)?)
    } else {
        FifoLimit::Bytes(u.int_in_range(0..=200_000)?)
    }))
}

fn tbf(now: Nanos, u: &mut Unstructured<'_>) -> Result<Option<Tbf<Parcel>>> {
    let limit = if u.arbitrary()? {
        TbfLimit::Bytes(u.int_in_range(0..=200_000)?)
    } else {
        TbfLimit::Latency(span(u)?)
    };
    let mut settings = TbfSettings::new(rate(u)?, u.int_in_range(0..=100_000)?, limit);
    if u.arbitrary()? {
        settings = settings.peak(rate(u)?, u.int_in_range(0..=100_000)?);
    }
    Ok(Tbf::new(settings, now).ok())
}

fn delay(u: &mut Unstructured<'_>) -> Result<NetemDelay> {
    Ok(NetemDelay {
        latency: span(u)?,
        jitter: span(u)?,
        correlation: probability(u)?,
        distribution: u.ratio(1, 4)?.then(Distribution::pareto),
    })
}

fn netem_settings(duplicate: Chance, u: &mut Unstructured<'_>) -> Result<NetemSettings> {
    let loss = match u.int_in_range(0..=3_u8)? {
        0 => NetemLoss::None,
        1 => NetemLoss::Random(chance(u)?),
        2 => NetemLoss::gilbert(probability(u)?, probability(u)?),
        _ => NetemLoss::FourStates {
            p13: probability(u)?,
            p31: probability(u)?,
            p32: probability(u)?,
            p23: probability(u)?,
            p14: probability(u)?,
        },
    };
    let spacing = if u.arbitrary()? {
        SlotSpacing::Between { min: span(u)?, max: span(u)? }
    } else {
        SlotSpacing::Distributed(delay(u)?)
    };
    let slot = NetemSlot { spacing, packets: u.int_in_range(0..=4)?, bytes: u.int_in_range(0..=5_000)? };
    Ok(NetemSettings {
        limit: u.int_in_range(0..=50)?,
        delay: delay(u)?,
        loss,
        on_loss: if u.arbitrary()? { OnLoss::Drop } else { OnLoss::Mark },
        duplicate,
        corrupt: chance(u)?,
        reorder: chance(u)?,
        gap: u.int_in_range(0..=3)?,
        rate: NetemRate {
            bytes_per_second: if u.arbitrary()? { rate(u)?.get() } else { 0 },
            overhead: u.int_in_range(-2_000..=2_000)?,
            cell: u.int_in_range(0..=100)?,
            cell_overhead: u.int_in_range(-150..=100)?,
        },
        slot: u.ratio(1, 3)?.then_some(slot),
    })
}

fn netem(duplicate: Chance, now: Nanos, u: &mut Unstructured<'_>) -> Result<Option<Netem<Parcel, Random>>> {
    let random = numbers(u64::from(u.arbitrary::<u32>()?) | 1);
    let settings = netem_settings(duplicate, u)?;
    Ok(Netem::new(settings, Box::new(random) as Random, now).ok())
}

fn fq(u: &mut Unstructured<'_>) -> Result<Option<Fq<Parcel>>> {
    let mut settings = FqSettings {
        limit: u.int_in_range(0..=60)?,
        flow_limit: u.int_in_range(0..=20)?,
        buckets: u.int_in_range(0..=16)?,
        refill_delay: span(u)?,
        low_rate_threshold: u.int_in_range(0..=1_000_000)?,
        ce_threshold: Some(span(u)?),
        timer_slack: span(u)?,
        horizon: if u.arbitrary()? { Horizon::Drop(span(u)?) } else { Horizon::Cap(span(u)?) },
        maxrate: u.arbitrary::<bool>()?.then(|| rate(u)).transpose()?.map(|rate| rate.get()),
        pacing: !u.ratio(1, 5)?,
        ..FqSettings::new(u.int_in_range(0..=9_000)?)
    };
    if u.arbitrary()? {
        settings.quantum = u.int_in_range(0..=5_000)?;
        settings.initial_quantum = u.int_in_range(0..=20_000)?;
    }
    Ok(Fq::new(settings).ok())
}

fn htb_class(u: &mut Unstructured<'_>) -> Result<HtbClass> {
    Ok(HtbClass {
        ceil: rate(u)?,
        burst: u.arbitrary::<Option<u32>>()?.map(u64::from),
        cburst: u.arbitrary::<Option<u32>>()?.map(u64::from),
        prio: u.int_in_range(0..=9)?,
        quantum: u.arbitrary::<bool>()?.then(|| u.int_in_range(0..=100_000)).transpose()?,
        mtu: u.int_in_range(0..=9_000)?,
        ..HtbClass::new(rate(u)?)
    })
}

fn curve(u: &mut Unstructured<'_>) -> Result<ServiceCurve> {
    let slope = |u: &mut Unstructured<'_>| Ok(if u.ratio(1, 6)? { 0 } else { rate(u)?.get() });
    Ok(ServiceCurve::two_piece(slope(u)?, span(u)?, slope(u)?))
}

fn hfsc_class(u: &mut Unstructured<'_>) -> Result<HfscClass> {
    Ok(HfscClass {
        realtime: u.arbitrary::<bool>()?.then(|| curve(u)).transpose()?,
        link_share: u.ratio(3, 4)?.then(|| curve(u)).transpose()?,
        upper_limit: u.ratio(1, 3)?.then(|| curve(u)).transpose()?,
    })
}

fn cbq_class(u: &mut Unstructured<'_>) -> Result<CbqClass> {
    Ok(CbqClass {
        allot: u.int_in_range(0..=9_000)?,
        weight: u.arbitrary::<bool>()?.then(|| u.arbitrary()).transpose()?,
        prio: u.int_in_range(0..=9)?,
        max_burst: u.int_in_range(0..=300)?,
        min_burst: u.int_in_range(0..=50)?,
        min_idle: u.arbitrary::<bool>()?.then(|| span(u)).transpose()?,
        ewma_log: u.int_in_range(0..=25)?,
        bounded: u.arbitrary()?,
        isolated: u.arbitrary()?,
        overlimit: if u.arbitrary()? { CbqOverlimit::Classic } else { CbqOverlimit::Delay },
        ..CbqClass::new(rate(u)?)
    })
}

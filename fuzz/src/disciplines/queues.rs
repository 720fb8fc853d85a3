//! Settings of what manages its queue or shares by flows and bands: codel, fq_codel, sfq, red, drr, ets and
//! cake.

use super::numbers::{Random, class_id, numbers, rate, span};
use super::parcel::Parcel;
use arbitrary::{Result, Unstructured};
use quietcore_core::Nanos;
use quietcore_qdisc::{
    Cake, CakeAckFilter, CakeCells, CakeFraming, CakeIsolation, CakeSettings, CakeTins, CeSelector, CodelLaw,
    CodelSettings, Drr, EtsSettings, FqCodelSettings, IdleDamping, Multiq, Red, RedCurve, RedSettings, Sfq,
    SfqRed, SfqSettings,
};
use std::num::NonZeroU16;

/// A number of any magnitude, 0 included.
fn number(u: &mut Unstructured<'_>) -> Result<u32> {
    Ok(u.arbitrary::<u32>()? >> u.int_in_range(0..=31_u8)?)
}

/// A quantum that the longest packet needs some hundred turns for, at most; sometimes 0.
fn quantum(u: &mut Unstructured<'_>) -> Result<u32> {
    Ok(if u.ratio(1, 12)? { 0 } else { 300 + number(u)? % 20_000 })
}

fn law(u: &mut Unstructured<'_>) -> Result<CodelLaw> {
    Ok(CodelLaw {
        target: span(u)?,
        interval: span(u)?,
        ecn: u.arbitrary()?,
        ce_threshold: u.arbitrary::<bool>()?.then(|| span(u)).transpose()?,
        ce_selector: CeSelector { value: u.arbitrary()?, mask: u.arbitrary()? },
        mtu: u.int_in_range(0..=9_000)?,
    })
}

pub(super) fn codel(u: &mut Unstructured<'_>) -> Result<CodelSettings> {
    Ok(CodelSettings { limit: u.int_in_range(0..=50)?, law: law(u)? })
}

pub(super) fn fq_codel(flows: u32, u: &mut Unstructured<'_>) -> Result<FqCodelSettings> {
    Ok(FqCodelSettings {
        major: 1,
        limit: u.int_in_range(0..=60)?,
        flows,
        quantum: quantum(u)?,
        memory_limit: number(u)?,
        drop_batch: u.int_in_range(0..=70)?,
        law: law(u)?,
    })
}

fn curve(u: &mut Unstructured<'_>) -> Result<Option<RedCurve>> {
    let weight_log = u.int_in_range(0..=33)?;
    let Some(idle) = IdleDamping::new(weight_log, u.int_in_range(0..=9_000)?, rate(u)?.get()) else {
        return Ok(None);
    };
    let (min, max, probability) = (number(u)?, number(u)?, u.arbitrary()?);
    Ok(Some(RedCurve { min, max, weight_log, probability, idle }))
}

pub(super) fn red_settings(u: &mut Unstructured<'_>) -> Result<Option<RedSettings>> {
    let Some(curve) = curve(u)? else { return Ok(None) };
    Ok(Some(RedSettings {
        limit: u.int_in_range(0..=200_000)?,
        curve,
        ecn: u.arbitrary()?,
        harddrop: u.arbitrary()?,
        nodrop: u.arbitrary()?,
        adaptive: u.arbitrary()?,
    }))
}

pub(super) fn red(now: Nanos, u: &mut Unstructured<'_>) -> Result<Option<Red<Parcel, Random>>> {
    let random = numbers(u64::from(u.arbitrary::<u32>()?) | 1);
    let Some(settings) = red_settings(u)? else { return Ok(None) };
    Ok(Red::new(settings, Box::new(random) as Random, now).ok())
}

pub(super) fn sfq(now: Nanos, u: &mut Unstructured<'_>) -> Result<Option<Sfq<Parcel, Random>>> {
    let random = numbers(u64::from(u.arbitrary::<u32>()?) | 1);
    let red = if u.arbitrary()? { curve(u)? } else { None };
    let red = match red {
        Some(curve) => Some(SfqRed { curve, ecn: u.arbitrary()?, harddrop: u.arbitrary()? }),
        None => None,
    };
    let settings = SfqSettings {
        major: 1,
        limit: u.int_in_range(1..=60)?,
        quantum: quantum(u)?,
        depth: u.int_in_range(0..=128)?,
        flows: u.int_in_range(0..=10)?,
        divisor: 1 << u.int_in_range(0..=4_u8)?,
        perturb: if u.arbitrary()? { span(u)? } else { Nanos(0) },
        headdrop: u.arbitrary()?,
        red,
    };
    Ok(Sfq::new(settings, Box::new(random) as Random, now).ok())
}

pub(super) fn cake_settings(u: &mut Unstructured<'_>) -> Result<CakeSettings> {
    use CakeIsolation as I;
    use CakeTins as T;
    Ok(CakeSettings {
        major: 1,
        bandwidth: u.arbitrary::<bool>()?.then(|| number(u).map(u64::from)).transpose()?,
        autorate_ingress: u.arbitrary()?,
        interval: span(u)?,
        target: span(u)?,
        tins: *u.choose(&[T::BestEffort, T::Precedence, T::Diffserv3, T::Diffserv4, T::Diffserv8])?,
        isolation: *u.choose(&[
            I::FlowBlind,
            I::SourceHost,
            I::DestinationHost,
            I::Hosts,
            I::Flows,
            I::DualSourceHost,
            I::DualDestinationHost,
            I::Triple,
        ])?,
        wash: u.arbitrary()?,
        ack_filter: *u.choose(&[
            CakeAckFilter::Off,
            CakeAckFilter::Conservative,
            CakeAckFilter::Aggressive,
        ])?,
        split_gso: u.arbitrary()?,
        ingress: u.arbitrary()?,
        framing: CakeFraming {
            raw: u.arbitrary()?,
            overhead: u.int_in_range(-66..=258)?,
            mpu: u.int_in_range(0..=258)?,
            cells: *u.choose(&[CakeCells::Plain, CakeCells::Atm, CakeCells::Ptm])?,
        },
        memory_limit: u.arbitrary::<bool>()?.then(|| number(u)).transpose()?,
        fwmark: u.arbitrary()?,
        mtu: u.int_in_range(0..=9_000)?,
    })
}

pub(super) fn cake(u: &mut Unstructured<'_>) -> Result<Option<Cake<Parcel, Random>>> {
    let random = numbers(u64::from(u.arbitrary::<u32>()?) | 1);
    Ok(Cake::new(cake_settings(u)?, Box::new(random) as Random).ok())
}

pub(super) fn multiq(u: &mut Unstructured<'_>) -> Result<Multiq<Parcel>> {
    Ok(Multiq::new(1, NonZeroU16::new(u.int_in_range(1..=5)?).expect("not 0")))
}

pub(super) fn ets(u: &mut Unstructured<'_>) -> Result<EtsSettings> {
    let bands = u.int_in_range(0..=17)?;
    let mut settings = EtsSettings::new(bands, u.int_in_range(0..=bands)?);
    for told in &mut settings.quanta {
        *told = quantum(u)?.max(u32::from(u.ratio(19, 20)?));
    }
    settings.priomap = u.arbitrary::<[u8; 16]>()?.map(|band| band % bands.max(1));
    Ok(settings)
}

/// Adds, changes or removes a class; what is refused is no matter.
pub(super) fn change_drr(queue: &mut Drr<Parcel>, verb: u8, u: &mut Unstructured<'_>) -> Result<()> {
    let class = class_id(u)?;
    match verb {
        0..=2 => _ = queue.add_class(class, quantum(u)?),
        3 => _ = queue.change_class(class, quantum(u)?),
        _ => _ = queue.remove_class(class),
    }
    Ok(())
}

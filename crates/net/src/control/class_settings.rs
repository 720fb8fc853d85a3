//! From what was typed behind a class's kind to what the class is told, with the defaults of `tc`.
//!
//! Source: tc-htb(8), tc-hfsc(8), tc-cbq(8). Deviations: of cbq, the link's bandwidth and the size of a usual
//! packet are the discipline's, and a class that says otherwise is refused.

use super::ControlError;
use super::settings::{needed, rate_of, refuse, with_costs};
use super::text::time;
use quietcore_live::Nanos;
use quietcore_qdisc::tc::{
    BitRate, CbqBorrow, CbqClassOptions, CbqOptions, CbqShare, Curve, HfscClassOptions, HtbClassOptions,
    HtbOptions,
};
use quietcore_qdisc::{
    CbqClass, CbqError, CbqSettings, ClassId, HfscClass, HfscError, HtbClass, HtbError, HtbSettings,
    ServiceCurve,
};

pub(super) fn htb(typed: &HtbOptions, major: u16) -> Result<HtbSettings, ControlError> {
    let before = HtbSettings::default();
    let r2q = typed.r2q.unwrap_or(before.r2q);
    if r2q == 0 {
        return Err(refuse("htb", "r2q", r2q, "rates are divided by it: 1 at least"));
    }
    let default_class = typed.default.map_or(0, |minor| minor.0);
    Ok(HtbSettings {
        major,
        default_class,
        r2q,
        direct_qlen: typed.direct_qlen.unwrap_or(before.direct_qlen),
    })
}

pub(super) fn htb_class(typed: &HtbClassOptions) -> Result<HtbClass, ControlError> {
    let costs = |rate| with_costs(rate, (typed.overhead, typed.mpu), typed.linklayer);
    let rate = costs(rate_of("htb", "rate", needed("htb", "rate", typed.rate)?)?);
    let ceil = typed.ceil.map(|ceil| rate_of("htb", "ceil", ceil)).transpose()?.map_or(rate, costs);
    if typed.quantum.is_some_and(|quantum| quantum.0 == 0) {
        return Err(refuse(
            "htb",
            "quantum",
            0,
            "it could never send: leave it out, or name a packet's size",
        ));
    }
    let mut class = HtbClass { ceil, ..HtbClass::new(rate) };
    class.burst = typed.burst.map(|burst| u64::from(burst.size.0));
    class.cburst = typed.cburst.map(|burst| u64::from(burst.size.0));
    class.prio = u8::try_from(typed.prio.unwrap_or(0)).unwrap_or(7);
    class.quantum = typed.quantum.map(|quantum| quantum.0);
    class.mtu = typed.mtu.map_or(class.mtu, |mtu| mtu.0);
    Ok(class)
}

/// What is typed now, and for the rest what was typed before: a change of a class is of the curves it names.
pub(super) fn hfsc_merged(now: HfscClassOptions, before: &HfscClassOptions) -> HfscClassOptions {
    // `sc` is `rt` and `ls`, which may be changed apart.
    let both = |options: &HfscClassOptions| (options.rt.or(options.sc), options.ls.or(options.sc));
    let ((rt, ls), (rt_before, ls_before)) = (both(&now), both(before));
    let (rt, ls, ul) = (rt.or(rt_before), ls.or(ls_before), now.ul.or(before.ul));
    if rt == ls {
        return HfscClassOptions { sc: rt, ul, ..HfscClassOptions::default() };
    }
    HfscClassOptions { rt, ls, sc: None, ul }
}

pub(super) fn hfsc_class(typed: &HfscClassOptions) -> Result<HfscClass, ControlError> {
    let of = |option, given: Option<Curve>| given.map(|given| curve(option, given)).transpose();
    let both = of("sc", typed.sc)?;
    Ok(HfscClass {
        realtime: of("rt", typed.rt)?.or(both),
        link_share: of("ls", typed.ls)?.or(both),
        upper_limit: of("ul", typed.ul)?,
    })
}

fn curve(option: &'static str, typed: Curve) -> Result<ServiceCurve, ControlError> {
    match typed {
        Curve::Slopes { m1, d, m2 } => {
            let (m1, m2) = (m1.map_or(0, BitRate::bytes_per_second), m2.bytes_per_second());
            match d {
                None | Some(Nanos(0)) => Ok(ServiceCurve::linear(m2)),
                Some(d) => Ok(ServiceCurve::two_piece(m1, d, m2)),
            }
        }
        Curve::Work { umax, dmax, rate } => {
            let bytes = rate.bytes_per_second();
            match (umax, dmax) {
                (_, None) => Ok(ServiceCurve::linear(bytes)),
                (umax, Some(dmax)) => {
                    let umax = umax.map_or(0, |umax| umax.0);
                    ServiceCurve::from_delay(umax, dmax, bytes).map_err(|error| {
                        let value = format!("umax {umax}b dmax {} rate {rate}", time(dmax));
                        refuse("hfsc", option, value, error.to_string())
                    })
                }
            }
        }
    }
}

/// The discipline, and what the link's own class is told.
pub(super) fn cbq(typed: &CbqOptions, major: u16) -> Result<(CbqSettings, CbqClass), ControlError> {
    let bandwidth = rate_of("cbq", "bandwidth", needed("cbq", "bandwidth", typed.bandwidth)?)?;
    let avpkt = needed("cbq", "avpkt", typed.avpkt)?;
    if avpkt.0 == 0 {
        return Err(refuse("cbq", "avpkt", avpkt, "a usual packet has some bytes"));
    }
    let bandwidth = with_costs(bandwidth, (None, typed.mpu), None);
    let settings = CbqSettings { major, average_packet: avpkt.0, ..CbqSettings::new(bandwidth) };
    let mut link = CbqClass { bounded: true, isolated: true, ..CbqClass::new(bandwidth) };
    link.allot = typed.allot.map_or(link.allot, |allot| allot.0);
    link.ewma_log = ewma(typed.ewma, link.ewma_log)?;
    Ok((settings, link))
}

fn ewma(typed: Option<u32>, default: u8) -> Result<u8, ControlError> {
    let Some(log) = typed else { return Ok(default) };
    let known = u8::try_from(log).ok().filter(|log| (1..=20).contains(log));
    known.ok_or_else(|| refuse("cbq", "ewma", log, "the estimate follows by 2^-1 to 2^-20: 1 to 20"))
}

pub(super) fn cbq_class(typed: &CbqClassOptions, all: &CbqSettings) -> Result<CbqClass, ControlError> {
    let rate = rate_of("cbq", "rate", needed("cbq", "rate", typed.rate)?)?;
    if let Some(bandwidth) = typed.bandwidth.filter(|rate| rate.bytes_per_second() != all.bandwidth.get()) {
        let link = BitRate(all.bandwidth.get() * 8);
        return Err(refuse("cbq", "bandwidth", bandwidth, format!("the link's is {link}")));
    }
    if let Some(avpkt) = typed.avpkt.filter(|avpkt| avpkt.0 != all.average_packet) {
        let remedy = format!("it is the discipline's here: {}b", all.average_packet);
        return Err(refuse("cbq", "avpkt", avpkt, remedy));
    }
    let mut class = CbqClass::new(with_costs(rate, (None, typed.mpu), None));
    class.allot = typed.allot.map_or(class.allot, |allot| allot.0);
    class.weight = typed.weight.map(|weight| weight.bytes_per_second().max(1));
    class.prio = typed.prio.and_then(|prio| u8::try_from(prio).ok()).unwrap_or(class.prio);
    class.max_burst = typed.maxburst.unwrap_or(class.max_burst);
    class.min_burst = typed.minburst.unwrap_or(class.min_burst);
    class.min_idle = typed.minidle.map(|micros| Nanos(u64::from(micros) * 1_000));
    class.ewma_log = ewma(typed.ewma, class.ewma_log)?;
    class.bounded = typed.borrow == Some(CbqBorrow::Bounded);
    class.isolated = typed.share == Some(CbqShare::Isolated);
    Ok(class)
}

pub(super) fn htb_error(error: HtbError, known: Vec<ClassId>) -> ControlError {
    match error {
        HtbError::Unknown(class) | HtbError::UnknownParent(class) => {
            ControlError::UnknownClass { class, known }
        }
        HtbError::Exists(class) => ControlError::ClassExists { class },
        HtbError::HasChildren(class) => ControlError::ClassInUse { class, by: "classes below it" },
        HtbError::HoldsPackets(class) => {
            ControlError::ClassInUse { class, by: "packets that are queued in it" }
        }
        other => ControlError::NotPossible { what: other.to_string(), remedy: "there are 8 levels" },
    }
}

pub(super) fn hfsc_error(error: HfscError, known: Vec<ClassId>) -> ControlError {
    match error {
        HfscError::Unknown(class) => ControlError::UnknownClass { class, known },
        HfscError::Exists(class) => ControlError::ClassExists { class },
        HfscError::HasChildren(class) => ControlError::ClassInUse { class, by: "classes below it" },
        HfscError::TooDeep(_) => {
            ControlError::NotPossible { what: error.to_string(), remedy: "put it further up" }
        }
        other => {
            let remedy = "give `ls` or `sc` a rate; only `rt` and `ul` may do without";
            ControlError::NotPossible { what: other.to_string(), remedy }
        }
    }
}

pub(super) fn cbq_error(error: CbqError, known: Vec<ClassId>) -> ControlError {
    match error {
        CbqError::Unknown(class) | CbqError::UnknownParent(class) => {
            ControlError::UnknownClass { class, known }
        }
        CbqError::Exists(class) => ControlError::ClassExists { class },
        CbqError::InUse(class) => ControlError::ClassInUse { class, by: "classes below it, or the link" },
        other => ControlError::NotPossible { what: other.to_string(), remedy: "there are 8 levels" },
    }
}

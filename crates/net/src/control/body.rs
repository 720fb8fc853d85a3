//! A discipline of any kind: made, changed where it runs, and reached into.

use super::ControlError;
use super::settings::{self, BFIFO_LIMIT, PFIFO_LIMIT};
use super::{class_settings, settings::refuse};
use core::fmt::Debug;
use quietcore_live::Nanos;
use quietcore_qdisc::tc::QdiscOptions;
use quietcore_qdisc::{
    Cbq, Child, ClassId, Fifo, Fq, Hfsc, Htb, Limit, Netem, NetemError, Packet, Qdisc, Tbf,
};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng as _, SeedableRng as _};

/// Where netem's numbers come from.
pub(super) type Random = Box<dyn FnMut() -> u32 + Send>;

/// The numbers of a seed: ChaCha8's.
fn random(seed: u64) -> Random {
    let mut generator = ChaCha8Rng::seed_from_u64(seed);
    Box::new(move || generator.next_u32())
}

#[derive(Debug)]
pub(super) enum Body<P> {
    Fifo(Fifo<P>),
    Netem(Box<Netem<P, Random>>),
    Tbf(Box<Tbf<P>>),
    Fq(Box<Fq<P>>),
    Htb(Box<Htb<P>>),
    Hfsc(Box<Hfsc<P>>),
    Cbq(Box<Cbq<P>>),
}

fn fifo_limit(options: &QdiscOptions) -> Option<Limit> {
    match options {
        QdiscOptions::Pfifo(typed) => Some(Limit::Packets(typed.limit.unwrap_or(PFIFO_LIMIT))),
        QdiscOptions::Bfifo(typed) => {
            Some(Limit::Bytes(u64::from(typed.limit.map_or(BFIFO_LIMIT, |limit| limit.0))))
        }
        _ => None,
    }
}

fn netem_error(error: NetemError) -> ControlError {
    refuse("netem", "delay", "", error.to_string())
}

fn default_class(major: u16, options: &quietcore_qdisc::tc::HfscOptions) -> Option<ClassId> {
    options.default.map(|minor| ClassId::new(major, minor.0))
}

impl<P: Packet + Debug + Send> Body<P> {
    /// One of that kind with the handle `major`; `seed` is for netem, if the line names none.
    pub(super) fn new(
        options: &QdiscOptions,
        major: u16,
        seed: u64,
        now: Nanos,
    ) -> Result<Self, ControlError> {
        Ok(match options {
            QdiscOptions::Netem(typed) => {
                let random = random(typed.seed.unwrap_or(seed));
                let netem = Netem::new(settings::netem(typed)?, random, now).map_err(netem_error)?;
                Self::Netem(Box::new(netem))
            }
            QdiscOptions::Tbf(typed) => {
                let tbf = Tbf::new(settings::tbf(typed)?, now);
                Self::Tbf(Box::new(tbf.map_err(|error| settings::tbf_error(typed, &error))?))
            }
            QdiscOptions::Fq(typed) => {
                let fq = Fq::new(settings::fq(typed)).map_err(|error| settings::fq_error(&error))?;
                Self::Fq(Box::new(fq))
            }
            QdiscOptions::Htb(typed) => Self::Htb(Box::new(Htb::new(class_settings::htb(typed, major)?))),
            QdiscOptions::Hfsc(typed) => {
                let mut hfsc = Hfsc::new();
                hfsc.set_default_class(default_class(major, typed));
                Self::Hfsc(Box::new(hfsc))
            }
            QdiscOptions::Cbq(typed) => {
                let (settings, link) = class_settings::cbq(typed, major)?;
                let mut cbq = Cbq::new(settings);
                // The link's class is always there.
                let _ = cbq.change_class(ClassId::new(major, 0), link);
                Self::Cbq(Box::new(cbq))
            }
            other => match fifo_limit(other) {
                Some(limit) => Self::Fifo(Fifo::new(limit)),
                None => {
                    let what = format!("{} can only be a device's root", other.kind());
                    return Err(ControlError::NotPossible { what, remedy: "use `root`" });
                }
            },
        })
    }

    /// Tells it something else; what it holds stays. Gives what it has been told in all then.
    pub(super) fn change(
        &mut self,
        (now_typed, before): (QdiscOptions, &QdiscOptions),
        major: u16,
        now: Nanos,
    ) -> Result<QdiscOptions, ControlError> {
        match (self, now_typed) {
            (Self::Netem(netem), QdiscOptions::Netem(typed)) => {
                netem.change(settings::netem(&typed)?, now).map_err(netem_error)?;
                if let Some(seed) = typed.seed {
                    netem.set_random(random(seed));
                }
                Ok(QdiscOptions::Netem(typed))
            }
            (Self::Tbf(tbf), QdiscOptions::Tbf(typed)) => {
                let changed = tbf.change(settings::tbf(&typed)?, now);
                changed.map_err(|error| settings::tbf_error(&typed, &error))?;
                Ok(QdiscOptions::Tbf(typed))
            }
            (Self::Fq(fq), QdiscOptions::Fq(typed)) => {
                let merged = match before {
                    QdiscOptions::Fq(before) => settings::fq_merged(*typed, before),
                    _ => *typed,
                };
                fq.change(settings::fq(&merged)).map_err(|error| settings::fq_error(&error))?;
                Ok(QdiscOptions::Fq(Box::new(merged)))
            }
            (Self::Hfsc(hfsc), QdiscOptions::Hfsc(typed)) => {
                hfsc.set_default_class(default_class(major, &typed));
                Ok(QdiscOptions::Hfsc(typed))
            }
            (Self::Htb(_) | Self::Cbq(_), typed @ (QdiscOptions::Htb(_) | QdiscOptions::Cbq(_))) => {
                let what = format!("Change operation not supported by specified qdisc: {}", typed.kind());
                let remedy = "`del` it and add it again; its classes can be changed";
                Err(ControlError::NotPossible { what, remedy })
            }
            (Self::Fifo(fifo), typed) if fifo_limit(&typed).is_some() => {
                fifo.set_limit(fifo_limit(&typed).unwrap_or(Limit::Packets(PFIFO_LIMIT)));
                Ok(typed)
            }
            (_, typed) => Err(ControlError::OtherKind { found: before.kind(), named: typed.kind() }),
        }
    }

    pub(super) fn qdisc(&self) -> &dyn Qdisc<P> {
        match self {
            Self::Fifo(fifo) => fifo,
            Self::Netem(netem) => &**netem,
            Self::Tbf(tbf) => &**tbf,
            Self::Fq(fq) => &**fq,
            Self::Htb(htb) => &**htb,
            Self::Hfsc(hfsc) => &**hfsc,
            Self::Cbq(cbq) => &**cbq,
        }
    }

    pub(super) fn qdisc_mut(&mut self) -> &mut dyn Qdisc<P> {
        match self {
            Self::Fifo(fifo) => fifo,
            Self::Netem(netem) => &mut **netem,
            Self::Tbf(tbf) => &mut **tbf,
            Self::Fq(fq) => &mut **fq,
            Self::Htb(htb) => &mut **htb,
            Self::Hfsc(hfsc) => &mut **hfsc,
            Self::Cbq(cbq) => &mut **cbq,
        }
    }

    /// What is inside a class; of netem and tbf, which have one, whatever it is called.
    pub(super) fn inner(&self, class: ClassId) -> Option<&Child<P>> {
        match self {
            Self::Fifo(_) | Self::Fq(_) => None,
            Self::Netem(netem) => netem.inner(),
            Self::Tbf(tbf) => Some(tbf.inner()),
            Self::Htb(htb) => htb.inner(class),
            Self::Hfsc(hfsc) => hfsc.inner(class),
            Self::Cbq(cbq) => cbq.inner(class),
        }
    }

    /// Changes what is inside a class.
    pub(super) fn with_inner(&mut self, now: Nanos, class: ClassId, change: impl FnOnce(&mut Child<P>)) {
        match self {
            Self::Fifo(_) | Self::Fq(_) => {}
            Self::Netem(netem) => netem.inner_mut().into_iter().for_each(once(change)),
            Self::Tbf(tbf) => change(tbf.inner_mut()),
            Self::Htb(htb) => htb.with_inner(class, change).unwrap_or_default(),
            Self::Hfsc(hfsc) => hfsc.with_inner(now, class, change).unwrap_or_default(),
            Self::Cbq(cbq) => cbq.with_inner(class, change).unwrap_or_default(),
        }
    }

    /// Puts a discipline into a class, or the default one; what the one before held is dropped. Says whether
    /// that class can have one.
    pub(super) fn set_inner(&mut self, now: Nanos, class: ClassId, inner: Option<Box<dyn Qdisc<P>>>) -> bool {
        let first = || Box::new(Fifo::new(Limit::Packets(PFIFO_LIMIT))) as Box<dyn Qdisc<P>>;
        match self {
            Self::Fifo(_) | Self::Fq(_) => return false,
            Self::Netem(netem) => netem.set_inner(inner.map(Child::boxed)),
            Self::Tbf(tbf) => tbf.set_inner(inner.map(Child::boxed)),
            Self::Htb(htb) => {
                return htb.set_inner(class, Child::boxed(inner.unwrap_or_else(first))).is_ok();
            }
            Self::Hfsc(hfsc) => return hfsc.set_leaf(now, class, inner.unwrap_or_else(first)).is_ok(),
            Self::Cbq(cbq) => {
                return cbq.set_inner(class, Child::boxed(inner.unwrap_or_else(first))).is_ok();
            }
        }
        true
    }
}

/// For what there is once at most.
fn once<T>(change: impl FnOnce(T)) -> impl FnMut(T) {
    let mut change = Some(change);
    move |value| {
        if let Some(change) = change.take() {
            change(value);
        }
    }
}

//! `ets` and its classes in `tc`: the options, their defaults, what is shown.
//!
//! Source: tc-ets(8), and `tc` by behaviour. Quanta are plain numbers of bytes, without a unit.

use super::{Ets, EtsError, EtsSettings};
use crate::classful::TcDescription;
use crate::kind::{ClassKind, QdiscContext, QdiscKind};
use crate::prio::tc::PrioBands;
use crate::refusal::TcRefusal;
use crate::tc::TcProperties;
use crate::tc::error::{TcError, TcProblem};
use crate::tc::scalar::Show as _;
use crate::tc::table::{Complete, options};
use crate::tc::value::OptionValue;
use crate::tc::words::LineWords;
use crate::{ClassId, Packet};
use alloc::format;
use alloc::vec::Vec;
use core::fmt::{self, Debug, Formatter};
use quietcore_core::Nanos;

/// The kernel takes no quantum that is shorter, so that a packet costs few turns.
const QUANTUM_MIN: u32 = 256;

options! {
    /// What was typed behind `ets`.
    pub struct EtsOptions of "ets" {
        /// How many bands there are; 0 is as many as are strict or have a quantum.
        bands: u8 = "bands" in 0..=16,
        /// How many of them are strict.
        strict: u8 = "strict" in 0..=16,
        /// What those that share send in their turns.
        quanta: EtsQuanta = "quanta",
        /// Each priority's band.
        priomap: PrioBands = "priomap",
    }
}

options! {
    /// What was typed behind `ets`, for a class.
    pub struct EtsClassOptions of "ets" {
        /// Bytes that it sends in its turn.
        quantum: u32 = "quantum" in 1..=4_294_967_295,
    }
}

impl Complete for EtsOptions {
    fn lacks(&self) -> Option<TcProblem> {
        let quanta = self.quanta.as_ref().map_or(0, |quanta| quanta.0.len());
        let least = usize::from(self.strict.unwrap_or(0)) + quanta;
        if self.count() == 0 {
            return Some(TcProblem::Missing { of: "ets", what: "`bands`, `strict` or `quanta`" });
        }
        if usize::from(self.count()) < least {
            let option = if self.bands.is_some_and(|bands| bands > 0) { "bands" } else { "quanta" };
            let needs = "a band for each that is strict and for each quantum, 16 at most";
            return Some(TcProblem::Needs { option, needs });
        }
        let priomap = self.priomap.iter().flat_map(|map| &map.0);
        if priomap.into_iter().any(|band| *band >= self.count()) {
            return Some(TcProblem::Needs { option: "priomap", needs: "bands, from 0, that there are" });
        }
        None
    }
}

impl Complete for EtsClassOptions {}

/// Bytes, from 1 to 16 times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EtsQuanta(
    /// Quanta.
    pub Vec<u32>,
);

impl OptionValue for EtsQuanta {
    fn take(words: &mut LineWords<'_>, name: &'static str) -> Result<Self, TcError> {
        let mut quanta = Vec::new();
        let mut next = Some(words.scalar(name)?);
        while let Some(quantum) = next {
            words.in_range(quantum, 1..=u32::MAX)?;
            quanta.push(quantum);
            next = if quanta.len() < 16 { words.optional(name)? } else { None };
        }
        Ok(Self(quanta))
    }

    fn put(&self, name: &'static str, out: &mut Formatter<'_>) -> fmt::Result {
        write!(out, " {name}")?;
        self.0.iter().try_for_each(|quantum| quantum.show(out))
    }
}

impl EtsOptions {
    /// How many bands there are, 16 at most.
    fn count(&self) -> u8 {
        let quanta = self.quanta.as_ref().map_or(0, |quanta| quanta.0.len()) as u8; // 16 at most
        let typed = self.bands.filter(|bands| *bands > 0);
        typed.unwrap_or_else(|| (self.strict.unwrap_or(0) + quanta).min(16))
    }

    fn told(&self, major: u16) -> EtsSettings {
        let mut settings = EtsSettings::new(self.count(), self.strict.unwrap_or(0));
        settings.major = major;
        let sharing = settings.quanta.iter_mut().skip(settings.strict.into());
        for (entry, quantum) in sharing.zip(self.quanta.iter().flat_map(|typed| &typed.0)) {
            *entry = (*quantum).max(QUANTUM_MIN);
        }
        for (entry, band) in settings.priomap.iter_mut().zip(self.priomap.iter().flat_map(|typed| &typed.0)) {
            *entry = *band;
        }
        settings
    }
}

fn refused(error: &EtsError) -> TcRefusal {
    let reason = format!("{error}");
    match error {
        EtsError::Bands(count) => TcRefusal::setting("ets", "bands", count, reason),
        EtsError::Strict { strict, .. } => TcRefusal::setting("ets", "strict", strict, reason),
        EtsError::Quantum { .. } => TcRefusal::setting("ets", "quanta", 0, reason),
        EtsError::Band { band, .. } => TcRefusal::setting("ets", "priomap", band, reason),
        EtsError::NotSharing { band } => {
            let what = format!("class :{:x} of ets: {reason}", band + 1);
            TcRefusal::NotPossible { what, remedy: "name a band behind the strict ones" }
        }
    }
}

impl<P: Packet + Debug + Send> QdiscKind<P> for EtsOptions {
    type Made = Ets<P>;

    fn make(&self, context: &QdiscContext) -> Result<Ets<P>, TcRefusal> {
        Ets::new(self.told(context.handle)).map_err(|error| refused(&error))
    }

    /// As in the kernel, which is told all of it: what is not typed is the default's.
    fn change(self, queue: &mut Ets<P>, _: &Self, context: &QdiscContext) -> Result<Self, TcRefusal> {
        queue.change(self.told(context.handle)).map_err(|error| refused(&error))?;
        Ok(self)
    }

    fn describe(&self, queue: &Ets<P>) -> TcDescription {
        let told = queue.settings();
        let mut options = TcProperties::default();
        options.add("bands", "bands {} ", told.bands);
        if told.strict > 0 {
            options.add("strict", "strict {} ", told.strict);
        }
        if told.strict < told.bands {
            options.text_only("quanta ");
            let sharing = usize::from(told.strict)..usize::from(told.bands);
            options.list("quanta", "{} ", told.quanta[sharing].iter().copied());
        }
        options.text_only("priomap ");
        options.list("priomap", "{} ", told.priomap);
        TcDescription { options, ..TcDescription::default() }
    }
}

impl<P: Packet + Debug + Send> ClassKind<P> for EtsClassOptions {
    type Of = Ets<P>;

    fn add(&self, _: &mut Ets<P>, _: Option<ClassId>, id: ClassId) -> Result<(), TcRefusal> {
        let what = format!("Operation not supported: ets has no class {id}, and its classes are its bands");
        Err(TcRefusal::NotPossible { what, remedy: "`qdisc change` says how many bands there are" })
    }

    fn change(self, queue: &mut Ets<P>, id: ClassId, _: &Self, _: Nanos) -> Result<Self, TcRefusal> {
        let band = queue.band_of(id).ok_or(TcRefusal::UnknownClass(id))?;
        if let Some(quantum) = self.quantum {
            queue.set_quantum(band, quantum.max(QUANTUM_MIN)).map_err(|error| refused(&error))?;
        }
        Ok(self)
    }

    fn describe(&self, queue: &Ets<P>, id: ClassId) -> TcDescription {
        crate::Classful::describe_class(queue, id)
    }
}

#[cfg(test)]
mod random {
    use super::EtsQuanta;
    use crate::tc::tests::random::Random;
    use proptest::strategy::{BoxedStrategy, Strategy as _};

    impl Random for EtsQuanta {
        fn random() -> BoxedStrategy<Self> {
            proptest::collection::vec(1..=u32::MAX, 1..=16).prop_map(Self).boxed()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Ets, EtsClassOptions, EtsOptions, EtsQuanta, EtsSettings, PrioBands};
    use crate::ClassId;
    use crate::kind::{ClassKind as _, QdiscContext, QdiscKind as _};
    use std::string::ToString as _;
    use std::vec;
    use std::vec::Vec;

    fn told(options: &EtsOptions) -> EtsSettings {
        let made: Ets<Vec<u8>> = options.make(&QdiscContext::default()).expect("they can be");
        *made.settings()
    }

    /// Goal: each option is what it sets, and quanta are 256 at least as in the kernel. Method: all of them;
    /// only quanta, of which there is a band each.
    #[test]
    fn every_option_is_told() {
        let typed = EtsOptions {
            bands: Some(5),
            strict: Some(2),
            quanta: Some(EtsQuanta(vec![1, 700])),
            priomap: Some(PrioBands(vec![3, 2, 1])),
        };
        let mut expected = EtsSettings::new(5, 2);
        expected.quanta[2..4].copy_from_slice(&[256, 700]);
        expected.priomap[..3].copy_from_slice(&[3, 2, 1]);
        assert_eq!(told(&typed), expected);
        let quanta = Some(EtsQuanta(vec![300, 400]));
        let mut expected = EtsSettings::new(2, 0);
        expected.quanta[..2].copy_from_slice(&[300, 400]);
        assert_eq!(told(&EtsOptions { quanta, bands: Some(0), ..EtsOptions::default() }), expected);
        assert_eq!(told(&EtsOptions { strict: Some(3), ..EtsOptions::default() }), EtsSettings::new(3, 3));
    }

    /// Goal: what cannot be is refused, with the option and the reason; a class has another quantum, and no
    /// other class is added. Method: options that no line gives; classes that are strict, that share, that
    /// are not there.
    #[test]
    fn refusals_and_classes() {
        let refused = |options: &EtsOptions| {
            let made: Result<Ets<Vec<u8>>, _> = options.make(&QdiscContext::default());
            made.map(|_| ()).map_err(|refusal| refusal.to_string())
        };
        let said = |text: &str| Err(text.into());
        let bands = |bands, strict| EtsOptions { bands, strict, ..EtsOptions::default() };
        assert_eq!(refused(&bands(None, None)), said("ets: `bands 0` cannot be: 0 bands: there are 1 to 16"));
        assert_eq!(refused(&bands(Some(2), Some(3))), said("ets: `strict 3` cannot be: 3 strict bands of 2"));
        let priomap = Some(PrioBands(vec![0, 2]));
        assert_eq!(
            refused(&EtsOptions { priomap, ..bands(Some(2), None) }),
            said(
                "ets: `priomap 2` cannot be: priority 1 has band 2: the last one is below the number of bands"
            )
        );
        let mut queue: Ets<Vec<u8>> =
            bands(Some(2), Some(1)).make(&QdiscContext::default()).expect("it can be");
        let class = |minor| ClassId::new(1, minor);
        let quantum = |bytes| EtsClassOptions { quantum: Some(bytes) };
        let mut change = |options: EtsClassOptions, minor| {
            let before = EtsClassOptions::default();
            let changed = options.change(&mut queue, class(minor), &before, quietcore_core::Nanos(0));
            (changed.map(|_| ()).map_err(|refusal| refusal.to_string()), queue.settings().quanta[1])
        };
        assert_eq!(change(quantum(900), 2), (Ok(()), 900));
        assert_eq!(change(EtsClassOptions::default(), 2), (Ok(()), 900));
        assert_eq!(change(quantum(9), 2), (Ok(()), 256));
        let strict = "class :1 of ets: strict bands do not have a configurable quantum, and band 0 is none that \
                      shares; name a band behind the strict ones";
        assert_eq!(change(quantum(900), 1), (said(strict), 256));
        assert_eq!(change(quantum(900), 3), (said("Specified class 1:3 not found"), 256));
        let added = quantum(900).add(&mut queue, None, class(3)).map_err(|refusal| refusal.to_string());
        assert!(added.is_err_and(|said| said.starts_with("Operation not supported: ets has no class 1:3")));
    }
}

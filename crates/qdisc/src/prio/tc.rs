//! `prio` in `tc`: the options, their defaults, what is shown.
//!
//! Source: tc-prio(8), and `tc` by behaviour.

use super::{Prio, PrioError, PrioSettings};
use crate::Packet;
use crate::classful::TcDescription;
use crate::kind::{QdiscContext, QdiscKind};
use crate::refusal::TcRefusal;
use crate::tc::TcProperties;
use crate::tc::error::TcError;
use crate::tc::scalar::Show as _;
use crate::tc::table::{Complete, options};
use crate::tc::value::OptionValue;
use crate::tc::words::LineWords;
use alloc::format;
use alloc::vec::Vec;
use core::fmt::{self, Debug, Formatter};

options! {
    /// What was typed behind `prio`.
    pub struct PrioOptions of "prio" {
        /// How many bands there are.
        bands: u8 = "bands" in 2..=16,
        /// Each priority's band.
        priomap: PrioBands = "priomap",
    }
}

impl Complete for PrioOptions {}

/// The bands of the first priorities, from 1 to 16 of them. The others have those of [`PrioSettings`], or
/// with `ets` its last band.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrioBands(
    /// Bands, from 0.
    pub Vec<u8>,
);

impl OptionValue for PrioBands {
    fn take(words: &mut LineWords<'_>, name: &'static str) -> Result<Self, TcError> {
        let mut bands = Vec::new();
        let mut next = Some(words.scalar(name)?);
        while let Some(band) = next {
            words.in_range(band, 0..=15)?;
            bands.push(band);
            next = if bands.len() < 16 { words.optional(name)? } else { None };
        }
        Ok(Self(bands))
    }

    fn put(&self, name: &'static str, out: &mut Formatter<'_>) -> fmt::Result {
        write!(out, " {name}")?;
        self.0.iter().try_for_each(|band| band.show(out))
    }
}

impl PrioOptions {
    fn told(&self, major: u16) -> PrioSettings {
        let mut settings = PrioSettings { major, ..PrioSettings::default() };
        settings.bands = self.bands.unwrap_or(settings.bands);
        for (entry, band) in settings.priomap.iter_mut().zip(self.priomap.iter().flat_map(|typed| &typed.0)) {
            *entry = *band;
        }
        settings
    }
}

fn refused(error: PrioError) -> TcRefusal {
    let (option, value) = match error {
        PrioError::Bands(count) => ("bands", count),
        PrioError::Band { band, .. } => ("priomap", band),
    };
    TcRefusal::setting("prio", option, value, format!("{error}"))
}

impl<P: Packet + Debug + Send> QdiscKind<P> for PrioOptions {
    type Made = Prio<P>;

    fn make(&self, context: &QdiscContext) -> Result<Prio<P>, TcRefusal> {
        Prio::new(self.told(context.handle)).map_err(refused)
    }

    /// As in the kernel, which is told all of it: what is not typed is the default's.
    fn change(self, queue: &mut Prio<P>, _: &Self, context: &QdiscContext) -> Result<Self, TcRefusal> {
        queue.change(self.told(context.handle)).map_err(refused)?;
        Ok(self)
    }

    fn describe(&self, queue: &Prio<P>) -> TcDescription {
        let told = queue.settings();
        let mut options = TcProperties::default();
        options.add("bands", "bands {} priomap", told.bands);
        options.list("priomap", " {}", told.priomap);
        options.add_json("multiqueue", false);
        TcDescription { options, ..TcDescription::default() }
    }
}

#[cfg(test)]
impl crate::tc::tests::random::Random for PrioBands {
    fn random() -> proptest::strategy::BoxedStrategy<Self> {
        use proptest::strategy::Strategy as _;
        proptest::collection::vec(0..=15_u8, 1..=16).prop_map(Self).boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::{Prio, PrioBands, PrioOptions};
    use crate::kind::{QdiscContext, QdiscKind as _};
    use std::string::ToString as _;
    use std::vec;
    use std::vec::Vec;

    /// Goal: what cannot be is refused with the option, its value and the reason. Method: too few bands, and
    /// a band that there is not.
    #[test]
    fn every_refusal_has_its_text() {
        for (bands, priomap, refused) in [
            (1, vec![0], "prio: `bands 1` cannot be: 1 bands: there are 2 to 16"),
            (
                4,
                vec![0, 3, 2, 5],
                "prio: `priomap 5` cannot be: priority 3 has band 5: the last one is below the number of \
                 bands",
            ),
        ] {
            let options = PrioOptions { bands: Some(bands), priomap: Some(PrioBands(priomap)) };
            let made = options.make(&QdiscContext::default()).map(|_: Prio<Vec<u8>>| ());
            assert_eq!(made.map_err(|refusal| refusal.to_string()), Err(refused.into()));
        }
    }
}

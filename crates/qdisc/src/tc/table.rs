//! Options as tables: a structure, its names, how it is read and how it is written, from one list.
//!
//! `options!` makes a structure whose fields are what was typed; `switch!` a choice between words that stand
//! alone. A field's first name is its full one; a name may be shortened as long as it fits one field only
//! (Deviation: `tc` allows that for some options, and takes the first that fits).

use super::error::{TcError, TcProblem};
use super::words::{LineWords, OptionName};

/// A structure of options.
pub(crate) trait OptionTable: Default {
    /// What they are options of.
    const KIND: &'static str;
    /// "option of" that.
    const ROLE: &'static str;
    /// All names, and the full one of each.
    const NAMES: &'static [OptionName];

    /// Takes the value of the option `name`, a full one that was just taken.
    fn set(&mut self, name: &'static str, words: &mut LineWords<'_>) -> Result<(), TcError>;

    /// What is typed now, and for the rest what was typed before.
    fn merged(self, before: Self) -> Self;
}

/// What a structure of options lacks to be carried out.
pub(crate) trait Complete: OptionTable {
    /// The first thing that it lacks.
    fn lacks(&self) -> Option<TcProblem> {
        None
    }
}

/// Takes options until the line ends.
fn take_options<T: OptionTable>(words: &mut LineWords<'_>) -> Result<T, TcError> {
    let mut options = T::default();
    while words.take().is_some() {
        if T::NAMES.is_empty() {
            return Err(words.here(TcProblem::NoOptions(T::KIND), &[]));
        }
        let name = words.full_name(T::NAMES, T::ROLE)?;
        options.set(name, words)?;
    }
    Ok(options)
}

/// Complains about what `options` lack: at the option that lacks it, or else behind the last word.
fn complete<T: Complete>(options: &T, words: &LineWords<'_>) -> Result<(), TcError> {
    let Some(problem) = options.lacks() else { return Ok(()) };
    match problem {
        TcProblem::Needs { option, .. } | TcProblem::Excludes { option, .. } => {
            Err(words.at_option(T::NAMES, option, problem))
        }
        _ => Err(words.at_end(problem, &[])),
    }
}

/// Whether options have to be enough to make something of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Demand {
    /// To make it, or to change it.
    Enough,
    /// To remove it.
    Any,
}

/// Takes options until the line ends, and complains about what they lack, if that matters.
pub(crate) fn take<T: Complete>(words: &mut LineWords<'_>, demand: Demand) -> Result<T, TcError> {
    let options = take_options(words)?;
    if demand == Demand::Enough {
        complete(&options, words)?;
    }
    Ok(options)
}

/// The first of `needed` that is not there.
pub(crate) fn first_missing(of: &'static str, needed: &[(bool, &'static str)]) -> Option<TcProblem> {
    let missing = needed.iter().find(|(there, _)| !there);
    missing.map(|(_, what)| TcProblem::Missing { of, what })
}

macro_rules! options {
    (
        $(#[$about:meta])*
        pub struct $name:ident of $kind:literal {
            $(
                $(#[$field_about:meta])*
                $field:ident: $ty:ty = $word:literal $(| $alias:literal)* $(in $low:literal..=$high:literal)?,
            )*
        }
    ) => {
        $(#[$about])*
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        pub struct $name {
            $($(#[$field_about])* pub $field: Option<$ty>,)*
        }

        impl $crate::tc::table::OptionTable for $name {
            const KIND: &'static str = $kind;
            const ROLE: &'static str = concat!("option of ", $kind);
            const NAMES: &'static [$crate::tc::words::OptionName] =
                &[$(($word, $word), $(($alias, $word),)*)*];

            #[allow(unused_variables, reason = "of a discipline without options")]
            fn set(
                &mut self,
                name: &'static str,
                words: &mut $crate::tc::words::LineWords<'_>,
            ) -> Result<(), $crate::tc::TcError> {
                match name {
                    $($word => {
                        let again = self.$field.as_ref();
                        let again = again.and_then(|before| {
                            $crate::tc::value::OptionValue::take_again(before, words)
                        });
                        if let Some(value) = again {
                            self.$field = Some(value?);
                            return Ok(());
                        }
                        words.first_time(self.$field.as_ref(), $word)?;
                        let value: $ty = $crate::tc::value::OptionValue::take(words, $word)?;
                        $(words.in_range(value, $low..=$high)?;)?
                        self.$field = Some(value);
                        Ok(())
                    })*
                    _ => unreachable!("only names of the table are looked up"),
                }
            }

            #[allow(unused_variables, reason = "of a discipline without options")]
            fn merged(self, before: Self) -> Self {
                Self { $($field: self.$field.or(before.$field),)* }
            }
        }

        /// As it would be typed, its name first.
        impl core::fmt::Display for $name {
            fn fmt(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                out.write_str(<Self as $crate::tc::table::OptionTable>::KIND)?;
                $(if let Some(value) = &self.$field {
                    $crate::tc::value::OptionValue::put(value, $word, out)?;
                })*
                Ok(())
            }
        }

        #[cfg(test)]
        impl $crate::tc::tests::random::Random for $name {
            fn random() -> proptest::strategy::BoxedStrategy<Self> {
                use proptest::strategy::Strategy as _;
                let options = proptest::strategy::Just(Self::default()).boxed();
                $(
                    let value = $crate::tc::table::random_value!($ty $(, $low, $high)?);
                    let options = (options, proptest::option::of(value))
                        .prop_map(|(mut options, value)| {
                            options.$field = value;
                            options
                        })
                        .boxed();
                )*
                options
            }
        }
    };
}

#[cfg(test)]
macro_rules! random_value {
    ($ty:ty) => {
        <$ty as $crate::tc::tests::random::Random>::random()
    };
    ($ty:ty, $low:literal, $high:literal) => {{
        let range: core::ops::RangeInclusive<$ty> = $low..=$high;
        range
    }};
}

macro_rules! switch {
    (
        $(#[$about:meta])*
        pub enum $name:ident {
            $($(#[$variant_about:meta])* $variant:ident = $word:literal,)*
        }
    ) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name {
            $($(#[$variant_about])* $variant,)*
        }

        impl $crate::tc::value::OptionValue for $name {
            /// The word that was just taken says which.
            fn take(
                words: &mut $crate::tc::words::LineWords<'_>,
                _: &'static str,
            ) -> Result<Self, $crate::tc::TcError> {
                match words.full_name(&[$(($word, $word)),*], "option")? {
                    $($word => Ok(Self::$variant),)*
                    _ => unreachable!("only these words are looked up"),
                }
            }

            fn put(&self, _: &'static str, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                out.write_str(match self {
                    $(Self::$variant => concat!(" ", $word),)*
                })
            }
        }

        #[cfg(test)]
        impl $crate::tc::tests::random::Random for $name {
            fn random() -> proptest::strategy::BoxedStrategy<Self> {
                use proptest::strategy::Strategy as _;
                proptest::sample::select(&[$(Self::$variant),*][..]).boxed()
            }
        }
    };
}

#[cfg(test)]
pub(crate) use random_value;
pub(crate) use {options, switch};

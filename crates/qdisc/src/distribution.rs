//! Tables from which netem draws how much later than usual a packet is.
//!
//! A table holds quantiles of a distribution, in 8192ths of a standard deviation, each as likely as any
//! other; what is further than 4 deviations from the mean is clipped there, as 16 bits hold no more.
//!
//! Those with a name are of 4096 quantiles, which are those that iproute2 installs to within one 8192th: who
//! repeats a published test has its delays. They are computed here from what its tables are by measurement
//! (quantiles of those of iproute2 6.1); nothing is copied from its files.
//!
//! - `normal`: entry `i` is the quantile at `(i + 1/8) / 4096`.
//! - `pareto`: of shape 3, at `i / 4096`, less the mean, *over the variance* of 3/4. Over the deviation it
//!   would be standard; so the deviation of a delay is 0.82 of the jitter (0.87 before clipping).
//! - `paretonormal`: a quarter of the normal quantile and three quarters of that one, at the same share, so
//!   its deviation is 0.83.

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

/// What stands for one standard deviation.
pub(crate) const SCALE: i64 = 8192;

/// Entries of the tables made here.
const SIZE: u32 = 4096;

/// The shape of Pareto's distribution: the smallest whole number with a variance.
const SHAPE: f64 = 3.0;

/// What a table in a file may hold, as the kernel takes (`NETEM_DIST_MAX`).
const FILE_SIZE_MAX: usize = 16_384;

/// A distribution of delays.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Distribution(Arc<[i16]>);

/// Why numbers are no table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DistributionError {
    /// How many there are.
    pub entries: usize,
}

impl fmt::Display for DistributionError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "a table of delays has 1 to 65536 entries, not {}", self.entries)
    }
}

impl core::error::Error for DistributionError {}

/// Why a text is no table.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DistributionTextError {
    /// A word that is no whole number from -32768 to 32767.
    Number {
        /// Its line, from 1.
        line: usize,
        /// The word.
        word: String,
    },
    /// None, or more than 16384 entries.
    Entries(usize),
}

impl fmt::Display for DistributionTextError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number { line, word } => {
                write!(out, "line {line}: {word:?} is no whole number from -32768 to 32767")
            }
            Self::Entries(count) => write!(out, "a table in a file has 1 to 16384 numbers, not {count}"),
        }
    }
}

impl core::error::Error for DistributionTextError {}

impl Distribution {
    /// The normal distribution, as `tc` has it.
    #[must_use]
    pub fn normal() -> Self {
        Self::of(|index| SCALE as f64 * normal_quantile(normal_share(index)))
    }

    /// Pareto's, of shape 3, as `tc` has it: short delays, and a few long ones.
    #[must_use]
    pub fn pareto() -> Self {
        Self::of(pareto)
    }

    /// A quarter of a normal and three quarters of a Pareto's, as `tc` has it.
    #[must_use]
    pub fn paretonormal() -> Self {
        Self::of(|index| {
            let normal = SCALE as f64 * normal_quantile(normal_share(index));
            0.25 * normal + 0.75 * pareto(index).min(f64::from(i16::MAX))
        })
    }

    /// Reads a table as `tc`'s files `*.dist` hold it: whole numbers in 8192ths of a deviation between blanks
    /// and line ends; lines that begin with `#` are comments.
    ///
    /// ```
    /// use quietcore_qdisc::Distribution;
    ///
    /// let table = Distribution::from_text("# three delays\n-8192 0\n8192\n")?;
    /// assert_eq!(table.table(), [-8192, 0, 8192]);
    /// # Ok::<(), quietcore_qdisc::DistributionTextError>(())
    /// ```
    ///
    /// # Errors
    /// [`DistributionTextError`], with the line and the word. Deviation: `tc` leaves out the rest of a line
    /// that has something else in it.
    pub fn from_text(text: &str) -> Result<Self, DistributionTextError> {
        let mut table = Vec::new();
        let lines = text.lines().enumerate().filter(|(_, line)| !line.trim_start().starts_with('#'));
        for (at, line) in lines {
            for word in line.split_whitespace() {
                let number = word.parse().map_err(|_| DistributionTextError::Number {
                    line: at + 1,
                    word: word.chars().take(40).collect(),
                })?;
                table.push(number);
            }
        }
        if (1..=FILE_SIZE_MAX).contains(&table.len()) {
            Ok(Self(table.into()))
        } else {
            Err(DistributionTextError::Entries(table.len()))
        }
    }

    /// One of the caller's own.
    ///
    /// # Errors
    /// Of no entries, or of more than 65536.
    pub fn from_table(table: &[i16]) -> Result<Self, DistributionError> {
        let entries = table.len();
        if (1..=65_536).contains(&entries) {
            Ok(Self(table.into()))
        } else {
            Err(DistributionError { entries })
        }
    }

    /// Its entries, in 8192ths of a standard deviation.
    #[must_use]
    pub fn table(&self) -> &[i16] {
        &self.0
    }

    /// The entry that a random number means.
    pub(crate) fn draw(&self, random: u32) -> i64 {
        i64::from(self.0[random as usize % self.0.len()])
    }

    /// The entries, in 8192ths.
    fn of(entry: impl Fn(u32) -> f64) -> Self {
        // `as` clips.
        Self((0..SIZE).map(|index| libm::round(entry(index)) as i16).collect())
    }
}

/// Where an entry of the normal table stands.
fn normal_share(index: u32) -> f64 {
    (f64::from(index) + 0.125) / f64::from(SIZE)
}

/// By bisection: it is made 4096 times, once.
fn normal_quantile(share: f64) -> f64 {
    if share > 0.5 {
        // So that the table is as symmetrical as the distribution.
        return -normal_quantile(1.0 - share);
    }
    let below = |value: f64| 0.5 * libm::erfc(-value * core::f64::consts::FRAC_1_SQRT_2);
    let (mut low, mut high) = (-8.0, 0.0);
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        if below(middle) < share { low = middle } else { high = middle }
    }
    0.5 * (low + high)
}

/// In 8192ths, not clipped.
fn pareto(index: u32) -> f64 {
    let mean = SHAPE / (SHAPE - 1.0);
    let variance = SHAPE / ((SHAPE - 1.0) * (SHAPE - 1.0) * (SHAPE - 2.0));
    let share = f64::from(index) / f64::from(SIZE);
    SCALE as f64 * (libm::pow(1.0 - share, -1.0 / SHAPE) - mean) / variance
}

#[cfg(test)]
mod tests {
    use super::{Distribution, DistributionTextError, SCALE};
    use alloc::string::ToString as _;

    /// Goal: who repeats a published test has its delays. Method: quantiles of the tables that iproute2 6.1
    /// installs, measured, in 8192ths: from both ends, at 1, 10, 50, 90 and 99 %; each to one 8192th.
    #[test]
    fn quantiles_are_those_of_iproute2() {
        const AT: [usize; 7] = [0, 40, 409, 2_048, 3_686, 4_055, 4_095];
        for (table, expected) in [
            (Distribution::normal(), [-32_768, -19_121, -10_504, 0, 10_495, 19_064, 28_858]),
            (Distribution::pareto(), [-5_461, -5_426, -5_072, -2_622, 7_141, 32_767, 32_767]),
            (Distribution::paretonormal(), [-12_305, -8_849, -6_430, -1_966, 7_979, 29_341, 31_789]),
        ] {
            assert!(table.table().is_sorted() && table.table().len() == 4_096);
            for (at, expected) in AT.into_iter().zip(expected) {
                let entry = i32::from(table.table()[at]);
                assert!((entry - expected).abs() <= 1, "{at}: {entry}, not {expected}");
            }
        }
    }

    /// Goal: means and deviations are those of iproute2's tables, too. Method: as measured, to a thousandth:
    /// -0.0008 and 1.0001, -0.0335 and 0.8197, -0.0253 and 0.8339.
    #[test]
    fn moments_are_those_of_iproute2() {
        for (table, mean, deviation) in [
            (Distribution::normal(), -0.0008, 1.0001),
            (Distribution::pareto(), -0.0335, 0.8197),
            (Distribution::paretonormal(), -0.0253, 0.8339),
        ] {
            let values = || table.table().iter().map(|entry| f64::from(*entry) / SCALE as f64);
            let count = table.table().len() as f64;
            let is = values().sum::<f64>() / count;
            let variance = values().map(|value| (value - is) * (value - is)).sum::<f64>() / count;
            let spread = libm::sqrt(variance);
            assert!((is - mean).abs() < 0.001 && (spread - deviation).abs() < 0.001, "{is} {spread}");
        }
    }

    /// Goal: entries are those of their formulas. Method: by hand. Pareto's quantiles of shape 3 are the cube
    /// root of 1 / (1 - share): 1, 2 and 3 at 0, 7/8 and 26/27; with a mean of 3/2 and a variance of 3/4 they
    /// are -2/3, 2/3 and 2. In the other table a quarter of the normal quantile comes to three quarters of
    /// that: at 7/8 that is 1.1503, at 1/2 it is 0, where Pareto's is the cube root of 2.
    #[test]
    fn entries_by_hand() {
        let at = |table: &Distribution, entry: usize| f64::from(table.table()[entry]) / SCALE as f64;
        for (table, entry, expected) in [
            (Distribution::pareto(), 0, -2.0 / 3.0),
            (Distribution::pareto(), 3_584, 2.0 / 3.0),
            (Distribution::pareto(), 4_096 * 26 / 27, 2.0),
            (Distribution::paretonormal(), 2_048, -0.240),
            (Distribution::paretonormal(), 3_584, 0.7876),
        ] {
            let entry_is = at(&table, entry);
            assert!((entry_is - expected).abs() < 0.004, "{entry}: {entry_is}, not {expected}");
        }
    }

    /// Goal: a text is read as `tc` reads a file, and what is none is refused with its place. Method:
    /// comments, blanks, both ends of the range; a word, numbers out of range, no number, one too many.
    #[test]
    fn tables_in_texts() {
        let table = Distribution::from_text("# about\n\n -32768\t0\n  # more\n32767 7").expect("a table");
        assert_eq!(table.table(), [-32_768, 0, 32_767, 7]);
        let refused = |text: &str| Distribution::from_text(text).expect_err("no table");
        for (text, line, word) in
            [("1 2\n3 x4\n", 2, "x4"), ("32768", 1, "32768"), ("#\n-32769", 2, "-32769")]
        {
            assert_eq!(refused(text), DistributionTextError::Number { line, word: word.into() });
        }
        assert_eq!(refused("# nothing\n"), DistributionTextError::Entries(0));
        assert_eq!(refused(&"1 ".repeat(16_385)), DistributionTextError::Entries(16_385));
        assert_eq!(
            Distribution::from_text(&"1 ".repeat(16_384)).map(|table| table.table().len()),
            Ok(16_384)
        );
        let said = refused("\u{1b}[2J").to_string();
        assert_eq!(said, "line 1: \"\\u{1b}[2J\" is no whole number from -32768 to 32767");
    }
}

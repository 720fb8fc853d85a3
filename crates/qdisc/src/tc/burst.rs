//! The depth of a bucket, as several kinds are told it.

use super::error::TcProblem;
use super::scalar::{Scalar, shown_as_displayed};
use super::units::Bytes;
use core::fmt::{self, Formatter};

/// The depth of a bucket: `BYTES` or `BYTES/CELL`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Burst {
    /// How much it holds.
    pub size: Bytes,
    /// The steps in which `tc` would reckon times; a power of 2. Nothing here is in such steps.
    pub cell: Option<u32>,
}

impl fmt::Display for Burst {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        write!(out, "{}", self.size)?;
        self.cell.map_or(Ok(()), |cell| write!(out, "/{cell}"))
    }
}

shown_as_displayed!(Burst);

impl Scalar for Burst {
    const ALLOWED: &'static [&'static str] = &["a number with b, k, m or g (bytes)", "the same and /CELL"];

    fn read(word: &str) -> Result<Self, TcProblem> {
        let Some((size, cell)) = word.split_once('/') else {
            return Ok(Self { size: Bytes::read(word)?, cell: None });
        };
        let (size, cell) = (Bytes::read(size)?, u32::read(cell)?);
        if !cell.is_power_of_two() {
            return Err(TcProblem::Malformed("a size with a cell that is a power of 2"));
        }
        Ok(Self { size, cell: Some(cell) })
    }
}

//! `u32`: its options, and the names of its tables and rules.
//!
//! Source: tc-u32(8); iproute2 6.1 by behaviour.

use super::super::action::FilterActions;
use super::super::error::{TcError, TcProblem};
use super::super::number::{hexadecimal, integer};
use super::super::parent::write_id;
use super::super::scalar::{Scalar, shown_as_displayed};
use super::super::words::{LineWords, OptionName};
use super::flow::{take_flow, why_not};
use super::header_match;
use super::offload::FilterOffload;
use crate::ClassId;
use crate::filter::{U32Address, U32Hash, U32Length, U32Offset, U32Selector};
use alloc::format;
use core::fmt::{self, Formatter};

/// What a line says of a `u32`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct U32Options {
    /// What has to be true; nothing if the line says nothing of it.
    pub selector: Option<U32Selector>,
    /// The class that packets go to.
    pub flow: Option<ClassId>,
    /// `divisor`: a table of so many buckets is made, and no rule.
    pub divisor: Option<u16>,
    /// `ht`, with the bucket that `sample` found: where the rule is put.
    pub table: Option<U32Address>,
    /// `link`: the table through which packets go first.
    pub link: Option<U32Address>,
    /// `order`: the number of the rule.
    pub order: Option<u16>,
    /// Who carries it out.
    pub offload: FilterOffload,
    /// What is done with them.
    pub actions: FilterActions,
}

shown_as_displayed!(U32Address);

/// The most that each part of a name can be.
const TABLE_MAX: u128 = 0xfff;
const BUCKET_MAX: u128 = 0xff;

impl Scalar for U32Address {
    const ALLOWED: &'static [&'static str] = &["TABLE:", "TABLE:BUCKET:RULE", "0xNUMBER"];

    fn read(word: &str) -> Result<Self, TcProblem> {
        let malformed = || TcProblem::Malformed("a name of a table or rule, such as 800::801");
        let mut parts = word.split(':');
        let first = parts.next().unwrap_or_default();
        let Some(second) = parts.next() else {
            let number = first.starts_with("0x").then(|| integer(first)).flatten().ok_or_else(malformed)?;
            let number = u32::try_from(number).map_err(|_| malformed())?;
            let [table, bucket, rule] = [number >> 20, number >> 12 & 0xff, number & 0xfff];
            return Ok(Self { table: table as u16, bucket: bucket as u8, rule: rule as u16 });
        };
        let part = |text: &str, most: u128| match text {
            "" => Ok(0),
            text => hexadecimal(text).filter(|part| *part <= most).ok_or_else(malformed),
        };
        let (table, bucket) = (part(first, TABLE_MAX)?, part(second, BUCKET_MAX)?);
        let rule = part(parts.next().unwrap_or_default(), TABLE_MAX)?;
        Ok(Self { table: table as u16, bucket: bucket as u8, rule: rule as u16 })
    }
}

const OPTIONS: &[OptionName] = &[
    ("match", "match"),
    ("offset", "offset"),
    ("hashkey", "hashkey"),
    ("classid", "flowid"),
    ("flowid", "flowid"),
    ("divisor", "divisor"),
    ("order", "order"),
    ("link", "link"),
    ("ht", "ht"),
    ("sample", "sample"),
    ("indev", "indev"),
    ("skip_hw", "skip_hw"),
    ("skip_sw", "skip_sw"),
    ("action", "action"),
    ("police", "police"),
];
const OFFSET: &[OptionName] =
    &[("at", "at"), ("plus", "plus"), ("mask", "mask"), ("shift", "shift"), ("eat", "eat")];
/// What a `sample` is of, unless it is told.
const SAMPLE_DIVISOR: u16 = 256;

/// A hexadecimal number of 16 or 32 bits.
fn hex<T: TryFrom<u128> + fmt::LowerHex>(
    words: &mut LineWords<'_>,
    option: &'static str,
) -> Result<T, TcError> {
    let word = words.value(option, &["a hexadecimal mask"])?;
    let number =
        hexadecimal(word).ok_or_else(|| words.here(TcProblem::Malformed("a hexadecimal mask"), &[]))?;
    let high = format!("{:#x}", u64::MAX >> (64 - 8 * size_of::<T>()));
    T::try_from(number).map_err(|_| words.here(TcProblem::OutOfRange { low: "0".into(), high }, &[]))
}

/// A number of bytes that may be negative, of `size` each.
fn place(words: &mut LineWords<'_>, option: &'static str, size: i32) -> Result<i32, TcError> {
    let at: i32 = words.scalar(option)?;
    if at % size == 0 {
        return Ok(at);
    }
    let form = if size == 4 { "a multiple of 4" } else { "a multiple of 2" };
    Err(words.here(TcProblem::Malformed(form), &[]))
}

impl U32Options {
    pub(super) fn take(words: &mut LineWords<'_>) -> Result<Self, TcError> {
        let mut options = Self::default();
        let mut sampled = None;
        while words.take().is_some() {
            match words.full_name(OPTIONS, "option of u32")? {
                "match" => header_match::take(words, options.selector.get_or_insert_default())?,
                "offset" => options.selector.get_or_insert_default().offset = Some(take_offset(words)?),
                "hashkey" => options.selector.get_or_insert_default().hash = Some(take_hash(words)?),
                "flowid" => {
                    words.first_time(options.flow.as_ref(), "flowid")?;
                    options.flow = Some(take_flow(words)?);
                }
                "divisor" => {
                    words.first_time(options.divisor.as_ref(), "divisor")?;
                    options.divisor = Some(take_divisor(words)?);
                }
                "link" => {
                    words.first_time(options.link.as_ref(), "link")?;
                    options.link = Some(take_table(words, "link")?);
                }
                "ht" => {
                    words.first_time(options.table.as_ref(), "ht")?;
                    options.table = Some(words.scalar("ht")?);
                }
                "sample" => {
                    words.first_time(sampled.as_ref(), "sample")?;
                    sampled = Some(take_sample(words)?);
                }
                "order" => {
                    let order: u16 = words.scalar("order")?;
                    words.in_range(order, 0..=0xfff)?;
                    options.order = Some(order);
                }
                "skip_hw" => options.offload = FilterOffload::SkipHardware,
                "skip_sw" => options.offload = FilterOffload::SkipSoftware,
                name @ ("action" | "police") => options.actions.take(name, words)?,
                option => {
                    let why = why_not(option);
                    return Err(words.here(TcProblem::NotSupported(why), &[]));
                }
            }
        }
        if let Some(bucket) = sampled {
            let table = options.table.get_or_insert_default();
            table.bucket = bucket;
        }
        Ok(options)
    }
}

fn take_offset(words: &mut LineWords<'_>) -> Result<U32Offset, TcError> {
    let mut offset = U32Offset::default();
    let mut length = U32Length::default();
    let mut is_read = false;
    while words.peek().is_some_and(|word| OFFSET.iter().any(|(name, _)| *name == word)) {
        match words.value("offset", &[])? {
            "at" => {
                let at = place(words, "at", 2)?;
                let range = |_| TcProblem::OutOfRange { low: "-32768".into(), high: "32767".into() };
                length.at = i16::try_from(at).map_err(|error| words.here(range(error), &[]))?;
                is_read = true;
            }
            "plus" => offset.plus = words.scalar("plus")?,
            "mask" => {
                length.mask = hex(words, "mask")?;
                is_read = true;
            }
            "shift" => {
                length.shift = words.scalar("shift")?;
                is_read = true;
            }
            _ => offset.eat = true,
        }
    }
    offset.read = is_read.then_some(length);
    Ok(offset)
}

fn take_hash(words: &mut LineWords<'_>) -> Result<U32Hash, TcError> {
    let mut hash = U32Hash::default();
    loop {
        if words.take_if("mask") {
            hash.mask = hex(words, "mask")?;
        } else if words.take_if("at") {
            hash.offset = place(words, "at", 4)?;
        } else {
            return Ok(hash);
        }
    }
}

fn take_divisor(words: &mut LineWords<'_>) -> Result<u16, TcError> {
    let divisor: u32 = words.scalar("divisor")?;
    match u16::try_from(divisor) {
        Ok(divisor @ 1..=256) if divisor.is_power_of_two() => Ok(divisor),
        _ => Err(words.here(TcProblem::Malformed("a power of 2 of at most 256"), &[])),
    }
}

/// The name of a table, without a rule.
fn take_table(words: &mut LineWords<'_>, option: &'static str) -> Result<U32Address, TcError> {
    let address: U32Address = words.scalar(option)?;
    if address.rule == 0 {
        return Ok(address);
    }
    Err(words.here(TcProblem::Malformed("the name of a table, such as 2:"), &[]))
}

/// The bucket of a word that is as the sample.
fn take_sample(words: &mut LineWords<'_>) -> Result<u8, TcError> {
    let mut selector = U32Selector::default();
    header_match::take(words, &mut selector)?;
    let divisor = if words.take_if("divisor") { take_divisor(words)? } else { SAMPLE_DIVISOR };
    let [key] = selector.keys[..] else {
        return Err(words.here(TcProblem::Malformed("a sample of one word"), &[]));
    };
    let folded = key.value.checked_shr(key.mask.trailing_zeros()).unwrap_or(0);
    Ok((folded % u32::from(divisor)) as u8)
}

impl fmt::Display for U32Options {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        out.write_str("u32")?;
        if let Some(divisor) = self.divisor {
            write!(out, " divisor {divisor}")?;
        }
        if let Some(table) = self.table {
            write!(out, " ht {table}")?;
        }
        self.selector.iter().try_for_each(|selector| put_selector(selector, out))?;
        if let Some(link) = self.link {
            write!(out, " link {link}")?;
        }
        if let Some(order) = self.order {
            write!(out, " order {order}")?;
        }
        self.offload.put(out)?;
        write_id("flowid", self.flow, out)?;
        self.actions.fmt(out)
    }
}

fn put_selector(selector: &U32Selector, out: &mut Formatter<'_>) -> fmt::Result {
    header_match::put(selector, out)?;
    if let Some(U32Hash { mask, offset }) = selector.hash {
        write!(out, " hashkey mask {mask:#x} at {offset}")?;
    }
    let Some(U32Offset { plus, read, eat }) = selector.offset else { return Ok(()) };
    write!(out, " offset plus {plus}")?;
    if let Some(U32Length { at, mask, shift }) = read {
        write!(out, " at {at} mask {mask:#x} shift {shift}")?;
    }
    out.write_str(if eat { " eat" } else { "" })
}

//! The kernel's two text forms of a CPU set: lists (`0-3,8`) and masks (`ff,0000000f`).
//!
//! Source: Linux Documentation/admin-guide/kernel-parameters.rst ("cpu lists"), and the masks of
//! /proc/irq/N/smp_affinity. Deviation: `all` and `N` (the last CPU) are not read, because what
//! they mean depends on the machine.

use crate::cpu::{CPU_LIMIT, CpuError, CpuId, CpuSet};
use core::fmt;
use core::str::FromStr;

/// Reads a kernel list: numbers, ranges `a-b`, and strided ranges `a-b:used/group` (the first
/// `used` CPUs of every `group`), separated by commas. White space around it is ignored; the
/// empty text is the empty set.
impl FromStr for CpuSet {
    type Err = CpuError;

    fn from_str(text: &str) -> Result<Self, CpuError> {
        let mut cursor = Cursor { text: text.trim().as_bytes(), at: 0 };
        let mut set = Self::new();
        let mut named = 0;
        while cursor.at < cursor.text.len() {
            named += read_range(&mut cursor, &mut set)?;
            if named > NAMED_MAX {
                return Err(CpuError::Repetitive { at: cursor.at });
            }
            if cursor.at < cursor.text.len() {
                cursor.expect(b',')?;
                if cursor.at == cursor.text.len() {
                    return Err(CpuError::Unexpected { at: cursor.at });
                }
            }
        }
        Ok(set)
    }
}

/// A list may name this many CPUs in all, repetitions included: a bound on the work that hostile text can
/// cause (`0-8191` thousands of times), far above what is written by hand.
const NAMED_MAX: u64 = 4 * CPU_LIMIT as u64;

/// Reads one range; returns how many CPUs it spans.
fn read_range(cursor: &mut Cursor<'_>, set: &mut CpuSet) -> Result<u64, CpuError> {
    let first = cursor.number()?;
    let mut last = first;
    if cursor.take(b'-') {
        last = cursor.number()?;
    }
    if last < first {
        return Err(CpuError::Backwards { first, last });
    }
    let (mut used, mut group) = (1, 1);
    if cursor.take(b':') {
        used = cursor.number()?;
        cursor.expect(b'/')?;
        group = cursor.number()?;
        if group == 0 || used > group {
            return Err(CpuError::Unexpected { at: cursor.at });
        }
    }
    let high = CpuId::new(last)?;
    if used == group {
        set.insert_range(CpuId::new(first)?, high);
        return Ok(last - first + 1);
    }
    for number in first..=last {
        if (number - first) % group < used {
            set.insert(CpuId::new(number)?);
        }
    }
    Ok(last - first + 1)
}

struct Cursor<'a> {
    text: &'a [u8],
    at: usize,
}

impl Cursor<'_> {
    fn take(&mut self, byte: u8) -> bool {
        let found = self.text.get(self.at) == Some(&byte);
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, byte: u8) -> Result<(), CpuError> {
        if self.take(byte) { Ok(()) } else { Err(CpuError::Unexpected { at: self.at }) }
    }

    fn number(&mut self) -> Result<u64, CpuError> {
        let start = self.at;
        let mut value = 0u64;
        while let Some(digit) = self.text.get(self.at).filter(|byte| byte.is_ascii_digit()) {
            value = value.saturating_mul(10).saturating_add(u64::from(digit - b'0'));
            self.at += 1;
        }
        if self.at == start { Err(CpuError::Unexpected { at: start }) } else { Ok(value) }
    }
}

impl CpuSet {
    /// Reads a mask of hexadecimal digits, highest CPU first, commas anywhere between them, as in
    /// `/proc/irq/N/smp_affinity` and `/sys/devices/virtual/workqueue/cpumask`.
    ///
    /// # Errors
    /// [`CpuError::Unexpected`] names the byte that is no digit; [`CpuError::OutOfRange`] a set
    /// bit at or above [`CPU_LIMIT`].
    pub fn from_mask(text: &str) -> Result<Self, CpuError> {
        let mut set = Self::new();
        let mut next = 0;
        for (at, digit) in text.trim().bytes().enumerate().rev() {
            if digit == b',' {
                continue;
            }
            let bits = (digit as char).to_digit(16).ok_or(CpuError::Unexpected { at })?;
            for bit in (0..4).filter(|bit| bits >> bit & 1 == 1) {
                set.insert(CpuId::new(next + bit)?);
            }
            next = (next + 4).min(u64::from(CPU_LIMIT));
        }
        Ok(set)
    }
}

/// The kernel's list form; the empty set is the empty text.
impl fmt::Display for CpuSet {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut cpus = self.iter().map(CpuId::index).peekable();
        let mut separator = "";
        while let Some(first) = cpus.next() {
            let mut last = first;
            while cpus.peek() == Some(&(last + 1)) {
                last += 1;
                cpus.next();
            }
            write!(out, "{separator}{first}")?;
            if last > first {
                write!(out, "-{last}")?;
            }
            separator = ",";
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::{CpuError, CpuId, CpuSet};
    use alloc::string::ToString;

    /// Goal: reading and writing lists are inverse. Method: every subset of 10 CPUs.
    #[test]
    fn a_list_survives_the_round_trip() {
        for bits in 0u64..1024 {
            let set: CpuSet =
                (0..10).filter(|cpu| bits >> cpu & 1 == 1).map(|cpu| CpuId::new(cpu).unwrap()).collect();
            let text = set.to_string();
            assert_eq!(text.parse::<CpuSet>(), Ok(set), "list {text:?}");
        }
    }

    /// Goal: the strided form counts groups from the range's start, as the kernel does.
    #[test]
    fn a_strided_range_takes_the_head_of_each_group() {
        let set: CpuSet = "2-13:2/4".parse().unwrap();
        assert_eq!(set.to_string(), "2-3,6-7,10-11");
    }

    /// Goal: each refusal says where. Method: one text per reason.
    #[test]
    fn a_bad_list_is_refused_at_its_byte() {
        for (text, error) in [
            ("1,,2", CpuError::Unexpected { at: 2 }),
            ("1,", CpuError::Unexpected { at: 2 }),
            ("a", CpuError::Unexpected { at: 0 }),
            ("3-1", CpuError::Backwards { first: 3, last: 1 }),
            ("0-8192", CpuError::OutOfRange { number: 8192 }),
            ("99999999999999999999999", CpuError::OutOfRange { number: u64::MAX }),
            ("0-7:3/2", CpuError::Unexpected { at: 7 }),
        ] {
            assert_eq!(text.parse::<CpuSet>(), Err(error), "list {text:?}");
        }
    }

    /// Goal: a list of any length costs bounded work.
    #[test]
    fn a_list_that_names_everything_again_and_again_is_refused() {
        let once = "0-8191,".repeat(4);
        assert_eq!(once.trim_end_matches(',').parse::<CpuSet>().map(|set| set.len()), Ok(8192));
        let often = "0-8191,".repeat(5);
        let error = often.trim_end_matches(',').parse::<CpuSet>();
        assert_eq!(error, Err(CpuError::Repetitive { at: 34 }));
    }

    /// Goal: a refusal says what is wrong and what was expected. Method: each, written down.
    #[test]
    fn each_refusal_says_what_was_expected() {
        for (error, text) in [
            (
                CpuError::OutOfRange { number: 9000 },
                "CPU number 9000 is out of range (expected a number below 8192)",
            ),
            (
                CpuError::Unexpected { at: 2 },
                "not a CPU list at byte 2 (expected numbers and ranges, as 0-3,8)",
            ),
            (
                CpuError::Repetitive { at: 34 },
                "CPU list names the same CPUs over and over at byte 34 (expected each once)",
            ),
            (CpuError::Backwards { first: 7, last: 3 }, "CPU range 7-3 ends before it begins (expected 3-7)"),
        ] {
            assert_eq!(error.to_string(), text);
        }
    }

    /// Goal: masks read from the right, in groups of 32. Method: the kernel's spellings.
    #[test]
    fn a_mask_reads_from_the_right() {
        for (mask, list) in
            [("0", ""), ("ff", "0-7"), ("f0,00000000", "36-39"), ("00000000,000000fb", "0-1,3-7")]
        {
            assert_eq!(CpuSet::from_mask(mask).unwrap().to_string(), list, "mask {mask:?}");
        }
        assert_eq!(CpuSet::from_mask("0x1"), Err(CpuError::Unexpected { at: 1 }));
    }
}

//! How `tc` writes rates, sizes and times of what there is; `units` writes what was typed.
//!
//! Source: iproute2's `tc` by behaviour (`print_rate`, `print_size`, `print_time`, `print_percent`).

use super::units::Percent;
use alloc::format;
use alloc::string::{String, ToString as _};
use quietcore_core::Nanos;

/// A number with so many digits that matter, as C's `%.*g` writes it.
pub(crate) fn general(number: f64, digits: usize) -> String {
    if number == 0.0 {
        return "0".into();
    }
    let written = format!("{:.*e}", digits - 1, number);
    let (mantissa, exponent) = written.split_once('e').unwrap_or((&written, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let trimmed = |text: &str| {
        let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { text };
        text.to_string()
    };
    if exponent < -4 || exponent >= digits as i32 {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{}e{sign}{:02}", trimmed(mantissa), exponent.abs());
    }
    trimmed(&format!("{number:.*}", (digits as i32 - 1 - exponent) as usize))
}

/// Bits per second, of which `tc` writes thousands as long as nothing is lost, or much is left.
#[must_use]
pub fn rate_text(bits: u64) -> String {
    scaled(bits, 1000, ["bit", "Kbit", "Mbit", "Gbit", "Tbit"])
}

/// The same in units of 1024 (`-iec`).
pub(crate) fn rate_text_binary(bits: u64) -> String {
    scaled(bits, 1024, ["bit", "Kibit", "Mibit", "Gibit", "Tibit"])
}

fn scaled(mut bits: u64, base: u64, units: [&str; 5]) -> String {
    let mut unit = 0;
    while unit + 1 < units.len() && bits >= base && (bits.is_multiple_of(base) || bits >= base * base) {
        bits /= base;
        unit += 1;
    }
    format!("{bits}{}", units[unit])
}

/// A number of bytes.
#[must_use]
pub fn size_text(bytes: u64) -> String {
    let (kilo, mega) = (1_u64 << 10, 1_u64 << 20);
    let near = |unit: u64, off: u64| {
        let whole = (bytes + unit / 2) / unit;
        (bytes >= unit && (whole * unit).abs_diff(bytes) < off).then_some(whole)
    };
    match (near(mega, 1024), near(kilo, 16)) {
        (Some(whole), _) => format!("{whole}Mb"),
        (None, Some(whole)) => format!("{whole}Kb"),
        (None, None) => format!("{bytes}b"),
    }
}

/// A span of time.
#[must_use]
pub fn time_text(span: Nanos) -> String {
    let nanos = span.0 as f64;
    match span.0 {
        1_000_000_000.. => format!("{}s", general(nanos / 1e9, 3)),
        1_000_000.. => format!("{}ms", general(nanos / 1e6, 3)),
        1_000.. => format!("{}us", general(nanos / 1e3, 3)),
        other => format!("{other}ns"),
    }
}

pub(crate) fn percent_text(percent: Percent) -> String {
    format!("{}%", general(100.0 * f64::from(percent.share()) / f64::from(u32::MAX), 6))
}

#[cfg(test)]
mod tests {
    use super::{general, percent_text, rate_text, size_text, time_text};
    use crate::tc::units::Percent;
    use quietcore_core::Nanos;

    /// Goal: numbers are written as `tc` writes them. Method: texts that it printed, and both sides of
    /// limits.
    #[test]
    fn numbers() {
        for (number, digits, text) in [
            (6.0, 3, "6"),
            (1.5, 3, "1.5"),
            (999.0, 3, "999"),
            (1234.0, 3, "1.23e+03"),
            (0.1, 6, "0.1"),
            (0.000_123, 6, "0.000123"),
            (0.000_012, 6, "1.2e-05"),
            (99.99999, 6, "100"),
        ] {
            assert_eq!(general(number, digits), text);
        }
        let third = Percent::from_billionths(33_333_333_333).expect("below 100 %");
        assert_eq!(percent_text(third), "33.3333%");
        for (bits, text) in [
            (0, "0bit"),
            (999, "999bit"),
            (1_000, "1Kbit"),
            (1_500, "1500bit"),
            (1_500_000, "1500Kbit"),
            (12_345_678, "12345Kbit"),
            (10_000_000_000, "10Gbit"),
            (5_000_000_000_000_000, "5000Tbit"),
        ] {
            assert_eq!(rate_text(bits), text);
        }
        for (bytes, text) in [
            (0, "0b"),
            (1_514, "1514b"),
            (1_600, "1600b"),
            (2_047, "2Kb"),
            (2_048, "2Kb"),
            (15_140, "15140b"),
            (2_096_152, "2Mb"),
        ] {
            assert_eq!(size_text(bytes), text);
        }
        for (nanos, text) in [
            (999, "999ns"),
            (1_234, "1.23us"),
            (6_000_000, "6ms"),
            (1_500_000, "1.5ms"),
            (1_234_000, "1.23ms"),
            (1_234_000_000, "1.23s"),
            (40_000_000_000, "40s"),
        ] {
            assert_eq!(time_text(Nanos(nanos)), text);
        }
    }
}

//! How `tc` writes numbers and options.
//!
//! Source: iproute2's `tc` by behaviour (`print_rate`, `print_size`, `print_time`, `print_percent`, and what
//! each kind prints). Deviation: no blank behind a line's last word.

use quietcore_live::Nanos;
use quietcore_qdisc::tc::{
    self, Burst, CbqClassOptions, Chance, Curve, Ecn, HtbClassOptions, Loss, NetemOptions, Percent,
    SlotTiming,
};
use quietcore_qdisc::{CurveError, FqSettings, Horizon, HtbClass, ServiceCurve, TbfSettings};

/// A number with so many digits that matter, as C's `%.*g` writes it.
fn general(number: f64, digits: usize) -> String {
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
    trimmed(&format!("{number:.*}", (digits as i32 - 1 - exponent).max(0) as usize))
}

/// Bits per second, of which `tc` writes thousands as long as nothing is lost, or much is left.
pub(super) fn rate(mut bits: u64) -> String {
    let units = ["", "K", "M", "G", "T"];
    let mut unit = 0;
    while unit + 1 < units.len() && bits >= 1000 && (bits.is_multiple_of(1000) || bits >= 1_000_000) {
        bits /= 1000;
        unit += 1;
    }
    format!("{bits}{}bit", units[unit])
}

fn byte_rate(bytes: u64) -> String {
    rate(bytes.saturating_mul(8))
}

pub(super) fn size(bytes: u64) -> String {
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

pub(super) fn time(span: Nanos) -> String {
    let nanos = span.0 as f64;
    match span.0 {
        1_000_000_000.. => format!("{}s", general(nanos / 1e9, 3)),
        1_000_000.. => format!("{}ms", general(nanos / 1e6, 3)),
        1_000.. => format!("{}us", general(nanos / 1e3, 3)),
        other => format!("{other}ns"),
    }
}

fn percent(percent: Percent) -> String {
    format!("{}%", general(100.0 * f64::from(percent.share()) / f64::from(u32::MAX), 6))
}

fn percents<'a>(values: impl IntoIterator<Item = &'a Option<Percent>>) -> String {
    values.into_iter().flatten().map(|value| format!(" {}", percent(*value))).collect()
}

fn chance(name: &str, typed: Option<Chance>) -> String {
    typed.map_or_else(String::new, |typed| {
        format!(" {name} {}{}", percent(typed.percent), percents([&typed.correlation]))
    })
}

fn loss(typed: Loss) -> String {
    match typed {
        Loss::Random(random) => chance("loss", Some(random)),
        Loss::State { p13, others } => format!(" loss state p13 {}{}", percent(p13), named_states(&others)),
        Loss::GeModel { p, others } => {
            let names = ["r", "1-h", "1-k"];
            let others = names.iter().zip(others).filter_map(|(name, other)| Some((name, other?)));
            let others: String = others.map(|(name, other)| format!(" {name} {}", percent(other))).collect();
            format!(" loss gemodel p {}{others}", percent(p))
        }
    }
}

fn named_states(others: &[Option<Percent>; 4]) -> String {
    let names = ["p31", "p32", "p23", "p14"];
    let given = names.iter().zip(others).filter_map(|(name, other)| Some((name, (*other)?)));
    given.map(|(name, other)| format!(" {name} {}", percent(other))).collect()
}

pub(super) fn netem(typed: &NetemOptions) -> String {
    let mut text = format!("limit {}", typed.limit.unwrap_or(1000));
    if let Some(delay) = typed.delay {
        text += &format!(" delay {}", time(delay.time));
        if let Some(jitter) = delay.jitter {
            text += &format!(" {}{}", time(jitter), percents([&delay.correlation]));
        }
    }
    if let Some(distribution) = typed.distribution {
        text += &format!(" distribution {}", distribution.name());
    }
    text += &typed.loss.map_or_else(String::new, loss);
    text += &chance("duplicate", typed.duplicate);
    text += &chance("reorder", typed.reorder);
    text += &chance("corrupt", typed.corrupt);
    if let Some(link) = typed.rate {
        text += &format!(" rate {}", rate(link.rate.0 / 8 * 8));
        let costs = [("packetoverhead", link.overhead), ("celloverhead", link.cell_overhead)];
        for (name, bytes) in costs {
            text += &bytes.map_or_else(String::new, |bytes| format!(" {name} {bytes}"));
        }
        text += &link.cell.map_or_else(String::new, |bytes| format!(" cellsize {bytes}"));
    }
    text += &typed.slot.map_or_else(String::new, slot);
    if typed.ecn == Some(Ecn::Mark) {
        text += " ecn";
    }
    if let Some(gap) = typed.gap.or(typed.reorder.map(|_| 1)) {
        text += &format!(" gap {gap}");
    }
    text += &typed.seed.map_or_else(String::new, |seed| format!(" seed {seed}"));
    text
}

fn slot(typed: tc::Slot) -> String {
    let mut text = match typed.timing {
        SlotTiming::Between { min, max } => format!(" slot {} {}", time(min), time(max.unwrap_or(min))),
        SlotTiming::Distributed { distribution, delay, jitter } => {
            format!(" slot distribution {} {} {}", distribution.name(), time(delay), time(jitter))
        }
    };
    text += &typed.packets.map_or_else(String::new, |packets| format!(" packets {packets}"));
    text += &typed.bytes.map_or_else(String::new, |bytes| format!(" bytes {}", bytes.0));
    text
}

pub(super) fn tbf(told: &TbfSettings) -> String {
    let mut text = format!("rate {} burst {}", byte_rate(told.rate.get()), size(u64::from(told.burst)));
    if let Some(peak) = told.peak {
        let (rate, minburst) = (byte_rate(peak.rate.get()), size(u64::from(peak.minburst)));
        text += &format!(" peakrate {rate} minburst {minburst}");
    }
    // How long the last byte of the limit waits, behind a burst.
    let limit = told.limit_bytes();
    let wait = |rate: quietcore_qdisc::Rate, burst: u32| {
        rate.time_of(limit).0.checked_sub(rate.time_of(u64::from(burst)).0)
    };
    let at_peak = told.peak.map_or(Some(0), |peak| wait(peak.rate, peak.minburst));
    match (wait(told.rate, told.burst), at_peak) {
        (Some(latency), Some(at_peak)) => text + &format!(" lat {}", time(Nanos(latency.max(at_peak)))),
        _ => text + &format!(" limit {}", size(limit)),
    }
}

pub(super) fn fq(told: &FqSettings) -> String {
    let numbers = |numbers: &[u32]| -> String { numbers.iter().map(|one| format!(" {one}")).collect() };
    let mut text = format!("limit {}p flow_limit {}p buckets {}", told.limit, told.flow_limit, told.buckets);
    text += &told.orphan_mask.map_or_else(String::new, |mask| format!(" orphan_mask {mask}"));
    text += if told.pacing { "" } else { " nopacing" };
    text += &format!(" bands 3 priomap{}", numbers(&told.priomap.map(u32::from)));
    text += &format!(" weights{}", numbers(&told.weights));
    let (quantum, initial) = (size(u64::from(told.quantum)), size(u64::from(told.initial_quantum)));
    text += &format!(" quantum {quantum} initial_quantum {initial}");
    text += &told.maxrate.map_or_else(String::new, |rate| format!(" maxrate {}", byte_rate(rate)));
    text += &format!(" low_rate_threshold {}", byte_rate(told.low_rate_threshold));
    text += &format!(" refill_delay {}", time(told.refill_delay));
    text += &told.ce_threshold.map_or_else(String::new, |span| format!(" ce_threshold {}", time(span)));
    text += &format!(" timer_slack {}", time(told.timer_slack));
    match told.horizon {
        Horizon::Drop(span) => text + &format!(" horizon {} horizon_drop", time(span)),
        Horizon::Cap(span) => text + &format!(" horizon {} horizon_cap", time(span)),
    }
}

/// Of a class of htb: what all see, and what `-d` adds.
pub(super) fn htb_class(typed: &HtbClassOptions, told: &HtbClass, leaf: Option<u32>) -> (String, String) {
    let mut text = leaf.map_or_else(String::new, |_| format!("prio {} ", told.prio));
    let mut details = leaf.map_or_else(String::new, |quantum| format!("quantum {quantum}"));
    text += &format!("rate {} ceil {}", byte_rate(told.rate.get()), byte_rate(told.ceil.get()));
    text += &format!(" burst {} cburst {}", size(told.burst_bytes()), size(told.cburst_bytes()));
    let cell = |name: &str, burst: Option<Burst>| {
        burst.and_then(|burst| burst.cell).map_or_else(String::new, |cell| format!(" {name} {cell}"))
    };
    details += &cell("burst cell", typed.burst);
    details += &cell("cburst cell", typed.cburst);
    details += &typed.mpu.map_or_else(String::new, |mpu| format!(" mpu {}", size(u64::from(mpu.0))));
    details += &typed.overhead.map_or_else(String::new, |bytes| format!(" overhead {bytes}b"));
    (text, details.trim_start().into())
}

pub(super) fn hfsc_class(typed: &tc::HfscClassOptions) -> String {
    let mut text = String::new();
    for (name, given) in [("rt", typed.rt), ("ls", typed.ls), ("sc", typed.sc), ("ul", typed.ul)] {
        let Some(given) = given else { continue };
        let (m1, d, m2) = match given {
            Curve::Slopes { m1, d, m2 } => {
                (m1.map_or(0, tc::BitRate::bytes_per_second), d.unwrap_or_default(), m2.bytes_per_second())
            }
            Curve::Work { umax, dmax, rate } => {
                let rate = rate.bytes_per_second();
                let curve: Result<ServiceCurve, CurveError> = dmax.map_or(Err(CurveError::NoTime), |dmax| {
                    ServiceCurve::from_delay(umax.map_or(0, |umax| umax.0), dmax, rate)
                });
                curve.map_or((0, Nanos(0), rate), |curve| (curve.m1, curve.d, curve.m2))
            }
        };
        // A part of no length is shown in microseconds.
        let d = if d.0 == 0 { "0us".into() } else { time(d) };
        text += &format!(" {name} m1 {} d {d} m2 {}", byte_rate(m1), byte_rate(m2));
    }
    text.trim_start().into()
}

pub(super) fn cbq_class(typed: &CbqClassOptions) -> String {
    let rate = typed.rate.map_or_else(String::new, |rate| byte_rate(rate.bytes_per_second()));
    let marks = [
        (typed.borrow == Some(tc::CbqBorrow::Bounded), "bounded"),
        (typed.share == Some(tc::CbqShare::Isolated), "isolated"),
    ];
    let marks: Vec<&str> = marks.into_iter().filter(|(set, _)| *set).map(|(_, mark)| mark).collect();
    let marks = if marks.is_empty() { String::new() } else { format!(" ({})", marks.join(",")) };
    format!("rate {rate}{marks} prio {}", typed.prio.unwrap_or(8))
}

pub(super) fn cbq(bandwidth: u64) -> String {
    format!("rate {} (bounded,isolated) prio no-transmit", byte_rate(bandwidth))
}

#[cfg(test)]
mod tests {
    use super::{general, rate, size, time};
    use quietcore_live::Nanos;

    /// Goal: numbers are written as `tc` writes them. Method: texts that it printed, and both sides of
    /// limits.
    #[test]
    fn numbers() {
        for (number, digits, text) in
            [(6.0, 3, "6"), (1.5, 3, "1.5"), (1234.0, 3, "1.23e+03"), (0.1, 6, "0.1"), (99.99999, 6, "100")]
        {
            assert_eq!(general(number, digits), text);
        }
        for (bits, text) in [
            (0, "0bit"),
            (999, "999bit"),
            (1_000, "1Kbit"),
            (1_500, "1500bit"),
            (1_500_000, "1500Kbit"),
            (12_345_678, "12345Kbit"),
            (10_000_000_000, "10Gbit"),
        ] {
            assert_eq!(rate(bits), text);
        }
        for (bytes, text) in
            [(0, "0b"), (1_514, "1514b"), (1_600, "1600b"), (2_048, "2Kb"), (15_140, "15140b")]
        {
            assert_eq!(size(bytes), text);
        }
        for (nanos, text) in
            [(999, "999ns"), (6_000_000, "6ms"), (1_500_000, "1.5ms"), (40_000_000_000, "40s")]
        {
            assert_eq!(time(Nanos(nanos)), text);
        }
    }
}

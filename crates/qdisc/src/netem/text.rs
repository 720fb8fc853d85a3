//! How `tc` shows a netem.
//!
//! Source: `tc` by behaviour.

use super::options::{LinkRate, NetemOptions, SlotTiming, TypedChance, TypedDelay, TypedLoss, TypedSlot};
use crate::tc::tick::shown_time;
use crate::tc::units::Percent;
use crate::tc::{TcProperties, TcValue};
use alloc::string::ToString as _;

const NONE: Percent = Percent::NONE;

/// A percentage that text has only where it is more than none.
fn add_some(shown: &mut TcProperties, name: &'static str, percent: Option<Percent>) {
    match percent.filter(|percent| percent.share() > 0) {
        Some(percent) => shown.add(name, " {}", TcValue::share(percent)),
        None => shown.add_json(name, TcValue::share(NONE)),
    }
}

/// `name PERCENT CORRELATION`, of which none is as not typed; JSON has it as `object`.
fn add_chance(
    shown: &mut TcProperties,
    name: &'static str,
    object: &'static str,
    typed: Option<TypedChance>,
) {
    let Some(typed) = typed.filter(|typed| typed.percent.share() > 0) else { return };
    shown.text_only(alloc::format!(" {name}"));
    shown.object(object, |chance| {
        chance.add(name, " {}", TcValue::share(typed.percent));
        add_some(chance, "correlation", typed.correlation);
    });
}

/// A model of loss in states, with the defaults of what was not typed.
fn add_loss(shown: &mut TcProperties, typed: TypedLoss) {
    let share = |percent: Option<Percent>, default: Percent| TcValue::share(percent.unwrap_or(default));
    match typed {
        TypedLoss::Random(random) => add_chance(shown, "loss", "loss-random", Some(random)),
        TypedLoss::State { p13, others: [p31, p32, p23, p14] } => shown.object("loss-state", |loss| {
            loss.add("p13", " loss state p13 {}", TcValue::share(p13));
            loss.add("p31", " p31 {}", share(p31, p13.complement()));
            loss.add("p32", " p32 {}", share(p32, NONE));
            loss.add("p23", " p23 {}", share(p23, NONE.complement()));
            loss.add("p14", " p14 {}", share(p14, NONE));
        }),
        TypedLoss::GeModel { p, others: [r, lost_in_bad, lost_in_good] } => {
            shown.object("loss-gemodel", |loss| {
                loss.add("p", " loss gemodel p {}", TcValue::share(p));
                loss.add("r", " r {}", share(r, p.complement()));
                loss.add("1-h", " 1-h {}", share(lost_in_bad, NONE.complement()));
                loss.add("1-k", " 1-k {}", share(lost_in_good, NONE));
            });
        }
    }
}

fn add_delay(shown: &mut TcProperties, typed: TypedDelay) {
    let jitter = typed.jitter.unwrap_or_default();
    if typed.time.0 == 0 {
        return;
    }
    shown.object("delay", |delay| {
        let jitter = shown_time(jitter);
        delay.add("delay", " delay {}", TcValue::seconds(shown_time(typed.time)));
        if jitter.0 == 0 {
            delay.add_json("jitter", TcValue::seconds(jitter));
            delay.add_json("correlation", TcValue::share(typed.correlation.unwrap_or(NONE)));
            return;
        }
        delay.add("jitter", "  {}", TcValue::seconds(jitter));
        add_some(delay, "correlation", typed.correlation);
    });
}

fn add_rate(shown: &mut TcProperties, link: LinkRate) {
    shown.object("rate", |rate| {
        rate.add("rate", " rate {}", TcValue::byte_rate(link.rate.bytes_per_second()));
        let overhead = link.overhead.filter(|bytes| *bytes != 0);
        match overhead {
            Some(bytes) => rate.add("packetoverhead", " packetoverhead {}", bytes),
            None => rate.add_json("packetoverhead", 0_u32),
        }
        match link.cell.filter(|bytes| *bytes != 0) {
            Some(bytes) => rate.add("cellsize", " cellsize {}", bytes),
            None => rate.add_json("cellsize", 0_u32),
        }
        match link.cell_overhead.filter(|bytes| *bytes != 0) {
            Some(bytes) => rate.add("celloverhead", " celloverhead {}", bytes),
            None => rate.add_json("celloverhead", 0_u32),
        }
    });
}

fn add_slot(shown: &mut TcProperties, typed: &TypedSlot) {
    shown.object("slot", |slot| {
        match &typed.timing {
            SlotTiming::Between { min, max } => {
                slot.add("min-delay", " slot {}", TcValue::seconds(*min));
                slot.add("max-delay", " {}", TcValue::seconds(max.unwrap_or(*min)));
            }
            SlotTiming::Distributed { delay, jitter, .. } => {
                slot.add("distribution", " slot distribution {}", TcValue::seconds(*delay));
                slot.add("jitter", " {}", TcValue::seconds(*jitter));
            }
        }
        match typed.packets.filter(|packets| *packets > 0) {
            Some(packets) => slot.add("packets", " packets {}", packets),
            None => slot.add_json("packets", 0_u32),
        }
        match typed.bytes.filter(|bytes| bytes.0 > 0) {
            Some(bytes) => slot.add("bytes", " bytes {}", bytes.0),
            None => slot.add_json("bytes", 0_u32),
        }
    });
}

/// As `tc` 6.1 shows it; a seed that a line named as newer ones do.
pub(super) fn shown(typed: &NetemOptions) -> TcProperties {
    let mut shown = TcProperties::default();
    shown.add("limit", "limit {}", typed.limit.unwrap_or(1000));
    typed.delay.into_iter().for_each(|delay| add_delay(&mut shown, delay));
    if let Some(distribution) = &typed.distribution {
        shown.ours(|shown| shown.add("distribution", " distribution {}", distribution.name()));
    }
    typed.loss.into_iter().for_each(|loss| add_loss(&mut shown, loss));
    add_chance(&mut shown, "duplicate", "duplicate", typed.told_duplicate());
    add_chance(&mut shown, "reorder", "reorder", typed.reorder);
    add_chance(&mut shown, "corrupt", "corrupt", typed.corrupt);
    typed.rate.into_iter().for_each(|link| add_rate(&mut shown, link));
    typed.slot.iter().for_each(|slot| add_slot(&mut shown, slot));
    shown.flag("ecn", " ecn ", typed.ecn.is_some());
    let gap = typed.gap.unwrap_or(u32::from(typed.reorder.is_some()));
    match gap {
        0 => shown.add_json("gap", gap),
        _ => shown.add("gap", " gap {}", gap),
    }
    if let Some(seed) = typed.seed {
        shown.add("seed", " seed {}", TcValue::new(seed.to_string(), crate::tc::TcJson::Unsigned(seed)));
    }
    shown
}

#[cfg(test)]
mod tests {
    use crate::tc::{Command, QdiscCommand, QdiscOptions, TcStyle, parse};
    use alloc::format;

    /// Goal: every option is shown, each with its own numbers, in `tc`'s order. Method: lines with numbers
    /// that all differ, and what may be left out.
    #[test]
    fn every_option_is_shown() {
        for (typed, shown) in [
            (
                "limit 9 delay 10ms 2ms 3% distribution pareto loss 4% 5% duplicate 6% 7% reorder 8% 9% \
                 corrupt 11% 12% rate 8mbit 20 48 5 slot 1ms 3ms packets 13 bytes 4k ecn gap 14 seed 15",
                "limit 9 delay 10ms  2ms 3% loss 4% 5% duplicate 6% 7% reorder 8% 9% corrupt 11% 12% \
                 rate 8Mbit packetoverhead 20 cellsize 48 celloverhead 5 slot 1ms 3ms packets 13 bytes 4096 \
                 ecn  gap 14 seed 15",
            ),
            (
                "loss state 1% 2% 3% 4% 5% duplicate 6% 7% slot distribution normal 2ms 100us",
                "limit 1000 loss state p13 1% p31 2% p32 3% p23 4% p14 5% duplicate 6% \
                 slot distribution 2ms 100us",
            ),
            ("loss state 1%", "limit 1000 loss state p13 1% p31 99% p32 0% p23 100% p14 0%"),
            ("loss gemodel 1% 2% 3% 4%", "limit 1000 loss gemodel p 1% r 2% 1-h 3% 1-k 4%"),
            ("loss gemodel 1%", "limit 1000 loss gemodel p 1% r 99% 1-h 100% 1-k 0%"),
            ("delay 5ms reorder 6%", "limit 1000 delay 5ms reorder 6% gap 1"),
            ("delay 5ms gap 3", "limit 1000 delay 5ms gap 3"),
        ] {
            match parse(&format!("qdisc add dev lo root netem {typed}")).expect("it is valid") {
                Command::Qdisc(QdiscCommand { options: Some(QdiscOptions::Netem(netem)), .. }) => {
                    assert_eq!(super::shown(&netem).text(TcStyle::default()), shown, "{typed}");
                }
                other => panic!("{other:?}"),
            }
        }
    }
}

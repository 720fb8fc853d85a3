//! How `tc` shows a netem.
//!
//! Source: `tc` by behaviour.

use super::options::{Ecn, NetemOptions, SlotTiming, TypedChance, TypedLoss, TypedSlot};
use crate::tc::text::{percent_text, rate_text, time_text};
use crate::tc::units::Percent;
use alloc::format;
use alloc::string::String;

fn percents<'a>(values: impl IntoIterator<Item = &'a Option<Percent>>) -> String {
    values.into_iter().flatten().map(|value| format!(" {}", percent_text(*value))).collect()
}

fn chance(name: &str, typed: Option<TypedChance>) -> String {
    typed.map_or_else(String::new, |typed| {
        format!(" {name} {}{}", percent_text(typed.percent), percents([&typed.correlation]))
    })
}

fn loss(typed: TypedLoss) -> String {
    match typed {
        TypedLoss::Random(random) => chance("loss", Some(random)),
        TypedLoss::State { p13, others } => {
            format!(" loss state p13 {}{}", percent_text(p13), named_states(&others))
        }
        TypedLoss::GeModel { p, others } => {
            let names = ["r", "1-h", "1-k"];
            let others = names.iter().zip(others).filter_map(|(name, other)| Some((name, other?)));
            let others: String =
                others.map(|(name, other)| format!(" {name} {}", percent_text(other))).collect();
            format!(" loss gemodel p {}{others}", percent_text(p))
        }
    }
}

fn named_states(others: &[Option<Percent>; 4]) -> String {
    let names = ["p31", "p32", "p23", "p14"];
    let given = names.iter().zip(others).filter_map(|(name, other)| Some((name, (*other)?)));
    given.map(|(name, other)| format!(" {name} {}", percent_text(other))).collect()
}

pub(super) fn text(typed: &NetemOptions) -> String {
    let mut text = format!("limit {}", typed.limit.unwrap_or(1000));
    if let Some(delay) = typed.delay {
        text += &format!(" delay {}", time_text(delay.time));
        if let Some(jitter) = delay.jitter {
            text += &format!(" {}{}", time_text(jitter), percents([&delay.correlation]));
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
        text += &format!(" rate {}", rate_text(link.rate.0 / 8 * 8));
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

fn slot(typed: TypedSlot) -> String {
    let mut text = match typed.timing {
        SlotTiming::Between { min, max } => {
            format!(" slot {} {}", time_text(min), time_text(max.unwrap_or(min)))
        }
        SlotTiming::Distributed { distribution, delay, jitter } => {
            format!(" slot distribution {} {} {}", distribution.name(), time_text(delay), time_text(jitter))
        }
    };
    text += &typed.packets.map_or_else(String::new, |packets| format!(" packets {packets}"));
    text += &typed.bytes.map_or_else(String::new, |bytes| format!(" bytes {}", bytes.0));
    text
}

#[cfg(test)]
mod tests {
    use crate::tc::{Command, QdiscCommand, QdiscOptions, parse};
    use alloc::format;

    /// Goal: every option is shown, each with its own numbers, in `tc`'s order. Method: lines with numbers
    /// that all differ, and what may be left out.
    #[test]
    fn every_option_is_shown() {
        for (typed, shown) in [
            (
                "limit 9 delay 10ms 2ms 3% distribution pareto loss 4% 5% duplicate 6% 7% reorder 8% 9% \
                 corrupt 11% 12% rate 8mbit 20 48 5 slot 1ms 3ms packets 13 bytes 4k ecn gap 14 seed 15",
                "limit 9 delay 10ms 2ms 3% distribution pareto loss 4% 5% duplicate 6% 7% reorder 8% 9% \
                 corrupt 11% 12% rate 8Mbit packetoverhead 20 celloverhead 5 cellsize 48 slot 1ms 3ms \
                 packets 13 bytes 4096 ecn gap 14 seed 15",
            ),
            (
                "loss state 1% 2% 3% 4% 5% duplicate 6% slot distribution normal 2ms 100us",
                "limit 1000 loss state p13 1% p31 2% p32 3% p23 4% p14 5% duplicate 6% \
                 slot distribution normal 2ms 100us",
            ),
            ("loss gemodel 1% 2% 3% 4%", "limit 1000 loss gemodel p 1% r 2% 1-h 3% 1-k 4%"),
            ("delay 5ms reorder 6%", "limit 1000 delay 5ms reorder 6% gap 1"),
            ("delay 5ms gap 3", "limit 1000 delay 5ms gap 3"),
        ] {
            match parse(&format!("qdisc add dev lo root netem {typed}")).expect("it is valid") {
                Command::Qdisc(QdiscCommand { options: Some(QdiscOptions::Netem(netem)), .. }) => {
                    assert_eq!(super::text(&netem), shown, "{typed}");
                }
                other => panic!("{other:?}"),
            }
        }
    }
}

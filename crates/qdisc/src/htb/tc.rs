//! `htb` and its classes in `tc`: the options, their defaults, what is shown.
//!
//! Source: tc-htb(8), and `tc` by behaviour. Absent: `offload`.

use super::{Htb, HtbClass, HtbClassStatistics, HtbError, HtbSettings};
use crate::classful::{Classful as _, TcDescription};
use crate::kind::{ClassKind, QdiscContext, QdiscKind};
use crate::refusal::TcRefusal;
use crate::tc::burst::Burst;
use crate::tc::error::TcProblem;
use crate::tc::table::{Complete, first_missing, options};
use crate::tc::tick::{self, shown_size};
use crate::tc::told::{LinkCosts, add_link_layer, needed, rate_of};
use crate::tc::units::{BitRate, Bytes, Minor};
use crate::tc::{TcProperties, TcValue};
use crate::{ClassId, LinkLayer, Packet, Rate};
use alloc::format;
use core::fmt::Debug;
use quietcore_core::Nanos;

options! {
    /// What was typed behind `htb`.
    pub struct HtbOptions of "htb" {
        /// The class of what no filter knows.
        default: Minor = "default",
        /// What rates are divided by to get quanta.
        r2q: u32 = "r2q",
        /// Packets of no class that it holds at most.
        direct_qlen: u32 = "direct_qlen",
    }
}

options! {
    /// What was typed behind `htb`, for a class.
    pub struct HtbClassOptions of "htb" {
        /// What it is sure of.
        rate: BitRate = "rate",
        /// The most that it gets.
        ceil: BitRate = "ceil",
        /// Bytes above its rate.
        burst: Burst = "burst" | "buffer" | "maxburst",
        /// Bytes above its most.
        cburst: Burst = "cburst" | "cbuffer" | "cmaxburst",
        /// The lowest is served first.
        prio: u32 = "prio",
        /// Bytes that it sends in its turn.
        quantum: Bytes = "quantum",
        /// The longest packet.
        mtu: Bytes = "mtu",
        /// Bytes that any packet counts at least.
        mpu: Bytes = "mpu",
        /// Bytes more per packet.
        overhead: u16 = "overhead",
        /// How packets are packed.
        linklayer: LinkLayer = "linklayer",
    }
}

impl Complete for HtbOptions {}

impl Complete for HtbClassOptions {
    fn lacks(&self) -> Option<TcProblem> {
        first_missing("htb", &[(self.rate.is_some(), "`rate`")])
    }
}

impl HtbClassOptions {
    fn told(&self) -> Result<HtbClass, TcRefusal> {
        let costs = LinkCosts { overhead: self.overhead, mpu: self.mpu, layer: self.linklayer };
        let rate = costs.at(rate_of("htb", "rate", needed("htb", "rate", self.rate)?)?);
        let ceil = self.ceil.map(|ceil| rate_of("htb", "ceil", ceil)).transpose()?;
        if self.quantum.is_some_and(|quantum| quantum.0 == 0) {
            let remedy = "it could never send: leave it out, or name a packet's size";
            return Err(TcRefusal::setting("htb", "quantum", 0, remedy));
        }
        let mut class = HtbClass { ceil: ceil.map_or(rate, |ceil| costs.at(ceil)), ..HtbClass::new(rate) };
        class.burst = self.burst.map(|burst| u64::from(burst.size.0));
        class.cburst = self.cburst.map(|burst| u64::from(burst.size.0));
        class.prio = u8::try_from(self.prio.unwrap_or(0)).unwrap_or(7);
        class.quantum = self.quantum.map(|quantum| quantum.0);
        class.mtu = self.mtu.map_or(class.mtu, |mtu| mtu.0);
        Ok(class)
    }
}

impl<P: Packet + Debug + Send> QdiscKind<P> for HtbOptions {
    type Made = Htb<P>;

    fn make(&self, context: &QdiscContext) -> Result<Htb<P>, TcRefusal> {
        let before = HtbSettings::default();
        let r2q = self.r2q.unwrap_or(before.r2q);
        if r2q == 0 {
            return Err(TcRefusal::setting("htb", "r2q", r2q, "rates are divided by it: 1 at least"));
        }
        Ok(Htb::new(HtbSettings {
            major: context.handle,
            default_class: self.default.map_or(0, |minor| minor.0),
            r2q,
            direct_qlen: self.direct_qlen.unwrap_or(before.direct_qlen),
        }))
    }

    fn change(self, _: &mut Htb<P>, _: &Self, _: &QdiscContext) -> Result<Self, TcRefusal> {
        Err(TcRefusal::unchangeable("htb"))
    }

    fn describe(&self, queue: &Htb<P>) -> TcDescription {
        let told = queue.settings();
        let default = match told.default_class {
            0 => "0".into(),
            minor => format!("{minor:#x}"),
        };
        let mut options = TcProperties::default();
        options.add("r2q", "r2q {}", told.r2q);
        options.add("default", " default {}", default);
        options.add("direct_packets_stat", " direct_packets_stat {}", queue.direct_packets());
        options.details(|options| options.add("ver", " ver {}", "3.17"));
        options.add("direct_qlen", " direct_qlen {}", told.direct_qlen);
        TcDescription { options, ..TcDescription::default() }
    }
}

impl<P: Packet + Debug + Send> ClassKind<P> for HtbClassOptions {
    type Of = Htb<P>;

    fn add(&self, queue: &mut Htb<P>, parent: Option<ClassId>, id: ClassId) -> Result<(), TcRefusal> {
        Ok(queue.add_class(parent, id, self.told()?)?)
    }

    fn change(self, queue: &mut Htb<P>, id: ClassId, _: &Self, _: Nanos) -> Result<Self, TcRefusal> {
        queue.change_class(id, self.told()?)?;
        Ok(self)
    }

    fn describe(&self, queue: &Htb<P>, id: ClassId) -> TcDescription {
        let (Ok(told), Some(counted)) = (self.told(), queue.class(id)) else {
            return TcDescription::default();
        };
        let mut options = TcProperties::default();
        if queue.inner(id).is_some() {
            options.add("prio", "prio {} ", told.prio.min(7));
            options.details(|options| options.add("quantum", "quantum {} ", counted.quantum));
        }
        options.add("rate", "rate {} ", TcValue::byte_rate(told.rate.get()));
        if told.rate.overhead_bytes() != 0 {
            options.add("overhead", "overhead {} ", told.rate.overhead_bytes());
        }
        options.add("ceil", "ceil {} ", TcValue::byte_rate(told.ceil.get()));
        add_link_layer(&mut options, told.rate.layer());
        let names = ["burst", "burst_cell", "mpu_rate"];
        add_bucket(&mut options, names, told.rate, told.burst_bytes());
        let names = ["cburst", "cburst_cell", "mpu_ceil"];
        add_bucket(&mut options, names, told.ceil, told.cburst_bytes());
        options.details(|options| options.add("level", "level {} ", counted.level));
        TcDescription { options, figures: figures(&counted, &told) }
    }
}

/// A bucket; with `-d` the sizes that the kernel tells apart, and what a packet counts at least.
fn add_bucket(options: &mut TcProperties, names: [&'static str; 3], rate: Rate, bytes: u64) {
    let [name, cell, least] = names;
    let size = TcValue::size(shown_size(rate, tick::told(rate, bytes)));
    options.text_only(format!("{name} "));
    options.details_or(
        |options| {
            options.add(name, "{}", size.clone());
            options.add(cell, "/{}", 1_u32);
            options.add(least, " mpu {} ", TcValue::size(u64::from(rate.least())));
        },
        |options| options.add(name, "{} ", size.clone()),
    );
}

fn figures(counted: &HtbClassStatistics, told: &HtbClass) -> TcProperties {
    // The bucket of which `tc` tells is shorter by what it cuts off.
    let cut = |rate: Rate, bytes: u64| rate.time_of(bytes).0.saturating_sub(tick::told(rate, bytes).0);
    let less = |tokens: i64, cut: u64| ticks(tokens.saturating_sub_unsigned(cut));
    let tokens = less(counted.tokens, cut(told.rate, told.burst_bytes()));
    let ctokens = less(counted.ctokens, cut(told.ceil, told.cburst_bytes()));
    let mut figures = TcProperties::default();
    figures.add("lended", " lended: {}", counted.lends);
    figures.add("borrowed", " borrowed: {}", counted.borrows);
    figures.add("giants", " giants: {}\n", counted.giants);
    figures.add("tokens", " tokens: {}", tokens);
    figures.add("ctokens", " ctokens: {}\n", ctokens);
    if let Some(warning) = counted.quantum_warning {
        figures.ours(|figures| figures.add("warning", " [quietcore] {}\n", format!("{warning}")));
    }
    figures
}

/// The kernel's ticks, of 64 ns.
const fn ticks(nanos: i64) -> i64 {
    nanos / 64
}

impl From<HtbError> for TcRefusal {
    fn from(error: HtbError) -> Self {
        match error {
            HtbError::Unknown(class) | HtbError::UnknownParent(class) => Self::UnknownClass(class),
            HtbError::Exists(class) => Self::ClassExists(class),
            HtbError::HasChildren(class) => Self::ClassInUse { class, by: "classes below it" },
            HtbError::HoldsPackets(class) => Self::ClassInUse { class, by: "packets that are queued in it" },
            other => Self::NotPossible { what: format!("{other}"), remedy: "there are 8 levels" },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{
        BitRate, Burst, Bytes, Htb, HtbClass, HtbClassOptions, HtbError, HtbOptions, Minor, TcRefusal,
    };
    use crate::kind::{ClassKind as _, QdiscContext, QdiscKind as _};
    use crate::tc::TcStyle;
    use crate::{ClassId, LinkLayer, Qdisc as _, Rate};
    use quietcore_core::Nanos;
    use std::format;
    use std::string::ToString as _;
    use std::vec;
    use std::vec::Vec;

    const PLAIN: TcStyle = TcStyle {
        statistics: false,
        details: false,
        binary: false,
        pretty: false,
        numeric: false,
        ours: false,
    };
    const DETAILS: TcStyle = TcStyle { details: true, ..PLAIN };
    const OURS: TcStyle = TcStyle { ours: true, ..PLAIN };

    fn typed() -> HtbClassOptions {
        HtbClassOptions {
            rate: Some(BitRate(8_000)),
            ceil: Some(BitRate(16_000)),
            burst: Some(Burst { size: Bytes(1_301), cell: Some(8) }),
            cburst: Some(Burst { size: Bytes(1_401), cell: Some(16) }),
            prio: Some(5),
            quantum: Some(Bytes(1_501)),
            mtu: Some(Bytes(1_701)),
            mpu: Some(Bytes(64)),
            overhead: Some(14),
            linklayer: Some(LinkLayer::Atm),
        }
    }

    /// Goal: each option of a class is what it sets. Method: all of them, no two alike; only a rate.
    #[test]
    fn every_option_of_a_class_is_told() {
        let rate = |bytes| Rate::bytes_per_second(bytes).expect("not 0");
        let costs = |bytes| rate(bytes).overhead(14).mpu(64).link_layer(LinkLayer::Atm);
        let told = HtbClass {
            rate: costs(1_000),
            ceil: costs(2_000),
            burst: Some(1_301),
            cburst: Some(1_401),
            prio: 5,
            quantum: Some(1_501),
            mtu: 1_701,
        };
        assert_eq!(typed().told(), Ok(told));
        let least = HtbClassOptions { rate: Some(BitRate(24_000)), ..HtbClassOptions::default() };
        assert_eq!(least.told(), Ok(HtbClass::new(rate(3_000))));
    }

    /// Goal: a class is shown as it was told, changed as it is told then, and a quantum is a leaf's. Method:
    /// a class with all options, a change of them to a few others, and a class below it.
    #[test]
    fn classes_are_shown_and_changed() {
        let (id, below) = (ClassId::new(1, 1), ClassId::new(1, 2));
        let mut queue: Htb<Vec<u8>> = HtbOptions::default().make(&QdiscContext::default()).expect("made");
        typed().add(&mut queue, None, id).expect("added");
        let shown = typed().describe(&queue, id);
        assert_eq!(
            shown.options.text(PLAIN),
            "prio 5 rate 8Kbit overhead 14 ceil 16Kbit linklayer atm burst 1301b cburst 1400b "
        );
        assert_eq!(
            shown.options.text(DETAILS),
            "prio 5 quantum 1501 rate 8Kbit overhead 14 ceil 16Kbit linklayer atm burst 1301b/1 mpu 64b \
             cburst 1400b/1 mpu 64b level 0 "
        );
        let other = HtbClassOptions {
            rate: Some(BitRate(48_000)),
            burst: Some(Burst { size: Bytes(1_901), cell: None }),
            quantum: Some(Bytes(1_801)),
            ..HtbClassOptions::default()
        };
        let after = other.change(&mut queue, id, &typed(), Nanos(0)).expect("changed");
        assert_eq!(queue.class(id).map(|class| class.quantum), Some(1_801));
        let shown = after.describe(&queue, id);
        assert_eq!(
            shown.options.text(DETAILS),
            "prio 0 quantum 1801 rate 48Kbit ceil 48Kbit linklayer ethernet burst 1900b/1 mpu 0b \
             cburst 1599b/1 mpu 0b level 0 "
        );
        typed().add(&mut queue, Some(id), below).expect("added");
        let shown = after.describe(&queue, id);
        assert_eq!(
            shown.options.text(DETAILS),
            "rate 48Kbit ceil 48Kbit linklayer ethernet burst 1900b/1 mpu 0b cburst 1599b/1 mpu 0b level 7 "
        );
    }

    /// Goal: what it counts stands where `tc` shows it. Method: three packets of no class; then one of 100
    /// bytes and a giant of 300 from a class of 1000 bytes per second, 2000 at most, whose buckets hold 1301
    /// and 1401: 901 bytes are 901 ms at the one, 1001 are 500.5 ms at the other, in ticks of 64 ns.
    #[test]
    fn counts_are_shown() {
        let options = HtbOptions { default: None, r2q: Some(7), direct_qlen: Some(11) };
        let mut queue: Htb<Vec<u8>> = options.make(&QdiscContext::default()).expect("made");
        for _ in 0..3 {
            assert!(queue.enqueue(Nanos(0), vec![0; 50]).is_accepted());
        }
        let shown = options.describe(&queue).options;
        assert_eq!(shown.text(PLAIN), "r2q 7 default 0 direct_packets_stat 3 direct_qlen 11");
        let id = ClassId::new(queue.settings().major, 0x1f);
        let plain =
            HtbClassOptions { quantum: None, mtu: Some(Bytes(299)), mpu: None, overhead: None, ..typed() };
        let class = HtbClassOptions { linklayer: None, ..plain };
        class.add(&mut queue, None, id).expect("added");
        for bytes in [100, 300] {
            assert!(queue.enqueue_to(Nanos(0), id, vec![0; bytes]).is_accepted());
        }
        while queue.dequeue(Nanos(0)).packet().is_some() {}
        assert_eq!(
            class.describe(&queue, id).figures.text(OURS),
            " lended: 2 borrowed: 0 giants: 1\n tokens: 14078125 ctokens: 7820312\n \
             [quietcore] quantum is small, consider r2q change\n"
        );
        let named = HtbOptions { default: Some(Minor(0x1f)), ..options };
        let queue: Htb<Vec<u8>> = named.make(&QdiscContext::default()).expect("made");
        let shown = named.describe(&queue).options;
        assert_eq!(shown.text(DETAILS), "r2q 7 default 0x1f direct_packets_stat 0 ver 3.17 direct_qlen 11");
    }

    /// Goal: what cannot be is refused with the option, its value and what to do. Method: each option that
    /// can be wrong, each error of a class, and a change of the whole.
    #[test]
    fn every_refusal_has_its_text() {
        let least = "cannot be: a rate is one byte per second (8bit) at least";
        for (class, refused) in [
            (HtbClassOptions { rate: None, ..typed() }, "htb: `rate ` cannot be: it has no default".into()),
            (HtbClassOptions { rate: Some(BitRate(7)), ..typed() }, format!("htb: `rate 7bit` {least}")),
            (HtbClassOptions { ceil: Some(BitRate(6)), ..typed() }, format!("htb: `ceil 6bit` {least}")),
            (
                HtbClassOptions { quantum: Some(Bytes(0)), ..typed() },
                "htb: `quantum 0` cannot be: it could never send: leave it out, or name a packet's size"
                    .into(),
            ),
        ] {
            assert_eq!(class.told().map_err(|refusal| refusal.to_string()), Err(refused));
        }
        let class = ClassId::new(1, 0x1f);
        let in_use = |by| format!("Device or resource busy: class 1:1f is held by {by}; remove that first");
        for (error, wrong, refused) in [
            (HtbError::Unknown(class), "there is no class 1:1f", "Specified class 1:1f not found".into()),
            (
                HtbError::UnknownParent(class),
                "there is no class 1:1f to be the parent",
                "Specified class 1:1f not found".into(),
            ),
            (
                HtbError::Exists(class),
                "there is a class 1:1f already",
                "File exists: there is a class 1:1f already; use `change` or `replace`".into(),
            ),
            (HtbError::HasChildren(class), "class 1:1f has classes below it", in_use("classes below it")),
            (
                HtbError::HoldsPackets(class),
                "packets are queued in class 1:1f",
                in_use("packets that are queued in it"),
            ),
            (
                HtbError::TooDeep(class),
                "class 1:1f would be below the 8th level",
                "class 1:1f would be below the 8th level; there are 8 levels".into(),
            ),
        ] {
            assert_eq!((error.to_string(), TcRefusal::from(error).to_string()), (wrong.into(), refused));
        }
        let foreign = HtbError::Foreign(class).to_string();
        assert_eq!(foreign, "1:1f cannot name a class of this discipline");
        let context = QdiscContext::default();
        let made = |options: &HtbOptions| {
            options.make(&context).map(|_: Htb<Vec<u8>>| ()).map_err(|it| it.to_string())
        };
        let none = HtbOptions { r2q: Some(0), ..HtbOptions::default() };
        assert_eq!(made(&none), Err("htb: `r2q 0` cannot be: rates are divided by it: 1 at least".into()));
        let options = HtbOptions::default();
        let mut queue: Htb<Vec<u8>> = options.make(&context).expect("made");
        assert_eq!(
            options.clone().change(&mut queue, &options, &context).map_err(|refusal| refusal.to_string()),
            Err("Change operation not supported by specified qdisc: htb; `del` it and add it again; its \
                 classes can be changed"
                .into())
        );
    }
}

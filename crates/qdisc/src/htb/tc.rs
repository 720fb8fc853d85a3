//! `htb` and its classes in `tc`: the options, their defaults, what is shown.
//!
//! Source: tc-htb(8), and `tc` by behaviour. Absent: `offload`.

use super::{Htb, HtbClass, HtbError, HtbSettings};
use crate::classful::{Classful as _, TcDescription};
use crate::kind::{ClassKind, QdiscContext, QdiscKind};
use crate::refusal::TcRefusal;
use crate::tc::burst::Burst;
use crate::tc::error::TcProblem;
use crate::tc::table::{Complete, first_missing, options};
use crate::tc::text::{byte_rate_text, size_text};
use crate::tc::told::{LinkCosts, needed, rate_of};
use crate::tc::units::{BitRate, Bytes, Minor};
use crate::{ClassId, LinkLayer, Packet};
use alloc::format;
use alloc::string::String;
use alloc::vec;
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
        prio: u32 = "prio" in 0..=7,
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

    /// What `-d` adds; `quantum` is a leaf's.
    fn details(&self, quantum: Option<u32>, level: u8) -> String {
        let cell = |name: &str, burst: Option<Burst>| {
            burst.and_then(|burst| burst.cell).map_or_else(String::new, |cell| format!(" {name} {cell}"))
        };
        let mut details = quantum.map_or_else(String::new, |quantum| format!("quantum {quantum}"));
        details += &cell("burst cell", self.burst);
        details += &cell("cburst cell", self.cburst);
        details += &self.mpu.map_or_else(String::new, |mpu| format!(" mpu {}", size_text(u64::from(mpu.0))));
        details += &self.overhead.map_or_else(String::new, |bytes| format!(" overhead {bytes}b"));
        details += &format!(" level {level}");
        details.trim_start().into()
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
        let options = format!(
            "r2q {} default {default} direct_packets_stat {} direct_qlen {}",
            told.r2q,
            queue.direct_packets(),
            told.direct_qlen
        );
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
        let quantum = queue.inner(id).map(|_| counted.quantum);
        let mut options = quantum.map_or_else(String::new, |_| format!("prio {} ", told.prio));
        options +=
            &format!("rate {} ceil {}", byte_rate_text(told.rate.get()), byte_rate_text(told.ceil.get()));
        let (burst, cburst) = (size_text(told.burst_bytes()), size_text(told.cburst_bytes()));
        options += &format!(" burst {burst} cburst {cburst}");
        let mut notes = vec![
            format!("lended: {} borrowed: {} giants: {}", counted.lends, counted.borrows, counted.giants),
            format!("tokens: {} ctokens: {}", ticks(counted.tokens), ticks(counted.ctokens)),
        ];
        notes.extend(counted.quantum_warning.map(|warning| format!("[quietcore] {warning}")));
        TcDescription { options, details: self.details(quantum, counted.level), notes }
    }
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
    use crate::{ClassId, LinkLayer, Qdisc as _, Rate};
    use quietcore_core::Nanos;
    use std::format;
    use std::string::ToString as _;
    use std::vec;
    use std::vec::Vec;

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
        assert_eq!(shown.options, "prio 5 rate 8Kbit ceil 16Kbit burst 1301b cburst 1401b");
        assert_eq!(shown.details, "quantum 1501 burst cell 8 cburst cell 16 mpu 64b overhead 14b level 0");
        let other = HtbClassOptions {
            rate: Some(BitRate(48_000)),
            burst: Some(Burst { size: Bytes(1_901), cell: None }),
            quantum: Some(Bytes(1_801)),
            ..HtbClassOptions::default()
        };
        let after = other.change(&mut queue, id, &typed(), Nanos(0)).expect("changed");
        assert_eq!(queue.class(id).map(|class| class.quantum), Some(1_801));
        let shown = after.describe(&queue, id);
        assert_eq!(shown.options, "prio 0 rate 48Kbit ceil 48Kbit burst 1901b cburst 1600b");
        assert_eq!(shown.details, "quantum 1801 level 0");
        typed().add(&mut queue, Some(id), below).expect("added");
        let shown = after.describe(&queue, id);
        assert_eq!(shown.options, "rate 48Kbit ceil 48Kbit burst 1901b cburst 1600b");
        assert_eq!(shown.details, "level 7");
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
        assert_eq!(options.describe(&queue).options, "r2q 7 default 0 direct_packets_stat 3 direct_qlen 11");
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
            class.describe(&queue, id).notes,
            [
                "lended: 2 borrowed: 0 giants: 1",
                "tokens: 14078125 ctokens: 7820312",
                "[quietcore] quantum is small, consider r2q change",
            ]
        );
        let named = HtbOptions { default: Some(Minor(0x1f)), ..options };
        let queue: Htb<Vec<u8>> = named.make(&QdiscContext::default()).expect("made");
        assert_eq!(named.describe(&queue).options, "r2q 7 default 0x1f direct_packets_stat 0 direct_qlen 11");
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

//! `cake` in `tc`: the options, their defaults, what is shown.
//!
//! Source: tc-cake(8), and `tc` by behaviour: what is not typed in a change stays, and 0 says nothing for
//! most options.

use super::typed::{CakeLink, CakeRate, CakeRtt};
use super::{
    Cake, CakeAckFilter, CakeCells, CakeError, CakeFlow, CakeFraming, CakeIsolation, CakeSettings,
    CakeStatistics, CakeTinStatistics, CakeTins,
};
use crate::Packet;
use crate::classful::TcDescription;
use crate::codel::tc::{add_drop_next, shown_micros};
use crate::kind::{QdiscContext, QdiscKind, RandomWords};
use crate::refusal::TcRefusal;
use crate::tc::table::{Complete, OptionTable as _, options, switch};
use crate::tc::units::Bytes;
use crate::tc::{TcProperties, TcValue};
use alloc::format;
use alloc::string::ToString as _;
use alloc::vec::Vec;
use core::fmt::Debug;
use quietcore_core::Nanos;

/// The part of the round trip time that is the target.
const TARGET_PART: u64 = 20;
const MICROSECOND: u64 = 1_000;

options! {
    /// What was typed behind `cake`.
    pub struct CakeOptions of "cake" {
        /// The rate.
        rate: CakeRate = "bandwidth" | "unlimited" | "autorate-ingress",
        /// The round trip time.
        rtt: CakeRtt = "rtt" | "datacentre" | "lan" | "metro" | "regional" | "internet" | "oceanic"
            | "satellite" | "interplanetary",
        /// How packets are spread over tins.
        tins: CakeTinsWord = "besteffort" | "precedence" | "diffserv3" | "diffserv4" | "diffserv8",
        /// What shares a queue.
        isolation: CakeIsolationWord = "flowblind" | "srchost" | "dsthost" | "hosts" | "flows"
            | "dual-srchost" | "dual-dsthost" | "triple-isolate",
        /// Whether addresses are those before a translation, of which none is known.
        nat: CakeNat = "nat" | "nonat",
        /// Whether packets leave without their DSCP.
        wash: CakeWash = "wash" | "nowash",
        /// Whether acknowledgements are dropped.
        ack_filter: CakeAckWord = "no-ack-filter" | "ack-filter" | "ack-filter-aggressive",
        /// Whether pieces of a stream are cut.
        split_gso: CakeSplit = "split-gso" | "no-split-gso",
        /// What the link adds.
        link: CakeLink = "overhead" | "mpu" | "atm" | "ptm" | "noatm" | "raw" | "conservative"
            | "via-ethernet" | "ipoa-vcmux" | "ipoa-llcsnap" | "bridged-vcmux" | "bridged-llcsnap"
            | "pppoa-vcmux" | "pppoa-llc" | "pppoe-vcmux" | "pppoe-llcsnap" | "pppoe-ptm" | "bridged-ptm"
            | "ethernet" | "ether-vlan" | "docsis",
        /// On which side of the link it is.
        direction: CakeDirection = "ingress" | "egress",
        /// Bytes that packets take at most.
        memlimit: Bytes = "memlimit",
        /// Which bits of a mark name a tin.
        fwmark: u32 = "fwmark",
    }
}

switch! {
    /// How packets are spread over tins.
    pub enum CakeTinsWord {
        /// One tin.
        BestEffort = "besteffort",
        /// By precedence.
        Precedence = "precedence",
        /// Three.
        Diffserv3 = "diffserv3",
        /// Four.
        Diffserv4 = "diffserv4",
        /// Eight.
        Diffserv8 = "diffserv8",
    }
}

switch! {
    /// What shares a queue.
    pub enum CakeIsolationWord {
        /// All packets.
        FlowBlind = "flowblind",
        /// By source.
        SourceHost = "srchost",
        /// By destination.
        DestinationHost = "dsthost",
        /// By both.
        Hosts = "hosts",
        /// By connection.
        Flows = "flows",
        /// The same, sources share first.
        DualSourceHost = "dual-srchost",
        /// The same, destinations do.
        DualDestinationHost = "dual-dsthost",
        /// Both do.
        Triple = "triple-isolate",
    }
}

switch! {
    /// Whether addresses are translated.
    pub enum CakeNat {
        /// `nat`.
        On = "nat",
        /// `nonat`.
        Off = "nonat",
    }
}

switch! {
    /// Whether DSCPs are cleared.
    pub enum CakeWash {
        /// `wash`.
        On = "wash",
        /// `nowash`.
        Off = "nowash",
    }
}

switch! {
    /// Whether acknowledgements are dropped.
    pub enum CakeAckWord {
        /// `no-ack-filter`.
        Off = "no-ack-filter",
        /// `ack-filter`.
        Conservative = "ack-filter",
        /// `ack-filter-aggressive`.
        Aggressive = "ack-filter-aggressive",
    }
}

switch! {
    /// Whether pieces of a stream are cut.
    pub enum CakeSplit {
        /// `split-gso`.
        On = "split-gso",
        /// `no-split-gso`.
        Off = "no-split-gso",
    }
}

switch! {
    /// On which side of the link it is.
    pub enum CakeDirection {
        /// `ingress`.
        Ingress = "ingress",
        /// `egress`.
        Egress = "egress",
    }
}

impl Complete for CakeOptions {}

impl From<CakeTinsWord> for CakeTins {
    fn from(word: CakeTinsWord) -> Self {
        match word {
            CakeTinsWord::BestEffort => Self::BestEffort,
            CakeTinsWord::Precedence => Self::Precedence,
            CakeTinsWord::Diffserv3 => Self::Diffserv3,
            CakeTinsWord::Diffserv4 => Self::Diffserv4,
            CakeTinsWord::Diffserv8 => Self::Diffserv8,
        }
    }
}

impl From<CakeIsolationWord> for CakeIsolation {
    fn from(word: CakeIsolationWord) -> Self {
        match word {
            CakeIsolationWord::FlowBlind => Self::FlowBlind,
            CakeIsolationWord::SourceHost => Self::SourceHost,
            CakeIsolationWord::DestinationHost => Self::DestinationHost,
            CakeIsolationWord::Hosts => Self::Hosts,
            CakeIsolationWord::Flows => Self::Flows,
            CakeIsolationWord::DualSourceHost => Self::DualSourceHost,
            CakeIsolationWord::DualDestinationHost => Self::DualDestinationHost,
            CakeIsolationWord::Triple => Self::Triple,
        }
    }
}

impl From<CakeAckWord> for CakeAckFilter {
    fn from(word: CakeAckWord) -> Self {
        match word {
            CakeAckWord::Off => Self::Off,
            CakeAckWord::Conservative => Self::Conservative,
            CakeAckWord::Aggressive => Self::Aggressive,
        }
    }
}

/// A number of an option of which 0 says nothing.
fn positive(number: Option<u32>) -> Option<u32> {
    number.filter(|number| *number > 0)
}

impl CakeOptions {
    fn told(&self, before: CakeSettings) -> CakeSettings {
        let (mut bandwidth, mut autorate_ingress) = (before.bandwidth, before.autorate_ingress);
        if let Some(rate) = self.rate {
            bandwidth = rate.bandwidth.map_or(bandwidth, |rate| Some(rate.bytes_per_second()));
            autorate_ingress = rate.autorate;
        }
        // A time of 0 leaves the interval as it is, but not the target.
        let rtt = self.rtt.map(|rtt| rtt.0);
        let target = |rtt: Nanos| Nanos((rtt.0 / MICROSECOND / TARGET_PART).max(1) * MICROSECOND);
        CakeSettings {
            bandwidth: bandwidth.filter(|rate| *rate > 0),
            autorate_ingress,
            interval: rtt.filter(|rtt| rtt.0 > 0).unwrap_or(before.interval),
            target: rtt.map_or(before.target, target),
            tins: self.tins.map_or(before.tins, Into::into),
            isolation: self.isolation.map_or(before.isolation, Into::into),
            wash: self.wash.map_or(before.wash, |wash| wash == CakeWash::On),
            ack_filter: self.ack_filter.map_or(before.ack_filter, Into::into),
            split_gso: self.split_gso.map_or(before.split_gso, |split| split == CakeSplit::On),
            ingress: self.direction.map_or(before.ingress, |side| side == CakeDirection::Ingress),
            framing: self.link.map_or(before.framing, |link| link.told(before.framing)),
            memory_limit: positive(self.memlimit.map(|bytes| bytes.0)).or(before.memory_limit),
            fwmark: positive(self.fwmark).unwrap_or(before.fwmark),
            ..before
        }
    }
}

/// What a cake says of its settings.
fn refused(error: CakeError) -> TcRefusal {
    let (option, value) = match error {
        CakeError::Overhead(bytes) => ("overhead", bytes.to_string()),
        CakeError::Mpu(bytes) => ("mpu", bytes.to_string()),
        CakeError::NoTime => ("rtt", "0".into()),
    };
    TcRefusal::setting("cake", option, value, error.to_string())
}

impl<P: Packet + Debug + Send> QdiscKind<P> for CakeOptions {
    type Made = Cake<P, RandomWords>;

    fn make(&self, context: &QdiscContext) -> Result<Self::Made, TcRefusal> {
        let defaults = CakeSettings { major: context.handle, ..CakeSettings::default() };
        Cake::new(self.told(defaults), (context.random)(context.seed)).map_err(refused)
    }

    fn change(self, queue: &mut Self::Made, before: &Self, _: &QdiscContext) -> Result<Self, TcRefusal> {
        queue.change(self.told(*queue.settings())).map_err(refused)?;
        if self.link.is_some_and(|link| link.overhead.is_some()) {
            queue.restart_sizes();
        }
        let framing = queue.settings().framing;
        let merged = self.merged(before.clone());
        // Several words of a link are added up, those of a change are not added to what was there.
        let link = merged.link.map(|_| CakeLink {
            raw: framing.raw,
            overhead: Some(framing.overhead).filter(|bytes| framing.raw || *bytes != 0),
            mpu: positive(Some(framing.mpu)),
            cells: Some(framing.cells),
        });
        Ok(Self { link, ..merged })
    }

    fn describe(&self, queue: &Self::Made) -> TcDescription {
        let is_nat = self.nat == Some(CakeNat::On);
        TcDescription {
            options: shown(queue.settings(), is_nat),
            figures: figures(queue.settings().tins, &queue.cake_statistics()),
        }
    }
}

fn shown(told: &CakeSettings, is_nat: bool) -> TcProperties {
    let mut shown = TcProperties::default();
    match told.bandwidth {
        Some(rate) => shown.add("bandwidth", "bandwidth {} ", TcValue::byte_rate(rate)),
        None => shown.add("bandwidth", "bandwidth {} ", "unlimited"),
    }
    if told.autorate_ingress {
        shown.add("autorate", "{} ", "autorate-ingress");
    }
    shown.add("diffserv", "{} ", tins_word(told.tins));
    shown.add("flowmode", "{} ", isolation_word(told.isolation));
    either(&mut shown, "nat", is_nat, ["nat ", "nonat "]);
    either(&mut shown, "wash", told.wash, ["wash ", "nowash "]);
    either(&mut shown, "ingress", told.ingress, ["ingress ", ""]);
    let (text, word) = match told.ack_filter {
        CakeAckFilter::Off => ("no-ack-filter ", "disabled"),
        CakeAckFilter::Conservative => ("ack-filter ", "enabled"),
        CakeAckFilter::Aggressive => ("ack-filter-aggressive ", "aggressive"),
    };
    shown.add("ack-filter", text, word);
    either(&mut shown, "split_gso", told.split_gso, ["split-gso ", "no-split-gso "]);
    shown.add("rtt", "rtt {} ", shown_micros(told.interval));
    show_framing(&mut shown, &told.framing);
    if let Some(limit) = told.memory_limit {
        shown.add("memlimit", "memlimit {} ", TcValue::size(limit.into()));
    }
    let mark = if told.fwmark == 0 { "0".into() } else { format!("{:#x}", told.fwmark) };
    if told.fwmark == 0 {
        shown.add_json("fwmark", mark);
    } else {
        shown.add("fwmark", "fwmark {} ", mark);
    }
    shown
}

/// One text or the other; JSON says whether it is the first.
fn either(shown: &mut TcProperties, name: &'static str, is: bool, texts: [&'static str; 2]) {
    shown.add_json(name, is);
    shown.text_only(texts[usize::from(!is)]);
}

const fn tins_word(tins: CakeTins) -> &'static str {
    match tins {
        CakeTins::BestEffort => "besteffort",
        CakeTins::Precedence => "precedence",
        CakeTins::Diffserv3 => "diffserv3",
        CakeTins::Diffserv4 => "diffserv4",
        CakeTins::Diffserv8 => "diffserv8",
    }
}

const fn isolation_word(isolation: CakeIsolation) -> &'static str {
    match isolation {
        CakeIsolation::FlowBlind => "flowblind",
        CakeIsolation::SourceHost => "srchost",
        CakeIsolation::DestinationHost => "dsthost",
        CakeIsolation::Hosts => "hosts",
        CakeIsolation::Flows => "flows",
        CakeIsolation::DualSourceHost => "dual-srchost",
        CakeIsolation::DualDestinationHost => "dual-dsthost",
        CakeIsolation::Triple => "triple-isolate",
    }
}

fn show_framing(shown: &mut TcProperties, framing: &CakeFraming) {
    either(shown, "raw", framing.raw, ["raw ", ""]);
    match framing.cells {
        CakeCells::Plain if framing.raw => {}
        CakeCells::Plain => shown.add("atm", "{} ", "noatm"),
        CakeCells::Atm => shown.add("atm", "{} ", "atm"),
        CakeCells::Ptm => shown.add("atm", "{} ", "ptm"),
    }
    shown.add("overhead", "overhead {} ", framing.overhead);
    if framing.mpu > 0 {
        shown.add("mpu", "mpu {} ", framing.mpu);
    }
}

/// What was counted: in text a table with a column for each tin, in JSON a list of tins.
fn figures(tins: CakeTins, counted: &CakeStatistics) -> TcProperties {
    let mut figures = TcProperties::default();
    figures.add_text(" memory used: {}", TcValue::size(counted.memory_used));
    figures.add_json("memory_used", counted.memory_used);
    figures.add_text(" of {}\n", TcValue::size(counted.memory_limit.into()));
    figures.add_json("memory_limit", counted.memory_limit);
    figures.add(
        "capacity_estimate",
        " capacity estimate: {}\n",
        TcValue::byte_rate(counted.capacity_estimate),
    );
    for (least, most, template, (low, high)) in [
        ("min_network_size", "max_network_size", " min/max network layer size: {:>12}", counted.network_size),
        ("min_adj_size", "max_adj_size", " min/max overhead-adjusted size: {:>8}", counted.adjusted_size),
    ] {
        figures.add(least, template, low);
        figures.add(most, " / {:>7}\n", high);
    }
    figures.add("avg_hdr_offset", " average network hdr offset: {:>12}\n\n", counted.header);
    show_table(&mut figures, tins, &counted.tins);
    let members = |tin: &CakeTinStatistics| {
        let mut shown = TcProperties::default();
        for (name, value) in tin_members(tin) {
            shown.add_json(name, value);
        }
        shown
    };
    figures.objects("tins", counted.tins.iter().map(members).collect());
    figures
}

/// A row of the table: its name, and what it shows of a tin.
type TinRow = (&'static str, fn(&CakeTinStatistics) -> TcValue);

const TIN_ROWS: &[TinRow] = &[
    ("  thresh  ", |tin| TcValue::byte_rate(tin.threshold)),
    ("  target  ", |tin| shown_micros(tin.target)),
    ("  interval", |tin| shown_micros(tin.interval)),
    ("  pk_delay", |tin| shown_micros(tin.peak_delay)),
    ("  av_delay", |tin| shown_micros(tin.average_delay)),
    ("  sp_delay", |tin| shown_micros(tin.base_delay)),
    ("  backlog ", |tin| TcValue::size(tin.backlog)),
    ("  pkts    ", |tin| tin.packets.into()),
    ("  bytes   ", |tin| tin.bytes.into()),
    ("  way_inds", |tin| tin.way_indirect_hits.into()),
    ("  way_miss", |tin| tin.way_misses.into()),
    ("  way_cols", |tin| tin.way_collisions.into()),
    ("  drops   ", |tin| tin.drops.into()),
    ("  marks   ", |tin| tin.ecn_marks.into()),
    ("  ack_drop", |tin| tin.ack_drops.into()),
    ("  sp_flows", |tin| tin.sparse_flows.into()),
    ("  bk_flows", |tin| tin.bulk_flows.into()),
    ("  un_flows", |tin| tin.unresponsive_flows.into()),
    ("  max_len ", |tin| tin.longest_packet.into()),
    ("  quantum ", |tin| tin.flow_quantum.into()),
];

fn show_table(shown: &mut TcProperties, tins: CakeTins, counted: &[CakeTinStatistics]) {
    shown.text_only("          ");
    for number in 0..counted.len() {
        let name = tins.names().map_or_else(|| format!("Tin {number}"), |names| names[number].into());
        shown.text_only(format!(" {name:>12}"));
    }
    shown.text_only("\n");
    for (name, value) in TIN_ROWS {
        shown.text_only(*name);
        for tin in counted {
            shown.add_text(" {:>12}", value(tin));
        }
        shown.text_only("\n");
    }
}

fn tin_members(tin: &CakeTinStatistics) -> Vec<(&'static str, TcValue)> {
    let micros = |time: Nanos| TcValue::from(time.0 / MICROSECOND);
    alloc::vec![
        ("threshold_rate", tin.threshold.into()),
        ("sent_bytes", tin.bytes.into()),
        ("backlog_bytes", tin.backlog.into()),
        ("target_us", micros(tin.target)),
        ("interval_us", micros(tin.interval)),
        ("peak_delay_us", micros(tin.peak_delay)),
        ("avg_delay_us", micros(tin.average_delay)),
        ("base_delay_us", micros(tin.base_delay)),
        ("sent_packets", tin.packets.into()),
        ("way_indirect_hits", tin.way_indirect_hits.into()),
        ("way_misses", tin.way_misses.into()),
        ("way_collisions", tin.way_collisions.into()),
        ("drops", tin.drops.into()),
        ("ecn_mark", tin.ecn_marks.into()),
        ("ack_drops", tin.ack_drops.into()),
        ("sparse_flows", tin.sparse_flows.into()),
        ("bulk_flows", tin.bulk_flows.into()),
        ("unresponsive_flows", tin.unresponsive_flows.into()),
        ("max_pkt_len", tin.longest_packet.into()),
        ("flow_quantum", tin.flow_quantum.into()),
    ]
}

/// A flow's figures, which are a class's.
pub(super) fn describe_flow(flow: &CakeFlow) -> TcDescription {
    let mut figures = TcProperties::default();
    figures.add("deficit", "  deficit {}", flow.deficit);
    figures.add("count", " count {}", flow.count);
    if let Some(nanos) = flow.drop_next {
        figures.mark("dropping", " dropping");
        add_drop_next(&mut figures, nanos);
    }
    figures.add("blue_prob", " blue_prob {}", flow.drop_probability);
    if flow.drop_probability > 0 {
        figures.add("blue_timer", " blue_timer {}", shown_micros(flow.blue_timer));
    }
    TcDescription { figures, ..TcDescription::default() }
}

#[cfg(test)]
mod tests {
    use super::{CakeFlow, CakeOptions, CakeStatistics, CakeTinStatistics, CakeTins, describe_flow, figures};
    use crate::cake::typed::CakeLink;
    use crate::kind::{QdiscContext, QdiscKind as _};
    use crate::tc::TcStyle;
    use crate::{Cake, Statistics};
    use quietcore_core::Nanos;
    use std::boxed::Box;
    use std::string::{String, ToString as _};
    use std::vec::Vec;

    fn counted() -> CakeStatistics {
        let tin = CakeTinStatistics {
            threshold: 125_000,
            target: Nanos(5_000_000),
            interval: Nanos(100_000_000),
            peak_delay: Nanos(31_000),
            average_delay: Nanos(32_000),
            base_delay: Nanos(33_000),
            backlog: 34,
            packets: 35,
            bytes: 36,
            way_indirect_hits: 37,
            way_misses: 38,
            way_collisions: 39,
            drops: 40,
            ecn_marks: 41,
            ack_drops: 42,
            sparse_flows: 43,
            bulk_flows: 44,
            unresponsive_flows: 45,
            longest_packet: 46,
            flow_quantum: 47,
        };
        CakeStatistics {
            memory_used: 21,
            memory_limit: 22,
            capacity_estimate: 23,
            network_size: (24, 25),
            adjusted_size: (26, 27),
            header: 28,
            tins: std::vec![tin],
        }
    }

    /// Goal: each count stands behind its own name, in text and in JSON. Method: counts, no two alike.
    #[test]
    fn every_count_has_its_name() {
        let shown = figures(CakeTins::BestEffort, &counted());
        let rows: Vec<String> = "thresh 1Mbit, target 5ms, interval 100ms, pk_delay 31us, av_delay 32us, \
             sp_delay 33us, backlog 34b, pkts 35, bytes 36, way_inds 37, way_miss 38, way_cols 39, drops 40, \
             marks 41, ack_drop 42, sp_flows 43, bk_flows 44, un_flows 45, max_len 46, quantum 47"
            .split(", ")
            .map(|row| {
                let (name, value) = row.split_once(' ').expect("a name and a value");
                std::format!("  {name:8} {value:>12}\n")
            })
            .collect();
        assert_eq!(
            shown.text(TcStyle::default()),
            std::format!(
                " memory used: 21b of 22b\n capacity estimate: 184bit\n min/max network layer size:           24 \
                 /      25\n min/max overhead-adjusted size:       26 /      27\n average network hdr offset: \
                 \x20         28\n\n                  Tin 0\n{}",
                rows.concat()
            )
        );
        let json = shown.json(TcStyle::default());
        assert_eq!(
            json,
            "{\"memory_used\":21,\"memory_limit\":22,\"capacity_estimate\":23,\"min_network_size\":24,\
             \"max_network_size\":25,\"min_adj_size\":26,\"max_adj_size\":27,\"avg_hdr_offset\":28,\"tins\":\
             [{\"threshold_rate\":125000,\"sent_bytes\":36,\"backlog_bytes\":34,\"target_us\":5000,\
             \"interval_us\":100000,\"peak_delay_us\":31,\"avg_delay_us\":32,\"base_delay_us\":33,\
             \"sent_packets\":35,\"way_indirect_hits\":37,\"way_misses\":38,\"way_collisions\":39,\"drops\":40,\
             \"ecn_mark\":41,\"ack_drops\":42,\"sparse_flows\":43,\"bulk_flows\":44,\"unresponsive_flows\":45,\
             \"max_pkt_len\":46,\"flow_quantum\":47}]}"
        );
    }

    /// Goal: a flow is shown as `tc` showed it on Linux 6.12. Method: recorded texts of one that drops,
    /// whose drop is overdue, and of one that does not; BLUE's part besides.
    #[test]
    fn a_flow_is_shown_as_recorded() {
        let flow = CakeFlow {
            statistics: Statistics::default(),
            deficit: -1_350,
            count: 2_197,
            drop_probability: 0,
            blue_timer: Nanos(0),
            drop_next: Some(29_000_000_000),
        };
        let text = |flow| describe_flow(&flow).figures.text(TcStyle::default());
        assert_eq!(text(flow), "  deficit -1350 count 2197 dropping drop_next 29s blue_prob 0");
        let quiet = CakeFlow { deficit: -612, count: 55, drop_next: None, ..flow };
        assert_eq!(text(quiet), "  deficit -612 count 55 blue_prob 0");
        let blue =
            CakeFlow { drop_probability: 7, blue_timer: Nanos(2_000_000), drop_next: Some(-9_000), ..flow };
        assert_eq!(
            text(blue),
            "  deficit -1350 count 2197 dropping drop_next -9us blue_prob 7 blue_timer 2ms"
        );
    }

    /// Goal: what cannot be is refused with the option, its value and the reason. Method: a sum of overheads.
    #[test]
    fn a_refusal_has_its_text() {
        let link = CakeLink { overhead: Some(280), ..CakeLink::default() };
        let options = CakeOptions { link: Some(link), ..CakeOptions::default() };
        let context = QdiscContext { random: |_| Box::new(|| 4), ..QdiscContext::default() };
        let made = options.make(&context).map(|_: Cake<Vec<u8>, _>| ());
        let refused = "cake: `overhead 280` cannot be: overhead of 280 bytes: it is -64 to 256";
        assert_eq!(made.map_err(|refusal| refusal.to_string()), Err(refused.into()));
    }
}

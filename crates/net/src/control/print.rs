//! How reports are printed: as text, or as JSON, both from one list of properties.
//!
//! Source: `tc` 6.1 by behaviour (`tests/tc_recorded`); JSON of classes as `tc` 6.15 writes it, since 6.1 has
//! text for them with `-j`, too.

use super::graph;
use super::report::{Answer, ClassReport, FilterReport, QdiscReport, QueueReport, RateReport};
use crate::QueueStatistics;
use core::fmt::{self, Formatter};
use quietcore_qdisc::tc::{
    FieldMatch, JsonLayout, JsonWriter, TcJson, TcProperties, TcStyle, TcValue, size_text,
};
use quietcore_qdisc::{ClassId, Statistics};
use std::net::Ipv4Addr;

impl fmt::Display for Answer {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        if let Self::Graph(reports) = self {
            return out.write_str(&graph::tree(reports));
        }
        self.shown().iter().try_for_each(|(properties, style)| {
            out.write_str(&properties.text(*style))?;
            out.write_str("\n")
        })
    }
}

impl Answer {
    /// As `-j` prints it, `-p` or not.
    #[must_use]
    pub fn json(&self, layout: JsonLayout) -> String {
        let shown = match self {
            Self::Done => return String::new(),
            Self::Graph(reports) => return graph::tree(reports),
            _ => self.shown(),
        };
        let mut json = JsonWriter::new(layout);
        json.begin_list();
        for (properties, style) in &shown {
            json.next();
            json.begin_object();
            properties.put_members(*style, &mut json);
            json.end_object();
        }
        json.end_list();
        json.finish()
    }

    /// All that is printed, one after the other.
    fn shown(&self) -> Vec<(TcProperties, TcStyle)> {
        match self {
            Self::Done | Self::Graph(_) => Vec::new(),
            Self::Qdiscs(reports) => {
                reports.iter().map(|report| (report.properties(), report.shown.style)).collect()
            }
            Self::Classes(reports) => {
                reports.iter().map(|report| (report.properties(), report.shown.style)).collect()
            }
            Self::Filters(reports) => filters(reports),
        }
    }
}

/// A handle, which is shown though it is 0.
fn handle(id: ClassId) -> String {
    format!("{:x}:", id.major())
}

fn add_place(shown: &mut TcProperties, parent: Option<ClassId>) {
    match parent {
        None => shown.mark("root", "root "),
        Some(parent) => shown.add("parent", "parent {} ", class_name(parent)),
    }
}

/// ` Sent ...`, and what follows it.
fn add_statistics(shown: &mut TcProperties, statistics: &Statistics, rate: Option<RateReport>) {
    shown.add("bytes", " Sent {} bytes", statistics.sent_bytes);
    shown.add("packets", " {} pkt", statistics.sent_packets);
    add_queued(shown, statistics, rate);
}

/// `(dropped ...)` and ` backlog ...`.
fn add_queued(shown: &mut TcProperties, statistics: &Statistics, rate: Option<RateReport>) {
    let Statistics { dropped, overlimits, requeues, backlog, qlen, .. } = *statistics;
    shown.add("drops", " (dropped {},", dropped);
    shown.add("overlimits", " overlimits {}", overlimits);
    shown.add("requeues", " requeues {}) ", requeues);
    shown.text_only("\n");
    if let Some(rate) = rate {
        shown.add("rate", " rate {}", TcValue::bit_rate(rate.bits_per_second));
        shown.add("pps", " {}pps", rate.packets_per_second);
    }
    shown.add("backlog", " backlog {}", TcValue::new(size_text(backlog), TcJson::Unsigned(backlog)));
    shown.add("qlen", " {}p", qlen);
    shown.add_text(" requeues {}", requeues);
}

impl QdiscReport {
    fn properties(&self) -> TcProperties {
        let mut shown = TcProperties::default();
        shown.add("kind", "qdisc {} ", self.kind);
        shown.add("handle", "{} ", handle(self.handle));
        if self.shown.device {
            shown.add("dev", "dev {} ", self.device.clone());
        }
        add_place(&mut shown, self.parent);
        if self.references > 1 {
            shown.add("refcnt", "refcnt {} ", self.references as u64);
        }
        shown.object("options", |options| options.append(self.options.clone()));
        shown.statistics(|shown| {
            shown.text_only("\n");
            add_statistics(shown, &self.statistics, self.rate);
            let figures = &self.figures;
            if !figures.text(self.shown.style).is_empty() {
                shown.text_only("\n");
            }
            shown.append(figures.clone());
            if let Some(queue) = &self.queue {
                shown.ours(|shown| add_queue(shown, queue));
            }
        });
        shown
    }
}

/// What `tc` does not have: which CPUs took packets out, and what the lock cost.
fn add_queue(shown: &mut TcProperties, report: &QueueReport) {
    let QueueStatistics {
        dequeued_at_home,
        dequeued_elsewhere,
        dequeued_by_strangers,
        watchdogs,
        watchdogs_elsewhere,
        delay_timers,
        over_memory,
        locked,
        contended,
        waited,
        ..
    } = report.statistics;
    let nanos = TcJson::Unsigned(u64::try_from(waited.as_nanos()).unwrap_or(u64::MAX));
    shown.object("queue", |queue| {
        queue.add("number", "\n [quietcore] queue {}:", report.number as u64);
        queue.add("dequeued_at_home", " dequeued at home {}", dequeued_at_home);
        queue.add("dequeued_elsewhere", " elsewhere {}", dequeued_elsewhere);
        queue.add("dequeued_by_strangers", " off lanes {},", dequeued_by_strangers);
        queue.add("watchdogs", " watchdogs {}", watchdogs);
        queue.add("watchdogs_elsewhere", " elsewhere {}", watchdogs_elsewhere);
        queue.add("delay_timers", ", delay timers {}", delay_timers);
        queue.add("over_memory", ", dropped for want of memory {}", over_memory);
        queue.add("locked", ", lock taken {}", locked);
        queue.add("lock_contended", " waited {}", contended);
        queue.add("lock_waited_ns", " for {}", TcValue::new(format!("{waited:?}"), nanos));
    });
}

impl ClassReport {
    fn properties(&self) -> TcProperties {
        let mut shown = TcProperties::default();
        shown.add("class", "class {} ", self.kind);
        shown.add("handle", "{} ", class_name(self.id));
        if self.shown.device {
            shown.add("dev", "dev {} ", self.device.clone());
        }
        add_place(&mut shown, self.parent);
        if let Some(leaf) = self.leaf {
            let number = TcJson::Word(format!("{:#x}", leaf.major()));
            shown.add("leaf", "leaf {} ", TcValue::new(handle(leaf), number));
        }
        shown.append(self.options.clone());
        shown.statistics(|shown| {
            shown.text_only("\n");
            let Some(statistics) = self.statistics else { return };
            shown.object("stats", |shown| {
                self.add_counted(shown, &statistics);
                if !self.figures.is_empty() {
                    shown.text_only("\n");
                    shown.append(self.figures.clone());
                }
            });
        });
        shown
    }
}

impl ClassReport {
    fn add_counted(&self, shown: &mut TcProperties, statistics: &Statistics) {
        if self.counts_sent {
            add_statistics(shown, statistics, self.rate);
        } else {
            add_queued(shown, statistics, self.rate);
        }
    }

    /// What `-g` has behind the kind.
    pub(super) fn plain_options(&self) -> String {
        self.options.text(self.shown.style)
    }

    /// What `-g -s` has below it.
    pub(super) fn plain_statistics(&self) -> Option<String> {
        let mut shown = TcProperties::default();
        self.add_counted(&mut shown, &self.statistics?);
        Some(shown.text(self.shown.style))
    }
}

/// The names of the classes of a default discipline have no major number.
fn class_name(id: ClassId) -> String {
    match (id.major(), id.minor()) {
        (0, minor) => format!(":{minor:x}"),
        _ => id.to_string(),
    }
}

/// Filters: before the first one of a priority that, and its hash table, without their rules.
fn filters(reports: &[FilterReport]) -> Vec<(TcProperties, TcStyle)> {
    let mut shown = Vec::new();
    let mut before: Option<&FilterReport> = None;
    for report in reports {
        let is_like = |before: &FilterReport| {
            (before.parent, before.prio) == (report.parent, report.prio) && before.device == report.device
        };
        let style = report.shown.style;
        if !before.is_some_and(is_like) {
            shown.push((report.head(), style));
            if report.kind == "u32" {
                shown.push((report.table(), style));
            }
        }
        shown.push((report.properties(), style));
        before = Some(report);
    }
    shown
}

/// The word of the header that a rule looks at: value, mask, and how far behind the header's begin.
fn key(rule: &FieldMatch) -> (u32, u32, u32) {
    let upper = |value: u16| u32::from(value) << 16;
    match *rule {
        FieldMatch::Source { address, mask } => (address.to_bits() & mask.to_bits(), mask.to_bits(), 12),
        FieldMatch::Destination { address, mask } => (address.to_bits() & mask.to_bits(), mask.to_bits(), 16),
        FieldMatch::SourcePort { value, mask } => (upper(value & mask), upper(mask), 20),
        FieldMatch::DestinationPort { value, mask } => (u32::from(value & mask), u32::from(mask), 20),
        FieldMatch::Protocol { value, mask } => (u32::from(value & mask) << 16, u32::from(mask) << 16, 8),
    }
}

/// A rule as a word of the header.
fn add_key(shown: &mut TcProperties, rule: &FieldMatch) {
    let (value, mask, at) = key(rule);
    let word = |word: u32| TcValue::new(format!("{word:08x}"), TcJson::Word(format!("{word:x}")));
    shown.add("value", "\n  match {}", word(value));
    shown.add("mask", "/{}", word(mask));
    shown.add_json("offmask", "");
    shown.add("off", " at {}", at);
}

fn add_network(shown: &mut TcProperties, address: Ipv4Addr, mask: Ipv4Addr) {
    shown.add("address", "{}", Ipv4Addr::from_bits(address.to_bits() & mask.to_bits()).to_string());
    shown.add("prefixlen", "/{}", mask.to_bits().count_ones());
}

/// A rule by the name of its field, as `-p` has it: only whole ports and protocols have names, and only
/// `dport` begins no line.
fn add_named(shown: &mut TcProperties, rule: &FieldMatch) {
    let is_prefix = |mask: Ipv4Addr| mask.to_bits().leading_ones() == mask.to_bits().count_ones();
    match *rule {
        FieldMatch::Source { address, mask } if is_prefix(mask) => {
            shown.text_only("\n  match IP src ");
            shown.object("src", |shown| add_network(shown, address, mask));
        }
        FieldMatch::Destination { address, mask } if is_prefix(mask) => {
            shown.text_only("\n  match IP dst ");
            shown.object("dst", |shown| add_network(shown, address, mask));
        }
        FieldMatch::SourcePort { value, mask: u16::MAX } => shown.add("sport", "\n  match sport {}", value),
        FieldMatch::DestinationPort { value, mask: u16::MAX } => {
            shown.add("dport", "match dport {}", value);
        }
        FieldMatch::Protocol { value, mask: u8::MAX } => {
            shown.add("ip_protocol", "\n  match IP protocol {}", value);
        }
        _ => add_key(shown, rule),
    }
}

impl FilterReport {
    /// What all filters of a priority begin with.
    fn head(&self) -> TcProperties {
        let mut shown = TcProperties::default();
        shown.text_only("filter ");
        if self.shown.device {
            shown.add("dev", "dev {} ", self.device.clone());
        }
        if self.shown.parent {
            shown.add("parent", "parent {} ", self.parent.to_string());
        }
        let number = format!("[{}]", self.protocol.0);
        shown.numeric(
            |shown| shown.add("protocol", "protocol {} ", number),
            |shown| shown.add("protocol", "protocol {} ", self.protocol.to_string()),
        );
        shown.add("pref", "pref {} ", self.prio);
        shown.add("kind", "{} ", self.kind);
        shown.add("chain", "chain {} ", 0_u32);
        shown
    }

    /// The hash table of a priority.
    fn table(&self) -> TcProperties {
        let mut shown = self.head();
        shown.object("options", |options| {
            options.add("fh", "fh {} ", format!("{:x}:", self.table));
            options.add("ht_divisor", "ht divisor {} ", 1_u32);
        });
        shown
    }

    fn properties(&self) -> TcProperties {
        let mut shown = self.head();
        shown.object("options", |options| {
            if self.kind == "u32" {
                self.add_u32(options);
            } else {
                self.add_matchall(options);
            }
        });
        shown
    }

    fn add_matchall(&self, options: &mut TcProperties) {
        options.add("handle", "handle {} ", TcValue::new("0x1", TcJson::Unsigned(1)));
        options.add("flowid", "flowid {} ", self.flow.to_string());
        options.mark("not_in_hw", "\n  not_in_hw");
        options.statistics(|options| options.add("rule_hit", " (rule hit {})", self.asked));
    }

    fn add_u32(&self, options: &mut TcProperties) {
        options.add("fh", "fh {} ", format!("{:x}::{:x}", self.table, self.number));
        options.add("order", "order {} ", self.number);
        options.add("key_ht", "key ht {} ", format!("{:x}", self.table));
        options.add("bkt", "bkt {} ", "0");
        options.add("flowid", "*flowid {} ", self.flow.to_string());
        options.mark("not_in_hw", "not_in_hw ");
        options.statistics(|options| {
            options.add("rule_hit", "(rule hit {}", self.asked);
            options.add("success", " success {})", self.met);
        });
        for (rule, met) in self.rules.iter().zip(&self.rules_met) {
            options.object("match", |shown| {
                shown.pretty(|shown| add_named(shown, rule), |shown| add_key(shown, rule));
            });
            options.statistics(|options| options.add("success", " (success {} ) ", *met));
        }
    }
}

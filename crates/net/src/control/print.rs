//! How reports are printed: as text, or as JSON, both from one list of properties.
//!
//! Source: `tc` 6.1 by behaviour (`tests/tc_recorded`); JSON of classes as `tc` 6.15 writes it, since 6.1 has
//! text for them with `-j`, too.

use super::graph;
use super::report::{Answer, ClassReport, FilterReport, QdiscReport, QueueReport, RateReport};
use crate::QueueStatistics;
use core::fmt::{self, Formatter};
use quietcore_qdisc::tc::{
    CLSACT_EGRESS, CLSACT_INGRESS, JsonLayout, JsonWriter, TcJson, TcProperties, TcStyle, TcValue, size_text,
};
use quietcore_qdisc::{ClassId, Statistics};

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
            Self::Filters(reports) => {
                reports.iter().map(|report| (report.properties(), report.shown.style)).collect()
            }
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

impl FilterReport {
    fn properties(&self) -> TcProperties {
        let mut shown = TcProperties::default();
        shown.text_only("filter ");
        if self.shown.device {
            shown.add("dev", "dev {} ", self.device.clone());
        }
        match self.parent {
            _ if !self.shown.parent => {}
            CLSACT_INGRESS => shown.mark("ingress", "ingress "),
            CLSACT_EGRESS => shown.mark("egress", "egress "),
            parent => shown.add("parent", "parent {} ", parent.to_string()),
        }
        if self.shown.protocol {
            let number = format!("[{}]", self.protocol.0);
            shown.numeric(
                |shown| shown.add("protocol", "protocol {} ", number),
                |shown| shown.add("protocol", "protocol {} ", self.protocol.to_string()),
            );
        }
        if self.shown.prio {
            shown.add("pref", "pref {} ", self.prio);
        }
        shown.add("kind", "{} ", self.kind);
        shown.add("chain", "chain {} ", 0_u32);
        if !self.options.is_empty() {
            shown.object("options", |options| options.append(self.options.clone()));
        }
        shown
    }
}

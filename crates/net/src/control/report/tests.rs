//! Whole answers, in which no two figures are the same.

use super::{Answer, ClassReport, FilterReport, QdiscReport, QueueReport, RateReport, ShowOptions};
use crate::QueueStatistics;
use core::time::Duration;
use quietcore_qdisc::tc::{FilterHandle, JsonLayout, Protocol, TcProperties, TcStyle};
use quietcore_qdisc::{ClassId, Statistics};

const ALL: ShowOptions = ShowOptions {
    style: TcStyle {
        statistics: true,
        details: true,
        binary: false,
        pretty: false,
        numeric: false,
        ours: true,
    },
    device: true,
    parent: true,
    protocol: true,
    prio: true,
};

/// A number, named by its text.
fn property(template: &'static str, number: u32) -> TcProperties {
    let mut properties = TcProperties::default();
    properties.add("number", template, number);
    properties
}

/// Seven figures, from `first` on.
fn statistics(first: u64) -> Statistics {
    let mut counted = Statistics::default();
    counted.sent_bytes = first;
    counted.sent_packets = first + 1;
    counted.dropped = first + 2;
    counted.overlimits = first + 3;
    counted.requeues = first + 4;
    counted.backlog = first + 5;
    counted.qlen = first + 6;
    counted
}

fn qdisc() -> QdiscReport {
    QdiscReport {
        kind: "netem",
        handle: ClassId::new(0x8001, 0),
        parent: Some(ClassId::new(1, 0x1f)),
        device: "eth7".into(),
        references: 8,
        birth: 7,
        options: property("limit {}", 9),
        statistics: statistics(10),
        rate: Some(RateReport { bits_per_second: 20_000, packets_per_second: 21 }),
        figures: property("  first\n  second {}", 6),
        queue: Some(QueueReport { number: 22, statistics: queue() }),
        shown: ALL,
    }
}

fn queue() -> QueueStatistics {
    QueueStatistics {
        qdisc: statistics(50),
        dequeued_at_home: 23,
        dequeued_elsewhere: 24,
        dequeued_by_strangers: 25,
        over_memory: 26,
        watchdogs: 29,
        watchdogs_elsewhere: 28,
        delay_timers: 27,
        locked: 31,
        contended: 30,
        waited: Duration::from_micros(32),
    }
}

/// Goal: each figure of a discipline and of its queue stands behind its own name. Method: no two alike; with
/// nothing that may be left out, and without notes, a rate, delay timers and drops for want of memory.
#[test]
fn every_figure_of_a_discipline() {
    assert_eq!(
        Answer::Qdiscs(vec![qdisc()]).to_string(),
        "qdisc netem 8001: dev eth7 parent 1:1f refcnt 8 limit 9\n \
         Sent 10 bytes 11 pkt (dropped 12, overlimits 13 requeues 14) \n \
         rate 20Kbit 21pps backlog 15b 16p requeues 14\n  \
         first\n  \
         second 6\n \
         [quietcore] queue 22: dequeued at home 23 elsewhere 24 off lanes 25, watchdogs 29 elsewhere 28, \
         delay timers 27, dropped for want of memory 26, lock taken 31 waited 30 for 32µs\n"
    );
    assert_eq!(
        Answer::Qdiscs(vec![qdisc()]).json(JsonLayout::Line),
        "[{\"kind\":\"netem\",\"handle\":\"8001:\",\"dev\":\"eth7\",\"parent\":\"1:1f\",\"refcnt\":8,\
         \"options\":{\"number\":9},\"bytes\":10,\"packets\":11,\"drops\":12,\"overlimits\":13,\
         \"requeues\":14,\"rate\":20000,\"pps\":21,\"backlog\":15,\"qlen\":16,\"number\":6,\
         \"queue\":{\"number\":22,\"dequeued_at_home\":23,\"dequeued_elsewhere\":24,\
         \"dequeued_by_strangers\":25,\"watchdogs\":29,\"watchdogs_elsewhere\":28,\"delay_timers\":27,\
         \"over_memory\":26,\"locked\":31,\"lock_contended\":30,\"lock_waited_ns\":32000}}]\n"
    );
    let mut least = qdisc();
    (least.rate, least.parent, least.queue, least.references) = (None, None, None, 1);
    least.figures = TcProperties::default();
    least.shown.device = false;
    assert_eq!(
        Answer::Qdiscs(vec![least.clone()]).to_string(),
        "qdisc netem 8001: root limit 9\n \
         Sent 10 bytes 11 pkt (dropped 12, overlimits 13 requeues 14) \n \
         backlog 15b 16p requeues 14\n"
    );
    (least.shown, least.options) = (ShowOptions::default(), TcProperties::default());
    assert_eq!(Answer::Qdiscs(vec![least.clone()]).to_string(), "qdisc netem 8001: root \n");
    assert_eq!(
        Answer::Qdiscs(vec![least]).json(JsonLayout::Line),
        "[{\"kind\":\"netem\",\"handle\":\"8001:\",\"root\":true,\"options\":{}}]\n"
    );
}

/// Goal: the same of a class. Method: one with all, then one with what cannot be left out.
#[test]
fn every_figure_of_a_class() {
    let class = ClassReport {
        kind: "htb",
        id: ClassId::new(1, 0x10),
        parent: Some(ClassId::new(1, 2)),
        device: "eth7".into(),
        leaf: Some(ClassId::new(0x20, 0)),
        options: property("prio {} ", 3),
        statistics: Some(statistics(10)),
        counts_sent: true,
        rate: Some(RateReport { bits_per_second: 20_000, packets_per_second: 21 }),
        figures: property(" first\n second {}\n", 4),
        shown: ALL,
    };
    let plain = ClassReport { parent: None, leaf: None, shown: ShowOptions::default(), ..class.clone() };
    assert_eq!(
        Answer::Classes(vec![class.clone(), plain]).to_string(),
        "class htb 1:10 dev eth7 parent 1:2 leaf 20: prio 3 \n \
         Sent 10 bytes 11 pkt (dropped 12, overlimits 13 requeues 14) \n \
         rate 20Kbit 21pps backlog 15b 16p requeues 14\n \
         first\n \
         second 4\n\n\
         class htb 1:10 root prio 3 \n"
    );
    let queued = ClassReport { counts_sent: false, rate: None, ..class.clone() };
    assert_eq!(
        Answer::Classes(vec![queued]).to_string(),
        "class htb 1:10 dev eth7 parent 1:2 leaf 20: prio 3 \n \
         (dropped 12, overlimits 13 requeues 14) \n \
         backlog 15b 16p requeues 14\n \
         first\n \
         second 4\n\n"
    );
    assert_eq!(
        Answer::Classes(vec![class]).json(JsonLayout::Line),
        "[{\"class\":\"htb\",\"handle\":\"1:10\",\"dev\":\"eth7\",\"parent\":\"1:2\",\"leaf\":\"0x20\",\
         \"number\":3,\"stats\":{\"bytes\":10,\"packets\":11,\"drops\":12,\"overlimits\":13,\
         \"requeues\":14,\"rate\":20000,\"pps\":21,\"backlog\":15,\"qlen\":16,\"number\":4}}]\n"
    );
}

/// Goal: a line about filters has the device, the parent, the protocol and the priority unless they were
/// asked for, and what it was told. Method: a priority and a filter, with each of them left out.
#[test]
fn heads_of_filters() {
    let mut options = TcProperties::default();
    options.add("handle", "handle {} ", "0x1");
    let report = FilterReport {
        parent: ClassId::new(1, 0x30),
        device: "eth7".into(),
        protocol: Protocol::IP,
        prio: 5,
        kind: "matchall",
        handle: Some(FilterHandle::Number(1)),
        flow: None,
        options,
        shown: ALL,
    };
    let priority = FilterReport { options: TcProperties::default(), handle: None, ..report.clone() };
    let head = "filter dev eth7 parent 1:30 protocol ip pref 5 matchall chain 0 ";
    let both = Answer::Filters(vec![priority, report.clone()]);
    assert_eq!(both.to_string(), format!("{head}\n{head}handle 0x1 \n"));
    let shown = ShowOptions { device: false, parent: false, protocol: false, prio: false, ..ALL };
    let named = Answer::Filters(vec![FilterReport { shown, ..report }]);
    assert_eq!(named.to_string(), "filter matchall chain 0 handle 0x1 \n");
    assert_eq!(
        named.json(JsonLayout::Line).trim_end(),
        "[{\"kind\":\"matchall\",\"chain\":0,\"options\":{\"handle\":\"0x1\"}}]"
    );
}

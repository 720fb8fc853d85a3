//! Whole answers, in which no two figures are the same.

use super::{Answer, ClassReport, FilterReport, QdiscReport, QueueReport, RateReport, ShowOptions};
use crate::QueueStatistics;
use core::time::Duration;
use quietcore_qdisc::tc::{FieldMatch, JsonLayout, Protocol, TcProperties, TcStyle};
use quietcore_qdisc::{ClassId, Statistics};
use std::net::Ipv4Addr;

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

/// Goal: a filter is shown with what it looks at, and where in a header that is; filters of one parent, one
/// priority and one device have one head. Method: each rule with a value that its mask cuts; then filters
/// that differ in one of the three.
#[test]
fn every_figure_of_a_filter() {
    let address = |text: &str| -> Ipv4Addr { text.parse().expect("an address") };
    let first = FilterReport {
        parent: ClassId::new(1, 0),
        device: "eth7".into(),
        protocol: Protocol(0x0800),
        prio: 5,
        kind: "u32",
        flow: ClassId::new(1, 0x30),
        rules: vec![
            FieldMatch::Source { address: address("10.1.2.3"), mask: address("255.255.0.0") },
            FieldMatch::Destination { address: address("10.4.5.6"), mask: address("255.255.255.0") },
            FieldMatch::SourcePort { value: 0x1234, mask: 0xfff0 },
            FieldMatch::DestinationPort { value: 0x5678, mask: 0xff00 },
            FieldMatch::Protocol { value: 17, mask: 0xf0 },
        ],
        asked: 40,
        met: 41,
        rules_met: vec![42, 43, 44, 45, 46],
        table: 0x801,
        number: 0x802,
        shown: ShowOptions { device: false, ..ALL },
    };
    let all = |kind, rules: &[FieldMatch]| FilterReport { kind, rules: rules.to_vec(), ..first.clone() };
    let match_all = FilterReport { prio: 6, ..all("matchall", &[]) };
    let below = FilterReport { parent: ClassId::new(1, 1), ..match_all.clone() };
    let elsewhere = FilterReport { device: "eth8".into(), ..below.clone() };
    let filters = vec![first.clone(), all("u32", &[]), match_all, below, elsewhere];
    assert_eq!(
        Answer::Filters(filters).to_string(),
        "filter parent 1: protocol ip pref 5 u32 chain 0 \n\
         filter parent 1: protocol ip pref 5 u32 chain 0 fh 801: ht divisor 1 \n\
         filter parent 1: protocol ip pref 5 u32 chain 0 fh 801::802 order 2050 key ht 801 bkt 0 \
         *flowid 1:30 not_in_hw (rule hit 40 success 41)\n  \
         match 0a010000/ffff0000 at 12 (success 42 ) \n  \
         match 0a040500/ffffff00 at 16 (success 43 ) \n  \
         match 12300000/fff00000 at 20 (success 44 ) \n  \
         match 00005600/0000ff00 at 20 (success 45 ) \n  \
         match 00100000/00f00000 at 8 (success 46 ) \n\
         filter parent 1: protocol ip pref 5 u32 chain 0 fh 801::802 order 2050 key ht 801 bkt 0 \
         *flowid 1:30 not_in_hw (rule hit 40 success 41)\n\
         filter parent 1: protocol ip pref 6 matchall chain 0 \n\
         filter parent 1: protocol ip pref 6 matchall chain 0 handle 0x1 flowid 1:30 \n  not_in_hw (rule hit 40)\n\
         filter parent 1:1 protocol ip pref 6 matchall chain 0 \n\
         filter parent 1:1 protocol ip pref 6 matchall chain 0 handle 0x1 flowid 1:30 \n  not_in_hw (rule hit 40)\n\
         filter parent 1:1 protocol ip pref 6 matchall chain 0 \n\
         filter parent 1:1 protocol ip pref 6 matchall chain 0 handle 0x1 flowid 1:30 \n  not_in_hw (rule hit 40)\n"
    );
}

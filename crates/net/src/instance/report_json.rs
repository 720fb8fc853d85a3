//! Reports of disciplines, classes and filters as JSON, with the names that `tc -j` has where it has one.

use crate::control::{Answer, ClassReport, FilterReport, QdiscReport, QueueReport, RateReport};
use quietcore_qdisc::{ClassId, Statistics};
use serde_json::{Map, Value, json};

/// All that is known, whatever was asked for.
pub(super) fn of(answer: &Answer) -> Value {
    match answer {
        Answer::Qdiscs(reports) => reports.iter().map(qdisc).collect(),
        Answer::Classes(reports) => reports.iter().map(class).collect(),
        Answer::Filters(reports) => reports.iter().map(filter).collect(),
        _ => Value::Array(Vec::new()),
    }
}

fn qdisc(report: &QdiscReport) -> Value {
    let mut value = Map::new();
    value.insert("kind".into(), report.kind.into());
    value.insert("handle".into(), report.handle.to_string().into());
    add_place(&mut value, &report.device, report.parent);
    value.insert("options".into(), report.options.as_str().into());
    add_figures(&mut value, &report.statistics, report.rate, &report.notes);
    if let Some(queue) = &report.queue {
        value.insert("queue".into(), queue_value(queue));
    }
    Value::Object(value)
}

fn add_place(value: &mut Map<String, Value>, device: &str, parent: Option<ClassId>) {
    value.insert("dev".into(), device.into());
    match parent {
        Some(parent) => value.insert("parent".into(), parent.to_string().into()),
        None => value.insert("root".into(), true.into()),
    };
}

fn add_figures(
    value: &mut Map<String, Value>,
    statistics: &Statistics,
    rate: Option<RateReport>,
    notes: &[String],
) {
    let Statistics { sent_bytes, sent_packets, dropped, overlimits, requeues, backlog, qlen, .. } =
        *statistics;
    let figures = [
        ("bytes", sent_bytes),
        ("packets", sent_packets),
        ("drops", dropped),
        ("overlimits", overlimits),
        ("requeues", requeues),
        ("backlog", backlog),
        ("qlen", qlen),
    ];
    value.extend(figures.map(|(name, figure)| (name.to_owned(), figure.into())));
    if let Some(rate) = rate {
        value.insert("rate".into(), rate.bits_per_second.into());
        value.insert("pps".into(), rate.packets_per_second.into());
    }
    if !notes.is_empty() {
        value.insert("notes".into(), notes.into());
    }
}

/// What `tc` does not have: which CPUs took packets out, and what the lock cost.
fn queue_value(queue: &QueueReport) -> Value {
    let figures = &queue.statistics;
    json!({
        "number": queue.number,
        "dequeued_at_home": figures.dequeued_at_home,
        "dequeued_elsewhere": figures.dequeued_elsewhere,
        "dequeued_by_strangers": figures.dequeued_by_strangers,
        "over_memory": figures.over_memory,
        "watchdogs": figures.watchdogs,
        "watchdogs_elsewhere": figures.watchdogs_elsewhere,
        "delay_timers": figures.delay_timers,
        "locked": figures.locked,
        "lock_contended": figures.contended,
        "lock_waited_ns": u64::try_from(figures.waited.as_nanos()).unwrap_or(u64::MAX),
    })
}

fn class(report: &ClassReport) -> Value {
    let mut value = Map::new();
    value.insert("class".into(), report.kind.into());
    value.insert("handle".into(), report.id.to_string().into());
    add_place(&mut value, &report.device, report.parent);
    if let Some(leaf) = report.leaf {
        value.insert("leaf".into(), leaf.to_string().into());
    }
    value.insert("options".into(), report.options.as_str().into());
    if !report.details.is_empty() {
        value.insert("details".into(), report.details.as_str().into());
    }
    add_figures(&mut value, &report.statistics, report.rate, &report.notes);
    Value::Object(value)
}

fn filter(report: &FilterReport) -> Value {
    json!({
        "parent": report.parent.to_string(),
        "dev": report.device,
        "protocol": report.protocol.0,
        "pref": report.prio,
        "kind": report.kind,
        "flowid": report.flow.to_string(),
        "text": report.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::{add_figures, of, queue_value};
    use crate::control::{QueueReport, RateReport};
    use crate::{Control, Device, DeviceOptions, Network, QueueStatistics};
    use core::time::Duration;
    use quietcore_live::Machine;
    use quietcore_qdisc::Statistics;
    use serde_json::{Value, json};

    /// Goal: a queue's figures have their own names, and spans are in ns. Method: every figure differs.
    #[test]
    fn a_queues_figures_are_told_apart() {
        let statistics = QueueStatistics {
            dequeued_at_home: 1,
            dequeued_elsewhere: 2,
            dequeued_by_strangers: 3,
            over_memory: 4,
            watchdogs: 5,
            watchdogs_elsewhere: 6,
            delay_timers: 10,
            locked: 7,
            contended: 8,
            waited: Duration::new(1, 2_345),
            ..QueueStatistics::default()
        };
        let expected = json!({
            "number": 9,
            "dequeued_at_home": 1,
            "dequeued_elsewhere": 2,
            "dequeued_by_strangers": 3,
            "over_memory": 4,
            "watchdogs": 5,
            "watchdogs_elsewhere": 6,
            "delay_timers": 10,
            "locked": 7,
            "lock_contended": 8,
            "lock_waited_ns": 1_000_002_345,
        });
        assert_eq!(queue_value(&QueueReport { number: 9, statistics }), expected);
    }

    /// Goal: figures of a discipline have the names of `tc -j`, and a rate is there where one is estimated.
    /// Method: every figure differs, with a rate and without.
    #[test]
    fn a_disciplines_figures_are_told_apart() {
        let mut statistics = Statistics::default();
        (statistics.sent_bytes, statistics.sent_packets, statistics.dropped) = (1, 2, 3);
        (statistics.overlimits, statistics.requeues) = (4, 5);
        (statistics.backlog, statistics.qlen) = (6, 7);
        let figures = |rate, notes: &[String]| {
            let mut value = serde_json::Map::new();
            add_figures(&mut value, &statistics, rate, notes);
            Value::Object(value)
        };
        let mut expected = json!({
            "bytes": 1,
            "packets": 2,
            "drops": 3,
            "overlimits": 4,
            "requeues": 5,
            "backlog": 6,
            "qlen": 7,
        });
        assert_eq!(figures(None, &[]), expected);
        expected["rate"] = 8.into();
        expected["pps"] = 9.into();
        expected["notes"] = json!(["ten"]);
        let rate = RateReport { bits_per_second: 8, packets_per_second: 9 };
        assert_eq!(figures(Some(rate), &["ten".to_owned()]), expected);
    }

    /// Goal: what `tc -j` prints has what `tc` prints. Method: a class, its discipline and a filter.
    #[test]
    fn reports_are_json() {
        let (network, builder) = Network::new(Machine::builder().lanes("0".parse().unwrap()));
        let machine = builder.start().unwrap();
        let driver = |_: usize, _: Vec<u8>| Ok(());
        let device = Device::new(&network, machine, DeviceOptions::new(1), driver).unwrap();
        let control = Control::new(machine, 1);
        control.add_device("eth1", device.into()).unwrap();
        for line in [
            "qdisc add dev eth1 root handle 1: htb default 10",
            "class add dev eth1 parent 1: classid 1:10 htb rate 1mbit",
            "qdisc add dev eth1 parent 1:10 handle 10: netem delay 6ms limit 70000",
            "filter add dev eth1 parent 1: prio 5 matchall flowid 1:10",
        ] {
            control.execute_line(line).unwrap();
        }
        let shown = ["-s qdisc show dev eth1", "-s class show dev eth1", "filter show dev eth1"]
            .map(|line| serde_json::to_string_pretty(&of(&control.execute_line(line).unwrap())).unwrap());
        // How often the lock was taken depends on how often it was asked.
        let shown =
            shown.join("\n").lines().filter(|line| !line.contains("locked")).collect::<Vec<_>>().join("\n");
        insta::assert_snapshot!("reports", shown);
        machine.shutdown();
    }
}

//! What the queues of an instance did, as text and as JSON.

use crate::output::say;
use crate::text::Page;
use quietcore_core::CpuSet;
use quietcore_net::QueueStatistics;
use serde::Serialize;

/// What is printed at the end, schema 1.
#[derive(Debug, Serialize)]
pub(crate) struct Figures {
    pub(crate) schema: u32,
    pub(crate) name: String,
    pub(crate) devices: Vec<DeviceFigures>,
}

/// A device's queues.
#[derive(Debug, Serialize)]
pub(crate) struct DeviceFigures {
    pub(crate) device: String,
    /// Packets that the system dropped before any queue saw them; `null` if it does not say.
    pub(crate) lost_ahead: Option<u64>,
    /// Packets that filters of `ingress` and `clsact` dropped, where they came in or before any queue.
    pub(crate) filtered: u64,
    pub(crate) queues: Vec<QueueFigures>,
}

/// A queue's figures. Those of a discipline that was replaced went with it; the others are of the whole time.
#[derive(Debug, Serialize)]
pub(crate) struct QueueFigures {
    queue: usize,
    cpus: String,
    sent_packets: u64,
    sent_bytes: u64,
    dropped: u64,
    /// Dropped because the queue held as much memory as it may; no discipline has seen them.
    over_memory: u64,
    requeues: u64,
    backlog_packets: u64,
    /// Given to the other side, which did not take them: damaged packets, or an interface that is down.
    refused: u64,
    dequeued_at_home: u64,
    dequeued_elsewhere: u64,
    dequeued_by_strangers: u64,
    watchdogs: u64,
    watchdogs_elsewhere: u64,
    delay_timers: u64,
    locked: u64,
    lock_contended: u64,
    lock_waited_ns: u64,
}

impl DeviceFigures {
    /// Why the figures are not all that there was.
    pub(crate) fn warning(&self) -> Option<String> {
        match self.lost_ahead {
            Some(0) => None,
            Some(lost) => Some(format!(
                "overload: {lost} more packets were lost before any queue saw them, as they came faster than \
                 they were read"
            )),
            None => Some("what the system lost before any queue saw it is not known".to_owned()),
        }
    }
}

impl QueueFigures {
    pub(crate) fn new(queue: usize, cpus: &CpuSet, refused: u64, statistics: &QueueStatistics) -> Self {
        let qdisc = statistics.qdisc;
        Self {
            queue,
            cpus: cpus.to_string(),
            sent_packets: qdisc.sent_packets,
            sent_bytes: qdisc.sent_bytes,
            dropped: qdisc.dropped,
            over_memory: statistics.over_memory,
            requeues: qdisc.requeues,
            backlog_packets: qdisc.qlen,
            refused,
            dequeued_at_home: statistics.dequeued_at_home,
            dequeued_elsewhere: statistics.dequeued_elsewhere,
            dequeued_by_strangers: statistics.dequeued_by_strangers,
            watchdogs: statistics.watchdogs,
            watchdogs_elsewhere: statistics.watchdogs_elsewhere,
            delay_timers: statistics.delay_timers,
            locked: statistics.locked,
            lock_contended: statistics.contended,
            lock_waited_ns: u64::try_from(statistics.waited.as_nanos()).unwrap_or(u64::MAX),
        }
    }

    fn cells(&self) -> [String; 9] {
        [
            self.queue.to_string(),
            self.cpus.clone(),
            self.sent_packets.to_string(),
            self.dropped.to_string(),
            self.refused.to_string(),
            self.dequeued_at_home.to_string(),
            (self.dequeued_elsewhere + self.dequeued_by_strangers).to_string(),
            self.lock_contended.to_string(),
            format!("{:.3} ms", self.lock_waited_ns as f64 / 1e6),
        ]
    }
}

const HEAD: [&str; 9] =
    ["queue", "CPUs", "sent", "dropped", "refused", "out at home", "elsewhere", "lock waits", "waited"];

impl Figures {
    /// To standard error, of figures that a program reads.
    pub(crate) fn warn(&self) {
        for device in &self.devices {
            if let Some(warning) = device.warning() {
                say(&format!("{}: {warning}", device.device));
            }
        }
    }

    pub(crate) fn show(&self, page: &mut Page) {
        for device in &self.devices {
            page.heading(&format!("{} of {}", device.device, self.name));
            let rows: Vec<_> = device.queues.iter().map(QueueFigures::cells).collect();
            let widths: Vec<usize> = (0..HEAD.len())
                .map(|at| rows.iter().map(|row| row[at].len()).chain([HEAD[at].len()]).max().unwrap_or(0))
                .collect();
            let line = |cells: &[&str]| {
                let cells = cells.iter().zip(&widths).map(|(cell, &width)| format!("{cell:>width$}"));
                format!("  {}", cells.collect::<Vec<_>>().join("  "))
            };
            page.line(&line(&HEAD));
            for row in &rows {
                page.line(&line(&row.each_ref().map(String::as_str)));
            }
            for QueueFigures { queue, over_memory, .. } in
                device.queues.iter().filter(|it| it.over_memory > 0)
            {
                page.line(&format!(
                    "  queue {queue} held as much as --memory lets it: {over_memory} more packets dropped"
                ));
            }
            if device.filtered > 0 {
                page.line(&format!("  filters of ingress and clsact dropped {} packets", device.filtered));
            }
            if let Some(warning) = device.warning() {
                page.line(&format!("  {warning}"));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{DeviceFigures, Figures, QueueFigures};
    use crate::text::Page;
    use quietcore_net::QueueStatistics;
    use std::time::Duration;

    /// A busy queue, of which no two figures are the same, one that dropped a packet, and an idle one.
    fn figures() -> Figures {
        let mut busy = QueueStatistics::default();
        let qdisc = &mut busy.qdisc;
        (qdisc.sent_packets, qdisc.sent_bytes, qdisc.dropped) = (123_456, 185_184_000, 7);
        (qdisc.requeues, qdisc.qlen, qdisc.backlog) = (8, 9, 13_626);
        (busy.dequeued_at_home, busy.dequeued_elsewhere, busy.dequeued_by_strangers) = (123_400, 50, 6);
        (busy.locked, busy.contended, busy.waited) = (250_000, 12, Duration::from_micros(345));
        (busy.watchdogs, busy.watchdogs_elsewhere, busy.over_memory) = (900, 51, 3);
        busy.delay_timers = 901;
        let mut full = QueueStatistics::default();
        full.over_memory = 1;
        let queues = vec![
            QueueFigures::new(0, &"0-3".parse().unwrap(), 2, &busy),
            QueueFigures::new(1, &"4-7".parse().unwrap(), 0, &QueueStatistics::default()),
            QueueFigures::new(2, &"8".parse().unwrap(), 0, &full),
        ];
        let devices = vec![DeviceFigures {
            device: "eth1".to_owned(),
            lost_ahead: Some(152_316),
            filtered: 31,
            queues,
        }];
        Figures { schema: 1, name: "qc".to_owned(), devices }
    }

    /// Goal: the figures can be read. Method: as text and as JSON.
    #[test]
    fn figures_can_be_read() {
        let mut page = Page::plain();
        figures().show(&mut page);
        insta::assert_snapshot!("figures", page.into_text());
        insta::assert_snapshot!("figures_json", serde_json::to_string_pretty(&figures()).unwrap());
    }
}

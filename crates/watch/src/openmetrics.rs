//! A report as OpenMetrics text, described for users in `docs/reference/watch.md`.
//!
//! All counts are counters: they begin with the watch and never become less, so `rate()` over them means
//! something.
//!
//! Source: OpenMetrics 1.0, "Text format".

use crate::layout::BUCKETS;
use crate::report::WatchReport;
use crate::series::{SeriesTable, printable};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{
    DescriptorEncoder, EncodeLabelSet, LabelSetEncoder, MetricEncoder, NoLabelSet, text,
};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::{Registry, Unit};
use quietcore_core::CpuId;
use quietcore_trace::DisturbanceSource;
use std::collections::BTreeMap;
use std::fmt;

/// Powers of two of ns that are buckets of the histogram: 256 ns to 1.07 s; what is longer is in the last
/// one.
const BUCKETS_SHOWN: std::ops::Range<usize> = 7..30;

/// The text of a report, ending in `# EOF`. `series` says which rows have labels of their own; it is the same
/// one each time.
#[must_use]
pub fn openmetrics(report: &WatchReport, series: &mut SeriesTable) -> String {
    let mut registry = Registry::default();
    let series = series.of(report).into_iter().map(|(labels, counts)| {
        let labels = vec![
            ("cpu", labels.cpu),
            ("source", labels.source),
            ("name", labels.name),
            ("how", labels.how),
            ("cause_cpu", labels.cause_cpu),
            ("cause", labels.cause),
            ("owner", labels.owner),
        ];
        (Labels(labels), counts.count, counts.total_ns)
    });
    registry.register_collector(Box::new(Figures { series: series.collect(), report: report.clone() }));
    let mut encoded = String::new();
    // A string takes any text.
    let written = text::encode(&mut encoded, &registry);
    debug_assert!(written.is_ok(), "a string takes any text");
    encoded
}

#[derive(Debug)]
struct Labels(Vec<(&'static str, String)>);

impl EncodeLabelSet for Labels {
    fn encode(&self, encoder: &mut LabelSetEncoder<'_>) -> fmt::Result {
        self.0.encode(encoder)
    }
}

/// What a registry writes.
#[derive(Debug)]
struct Figures {
    series: Vec<(Labels, u64, u64)>,
    report: WatchReport,
}

impl Collector for Figures {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let seconds = |nanos: u64| nanos as f64 / 1e9;
        let help = "Times that something took a watched CPU away.";
        let mut family =
            encoder.encode_descriptor("quietcore_watch_disturbances", help, None, MetricType::Counter)?;
        for (labels, count, _) in &self.series {
            counter(&mut family, labels, *count)?;
        }
        let help = "How long it had the CPU, without what came on top of it.";
        let unit = Some(&Unit::Seconds);
        let mut family =
            encoder.encode_descriptor("quietcore_watch_disturbed", help, unit, MetricType::Counter)?;
        for (labels, _, total_ns) in &self.series {
            family.encode_family(labels)?.encode_counter::<NoLabelSet, _, f64>(&seconds(*total_ns), None)?;
        }
        self.durations(&mut encoder)?;
        let help = "How long was watched.";
        let mut family =
            encoder.encode_descriptor("quietcore_watch_watched", help, unit, MetricType::Counter)?;
        family.encode_counter::<NoLabelSet, _, f64>(&self.report.watched.as_secs_f64(), None)?;
        let help = "What may be wrong with the counts, by kind; all 0 in good order.";
        let mut family =
            encoder.encode_descriptor("quietcore_watch_losses", help, None, MetricType::Counter)?;
        let losses = self.report.losses;
        for (kind, count) in
            [("skipped", losses.skipped), ("overflow", losses.overflows), ("unnamed", losses.unnamed)]
        {
            counter(&mut family, &Labels(vec![("kind", kind.to_owned())]), count)?;
        }
        let help =
            "What a watched CPU is there for: the task of a user that had it longest, if there is one.";
        let mut family = encoder.encode_descriptor("quietcore_watch_cpu", help, None, MetricType::Gauge)?;
        let own_tasks = self.report.own_tasks();
        for cpu in self.report.cpus.iter() {
            let own = own_tasks.get(&cpu).map(|name| printable(name)).unwrap_or_default();
            let labels = Labels(vec![("cpu", cpu.to_string()), ("own", own)]);
            family.encode_family(&labels)?.encode_gauge(&1_i64)?;
        }
        let help = "Tracepoints that this kernel does not let be counted.";
        let mut family =
            encoder.encode_descriptor("quietcore_watch_left_out", help, None, MetricType::Gauge)?;
        for left_out in &self.report.left_out {
            let labels = Labels(vec![("tracepoint", left_out.tracepoint.clone())]);
            family.encode_family(&labels)?.encode_gauge(&1_i64)?;
        }
        Ok(())
    }
}

impl Figures {
    fn durations(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        // All from the beginning, so that the first one that is counted is an increase.
        let kinds =
            |cpu: CpuId| DisturbanceSource::ALL.map(|source| ((cpu, source.name()), (0, [0; BUCKETS])));
        let mut sums: BTreeMap<(CpuId, &'static str), (u64, [u64; BUCKETS])> =
            self.report.cpus.iter().flat_map(kinds).collect();
        for row in &self.report.rows {
            let (total, buckets) = sums.entry((row.cpu, row.source.name())).or_insert((0, [0; BUCKETS]));
            *total += row.total.as_u64();
            buckets.iter_mut().zip(row.buckets).for_each(|(sum, count)| *sum += count);
        }
        let help = "How long each disturbance had the CPU, by powers of two.";
        let unit = Some(&Unit::Seconds);
        let mut family =
            encoder.encode_descriptor("quietcore_watch_duration", help, unit, MetricType::Histogram)?;
        for ((cpu, source), (total, buckets)) in &sums {
            let labels = Labels(vec![("cpu", cpu.to_string()), ("source", (*source).to_owned())]);
            let below: u64 = buckets[..BUCKETS_SHOWN.start].iter().sum();
            let above: u64 = buckets[BUCKETS_SHOWN.end..].iter().sum();
            let mut shown: Vec<(f64, u64)> =
                BUCKETS_SHOWN.map(|place| ((2_u64 << place) as f64 / 1e9, buckets[place])).collect();
            shown[0].1 += below;
            shown.push((f64::INFINITY, above));
            let count = buckets.iter().sum();
            let total = *total as f64 / 1e9;
            family.encode_family(&labels)?.encode_histogram::<NoLabelSet>(total, count, &shown, None)?;
        }
        Ok(())
    }
}

fn counter(family: &mut MetricEncoder<'_>, labels: &Labels, count: u64) -> fmt::Result {
    family.encode_family(labels)?.encode_counter::<NoLabelSet, _, u64>(&count, None)
}

#[cfg(test)]
mod tests {
    use super::openmetrics;
    use crate::program::LeftOut;
    use crate::report::tests::{report, row};
    use crate::series::SeriesTable;

    /// Goal: every figure is there, in counters that Prometheus takes, and the histogram's buckets add up.
    /// Method: the text of a report with two rows of a CPU.
    #[test]
    fn the_text_has_every_figure() {
        let mut report = report(vec![row("a", 3), row("b", 4)]);
        report
            .left_out
            .push(LeftOut { tracepoint: "ipi_send_cpu".to_owned(), why: "it is not there".to_owned() });
        let text = openmetrics(&report, &mut SeriesTable::new(1));
        for line in [
            "# TYPE quietcore_watch_disturbances counter",
            "quietcore_watch_disturbances_total{cpu=\"1\",source=\"timer\",name=\"a\",how=\"armed\",cause_cpu=\"0\",\
             cause=\"cron\",owner=\"cron.service\"} 3",
            "quietcore_watch_disturbances_total{cpu=\"1\",source=\"timer\",name=\"other\",how=\"\",cause_cpu=\"\",cause=\"\",\
             owner=\"\"} 4",
            "quietcore_watch_disturbed_seconds_total{cpu=\"1\",source=\"timer\",name=\"a\",how=\"armed\",cause_cpu=\"0\",\
             cause=\"cron\",owner=\"cron.service\"} 0.000003",
            "quietcore_watch_duration_seconds_bucket{le=\"0.000001024\",cpu=\"1\",source=\"timer\"} 7",
            "quietcore_watch_duration_seconds_bucket{le=\"5.12e-7\",cpu=\"1\",source=\"timer\"} 0",
            "quietcore_watch_duration_seconds_bucket{le=\"+Inf\",cpu=\"1\",source=\"timer\"} 7",
            "quietcore_watch_duration_seconds_count{cpu=\"1\",source=\"timer\"} 7",
            "quietcore_watch_duration_seconds_count{cpu=\"1\",source=\"nmi\"} 0",
            "quietcore_watch_watched_seconds_total 60.0",
            "quietcore_watch_cpu{cpu=\"1\",own=\"\"} 1",
            "quietcore_watch_losses_total{kind=\"unnamed\"} 0",
            "quietcore_watch_left_out{tracepoint=\"ipi_send_cpu\"} 1",
            "# EOF",
        ] {
            assert!(text.lines().any(|written| written == line), "{line}\nis not in\n{text}");
        }
    }
}

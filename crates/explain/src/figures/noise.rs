//! What the kernel's osnoise tracer measured itself: by CPU, kind and name.

use super::report::MeasuredNoise;
use quietcore_core::{CpuId, Nanos};
use quietcore_trace::{Event, NameId, NameTable, NoiseSource, Record};
use std::collections::HashMap;

/// So many rows are kept; what finds no room is counted under a name of its own, by CPU and kind.
const ROWS_MAX: usize = 2_048;

type NoiseKey = (CpuId, NoiseSource, NameId);

/// See the module.
#[derive(Debug, Default)]
pub(super) struct NoiseCounts(HashMap<NoiseKey, NoiseCount>);

#[derive(Clone, Copy, Debug, Default)]
struct NoiseCount {
    count: u64,
    total: u64,
    max: u64,
    /// When the longest one was over.
    max_at: Nanos,
}

impl NoiseCounts {
    pub(super) fn take(&mut self, record: &Record<'_>, names: &mut NameTable) {
        let Event::Noise { source, name, took } = record.event else { return };
        let mut key = (record.cpu, source, names.number(name));
        if self.0.len() >= ROWS_MAX && !self.0.contains_key(&key) {
            key.2 = NameTable::OTHER;
        }
        let row = self.0.entry(key).or_default();
        row.count += 1;
        row.total = row.total.saturating_add(took.0);
        if took.0 >= row.max {
            (row.max, row.max_at) = (took.0, record.at);
        }
    }

    /// All rows, by CPU, kind and name.
    pub(super) fn report(&self, names: &NameTable) -> Vec<MeasuredNoise> {
        let row = |(&(cpu, source, name), row): (&NoiseKey, &NoiseCount)| MeasuredNoise {
            cpu: cpu.index() as u16,
            source: source.name(),
            name: names.text(name),
            count: row.count,
            total_ns: row.total,
            max_ns: row.max,
            max_at_ns: row.max_at.0,
        };
        let mut rows: Vec<MeasuredNoise> = self.0.iter().map(row).collect();
        rows.sort_by(|one, two| (one.cpu, one.source, &one.name).cmp(&(two.cpu, two.source, &two.name)));
        rows
    }
}

#[cfg(test)]
mod tests {
    use super::{NoiseCounts, ROWS_MAX};
    use quietcore_trace::{NameTable, TraceReader};

    fn rows(text: &str) -> Vec<(u16, &'static str, String, [u64; 4])> {
        let (mut counts, mut names) = (NoiseCounts::default(), NameTable::new());
        let mut reader = TraceReader::new(text.as_bytes());
        reader.read(u64::MAX, &mut |record| counts.take(record, &mut names)).expect("memory");
        assert_eq!(reader.tally().malformed, 0);
        let row = |row: super::MeasuredNoise| {
            (row.cpu, row.source, row.name, [row.count, row.total_ns, row.max_ns, row.max_at_ns])
        };
        counts.report(&names).into_iter().map(row).collect()
    }

    /// Goal: what the tracer measured is told by CPU, kind and name, with the longest and its time. Method:
    /// each kind; one name twice, the later one longer; another CPU.
    #[test]
    fn each_kind_has_its_rows() {
        let text = "\
  osnoise/1-9 [001] d.h2. 5.000010: irq_noise: local_timer:236 start 5.000001000 duration 7000 ns
  osnoise/1-9 [001] d.h2. 5.004010: irq_noise: local_timer:236 start 5.004003000 duration 9000 ns
  osnoise/1-9 [001] d.s2. 5.000020: softirq_noise:    TIMER:1 start 5.000012000 duration 8001 ns
  osnoise/1-9 [001] d..3. 5.000040: thread_noise: kworker/1:0:77 start 5.000030000 duration 10500 ns
  osnoise/2-8 [002] d.Z2. 5.000050: nmi_noise: start 5.000045000 duration 5000 ns
";
        assert_eq!(
            rows(text),
            [
                (1, "interrupt", "local_timer".to_owned(), [2, 16_000, 9_000, 5_004_010_000]),
                (1, "softirq", "TIMER".to_owned(), [1, 8_001, 8_001, 5_000_020_000]),
                (1, "task", "kworker/1:0".to_owned(), [1, 10_500, 10_500, 5_000_040_000]),
                (2, "nmi", String::new(), [1, 5_000, 5_000, 5_000_050_000]),
            ]
        );
    }

    /// Goal: rows are bounded, and nothing is left uncounted. Method: more names than there is room for.
    #[test]
    fn rows_are_bounded() {
        let line = |number: usize| {
            format!("a-1 [000] d..3. 5.0: thread_noise: t{number}:1 start 1.0 duration 2 ns\n")
        };
        let text: String = (0..ROWS_MAX + 50).map(line).collect();
        let rows = rows(&text);
        assert_eq!(rows.len(), ROWS_MAX + 1);
        assert_eq!(rows.iter().map(|row| row.3[0]).sum::<u64>(), ROWS_MAX as u64 + 50);
    }
}

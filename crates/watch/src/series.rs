//! Which rows of a report are series of their own in a monitoring system, which keeps one for each set of
//! labels for ever.
//!
//! Decided here: what a row's labels are, and that there are at most so many sets of them. A set that has
//! once been given a series keeps it, and what comes later is counted under [`OTHER`], by CPU and kind, so
//! that no counter ever becomes less.

use crate::report::{WatchReport, WatchedCause, WatchedRow};
use quietcore_trace::{DisturbanceSource, is_steering};
use std::collections::{BTreeMap, HashSet};

/// The label's value that all further names share.
pub const OTHER: &str = "other";
/// Where a label's value ends, in characters.
const LABEL_CHARS_MAX: usize = 128;

/// The labels of a series. An empty one is not known, or not asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub struct SeriesLabels {
    /// The disturbed CPU.
    pub cpu: String,
    /// The kind of thing.
    pub source: String,
    /// Its name.
    pub name: String,
    /// How it was started: `armed`, `sent`, `raised`, `woken`, `queued`.
    pub how: String,
    /// On which CPU.
    pub cause_cpu: String,
    /// By what: a task, or what ran there.
    pub cause: String,
    /// On behalf of which unit, pod, container or control group.
    pub owner: String,
}

/// What is counted under labels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SeriesCounts {
    /// How often it began.
    pub count: u64,
    /// How long it had the CPU in all, in ns.
    pub total_ns: u64,
}

/// The series of a watch.
#[derive(Debug)]
pub struct SeriesTable {
    /// Of tasks, whose names are without number, and of all else.
    own: [HashSet<SeriesLabels>; 2],
    /// So many of each have a series of their own.
    most: [usize; 2],
}

impl SeriesTable {
    /// At most so many series, a quarter of which is for tasks; and one more for each CPU and kind.
    #[must_use]
    pub fn new(series_max: usize) -> Self {
        let of_tasks = series_max / 4;
        Self { own: [HashSet::new(), HashSet::new()], most: [of_tasks, series_max - of_tasks] }
    }

    /// The counts of all series, by their labels.
    pub fn of(&mut self, report: &WatchReport) -> BTreeMap<SeriesLabels, SeriesCounts> {
        let mut counts: BTreeMap<SeriesLabels, SeriesCounts> = BTreeMap::new();
        for row in &report.rows {
            let labels = labels(row);
            let class = usize::from(row.source != DisturbanceSource::Task);
            let (own, most) = (&mut self.own[class], self.most[class]);
            let has_own = own.contains(&labels) || own.len() < most && own.insert(labels.clone());
            let labels = if has_own { labels } else { shared(labels) };
            let sum = counts.entry(labels).or_default();
            sum.count += row.count;
            sum.total_ns += row.total.as_u64();
        }
        counts
    }
}

fn shared(labels: SeriesLabels) -> SeriesLabels {
    let SeriesLabels { cpu, source, .. } = labels;
    SeriesLabels { cpu, source, name: OTHER.to_owned(), ..SeriesLabels::default() }
}

fn labels(row: &WatchedRow) -> SeriesLabels {
    let cause = row.cause.as_ref();
    let text = |of: fn(&WatchedCause) -> String| cause.map(of).unwrap_or_default();
    SeriesLabels {
        cpu: row.cpu.to_string(),
        source: row.source.name().to_owned(),
        name: printable(&row.name),
        how: text(|cause| cause.how.name().to_owned()),
        cause_cpu: text(|cause| cause.cpu.to_string()),
        cause: text(|cause| printable(&cause.name)),
        owner: text(|cause| cause.owner.as_ref().map(|owner| printable(owner.name())).unwrap_or_default()),
    }
}

/// A label's value: harmless, with an end.
pub(crate) fn printable(text: &str) -> String {
    let letters = text.chars().map(|c| if is_steering(c) { char::REPLACEMENT_CHARACTER } else { c });
    letters.take(LABEL_CHARS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::{OTHER, SeriesCounts, SeriesTable};
    use crate::report::WatchedRow;
    use crate::report::tests::{report, row};
    use quietcore_trace::DisturbanceSource;

    fn sum(table: &mut SeriesTable, counts: &[(&str, u64)]) -> Vec<(String, u64)> {
        let rows = counts.iter().map(|(name, count)| row(name, *count)).collect();
        let series = table.of(&report(rows)).into_iter();
        series.map(|(labels, SeriesCounts { count, .. })| (labels.name, count)).collect()
    }

    /// Goal: there are never more series than allowed, none is taken back, the sum of all is that of the
    /// rows, and none becomes less. Method: three timers with room for two, in another order and with higher
    /// counts the second time.
    #[test]
    fn series_are_few_and_never_shrink() {
        let mut table = SeriesTable::new(2);
        let own = |name: &str, count| (name.to_owned(), count);
        assert_eq!(sum(&mut table, &[("a", 3), ("c", 1)]), [own("a", 3), own("c", 1)]);
        assert_eq!(
            sum(&mut table, &[("a", 3), ("b", 9), ("c", 2)]),
            [own("a", 3), own("c", 2), own(OTHER, 9)]
        );
        let third = sum(&mut table, &[("a", 4), ("b", 9), ("c", 2), ("d", 1)]);
        assert_eq!(third, [own("a", 4), own("c", 2), own(OTHER, 10)]);
    }

    /// Goal: tasks, of which there may be any number, take no series from timers and interrupts. Method: many
    /// tasks, then a timer, with room for four.
    #[test]
    fn tasks_have_their_own_share() {
        let mut table = SeriesTable::new(4);
        let task = |number: u64| {
            let source = DisturbanceSource::Task;
            WatchedRow { source, ..row(&format!("task{number}"), 1) }
        };
        let mut rows: Vec<WatchedRow> = (0..9).map(task).collect();
        rows.extend(["a", "b", "c", "d"].map(|name| row(name, 1)));
        let series = table.of(&report(rows));
        let names: Vec<&str> = series.keys().map(|labels| labels.name.as_str()).collect();
        assert_eq!(names, [OTHER, "task0", "a", "b", "c", OTHER]);
    }

    /// Goal: a label steers no terminal and has an end. Method: a name that would.
    #[test]
    fn labels_are_harmless() {
        let mut table = SeriesTable::new(2);
        let name = format!("a\u{1b}[2J{}", "x".repeat(200));
        let labels = &sum(&mut table, &[(&name, 1)])[0].0;
        assert!(labels.starts_with("a\u{fffd}[2Jx") && labels.chars().count() == 128, "{labels}");
    }
}

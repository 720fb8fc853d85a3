//! What the kernel's osnoise tracer measured, and what was counted here of the same.

use super::page::Page;
use super::when::when;
use quietcore_core::Nanos;
use quietcore_explain::Explanation;
use quietcore_trace::visible;
use std::cmp::Reverse;
use std::collections::BTreeSet;

/// Rows that are printed; the JSON has all of them.
const ROWS_MAX: usize = 32;

/// Kinds of both, each with those of ours that it stands for.
const KINDS: [(&str, &[&str]); 3] =
    [("interrupt", &["device", "processor"]), ("softirq", &["softirq"]), ("nmi", &["nmi"])];

/// The longest in all first; nothing where the tracer was not on.
pub(crate) fn osnoise(page: &mut Page, report: &Explanation) {
    if report.osnoise.is_empty() {
        return;
    }
    page.heading("What the kernel's osnoise tracer measured");
    page.line(&format!("  {:>4} {:>9} {:>9} {:>9}  what", "CPU", "times", "in all", "longest"));
    let mut rows: Vec<_> = report.osnoise.iter().collect();
    rows.sort_by_key(|row| (row.cpu, Reverse(row.total_ns)));
    for row in rows.iter().take(ROWS_MAX) {
        let [total, max] = [row.total_ns, row.max_ns].map(|nanos| Nanos(nanos).to_string());
        let counts = format!("{:>4} {:>9} {total:>9} {max:>9} ", row.cpu, row.count);
        let until = when(report, row.max_at_ns);
        let what = format!("{} {}; longest until {until}", row.source, visible(&row.name));
        page.item(2, &counts, counts.len(), &what);
    }
    if let Some(more) = rows.len().checked_sub(ROWS_MAX).filter(|&more| more > 0) {
        page.line(&format!("  ... and {more} more (--json has all)"));
    }
    let compared = compared(report);
    if !compared.is_empty() {
        page.item(2, "compared", 10, &compared.join("; "));
    }
}

/// Each kind on each CPU, where both have it.
fn compared(report: &Explanation) -> Vec<String> {
    let cpus: BTreeSet<u16> = report.osnoise.iter().map(|row| row.cpu).collect();
    let mut compared = Vec::new();
    for (cpu, (kind, sources)) in cpus.into_iter().flat_map(|cpu| KINDS.map(|kind| (cpu, kind))) {
        let theirs = report.osnoise.iter().filter(|row| (row.cpu, row.source) == (cpu, kind));
        let theirs = sum(theirs.map(|row| (row.count, row.total_ns)));
        let ours = report.interruptions.iter().filter(|row| row.cpu == cpu && sources.contains(&row.source));
        let ours = sum(ours.map(|row| (row.count, row.total_ns.unwrap_or(0))));
        if let (Some(theirs), Some(ours)) = (theirs, ours) {
            compared.push(format!("CPU {cpu} {kind}: {theirs}, counted from events {ours}"));
        }
    }
    compared
}

/// How many in how long; `None` of nothing.
fn sum(rows: impl Iterator<Item = (u64, u64)>) -> Option<String> {
    let (count, total) = rows.reduce(|all, row| (all.0 + row.0, all.1 + row.1))?;
    Some(format!("{count} in {}", Nanos(total)))
}

#[cfg(test)]
mod tests {
    use super::osnoise;
    use crate::text::Page;
    use quietcore_explain::{Explain, ExplainOptions};
    use quietcore_trace::TraceReader;

    const RECORDING: &str = "\
osnoise/1-9 [001] d.h2. 5.000001: local_timer_entry: vector=236
osnoise/1-9 [001] d.h2. 5.000010: local_timer_exit: vector=236
osnoise/1-9 [001] d.h2. 5.000011: irq_noise: local_timer:236 start 5.000001000 duration 9100 ns
osnoise/1-9 [001] d.s2. 5.000012: softirq_noise:    TIMER:1 start 5.000012000 duration 8001 ns
osnoise/1-9 [001] d..3. 5.000040: thread_noise: kworker/1:0:77 start 5.000030000 duration 10500 ns
";

    fn text(recording: &str) -> String {
        let isolated = "1".parse().expect("a list");
        let options = ExplainOptions { isolated, ..ExplainOptions::default() };
        let (mut reader, mut explain) = (TraceReader::new(recording.as_bytes()), Explain::new(options));
        reader.read(u64::MAX, &mut |record| explain.take(record)).expect("memory");
        let mut page = Page::plain();
        osnoise(&mut page, &explain.finish(reader.tally()));
        page.into_text()
    }

    /// Goal: the tracer's own figures are shown, and beside them ours where both are of the same. Method: an
    /// interrupt that both saw, a softirq and a task that the tracer alone saw; a recording without it.
    #[test]
    fn both_are_shown_beside_each_other() {
        let expected = "
What the kernel's osnoise tracer measured
   CPU     times    in all   longest  what
     1         1   10.5 us   10.5 us  task kworker/1:0; longest until 5.000040 s
     1         1    9.1 us    9.1 us  interrupt local_timer; longest until 5.000011 s
     1         1      8 us      8 us  softirq TIMER; longest until 5.000012 s
  compared   CPU 1 interrupt: 1 in 9.1 us, counted from events 1 in 9 us
";
        assert_eq!(text(RECORDING), expected);
        let without: String = RECORDING
            .lines()
            .filter(|line| !line.contains("noise:"))
            .map(|line| format!("{line}\n"))
            .collect();
        assert_eq!(text(&without), "");
    }
}

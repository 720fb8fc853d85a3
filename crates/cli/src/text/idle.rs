//! Idle states of CPUs as a table.

use super::page::Page;
use quietcore_core::Nanos;
use quietcore_explain::Explanation;

/// Rows that are printed; the JSON has all of them.
const ROWS_MAX: usize = 32;

/// How often each CPU went into which state, and for how long; `about` stands before every figure.
pub(super) fn idle_states(page: &mut Page, report: &Explanation, about: &str) {
    let rows = report.idle.as_deref().unwrap_or_default();
    if rows.is_empty() {
        return;
    }
    page.heading("Idle states");
    page.line(&format!(
        "  {:>4} {:>6} {:>9} {:>9} {:>9} {:>9}",
        "CPU", "state", "entered", "in all", "longest", "share"
    ));
    for row in rows.iter().take(ROWS_MAX) {
        let span =
            |nanos: Option<u64>| nanos.map_or("-".to_owned(), |nanos| format!("{about}{}", Nanos(nanos)));
        let share = row.share.map_or("-".to_owned(), |share| format!("{about}{:.2} %", share * 100.0));
        let [total, longest] = [row.total_ns, row.max_ns].map(span);
        let entries = format!("{about}{}", row.entries);
        let counts = format!("{:>4} {:>6} {entries:>9} {total:>9}", row.cpu, row.state);
        page.line(&format!("  {counts} {longest:>9} {share:>9}"));
    }
    if let Some(more) = rows.len().checked_sub(ROWS_MAX).filter(|&more| more > 0) {
        page.line(&format!("  ... and {more} more (--json has all)"));
    }
}

#[cfg(test)]
mod tests {
    use super::{ROWS_MAX, idle_states};
    use crate::text::Page;
    use quietcore_answers::explain_source;

    /// Residencies of 250 ms in so many states, and one that does not end.
    fn text(states: usize) -> String {
        let event = |at: usize, state: u64| {
            format!("a-1 [001] {}.{:02}0000: cpu_idle: state={state} cpu_id=1\n", at / 100, at % 100)
        };
        let residencies = (0..states)
            .map(|state| event(state * 50, state as u64) + &event(state * 50 + 25, u64::from(u32::MAX)));
        let text = residencies.collect::<String>() + &event(states * 50, 99);
        let report = explain_source("given".as_ref(), text.as_bytes()).expect("a recording");
        let mut page = Page::plain();
        idle_states(&mut page, &report, "~");
        page.into_text()
    }

    /// Goal: each state has its row, with its share of the recording; what has no end has no time. Method:
    /// two residencies of 250 ms in a second, and an entry.
    #[test]
    fn each_state_has_its_row() {
        let expected = "
Idle states
   CPU  state   entered    in all   longest     share
     1      0        ~1   ~250 ms   ~250 ms  ~25.00 %
     1      1        ~1   ~250 ms   ~250 ms  ~25.00 %
     1     99        ~1         -         -         -
";
        assert_eq!(text(2), expected);
    }

    /// Goal: a table has an end, and says how much is left out. Method: as many states as are shown, and one
    /// more; a recording of nothing else.
    #[test]
    fn a_table_has_an_end() {
        assert!(!text(ROWS_MAX - 1).contains("more"), "{}", text(ROWS_MAX - 1));
        assert!(text(ROWS_MAX).ends_with("\n  ... and 1 more (--json has all)\n"), "{}", text(ROWS_MAX));
        let text = "a-1 [001] 1.000000: softirq_entry: vec=3 [action=NET_RX]\n";
        let report = explain_source("given".as_ref(), text.as_bytes()).expect("a recording");
        let mut page = Page::plain();
        idle_states(&mut page, &report, "");
        assert_eq!(page.into_text(), "");
    }
}

//! `quietcore calibrate`: what things cost on this machine, for the simulator.
//!
//! Every cost is the median of repeats, with the smallest and largest beside it. What a repeat is made of is
//! chosen so that a thread that loses its CPU spoils one repeat and not the median. No cost is derived from a
//! figure that the simulator is to show. `core.rs` times the core on one thread, `sync.rs` what needs two.

mod core;
mod sync;

use crate::Outcome;
use crate::error::CliError;
use crate::output::{self, AtomicFile};
use crate::text::Page;
use clap::Args;
use quietcore_sim::{Cost, CostTable, CostValue, Measured};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

#[derive(Debug, Args)]
pub(crate) struct CalibrateArgs {
    /// Also write the costs as a file that scenarios can name
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Print JSON instead of text
    #[arg(long)]
    pub(crate) json: bool,
}

/// Repeats of each measurement.
const REPEATS: usize = 15;

/// Measures; returns also what could not be, in sentences.
pub(crate) fn measure() -> Result<(CostTable, Vec<String>), CliError> {
    let mut table = CostTable::measured_at(here());
    let mut set = |cost: Cost, repeats: &[f64], what: &str| {
        if let Some((ns, spread)) = summary(repeats) {
            table.set(cost, CostValue { ns, spread, source: format!("calibrate: {what}") });
        }
    };
    core::measure(&mut set);
    let missing = sync::measure(&mut set)?;
    Ok((table, missing))
}

/// Writes the costs as a file that scenarios can name.
pub(crate) fn write(table: &CostTable, path: &Path) -> Result<(), CliError> {
    let mut file = AtomicFile::create(path)?;
    file.write_all(table.to_toml().as_bytes()).map_err(|error| CliError::Write(path.to_owned(), error))?;
    file.finish()
}

pub(crate) fn run(args: &CalibrateArgs) -> Result<Outcome, CliError> {
    let (table, missing) = measure()?;
    if let Some(path) = &args.output {
        write(&table, path)?;
    }
    if args.json {
        output::print_json(&table)?;
    } else {
        output::print(&text(&table, &missing))?;
    }
    Ok(Outcome::Fine)
}

fn text(table: &CostTable, missing: &[String]) -> String {
    let mut page = Page::for_stdout();
    page.heading("Costs of this machine, in ns: median, and smallest and largest of the repeats");
    for cost in Cost::ALL {
        let Some(value) = table.get(cost) else { continue };
        let spread = value.spread.iter().map(|ns| format!("{ns:.1}")).collect::<Vec<_>>().join(" to ");
        let label = format!("{:<16} {:>9.1}", cost.name(), value.ns);
        page.item(2, &label, 27, &format!("{spread}\n{}", value.source));
    }
    for sentence in missing {
        page.item(2, "note", 27, sentence);
    }
    page.into_text()
}

/// Median, and smallest and largest; `None` of none.
fn summary(repeats: &[f64]) -> Option<(f64, Vec<f64>)> {
    let mut sorted: Vec<f64> = repeats.to_vec();
    sorted.sort_by(f64::total_cmp);
    let (first, last) = (*sorted.first()?, *sorted.last()?);
    let round = |ns: f64| (ns * 10.0).round() / 10.0;
    Some((round(sorted[sorted.len() / 2]), vec![round(first), round(last)]))
}

fn here() -> Measured {
    let file = |path| std::fs::read_to_string(path).unwrap_or_default();
    let info = file("/proc/cpuinfo");
    let model =
        info.lines().find(|line| line.starts_with("model name")).and_then(|line| line.split_once(": "));
    let printable = |text: &str| text.chars().filter(|char| !char.is_control()).take(100).collect::<String>();
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    Measured {
        cpu: model.map_or_else(|| "unknown".to_owned(), |(_, name)| printable(name)),
        cores: std::thread::available_parallelism().map_or(1, |count| count.get() as u64),
        kernel: printable(file("/proc/sys/kernel/osrelease").trim()),
        date: date(seconds / 86_400),
    }
}

/// The day that many days after 1970-01-01.
fn date(days: u64) -> String {
    let is_leap =
        |year: u64| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let (mut year, mut left) = (1970, days);
    while left >= 365 + u64::from(is_leap(year)) {
        left -= 365 + u64::from(is_leap(year));
        year += 1;
    }
    let lengths = [31, 28 + u64::from(is_leap(year)), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let mut month = 0;
    while left >= lengths[month] {
        left -= lengths[month];
        month += 1;
    }
    format!("{year:04}-{:02}-{:02}", month + 1, left + 1)
}

#[cfg(test)]
mod tests {
    use super::{date, summary};

    /// Goal: days are counted right. Method: days around leap years, from another calendar.
    #[test]
    fn days_become_dates() {
        for (days, text) in [
            (0, "1970-01-01"),
            (58, "1970-02-28"),
            (59, "1970-03-01"),
            (11_016, "2000-02-29"),
            (11_017, "2000-03-01"),
            (20_453, "2025-12-31"),
            (20_454, "2026-01-01"),
        ] {
            assert_eq!(date(days), text, "{days} days");
        }
    }

    /// Goal: the median is the middle, the spread the ends. Method: an odd number out of order, and none.
    #[test]
    fn a_summary_is_middle_and_ends() {
        assert_eq!(summary(&[3.0, 1.04, 2.0]), Some((2.0, vec![1.0, 3.0])));
        assert_eq!(summary(&[]), None);
    }
}

//! Costs of this machine, measured and put into the table that scenarios read.

use super::repeats::summary;
use super::{core, sync};
use crate::error::LabError;
use quietcore_sim::{Cost, CostTable, CostValue, MeasuredOn};
use std::time::{SystemTime, UNIX_EPOCH};

/// What things cost on this machine.
#[derive(Debug)]
pub struct Calibration {
    /// Medians, with the spread of the repeats; [`CostTable::to_toml`] is a file that scenarios can name.
    pub costs: CostTable,
    /// What could not be measured here, in sentences.
    pub missing: Vec<String>,
}

/// Measures all costs, which takes some seconds. `commit` is what the program was built from.
///
/// # Errors
///
/// [`LabError::Affinity`] or [`LabError::NoCpu`].
pub fn calibrate(commit: &str) -> Result<Calibration, LabError> {
    let (mut costs, here) = (CostTable::default(), this_machine(commit));
    let mut set = |cost: Cost, repeats: &[f64], what: &str| {
        if let Some((ns, spread)) = summary(repeats) {
            let (source, measured) = (format!("calibrate: {what}"), Some(here.clone()));
            costs.set(cost, CostValue { ns, spread, source, measured });
        }
    };
    core::measure(&mut set);
    let missing = sync::measure(&mut set)?;
    Ok(Calibration { costs, missing })
}

fn this_machine(commit: &str) -> MeasuredOn {
    let file = |path| std::fs::read_to_string(path).unwrap_or_default();
    let info = file("/proc/cpuinfo");
    let model =
        info.lines().find(|line| line.starts_with("model name")).and_then(|line| line.split_once(": "));
    let printable = |text: &str| text.chars().filter(|char| !char.is_control()).take(100).collect::<String>();
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    MeasuredOn {
        cpu: model.map_or_else(|| "unknown".to_owned(), |(_, name)| printable(name)),
        cores: std::thread::available_parallelism().map_or(1, |count| count.get() as u64),
        kernel: printable(file("/proc/sys/kernel/osrelease").trim()),
        date: date(seconds / 86_400),
        commit: commit.to_owned(),
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
    use super::date;

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
}

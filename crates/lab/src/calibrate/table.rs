//! Costs of this machine, measured and put into the table that scenarios read.

use super::repeats::summary;
use super::{core, sync};
use crate::cpus::allowed_cpus;
use crate::error::LabError;
use quietcore_sim::{Cost, CostTable, CostValue, MeasuredOn};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// What things cost on this machine.
#[derive(Debug, Default)]
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
    let cpus: Vec<usize> = allowed_cpus()?.iter().map(|cpu| cpu.index()).collect();
    let (first, second) = sync::places(&cpus)?;
    let mut found = Calibration::default();
    let (here, now) = (this_machine(commit), clock());
    let mut set = |cost: Cost, repeats: &[f64], what: &str| found.set(cost, repeats, what, &here);
    core::measure(&now, &mut set);
    sync::measure(first, second, &now, &mut set);
    if first == second {
        let note = "one CPU only: hand-overs between CPUs are those between two threads on it";
        found.missing.push(note.to_owned());
    }
    Ok(found)
}

impl Calibration {
    /// What `cost` is by its repeats, which `what` says how to get; that it is missing, when there is none.
    fn set(&mut self, cost: Cost, repeats: &[f64], what: &str, here: &MeasuredOn) {
        if let Some((ns, spread)) = summary(repeats) {
            let (source, measured) = (format!("calibrate: {what}"), Some(here.clone()));
            self.costs.set(cost, CostValue { ns, spread, source, measured });
        } else {
            let name = cost.name();
            self.missing.push(format!(
                "{name}: not one sample of it ({what}); give it in the scenario, with its source"
            ));
        }
    }
}

/// Counts ns from now on.
fn clock() -> impl Fn() -> u64 + Sync {
    let zero = Instant::now();
    move || u64::try_from(zero.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

/// Since 1970-01-01.
fn today() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs() / 86_400)
}

fn this_machine(commit: &str) -> MeasuredOn {
    let file = |path| std::fs::read_to_string(path).unwrap_or_default();
    MeasuredOn {
        cpu: processor(&file("/proc/cpuinfo")),
        cores: std::thread::available_parallelism().map_or(1, |count| count.get() as u64),
        kernel: printable(file("/proc/sys/kernel/osrelease").trim()),
        date: date(today()),
        commit: commit.to_owned(),
    }
}

/// What the first processor in /proc/cpuinfo calls itself.
fn processor(info: &str) -> String {
    let model =
        info.lines().find(|line| line.starts_with("model name")).and_then(|line| line.split_once(": "));
    model.map_or_else(|| "unknown".to_owned(), |(_, name)| printable(name))
}

fn printable(text: &str) -> String {
    text.chars().filter(|char| !char.is_control()).take(100).collect()
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
    use super::{Calibration, allowed_cpus, calibrate, clock, date, printable, processor, this_machine};
    use quietcore_sim::{Cost, MeasuredOn};
    use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

    /// Goal: a cost has its median, its spread, how it was measured and where; one without a sample is said
    /// to be missing and is not 0. Method: one of each.
    #[test]
    fn a_cost_is_there_or_said_to_be_missing() {
        let here = MeasuredOn { cpu: "a".to_owned(), cores: 2, ..MeasuredOn::default() };
        let mut found = Calibration::default();
        found.set(Cost::Look, &[5.0, 9.0, 3.0], "reading", &here);
        found.set(Cost::Kick, &[], "waking", &here);
        let look = found.costs.get(Cost::Look).expect("it was set");
        assert_eq!((look.ns, &look.spread[..]), (5.0, &[3.0, 9.0][..]));
        assert_eq!((&look.source[..], &look.measured), ("calibrate: reading", &Some(here)));
        assert!(found.costs.get(Cost::Kick).is_none());
        let missing = "kick: not one sample of it (waking); give it in the scenario, with its source";
        assert_eq!(found.missing, [missing]);
    }

    /// Goal: every cost is measured or said to be missing, and a lack of CPUs is said where there is one.
    /// Method: this machine.
    #[test]
    fn every_cost_of_this_machine_is_accounted_for() {
        let found = calibrate("0123abc").expect("a CPU");
        for cost in Cost::ALL {
            let is_missing = found.missing.iter().any(|line| line.starts_with(&format!("{}: ", cost.name())));
            assert!(found.costs.get(cost).is_some() != is_missing, "{}: {found:?}", cost.name());
        }
        let has_one = allowed_cpus().expect("it can be read").len() == 1;
        let is_said = found.missing.iter().any(|line| line.starts_with("one CPU only"));
        assert_eq!(is_said, has_one, "{found:?}");
    }

    /// Goal: the clock is in ns. Method: a sleep, between two readings of another clock.
    #[test]
    fn the_clock_counts_ns() {
        let (zero, slept) = (Instant::now(), Duration::from_millis(3));
        let now = clock();
        let began = now();
        std::thread::sleep(slept);
        let spent = u128::from(now() - began);
        assert!((slept.as_nanos()..=zero.elapsed().as_nanos()).contains(&spent), "{spent}");
    }

    /// Goal: a machine is named as it names itself, without what drives a terminal. Method: two processors,
    /// and none; this machine.
    #[test]
    fn a_machine_has_a_name() {
        let info = "processor\t: 0\nmodel name\t: A: \u{1b}one\nprocessor\t: 1\nmodel name\t: Two\n";
        assert_eq!((processor(info), processor("processor\t: 0\n")), ("A: one".into(), "unknown".into()));
        assert_eq!(printable(&"x".repeat(101)).len(), 100);
        let day =
            || date(SystemTime::now().duration_since(UNIX_EPOCH).expect("later").as_secs() / (24 * 60 * 60));
        let (before, here, after) = (day(), this_machine("0123abc"), day());
        let cores = std::thread::available_parallelism().map_or(1, |count| count.get() as u64);
        assert_eq!((&here.commit[..], here.cores), ("0123abc", cores));
        let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").expect("Linux has it");
        assert_eq!(here.kernel, release.trim());
        assert!((&before..=&after).contains(&&here.date), "{}", here.date);
    }

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

//! What things cost, in ns, and where each number is from: measured by `calibrate` or cited.
//!
//! Invariants: no number without a source, and none that was measured without its machine, day and commit.
//! A cost is never chosen so that a figure comes out; how much a figure depends on them is shown by halving
//! and doubling all of them.

use super::error::{ScenarioError, ScenarioProblem};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::{self, Write};
use std::path::Path;
use toml::Spanned;

/// The largest cost: a second.
const NS_MAX: f64 = 1e9;

/// Something that takes time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Cost {
    /// Arming a timer under a lock that no other CPU wants.
    Arm,
    /// Cancelling one, likewise.
    Cancel,
    /// Taking one due timer out of the wheel.
    Collect,
    /// One level of a walk in the hierarchy: a compare-and-swap, and its locks.
    Walk,
    /// From a collected timer to its callback and back.
    Dispatch,
    /// Reading what another CPU does, once per CPU looked at when a busy one is searched.
    Look,
    /// Getting a lock that another CPU held last.
    LockHandover,
    /// Waking another CPU: what the waker pays.
    Kick,
    /// Until the woken one notices.
    KickLatency,
    /// From one task to another.
    ContextSwitch,
    /// An interrupt, entry to exit, without what it does.
    Interrupt,
    /// Deciding how long to sleep, and falling asleep.
    IdleEntry,
    /// Waking up from idle.
    IdleExit,
    /// To the thread that runs TIMER on an isolated CPU, and back.
    HelperSwitch,
    /// Putting a packet into a netem that holds many, under a lock that no other CPU wants.
    PacketEnqueue,
    /// Taking one out, likewise.
    PacketDequeue,
}

impl Cost {
    /// All of them, in the order of a file.
    pub const ALL: [Self; 16] = [
        Self::Arm,
        Self::Cancel,
        Self::Collect,
        Self::Walk,
        Self::Dispatch,
        Self::Look,
        Self::LockHandover,
        Self::Kick,
        Self::KickLatency,
        Self::ContextSwitch,
        Self::Interrupt,
        Self::IdleEntry,
        Self::IdleExit,
        Self::HelperSwitch,
        Self::PacketEnqueue,
        Self::PacketDequeue,
    ];

    /// The name in files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Arm => "arm",
            Self::Cancel => "cancel",
            Self::Collect => "collect",
            Self::Walk => "walk",
            Self::Dispatch => "dispatch",
            Self::Look => "look",
            Self::LockHandover => "lock_handover",
            Self::Kick => "kick",
            Self::KickLatency => "kick_latency",
            Self::ContextSwitch => "context_switch",
            Self::Interrupt => "interrupt",
            Self::IdleEntry => "idle_entry",
            Self::IdleExit => "idle_exit",
            Self::HelperSwitch => "helper_switch",
            Self::PacketEnqueue => "packet_enqueue",
            Self::PacketDequeue => "packet_dequeue",
        }
    }
}

/// One number with its source.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct CostValue {
    /// Nanoseconds: the median, if it was measured.
    pub ns: f64,
    /// Smallest and largest of the repeats, if it was measured.
    #[serde(default)]
    pub spread: Vec<f64>,
    /// `calibrate` and how, or who says so where.
    pub source: String,
    /// Where and when it was measured; `None` of a number that is cited.
    #[serde(default)]
    pub measured: Option<MeasuredOn>,
}

impl CostValue {
    fn origin(&self) -> String {
        self.measured.as_ref().map_or_else(|| self.source.clone(), |at| format!("measured on {at}"))
    }
}

/// Where, when and by which code a cost was measured.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct MeasuredOn {
    /// The processor's own name.
    pub cpu: String,
    /// How many CPUs this process may use.
    pub cores: u64,
    /// The kernel release.
    pub kernel: String,
    /// The day, as 2026-01-31.
    pub date: String,
    /// The commit that `calibrate` was built from.
    pub commit: String,
}

impl fmt::Display for MeasuredOn {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { cpu, cores, kernel, date, commit } = self;
        write!(out, "{cpu}, {cores} CPUs, Linux {kernel}, {date}, commit {commit}")
    }
}

/// A file of costs, as `quietcore calibrate` writes it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct CostFile {
    cost: BTreeMap<Spanned<String>, Spanned<CostValue>>,
}

/// All costs of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct CostTable {
    values: BTreeMap<&'static str, CostValue>,
}

impl CostTable {
    /// Whose costs these are, a line for each origin: a machine with its day and commit, or a source that is
    /// cited. The line of the most costs comes last.
    #[must_use]
    pub fn origins(&self) -> Vec<String> {
        let mut origins: Vec<(String, Vec<&'static str>)> = Vec::new();
        for cost in Cost::ALL {
            let origin = self.get(cost).map_or_else(|| "none given, so 0".to_owned(), CostValue::origin);
            match origins.iter_mut().find(|(known, _)| *known == origin) {
                Some((_, costs)) => costs.push(cost.name()),
                None => origins.push((origin, vec![cost.name()])),
            }
        }
        origins.sort_by_key(|(_, costs)| costs.len());
        let last = origins.len() - 1;
        let line = |(at, (origin, costs)): (usize, &(String, Vec<&str>))| match at {
            0 if last == 0 => format!("all: {origin}"),
            at if at == last => format!("all others: {origin}"),
            _ => format!("{}: {origin}", costs.join(", ")),
        };
        origins.iter().enumerate().map(line).collect()
    }

    /// Sets or replaces a cost.
    pub fn set(&mut self, cost: Cost, value: CostValue) {
        self.values.insert(cost.name(), value);
    }

    /// A cost, if it is in the table.
    #[must_use]
    pub fn get(&self, cost: Cost) -> Option<&CostValue> {
        self.values.get(cost.name())
    }

    /// Reads a file of costs.
    ///
    /// # Errors
    /// [`ScenarioError`] when the text is no such file, or a number in it cannot be a cost.
    pub fn parse(file: &Path, text: &str) -> Result<Self, ScenarioError> {
        let in_file = |problem: ScenarioProblem| problem.in_file(file, text);
        let raw: CostFile = toml::from_str(text).map_err(|error| in_file(error.into()))?;
        let mut table = Self::default();
        table.replace(&raw.cost).map_err(in_file)?;
        Ok(table)
    }

    /// Sets or replaces the costs that a scenario gives itself.
    pub(crate) fn replace(
        &mut self,
        costs: &BTreeMap<Spanned<String>, Spanned<CostValue>>,
    ) -> Result<(), ScenarioProblem> {
        for (name, value) in costs {
            let Some(cost) = Cost::ALL.into_iter().find(|cost| cost.name() == name.get_ref()) else {
                let known = Cost::ALL.map(Cost::name).join(", ");
                return Err(ScenarioProblem::at(name, format!("there is no such cost; known are {known}")));
            };
            let raw = value.get_ref();
            if !(0.0..=NS_MAX).contains(&raw.ns) {
                return Err(ScenarioProblem::at(value, "ns must be between 0 and 1000000000"));
            }
            if raw.source.trim().is_empty() {
                return Err(ScenarioProblem::at(value, "source must say where the number is from"));
            }
            self.set(cost, raw.clone());
        }
        Ok(())
    }

    pub(crate) fn missing(&self) -> Vec<&'static str> {
        Cost::ALL.into_iter().filter(|cost| self.get(*cost).is_none()).map(Cost::name).collect()
    }

    /// The table as a file.
    #[must_use]
    pub fn to_toml(&self) -> String {
        let mut text = String::from(
            "# What things cost, in ns: medians, the smallest and largest of the repeats, and where and when\n\
             # they were measured. Made by `quietcore calibrate -o FILE`.\n",
        );
        text.push_str("\n[cost]\n");
        for cost in Cost::ALL {
            let Some(value) = self.get(cost) else { continue };
            let spread: Vec<String> = value.spread.iter().map(|ns| format!("{ns:.1}")).collect();
            let (name, spread) = (cost.name(), spread.join(", "));
            let _ = write!(
                text,
                "{name} = {{ ns = {:.1}, spread = [{spread}], source = {:?}",
                value.ns, value.source
            );
            if let Some(MeasuredOn { cpu, cores, kernel, date, commit }) = &value.measured {
                let _ = write!(
                    text,
                    ", measured = {{ cpu = {cpu:?}, cores = {cores}, kernel = {kernel:?}, date = {date:?}, \
                     commit = {commit:?} }}"
                );
            }
            text.push_str(" }\n");
        }
        text
    }

    /// The costs in whole ns, times `factor`.
    pub(crate) fn scaled(&self, factor: Factor) -> Costs {
        let mut ns = [0; Cost::ALL.len()];
        for cost in Cost::ALL {
            let exact = self.get(cost).map_or(0.0, |value| value.ns) * factor.as_f64();
            ns[cost as usize] = exact.round() as u64;
        }
        Costs { ns }
    }
}

/// What all costs are multiplied with, to see how much a figure depends on them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Factor {
    Half,
    #[default]
    One,
    Double,
}

impl Factor {
    /// A cost in whole ns times this.
    pub(crate) fn times(self, ns: u64) -> u64 {
        (ns as f64 * self.as_f64()).round() as u64
    }

    const fn as_f64(self) -> f64 {
        match self {
            Self::Half => 0.5,
            Self::One => 1.0,
            Self::Double => 2.0,
        }
    }
}

/// The costs of a run, in whole ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Costs {
    ns: [u64; Cost::ALL.len()],
}

impl Costs {
    #[inline]
    pub(crate) const fn of(&self, cost: Cost) -> u64 {
        self.ns[cost as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::{Cost, CostTable, CostValue, Factor, MeasuredOn};

    fn value(ns: f64, source: &str, measured: Option<&MeasuredOn>) -> CostValue {
        CostValue { ns, spread: vec![ns, ns + 1.0], source: source.into(), measured: measured.cloned() }
    }

    fn machine(cpu: &str, date: &str) -> MeasuredOn {
        let (cpu, kernel) = (cpu.to_owned(), "6.18.44".to_owned());
        MeasuredOn { cpu, cores: 2, kernel, date: date.to_owned(), commit: "0123abc".to_owned() }
    }

    /// Goal: a table survives its file. Method: all costs with odd numbers, every other one measured, written
    /// and read.
    #[test]
    fn a_table_survives_its_file() {
        let (mut table, here) = (CostTable::default(), machine("a \"b\"", "2026-01-31"));
        for (place, cost) in Cost::ALL.into_iter().enumerate() {
            let measured = place.is_multiple_of(2).then_some(&here);
            table.set(cost, value(place as f64 * 1.5, "calibrate", measured));
        }
        let read = CostTable::parse("costs.toml".as_ref(), &table.to_toml()).expect("our own file");
        assert_eq!(read, table);
        assert_eq!(read.missing(), [""; 0]);
        assert_eq!(read.scaled(Factor::Double).of(Cost::IdleExit), 36);
    }

    /// Goal: costs of two machines, a cited one and those that are missing never pass for one machine's.
    /// Method: tables with one origin, with none, and with four; the same machine on another day is another.
    #[test]
    fn every_origin_has_its_line() {
        let (one, other) = (machine("one", "2026-01-31"), machine("one", "2026-02-01"));
        let mut table = CostTable::default();
        assert_eq!(table.origins(), ["all: none given, so 0"]);
        Cost::ALL.into_iter().for_each(|cost| table.set(cost, value(1.0, "calibrate", Some(&one))));
        let first = "measured on one, 2 CPUs, Linux 6.18.44, 2026-01-31, commit 0123abc";
        assert_eq!(table.origins(), [format!("all: {first}")]);
        for cost in [Cost::PacketEnqueue, Cost::PacketDequeue] {
            table.set(cost, value(1.0, "calibrate", Some(&other)));
        }
        table.set(Cost::Kick, value(1.0, "a paper", None));
        let second = first.replace("2026-01-31", "2026-02-01");
        assert_eq!(
            table.origins(),
            [
                "kick: a paper".to_owned(),
                format!("packet_enqueue, packet_dequeue: {second}"),
                format!("all others: {first}")
            ]
        );
    }

    /// Goal: no figure that others published is a cost of the project, and every line of its file says where
    /// it was measured. Method: the file.
    #[test]
    fn the_projects_costs_are_measured() {
        let text = include_str!("../../../../scenarios/costs.toml");
        let costs = CostTable::parse("costs.toml".as_ref(), text).expect("the project's costs");
        assert_eq!(costs.missing(), [""; 0]);
        for cost in Cost::ALL {
            let CostValue { source, measured, spread, .. } = costs.get(cost).expect("none is missing");
            let at = measured.as_ref().unwrap_or_else(|| panic!("{} was not measured", cost.name()));
            assert!(source.starts_with("calibrate: ") && spread.len() == 2, "{}: {source}", cost.name());
            let said = [&at.cpu, &at.kernel, &at.date, &at.commit];
            assert!(said.iter().all(|part| !part.is_empty()), "{}: {at:?}", cost.name());
        }
    }

    /// Goal: numbers that cannot be costs, and numbers from nowhere, are refused. Method: one of each.
    #[test]
    fn every_cost_is_possible_and_has_a_source() {
        for (line, problem) in [
            ("arm = { ns = 1e10, source = \"x\" }", "between"),
            ("arm = { ns = nan, source = \"x\" }", "between"),
            ("arm = { ns = 1, source = \" \" }", "source"),
            ("arm = { ns = 1 }", "source"),
            ("arms = { ns = 1, source = \"x\" }", "known are arm, cancel"),
        ] {
            let text = format!("[cost]\n{line}\n");
            let error = CostTable::parse("c".as_ref(), &text).expect_err(line).to_string();
            assert!(error.starts_with("c:2: ") && error.contains(problem), "{line}: {error}");
        }
    }
}

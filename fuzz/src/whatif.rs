//! What must hold for the answer to "what if", whatever the recording and the question.
//!
//! No panic; what is refused says why; sums add up; the range holds the total; nothing is later than the
//! latest; the same question has the same answer.

use quietcore_core::CpuSet;
use quietcore_core::place::Policy;
use quietcore_trace::{KernelRelease, TraceReader};
use quietcore_verify::whatif::{
    Excluded, LoadFacts, LoadReader, RecordedLoad, WhatifFigures, WhatifQuestion, answer,
};

/// A machine of thousands of CPUs takes a second per replay, and shows nothing that a smaller one does not.
const CPUS_MAX: u16 = 256;

/// Reads `bytes` as `quietcore whatif` does, asks under every policy, and asserts all of it.
pub fn check_whatif(bytes: &[u8]) {
    let Some(load) = load(bytes) else { return };
    assert!(!load.is_empty(), "a load without an arm is refused");
    if load.cpus() > CPUS_MAX {
        return;
    }
    let list = |text: &str| text.parse::<CpuSet>().expect("a kernel list");
    for (policy, excluded, kept_awake) in [
        (Policy::Pull, Excluded::AsRecorded, CpuSet::new()),
        (Policy::Pull, Excluded::These(list("1-2")), list("0")),
        (Policy::Push, Excluded::These(CpuSet::new()), list("1")),
        (Policy::Stay, Excluded::AsRecorded, CpuSet::new()),
    ] {
        let question = WhatifQuestion { policy, excluded, kept_awake };
        let found = match answer(&load, &question) {
            Ok(found) => found,
            Err(why) => {
                assert!(!why.to_string().is_empty());
                continue;
            }
        };
        assert_eq!(answer(&load, &question).as_ref(), Ok(&found), "{question:?} has two answers");
        check_figures(&found.before);
        check_figures(&found.after);
        if let Some(agreement) = found.agreement {
            assert!(agreement.same_cpu <= agreement.expired_in_both, "{agreement:?}");
            let replayed = agreement.expired_in_both + agreement.replayed_only;
            assert_eq!(replayed, found.before.expired, "{agreement:?}");
        }
        assert!(!found.assumptions.is_empty());
    }
}

/// `None` where it is refused, which says why.
fn load(bytes: &[u8]) -> Option<RecordedLoad> {
    let mut reader = TraceReader::new(bytes);
    reader.read_header().ok()?;
    let header = reader.header().clone();
    let mut load = LoadReader::new();
    // What ends in an error keeps what was read before it.
    let _ = reader.read(u64::MAX, &mut |record| load.take(record));
    let kernel = header.kernel.or_else(|| KernelRelease::parse(["6.1", "6.12", "6.19"][bytes.len() % 3]));
    let facts = LoadFacts {
        cpu_count: header.cpu_count,
        hz: header.hz.or(Some(250)),
        model: kernel.as_ref().map(KernelRelease::timer_model),
        timer_migration: header.timer_migration,
        isolated: header.isolated.unwrap_or_else(|| "1-7,9-15".parse().expect("a kernel list")),
        nohz_full: header.nohz_full.unwrap_or_default(),
    };
    match load.finish(facts) {
        Ok(load) => Some(load),
        Err(why) => {
            assert!(!why.to_string().is_empty());
            None
        }
    }
}

fn check_figures(of: &WhatifFigures) {
    let foreign = &of.foreign;
    let total = foreign.total.expect("a replay counts it");
    assert_eq!(foreign.pulled.unwrap_or(0) + foreign.placed.unwrap_or(0), total, "{foreign:?}");
    for counts in [&foreign.by_cpu, &foreign.by_base_cpu, &foreign.by_group] {
        assert_eq!(counts.as_ref().map(|counts| counts.values().sum()), Some(total), "{foreign:?}");
    }
    let by_function = foreign.by_function.as_ref().map(|counts| counts.values().sum());
    assert_eq!(by_function, Some(total), "{foreign:?}");
    assert!((of.foreign_range.low..=of.foreign_range.high).contains(&total), "{:?}", of.foreign_range);
    let remote = of.remote.by_cpu.as_ref().map(|counts| counts.values().sum());
    assert_eq!(remote, of.remote.total);
    assert!(total <= of.expired && of.remote.total <= Some(of.expired), "{of:?}");
    assert_eq!(of.wakeups.by_cpu.values().sum::<u64>(), of.wakeups.total);
    let late = &of.lateness_ns;
    assert!(late.p50 <= late.p99 && late.p99 <= late.max, "{late:?}");
}

#[cfg(test)]
mod tests {
    use super::check_whatif;

    /// Goal: the checks accept the bundled seeds and what was found once. Method: each file.
    #[test]
    fn the_checks_accept_the_bundled_seeds() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/seeds");
        let mut checked = 0;
        for entry in std::fs::read_dir(folder).expect("the folder exists") {
            check_whatif(&std::fs::read(entry.expect("an entry").path()).expect("readable"));
            checked += 1;
        }
        assert!(checked > 0, "no seed in {folder}");
    }
}

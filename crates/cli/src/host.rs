//! What the running host says about itself, as far as an explanation needs it.

use crate::error::CliError;
use crate::wall_clock;
use quietcore_core::CpuSet;
use quietcore_explain::{ExplainOptions, Facts};
use std::path::Path;

/// The CPUs that this process may run on.
pub(crate) fn allowed_cpus() -> Result<CpuSet, CliError> {
    Ok(quietcore_lab::allowed_cpus()?)
}

/// The CPUs for lanes: those that `--cpus` asks for, or all that this process may run on.
pub(crate) fn lane_cpus(asked: Option<&CpuSet>) -> Result<CpuSet, CliError> {
    let allowed = allowed_cpus()?;
    let Some(asked) = asked else { return Ok(allowed) };
    if let Some(cpu) = asked.difference(&allowed).first() {
        let sentence = format!("--cpus: this process may not run on CPU {cpu}; it may on {allowed}");
        return Err(CliError::Usage(sentence));
    }
    if asked.first().is_none() {
        return Err(CliError::Usage(format!("--cpus names no CPU; there are {allowed}")));
    }
    Ok(asked.clone())
}

/// The facts of the running host.
pub(crate) fn facts() -> Facts {
    Facts::read(Path::new("/"))
}

/// Ticks per second of the running kernel: its coarse clock goes on once a tick.
pub(crate) fn hz() -> Option<u32> {
    let tick = rustix::time::clock_getres(rustix::time::ClockId::MonotonicCoarse);
    hz_of(tick.tv_nsec).filter(|_| tick.tv_sec == 0)
}

fn hz_of(tick_nanos: i64) -> Option<u32> {
    let nanos = u32::try_from(tick_nanos).ok().filter(|&nanos| nanos > 0)?;
    Some((1_000_000_000 + nanos / 2) / nanos)
}

/// Bytes of memory that programs can get, if the kernel says.
pub(crate) fn memory_available() -> Option<u64> {
    available_in(&std::fs::read_to_string("/proc/meminfo").ok()?)
}

fn available_in(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// Options for explaining the running kernel; the isolated set can still be replaced.
pub(crate) fn options(facts: &Facts) -> ExplainOptions {
    ExplainOptions {
        isolated: facts.domain_isolated(),
        isolated_source: "host",
        nohz_full: facts.nohz_full(),
        kernel: facts.kernel().cloned(),
        cpu_count: facts.possible().iter().last().map(|cpu| cpu.index() as u16 + 1),
        timer_migration: facts.timer_migration(),
        wall_clock: Some(wall_clock::now()),
        ..ExplainOptions::default()
    }
}

#[cfg(test)]
mod tests {
    use super::{allowed_cpus, available_in, hz, hz_of, lane_cpus, memory_available};
    use quietcore_core::CpuSet;

    /// Goal: a tick is known by how long it is. Method: the lengths that kernels have, and what is none; this
    /// machine.
    #[test]
    fn a_tick_is_known_by_its_length() {
        for (nanos, ticks) in [
            (10_000_000, Some(100)),
            (4_000_000, Some(250)),
            (3_333_333, Some(300)),
            (1_000_000, Some(1000)),
            (0, None),
            (-1, None),
        ] {
            assert_eq!(hz_of(nanos), ticks, "{nanos}");
        }
        assert!(hz().is_some_and(|hz| (24..=1200).contains(&hz)), "{:?}", hz());
    }

    /// Goal: the memory that is available is told in bytes. Method: a text, one without, this machine.
    #[test]
    fn available_memory_is_told_in_bytes() {
        let text = "MemTotal:       24684084 kB\nMemFree: 7 kB\nMemAvailable:   12345 kB\n";
        assert_eq!((available_in(text), available_in("MemTotal: 1 kB\n")), (Some(12_345 << 10), None));
        assert!(memory_available().is_some_and(|bytes| bytes > 0));
    }

    /// Goal: lanes are driven on the CPUs that are asked for, and a CPU that cannot be had is named, with
    /// those that can. Method: none, the first that is allowed, that one and two that no machine has, an
    /// empty list.
    #[test]
    fn lanes_are_on_the_cpus_that_are_asked_for() {
        let allowed = allowed_cpus().expect("the kernel says so");
        let first = CpuSet::from_iter(allowed.first());
        assert_eq!(lane_cpus(None).expect("all"), allowed);
        assert_eq!(lane_cpus(Some(&first)).expect("it is allowed"), first);
        let too_many = first.union(&"4000-4001".parse().expect("a list"));
        for (asked, refusal) in [
            (&too_many, format!("--cpus: this process may not run on CPU 4000; it may on {allowed}")),
            (&CpuSet::new(), format!("--cpus names no CPU; there are {allowed}")),
        ] {
            assert_eq!(lane_cpus(Some(asked)).expect_err("it cannot be").to_string(), refusal);
        }
    }
}

//! What the running host says about itself, as far as an explanation needs it.

use crate::error::CliError;
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

/// Options for explaining the running kernel; the isolated set can still be replaced.
pub(crate) fn options(facts: &Facts) -> ExplainOptions {
    ExplainOptions {
        isolated: facts.domain_isolated(),
        isolated_source: "host",
        nohz_full: facts.nohz_full(),
        kernel: facts.kernel().cloned(),
        cpu_count: facts.possible().iter().last().map(|cpu| cpu.index() as u16 + 1),
        timer_migration: facts.timer_migration(),
        ..ExplainOptions::default()
    }
}

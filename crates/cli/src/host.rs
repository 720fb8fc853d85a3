//! What the running host says about itself, as far as an explanation needs it.

use quietcore_trace::{Facts, Options};
use std::path::Path;

/// The facts of the running host.
pub(crate) fn facts() -> Facts {
    Facts::read(Path::new("/"))
}

/// Options for explaining the running kernel; the isolated set can still be replaced.
pub(crate) fn options(facts: &Facts) -> Options {
    Options {
        isolated: facts.domain_isolated(),
        isolated_source: "host",
        nohz_full: facts.nohz_full(),
        kernel: facts.kernel().cloned(),
        cpu_count: facts.possible().iter().last().map(|cpu| cpu.index() as u16 + 1),
        timer_migration: facts.timer_migration(),
        ..Options::default()
    }
}

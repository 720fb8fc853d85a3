//! What the running host says about itself, as far as an explanation needs it.

use quietcore_core::CpuSet;
use quietcore_trace::{Facts, KernelRelease, Options};
use std::fs;
use std::path::Path;

/// The running kernel's release.
pub(crate) fn kernel() -> Option<KernelRelease> {
    KernelRelease::parse(&rustix::system::uname().release().to_string_lossy())
}

/// The CPUs that the running kernel keeps out of its scheduling domains.
pub(crate) fn isolated() -> CpuSet {
    Facts::read(Path::new("/")).domain_isolated()
}

/// Options for explaining the running kernel; the isolated set can still be replaced.
pub(crate) fn options() -> Options {
    let facts = Facts::read(Path::new("/"));
    let possible: Option<CpuSet> =
        read("/sys/devices/system/cpu/possible").and_then(|list| list.parse().ok());
    let highest = possible.and_then(|cpus| cpus.iter().last());
    Options {
        isolated: facts.domain_isolated(),
        isolated_source: "host",
        nohz_full: facts.nohz_full(),
        kernel: kernel(),
        cpu_count: highest.map(|cpu| cpu.index() as u16 + 1),
        timer_migration: read("/proc/sys/kernel/timer_migration").map(|value| value.trim() != "0"),
        ..Options::default()
    }
}

/// CPUs that may be disturbed: online, not isolated, not `nohz_full`.
pub(crate) fn housekeeping(isolated: &CpuSet) -> CpuSet {
    Facts::read(Path::new("/")).housekeeping().difference(isolated)
}

fn read(path: &str) -> Option<String> {
    fs::read_to_string(path).ok()
}

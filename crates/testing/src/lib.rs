//! What the tests of all crates share: how a test says what this machine did not let it test.
//!
//! A test that cannot do its work here (one CPU, no IPv6, no valgrind) ends early, and to the test runner
//! that looks like success. So it calls [`left_out`]: a line on stderr, which the test runner does not hold
//! back, and a line in the file that [`FILE`] names. `cargo xtask ci` sets that variable, counts the lines,
//! and names them at its end. The scripts in `tests/` write to the same file.

mod allocations;

pub use allocations::{CountingAllocator, allocations};

use std::fmt::Display;
use std::fs::File;
use std::io::{self, Write};

/// The environment variable that names the file: one line for each thing left out, `WHAT: REASON`.
pub const FILE: &str = "QUIETCORE_LEFT_OUT";

/// Says that `what` is not tested on this machine, and why: the first line of `reason`.
///
/// # Panics
/// When the file that [`FILE`] names cannot be written: the run would look complete.
pub fn left_out(what: &str, reason: impl Display) {
    let reason = reason.to_string();
    let reason = reason.lines().next().unwrap_or_default();
    // A closed stderr is no reason to fail.
    let _ = writeln!(io::stderr(), "left out: {what}: {reason}");
    if let Some(path) = std::env::var_os(FILE) {
        let file = File::options().append(true).create(true).open(&path);
        let written = file.and_then(|mut file| file.write_all(format!("{what}: {reason}\n").as_bytes()));
        written.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    }
}

/// Whether this process may run on two CPUs; `test` is left out otherwise.
#[must_use]
pub fn has_two_cpus(test: &str) -> bool {
    let has = std::thread::available_parallelism().is_ok_and(|count| count.get() > 1);
    if !has {
        left_out(test, "needs two CPUs");
    }
    has
}

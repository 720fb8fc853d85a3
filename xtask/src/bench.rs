//! `cargo xtask bench`: the table of targets, measured here.
//!
//! Builds the programs of `bench/` and runs `targets`, which runs the others. With `--record` the table
//! becomes a file of `docs/results`.

use crate::workspace::{Failure, Workspace, capture, exit_code, run};
use std::fs;
use std::io::{self, Write as _};
use std::process::ExitCode;

const RESULTS: &str = "docs/results/targets.md";

/// What stands above a table that is written down.
const ABOUT: &str = "\
# Targets

What the hot paths should cost, and what they cost where `cargo xtask bench --record` ran last. Most figures are
multiples of what that machine allows: a lock that is taken and given back, the clock, a read that misses the
caches, `grep -c` on the same file, what two threads compute in place of one; the multiple decides whether a
target is met, as the targets were set on another machine. Where there is a dash the figure itself decides, and a slower machine misses for its own sake.
A figure that fewer rounds have than the table was measured less often. Peers are in [runtime.md](runtime.md).

";

/// Measures and shows the table; with `is_record` writes it down. `words` are for the program.
pub(crate) fn command(is_record: bool, words: &[&str]) -> ExitCode {
    exit_code("bench", measure(is_record, words))
}

fn measure(is_record: bool, words: &[&str]) -> Result<(), Failure> {
    if is_record && words.contains(&"--quick") {
        return Err(Failure::new("--quick measures something easier", "record without it"));
    }
    let workspace = Workspace::open()?;
    let target = workspace.target.join("bench");
    let build = ["build", "--release", "--manifest-path", "bench/Cargo.toml", "--locked", "--bins"];
    run(workspace.cargo(&build).env("CARGO_TARGET_DIR", &target), "mend it in bench/")?;
    let mut program = workspace.program(target.join("release").join("targets"));
    program.args(words);
    if !is_record {
        return run(&mut program, "what it says above is why");
    }
    let table = capture(program.args(["--form", "markdown"]))?;
    // A reader that has seen enough may close the pipe.
    let _ = write!(io::stdout(), "{table}");
    let failed = |error| Failure::new(format!("{RESULTS}: {error}"), "look at that folder");
    fs::write(workspace.root.join(RESULTS), format!("{ABOUT}{table}")).map_err(failed)
}

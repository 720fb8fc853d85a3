//! What a report says of where its numbers come from: processor, kernel, commit, compiler.
//!
//! Everything that cannot be found out is called unknown or left out; no report fails for it.

use serde::Serialize;
use std::process::Command;

/// Where and with what something was measured.
#[derive(Clone, Debug, Serialize)]
pub struct Machine {
    pub cpu: String,
    pub cores: usize,
    pub kernel: String,
    /// Of this repository, with `-dirty` when the crates or the benchmark were changed since.
    pub commit: Option<String>,
    /// What compiled this program.
    pub rustc: &'static str,
}

impl Machine {
    /// Asks the system.
    #[must_use]
    pub fn here() -> Self {
        Self {
            cpu: cpu_model(),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            kernel: first_line("/proc/sys/kernel/osrelease"),
            commit: commit(),
            rustc: env!("QUIETCORE_BENCH_RUSTC"),
        }
    }
}

fn first_line(path: &str) -> String {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.lines().next().unwrap_or("unknown").to_owned()
}

fn cpu_model() -> String {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model =
        text.lines().find(|line| line.starts_with("model name")).and_then(|line| line.split_once(": "));
    model.map_or_else(|| "unknown".to_owned(), |(_, name)| name.to_owned())
}

/// Absent without git.
fn commit() -> Option<String> {
    let git = |arguments: &[&str]| {
        let output =
            Command::new("git").arg("-C").arg(env!("CARGO_MANIFEST_DIR")).args(arguments).output().ok()?;
        let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        output.status.success().then_some(text)
    };
    let commit = git(&["rev-parse", "--short=12", "HEAD"])?;
    let changed =
        git(&["status", "--porcelain", "--", "../crates", "."]).is_some_and(|text| !text.is_empty());
    Some(if changed { commit + "-dirty" } else { commit })
}

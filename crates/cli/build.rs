//! Says which commit the program is built from, for what is measured with it: `-dirty` behind it when the
//! crates were changed since, `unknown` where there is no git.

use std::process::Command;

fn main() {
    println!("cargo::rustc-env=QUIETCORE_COMMIT={}", commit().as_deref().unwrap_or("unknown"));
    println!("cargo::rerun-if-changed=..");
    if let Some(log) = git(&["rev-parse", "--git-path", "logs/HEAD"]) {
        println!("cargo::rerun-if-changed={log}");
    }
}

fn commit() -> Option<String> {
    let commit = git(&["rev-parse", "--short=12", "HEAD"])?;
    let is_clean = git(&["status", "--porcelain", "--", ".."])?.is_empty();
    Some(if is_clean { commit } else { commit + "-dirty" })
}

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}

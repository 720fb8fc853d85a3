//! Says which commit the program is built from, for what is measured with it: `-dirty` behind it when the
//! crates were changed since, `unknown` where nothing says so.
//!
//! A package has a file that names its commit. Without one git is asked, and only of a file that is git's: a
//! package may lie below a repository that is not ours.

use std::env;
use std::fs;
use std::process::Command;

/// What cargo puts into a package.
const COMMIT_OF_PACKAGE: &str = ".cargo_vcs_info.json";

fn main() {
    let commit = commit_of_package().or_else(commit_of_tree);
    println!("cargo::rustc-env=QUIETCORE_COMMIT={}", commit.as_deref().unwrap_or("unknown"));
    // What cargo tells build scripts alone.
    for (ours, cargos) in [("QUIETCORE_TARGET", "TARGET"), ("QUIETCORE_PROFILE", "PROFILE")] {
        println!("cargo::rustc-env={ours}={}", env::var(cargos).as_deref().unwrap_or("unknown"));
    }
    println!("cargo::rerun-if-changed=build.rs");
}

fn commit_of_package() -> Option<String> {
    let text = fs::read_to_string(COMMIT_OF_PACKAGE).ok()?;
    let (_, hash) = text.split_once("\"sha1\": \"")?;
    let commit = hash.get(..12)?.to_owned();
    Some(if text.contains("\"dirty\": true") { commit + "-dirty" } else { commit })
}

fn commit_of_tree() -> Option<String> {
    git(&["ls-files", "--error-unmatch", "build.rs"])?;
    println!("cargo::rerun-if-changed=..");
    if let Some(log) = git(&["rev-parse", "--git-path", "logs/HEAD"]) {
        println!("cargo::rerun-if-changed={log}");
    }
    let commit = git(&["rev-parse", "--short=12", "HEAD"])?;
    let is_clean = git(&["status", "--porcelain", "--", ".."])?.is_empty();
    Some(if is_clean { commit } else { commit + "-dirty" })
}

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}

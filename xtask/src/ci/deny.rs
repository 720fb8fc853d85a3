//! The step that asks whether the dependencies are what `deny.toml` allows: licences, versions that are there
//! twice, sources.
//!
//! Known holes are no part of it: their list is not everywhere to be had, and changes by itself. A release
//! asks for them: `cargo deny check advisories` (CONTRIBUTING.md). Dependencies of tests alone are not asked.

use super::options::CiOptions;
use crate::workspace::{Failure, Workspace, is_installed, run};

/// Why dependencies cannot be checked here.
pub(super) fn is_missing() -> Option<&'static str> {
    (!is_installed("cargo-deny")).then_some("needs cargo-deny: cargo install cargo-deny --locked")
}

pub(super) fn deny(workspace: &Workspace, _: &CiOptions) -> Result<(), Failure> {
    let mut check = workspace.cargo(&["deny", "--workspace", "--all-features", "--locked", "check"]);
    check.args(["licenses", "bans", "sources"]);
    run(&mut check, "take a dependency out, or say in deny.toml why it may stay")
}

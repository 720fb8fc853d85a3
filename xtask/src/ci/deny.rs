//! The step that asks whether the dependencies are what `deny.toml` allows: licences, versions that are there
//! twice, sources, and known holes.
//!
//! It needs `cargo-deny`, and for the known holes the network; where either is missing the step says so and
//! fails: `--skip deny` says that it was left out.

use super::options::CiOptions;
use crate::workspace::{Failure, Workspace, run};
use std::process::Stdio;

pub(super) fn deny(workspace: &Workspace, _: &CiOptions) -> Result<(), Failure> {
    let mut version = workspace.cargo(&["deny", "--version"]);
    let is_there = version.stdout(Stdio::null()).stderr(Stdio::null()).status();
    if !is_there.is_ok_and(|status| status.success()) {
        let remedy = "install it: `cargo install cargo-deny --locked`; or leave the step out: `--skip deny`";
        return Err(Failure::new("there is no cargo-deny", remedy));
    }
    let mut check = workspace.cargo(&["deny", "--all-features", "--locked", "check"]);
    run(&mut check, "take a dependency out, or say in deny.toml why it may stay")
}

//! What the parts use: the programs, and a way to say what must hold.

use crate::workspace::{Failure, Workspace, run};
use std::path::PathBuf;

pub(super) struct Tools {
    pub(super) quietcore: PathBuf,
    /// This program, which is sender and receiver, too.
    pub(super) own: PathBuf,
}

impl Tools {
    pub(super) fn find() -> Result<Self, Failure> {
        let workspace = Workspace::open()?;
        let arguments = ["build", "--release", "--locked", "-p", "quietcore-cli", "--bin", "quietcore"];
        let mut command = workspace.cargo(&arguments);
        run(command.env_remove("CARGO_BUILD_TARGET"), "make it build")?;
        let quietcore = workspace.target.join("release").join("quietcore");
        let own = std::env::current_exe();
        let own =
            own.map_err(|error| Failure::new(format!("where this program is: {error}"), "run it again"))?;
        Ok(Self { quietcore, own })
    }
}

/// Prints a condition; one that does not hold is a failure.
pub(super) fn must(holds: bool, what: &str) -> Result<(), Failure> {
    println!("  {} {what}", if holds { "ok   " } else { "WRONG" });
    if holds {
        Ok(())
    } else {
        Err(Failure::new(format!("not so: {what}"), "the lines above say what was measured"))
    }
}

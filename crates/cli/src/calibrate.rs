//! `quietcore calibrate`: what things cost on this machine, for the simulator.

use crate::atomic_file::{AtomicFile, OutputContent};
use crate::error::CliError;
use crate::outcome::CommandOutcome;
use crate::output;
use crate::text::{self, Page};
use clap::Args;
use quietcore_lab::{Calibration, LabError};
use quietcore_sim::CostTable;
use std::io::Write;
use std::path::{Path, PathBuf};

#[derive(Debug, Args)]
pub(crate) struct CalibrateArgs {
    /// Also write the costs as a file that scenarios can name
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Print JSON instead of text
    #[arg(long)]
    pub(crate) json: bool,
}

/// What this program was built from; see build.rs.
const COMMIT: &str = env!("QUIETCORE_COMMIT");

/// Measures the costs of this machine.
pub(crate) fn measure() -> Result<Calibration, LabError> {
    quietcore_lab::calibrate(COMMIT)
}

pub(crate) fn run(args: &CalibrateArgs) -> Result<CommandOutcome, CliError> {
    let found = measure()?;
    if let Some(path) = &args.output {
        write(&found.costs, path)?;
    }
    if args.json {
        found.missing.iter().for_each(|sentence| output::say(sentence));
        output::print_json(&found.costs)?;
    } else {
        Page::print(|page| text::costs(page, &found))?;
    }
    Ok(CommandOutcome::Fine)
}

/// Writes the costs as a file that scenarios can name.
pub(crate) fn write(costs: &CostTable, path: &Path) -> Result<(), CliError> {
    let mut file = AtomicFile::create(path, OutputContent::Ordinary)?;
    file.write_all(costs.to_toml().as_bytes()).map_err(|error| CliError::Write(path.to_owned(), error))?;
    file.finish()
}

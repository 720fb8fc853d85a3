//! Holds the runtime against disturbances that a test on a quiet machine does not have.
//!
//! Each subcommand is one experiment with a criterion of its own: it prints its figures, as a line or with
//! `--json` as an object, and exits with 0 when the criterion was met, 1 when not, 77 when it could not be
//! made here, 2 when it broke. `tests/live_timers.sh` runs all of them and brings the disturbances that come
//! from outside: stops, a quota, an affinity that changes. What each measures: docs/results/disturbance.md.
//!
//! Where what is: `run.rs` random timers on several threads, `scene.rs` what each of them does; loads with
//! their books in `callbacks.rs` (and `ledger.rs`), `futures.rs`, `periods.rs`, `shared.rs`; `lanes.rs`
//! threads that play CPUs; `running.rs` what counts as late. `quiet.rs` context switches of a child, counted
//! by `watch.rs`; `hog.rs` a real-time loop on a lane's CPU; `churn.rs` arm and cancel, and nothing else;
//! `flips.rs` lanes that are isolated in turns; `kicked.rs` kicks against the kernel's count of wake-ups.

mod callbacks;
mod churn;
mod flips;
mod futures;
mod hog;
mod kicked;
mod lanes;
mod ledger;
mod periods;
mod process;
mod queues;
mod quiet;
mod random;
mod report;
mod run;
mod running;
mod scene;
mod shared;
mod watch;

use clap::{Parser, Subcommand, ValueEnum};
use core::fmt;
use quietcore_live::{CpuSet, Machine, MachineBuilder};
use report::Report;
use std::error::Error;
use std::process::ExitCode;
use std::time::Duration;

/// What an experiment comes to; an error is one that broke.
type Outcome = Result<Report, Box<dyn Error>>;

/// Holds the runtime against disturbances.
#[derive(Parser)]
struct Arguments {
    #[command(subcommand)]
    experiment: Experiment,
    /// Print a JSON object instead of a line.
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Subcommand)]
enum Experiment {
    /// Random timers of all kinds: nothing early, lost or twice.
    Run(run::Arguments),
    /// Two lanes with a thousand timers an hour away: no thread wakes up.
    Quiet(quiet::Arguments),
    /// A busy lane runs a 1 kHz timer: the other sleeps on.
    Busy(quiet::Arguments),
    /// A real-time loop on a lane's CPU: its global timers are on time.
    Hog(hog::Arguments),
    /// Arm and cancel: no memory, no system calls.
    Churn(churn::Arguments),
    /// Lanes are isolated in turns: nothing foreign begins there.
    Flips(flips::Arguments),
    /// Kicks of a parked isolated lane, against the kernel's count of wake-ups.
    Kicked(kicked::Arguments),
    /// The child of `quiet`.
    #[command(hide = true)]
    BeQuiet(quiet::Arguments),
    /// The child of `busy`.
    #[command(hide = true)]
    BeBusy(quiet::Arguments),
    /// The real-time loop of `hog`.
    #[command(hide = true)]
    Burn(hog::BurnArguments),
}

/// Which CPUs have lanes, and what happens to those that do not turn.
#[derive(clap::Args)]
struct LaneArguments {
    /// CPUs that threads of this program play, as 0-1; or none.
    #[arg(long, default_value = "0-1")]
    lanes: String,
    /// Whether others take over what a lane that is stuck leaves undone.
    #[arg(long, value_enum, default_value_t = StallHandling::On)]
    stall_handling: StallHandling,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum StallHandling {
    On,
    Off,
}

impl LaneArguments {
    fn set(&self) -> Result<CpuSet, Box<dyn Error>> {
        if self.lanes == "none" { Ok(CpuSet::new()) } else { Ok(self.lanes.parse()?) }
    }

    fn builder(&self) -> Result<MachineBuilder, Box<dyn Error>> {
        let builder = Machine::builder().lanes(self.set()?);
        Ok(match self.stall_handling {
            StallHandling::On => builder,
            StallHandling::Off => builder.stall_after(Duration::MAX),
        })
    }
}

impl fmt::Display for LaneArguments {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.lanes)
    }
}

impl Experiment {
    /// Children have nothing to report.
    fn make(&self) -> Result<Option<Report>, Box<dyn Error>> {
        match self {
            Self::Run(arguments) => run::run(arguments).map(Some),
            Self::Quiet(arguments) => quiet::quiet(arguments).map(Some),
            Self::Busy(arguments) => quiet::busy(arguments).map(Some),
            Self::Hog(arguments) => hog::run(arguments).map(Some),
            Self::Churn(arguments) => churn::run(arguments).map(Some),
            Self::Flips(arguments) => flips::run(arguments).map(Some),
            Self::Kicked(arguments) => kicked::run(arguments).map(Some),
            Self::BeQuiet(arguments) => quiet::be_quiet(arguments).map(|()| None),
            Self::BeBusy(arguments) => quiet::be_busy(arguments).map(|()| None),
            Self::Burn(arguments) => hog::burn(arguments).map(|()| None),
        }
    }
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match arguments.experiment.make() {
        Ok(None) => ExitCode::SUCCESS,
        Ok(Some(report)) => {
            if arguments.json {
                report.print_json();
            } else {
                report.print_line();
            }
            report.exit_code()
        }
        Err(error) => {
            eprintln!("endure: {error}");
            ExitCode::from(2)
        }
    }
}

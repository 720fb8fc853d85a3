//! Why an experiment, a prediction or a calibration could not be carried out; every message says what to do
//! where something can be done.

use quietcore_core::{CpuId, CpuSet};
use quietcore_live::{ArmError, StartError, task::SpawnError};
use quietcore_net::DeviceError;
use quietcore_sim::ScenarioError;
use std::fmt;
use std::io;

/// See the module.
#[derive(Debug)]
#[non_exhaustive]
pub enum LabError {
    /// The CPUs that this process may use cannot be read.
    Affinity(io::Error),
    /// A CPU was asked for that this process may not use.
    CpuNotAllowed {
        /// The first such CPU.
        cpu: CpuId,
        /// Those that it may use.
        allowed: CpuSet,
    },
    /// Fewer than two CPUs: those that were asked for, or all that there are.
    TwoCpusNeeded {
        /// `None` when no CPU was asked for.
        asked: Option<CpuSet>,
    },
    /// This process may use no CPU at all.
    NoCpu,
    /// The runtime cannot start.
    Start(StartError),
    /// A timer cannot be armed.
    Arm(ArmError),
    /// A task cannot be started.
    Spawn(SpawnError),
    /// A network device cannot be made.
    Device(DeviceError),
    /// Threads of this process cannot be read in `/proc/self/task`.
    Threads(io::Error),
    /// A lane or another thread of a trial did not do its part.
    Trial(String),
    /// A scenario or a file of costs does not fit.
    Scenario(ScenarioError),
    /// A scenario cannot be run.
    Simulation(io::Error),
    /// A scenario does not have a figure that is predicted.
    NoFigure {
        /// The scenario.
        scenario: &'static str,
        /// The figure's name.
        figure: &'static str,
        /// The scenario's variant.
        variant: &'static str,
    },
}

impl fmt::Display for LabError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Affinity(error) => write!(out, "cannot read the CPU affinity of this process: {error}"),
            Self::CpuNotAllowed { cpu, allowed } => {
                write!(out, "--cpus: this process may not run on CPU {cpu}; it may on {allowed}")
            }
            Self::TwoCpusNeeded { asked: Some(asked) } => {
                write!(out, "--cpus: the lab needs two CPUs, and \"{asked}\" is one")
            }
            Self::TwoCpusNeeded { asked: None } => {
                write!(out, "the lab needs two CPUs; this process may use one (see taskset)")
            }
            Self::NoCpu => write!(out, "this process may use no CPU at all"),
            Self::Start(error) => write!(out, "cannot start the runtime: {error}"),
            Self::Arm(error) => write!(out, "cannot arm a timer: {error}"),
            Self::Spawn(error) => write!(out, "cannot start a task: {error}"),
            Self::Device(error) => write!(out, "cannot make a device: {error}"),
            Self::Threads(error) => write!(out, "cannot read /proc/self/task: {error}"),
            Self::Trial(sentence) => write!(out, "{sentence}"),
            Self::Scenario(error) => write!(out, "{error}"),
            Self::Simulation(error) => write!(out, "cannot run the scenario: {error}"),
            Self::NoFigure { scenario, figure, variant } => {
                write!(out, "the scenario {scenario} has no {figure} of {variant}")
            }
        }
    }
}

impl std::error::Error for LabError {}

impl From<StartError> for LabError {
    fn from(error: StartError) -> Self {
        Self::Start(error)
    }
}

impl From<ArmError> for LabError {
    fn from(error: ArmError) -> Self {
        Self::Arm(error)
    }
}

impl From<SpawnError> for LabError {
    fn from(error: SpawnError) -> Self {
        Self::Spawn(error)
    }
}

impl From<DeviceError> for LabError {
    fn from(error: DeviceError) -> Self {
        Self::Device(error)
    }
}

impl From<ScenarioError> for LabError {
    fn from(error: ScenarioError) -> Self {
        Self::Scenario(error)
    }
}

#[cfg(test)]
mod tests {
    use super::LabError;
    use std::io;

    /// Goal: a message names what is wrong, each thing in its place. Method: those that no other test has.
    #[test]
    fn a_message_names_what_is_wrong() {
        let no = || io::Error::other("no");
        for (error, text) in [
            (LabError::Affinity(no()), "cannot read the CPU affinity of this process: no"),
            (LabError::NoCpu, "this process may use no CPU at all"),
            (LabError::Threads(no()), "cannot read /proc/self/task: no"),
            (LabError::Trial("a lane".to_owned()), "a lane"),
            (LabError::Simulation(no()), "cannot run the scenario: no"),
            (LabError::NoFigure { scenario: "s", figure: "f", variant: "v" }, "the scenario s has no f of v"),
        ] {
            assert_eq!(error.to_string(), text);
        }
    }
}

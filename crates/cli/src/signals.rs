//! Ctrl-C and its relatives as a flag, so that every command ends in an orderly way.

use crate::error::CliError;
use quietcore_lab::StopFlag;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Set once SIGINT, SIGTERM or SIGHUP arrived. Further ones change nothing: cleaning up takes some
/// ms, and a process that is cut short would leave its instance recording.
#[derive(Clone, Debug)]
pub(crate) struct SignalFlag(Arc<AtomicBool>);

impl SignalFlag {
    /// Takes the signals over from the system's default, which is to end the process.
    pub(crate) fn install() -> Result<Self, CliError> {
        let flag = Arc::new(AtomicBool::new(false));
        for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM, signal_hook::consts::SIGHUP]
        {
            let failed = |error: io::Error| CliError::Live(format!("cannot catch signals: {error}"));
            signal_hook::flag::register(signal, Arc::clone(&flag)).map_err(failed)?;
        }
        Ok(Self(flag))
    }

    /// The same flag, for the lab.
    pub(crate) fn stop_flag(&self) -> StopFlag {
        StopFlag::from(Arc::clone(&self.0))
    }

    /// Whether one arrived.
    pub(crate) fn arrived(&self) -> bool {
        self.0.load(Ordering::Relaxed) // pairs with nothing: the flag carries no other data
    }
}

//! Why a recording cannot be replayed: what it does not say, and how to get a recording that does.

use quietcore_core::CpuId;
use std::fmt;

/// Why a recording cannot be replayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LoadError {
    /// There is no `timer_start`.
    NoArms,
    /// Neither the header nor the events say how long a tick is.
    UnknownTick,
    /// Neither the header nor the events say what the kernel did.
    UnknownKernel,
    /// A line says that a CPU is idle, or no longer, that the recording's machine does not have.
    UnknownCpu {
        /// The line, from 1.
        line: u64,
        /// That CPU.
        cpu: CpuId,
        /// How many CPUs there are.
        cpus: u16,
    },
}

impl fmt::Display for LoadError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let why = match self {
            Self::NoArms => "no timer_start event, so there is nothing to replay; record the events timer:*",
            Self::UnknownTick => {
                "the length of a tick is unknown: no `HZ=` in a `# kernel:` line, and jiffies and time stamps \
                 fit no rate that Linux has; record with trace_clock mono, and for longer than a second"
            }
            Self::UnknownKernel => {
                "the kernel that wrote this is unknown; name its release with --kernel, as --kernel 6.12"
            }
            Self::UnknownCpu { line, cpu, cpus } => {
                return write!(
                    out,
                    "line {line} names CPU {cpu}, but the recording has {cpus} CPUs, the last of them {}",
                    cpus.saturating_sub(1)
                );
            }
        };
        out.write_str(why)
    }
}

impl std::error::Error for LoadError {}

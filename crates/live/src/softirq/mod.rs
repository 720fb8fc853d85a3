//! Softirqs: work that is raised for a CPU and run there soon, before tasks, in short passes.
//!
//! A program gives vectors their handlers when it builds the machine, and raises them from any thread. The
//! CPU's lane runs them in its next turn, between any two items: at most ten passes or 2 ms, no more than one
//! if a real-time task waits. What is left of the long vectors (NET_TX, NET_RX, BLOCK, IRQ_POLL) and of the
//! program's own goes to the lane's *ksoftirqd*, a thread of normal priority; all others wait for the lane. A
//! vector never runs twice at a time for the same CPU. A machine whose [`Awareness`] defers leaves the long
//! ones to ksoftirqd at once while a real-time task waits, or if they were raised while one ran, for
//! [`defer_limit`](crate::MachineBuilder::defer_limit) at most; then the lane runs them, or, if ksoftirqd is
//! just doing so, waits for it for up to 2 ms.
//!
//! What a round does next is decided in the core (`LaneSoftirqs`, `KsoftirqdRound`). `round.rs` is the lane's
//! part, `ksoftirqd.rs` the thread's. TIMER and HRTIMER are the machine's own: they are what
//! [`Cpu::turn`](crate::Cpu::turn) does with timers. Source: docs/design/KERNEL.md, section 5;
//! docs/design/PROTOCOL.md, section 9.

mod handlers;
mod ksoftirqd;
mod round;
mod run;

pub(crate) use handlers::Handlers;
pub use handlers::{RaiseError, SoftirqRun};
pub use quietcore_core::realtime::Awareness;
pub use quietcore_core::softirq::{Runner, Vector, VectorSet};
pub(crate) use round::Before;

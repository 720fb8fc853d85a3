//! Events of real Linux kernels: read from text, recorded from the running kernel, written as tracks.
//!
//! - **Reading**: [`open`] a recording, and [`TraceReader`] hands out typed [`Event`]s from the text of
//!   tracefs or of `trace-cmd report`, in constant memory.
//! - **Recording**: `live` records the running kernel in a tracing instance of its own. On Linux only; all
//!   else reads recordings anywhere.
//! - **Showing**: [`PerfettoWriter`] turns events into tracks that a person scrolls through.
//!
//! Nothing here judges what it reads (`quietcore-explain` does), replays it (`quietcore-verify` does),
//! writes a kernel setting, or prints.
//!
//! ```
//! use quietcore_trace::{Event, TraceReader};
//!
//! let text = "\
//!     swapper-0 [000] d..2. 1.000000: timer_start: timer=01 function=f expires=9 [timeout=1] cpu=0 idx=1 flags=
//!     spin-99   [001] ..s1. 1.008000: timer_expire_entry: timer=01 function=f now=10 baseclk=10
//! ";
//! let mut reader = TraceReader::new(text.as_bytes());
//! reader.read(u64::MAX, &mut |record| {
//!     if let Event::TimerExpireEntry { timer, .. } = record.event {
//!         assert_eq!((timer, record.cpu.index()), (1, 1));
//!     }
//! })?;
//! assert_eq!(reader.tally().events, 2);
//! # Ok::<(), quietcore_trace::ReadError>(())
//! ```

#![forbid(unsafe_code)]

mod ahead;
mod annotation;
mod binary;
#[cfg_attr(
    not(target_os = "linux"),
    allow(unreachable_pub, dead_code, reason = "most of it is a live recording's, which needs Linux")
)]
mod buffer_counts;
mod counted;
mod decode;
mod disturbance;
mod event;
mod event_name;
mod expansion;
mod field;
mod header;
mod ipi;
mod kernel;
mod line;
mod lines;
#[cfg(target_os = "linux")]
pub mod live;
mod names;
mod perfetto;
mod question;
mod reader;
mod source;
mod table;
mod tally;
mod visible;
mod wall_clock;
mod word;

pub use counted::counted;
pub use decode::parse_line;
pub use disturbance::{DisturbanceSource, Initiation};
pub use event::{
    Event, HrtimerStart, IpiPurpose, Migration, MigrationStep, NoiseSource, Record, SoftirqStep, SpanStep,
    SystemInterrupt, TimerStart, WakeStep,
};
pub use expansion::{EXPANSION_MAX, ExpansionExceeded};
pub use field::Malformed;
pub use header::Header;
pub use ipi::IpiKind;
pub use kernel::{KernelRelease, TimerModel};
pub use line::{InterruptContext, Task};
pub use lines::LINE_BYTES_MAX;
pub use names::{NameId, NameTable};
pub use perfetto::PerfettoWriter;
pub use question::Question;
pub use reader::{Progress, TraceReader};
pub use source::{OpenError, open, open_bytes, open_expanding};
pub use table::{IDENTITIES_MAX, IdentityTable};
pub use tally::{MalformedLine, ReadError, SKEW, Tally, TimeRanBack};
pub use visible::{is_steering, shell_word, visible, visible_lines, visible_path};
pub use wall_clock::WallClock;

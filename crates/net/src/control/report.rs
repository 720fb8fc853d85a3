//! What a command answers: plain data, which `print` writes as `tc` writes it.
//!
//! A report has all that is known, whatever the line asked for; [`ShowOptions`] says what its text has of it.

use crate::QueueStatistics;

#[cfg(test)]
mod tests;
use quietcore_qdisc::tc::{FilterHandle, Protocol, TcProperties, TcStyle};
use quietcore_qdisc::{ClassId, Statistics};

/// What a command answered.
///
/// Its text is what `tc` prints, with a line's end behind each line; of what only changed something, nothing.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Answer {
    /// It is done.
    Done,
    /// `qdisc show`: from the root down, queue by queue.
    Qdiscs(Vec<QdiscReport>),
    /// `class show`: discipline by discipline, in the order of their names.
    Classes(Vec<ClassReport>),
    /// The same with `-g`, which prints a tree.
    Graph(Vec<ClassReport>),
    /// `filter show`: as they are asked.
    Filters(Vec<FilterReport>),
}

/// What the text of a report has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ShowOptions {
    /// What is asked for of what is known.
    pub style: TcStyle,
    /// The device, if the line named none.
    pub device: bool,
    /// The parent: not if the line named it.
    pub parent: bool,
    /// The protocol of filters, likewise.
    pub protocol: bool,
    /// Their priority, likewise.
    pub prio: bool,
}

/// `rate`: what an estimator says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RateReport {
    /// Bits per second.
    pub bits_per_second: u64,
    /// Packets per second.
    pub packets_per_second: u64,
}

/// A transmit queue, at whose root a discipline is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct QueueReport {
    /// Its number; the first is 0.
    pub number: usize,
    /// What it has done.
    pub statistics: QueueStatistics,
}

/// A discipline.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct QdiscReport {
    /// Of what kind.
    pub kind: &'static str,
    /// Its handle; `0:` of a default one.
    pub handle: ClassId,
    /// The class that it is in; none of a root.
    pub parent: Option<ClassId>,
    /// The device.
    pub device: String,
    /// The device and its queues, as far as they have it for their own.
    pub references: usize,
    /// How many disciplines were made before it; 0 of a default one.
    pub birth: u64,
    /// What it was told, with defaults.
    pub options: TcProperties,
    /// What it has done, and holds.
    pub statistics: Statistics,
    /// How fast, if that is estimated.
    pub rate: Option<RateReport>,
    /// What `-s` has for its kind.
    pub figures: TcProperties,
    /// The transmit queue, of its root discipline.
    pub queue: Option<QueueReport>,
    /// What its text has.
    pub shown: ShowOptions,
}

/// A class.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ClassReport {
    /// Of what kind, which is its discipline's.
    pub kind: &'static str,
    /// Its name.
    pub id: ClassId,
    /// What it is in; none of what is at the top.
    pub parent: Option<ClassId>,
    /// The device.
    pub device: String,
    /// The discipline inside, if a line put it there.
    pub leaf: Option<ClassId>,
    /// What it was told, with defaults.
    pub options: TcProperties,
    /// What it has done, and holds; nothing where only its name is shown.
    pub statistics: Option<Statistics>,
    /// Whether what it has sent is among them.
    pub counts_sent: bool,
    /// How fast, if that is estimated.
    pub rate: Option<RateReport>,
    /// What `-s` has for its kind.
    pub figures: TcProperties,
    /// What its text has.
    pub shown: ShowOptions,
}

/// A line of `filter show`: a priority, of `u32` a table, or a filter.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct FilterReport {
    /// The discipline or class that it belongs to.
    pub parent: ClassId,
    /// The device.
    pub device: String,
    /// What it looks at.
    pub protocol: Protocol,
    /// The lowest is asked first.
    pub prio: u16,
    /// Of what kind.
    pub kind: &'static str,
    /// Its name in its priority; none of a priority, or a table.
    pub handle: Option<FilterHandle>,
    /// Where it sends packets.
    pub flow: Option<ClassId>,
    /// What it was told, and what it counted; nothing of a priority.
    pub options: TcProperties,
    /// What its text has.
    pub shown: ShowOptions,
}

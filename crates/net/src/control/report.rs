//! What a command answers: plain data, which is written as `tc` writes it.
//!
//! A report has all that is known, whatever the line asked for; [`ShowOptions`] says what its text has of it.

use crate::QueueStatistics;
use core::fmt::{self, Formatter};

#[cfg(test)]
mod tests;
use quietcore_qdisc::tc::{FieldMatch, Protocol, rate_text, size_text};
use quietcore_qdisc::{ClassId, Statistics};

/// What a command answered.
///
/// Its text is what `tc` prints, with a line's end behind each line; of what only changed something, nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Answer {
    /// It is done.
    Done,
    /// `qdisc show`: from the root down, queue by queue.
    Qdiscs(Vec<QdiscReport>),
    /// `class show`: discipline by discipline, in the order of their names.
    Classes(Vec<ClassReport>),
    /// `filter show`: as they are asked.
    Filters(Vec<FilterReport>),
}

/// What the text of a report has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ShowOptions {
    /// `-s`: what was counted.
    pub statistics: bool,
    /// `-d`: what is rarely asked for.
    pub details: bool,
    /// The device, if the line named none.
    pub device: bool,
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
#[derive(Clone, Debug, PartialEq, Eq)]
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
    /// What it was told, with defaults, as `tc` writes it.
    pub options: String,
    /// What `-d` adds: of netem, the seed of its numbers if no line named one.
    pub details: String,
    /// What it has done, and holds.
    pub statistics: Statistics,
    /// How fast, if that is estimated.
    pub rate: Option<RateReport>,
    /// Lines that `-s` has for its kind.
    pub notes: Vec<String>,
    /// The transmit queue, of its root discipline.
    pub queue: Option<QueueReport>,
    /// What its text has.
    pub shown: ShowOptions,
}

/// A class.
#[derive(Clone, Debug, PartialEq, Eq)]
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
    /// What it was told, with defaults, as `tc` writes it.
    pub options: String,
    /// What `-d` adds.
    pub details: String,
    /// What it has done, and holds.
    pub statistics: Statistics,
    /// How fast, if that is estimated.
    pub rate: Option<RateReport>,
    /// Lines that `-s` has for its kind.
    pub notes: Vec<String>,
    /// What its text has.
    pub shown: ShowOptions,
}

/// A filter.
#[derive(Clone, Debug, PartialEq, Eq)]
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
    /// Where it sends packets.
    pub flow: ClassId,
    /// What has to be true, of `u32`.
    pub rules: Vec<FieldMatch>,
    /// The number of its hash table, of `u32`.
    pub table: u16,
    /// Its number in that table.
    pub number: u16,
    /// What its text has.
    pub shown: ShowOptions,
}

impl fmt::Display for Answer {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Done => Ok(()),
            Self::Qdiscs(reports) => reports.iter().try_for_each(|report| writeln!(out, "{report}")),
            Self::Classes(reports) => reports.iter().try_for_each(|report| writeln!(out, "{report}")),
            Self::Filters(reports) => {
                let mut before: Option<&FilterReport> = None;
                for report in reports {
                    let is_like = |before: &FilterReport| {
                        (before.parent, before.prio) == (report.parent, report.prio)
                            && before.device == report.device
                    };
                    if !before.is_some_and(is_like) {
                        report.write_heads(out)?;
                    }
                    writeln!(out, "{report}")?;
                    before = Some(report);
                }
                Ok(())
            }
        }
    }
}

impl fmt::Display for RateReport {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        write!(out, "rate {} {}pps", rate_text(self.bits_per_second), self.packets_per_second)
    }
}

/// ` Sent ...` and ` backlog ...`.
fn write_statistics(
    statistics: &Statistics,
    rate: Option<RateReport>,
    out: &mut Formatter<'_>,
) -> fmt::Result {
    write!(out, "\n {statistics}\n ")?;
    if let Some(rate) = rate {
        write!(out, "{rate} ")?;
    }
    let Statistics { backlog, qlen, requeues, .. } = statistics;
    write!(out, "backlog {} {qlen}p requeues {requeues}", size_text(*backlog))
}

fn write_place(parent: Option<ClassId>, out: &mut Formatter<'_>) -> fmt::Result {
    match parent {
        None => out.write_str(" root"),
        Some(parent) => write!(out, " parent {parent}"),
    }
}

/// A blank and the text, if there is one.
fn write_some(text: &str, out: &mut Formatter<'_>) -> fmt::Result {
    if text.is_empty() { Ok(()) } else { write!(out, " {text}") }
}

/// A handle that is 0 is shown, too.
struct Handle(ClassId);

impl fmt::Display for Handle {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        write!(out, "{:x}:", self.0.major())
    }
}

/// What is ours and not `tc`'s says so.
impl fmt::Display for QueueReport {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        let QueueStatistics {
            dequeued_at_home: home,
            dequeued_elsewhere: elsewhere,
            dequeued_by_strangers: strangers,
            watchdogs,
            watchdogs_elsewhere,
            delay_timers,
            over_memory,
            locked,
            contended,
            waited,
            ..
        } = self.statistics;
        write!(out, "[quietcore] queue {}: dequeued at home {home} elsewhere {elsewhere}", self.number)?;
        write!(out, " off lanes {strangers}, watchdogs {watchdogs} elsewhere {watchdogs_elsewhere}")?;
        if delay_timers > 0 {
            write!(out, ", delay timers {delay_timers}")?;
        }
        if over_memory > 0 {
            write!(out, ", dropped for want of memory {over_memory}")?;
        }
        write!(out, ", lock taken {locked} waited {contended} for {waited:?}")
    }
}

impl fmt::Display for QdiscReport {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        write!(out, "qdisc {} {}", self.kind, Handle(self.handle))?;
        if self.shown.device {
            write!(out, " dev {}", self.device)?;
        }
        write_place(self.parent, out)?;
        write_some(&self.options, out)?;
        if self.shown.details {
            write_some(&self.details, out)?;
        }
        if !self.shown.statistics {
            return Ok(());
        }
        write_statistics(&self.statistics, self.rate, out)?;
        self.notes.iter().try_for_each(|note| write!(out, "\n  {note}"))?;
        self.queue.iter().try_for_each(|queue| write!(out, "\n {queue}"))
    }
}

impl fmt::Display for ClassReport {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        write!(out, "class {} {}", self.kind, self.id)?;
        write_place(self.parent, out)?;
        self.leaf.iter().try_for_each(|leaf| write!(out, " leaf {}", Handle(*leaf)))?;
        write_some(&self.options, out)?;
        if self.shown.details {
            write_some(&self.details, out)?;
        }
        if !self.shown.statistics {
            return Ok(());
        }
        write_statistics(&self.statistics, self.rate, out)?;
        self.notes.iter().try_for_each(|note| write!(out, "\n {note}"))
    }
}

impl FilterReport {
    /// What all filters of a priority begin with.
    fn write_head(&self, out: &mut Formatter<'_>) -> fmt::Result {
        write!(
            out,
            "filter parent {} protocol {} pref {} {}",
            self.parent, self.protocol, self.prio, self.kind
        )?;
        out.write_str(" chain 0")
    }

    /// Its priority, and its hash table.
    fn write_heads(&self, out: &mut Formatter<'_>) -> fmt::Result {
        self.write_head(out)?;
        out.write_str("\n")?;
        if self.kind == "u32" {
            self.write_head(out)?;
            writeln!(out, " fh {:x}: ht divisor 1", self.table)?;
        }
        Ok(())
    }
}

/// The word of the header that a rule looks at: value, mask, and how far behind the header's begin.
fn key(rule: &FieldMatch) -> (u32, u32, u32) {
    let upper = |value: u16| u32::from(value) << 16;
    match *rule {
        FieldMatch::Source { address, mask } => (address.to_bits() & mask.to_bits(), mask.to_bits(), 12),
        FieldMatch::Destination { address, mask } => (address.to_bits() & mask.to_bits(), mask.to_bits(), 16),
        FieldMatch::SourcePort { value, mask } => (upper(value & mask), upper(mask), 20),
        FieldMatch::DestinationPort { value, mask } => (u32::from(value & mask), u32::from(mask), 20),
        FieldMatch::Protocol { value, mask } => (u32::from(value & mask) << 16, u32::from(mask) << 16, 8),
    }
}

impl fmt::Display for FilterReport {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        self.write_head(out)?;
        if self.kind != "u32" {
            return write!(out, " handle 0x1 flowid {}", self.flow);
        }
        write!(out, " fh {:x}::{:x} order {}", self.table, self.number, self.number)?;
        write!(out, " key ht {:x} bkt 0 flowid {}", self.table, self.flow)?;
        self.rules.iter().try_for_each(|rule| {
            let (value, mask, at) = key(rule);
            write!(out, "\n  match {value:08x}/{mask:08x} at {at}")
        })
    }
}

//! Loads of packets: a device with a transmit queue per line of `tc`, and their senders.
//!
//! Lines are those of `tc`; what of them the simulator has is a netem per queue with a limit
//! and a delay. `mq` and what was there before (`del`) may be typed and mean nothing here: every queue has a
//! discipline of its own. Estimators are read and not simulated.

use super::error::ScenarioProblem;
use super::expand::{LOOP_MIN, Places, SPAN_MAX, optional};
use super::names::{Preempt, SenderName, WatchdogName};
use super::raw::RawPackets;
use super::value::within;
use quietcore_core::{CpuId, Nanos};
use quietcore_qdisc::tc::{self, Command, NetemOptions, QdiscOptions, TcParent, TcVerb};
use quietcore_qdisc::{NetemDelay, NetemSettings};
use toml::Spanned;

const QUEUES_MAX: usize = 1_024;
/// The most packets on their way through one queue.
const WINDOW_MAX: u64 = 1_000_000;
/// The most packets per second and queue.
const RATE_MAX: u64 = 10_000_000;
/// What netem has without a limit.
const LIMIT: u32 = 1_000;

/// Where the packets of a queue come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arrivals {
    /// So many are on their way; each that left comes back.
    Window(u64),
    /// One every so many ns, on average.
    Every(u64),
}

/// A transmit queue and its sender.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TransmitQueue {
    /// The CPU that sends through it.
    pub(crate) cpu: CpuId,
    pub(crate) netem: NetemSettings,
    pub(crate) sender: SenderName,
    pub(crate) arrivals: Arrivals,
    /// Per packet: what its sender does before it is enqueued.
    pub(crate) work: u64,
    /// Per packet: what a task does with what came.
    pub(crate) copy: u64,
    /// Per packet: what the driver does, without the lock.
    pub(crate) transmit: u64,
    /// From a packet that left to what it brings.
    pub(crate) wire: u64,
    /// For how long an interrupt waits for more to come.
    pub(crate) coalesce: u64,
    pub(crate) is_pinned: bool,
}

/// What variants say of it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Varied {
    pub(super) watchdog: Option<WatchdogName>,
    pub(super) window: Option<u64>,
}

pub(super) fn resolve(
    raw: &[Spanned<RawPackets>],
    places: &Places,
    varied: Varied,
) -> Result<Vec<TransmitQueue>, ScenarioProblem> {
    let mut queues = Vec::new();
    for entry in raw {
        if places.preempt == Preempt::Cooperative {
            return Err(ScenarioProblem::at(
                entry,
                "needs preempt = \"tick\": nothing interrupts a task of a lane",
            ));
        }
        device(entry, places, varied, &mut queues)?;
        if queues.len() > QUEUES_MAX {
            return Err(ScenarioProblem::at(entry, format!("more than {QUEUES_MAX} queues in all")));
        }
    }
    Ok(queues)
}

fn device(
    entry: &Spanned<RawPackets>,
    places: &Places,
    varied: Varied,
    queues: &mut Vec<TransmitQueue>,
) -> Result<(), ScenarioProblem> {
    let load = entry.get_ref();
    let cpus = places.of(&load.cpus, None)?;
    let disciplines = disciplines(entry)?;
    let arrivals = arrivals(entry, varied.window)?;
    if let (SenderName::Datagram, Some(copy)) = (load.sender, &load.copy) {
        return Err(ScenarioProblem::at(
            copy,
            "is what a reader does; no task reads behind sender = \"datagram\"",
        ));
    }
    let watchdog = varied.watchdog.unwrap_or(load.watchdog);
    for (number, netem) in disciplines.into_iter().enumerate() {
        queues.push(TransmitQueue {
            cpu: cpus[number % cpus.len()],
            netem,
            sender: load.sender,
            arrivals,
            work: optional(load.work.as_ref())?,
            copy: optional(load.copy.as_ref())?,
            transmit: optional(load.transmit.as_ref())?,
            wire: optional(load.wire.as_ref())?,
            coalesce: optional(load.coalesce.as_ref())?,
            is_pinned: watchdog == WatchdogName::Pinned,
        });
    }
    Ok(())
}

fn arrivals(entry: &Spanned<RawPackets>, varied: Option<u64>) -> Result<Arrivals, ScenarioProblem> {
    let load = entry.get_ref();
    match (&load.window, &load.rate, varied) {
        (Some(_), Some(rate), _) | (None, Some(rate), Some(_)) => {
            Err(ScenarioProblem::at(rate, "and window exclude each other; give one of them"))
        }
        (None, Some(rate), None) => Ok(Arrivals::Every(1_000_000_000 / within(rate, 1, RATE_MAX)?)),
        (_, None, Some(window)) if (1..=WINDOW_MAX).contains(&window) => Ok(Arrivals::Window(window)),
        (_, None, Some(_)) => {
            Err(ScenarioProblem::at(entry, format!("the variants ask for a window beyond 1 to {WINDOW_MAX}")))
        }
        (Some(window), None, None) => Ok(Arrivals::Window(within(window, 1, WINDOW_MAX)?)),
        (None, None, None) => {
            Err(ScenarioProblem::at(entry, "window or rate is missing, here or as window in [variants]"))
        }
    }
}

/// One per queue, in their order.
fn disciplines(entry: &Spanned<RawPackets>) -> Result<Vec<NetemSettings>, ScenarioProblem> {
    let mut found: Vec<(u16, NetemSettings)> = Vec::new();
    for line in &entry.get_ref().tc {
        let command =
            tc::parse(line.get_ref()).map_err(|error| ScenarioProblem::at(line, error.to_string()))?;
        let Command::Qdisc(command) = command else {
            return Err(ScenarioProblem::at(
                line,
                "is about no qdisc; classes and filters are not simulated",
            ));
        };
        match (command.verb, &command.options, command.place) {
            (TcVerb::Delete, ..) | (_, Some(QdiscOptions::Mq(_)), Some(TcParent::Root)) => {}
            (_, Some(QdiscOptions::Netem(netem)), Some(TcParent::Parent(parent))) => {
                let number = parent.minor();
                if number == 0 || found.iter().any(|(other, _)| *other == number) {
                    return Err(ScenarioProblem::at(
                        line,
                        format!("{parent} is no queue, or has a discipline"),
                    ));
                }
                found.push((number, settings(line, netem)?));
            }
            _ => {
                return Err(ScenarioProblem::at(
                    line,
                    "simulated is a netem below an mq, as `tc qdisc add dev eth0 parent 1:1 netem delay 6ms`",
                ));
            }
        }
    }
    found.sort_by_key(|(number, _)| *number);
    let is_whole = found.iter().zip(1..).all(|((number, _), expected)| *number == expected);
    if found.is_empty() || !is_whole {
        return Err(ScenarioProblem::at(entry, "tc must give queues 1:1, 1:2 and so on a netem each"));
    }
    Ok(found.into_iter().map(|(_, settings)| settings).collect())
}

fn settings(line: &Spanned<String>, typed: &NetemOptions) -> Result<NetemSettings, ScenarioProblem> {
    let simulated = NetemOptions { limit: typed.limit, delay: typed.delay, ..NetemOptions::default() };
    if *typed != simulated {
        return Err(ScenarioProblem::at(line, "has an option that is not simulated; limit and delay are"));
    }
    let (latency, jitter) = typed
        .delay
        .filter(|delay| delay.correlation.is_none())
        .map(|delay| (delay.time.0, delay.jitter.unwrap_or_default().0))
        .ok_or_else(|| ScenarioProblem::at(line, "needs a delay, without correlation"))?;
    // So that a packet does not come round in no time at all.
    if latency > SPAN_MAX || latency.saturating_sub(jitter) < LOOP_MIN {
        return Err(ScenarioProblem::at(line, "delay less jitter must be between 1us and 60s"));
    }
    let delay = NetemDelay { latency: Nanos(latency), jitter: Nanos(jitter), ..NetemDelay::default() };
    Ok(NetemSettings { delay, limit: typed.limit.unwrap_or(LIMIT), ..NetemSettings::default() })
}

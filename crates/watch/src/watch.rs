//! Watching: the program in the kernel counts, this collects and names.

use crate::cgroups::{CgroupHierarchy, CgroupNames};
use crate::error::WatchError;
use crate::layout::{
    CPUS_MAX, FixedName, RowCause, RowKey, Thing, WATCHED_MAX, processor_interrupt, softirq,
};
use crate::program::{LeftOut, Loaded, ProgramSettings};
use crate::report::{Losses, WatchReport, WatchedCause, WatchedRow};
use crate::rights;
use crate::rows::{Rows, Totals};
use crate::symbols::Symbols;
use quietcore_core::{CpuId, CpuSet, Nanos};
use quietcore_trace::{DisturbanceSource, Initiation};
use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::time::Instant;

/// What the kernel names where the receiver of an interrupt is to call what was queued for it.
const CALLS_A_QUEUE: &str = "generic_smp_call_function_single_interrupt";

/// The names of devices' handlers, by the numbers of their interrupts.
type Handlers = HashMap<u32, FixedName>;

/// What to watch.
#[derive(Clone, Debug)]
pub struct WatchRequest {
    /// CPUs, at most 512, with numbers below 4096.
    pub cpus: CpuSet,
    /// Rows of each CPU in the kernel's memory; twice as many are reserved, 248 bytes each. 64 to 65,536.
    /// More different things than that between two collections are counted by kind.
    pub rows_each: u32,
}

impl WatchRequest {
    /// Rows that hosts need where nothing else is said.
    pub const ROWS_EACH: u32 = 1_024;
}

/// A running watch. It ends, and leaves nothing in the kernel, when it is dropped or the process ends,
/// however it ends.
#[derive(Debug)]
pub struct Watch {
    loaded: Loaded,
    cpus: Vec<CpuId>,
    rows: Rows,
    symbols: Symbols,
    cgroups: CgroupNames,
    stacks: HashMap<u32, Vec<u64>>,
    own_interrupts: u64,
    has_function_names: bool,
    begun: Instant,
    /// When what was counted was taken over last.
    collected: Instant,
}

impl Watch {
    /// Loads the program and begins to count. That sends interrupts to all CPUs, as the kernel changes its
    /// code there; afterwards there are none.
    ///
    /// # Errors
    /// [`WatchError`]: what the kernel lacks, or the process may not.
    pub fn start(request: &WatchRequest) -> Result<Self, WatchError> {
        let cpus: Vec<CpuId> = request.cpus.iter().collect();
        if cpus.is_empty() {
            return Err(WatchError::NoCpu);
        }
        if cpus.len() > WATCHED_MAX || cpus.iter().any(|cpu| cpu.index() >= CPUS_MAX) {
            return Err(WatchError::TooMany(cpus.len()));
        }
        let symbols = Symbols::open();
        let subsystems = fs::read_to_string("/proc/cgroups").unwrap_or_default();
        let hierarchy = CgroupHierarchy::of_host(Path::new("/"), &subsystems);
        let rows_each = request.rows_each.clamp(64, 65_536);
        let calls_a_queue = symbols.address(CALLS_A_QUEUE);
        let settings = ProgramSettings {
            cpus: &cpus,
            rows_each,
            is_realtime: fs::read_to_string("/sys/kernel/realtime").is_ok_and(|text| text.trim() == "1"),
            subsystem: hierarchy.subsystem,
            calls_a_queue: calls_a_queue.unwrap_or(0),
        };
        let loaded = Loaded::new(&settings)?;
        let mut rows = Rows::new(&cpus, rows_each);
        rows.collect(&loaded.rows, &loaded.choices);
        let (own_interrupts, begun) = (own_interrupts(&rows), Instant::now());
        Ok(Self {
            rows,
            own_interrupts,
            has_function_names: calls_a_queue.is_some(),
            loaded,
            cpus,
            symbols,
            cgroups: CgroupNames::new(&hierarchy),
            stacks: HashMap::new(),
            begun,
            collected: begun,
        })
    }

    /// Gives up, for good, all rights of the calling thread and of those that it starts later: a watch needs
    /// none once it has begun.
    ///
    /// # Errors
    /// [`WatchError::Rights`].
    pub fn give_up_rights(&self) -> Result<(), WatchError> {
        rights::give_up()
    }

    /// Tracepoints that this kernel does not have or does not let be counted.
    #[must_use]
    pub fn left_out(&self) -> &[LeftOut] {
        &self.loaded.left_out
    }

    /// How many tracepoints are counted.
    #[must_use]
    pub fn tracepoints(&self) -> usize {
        self.loaded.programs()
    }

    /// Whether the kernel lets this process know the names of its functions.
    #[must_use]
    pub const fn has_function_names(&self) -> bool {
        self.has_function_names
    }

    /// How many interrupts it sent to watched CPUs to begin: the kernel changes its code on all CPUs.
    #[must_use]
    pub const fn own_interrupts(&self) -> u64 {
        self.own_interrupts
    }

    /// Takes over what was counted. To be called every minute or more often: durations are added up in the
    /// kernel, and what finds no room there until the next call is counted by its kind. Cost: memory is read,
    /// no call is made and no CPU woken.
    pub fn collect(&mut self) {
        self.rows.collect(&self.loaded.rows, &self.loaded.choices);
        self.collected = Instant::now();
    }

    /// All that was counted until the last [`Watch::collect`]. Cost: names that are not known yet are looked
    /// up in the kernel's list of functions and the folders of control groups.
    #[must_use]
    pub fn report(&mut self) -> WatchReport {
        self.look_names_up();
        let handlers = handlers(self.rows.totals().0.map(|((_, key), _)| &key.thing));
        let (totals, merged) = self.rows.totals();
        let mut rows: Vec<WatchedRow> =
            totals.map(|((cpu, key), totals)| self.row(*cpu, key, totals, &handlers)).collect();
        rows.sort_by(|one, two| one.identity().cmp(&two.identity()));
        // Different addresses and groups may have the same names.
        rows.dedup_by(|next, kept| {
            let is_same = next.identity() == kept.identity();
            if is_same {
                kept.add(next);
            }
            is_same
        });
        let mut losses = Losses { unnamed: merged, skipped: self.loaded.skipped(), ..Losses::default() };
        for place in 0..self.cpus.len() {
            let (overflows, unnamed) = self.loaded.losses(place);
            losses.overflows += overflows;
            losses.unnamed += unnamed;
        }
        WatchReport {
            cpus: self.cpus.iter().copied().collect(),
            watched: self.collected.duration_since(self.begun),
            rows,
            losses,
            left_out: self.loaded.left_out.clone(),
            has_function_names: self.has_function_names,
        }
    }

    fn look_names_up(&mut self) {
        let Self { rows, symbols, cgroups, stacks, loaded, .. } = self;
        for ((_, key), totals) in rows.totals().0 {
            symbols.ask(key.thing.function);
            if let Some(cause) = &key.cause {
                symbols.ask(cause.function);
                symbols.ask(cause.called);
                cgroups.ask(cause.cgroup);
            }
            if let Some(stack) = totals.stack {
                let frames = stacks.entry(stack).or_insert_with(|| loaded.stack(stack));
                frames.iter().for_each(|frame| symbols.ask(*frame));
            }
        }
        symbols.look_up();
        cgroups.look_up();
    }

    fn row(&self, cpu: CpuId, key: &RowKey, totals: &Totals, handlers: &Handlers) -> WatchedRow {
        let frames = totals.stack.and_then(|stack| self.stacks.get(&stack));
        let frames = frames.into_iter().flatten().map(|frame| self.symbols.function(*frame));
        let stack = frames.skip_while(|function| is_of_the_watch(function)).collect();
        let Thing { source, number, .. } = key.thing;
        WatchedRow {
            cpu,
            source,
            name: self.thing(&key.thing),
            is_of_kernel: source != DisturbanceSource::Task || number == 1,
            cause: key.cause.as_ref().map(|cause| self.cause(cause, handlers)),
            count: totals.count,
            ended: totals.buckets.iter().sum(),
            total: Nanos(totals.own_ns),
            longest: Nanos(totals.longest_ns),
            buckets: totals.buckets,
            stack,
        }
    }

    fn thing(&self, thing: &Thing) -> String {
        if *thing == RowKey::others(thing.source).thing {
            return "(others)".to_owned();
        }
        let name = thing.name.text();
        match thing.source {
            DisturbanceSource::Device if name.is_empty() => thing.number.to_string(),
            DisturbanceSource::Device => format!("{} {name}", thing.number),
            DisturbanceSource::Processor => processor_interrupt(thing.number).map_or(name, str::to_owned),
            DisturbanceSource::Softirq => softirq(thing.number),
            DisturbanceSource::Nmi
            | DisturbanceSource::Timer
            | DisturbanceSource::Hrtimer
            | DisturbanceSource::Work => self.symbols.function(thing.function),
            // A task.
            _ => name,
        }
    }

    fn cause(&self, cause: &RowCause, handlers: &Handlers) -> WatchedCause {
        let RowCause { how, cpu, source, number, function, called, cgroup, task } = *cause;
        let name = match source {
            DisturbanceSource::Task => task.text(),
            DisturbanceSource::Device => {
                let name = handlers.get(&number).copied().unwrap_or(FixedName::NONE);
                self.thing(&Thing { source, number, function, name })
            }
            _ => self.thing(&Thing { source, number, function, name: FixedName::NONE }),
        };
        let owner = self.cgroups.owner(cgroup).cloned();
        WatchedCause {
            how,
            cpu,
            source,
            name,
            called: (called != 0).then(|| self.symbols.function(called)),
            task: (!task.is_empty()).then(|| task.text()),
            owner: owner.filter(|_| cgroup != 0),
        }
    }
}

/// The names of devices' handlers, as things of watched CPUs have them.
fn handlers<'a>(things: impl Iterator<Item = &'a Thing>) -> Handlers {
    let of_devices = things.filter(|thing| thing.source == DisturbanceSource::Device);
    of_devices.map(|thing| (thing.number, thing.name)).collect()
}

/// Those that this process sent.
fn own_interrupts(rows: &Rows) -> u64 {
    let comm = fs::read_to_string("/proc/self/comm").unwrap_or_default();
    let is_own = |cause: &RowCause| cause.how == Initiation::Sent && cause.task.text() == comm.trim_end();
    let sent = rows.totals().0.filter(|((_, key), _)| key.cause.as_ref().is_some_and(is_own));
    sent.map(|(_, totals)| totals.count).sum()
}

/// Whether a stack begins with it because it was taken there.
fn is_of_the_watch(function: &str) -> bool {
    ["bpf_", "__bpf_", "__traceiter_"].iter().any(|begin| function.starts_with(begin))
}

#[cfg(test)]
mod tests {
    use super::{DisturbanceSource, FixedName, Thing, handlers};

    /// Goal: an interrupt that is a cause has the name of its handler, and no other thing's of that number.
    /// Method: a device's interrupt among a processor's and a softirq of the same number.
    #[test]
    fn handlers_are_those_of_devices() {
        let [network, other] =
            [*b"eth0\0\0\0\0\0\0\0\0\0\0\0\0", *b"SCHED\0\0\0\0\0\0\0\0\0\0\0"].map(FixedName);
        let thing = |source, name| Thing { source, number: 7, function: 0, name };
        let things = [
            thing(DisturbanceSource::Processor, other),
            thing(DisturbanceSource::Device, network),
            thing(DisturbanceSource::Softirq, other),
        ];
        assert_eq!(handlers(things.iter()).into_iter().collect::<Vec<_>>(), [(7, network)]);
    }
}

//! From events to a [`RecordedLoad`]: which events are inputs, and which are consequences that are left out.
//!
//! A `timer_cancel` is an input unless the next event of its CPU is the expiry of the same timer. Awake
//! intervals are those of `tmigr_cpu_active`, `tmigr_cpu_idle` and `timer_base_idle`; kernels without them
//! show `tick_stop`, after which the first event of a task says that the CPU is awake again. Not read:
//! pulls (`tmigr_handle_remote*`), the states of groups, and wake-ups that the hierarchy asked for.
//! `timer_expire_entry` gives only [`RecordedLoad::recorded_cpu`].
//!
//! Every CPU of an input is below the load's number of CPUs: those on which events ran, on which timers wait
//! or which the hierarchy names, and those of the header. What names another one is refused.
//!
//! Memory: at most [`INPUTS_MAX`] inputs, as many timers, 32,768 function names of 96 bytes.

use super::error::LoadError;
use super::grid::Grid;
use super::load::{
    AwakeSource, FIRST_TICK, INPUTS_MAX, LoadArm, LoadBase, LoadEvent, LoadFacts, LoadInput, RecordedLoad,
};
use quietcore_core::place::Policy;
use quietcore_core::topology::NODE_LIMIT;
use quietcore_core::{CPU_LIMIT, CpuId, CpuSet, Nanos};
use quietcore_trace::{Event, Migration, MigrationStep, Record, TimerModel, TimerStart};
use std::collections::HashMap;

const FUNCTIONS_MAX: usize = 32_768;
const FUNCTION_BYTES_MAX: usize = 96;

/// Tick rates that Linux can be built with.
const RATES: [u32; 4] = [100, 250, 300, 1000];

/// Takes events, ends in a [`RecordedLoad`].
#[derive(Debug, Default)]
pub struct LoadReader {
    /// `tick` holds the time stamp in ns until the end.
    inputs: Vec<LoadInput>,
    timers: HashMap<u64, TimerSeen>,
    functions: Vec<String>,
    function_numbers: HashMap<Box<[u8]>, u32>,
    cpus: Vec<CpuSeen>,
    /// Jiffies and time stamp of the first and of the last arm.
    first: Option<(u64, u64)>,
    last: (u64, u64),
    ran_on: Vec<(u32, CpuId)>,
    /// Nodes of level-0 groups, by identity.
    group_nodes: HashMap<u64, u16>,
    has_hierarchy: bool,
    has_base_idle: bool,
    is_cut: bool,
    /// The highest CPU that `timer_base_idle` names, and the line that named it first.
    idle_named: Option<(CpuId, u64)>,
}

#[derive(Clone, Copy, Debug)]
struct TimerSeen {
    number: u32,
    /// The place of its last arm.
    armed: Option<u32>,
}

/// What is known of a CPU while reading.
#[derive(Clone, Copy, Debug, Default)]
struct CpuSeen {
    /// A `timer_cancel` was its last event: the timer, and the place of the input.
    cancelled: Option<(u64, u32)>,
    /// Its tick is stopped, as far as `tick_stop` and tasks tell.
    is_stopped: bool,
    node: u16,
    is_seen: bool,
}

impl LoadReader {
    /// A reader that has seen nothing.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether [`INPUTS_MAX`] was reached: what comes later is not taken.
    #[must_use]
    pub const fn is_full(&self) -> bool {
        self.is_cut
    }

    /// Takes the next event.
    pub fn take(&mut self, record: &Record<'_>) {
        if self.inputs.len() >= INPUTS_MAX || self.is_cut {
            self.is_cut = true;
            return;
        }
        if matches!(record.event, Event::Lost { .. }) {
            return;
        }
        let cancelled = self.cpu(record.cpu).cancelled.take();
        self.see_task(record);
        match &record.event {
            Event::TimerStart(start) => self.take_start(record, start),
            Event::TimerCancel { timer } => self.take_cancel(record, *timer),
            Event::TimerExpireEntry { timer, .. } => self.take_expiry(record.cpu, *timer, cancelled),
            Event::TimerBaseIdle { is_idle, cpu } => {
                self.has_base_idle = true;
                if self.idle_named.is_none_or(|(highest, _)| highest < *cpu) {
                    self.idle_named = Some((*cpu, record.line));
                }
                self.push(record, if *is_idle { LoadEvent::Idle(*cpu) } else { LoadEvent::Awake(*cpu) });
            }
            Event::TickStop { success: true, .. } => self.take_tick_stop(record),
            Event::Migration(migration) => self.take_migration(record, migration),
            _ => {}
        }
    }

    fn cpu(&mut self, cpu: CpuId) -> &mut CpuSeen {
        if self.cpus.len() <= cpu.index() {
            self.cpus.resize(cpu.index() + 1, CpuSeen::default());
        }
        &mut self.cpus[cpu.index()]
    }

    fn push(&mut self, record: &Record<'_>, what: LoadEvent) {
        self.inputs.push(LoadInput { tick: record.at.as_u64(), what });
    }

    /// A task's event ends what `tick_stop` began.
    fn see_task(&mut self, record: &Record<'_>) {
        let cpu = self.cpu(record.cpu);
        cpu.is_seen = true;
        if cpu.is_stopped && record.task.pid != 0 {
            cpu.is_stopped = false;
            self.push(record, LoadEvent::TaskAfterTickStop(record.cpu));
        }
    }

    fn take_tick_stop(&mut self, record: &Record<'_>) {
        if std::mem::replace(&mut self.cpu(record.cpu).is_stopped, true) {
            // It stops its tick again, so it was awake in between, without an event that says so.
            self.push(record, LoadEvent::TaskAfterTickStop(record.cpu));
        }
        self.push(record, LoadEvent::TickStop(record.cpu));
    }

    fn take_start(&mut self, record: &Record<'_>, start: &TimerStart<'_>) {
        let jiffies = start.expires.wrapping_sub(start.timeout as u64);
        self.first.get_or_insert((jiffies, record.at.as_u64()));
        self.last = (jiffies, record.at.as_u64());
        let numbers = self.timers.len() as u32;
        let place = self.inputs.len() as u32;
        let seen = self.timers.entry(start.timer).or_insert(TimerSeen { number: numbers, armed: None });
        seen.armed = Some(place);
        let timer = seen.number;
        self.cpu(start.base); // it exists
        self.push(
            record,
            LoadEvent::Arm(LoadArm {
                timer,
                function: 0,
                expires: start.expires,
                jiffies,
                cpu: record.cpu,
                base: start.base,
                kind: match (start.deferrable, start.pinned) {
                    (true, _) => LoadBase::Deferrable,
                    (false, true) => LoadBase::Local,
                    (false, false) => LoadBase::Global,
                },
                is_pinned: start.pinned,
                is_idle: record.task.pid == 0,
            }),
        );
        let number = self.function(start.function);
        if let Some(LoadEvent::Arm(arm)) = self.inputs.last_mut().map(|input| &mut input.what) {
            arm.function = number;
        }
    }

    /// The number of a function; those that find no room share the first one, `(other)`.
    fn function(&mut self, name: &[u8]) -> u32 {
        if self.functions.is_empty() {
            self.functions.push("(other)".to_owned());
        }
        let name = &name[..name.len().min(FUNCTION_BYTES_MAX)];
        if let Some(number) = self.function_numbers.get(name) {
            return *number;
        }
        if self.functions.len() >= FUNCTIONS_MAX {
            return 0;
        }
        let number = self.functions.len() as u32;
        self.functions.push(String::from_utf8_lossy(name).into_owned());
        self.function_numbers.insert(name.into(), number);
        number
    }

    fn take_cancel(&mut self, record: &Record<'_>, timer: u64) {
        let Some(number) = self.timers.get(&timer).map(|seen| seen.number) else { return };
        let place = self.inputs.len() as u32;
        self.cpu(record.cpu).cancelled = Some((timer, place));
        self.push(record, LoadEvent::Cancel(number));
    }

    /// The cancel before it belonged to it.
    fn take_expiry(&mut self, cpu: CpuId, timer: u64, cancelled: Option<(u64, u32)>) {
        if let Some((_, place)) = cancelled.filter(|(cancelled, _)| *cancelled == timer) {
            self.inputs[place as usize].what = LoadEvent::Nothing;
        }
        let armed = self.timers.get_mut(&timer).and_then(|seen| seen.armed.take());
        if let Some(place) = armed {
            self.ran_on.push((place, cpu));
        }
    }

    fn take_migration(&mut self, record: &Record<'_>, migration: &Migration) {
        match *migration {
            Migration::GroupSet { group, level: 0, node } if self.group_nodes.len() < INPUTS_MAX => {
                self.group_nodes.insert(group, u16::try_from(node).unwrap_or(0).min(NODE_LIMIT - 1));
            }
            Migration::ConnectCpu { cpu, parent, .. } => {
                let node = self.group_nodes.get(&parent).copied().unwrap_or(0);
                self.cpu(cpu).node = node;
                self.push(record, LoadEvent::Join(cpu));
            }
            Migration::Cpu { step, cpu, .. } => {
                self.cpu(cpu); // it exists
                let what = match step {
                    MigrationStep::Active => LoadEvent::Awake(cpu),
                    MigrationStep::Idle => LoadEvent::Idle(cpu),
                    MigrationStep::Online | MigrationStep::Available => LoadEvent::Available(cpu),
                    MigrationStep::Offline | MigrationStep::Unavailable => LoadEvent::Unavailable(cpu),
                    _ => return,
                };
                self.has_base_idle |= matches!(what, LoadEvent::Awake(_) | LoadEvent::Idle(_));
                self.has_hierarchy = true;
                self.push(record, what);
            }
            _ => {}
        }
    }

    /// The load of everything taken.
    ///
    /// # Errors
    /// When `facts` and the events together do not say what a replay must know.
    pub fn finish(mut self, facts: LoadFacts) -> Result<RecordedLoad, LoadError> {
        let (first_jiffy, _) = self.first.ok_or(LoadError::NoArms)?;
        let hz = facts.hz.or_else(|| self.rate()).ok_or(LoadError::UnknownTick)?;
        let tick = Nanos(1_000_000_000 / u64::from(hz.clamp(1, 10_000)));
        let model = match facts.model {
            Some(model) => model,
            None if self.has_hierarchy => TimerModel::Pull,
            None => return Err(LoadError::UnknownKernel),
        };
        let policy = match model {
            TimerModel::Push if facts.timer_migration == Some(false) => Policy::Stay,
            TimerModel::Push => Policy::Push,
            _ => Policy::Pull,
        };
        let cpus = (self.cpus.len() as u16).max(facts.cpu_count.unwrap_or(0).min(CPU_LIMIT));
        if let Some((cpu, line)) = self.idle_named.filter(|(cpu, _)| cpu.index() >= usize::from(cpus)) {
            return Err(LoadError::UnknownCpu { line, cpu, cpus });
        }
        let awake_source = self.settle_awake_intervals();
        self.count_in_ticks(first_jiffy, tick);
        self.ran_on.sort_unstable_by_key(|(place, _)| *place);
        let mut nodes: Vec<u16> = self.cpus.iter().map(|cpu| cpu.node).collect();
        nodes.resize(usize::from(cpus), 0);
        let mut load = RecordedLoad {
            inputs: self.inputs,
            functions: self.functions,
            timers: self.timers.len(),
            first_jiffy,
            tick,
            cpus,
            nodes,
            joining: CpuSet::new(),
            appearing: CpuSet::new(),
            asleep_first: CpuSet::new(),
            never_idle: CpuSet::new(),
            awake_source,
            model,
            policy,
            facts,
            ran_on: self.ran_on,
            is_cut: self.is_cut,
        };
        look_ahead(&mut load, &self.cpus);
        Ok(load)
    }

    /// Ticks per second as arms show them, if that is a rate that Linux has.
    fn rate(&self) -> Option<u32> {
        let (jiffies, at) = self.first?;
        let span_ns = self.last.1.checked_sub(at).filter(|&span| span >= 1_000_000_000)?;
        let ticks = self.last.0.checked_sub(jiffies)?;
        let rate = u128::from(ticks) * 1_000_000_000 / u128::from(span_ns);
        RATES.into_iter().find(|&known| rate.abs_diff(u128::from(known)) * 20 <= u128::from(known))
    }

    /// Keeps one source of awake intervals.
    fn settle_awake_intervals(&mut self) -> AwakeSource {
        let mut has_tick_stop = false;
        for input in &mut self.inputs {
            input.what = match input.what {
                LoadEvent::TickStop(_) | LoadEvent::TaskAfterTickStop(_) if self.has_base_idle => {
                    LoadEvent::Nothing
                }
                LoadEvent::TickStop(cpu) => LoadEvent::Idle(cpu),
                LoadEvent::TaskAfterTickStop(cpu) => LoadEvent::Awake(cpu),
                what => what,
            };
            has_tick_stop |= matches!(input.what, LoadEvent::Idle(_));
        }
        match (self.has_base_idle, has_tick_stop) {
            (true, _) => AwakeSource::BaseIdle,
            (false, true) => AwakeSource::TickStop,
            (false, false) => AwakeSource::None,
        }
    }

    /// From time stamps to ticks.
    fn count_in_ticks(&mut self, first_jiffy: u64, length: Nanos) {
        let mut grid = Grid::default();
        for input in &self.inputs {
            if let LoadEvent::Arm(arm) = input.what {
                grid.add(input.tick, arm.jiffies.wrapping_sub(first_jiffy), length.as_u64());
            }
        }
        let mut ticks = grid.ticks(length.as_u64());
        for input in &mut self.inputs {
            input.tick = FIRST_TICK + ticks.tick(input.tick);
        }
    }
}

/// What a replay must know of each CPU before the first input.
fn look_ahead(load: &mut RecordedLoad, cpus: &[CpuSeen]) {
    let mut is_known = CpuSet::new();
    for input in &load.inputs {
        match input.what {
            LoadEvent::Join(cpu) => {
                load.joining.insert(cpu);
            }
            LoadEvent::Available(cpu) => {
                load.appearing.insert(cpu);
            }
            LoadEvent::Awake(cpu) | LoadEvent::Idle(cpu) if is_known.insert(cpu) => {
                if matches!(input.what, LoadEvent::Awake(_)) {
                    load.asleep_first.insert(cpu);
                }
            }
            _ => {}
        }
    }
    for (index, cpu) in cpus.iter().enumerate() {
        let Ok(id) = CpuId::new(index as u64) else { continue };
        if is_known.contains(id) {
            continue;
        }
        let set = if cpu.is_seen { &mut load.never_idle } else { &mut load.asleep_first };
        set.insert(id);
    }
    for index in cpus.len()..usize::from(load.cpus) {
        if let Ok(id) = CpuId::new(index as u64) {
            load.asleep_first.insert(id);
        }
    }
}

#[cfg(test)]
mod tests;

//! Drives a [`WhatifMachine`] through a load: inputs in their order, ticks between them.
//!
//! The ticks of all CPUs are at the same moments. What a recording does not say is who comes first within
//! one; [`TickOrder`] has the answers that matter, and the figures say what they differ by.
//!
//! One awake CPU's tick counts time for all ([`WhatifMachine::counts_time`]). A CPU whose tick comes before
//! that sees the tick before. It matters where the recording has the CPU go idle right then: what it would
//! have pulled is another CPU's by then.
//!
//! Consequences within a tick: when a timer of a CPU runs, and the recording has that CPU leave idle in
//! that same tick, then it is awake before the next CPU looks.

use super::figures::WhatifFigures;
use super::load::{LoadEvent, RecordedLoad};
use super::machine::WhatifMachine;
use super::question::{WhatifQuestion, WhatifQuestionError};
use quietcore_core::CpuId;
use quietcore_trace::TimerModel;

/// So many ticks in a row may turn out to have nothing to do before the next input is waited for.
const IDLE_TICKS_MAX: u32 = 64;

/// Which CPU comes first within one tick.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TickOrder {
    /// One CPU after another: sleepers, then the awake ones, both in the round from the one that did
    /// something last. The likeliest one.
    OneByOne,
    /// All run their own timers before any CPU looks at those of others.
    AtOnce,
    /// One by one, and all of them see the new time.
    TimeFirst,
    /// One by one, after the sleeping CPUs that the awake ones interrupt.
    Interrupted,
}

impl TickOrder {
    /// All but the likeliest.
    pub(super) const OTHERS: [Self; 3] = [Self::AtOnce, Self::TimeFirst, Self::Interrupted];
}

/// One replay; also where each arm's timer ran.
pub(super) fn replay(
    load: &RecordedLoad,
    question: &WhatifQuestion,
    order: TickOrder,
) -> Result<(WhatifFigures, Vec<(u32, CpuId)>), WhatifQuestionError> {
    let mut replay = LoadReplay {
        machine: WhatifMachine::new(load, question)?,
        load,
        order,
        wakes: Moments::new(load, |event| matches!(event, LoadEvent::Awake(_))),
        idles: Moments::new(load, |event| matches!(event, LoadEvent::Idle(_))),
        owners: Vec::new(),
    };
    for (place, input) in load.inputs.iter().enumerate() {
        replay.advance(input.tick);
        replay.take(place as u32, &input.what);
    }
    Ok(replay.machine.finish())
}

#[derive(Debug)]
struct LoadReplay<'a> {
    machine: WhatifMachine<'a>,
    load: &'a RecordedLoad,
    order: TickOrder,
    wakes: Moments,
    idles: Moments,
    owners: Vec<CpuId>,
}

impl LoadReplay<'_> {
    fn take(&mut self, place: u32, what: &LoadEvent) {
        if let LoadEvent::Awake(cpu) | LoadEvent::Idle(cpu) = what {
            self.machine.note(*cpu);
        }
        let is_isolation = self.load.model == TimerModel::PullExcludesIsolated;
        match what {
            LoadEvent::Arm(arm) => {
                self.machine.note(arm.cpu);
                self.machine.arm(place, arm);
            }
            LoadEvent::Cancel(timer) => self.machine.cancel(*timer),
            LoadEvent::Awake(cpu) => self.machine.wake(*cpu),
            LoadEvent::Idle(cpu) => self.machine.sleep(*cpu),
            LoadEvent::Join(cpu) => self.machine.join(*cpu),
            LoadEvent::Available(cpu) => self.machine.appear(*cpu),
            LoadEvent::Unavailable(cpu) => self.machine.disappear(*cpu, is_isolation),
            LoadEvent::TickStop(_) | LoadEvent::TaskAfterTickStop(_) | LoadEvent::Nothing => {}
        }
    }

    /// All ticks up to `tick`, this one included: those in which a CPU has something to do.
    fn advance(&mut self, tick: u64) {
        let mut in_vain = 0;
        while self.machine.now() < tick {
            let due = self.machine.next_due().filter(|_| in_vain < IDLE_TICKS_MAX);
            let next = due.unwrap_or(u64::MAX).max(self.machine.now() + 1);
            self.machine.set_now(next.min(tick));
            if next > tick {
                return;
            }
            in_vain = if self.tick() { 0 } else { in_vain + 1 };
        }
    }

    /// One tick of all CPUs; says whether a timer ran.
    fn tick(&mut self) -> bool {
        let mut has_run = false;
        if self.order == TickOrder::Interrupted {
            for cpu in self.machine.interrupted() {
                self.machine.run_own(cpu);
                has_run |= self.settle(cpu);
            }
        }
        let due = self.machine.due();
        if self.order != TickOrder::AtOnce {
            return self.one_by_one(&due) || has_run;
        }
        let due: Vec<CpuId> = due.into_iter().filter(|cpu| self.machine.has_reason(*cpu)).collect();
        due.iter().for_each(|cpu| self.machine.run_own(*cpu));
        due.iter().for_each(|cpu| self.machine.run_others(*cpu));
        for cpu in due {
            has_run |= self.settle(cpu);
        }
        has_run
    }

    fn one_by_one(&mut self, due: &[CpuId]) -> bool {
        let (mut has_run, mut is_counted) = (false, self.order == TickOrder::TimeFirst);
        for &cpu in due {
            is_counted |= self.machine.counts_time(cpu);
            let is_gone =
                !is_counted && self.idles.has(cpu, self.machine.now()) && !self.machine.has_own(cpu);
            if !is_gone && self.machine.has_reason(cpu) {
                self.machine.note(cpu);
                self.machine.run_own(cpu);
                self.machine.run_others(cpu);
                has_run |= self.settle(cpu);
            }
        }
        has_run
    }

    fn settle(&mut self, cpu: CpuId) -> bool {
        self.machine.settle(cpu, &mut self.owners);
        for &owner in &self.owners {
            if self.machine.is_asleep(owner) && self.wakes.has(owner, self.machine.now()) {
                self.machine.wake(owner);
            }
        }
        !self.owners.is_empty()
    }
}

/// The ticks in which something happens to each CPU, in the recording.
#[derive(Debug)]
struct Moments(Vec<Vec<u64>>);

impl Moments {
    fn new(load: &RecordedLoad, is_one: fn(&LoadEvent) -> bool) -> Self {
        let mut moments = vec![Vec::new(); usize::from(load.cpus)];
        for input in load.inputs.iter().filter(|input| is_one(&input.what)) {
            if let LoadEvent::Awake(cpu) | LoadEvent::Idle(cpu) = input.what {
                moments[cpu.index()].push(input.tick);
            }
        }
        Self(moments)
    }

    fn has(&self, cpu: CpuId, tick: u64) -> bool {
        self.0[cpu.index()].binary_search(&tick).is_ok()
    }
}

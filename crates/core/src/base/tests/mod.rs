//! Tests of the bases: rules one by one, random scripts against an oracle, threads with a lock that spins.

mod cancel_all;
mod detached;
mod end;
pub(super) mod locks;
mod many;
mod oracle;
mod races;
mod rules;
mod script;
mod threads;
mod tokens;
mod transfers;

use super::arm::{ArmOutcome, FastArm};
use super::bases::Bases;
use super::expire::Popped;
use super::{
    BaseId, BaseKind, ExpiredTimer, ExpiryChange, RunnerToken, TickLength, TimerId, TimerOptions, TimerRef,
};
use crate::{Context, CpuId, Nanos, RawLock, SequentialLock};
use alloc::vec::Vec;
use quietcore_wheel::Tick;

/// Bases with ticks of 1000 ns.
type TestBases = Bases<SequentialLock, u32>;

const TICK: u64 = 1000;

/// A pop that took nothing out of its timer.
#[derive(Debug)]
pub(super) struct PlainPopped {
    pub(super) expired: Option<ExpiredTimer<u32>>,
    pub(super) change: ExpiryChange,
}

impl From<Popped<u32, ()>> for PlainPopped {
    fn from(Popped { expired, change }: Popped<u32, ()>) -> Self {
        Self { expired: expired.map(|(expired, ())| expired), change }
    }
}

impl<L: RawLock> Bases<L, u32> {
    /// `pop_with`, where nothing is taken.
    pub(super) fn pop(&self, token: &RunnerToken, context: Context) -> PlainPopped {
        self.pop_with(token, context, |_, _| ()).into()
    }

    /// Arms a timer for the start of `tick`.
    pub(in crate::base) fn arm_tick(
        &self,
        timer: TimerRef<u32>,
        tick: Tick,
        onto: BaseId,
        context: Context,
    ) -> ArmOutcome {
        self.arm(timer, self.length.start(tick), onto, context)
    }

    /// As machines arm: the usual case, and if it is another one any.
    fn arm_as_machines_do(
        &self,
        timer: TimerRef<u32>,
        expires: Nanos,
        onto: BaseId,
        context: Context,
    ) -> ArmOutcome {
        let Some(FastArm { was_pending, change }) = self.arm_fast(timer, expires, onto, context) else {
            return self.arm(timer, expires, onto, context);
        };
        ArmOutcome { was_pending, is_refused: false, change, base: onto }
    }

    /// `finish_and_pop_with`, where nothing is taken.
    fn finish_and_pop(
        &self,
        expired: ExpiredTimer<u32>,
        token: &RunnerToken,
        context: Context,
    ) -> Result<PlainPopped, ExpiredTimer<u32>> {
        self.finish_and_pop_with(expired, token, context, |_, _| ()).map(PlainPopped::from)
    }
}

fn bases(cpu_count: u16) -> TestBases {
    let length = TickLength::new(Nanos(TICK)).expect("not zero");
    Bases::new(cpu_count, length, Nanos(0))
}

const fn base(cpu: u16, kind: BaseKind) -> BaseId {
    BaseId { cpu: CpuId(cpu), kind }
}

const fn local(cpu: u16) -> BaseId {
    base(cpu, BaseKind::Local)
}

const fn global(cpu: u16) -> BaseId {
    base(cpu, BaseKind::Global)
}

fn every_base(cpu_count: u16) -> impl Iterator<Item = BaseId> {
    (0..cpu_count).flat_map(|cpu| BaseKind::ALL.map(|kind| base(cpu, kind)))
}

/// CPU 0 at the start of tick `tick`.
const fn at(tick: u64) -> Context {
    Context::on(CpuId(0), Nanos(tick * TICK))
}

fn add(bases: &mut TestBases, payload: u32) -> (TimerId, TimerRef<u32>) {
    let id = bases.add_timer(TimerOptions::new(), payload);
    (id, bases.timer(id).expect("just made"))
}

/// Collects and hands out all that is due in `id`; the runs do not end.
fn start_all(
    bases: &TestBases,
    id: BaseId,
    context: Context,
) -> (Option<RunnerToken>, Vec<ExpiredTimer<u32>>) {
    let mut runs = Vec::new();
    let token = bases.collect_and_take(id, CpuId(0), context);
    if let Some(token) = &token {
        while let Some(expired) = bases.pop(token, context).expired {
            runs.push(expired);
        }
    }
    (token, runs)
}

/// Runs all that is due in `id`, and returns their payloads.
fn run_all(bases: &TestBases, id: BaseId, context: Context) -> Vec<u32> {
    let mut ran = Vec::new();
    while let Some(token) = bases.collect_and_take(id, CpuId(0), context) {
        let mut next = bases.pop(&token, context).expired;
        while let Some(expired) = next {
            ran.push(expired.payload());
            next = bases.finish_and_pop(expired, &token, context).expect("the token is held").expired;
        }
    }
    ran
}

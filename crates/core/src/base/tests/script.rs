//! Random scripts on several CPUs against the oracle: the contract of a timer (never early, late within
//! bounds, each pending period ends once, never concurrent with itself), and the invariants after every step.

use super::super::arm::ArmOutcome;
use super::super::{Arm, ArmMode, BaseCounters, BaseId, BaseKind, Cancelled, ExactId, ExpiredTimer};
use super::super::{RunnerToken, TimerId, TimerName};
use super::oracle::{Known, Oracle};
use super::{TICK, TestBases, bases, every_base};
use crate::base::TimerOptions;
use crate::{Context, CpuId, Nanos};
use alloc::vec;
use alloc::vec::Vec;
use proptest::prelude::*;
use quietcore_wheel::{Expiry, Precision};

const CPUS: u16 = 3;
const WHEEL_TIMERS: usize = 6;
const TIMERS: usize = 9;
const LONGEST: usize = if cfg!(miri) { 30 } else { 120 };

/// A step. Numbers are taken modulo what there is.
#[derive(Clone, Debug)]
enum Step {
    Wait(u64),
    Arm { timer: usize, delay: i64, onto: (u16, usize), mode: ArmMode },
    Cancel { timer: usize },
    CancelUnlessRunning { timer: usize },
    Shutdown { timer: usize },
    Take { base: (u16, usize), runner: u16 },
    Pop { token: usize },
    Finish { run: usize },
    FinishAndPop { run: usize },
    Release { token: usize },
    Revoke { base: (u16, usize) },
    Drain { base: (u16, usize) },
    Idle { base: (u16, usize) },
    Adopt { cpu: u16, onto: u16 },
    Prepare { cpu: u16 },
    Evacuate { cpu: u16, onto: u16, limit: usize },
}

fn steps() -> impl Strategy<Value = Step> {
    let delay = prop_oneof![4 => -3_i64..8, 4 => 0_i64..200, 2 => 0_i64..5_000, 1 => 0_i64..70_000];
    // Mostly few bases, so that steps meet.
    let onto = prop_oneof![3 => (0..2_u16, 1..2_usize), 2 => (0..CPUS, 0..BaseKind::ALL.len())];
    let mode =
        prop_oneof![9 => Just(ArmMode::Always), 2 => Just(ArmMode::Reduce), 2 => Just(ArmMode::ModPending)];
    prop_oneof![
        6 => prop_oneof![5 => 0_u64..4, 2 => 0_u64..100, 1 => 0_u64..9_000].prop_map(Step::Wait),
        13 => (0..TIMERS, delay, onto.clone(), mode)
            .prop_map(|(timer, delay, onto, mode)| Step::Arm { timer, delay, onto, mode }),
        2 => (0..TIMERS).prop_map(|timer| Step::Cancel { timer }),
        1 => (0..TIMERS).prop_map(|timer| Step::CancelUnlessRunning { timer }),
        1 => (0..TIMERS * 8).prop_filter_map("rare", |timer| {
            (timer < TIMERS).then_some(Step::Shutdown { timer })
        }),
        5 => (onto.clone(), 0..CPUS).prop_map(|(base, runner)| Step::Take { base, runner }),
        7 => (0..8_usize).prop_map(|token| Step::Pop { token }),
        4 => (0..8_usize).prop_map(|run| Step::Finish { run }),
        4 => (0..8_usize).prop_map(|run| Step::FinishAndPop { run }),
        1 => (0..8_usize).prop_map(|token| Step::Release { token }),
        1 => onto.clone().prop_map(|base| Step::Revoke { base }),
        3 => onto.clone().prop_map(|base| Step::Drain { base }),
        1 => onto.prop_map(|base| Step::Idle { base }),
        1 => (0..CPUS, 0..CPUS).prop_map(|(cpu, onto)| Step::Adopt { cpu, onto }),
        1 => (0..CPUS).prop_map(|cpu| Step::Prepare { cpu }),
        1 => (0..CPUS, 0..CPUS, 0..9_usize)
            .prop_map(|(cpu, onto, limit)| Step::Evacuate { cpu, onto, limit }),
    ]
}

/// Both sides, and what the machine would hold: tokens and runs.
struct Rig {
    bases: TestBases,
    oracle: Oracle,
    ids: Vec<TimerId>,
    exact: Vec<ExactId>,
    nanos: u64,
    tokens: Vec<RunnerToken>,
    runs: Vec<(usize, ExpiredTimer<u32>)>,
}

fn id((cpu, kind): (u16, usize)) -> BaseId {
    BaseId { cpu: CpuId(cpu), kind: BaseKind::ALL[kind] }
}

impl Rig {
    fn new() -> Self {
        let mut bases = bases(CPUS);
        let mut known = Vec::new();
        let (mut ids, mut exact) = (Vec::new(), Vec::new());
        for number in 0..TIMERS {
            let is_precise = number % 2 == 1;
            let precision = if is_precise { Precision::Tick } else { Precision::Coarse };
            let is_detached = number % 3 == 2;
            let options = TimerOptions::new().precision(precision);
            let options = if is_detached { options.detached() } else { options };
            let is_exact = number >= WHEEL_TIMERS;
            if is_exact {
                exact.push(bases.add_exact(options, number as u32));
            } else {
                ids.push(bases.add_timer(options, number as u32));
            }
            known.push(Known { is_exact, is_precise, is_detached, ..Known::default() });
        }
        let oracle = Oracle::new(known, CPUS);
        Self { bases, oracle, ids, exact, nanos: 0, tokens: Vec::new(), runs: Vec::new() }
    }

    fn tick(&self) -> u64 {
        self.nanos / TICK
    }

    fn wait(&mut self, nanos: u64) {
        self.nanos += nanos;
        self.oracle.now = self.tick();
    }

    fn context(&self) -> Context {
        Context::on(CpuId(0), Nanos(self.nanos))
    }

    fn step(&mut self, step: &Step) {
        match *step {
            Step::Wait(ticks) => self.wait(ticks * TICK + ticks % 7 * 100),
            Step::Arm { timer, delay, onto, mode } => self.arm(timer, delay, id(onto), mode),
            Step::Cancel { timer } => {
                let result = self.cancel(timer);
                let was_pending = self.oracle.end_period(timer);
                assert_eq!(result == Cancelled::WasPending, was_pending, "cancel of {timer}: {result:?}");
            }
            Step::CancelUnlessRunning { timer } => self.cancel_unless_running(timer),
            Step::Shutdown { timer } => self.shutdown(timer),
            Step::Take { base, runner } => self.take(id(base), CpuId(runner)),
            Step::Pop { token } => self.pop(token),
            Step::Finish { run } => self.finish(run),
            Step::FinishAndPop { run } => self.finish_and_pop(run),
            Step::Release { token } if !self.tokens.is_empty() => {
                let token = self.tokens.swap_remove(token % self.tokens.len());
                let base = token.base;
                self.watched(base, |rig| rig.bases.release(token, rig.context()).is_first);
            }
            Step::Revoke { base } => {
                self.watched(id(base), |rig| rig.bases.lock(id(base), None).revoke().is_first);
            }
            Step::Drain { base } => self.drain(id(base)),
            Step::Idle { base } => {
                let mut guard = self.bases.lock(id(base), None);
                guard.is_idle = !guard.is_idle;
                let _ = guard.next_expiry();
            }
            Step::Adopt { cpu, onto } => self.adopt(cpu, onto),
            Step::Prepare { cpu } => {
                self.bases.prepare(CpuId(cpu), self.context());
                self.oracle.adopters[usize::from(cpu)] = None;
            }
            Step::Evacuate { cpu, onto, limit } => self.evacuate(cpu, onto, limit),
            Step::Release { .. } => {}
        }
        if !cfg!(miri) {
            self.check();
        }
    }

    /// Does something that says whether `base` is due earlier than was known, and checks that.
    fn watched(&mut self, base: BaseId, act: impl FnOnce(&mut Self) -> bool) {
        let never = Nanos(u64::MAX);
        let before = self.bases.next_expiry(base).unwrap_or(never);
        let is_first = act(self);
        let after = self.bases.next_expiry(base).unwrap_or(never);
        assert_eq!(is_first, after < before, "{base}: {before} before, {after} after");
    }

    /// Exact timers are armed whatever the mode.
    fn arm(&mut self, timer: usize, delay: i64, onto: BaseId, mode: ArmMode) {
        let never = Nanos(u64::MAX);
        let before: Vec<_> = every_base(CPUS).map(|id| self.bases.next_expiry(id).unwrap_or(never)).collect();
        let exact_before: Vec<_> = every_base(CPUS).map(|id| self.next_exact(id)).collect();
        let known = self.oracle.timers[timer].clone();
        let (armed, expires) = if timer >= WHEEL_TIMERS {
            let expires = self.nanos.saturating_add_signed(delay * TICK as i64 + 17);
            (self.arm_exact(timer, expires, onto), expires)
        } else {
            let expires = self.tick().saturating_add_signed(delay);
            (self.arm_wheel(timer, expires, onto, mode), expires)
        };
        let has_effect = match (mode, known.period) {
            _ if timer >= WHEEL_TIMERS => true,
            (ArmMode::Reduce, Some(period)) => expires < period.expires,
            (ArmMode::ModPending, None) => false,
            _ => true,
        };
        if has_effect || known.is_shut_down {
            self.oracle.arm(timer, expires, onto, armed);
        } else {
            assert_eq!(armed.was_pending, known.period.is_some());
            assert!(!armed.change.is_first && !armed.is_refused);
        }
        for (id, before) in every_base(CPUS).zip(before) {
            let after = self.bases.next_expiry(id).unwrap_or(never);
            let is_first = armed.change.is_first && armed.base == id;
            assert!(after == before || is_first && after < before, "{id}: {before} {after} {armed:?}");
        }
        for (id, before) in every_base(CPUS).zip(exact_before) {
            let is_exact_first = armed.change.is_exact_first && armed.base == id;
            assert!(self.next_exact(id) >= before || is_exact_first, "{id}: {armed:?}");
        }
    }

    fn next_exact(&self, base: BaseId) -> Nanos {
        self.bases.lock(base, None).next_exact().unwrap_or(Nanos(u64::MAX))
    }

    fn arm_exact(&self, timer: usize, expires: u64, onto: BaseId) -> ArmOutcome {
        let exact = self.bases.timer(self.exact[timer - WHEEL_TIMERS]).expect("in the store");
        self.bases.arm(exact, Expiry::at(expires), onto, self.context())
    }

    fn arm_wheel(&self, timer: usize, expires: u64, onto: BaseId, mode: ArmMode) -> ArmOutcome {
        let wheel = self.bases.timer(self.ids[timer]).expect("in the store");
        let nanos = Nanos(expires * TICK + TICK / 2);
        if mode == ArmMode::Always && !timer.is_multiple_of(2) {
            return self.bases.arm_as_machines_do(wheel, nanos, onto, self.context());
        }
        self.bases.arm(wheel, Arm { mode, ..Arm::at(nanos) }, onto, self.context())
    }

    fn cancel(&self, timer: usize) -> Cancelled {
        match timer.checked_sub(WHEEL_TIMERS) {
            None => self.bases.cancel(self.bases.timer(self.ids[timer]).expect("there"), self.context()),
            Some(at) => self.bases.cancel(self.bases.timer(self.exact[at]).expect("there"), self.context()),
        }
    }

    fn cancel_unless_running(&mut self, timer: usize) {
        let context = self.context();
        let result = match timer.checked_sub(WHEEL_TIMERS) {
            None => {
                self.bases.cancel_unless_running(self.bases.timer(self.ids[timer]).expect("there"), context)
            }
            Some(at) => {
                self.bases.cancel_unless_running(self.bases.timer(self.exact[at]).expect("there"), context)
            }
        };
        let expected = if self.oracle.timers[timer].runs_on.is_some() {
            Cancelled::Running
        } else if self.oracle.end_period(timer) {
            Cancelled::WasPending
        } else {
            Cancelled::Idle
        };
        assert_eq!(result, expected, "timer {timer}");
    }

    fn shutdown(&mut self, timer: usize) {
        let context = self.context();
        let result = match timer.checked_sub(WHEEL_TIMERS) {
            None => self.bases.shutdown(self.bases.timer(self.ids[timer]).expect("there"), context),
            Some(at) => self.bases.shutdown(self.bases.timer(self.exact[at]).expect("there"), context),
        };
        assert_eq!(result == Cancelled::WasPending, self.oracle.end_period(timer), "timer {timer}");
        self.oracle.timers[timer].is_shut_down = true;
    }

    fn take(&mut self, base: BaseId, runner: CpuId) {
        let tick = self.tick();
        self.tokens.extend(self.bases.collect_and_take(base, runner, self.context()));
        let clock = self.oracle.clock(base);
        *clock = tick.max(*clock);
    }

    fn begin(&mut self, expired: ExpiredTimer<u32>) {
        let number = expired.payload() as usize;
        let name = match number.checked_sub(WHEEL_TIMERS) {
            None => TimerName::Id(self.ids[number]),
            Some(at) => TimerName::ExactId(self.exact[at]),
        };
        assert_eq!(expired.timer(), name);
        let unit = if number < WHEEL_TIMERS { TICK } else { 1 };
        let now = (self.tick(), self.nanos);
        self.oracle.begin(number, expired.expires().0 / unit, expired.base(), now);
        self.runs.push((number, expired));
    }

    fn pop(&mut self, token: usize) {
        if self.tokens.is_empty() {
            return;
        }
        let token = self.tokens.swap_remove(token % self.tokens.len());
        let base = token.base;
        self.watched(base, |rig| {
            let popped = rig.bases.pop(&token, rig.context());
            if let Some(expired) = popped.expired {
                rig.tokens.push(token);
                rig.begin(expired);
            }
            popped.change.is_first
        });
    }

    fn take_run(&mut self, run: usize) -> Option<ExpiredTimer<u32>> {
        if self.runs.is_empty() {
            return None;
        }
        let (number, expired) = self.runs.swap_remove(run % self.runs.len());
        let (base, nanos) = (expired.base(), self.nanos);
        self.oracle.end_run(number, nanos);
        assert_eq!(expired.is_detached(), self.oracle.timers[number].is_detached);
        if expired.is_detached() {
            return Some(expired);
        }
        if self.oracle.adopters[base.cpu.index()].is_some() && self.oracle.timers[number].period.is_some() {
            self.oracle.transfer(number, self.oracle.open(base));
        }
        Some(expired)
    }

    fn finish(&mut self, run: usize) {
        let Some(expired) = self.take_run(run) else { return };
        let base = expired.base();
        let base = if expired.is_detached() { base } else { self.oracle.open(base) };
        self.watched(base, |rig| {
            let finished = rig.bases.finish(expired, rig.context());
            assert!(!finished.change.is_first || finished.base == base);
            rig.tokens.extend(finished.token);
            finished.change.is_first
        });
    }

    fn finish_and_pop(&mut self, run: usize) {
        let index = if self.runs.is_empty() { return } else { run % self.runs.len() };
        let base = self.runs[index].1.base();
        let Some(at) = self.tokens.iter().position(|token| token.base == base) else { return };
        let token = self.tokens.swap_remove(at);
        let Some(expired) = self.take_run(run) else { return };
        match self.bases.finish_and_pop(expired, &token, self.context()) {
            Ok(popped) => {
                if let Some(expired) = popped.expired {
                    self.tokens.push(token);
                    self.begin(expired);
                }
            }
            Err(expired) => self.tokens.extend(self.bases.finish(expired, self.context()).token),
        }
    }

    /// Runs everything that can run in `base`; then nothing that is due is left.
    fn drain(&mut self, base: BaseId) {
        let _ = self.bases.lock(base, None).revoke();
        loop {
            let before = self.tokens.len();
            self.take(base, CpuId(1));
            if self.tokens.len() == before {
                break;
            }
            while self.tokens.len() > before {
                let (runs, last) = (self.runs.len(), self.tokens.len() - 1);
                self.pop(last);
                if self.runs.len() > runs {
                    self.finish(runs);
                }
            }
        }
        let (tick, nanos) = (self.tick(), self.nanos);
        for (number, known, period) in self.oracle.runnable(base) {
            let now = if known.is_exact { nanos } else { tick };
            assert!(period.latest >= now, "timer {number} is late at {now}: {period:?}");
        }
    }

    fn adopt(&mut self, cpu: u16, onto: u16) {
        let is_open = |cpu: u16| self.oracle.adopters[usize::from(cpu)].is_none();
        if cpu == onto || !is_open(cpu) || !is_open(onto) {
            return;
        }
        let adopted = self.bases.adopt(CpuId(cpu), CpuId(onto), self.context());
        let mut moved = 0;
        for number in 0..TIMERS {
            let known = &self.oracle.timers[number];
            if let Some(period) = known.period.filter(|period| period.base.cpu == CpuId(cpu))
                && known.runs_on.is_none()
            {
                self.oracle.transfer(number, BaseId { cpu: CpuId(onto), ..period.base });
                moved += 1;
            }
        }
        let is_here = |run: &ExpiredTimer<u32>| run.base().cpu == CpuId(cpu) && !run.is_detached();
        let running = self.runs.iter().filter(|(_, run)| is_here(run)).count();
        assert_eq!((adopted.moved, adopted.still_running), (moved, running));
        self.oracle.adopters[usize::from(cpu)] = Some(onto);
    }

    fn evacuate(&mut self, cpu: u16, onto: u16, limit: usize) {
        if cpu == onto {
            return;
        }
        let is_here = |id: BaseId| id.cpu == CpuId(cpu) && id.kind.is_pullable();
        let evacuated = self.bases.evacuate(CpuId(cpu), CpuId(onto), limit, self.context());
        assert_eq!(
            evacuated.is_none(),
            self.oracle.adopters[usize::from(onto)].is_some(),
            "{onto} is online"
        );
        let Some(evacuated) = evacuated else { return };
        let mut moved = 0;
        for number in 0..TIMERS {
            let known = self.oracle.timers[number].clone();
            let Some(period) = known.period.filter(|period| is_here(period.base)) else { continue };
            // Which ones go when not all do is not ours to say.
            let now_at = match number.checked_sub(WHEEL_TIMERS) {
                None => self.bases.timer(self.ids[number]).and_then(|timer| timer.base()),
                Some(at) => self.bases.timer(self.exact[at]).and_then(|timer| timer.base()),
            };
            if now_at != Some(period.base) {
                assert!(known.runs_on.is_none(), "timer {number} runs and was moved");
                self.oracle.transfer(number, BaseId { cpu: CpuId(onto), ..period.base });
                moved += 1;
            }
        }
        let left = self.oracle.timers.iter().filter(|known| known.period.is_some_and(|p| is_here(p.base)));
        assert_eq!((evacuated.moved, evacuated.remaining), (moved, left.count()));
        assert!(moved <= limit);
    }

    /// Everything that the bases say of themselves, and that a CPU that sleeps until a base is due is not
    /// late.
    fn check(&self) {
        self.bases.check();
        self.oracle.check();
        self.check_counters();
        for base in every_base(CPUS) {
            let guard = self.bases.lock(base, None);
            let pending =
                self.oracle.timers.iter().filter(|known| known.period.is_some_and(|p| p.base == base));
            assert_eq!(guard.pending(), pending.count(), "pending timers of {base}");
            let is_held = guard.runner().is_some();
            drop(guard);
            let next = self.bases.next_expiry(base).unwrap_or(Nanos(u64::MAX));
            for (number, known, period) in self.oracle.runnable(base).filter(|_| !is_held) {
                let latest = if known.is_exact { period.latest } else { (period.latest + 1) * TICK };
                assert!(next <= Nanos(latest), "timer {number} is overslept until {next}: {period:?}");
            }
        }
    }

    /// Each pending period that a base counted is counted once more, by how it ended, or is pending.
    fn check_counters(&self) {
        let (mut begun, mut ended) = (0, 0);
        for base in every_base(CPUS) {
            let guard = self.bases.lock(base, None);
            let BaseCounters { armed, superseded, cancelled, ran, .. } = guard.counters;
            begun += armed;
            ended += superseded + cancelled + ran + guard.pending() as u64;
        }
        let known: u64 = self.oracle.timers.iter().map(|known| known.armed).sum();
        assert_eq!((begun, ended), (known, known), "periods that began, and that ended or are pending");
    }

    /// The end: every run ends, time passes, and then nothing is pending; returns what still is.
    fn end(mut self) -> usize {
        while !self.runs.is_empty() {
            self.finish(0);
        }
        self.wait(1_000_000 * TICK);
        // A tick more for those that count as due at a clock that is one ahead.
        for _ in 0..2 {
            for base in every_base(CPUS).filter(|base| self.oracle.open(*base) == *base).collect::<Vec<_>>() {
                self.drain(base);
                if !cfg!(miri) {
                    self.check();
                }
            }
            self.wait(TICK);
        }
        for (number, known) in self.oracle.timers.iter().enumerate() {
            assert!(known.period.is_none(), "timer {number} never ran: {known:?}");
        }
        every_base(CPUS).map(|base| self.bases.lock(base, None).pending()).sum()
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: if cfg!(miri) { 2 } else { 2000 }, failure_persistence: None, ..ProptestConfig::default()
    })]

    /// Goal: the contract of a timer, items 1 to 4, and the invariants after every step. Method: random
    /// scripts of nine timers, every third of them detached, on three CPUs with four bases each, against the
    /// oracle.
    #[test]
    fn bases_agree_with_the_oracle(script in prop::collection::vec(steps(), 0..LONGEST)) {
        let mut rig = Rig::new();
        for step in &script {
            rig.step(step);
        }
        assert_eq!(rig.end(), 0, "timers are left");
    }
}

//! A world of one thread: CPUs that tick, sleep and stall, and a list of what is pending.

use quietcore_core::topology::Topology;
use quietcore_core::{
    Actions, At, Context, CpuId, CpuSet, IdleDecision, Machine, MarkOutcome, Nanos, SequentialLock, Settings,
    TimerId, TimerOptions, Turn,
};

/// Length of a tick in ns.
pub(crate) const TICK: u64 = 1_000_000;

/// What a CPU of this world does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Offline,
    Busy,
    Asleep {
        until: Option<Nanos>,
    },
    /// It does not turn; it may have been marked.
    Stuck,
}

/// A timer of the list.
#[derive(Clone, Copy, Debug)]
struct Known {
    id: TimerId,
    kind: Kind,
    /// Armed at, for; `None` while it is idle.
    pending: Option<(u64, u64)>,
    /// Something happened that lets it be late.
    is_excused: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Floating,
    Pinned,
    Deferrable,
}

pub(crate) struct World {
    pub(crate) machine: Machine<SequentialLock, usize>,
    actions: Actions,
    pub(crate) states: Vec<State>,
    turns: Vec<Turn>,
    timers: Vec<Known>,
    alarm: Option<Nanos>,
    pub(crate) now: u64,
    pub(crate) ran: usize,
    /// Runs of a timer that was armed on a housekeeping CPU, on a CPU that is isolated: (armed on, ran on).
    pub(crate) remote: Vec<(usize, usize)>,
    armed_on: Vec<usize>,
}

pub(crate) fn cpu(index: usize) -> CpuId {
    CpuId::new(index as u64).expect("in range")
}

impl World {
    pub(crate) fn new(topology: Topology, settings: Settings) -> Self {
        let count = topology.cpu_count();
        let machine = Machine::new(topology, settings).expect("a housekeeping CPU is left");
        let mut world = Self {
            machine,
            actions: Actions::new(count as u16),
            states: vec![State::Offline; count],
            turns: (0..count).map(|index| Turn::new(cpu(index))).collect(),
            timers: Vec::new(),
            alarm: None,
            now: TICK * 10,
            ran: 0,
            remote: Vec::new(),
            armed_on: Vec::new(),
        };
        world.online(0);
        world
    }

    fn moment(&self) -> Nanos {
        Nanos(self.now)
    }

    pub(crate) fn online(&mut self, index: usize) {
        if self.states[index] == State::Offline {
            self.machine.online(cpu(index), self.moment(), &mut self.actions).expect("offline");
            self.states[index] = State::Busy;
            self.carry_out();
        }
    }

    pub(crate) fn offline(&mut self, index: usize) {
        if matches!(self.states[index], State::Offline | State::Stuck) {
            return;
        }
        if self.machine.offline(cpu(index), self.moment(), &mut self.actions).is_ok() {
            self.states[index] = State::Offline;
            self.machine.abandon_turn(&mut self.turns[index], Nanos(self.now), &mut self.actions);
        }
        self.carry_out();
    }

    pub(crate) fn isolate(&mut self, isolated: &CpuSet) {
        let _ = self.machine.set_isolated(isolated, self.moment(), &mut self.actions);
        self.carry_out();
    }

    pub(crate) fn add(&mut self, kind: Kind) -> usize {
        let options = match kind {
            // Which CPU runs a timer, and when, does not depend on whether its runs are waited for.
            Kind::Floating if self.timers.len() % 2 == 1 => TimerOptions::new().detached(),
            Kind::Floating => TimerOptions::new(),
            Kind::Pinned => TimerOptions::new().pinned(),
            Kind::Deferrable => TimerOptions::new().deferrable(),
        };
        let id = self.machine.add_timer(options, self.timers.len());
        self.timers.push(Known { id, kind, pending: None, is_excused: false });
        self.armed_on.push(0);
        self.timers.len() - 1
    }

    /// Arms on a CPU that turns, or from a thread near it.
    pub(crate) fn arm(&mut self, timer: usize, on: usize, is_cpu: bool, delay: u64) {
        let is_turning = self.states[on] == State::Busy;
        let context = if is_cpu && is_turning {
            Context::on(cpu(on), self.moment())
        } else {
            Context::near(cpu(on), self.moment())
        };
        let known = self.timers[timer];
        if !is_turning && (known.kind != Kind::Floating || self.states[on] == State::Offline) {
            return;
        }
        let expires = self.now + delay;
        let armed = self.machine.arm(known.id, Nanos(expires), context, &mut self.actions).expect("known");
        assert_eq!(armed.was_pending, known.pending.is_some(), "timer {timer}: was pending");
        // Same-bucket re-arms keep a coarser level: as late as the earlier arm would have been.
        let since = known.pending.map_or(self.now, |(since, _)| since);
        // A wheel's clock does not pass a bucket in use: behind one that a stuck CPU left overdue the delay
        // is longer than it looks, and its bucket coarser.
        let waiting = self.timers.iter().filter(|known| known.kind != Kind::Deferrable);
        let oldest = waiting.filter_map(|known| known.pending).map(|(_, expires)| expires).min();
        let since = oldest.map_or(since, |oldest| oldest.min(since));
        let is_stuck = self.states.contains(&State::Stuck);
        let known = &mut self.timers[timer];
        known.is_excused = is_stuck || armed.was_pending && known.is_excused;
        known.pending = Some((since, expires));
        self.armed_on[timer] = on;
        self.carry_out();
    }

    pub(crate) fn cancel(&mut self, timer: usize, on: usize) {
        let context = Context::near(cpu(on), self.moment());
        let known = &mut self.timers[timer];
        let was_pending = self.machine.cancel(known.id, context).expect("known");
        assert_eq!(was_pending, known.pending.take().is_some(), "timer {timer}: cancelled");
    }

    pub(crate) fn sleep(&mut self, index: usize) {
        if self.states[index] == State::Busy {
            self.try_to_sleep(index);
            self.carry_out();
        }
    }

    fn try_to_sleep(&mut self, index: usize) {
        if self.turns[index].has_more() {
            return;
        }
        match self.machine.enter_idle(cpu(index), self.moment()) {
            IdleDecision::Stay { .. } => {
                // A CPU that was asleep stays so, until its next tick.
                if let State::Asleep { until } = &mut self.states[index] {
                    *until = Some(Nanos(self.now + TICK));
                }
            }
            IdleDecision::Sleep { until } => self.states[index] = State::Asleep { until },
        }
    }

    pub(crate) fn wake(&mut self, index: usize) {
        if matches!(self.states[index], State::Asleep { .. }) {
            self.machine.exit_idle(cpu(index), self.moment());
            self.states[index] = State::Busy;
        }
    }

    pub(crate) fn stick(&mut self, index: usize) {
        if self.states[index] == State::Busy {
            self.states[index] = State::Stuck;
            self.timers.iter_mut().for_each(|known| known.is_excused = true);
        }
    }

    /// A CPU notices that another is stuck (or wrongly believes so).
    pub(crate) fn mark(&mut self, index: usize) {
        if self.states[index] == State::Stuck {
            let mark = self.machine.mark_absent(cpu(index), &mut self.actions);
            assert_ne!(mark, MarkOutcome::Busy, "one thread: every lock is free");
            self.carry_out();
        }
    }

    pub(crate) fn unstick(&mut self, index: usize) {
        if self.states[index] == State::Stuck {
            self.states[index] = State::Busy;
        }
    }

    /// A CPU looks at its timers, as in its tick.
    fn turn(&mut self, index: usize) {
        let now = self.moment();
        let turn = &mut self.turns[index];
        self.machine.begin_turn(turn, now);
        let mut next = self.machine.next_expired(turn, now, &mut self.actions);
        while let Some(expired) = next {
            let timer = expired.payload();
            let known = &mut self.timers[timer];
            let (since, expires) = known.pending.take().expect("never twice");
            let late = self.now.checked_sub(expires).expect("never early");
            let allowed = (expires.saturating_sub(since)) / 8 + 5 * TICK;
            let is_bound = known.kind != Kind::Deferrable && !known.is_excused;
            assert!(
                !is_bound || late <= allowed,
                "timer {timer} {known:?} late by {late} ns, allowed {allowed}"
            );
            if known.kind == Kind::Pinned {
                assert!(expired.base().cpu == cpu(index), "a pinned timer ran on CPU {index}");
            }
            self.ran += 1;
            if self.armed_on[timer] != index {
                self.remote.push((self.armed_on[timer], index));
            }
            let at = At { now, actions: &mut self.actions };
            next =
                self.machine.finish_and_next_with(turn, expired, at, |_, _| ()).map(|(expired, ())| expired);
        }
    }

    /// Kicks and the alarm, until there are none.
    fn carry_out(&mut self) {
        if let Some(alarm) = self.actions.take_alarm() {
            self.alarm = Some(self.alarm.map_or(alarm, |known| known.min(alarm)));
        }
        while let Some(kicked) = self.actions.take_kick() {
            let index = kicked.index();
            if matches!(self.states[index], State::Asleep { .. }) {
                self.wake(index);
                self.turn(index);
                self.try_to_sleep(index);
            }
            if let Some(alarm) = self.actions.take_alarm() {
                self.alarm = Some(self.alarm.map_or(alarm, |known| known.min(alarm)));
            }
        }
    }

    /// The next tick: every awake CPU looks, sleepers whose time has come, and the alarm.
    pub(crate) fn tick(&mut self) {
        self.now = (self.now / TICK + 1) * TICK;
        if self.alarm.is_some_and(|alarm| alarm <= self.moment()) {
            self.alarm = None;
            self.machine.handle_alarm(self.moment(), &mut self.actions);
            self.carry_out();
        }
        for index in 0..self.states.len() {
            let state = self.states[index];
            let is_due = state != State::Stuck && self.machine.handle_tick(cpu(index), self.moment());
            match state {
                State::Busy => {
                    self.machine.watch(cpu(index), self.moment(), &mut self.actions);
                    if is_due || self.turns[index].has_more() {
                        self.turn(index);
                    }
                }
                State::Asleep { until } if until.is_some_and(|until| until <= self.moment()) => {
                    if is_due || self.turns[index].has_more() {
                        self.turn(index);
                    }
                    self.try_to_sleep(index);
                }
                State::Offline | State::Asleep { .. } | State::Stuck => {}
            }
            self.carry_out();
        }
        if (self.now / TICK).is_multiple_of(16) {
            self.machine.check_at(Nanos(self.now));
        }
    }

    /// Lets time pass until nothing is pending that a CPU could run.
    pub(crate) fn drain(&mut self) {
        for index in 0..self.states.len() {
            self.mark(index);
            self.unstick(index);
            self.wake(index);
        }
        self.carry_out();
        let last = self
            .timers
            .iter()
            .filter_map(|known| known.pending)
            .map(|(since, at)| at + (at - since) / 7)
            .max();
        let until = last.unwrap_or(0).max(self.now) + 80 * TICK;
        while self.now < until && self.timers.iter().any(|known| known.pending.is_some()) {
            self.tick();
        }
        for (timer, known) in self.timers.iter().enumerate() {
            assert!(known.pending.is_none(), "timer {timer} is lost: {known:?} at {}", self.now);
        }
    }
}

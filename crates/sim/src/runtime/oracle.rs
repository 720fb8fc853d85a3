//! What is true of every timer, whatever the machine says: when it may run at the earliest and the latest,
//! and how often.
//!
//! An arm takes effect at a moment between its call and its return that only the machine knows; so during a
//! call the old and the new moment both count. The latest moment follows from what the arm promised, and from
//! how long threads were kept from running since.

use super::plan::RuntimePlan;
use super::schedule::Held;
use super::switch::ThreadId;
use quietcore_core::{CpuId, CpuSet, Nanos, Precision};

const US: u64 = 1_000;

/// The helper, or the sentinel: the first thread of a run.
pub(super) const HELPER: ThreadId = 0;

/// How long a long callback takes at most.
pub(super) const LONG_CALLBACK: u64 = 6_000_000;

/// How long it takes until others look after what a silent lane has.
pub(super) const fn takeover(plan: &RuntimePlan) -> u64 {
    // Twice: two needless marks double the span for a second. And a lane that goes from one long piece of
    // user code to the next is no silent one: in between it runs a part of what is due.
    let faults = &plan.faults;
    let callback = if faults.long_callbacks > 0 { LONG_CALLBACK } else { 0 };
    4 * plan.stall_after + 4 * plan.tick + 2 * (callback + faults.longest_item + faults.longest_handler)
}

/// How long the item takes that does not end: several times as long as others need to take over, so that what
/// waits for it is late.
pub(super) fn stuck_for(plan: &RuntimePlan) -> u64 {
    if plan.faults.stuck_after > 0 { 6 * takeover(plan) } else { 0 }
}

/// How exactly a timer is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TimerPromise {
    Exact,
    Tick(Precision),
}

/// Which lane alone runs a timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Keeper {
    /// None: others take it over from a lane that does not turn.
    Nobody,
    /// That of this CPU, or of another one: it was armed there while the CPU was isolated, and whatever
    /// strangers arm there takes it along; or it is pinned and its CPU went offline.
    Perhaps(CpuId),
    /// That of this CPU: it is pinned there.
    Lane(CpuId),
}

impl Keeper {
    /// The CPU whose lane it is, if that is known.
    pub(super) const fn lane(self) -> Option<CpuId> {
        if let Self::Lane(cpu) = self { Some(cpu) } else { None }
    }
}

/// A timer of the run.
#[derive(Clone, Debug)]
pub(super) struct OracleTimer {
    pub(super) promise: TimerPromise,
    pub(super) is_pinned: bool,
    pub(super) keeper: Keeper,
    due: Option<Due>,
    /// The moment that a call is about to set.
    in_call: Option<Due>,
    /// CPUs that went offline, or are isolated no more, since that call began.
    left_in_call: CpuSet,
    arms: u64,
    /// Arms whose moment was replaced, or that were cancelled.
    ended: u64,
    fires: u64,
}

/// A moment, when it was asked for, and since when others can run it: what the arm asks of them happens
/// before it returns, and what an isolated CPU has is its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Due {
    at: u64,
    armed_at: u64,
    returned_at: u64,
}

impl OracleTimer {
    pub(super) fn new(promise: TimerPromise, is_pinned: bool) -> Self {
        let keeper = Keeper::Nobody;
        let (left_in_call, arms, ended, fires) = (CpuSet::default(), 0, 0, 0);
        Self { promise, is_pinned, keeper, due: None, in_call: None, left_in_call, arms, ended, fires }
    }

    pub(super) fn begin_arm(&mut self, at: u64, now: u64) {
        self.in_call = Some(Due { at, armed_at: now, returned_at: now });
        self.left_in_call = CpuSet::default();
    }

    pub(super) fn end_arm(&mut self, was_pending: bool, now: u64) {
        self.arms += 1;
        self.ended += u64::from(was_pending);
        self.due = self.in_call.take().map(|due| Due { returned_at: now, ..due });
    }

    /// Since its last arm it is on `cpu`, which may have been isolated during the call.
    pub(super) fn stay_on(&mut self, cpu: CpuId, was_isolated: bool) {
        let has_left = self.left_in_call.contains(cpu);
        self.keeper = match self.is_pinned {
            true if has_left => Keeper::Perhaps(cpu),
            true => Keeper::Lane(cpu),
            false if was_isolated => Keeper::Perhaps(cpu),
            false => Keeper::Nobody,
        };
    }

    pub(super) fn end_cancel(&mut self, was_pending: bool) {
        self.ended += u64::from(was_pending);
    }

    /// From `now` on others run what `cpu` has: it is isolated no more, or offline; then also what is pinned.
    pub(super) fn leave(&mut self, cpu: CpuId, now: u64) {
        if self.in_call.is_some() {
            self.left_in_call.insert(cpu);
        }
        let (Keeper::Lane(keeper) | Keeper::Perhaps(keeper)) = self.keeper else { return };
        if keeper != cpu {
            return;
        }
        if self.is_pinned {
            self.keeper = Keeper::Perhaps(cpu);
            return;
        }
        self.keeper = Keeper::Nobody;
        if let Some(due) = &mut self.due {
            due.returned_at = due.returned_at.max(now);
        }
    }

    /// The run that began last has ended at `now`: until then none but its own thread could begin the next.
    pub(super) fn end_run(&mut self, now: u64) {
        if let Some(due) = &mut self.due {
            due.returned_at = due.returned_at.max(now);
        }
    }

    /// Whether it waits to run; when no call is under way.
    pub(super) fn is_pending(&self) -> bool {
        self.arms > self.ended + self.fires
    }

    /// The moment for which it waits.
    pub(super) fn due(&self) -> Option<u64> {
        self.due.filter(|_| self.is_pending()).map(|due| due.at)
    }

    /// Runs, arms and ends that do not add up, when no call is under way.
    pub(super) fn is_wrong(&self) -> Option<String> {
        let over = (self.ended + self.fires).checked_sub(self.arms)?;
        (over > 0).then(|| {
            format!(
                "it ran {} times, was armed {} times, and {} of these were ended",
                self.fires, self.arms, self.ended
            )
        })
    }

    /// It runs at `now`.
    pub(super) fn fire(&mut self, now: u64, threads: &ThreadsSince<'_>) -> Result<(), String> {
        self.fires += 1;
        let possible = [self.due, self.in_call].into_iter().flatten();
        let earliest = possible.map(|due| due.at).min();
        let Some(earliest) = earliest else { return Err("it runs and was never armed".to_owned()) };
        if now < earliest {
            return Err(format!("it runs {} ns early", earliest - now));
        }
        let Some(due) = self.due.filter(|_| self.in_call.is_none()) else { return Ok(()) };
        let Some(since) = self.could_run(due, now, threads) else { return Ok(()) };
        let delay = due.at.saturating_sub(due.armed_at);
        Err(format!(
            "it runs {} ns late; threads that could have run it did not from {since} on; its delay was {delay} ns",
            now - due.at
        ))
    }

    /// When it runs at the latest, if it waits and no call for it is under way, as long as no thread is
    /// stopped.
    pub(super) fn latest(&self, plan: &RuntimePlan) -> Option<u64> {
        let due = self.due.filter(|_| self.is_pending() && self.in_call.is_none())?;
        Some(self.promised(due, plan) + usual(plan))
    }

    /// Whether the lane of `cpu`, whose bases are due at `next`, must not wait until `until`: this is an
    /// exact timer that waits there, or one that is pinned there and should be run before.
    pub(super) fn needs_lane(
        &self,
        cpu: CpuId,
        next: Nanos,
        until: Option<Nanos>,
        plan: &RuntimePlan,
    ) -> bool {
        let Some(due) = self.due.filter(|_| self.is_pending() && self.in_call.is_none()) else {
            return false;
        };
        let is_here = self.promise == TimerPromise::Exact && due.at == next.0;
        let is_late = || until.is_none_or(|until| self.promised(due, plan) < until.0);
        is_here || self.keeper == Keeper::Lane(cpu) && is_late()
    }

    /// Whether a call for it is under way: each timer has one at a time.
    pub(super) fn is_in_call(&self) -> bool {
        self.in_call.is_some()
    }

    /// By when its precision says that it runs. What an arm asks of others happens before it returns.
    fn promised(&self, due: Due, plan: &RuntimePlan) -> u64 {
        let delay = due.at.saturating_sub(due.armed_at);
        let promised = match self.promise {
            TimerPromise::Exact => 0,
            TimerPromise::Tick(Precision::Coarse) => (delay + plan.host_tick) / 8 + 2 * plan.tick,
            TimerPromise::Tick(_) => 2 * plan.tick,
        };
        due.at.max(due.returned_at) + promised
    }

    /// The beginning of a span before `now` in which it must have run: long enough for another thread to take
    /// over, or for its own if it is pinned, and no thread that had to run was kept from it.
    fn could_run(&self, due: Due, now: u64, threads: &ThreadsSince<'_>) -> Option<u64> {
        let plan = threads.plan;
        let from = self.promised(due, plan);
        let is_kept = self.keeper != Keeper::Nobody;
        let length = usual(plan) + if self.keeper.lane().is_some() { plan.tick } else { takeover(plan) };
        let begins = threads.held.iter().map(|held| held.until).filter(|until| *until > from);
        std::iter::once(from).chain(begins).find(|begin| {
            let end = begin + length;
            let held = || threads.held.iter().filter(|held| held.until > *begin && held.from < end);
            // None takes over from the thread behind the lanes, inside a lock, or for a timer that is kept
            // where it is: there its own thread has to run, and a stranger that has a kick for it in hand.
            // So it is for every timer of a machine without lanes: only its helper looks, when it is told.
            let is_home = |thread| is_kept && threads.home.is_none_or(|home| home == thread);
            let is_told = is_kept || threads.drivers.is_empty();
            let has_kick = |held: &Held| is_told && !held.is_busy && !threads.drivers.contains(&held.thread);
            let is_blocked = held()
                .any(|held| held.thread == HELPER || held.in_lock || is_home(held.thread) || has_kick(held));
            let is_free = |thread: &ThreadId| held().all(|held| held.thread != *thread);
            let is_any_free = threads.drivers.is_empty() || threads.drivers.iter().any(is_free);
            end < now && !is_blocked && is_any_free
        })
    }
}

/// What is known of the threads when a timer runs.
pub(super) struct ThreadsSince<'a> {
    pub(super) plan: &'a RuntimePlan,
    /// Spans in which threads did not run.
    pub(super) held: &'a [Held],
    /// Those that drive CPUs.
    pub(super) drivers: &'a [ThreadId],
    /// That of the CPU that the timer waits for, if it waits for one and that is known.
    pub(super) home: Option<ThreadId>,
}

/// To run what is due before a timer, and the way of a kick.
pub(super) fn usual(plan: &RuntimePlan) -> u64 {
    // A round of softirqs, and a wait for ksoftirqd.
    let longest = plan.faults.longest_handler;
    let softirqs = if longest > 0 { 4_000 * US + longest } else { 0 };
    500 * US + 4 * (plan.faults.late_timer + plan.faults.late_kick) + softirqs
}

#[cfg(test)]
mod tests {
    use super::*;

    const DUE: u64 = 5_000_000;
    const END: u64 = 10_000_000_000;
    const STRANGER: ThreadId = 1;

    /// What the oracle says of a timer of ticks that runs far too late, while the stranger was `held`.
    fn late(drivers: &[ThreadId], held: &[Held]) -> Result<(), String> {
        let plan = (1..).map(RuntimePlan::draw).find(|plan| plan.lanes == 0).expect("one in a few");
        let mut timer = OracleTimer::new(TimerPromise::Tick(Precision::Tick), false);
        timer.begin_arm(DUE, 0);
        timer.end_arm(false, 0);
        let threads = ThreadsSince { plan: &plan, held, drivers, home: None };
        timer.fire(END, &threads)
    }

    /// Goal: on a machine without lanes a late timer is excused by a stranger that is stopped before it has
    /// told the helper, and by nothing less. Method: the same run with no stop, with a stop, with user code,
    /// and with a lane that could have looked.
    #[test]
    fn without_lanes_a_kick_in_hand_excuses() {
        let stop = Held { thread: STRANGER, from: 0, until: END, in_lock: false, is_busy: false };
        assert!(late(&[], &[]).is_err(), "nothing kept the helper");
        assert_eq!(late(&[], &[stop]), Ok(()));
        assert!(late(&[], &[Held { is_busy: true, ..stop }]).is_err(), "it told before it returned");
        assert!(late(&[], &[Held { until: DUE, ..stop }]).is_err(), "it went on in time");
        assert!(late(&[2], &[stop]).is_err(), "a lane looks without a kick");
    }
}

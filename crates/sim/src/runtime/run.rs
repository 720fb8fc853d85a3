//! Playing a plan to its end, and making a failing one smaller.

use super::holders::none_is_held;
use super::oracle::stuck_for;
use super::plan::RuntimePlan;
use super::schedule::Host;
use super::virtual_lock::{forget_locks, has_waited, hurry};
use super::world::{RuntimeCounts, RuntimeWorld};
use quietcore_core::Nanos;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

const MS: u64 = 1_000_000;

/// What became of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuntimeRun {
    /// The first property that did not hold, and when, in ns.
    pub violation: Option<(u64, String)>,
    /// Steps of threads and other events.
    pub events: u64,
    /// What happened.
    pub counts: RuntimeCounts,
    /// The same in lines, the last ones of the run, if they were asked for.
    pub log: Vec<String>,
}

/// Plays `plan`. The same plan gives the same run. A panic of the core is a violation, too.
#[must_use]
pub fn run_runtime(plan: &RuntimePlan) -> RuntimeRun {
    run_with(plan, None)
}

/// The same, and tells in lines what happened.
#[must_use]
pub fn tell_runtime(plan: &RuntimePlan) -> RuntimeRun {
    run_with(plan, Some(Vec::new()))
}

fn run_with(plan: &RuntimePlan, log: Option<Vec<String>>) -> RuntimeRun {
    let host = Host::new(usize::from(plan.host_cpus), plan.host_faults(), plan.seed);
    forget_locks();
    let world = RuntimeWorld::new(plan.clone(), &host);
    *world.log.borrow_mut() = log;
    let played = catch_unwind(AssertUnwindSafe(|| play(&world, &host)));
    if let Err(panic) = played {
        let said = panic.downcast_ref::<String>().cloned();
        let said = said.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
        world.violate(format!("a panic: {}", said.unwrap_or_default()));
    }
    let (at, events) = (host.moment(), host.steps());
    if none_is_held() {
        world.tell_cpus();
    }
    host.leave();
    let violation = world.violation.borrow_mut().take().map(|what| (at, what));
    let mut counts = *world.counts.borrow();
    counts.wakes = world.lanes.all().map(|slot| slot.world.parker.wakes.get()).sum();
    let log = world.log.borrow_mut().take().unwrap_or_default();
    RuntimeRun { violation, events, counts, log }
}

fn play(world: &Rc<RuntimeWorld>, host: &Rc<Host>) {
    let helper = world.start();
    if world.lanes.exist() {
        hurry(helper, world.first_own_lock);
    }
    let plan = &world.plan;
    let holds = || {
        if host.is_child() {
            return world.keeps_off();
        }
        if has_waited() {
            world.violate("the sentinel waits for a lock that a stopped thread holds".to_owned());
        }
        if let Some(what) = world.is_inconsistent() {
            world.violate(what);
        }
        let is_kicked = || world.lanes.all().any(|slot| slot.world.parker.is_kicked());
        if world.acting.get() == 0 && none_is_held() && host.all_wait() && !is_kicked() {
            world.machine.check_at(Nanos(host.moment()));
            let what = world.is_forgotten().or_else(|| world.is_softirq_forgotten());
            let what = what.or_else(|| world.is_item_forgotten());
            if let Some(what) = what {
                world.violate(what);
            }
        }
        world.violation.borrow().is_none()
    };
    // As the plan says; then all strangers have ended, and what is left has to run.
    let _ = host.run(plan.duration + 20 * MS, holds);
    if host.is_child() {
        return end_child(world, host);
    }
    world.drains.set(true);
    host.heal();
    let end = host.moment()
        + plan.longest_delay
        + plan.longest_delay / 8
        + 60 * MS
        + 20 * plan.tick
        + plan.items_take()
        + stuck_for(plan);
    let is_still = host.run(end, holds);
    if world.violation.borrow().is_none() {
        look_for_lost(world, is_still);
        if let Some(what) =
            world.is_softirq_lost().or_else(|| world.is_item_lost()).or_else(|| world.is_restless())
        {
            world.violate(what);
        }
    }
    if world.violation.borrow().is_some() {
        return;
    }
    let closing = Rc::clone(world);
    let _ = host.spawn("shutdown".to_owned(), move || closing.shut_down());
    let _ = host.run(host.moment() + 200 * MS, || true);
    if let Some(left) = host.not_ended() {
        world.violate(format!("{left} has not ended after the shutdown"));
    }
    if let Some(what) = world.is_item_left() {
        world.violate(what);
    }
}

/// The rest of a run that has become a child's: what its one thread was in comes to its end.
fn end_child(world: &Rc<RuntimeWorld>, host: &Rc<Host>) {
    host.heal();
    let _ = host.run(host.moment() + world.plan.duration, || world.keeps_off());
    let closing = Rc::clone(world);
    let _ = host.spawn("shutdown".to_owned(), move || closing.shut_down());
    let _ = host.run(host.moment() + 200 * MS, || world.keeps_off());
    if let Some(left) = host.not_ended() {
        world.violate(format!("{left} has not come to its end in a child"));
    }
}

fn look_for_lost(world: &RuntimeWorld, is_still: bool) {
    let timers = world.timers.borrow();
    for (number, timer) in timers.iter().enumerate() {
        if timer.is_pending() {
            let why = if is_still { "no thread will ever come for it" } else { "it has not run" };
            let due = timer.due().unwrap_or_default();
            let late = world.host.moment().saturating_sub(due);
            world.violate(format!(
                "timer {number} ({:?}) is pending, {late} ns after its moment: {why}",
                timer.promise
            ));
            return;
        }
        if let Some(what) = timer.is_wrong() {
            world.violate(format!("timer {number}: {what}"));
            return;
        }
    }
}

/// The smallest plan that still fails that was found from `plan`, which fails: without faults, lanes,
/// strangers and timers that it does not need.
#[must_use]
pub fn smallest_failure(plan: &RuntimePlan) -> RuntimePlan {
    let mut smallest = plan.clone();
    loop {
        let smaller = smaller_plans(&smallest);
        let Some(found) = smaller.into_iter().find(|plan| run_runtime(plan).violation.is_some()) else {
            return smallest;
        };
        smallest = found;
    }
}

fn smaller_plans(plan: &RuntimePlan) -> Vec<RuntimePlan> {
    let mut plans: Vec<_> =
        plan.faults.without_one().into_iter().map(|faults| RuntimePlan { faults, ..plan.clone() }).collect();
    for lanes in [plan.lanes / 2, plan.lanes.saturating_sub(1)] {
        if lanes > 0 && lanes < plan.lanes {
            plans.push(RuntimePlan { lanes, ..plan.clone() });
        }
    }
    if plan.spares > 1 {
        plans.push(RuntimePlan { spares: 1, ..plan.clone() });
    }
    for strangers in 1..plan.strangers {
        plans.push(RuntimePlan { strangers, ..plan.clone() });
    }
    if plan.tasks > 0 {
        plans.push(RuntimePlan { tasks: plan.tasks / 2, ..plan.clone() });
    }
    if plan.timers > 1 {
        plans.push(RuntimePlan { timers: plan.timers / 2, ..plan.clone() });
    }
    if plan.lane_timers > 0 {
        plans.push(RuntimePlan { lane_timers: plan.lane_timers / 2, ..plan.clone() });
    }
    plans
}

//! Mutants of the timers that other projects are given.

use super::killer::Killer::Test;
use super::killer::Mutant;
use super::killer::Suite::Adapters;

pub(super) const ADAPTERS: &[Mutant] = &[
    Mutant {
        name: "hyper-sleep-not-moved",
        rule: "a sleep of hyper's that is reset ends at its new moment",
        file: "crates/adapters/src/hyper.rs",
        right: "Some(ours) => ours.project().inner.reset(Instant::from_std(deadline)),",
        wrong: "Some(_) => {}",
        killers: &[Test(Adapters, "hyper::a_sleep_is_moved_without_an_allocation")],
    },
    Mutant {
        name: "hyper-sleep-made-anew",
        rule: "a reset of a sleep of hyper's allocates nothing",
        file: "crates/adapters/src/hyper.rs",
        right: "Some(ours) => ours.project().inner.reset(Instant::from_std(deadline)),",
        wrong: "Some(_) => *sleep = self.sleep_until(deadline),",
        killers: &[Test(Adapters, "hyper::a_sleep_is_moved_without_an_allocation")],
    },
    Mutant {
        name: "hyper-real-present",
        rule: "hyper's deadlines are counted from the clock that its sleeps go by",
        file: "crates/adapters/src/hyper.rs",
        right: "Instant::now().into_std()",
        wrong: "StdInstant::now()",
        killers: &[Test(Adapters, "hyper::a_header_that_does_not_come_ends_the_connection")],
    },
    Mutant {
        name: "embassy-last-moment-wins",
        rule: "a waker that embassy gives two moments is woken at the earlier one",
        file: "crates/adapters/src/embassy.rs",
        right: "Some((earlier, _)) if *earlier <= at =>",
        wrong: "Some((earlier, _)) if *earlier == at =>",
        killers: &[Test(Adapters, "embassy::embassy_waits_on_a_machine")],
    },
    Mutant {
        name: "embassy-first-moment-alone",
        rule: "when embassy's first moment is over the timer is armed for the next one",
        file: "crates/adapters/src/embassy.rs",
        right: "let _ = run.timer().reduce(next);",
        wrong: "let _ = next;",
        killers: &[Test(Adapters, "embassy::embassy_waits_on_a_machine")],
    },
];

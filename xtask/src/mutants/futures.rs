//! Mutants of futures that wait for time: sleeps, timeouts, intervals, delay queues.

use super::killer::{Killer, Mutant, Suite};

const INTERVAL: &str = "crates/live/src/time/interval.rs";
const MISSED: &str = "crates/live/src/time/missed.rs";
const ENTRY: &str = "crates/live/src/time/entry.rs";
const DELAY_QUEUE: &str = "crates/live/src/time/delay_queue.rs";

const MISSED_TICKS: &[Killer] = &[Killer::Test(Suite::Futures, "interval::ticks_that_were_missed")];
const NEXT_TICK: &[Killer] = &[Killer::Test(Suite::LiveUnits, "time::missed::tests::the_next_tick")];
const CHANGES: &[Killer] = &[Killer::Test(Suite::Futures, "delay_queue::whom_a_change_wakes")];
const NANOSECOND: &[Killer] =
    &[Killer::Test(Suite::Futures, "sleep::a_deadline_a_nanosecond_away_is_not_over")];
const OVER: &[Killer] = &[Killer::Test(Suite::Futures, "sleep::deadlines_that_are_over")];

pub(super) const FUTURES: &[Mutant] = &[
    Mutant {
        name: "overruns-not-counted",
        rule: "an interval counts the ticks that it leaves out",
        file: INTERVAL,
        right: "self.overruns.saturating_add(missed)",
        wrong: "self.overruns.saturating_add(missed.min(0))",
        killers: MISSED_TICKS,
    },
    Mutant {
        name: "tick-returns-now",
        rule: "a tick says when it was due, not when it was taken",
        file: INTERVAL,
        right: "Poll::Ready(due)",
        wrong: "Poll::Ready(due.max(self.delay.now()))",
        killers: MISSED_TICKS,
    },
    Mutant {
        name: "phase-lost",
        rule: "the tick after missed ones is a multiple of the period",
        file: MISSED,
        right: "(now + (period - into), missed)",
        wrong: "(now + period, missed)",
        killers: NEXT_TICK,
    },
    Mutant {
        name: "burst-skips",
        rule: "a burst leaves no tick out",
        file: MISSED,
        right: "Self::Burst | Self::Delay => (due + period, 0),",
        wrong: "Self::Burst | Self::Delay => (due + period * (missed as u32 + 1), 0),",
        killers: NEXT_TICK,
    },
    Mutant {
        name: "slow-streams-forget-items",
        rule: "the time of a stream counts from its last item",
        file: "crates/live/src/time/stream.rs",
        right: "                this.delay.as_mut().reset(next);\n                *this.is_waiting = true;\n            }\n            return",
        wrong: "                let _ = next;\n                *this.is_waiting = true;\n            }\n            return",
        killers: &[Killer::Test(Suite::Futures, "stream::a_stream_that_is_slow_says_so")],
    },
    Mutant {
        name: "slow-streams-say-so-again",
        rule: "a stream says once that no item has come",
        file: "crates/live/src/time/stream.rs",
        right: "        ready!(this.delay.poll(context));\n        *this.is_waiting = false;\n",
        wrong: "        ready!(this.delay.poll(context));\n",
        killers: &[Killer::Test(Suite::Futures, "stream::a_stream_that_is_slow_says_so")],
    },
    Mutant {
        name: "throttle-is-not",
        rule: "a stream that is slowed down is not polled before its time",
        file: "crates/live/src/time/stream.rs",
        right: "            ready!(this.delay.as_mut().poll(context));\n",
        wrong: "            let _ = this.delay.as_mut().poll(context);\n",
        killers: &[Killer::Test(Suite::Futures, "stream::a_stream_is_slowed_down")],
    },
    Mutant {
        name: "coarse-wakes-early",
        rule: "a coarse timer that expires before the deadline is armed again",
        file: ENTRY,
        right: "may_be && self.machine().clock.now() < deadline",
        wrong: "may_be && self.machine().clock.now() > deadline",
        killers: &[Killer::Test(Suite::Futures, "sleep::deadlines_beyond_the_wheel")],
    },
    Mutant {
        name: "sleep-early-by-a-nanosecond",
        rule: "a sleep is not ready before its deadline",
        file: ENTRY,
        right: "(now < deadline).then_some(now)",
        wrong: "(now.0 + 1 < deadline.0).then_some(now)",
        killers: NANOSECOND,
    },
    Mutant {
        name: "over-before-it-was-polled",
        rule: "a sleep that was never polled is not elapsed",
        file: ENTRY,
        right: "State::Idle => false,",
        wrong: "State::Idle => self.machine().clock.now() >= deadline,",
        killers: OVER,
    },
    Mutant {
        name: "no-one-gives-way",
        rule: "of many futures in a row that are over at once, one is pending",
        file: "crates/live/src/time/budget.rs",
        right: "let is_left = spent.get() < BUDGET;",
        wrong: "let is_left = spent.get() < BUDGET || true;",
        killers: &[Killer::Test(Suite::Futures, "sleep::the_129th_in_a_row_gives_way")],
    },
    Mutant {
        name: "reset-forgets-the-deadline",
        rule: "a sleep that was reset tells its new deadline",
        file: "crates/live/src/time/sleep.rs",
        right: "*this.deadline = deadline;",
        wrong: "let _ = this.deadline;",
        killers: &[Killer::Test(Suite::Futures, "reset::random_steps")],
    },
    Mutant {
        name: "insert-wakes-nobody",
        rule: "an earlier value wakes the task that waits for the queue",
        file: DELAY_QUEUE,
        right: "        let place = timers.arm_growing(at(deadline), Item { value, older: None });
        if timers.next_expiry() != before {",
        wrong: "        let place = timers.arm_growing(at(deadline), Item { value, older: None });
        if timers.next_expiry() == before {",
        killers: CHANGES,
    },
    Mutant {
        name: "the-last-removal-wakes-nobody",
        rule: "a queue that became empty wakes the task that waits for it",
        file: DELAY_QUEUE,
        right: "        if self.is_empty() {
            self.wake();
        }",
        wrong: "",
        killers: CHANGES,
    },
    Mutant {
        name: "timeout-before-its-future",
        rule: "a future that is ready at its deadline wins",
        file: "crates/live/src/time/timeout.rs",
        right: "if let Poll::Ready(value) = this.value.poll(context) {",
        wrong: "if let Poll::Ready(value) = this.value.poll(context)
            && !this.delay.as_ref().as_pin_ref().is_some_and(|delay| delay.now() >= delay.deadline())
        {",
        killers: &[Killer::Test(Suite::Futures, "timeout::the_future_comes_first")],
    },
    Mutant {
        name: "panic-leaves-stale-keys",
        rule: "the keys of a queue hold as long as its values are there",
        file: "crates/live/src/time/delay_queue.rs",
        right: "        while self.timers_mut().next_expired(u64::MAX).is_some() {}\n        self.moved.clear();\n",
        wrong: "        self.moved.clear();\n        while self.timers_mut().next_expired(u64::MAX).is_some() {}\n",
        killers: &[Killer::Test(
            Suite::LiveUnits,
            "time::delay_queue::tests::a_destructor_that_panics_takes_no_other_along",
        )],
    },
];

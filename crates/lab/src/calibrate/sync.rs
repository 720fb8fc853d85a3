//! What needs two threads: handing over a cache line and a lock, waking a thread, switching tasks; and
//! interrupts.
//!
//! Each repeat is the median of its own samples, so a thread that loses its CPU for a while does not count.

use super::repeats::{Now, REPEATS, SetCost, per_item, summary};
use crate::error::LabError;
use quietcore_sim::Cost;
use rustix::thread::{CpuSet, futex, sched_setaffinity};
use std::hint::{black_box, spin_loop};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

/// Hand-overs of a repeat.
const ROUNDS: u32 = 2_000;
/// Wake-ups of a repeat: each takes tens of microseconds.
const WAKES: u32 = 200;
/// Cache lines that are read after another thread wrote them.
const LINES: usize = 512;
/// Odd, so that it visits all of them.
const STRIDE: usize = 197;
/// How long a loop looks for interrupts per repeat.
const WATCH: Duration = Duration::from_millis(150);
/// Gaps between these are interrupts; shorter ones are the loop, longer ones another thread.
const GAP: std::ops::Range<u64> = 700..40_000;

/// A cache line of its own, and its neighbour, which processors fetch along.
#[derive(Debug, Default)]
#[repr(align(128))]
struct CacheLine(AtomicU64);

/// The two CPUs of the measuring threads: the same twice where `cpus` is one only.
pub(crate) fn places(cpus: &[usize]) -> Result<(usize, usize), LabError> {
    match cpus {
        [] => Err(LabError::NoCpu),
        [only] => Ok((*only, *only)),
        [first, second, ..] => Ok((*first, *second)),
    }
}

/// Measures on two CPUs.
pub(crate) fn measure(first: usize, second: usize, now: Now<'_>, set: SetCost<'_>) {
    let handover = repeats(|| handover(first, second, now));
    set(Cost::LockHandover, &handover, "half a round of a word between two CPUs");
    set(Cost::KickLatency, &handover, "until a spinning CPU sees a word: half a round between two CPUs");
    set(Cost::Look, &repeats(|| look(first, second, now)), "reading a cache line that another CPU wrote");
    let wakes: Vec<Vec<Wake>> = (0..REPEATS).map(|_| wake(first, second, now)).collect();
    set_wakes(&wakes, set);
    set_rounds(&repeats(|| round_on_one_cpu(first, now)), set);
    let gaps = repeats(|| interrupts(first, now));
    set(Cost::Interrupt, &gaps, "median gap of a busy loop, from 0.7 to 40 us");
}

/// A futex wait that the kernel refuses at once: the word is not what it should be.
pub(crate) fn refused_wait() {
    let word = AtomicU32::new(0);
    let _ = futex::wait(&word, futex::Flags::PRIVATE, 1, None);
}

/// The calling thread stays on `cpu`. Where that is refused the measurement is only less steady.
fn stay_on(cpu: usize) {
    let mut set = CpuSet::new();
    set.set(cpu);
    let _ = sched_setaffinity(None, &set);
}

/// Those that have a sample.
fn repeats(mut once: impl FnMut() -> Option<f64>) -> Vec<f64> {
    (0..REPEATS).filter_map(|_| once()).collect()
}

fn median(samples: &[f64]) -> Option<f64> {
    summary(samples).map(|(median, _)| median)
}

/// Runs `this` here and `that` on another thread, on those CPUs; returns what `this` says. In a thread of its
/// own, so that this thread's affinity stays what it is.
fn on_two<T: Send>(cpus: (usize, usize), this: impl FnOnce() -> T + Send, that: impl FnOnce() + Send) -> T {
    std::thread::scope(|scope| {
        scope.spawn(move || {
            stay_on(cpus.1);
            that();
        });
        let here = scope.spawn(move || {
            stay_on(cpus.0);
            this()
        });
        here.join().expect("a measuring thread does not panic")
    })
}

fn wait_for(word: &AtomicU64, value: u64) {
    let mut spins = 0_u32;
    while word.load(Ordering::Acquire) != value {
        spins += 1;
        if spins.is_multiple_of(4096) {
            std::thread::yield_now(); // both may be on one CPU
        }
        spin_loop();
    }
}

fn handover(first: usize, second: usize, now: Now<'_>) -> Option<f64> {
    let line = CacheLine::default();
    let samples = on_two(
        (first, second),
        || {
            let sample = |round: u32| {
                let value = u64::from(round) * 2 + 1;
                let began = now();
                for step in 0..8 {
                    line.0.store(value * 8 + step, Ordering::Release);
                    wait_for(&line.0, u64::MAX - step);
                }
                per_item(now() - began, 16)
            };
            (0..ROUNDS).map(sample).collect::<Vec<f64>>()
        },
        || {
            for round in 0..ROUNDS {
                let value = u64::from(round) * 2 + 1;
                for step in 0..8 {
                    wait_for(&line.0, value * 8 + step);
                    line.0.store(u64::MAX - step, Ordering::Release);
                }
            }
        },
    );
    median(&samples)
}

fn look(first: usize, second: usize, now: Now<'_>) -> Option<f64> {
    let lines: Vec<CacheLine> = (0..LINES).map(|_| CacheLine::default()).collect();
    let turn = CacheLine::default();
    let rounds = u64::from(WAKES);
    let samples = on_two(
        (first, second),
        || {
            let sample = |round: u64| {
                wait_for(&turn.0, round * 2 + 1);
                let began = now();
                // In no order that a processor could foresee.
                let line = |place| &lines[place * STRIDE % LINES];
                let sum: u64 = (0..LINES).map(|place| line(place).0.load(Ordering::Relaxed)).sum();
                let spent = per_item(now() - began, LINES as u64);
                black_box(sum);
                turn.0.store(round * 2 + 2, Ordering::Release);
                spent
            };
            (0..rounds).map(sample).collect::<Vec<f64>>()
        },
        || {
            for round in 0..rounds {
                lines.iter().for_each(|line| line.0.store(round, Ordering::Relaxed));
                turn.0.store(round * 2 + 1, Ordering::Release);
                wait_for(&turn.0, round * 2 + 2);
            }
        },
    );
    median(&samples)
}

/// A thread that was woken, by one clock.
#[derive(Clone, Copy, Debug)]
struct Wake {
    /// When the waker called.
    began: u64,
    /// When that call was over.
    ended: u64,
    /// When the woken thread ran.
    ran: u64,
}

/// Both costs of a wake-up, from the wakes of each repeat; one in which nothing slept does not count.
fn set_wakes(repeats: &[Vec<Wake>], set: SetCost<'_>) {
    let medians = |of: fn(&Wake) -> u64| -> Vec<f64> {
        let one = |wakes: &Vec<Wake>| median(&wakes.iter().map(|wake| of(wake) as f64).collect::<Vec<f64>>());
        repeats.iter().filter_map(one).collect()
    };
    let (kicks, exits) =
        (medians(|wake| wake.ended - wake.began), medians(|wake| wake.ran.saturating_sub(wake.ended)));
    set(Cost::Kick, &kicks, "futex wake of a thread that sleeps on another CPU, for the waker");
    set(Cost::IdleExit, &exits, "from the end of that call until the thread runs");
}

/// Wakes a thread again and again.
fn wake(first: usize, second: usize, now: Now<'_>) -> Vec<Wake> {
    let word = AtomicU32::new(0);
    let (ran_at, is_over) = (CacheLine::default(), AtomicBool::new(false));
    let sleeper = || {
        let mut seen = 0;
        while !is_over.load(Ordering::Acquire) {
            if futex::wait(&word, futex::Flags::PRIVATE, seen, None).is_ok() {
                ran_at.0.store(now(), Ordering::Release);
            }
            seen = word.load(Ordering::Acquire);
        }
    };
    let waker = || {
        let mut wakes = Vec::new();
        for round in 1..=WAKES {
            std::thread::sleep(Duration::from_micros(150)); // so that it sleeps
            ran_at.0.store(0, Ordering::Release);
            word.store(round, Ordering::Release);
            let began = now();
            let woken = futex::wake(&word, futex::Flags::PRIVATE, 1).unwrap_or(0);
            let ended = now();
            if woken == 0 {
                continue; // it was not asleep yet
            }
            while ran_at.0.load(Ordering::Acquire) == 0 {
                std::thread::yield_now();
            }
            wakes.push(Wake { began, ended, ran: ran_at.0.load(Ordering::Acquire) });
        }
        is_over.store(true, Ordering::Release);
        word.store(u32::MAX, Ordering::Release);
        let _ = futex::wake(&word, futex::Flags::PRIVATE, 1);
        wakes
    };
    on_two((first, second), waker, sleeper)
}

/// Two threads on one CPU that wake each other: from one to the other and back.
fn round_on_one_cpu(cpu: usize, now: Now<'_>) -> Option<f64> {
    let word = AtomicU32::new(0);
    let rounds = WAKES * 4;
    let play = |mine: u32| {
        for round in 0..rounds {
            let turn = round * 2 + mine;
            loop {
                let seen = word.load(Ordering::Acquire);
                if seen == turn {
                    break;
                }
                let _ = futex::wait(&word, futex::Flags::PRIVATE, seen, None);
            }
            word.store(turn + 1, Ordering::Release);
            let _ = futex::wake(&word, futex::Flags::PRIVATE, 1);
        }
    };
    let began = now();
    on_two((cpu, cpu), || play(0), || play(1));
    Some(per_item(now() - began, u64::from(rounds)))
}

/// Costs of a switch, from repeats of a round, which has two.
fn set_rounds(rounds: &[f64], set: SetCost<'_>) {
    let switches: Vec<f64> = rounds.iter().map(|round| round / 2.0).collect();
    set(Cost::ContextSwitch, &switches, "half a round of futex wakes between two threads on one CPU");
    set(
        Cost::HelperSwitch,
        rounds,
        "a round of futex wakes between two threads on one CPU, in the repeats of context_switch",
    );
}

/// The median gap that looks like an interrupt; `None` of a few, which may be anything.
fn interrupts(cpu: usize, now: Now<'_>) -> Option<f64> {
    let watch = || {
        stay_on(cpu);
        let zero = now();
        let end = zero + WATCH.as_nanos() as u64;
        let (mut gaps, mut last) = (Vec::new(), zero);
        while last < end {
            let at = now();
            if GAP.contains(&(at - last)) {
                gaps.push((at - last) as f64);
            }
            last = at;
        }
        gaps
    };
    let gaps =
        std::thread::scope(|scope| scope.spawn(watch).join()).expect("a measuring thread does not panic");
    median(&gaps).filter(|_| gaps.len() >= 5)
}

#[cfg(test)]
mod tests {
    use super::{Wake, interrupts, measure, median, places, set_rounds, set_wakes};
    use crate::error::LabError;
    use quietcore_sim::Cost;
    use quietcore_testing::has_two_cpus;
    use std::cell::Cell;
    use std::sync::atomic::{AtomicU64, Ordering};

    /// The costs that `work` sets, with their repeats.
    fn set_by(work: impl FnOnce(&mut dyn FnMut(Cost, &[f64], &str))) -> Vec<(Cost, Vec<f64>)> {
        let mut all = Vec::new();
        work(&mut |cost, repeats, _| all.push((cost, repeats.to_vec())));
        all
    }

    /// Goal: what is between two CPUs is measured on the first two, on the only one if there is no second,
    /// and not at all without one. Method: three, one, none.
    #[test]
    fn two_threads_have_two_cpus_if_there_are() {
        assert_eq!(places(&[2, 5, 7]).ok(), Some((2, 5)));
        assert_eq!(places(&[3]).ok(), Some((3, 3)));
        assert!(matches!(places(&[]), Err(LabError::NoCpu)));
    }

    /// Goal: a switch is half of a round, in each repeat. Method: rounds of a known length.
    #[test]
    fn a_round_has_two_switches() {
        let rounds = [9_000.0, 12_500.0];
        let set = set_by(|set| set_rounds(&rounds, set));
        let switches = (Cost::ContextSwitch, vec![4_500.0, 6_250.0]);
        assert_eq!(set, [switches, (Cost::HelperSwitch, rounds.to_vec())]);
    }

    /// Goal: the waker pays for its call, the woken thread comes after that, and a repeat without a wake-up
    /// is no repeat. Method: three wake-ups, one that ran before the call was over, and no wake-up.
    #[test]
    fn a_wake_up_has_two_costs() {
        let wake = |began, ended, ran| Wake { began, ended, ran };
        let three = vec![wake(100, 107, 130), wake(200, 211, 212), wake(300, 305, 345)];
        let set = set_by(|set| set_wakes(&[three, vec![wake(400, 402, 401)], Vec::new()], set));
        assert_eq!(set, [(Cost::Kick, vec![7.0, 2.0]), (Cost::IdleExit, vec![23.0, 0.0])]);
        let none = set_by(|set| set_wakes(&[Vec::new()], set));
        assert_eq!(none, [(Cost::Kick, Vec::new()), (Cost::IdleExit, Vec::new())]);
    }

    /// Goal: each cost is of its own work, and a sample is shared by what it has of: two hand-overs in each
    /// of eight steps, 512 lines, 800 rounds. Method: a clock of each thread that goes on by 0, 1, 2, 3 us
    /// and so on. So samples are 1, 3, 5 ... us, the median of 2000 is 2001 us, of 200 201 us, of 15 15 us;
    /// and gaps are 1 to 39 us. How many wake-ups there are is up to the machine.
    #[test]
    fn every_cost_is_of_its_own_work() {
        if !has_two_cpus("every_cost_is_of_its_own_work") {
            return;
        }
        thread_local! { static STEP: Cell<u64> = const { Cell::new(0) } }
        let now = || {
            let step = STEP.replace(STEP.get() + 1);
            1 + step * (step + 1) / 2 * 1_000
        };
        let mut lines = Vec::new();
        measure(0, 1, &now, &mut |cost, repeats, what| {
            let of_machine = [Cost::Kick, Cost::IdleExit].contains(&cost);
            let middle = if of_machine { None } else { median(repeats) };
            let shown = middle.map_or_else(|| "some".to_owned(), |ns| format!("{ns:.1}"));
            lines.push(format!("{:<14} {shown:>9}  {what}", cost.name()));
        });
        insta::assert_snapshot!("sync-costs", lines.join("\n"));
    }

    /// Goal: gaps from 700 ns to less than 40 us are interrupts, what they take is their median, and fewer
    /// than five are none. Method: readings of a clock, among them gaps on both sides of both ends.
    #[test]
    fn gaps_of_some_length_are_interrupts() {
        let of = |gaps: &'static [u64]| {
            let (next, ns) = (AtomicU64::new(0), AtomicU64::new(7));
            let now = move || {
                let at = next.fetch_add(1, Ordering::Relaxed) as usize;
                // The first reading is before all gaps; behind them the watch is over.
                let gap = at.checked_sub(1).map_or(0, |at| gaps.get(at).copied().unwrap_or(200_000_000));
                ns.fetch_add(gap, Ordering::Relaxed) + gap
            };
            interrupts(0, &now)
        };
        assert_eq!(of(&[39_999, 20, 699, 700, 1_500, 40_000, 900, 90_000, 2_500]), Some(1_500.0));
        assert_eq!(of(&[39_999, 699, 700, 1_500, 40_000, 900]), None);
    }
}

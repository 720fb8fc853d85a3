//! What needs two threads: handing over a cache line and a lock, waking a thread, switching tasks; and
//! interrupts.
//!
//! Each repeat is the median of its own samples, so a thread that loses its CPU for a while does not count.

use super::repeats::{REPEATS, SetCost, summary};
use crate::cpus::allowed_cpus;
use crate::error::LabError;
use quietcore_sim::Cost;
use rustix::thread::{CpuSet, futex, sched_setaffinity};
use std::hint::{black_box, spin_loop};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

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

/// Measures; returns what could not be.
pub(crate) fn measure(set: SetCost<'_>) -> Result<Vec<String>, LabError> {
    let mut missing = Vec::new();
    let cpus: Vec<usize> = allowed_cpus()?.iter().map(|cpu| cpu.index()).collect();
    let (first, second) = match cpus.as_slice() {
        [] => return Err(LabError::NoCpu),
        [only] => {
            missing
                .push("one CPU only: hand-overs between CPUs are those between two threads on it".to_owned());
            (*only, *only)
        }
        [first, second, ..] => (*first, *second),
    };
    let handover = repeats(|| handover(first, second));
    set(Cost::LockHandover, &handover, "half a round of a word between two CPUs");
    set(Cost::KickLatency, &handover, "until a spinning CPU sees a word: half a round between two CPUs");
    set(Cost::Look, &repeats(|| look(first, second)), "reading a cache line that another CPU wrote");
    let (mut kicks, mut exits) = (Vec::new(), Vec::new());
    for _ in 0..REPEATS {
        let (kick, exit) = wake(first, second);
        kicks.push(kick);
        exits.push(exit);
    }
    set(Cost::Kick, &kicks, "futex wake of a thread that sleeps on another CPU, for the waker");
    set(Cost::IdleExit, &exits, "from the end of that call until the thread runs");
    let rounds = repeats(|| round_on_one_cpu(first));
    set(
        Cost::ContextSwitch,
        &switches(&rounds),
        "half a round of futex wakes between two threads on one CPU",
    );
    set(
        Cost::HelperSwitch,
        &rounds,
        "a round of futex wakes between two threads on one CPU, in the repeats of context_switch",
    );
    let gaps: Vec<f64> = (0..REPEATS).filter_map(|_| interrupts(first)).collect();
    if gaps.is_empty() {
        missing.push(
            "interrupt: no gap of a busy loop looked like one; give it in the scenario, with its source"
                .to_owned(),
        );
    }
    set(Cost::Interrupt, &gaps, "median gap of a busy loop, from 0.7 to 40 us");
    Ok(missing)
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

fn repeats(mut once: impl FnMut() -> f64) -> Vec<f64> {
    (0..REPEATS).map(|_| once()).collect()
}

fn median(samples: &[f64]) -> f64 {
    summary(samples).map_or(0.0, |(median, _)| median)
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

fn handover(first: usize, second: usize) -> f64 {
    let line = CacheLine::default();
    let samples = on_two(
        (first, second),
        || {
            let sample = |round: u32| {
                let value = u64::from(round) * 2 + 1;
                let began = Instant::now();
                for step in 0..8 {
                    line.0.store(value * 8 + step, Ordering::Release);
                    wait_for(&line.0, u64::MAX - step);
                }
                began.elapsed().as_nanos() as f64 / 16.0
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

fn look(first: usize, second: usize) -> f64 {
    let lines: Vec<CacheLine> = (0..LINES).map(|_| CacheLine::default()).collect();
    let turn = CacheLine::default();
    let rounds = u64::from(WAKES);
    let samples = on_two(
        (first, second),
        || {
            let sample = |round: u64| {
                wait_for(&turn.0, round * 2 + 1);
                let began = Instant::now();
                // In no order that a processor could foresee.
                let line = |place| &lines[place * STRIDE % LINES];
                let sum: u64 = (0..LINES).map(|place| line(place).0.load(Ordering::Relaxed)).sum();
                let spent = began.elapsed().as_nanos() as f64 / LINES as f64;
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

/// For the waker; and from then until the woken thread runs.
fn wake(first: usize, second: usize) -> (f64, f64) {
    let word = AtomicU32::new(0);
    let (ran_at, is_over) = (CacheLine::default(), AtomicBool::new(false));
    let zero = Instant::now();
    let since = |zero: Instant| zero.elapsed().as_nanos() as u64;
    let sleeper = || {
        let mut seen = 0;
        while !is_over.load(Ordering::Acquire) {
            if futex::wait(&word, futex::Flags::PRIVATE, seen, None).is_ok() {
                ran_at.0.store(since(zero), Ordering::Release);
            }
            seen = word.load(Ordering::Acquire);
        }
    };
    let waker = || {
        let (mut kicks, mut exits) = (Vec::new(), Vec::new());
        for round in 1..=WAKES {
            std::thread::sleep(Duration::from_micros(150)); // so that it sleeps
            ran_at.0.store(0, Ordering::Release);
            word.store(round, Ordering::Release);
            let began = since(zero);
            let woken = futex::wake(&word, futex::Flags::PRIVATE, 1).unwrap_or(0);
            let ended = since(zero);
            if woken == 0 {
                continue; // it was not asleep yet
            }
            while ran_at.0.load(Ordering::Acquire) == 0 {
                std::thread::yield_now();
            }
            kicks.push((ended - began) as f64);
            exits.push(ran_at.0.load(Ordering::Acquire).saturating_sub(ended) as f64);
        }
        is_over.store(true, Ordering::Release);
        word.store(u32::MAX, Ordering::Release);
        let _ = futex::wake(&word, futex::Flags::PRIVATE, 1);
        (median(&kicks), median(&exits))
    };
    on_two((first, second), waker, sleeper)
}

/// Two threads on one CPU that wake each other: from one to the other and back.
fn round_on_one_cpu(cpu: usize) -> f64 {
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
    let began = Instant::now();
    on_two((cpu, cpu), || play(0), || play(1));
    began.elapsed().as_nanos() as f64 / f64::from(rounds)
}

/// The median gap that looks like an interrupt.
fn interrupts(cpu: usize) -> Option<f64> {
    let watch = || {
        stay_on(cpu);
        let zero = Instant::now();
        let (mut gaps, mut last) = (Vec::new(), 0);
        while last < WATCH.as_nanos() as u64 {
            let now = zero.elapsed().as_nanos() as u64;
            if GAP.contains(&(now - last)) && last > 0 {
                gaps.push((now - last) as f64);
            }
            last = now;
        }
        gaps
    };
    let gaps =
        std::thread::scope(|scope| scope.spawn(watch).join()).expect("a measuring thread does not panic");
    (gaps.len() >= 5).then(|| median(&gaps))
}

/// What one switch took in each round, which has two.
fn switches(rounds: &[f64]) -> Vec<f64> {
    rounds.iter().map(|round| round / 2.0).collect()
}

#[cfg(test)]
mod tests {
    /// Goal: a switch is half of a round, in each repeat. Method: rounds of a known length.
    #[test]
    fn a_round_has_two_switches() {
        assert_eq!(super::switches(&[9_000.0, 12_500.0]), [4_500.0, 6_250.0]);
    }
}

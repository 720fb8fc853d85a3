//! Arm and cancel, cancel from another thread, move one of many, expiry of many.
//!
//! Nanoseconds are wall-clock time of the thread that does it; the CPU time of everybody who works for it
//! is counted from outside. Timers that stay are boxed beforehand; those of a pair are on the stack.

use crate::load::{Delays, Form, Load};
use crate::output;
use crate::runtime::{Runtime, on_threads};
use crate::sync::Count;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::{Arc, Barrier, mpsc};
use std::task::{Context, Waker};
use std::time::{Duration, Instant};

/// Random numbers drawn beforehand, and operations between two looks at the clock.
const DRAWN: usize = 4096;

/// A timer that stays; dropping it in place does not free its memory.
type Slot<R> = Pin<Box<Option<<R as Runtime>::Sleep>>>;

/// Polls `sleep`, which arms it.
fn arm<S: Future>(sleep: Pin<&mut S>, context: &mut Context<'_>) {
    assert!(sleep.poll(context).is_pending(), "a timer far away has expired");
}

fn slot<R: Runtime>(sleep: R::Sleep, context: &mut Context<'_>) -> Slot<R> {
    let mut slot = Box::pin(Some(sleep));
    arm(slot.as_mut().as_pin_mut().expect("just made"), context);
    slot
}

fn pending<R: Runtime>(runtime: &R, count: usize, delays: &mut Delays) -> Vec<Slot<R>> {
    let mut context = Context::from_waker(Waker::noop());
    (0..count).map(|_| slot::<R>(runtime.sleep(delays.far()), &mut context)).collect()
}

/// Calls `operation` with everything drawn, over and over for `time`: how often, and how long it took.
fn repeat<T: Copy>(time: Duration, drawn: &[T], mut operation: impl FnMut(T)) -> (u64, Duration) {
    let start = Instant::now();
    let mut count = 0;
    loop {
        for &one in drawn {
            operation(one);
        }
        count += drawn.len() as u64;
        let elapsed = start.elapsed();
        if elapsed >= time {
            return (count, elapsed);
        }
    }
}

fn nanos((count, elapsed): (u64, Duration)) -> f64 {
    elapsed.as_nanos() as f64 / count as f64
}

/// Pairs on 1 or more threads at once, among `others` that the same threads armed.
pub fn arm_cancel<R: Runtime>(runtime: &'static R, load: &Load) {
    match load.form {
        Form::After => {
            let drawn = |delays: &mut Delays| (0..DRAWN).map(|_| delays.far()).collect();
            pairs(runtime, load, drawn, |delay| runtime.sleep(delay));
        }
        Form::At => {
            let drawn = |delays: &mut Delays| {
                let now = Instant::now();
                (0..DRAWN).map(|_| now + delays.far()).collect()
            };
            pairs(runtime, load, drawn, |at| runtime.sleep_until(at));
        }
    }
}

fn pairs<R, T, D, S>(runtime: &'static R, load: &Load, draw: D, sleep: S)
where
    R: Runtime,
    T: Copy,
    D: Fn(&mut Delays) -> Vec<T> + Send + Sync + 'static,
    S: Fn(T) -> R::Sleep + Send + Sync + 'static,
{
    let (threads, others, time) = (load.threads, load.others, load.time);
    let (barrier, total) = (Barrier::new(threads), Count::default());
    let results = on_threads(runtime, load, move |thread| {
        let mut delays = Delays::of(thread);
        let kept = pending(runtime, others / threads, &mut delays);
        let drawn = draw(&mut delays);
        let mut context = Context::from_waker(Waker::noop());
        let mut pair = |when| arm(pin!(sleep(when)), &mut context);
        repeat(time / 10, &drawn, &mut pair); // warm
        if barrier.wait().is_leader() {
            output::window_start();
        }
        barrier.wait();
        let measured = repeat(time, &drawn, &mut pair);
        total.add(measured.0);
        if barrier.wait().is_leader() {
            output::window_end(total.get());
        }
        barrier.wait();
        drop(kept);
        nanos(measured)
    });
    output::figure("ns", results.iter().sum::<f64>() / threads as f64);
}

/// One worker arms a batch, waits, and the other cancels it: nanoseconds of the latter, per timer.
pub fn remote_cancel<R: Runtime>(runtime: &'static R, load: &Load) {
    let (count, time) = (load.count, load.time);
    let (give, taken) = mpsc::sync_channel::<Vec<Slot<R>>>(0);
    let (give_back, back) = mpsc::sync_channel(0);
    let (done, result) = mpsc::channel();
    runtime.run(0, move || arm_batches(runtime, count, &give, &back));
    runtime.run(1, move || {
        let (mut cancelled, mut spent) = (0, Duration::ZERO);
        while spent < time {
            let mut batch = taken.recv().expect("the other arms until nobody takes it");
            let start = Instant::now();
            for slot in &mut batch {
                slot.as_mut().set(None);
            }
            spent += start.elapsed();
            cancelled += batch.len() as u64;
            give_back.send(batch).expect("the other waits for it");
        }
        done.send(nanos((cancelled, spent))).expect("whoever waits for it is there");
    });
    output::figure("ns", result.recv().expect("the job ends"));
}

/// Arms batches until nobody takes them any more.
fn arm_batches<R: Runtime>(
    runtime: &R,
    count: usize,
    give: &mpsc::SyncSender<Vec<Slot<R>>>,
    back: &mpsc::Receiver<Vec<Slot<R>>>,
) {
    let mut delays = Delays::of(0);
    let mut batch: Vec<Slot<R>> = (0..count).map(|_| Box::pin(None)).collect();
    let mut context = Context::from_waker(Waker::noop());
    loop {
        for slot in &mut batch {
            slot.as_mut().set(Some(runtime.sleep(delays.far())));
            arm(slot.as_mut().as_pin_mut().expect("just set"), &mut context);
        }
        if give.send(batch).is_err() {
            return;
        }
        let Ok(returned) = back.recv() else { return };
        batch = returned;
    }
}

/// Moves a random one of `others` to a random moment.
pub fn rearm<R: Runtime>(runtime: &'static R, load: &Load) {
    let (threads, others, time) = (load.threads, load.others, load.time);
    let results = on_threads(runtime, load, move |thread| {
        let mut delays = Delays::of(thread);
        let mut slots = pending(runtime, others / threads, &mut delays);
        let bound = slots.len() as u64;
        let mut one = |()| {
            let (which, delay) = (delays.below(bound) as usize, delays.far());
            runtime.rearm(slots[which].as_mut().as_pin_mut().expect("all are there"), delay);
        };
        repeat(time / 10, &[(); DRAWN], &mut one);
        nanos(repeat(time, &[(); DRAWN], &mut one))
    });
    output::figure("ns", results.iter().sum::<f64>() / threads as f64);
}

/// Arms `count` timers for random moments within `spread`, and lets them expire: each calls a waker that
/// counts.
///
/// # Errors
/// If arming was not over when the first was due, or not all had expired long after the last was.
pub fn expire<R: Runtime>(runtime: &'static R, load: &Load) -> Result<(), String> {
    let (threads, count, spread) = (load.threads, load.count / load.threads, load.spread);
    let first = Instant::now() + load.lead;
    let expired = Arc::new(Count::default());
    let waker = Waker::from(Arc::clone(&expired));
    let slots = on_threads(runtime, load, move |thread| {
        let mut delays = Delays::of(thread);
        let mut context = Context::from_waker(&waker);
        let armed = |_| slot::<R>(runtime.sleep_until(first + delays.within(spread)), &mut context);
        (0..count).map(armed).collect::<Vec<_>>()
    });
    let Some(rest) = first.checked_duration_since(Instant::now() + Duration::from_millis(20)) else {
        return Err("arming took so long that the first were due".to_owned());
    };
    std::thread::sleep(rest);
    output::window_start();
    let wanted = (count * threads) as u64;
    while expired.get() < wanted {
        if first.elapsed() > spread + Duration::from_secs(20) {
            return Err(format!("{} of {wanted} expired", expired.get()));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    output::window_end(wanted);
    drop(slots);
    Ok(())
}

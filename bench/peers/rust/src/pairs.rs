//! Arm and cancel, cancel from another thread, move one of many, expiry of many.
//!
//! Nanoseconds are wall-clock time of the thread that does it, of the median of many short stretches; the CPU
//! time of everybody who works for it is counted from outside, over all stretches. Timers that stay are boxed
//! beforehand; those of a pair are on the stack.

use crate::load::{Delays, Form, Load};
use crate::output;
use crate::runtime::{Runtime, boxed, on_threads, poll_once};
use crate::sync::Count;
use std::pin::Pin;
use std::sync::{Arc, Barrier, mpsc};
use std::task::Waker;
use std::time::{Duration, Instant};

/// Random numbers drawn beforehand, and operations of a stretch.
const DRAWN: usize = 4096;

/// A timer that stays.
type Slot<R> = Pin<Box<Option<<R as Runtime>::Sleep>>>;

fn pending<R: Runtime>(runtime: &R, count: usize, delays: &mut Delays) -> Vec<Slot<R>> {
    (0..count).map(|_| boxed(runtime.sleep(delays.far()), Waker::noop())).collect()
}

/// Stretches of operations: how many in all, and how long each stretch took.
#[derive(Default)]
struct Stretches {
    operations: u64,
    lasted: Vec<Duration>,
}

impl Stretches {
    fn add(&mut self, operations: usize, lasted: Duration) {
        self.operations += operations as u64;
        self.lasted.push(lasted);
    }

    /// Nanoseconds per operation of the median stretch: one in which the thread lost its CPU does not count.
    fn nanos(mut self) -> f64 {
        self.lasted.sort_unstable();
        let each = self.operations as f64 / self.lasted.len() as f64;
        self.lasted[self.lasted.len() / 2].as_nanos() as f64 / each
    }
}

/// Calls `operation` with everything drawn, over and over for `time`.
fn repeat<R: Runtime, T: Copy>(
    runtime: &R,
    time: Duration,
    drawn: &[T],
    mut operation: impl FnMut(T),
) -> Stretches {
    let mut stretches = Stretches::default();
    let start = Instant::now();
    let mut last = start;
    while last - start < time {
        for &one in drawn {
            operation(one);
        }
        stretches.add(drawn.len(), last.elapsed());
        runtime.between_stretches();
        last = Instant::now();
    }
    stretches
}

/// Pairs on 1 or more threads at once, among `others` that the same threads armed.
pub fn arm_cancel<R: Runtime>(runtime: &'static R, load: &Load) {
    match load.form {
        Form::After => pairs(runtime, load, |far| far, || runtime.pair_after()),
        Form::At => pairs(runtime, load, |far| runtime.moment(Instant::now() + far), || runtime.pair_at()),
    }
}

/// `when` makes what a pair gets of a delay, beforehand; `pair` is called on each thread.
fn pairs<R, T, W, P>(runtime: &'static R, load: &Load, when: W, pair: impl Fn() -> P + Send + Sync + 'static)
where
    R: Runtime,
    T: Copy,
    W: Fn(Duration) -> T + Send + Sync + 'static,
    P: FnMut(T),
{
    let (threads, others, time) = (load.threads, load.others, load.time);
    let (barrier, total) = (Barrier::new(threads), Count::default());
    let results = on_threads(runtime, load, move |thread| {
        let mut delays = Delays::of(thread);
        let kept = pending(runtime, others / threads, &mut delays);
        let drawn: Vec<T> = (0..DRAWN).map(|_| when(delays.far())).collect();
        let mut pair = pair();
        repeat(runtime, time / 10, &drawn, &mut pair); // warm
        if barrier.wait().is_leader() {
            output::window_start();
        }
        barrier.wait();
        let measured = repeat(runtime, time, &drawn, &mut pair);
        total.add(measured.operations);
        if barrier.wait().is_leader() {
            output::window_end(total.get());
        }
        barrier.wait();
        drop(kept);
        measured.nanos()
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
        let mut stretches = Stretches::default();
        let end = Instant::now() + time;
        while Instant::now() < end {
            let mut batch = taken.recv().expect("the other arms until nobody takes it");
            let start = Instant::now();
            for slot in &mut batch {
                slot.as_mut().set(None);
            }
            stretches.add(batch.len(), start.elapsed());
            give_back.send(batch).expect("the other waits for it");
        }
        done.send(stretches.nanos()).expect("whoever waits for it is there");
    });
    output::figure("ns", result.recv().expect("the job ends"));
}

/// Arms batches until the canceller takes no more.
fn arm_batches<R: Runtime>(
    runtime: &R,
    count: usize,
    give: &mpsc::SyncSender<Vec<Slot<R>>>,
    back: &mpsc::Receiver<Vec<Slot<R>>>,
) {
    let mut delays = Delays::of(0);
    let mut batch: Vec<Slot<R>> = (0..count).map(|_| Box::pin(None)).collect();
    loop {
        for slot in &mut batch {
            slot.as_mut().set(Some(runtime.sleep(delays.far())));
            poll_once(slot.as_mut().as_pin_mut().expect("just set"));
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
        repeat(runtime, time / 10, &[(); DRAWN], &mut one);
        repeat(runtime, time, &[(); DRAWN], &mut one).nanos()
    });
    output::figure("ns", results.iter().sum::<f64>() / threads as f64);
}

/// Arms `count` timers for random moments within `spread`, and lets them expire: each calls what
/// counts.
///
/// # Errors
/// If arming was not over when the first was due.
///
/// # Panics
/// If not all had expired long after the last was due.
pub fn expire<R: Runtime>(runtime: &'static R, load: &Load) -> Result<(), String> {
    let (threads, count, spread) = (load.threads, load.count / load.threads, load.spread);
    let first = Instant::now() + load.lead;
    let expired = Arc::new(Count::default());
    let (waker, counted) = (Waker::from(Arc::clone(&expired)), Arc::clone(&expired));
    on_threads(runtime, load, move |thread| {
        let mut delays = Delays::of(thread);
        let mut due = || runtime.moment(first + delays.within(spread));
        let kept: Vec<_> = (0..count).map(|_| runtime.count_at(due(), &waker, &counted)).collect();
        // The process ends next, and some runtimes' timers must not be dropped by another thread.
        std::mem::forget(kept);
    });
    let Some(rest) = first.checked_duration_since(Instant::now() + Duration::from_millis(20)) else {
        return Err("arming took so long that the first were due".to_owned());
    };
    std::thread::sleep(rest);
    output::window_start();
    let wanted = (count * threads) as u64;
    while expired.get() < wanted {
        let patience = spread + Duration::from_secs(20);
        assert!(first.elapsed() < patience, "only {} of {wanted} expired", expired.get());
        std::thread::sleep(Duration::from_millis(20));
    }
    output::window_end(wanted);
    Ok(())
}

//! Tasks that sleep: in step, alone, beside one that blocks its worker; and a runtime with nothing to do.
//!
//! How late a sleep was is the time from the call to the first instruction after it, less what was asked for.

use crate::load::{Delays, Load};
use crate::output;
use crate::runtime::{Runtime, WORKERS};
use std::sync::mpsc::{self, Sender};
use std::time::{Duration, Instant};

/// The one that blocks does so for this long, and then sleeps for that long.
const BLOCKS: Duration = Duration::from_millis(100);
const RESTS: Duration = Duration::from_millis(20);

/// Those beside it sleep for 10 to 16 ms.
const NAP: Duration = Duration::from_millis(10);
const NAP_VARIES: Duration = Duration::from_millis(6);

/// What passes before and after a window, so that neither start nor end is in it.
const MARGIN: Duration = Duration::from_millis(200);

/// Microseconds since `due`, below 0 if that is yet to come.
fn micros_late(due: Instant) -> i64 {
    let now = Instant::now();
    let late = now.saturating_duration_since(due).as_micros() as i64;
    late - due.saturating_duration_since(now).as_micros() as i64
}

/// `count` timers, each due every `period`, with random phases.
pub fn periodic<R: Runtime>(runtime: &'static R, load: &Load) {
    let (done, results) = mpsc::channel();
    let mut delays = Delays::of(0);
    let start = Instant::now() + MARGIN;
    let end = start + load.time + 2 * MARGIN;
    for task in 0..load.count {
        let due = start + delays.within(load.period);
        let mut late = Late { micros: Vec::with_capacity(1024), done: done.clone() };
        runtime.repeat(task % WORKERS, load.period, due..end, move |due| late.micros.push(micros_late(due)));
    }
    drop(done);
    std::thread::sleep(2 * MARGIN);
    output::window_start();
    std::thread::sleep(load.time);
    output::window_end(0);
    let late: Vec<i64> = results.iter().flatten().collect();
    output::samples("lateness", &late);
}

/// How late something was, each time; sent when it has ended.
struct Late {
    micros: Vec<i64>,
    done: Sender<Vec<i64>>,
}

impl Drop for Late {
    fn drop(&mut self) {
        self.done.send(core::mem::take(&mut self.micros)).expect("whoever waits for it is there");
    }
}

/// One task sleeps for `period`, `count` times.
pub fn sleep<R: Runtime>(runtime: &'static R, load: &Load) {
    let (done, results) = mpsc::channel();
    let (count, period) = (load.count, load.period);
    output::window_start();
    runtime.spawn(0, async move {
        let mut late = Vec::with_capacity(count);
        for _ in 0..count {
            let due = Instant::now() + period;
            runtime.sleep(period).await;
            late.push(micros_late(due));
        }
        done.send(late).expect("whoever waits for it is there");
    });
    let late = results.recv().expect("the task ends");
    output::window_end(count as u64);
    output::samples("lateness", &late);
}

/// `count` tasks sleep for 10 to 16 ms, again and again for `time`; then the same with one more, which blocks
/// its worker for 100 of every 120 ms.
pub fn blocked<R: Runtime>(runtime: &'static R, load: &Load) {
    output::samples("calm", &naps(runtime, load));
    let end = Instant::now() + load.time;
    runtime.spawn(0, async move {
        while Instant::now() < end {
            std::thread::sleep(BLOCKS);
            runtime.sleep(RESTS).await;
        }
    });
    output::samples("blocked", &naps(runtime, load));
}

fn naps<R: Runtime>(runtime: &'static R, load: &Load) -> Vec<i64> {
    let (done, results) = mpsc::channel();
    let end = Instant::now() + load.time;
    for task in 0..load.count {
        runtime.spawn(task % WORKERS, nap(runtime, task, end, done.clone()));
    }
    drop(done);
    results.iter().flatten().collect()
}

async fn nap<R: Runtime>(runtime: &'static R, task: usize, end: Instant, done: Sender<Vec<i64>>) {
    let mut delays = Delays::of(task);
    let mut late = Vec::with_capacity(1024);
    while Instant::now() < end {
        let delay = NAP + delays.within(NAP_VARIES);
        let due = Instant::now() + delay;
        runtime.sleep(delay).await;
        late.push(micros_late(due));
    }
    done.send(late).expect("whoever waits for it is there");
}

/// Nothing is armed, nothing runs.
pub fn idle(load: &Load) {
    std::thread::sleep(MARGIN);
    output::window_start();
    std::thread::sleep(load.time);
    output::window_end(0);
}

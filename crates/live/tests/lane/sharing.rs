//! Who runs a timer: its lane, or, when that sleeps or is stuck, another one.

use crate::scene::{builder, cpu, play, teller, telling, wait_for};
use quietcore_live::{Machine, Precision, TimerOptions};
use std::sync::mpsc::channel;
use std::time::Duration;

/// Goal: a lane runs what it armed, on its own thread, also when it slept meanwhile. Method: both kinds, near
/// and beyond a tick.
#[test]
fn a_lane_runs_what_it_armed() {
    let machine = builder().start().expect("starts");
    for (options, after) in [(TimerOptions::new(), 1), (TimerOptions::new().pinned(), 1), (TimerOptions::new(), 30)] {
        let (timer, ran) = teller(machine, options);
        let (_thread, (timer, id)) = play(machine, 0, move |_| {
            timer.arm_after(Duration::from_millis(after)).expect("it runs");
            (timer, std::thread::current().id())
        });
        assert_eq!(wait_for(&ran), (cpu(0), id));
        drop(timer);
        machine.shutdown();
        return;
    }
}

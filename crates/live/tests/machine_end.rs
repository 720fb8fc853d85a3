//! What a machine leaves behind when it was shut down.
//!
//! One test, as machines of another would have descriptors and threads of their own.

use quietcore_live::{Cpu, CpuId, LaneThreads, Machine};
use std::fs;

/// Descriptors and threads of this process.
fn held() -> (usize, usize) {
    ["/proc/self/fd", "/proc/self/task"].map(|path| fs::read_dir(path).expect("mounted").count()).into()
}

/// Memory of this process that is in use, in KiB.
fn resident() -> u64 {
    let text = fs::read_to_string("/proc/self/status").expect("mounted");
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("the kernel says it");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}

/// Goal: no descriptor and no thread is left of a machine, and no queue: what is left is a third of it.
/// Method: some of every kind, started and shut down, also by a callback; one whose time can be paused has no
/// descriptor while it runs, either; then many of that kind, which has as many CPUs on any host.
#[test]
fn nothing_is_left() {
    let before = held();
    for _ in 0..20 {
        let paused = Machine::builder().virtual_time().start().expect("starts");
        assert_eq!(held().0, before.0, "it needs none");
        paused.shutdown();
        let helper = Machine::start().expect("starts");
        assert_eq!(held().0, before.0 + 1, "a timer of the kernel");
        helper.shutdown();
        let lanes = Machine::builder().lanes("0".parse().expect("a list"));
        let threads = lanes.clone().lane_threads(LaneThreads::new()).start().expect("starts");
        threads.shutdown();
        let claimed = lanes.start().expect("starts");
        let mut cpu = Cpu::claim(claimed, CpuId::default()).expect("no thread has it");
        cpu.turn();
        drop(cpu);
        claimed.shutdown();
        let by_callback = Machine::start().expect("starts");
        let timer = by_callback.timer(quietcore_live::TimerOptions::new(), |_| by_callback.shutdown());
        timer.arm_after(core::time::Duration::ZERO).expect("it runs");
        while by_callback.is_running() {
            std::thread::yield_now();
        }
        // It waits for the threads, which one in a callback does not.
        by_callback.shutdown();
        assert_eq!(held(), before);
    }
    let end = |count| {
        (0..count).for_each(|_| {
            let machine = Machine::builder().virtual_time().start().expect("starts");
            machine.shutdown();
        });
    };
    // What allocators keep at hand has grown before.
    end(100);
    let before = resident();
    end(400);
    let each = resident().saturating_sub(before) / 400;
    assert!(each < 32, "{each} KiB are left of each machine");
}

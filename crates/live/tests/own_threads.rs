//! Where the machine's own threads may run.
//!
//! One test, as machines of another would have threads of the same names.

use futures_executor::block_on;
use quietcore_live::isolation::HostWatch;
use quietcore_live::{CpuSet, Machine};
use rustix::thread::sched_getaffinity;
use std::fs;
use std::thread;
use std::time::Duration;

/// On which CPUs each of the machine's own threads may run.
fn allowed() -> Vec<String> {
    let tasks = fs::read_dir("/proc/self/task").expect("mounted");
    let own = tasks.filter_map(|task| {
        let task = task.ok()?.path();
        let name = fs::read_to_string(task.join("comm")).ok()?;
        name.starts_with("quietcore").then_some(task)
    });
    let list = |status: String| {
        status.lines().find_map(|line| Some(line.strip_prefix("Cpus_allowed_list:")?.trim().to_owned()))
    };
    own.filter_map(|task| list(fs::read_to_string(task.join("status")).ok()?)).collect()
}

/// Goal: the machine's own threads, and those of closures that block, keep off CPUs that are isolated from
/// the start, from tasks or from ticks. Method: two lanes, of which one is isolated; what the kernel says of
/// the helper, of the spare and of the thread that follows the host, once they have begun, and of a
/// closure's. When a call that isolates has returned they do, too, also if no lane drives that CPU.
#[test]
fn they_keep_off_what_is_isolated() {
    let list = |text: &str| text.parse::<CpuSet>().expect("a list");
    let builder = || Machine::builder().cpus(list("0-1")).lanes(list("0-1"));
    for builder in [builder().isolated(list("1")), builder().nohz_full(list("1"))] {
        let machine = builder.start().expect("starts");
        check(2);
        let watch = HostWatch::new().below("/there is no such folder");
        let _watch = machine.watch_host_isolation(watch, |_| ()).expect("there is a thread to be had");
        check(3);
        let closure = machine.spawn_blocking(|| sched_getaffinity(None).expect("it is this thread"));
        let mask = block_on(closure.expect("it runs")).expect("no panic");
        assert_eq!([0, 1].map(|cpu| mask.is_set(cpu)), [true, false]);
        machine.shutdown();
    }
    let machine = builder().lanes(list("0")).start().expect("starts");
    while allowed().len() < 2 {
        thread::sleep(Duration::from_millis(1));
    }
    // One that joins the machine's own after the call moves all of them.
    thread::sleep(Duration::from_millis(100));
    for (isolated, cpus) in [("1", "0"), ("", "0-1")] {
        machine.set_isolated(&list(isolated)).expect("CPU 0 is left");
        assert!(allowed().iter().all(|allowed| allowed == cpus), "on {:?}, not on {cpus}", allowed());
    }
    machine.shutdown();
}

/// So many threads at least, and all of them on CPU 0 alone.
fn check(count: usize) {
    let mut found = vec![];
    for _ in 0..1000 {
        found = allowed();
        if found.len() >= count && found.iter().all(|cpus| cpus == "0") {
            break;
        }
        thread::sleep(Duration::from_millis(10));
    }
    assert!(found.len() >= count && found.iter().all(|cpus| cpus == "0"), "they may run on {found:?}");
}

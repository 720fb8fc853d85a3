//! Where the machine's own threads may run.
//!
//! One test, as machines of another would have threads of the same names.

use quietcore_live::{CpuSet, Machine};
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

/// Goal: the machine's own threads keep off CPUs that are isolated from the start. Method: two lanes, of
/// which one is isolated; what the kernel says of the helper and of the spare, once both have begun.
#[test]
fn they_keep_off_what_is_isolated_from_the_start() {
    let list = |text: &str| text.parse::<CpuSet>().expect("a list");
    let builder = Machine::builder().cpus(list("0-1")).lanes(list("0-1"));
    let machine = builder.isolated(list("1")).start().expect("starts");
    let mut found = vec![];
    for _ in 0..1000 {
        found = allowed();
        if found.len() >= 2 && found.iter().all(|cpus| cpus == "0") {
            break;
        }
        thread::sleep(Duration::from_millis(10));
    }
    assert!(found.len() >= 2 && found.iter().all(|cpus| cpus == "0"), "they may run on {found:?}");
    machine.shutdown();
}

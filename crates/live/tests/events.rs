//! Events of machines for subscribers of `tracing`: which there are, on which thread, and that no lock of the
//! machine is held while a subscriber runs.
//!
//! The subscriber is the process's: one test, with everything in order.

use quietcore_live::{Cpu, CpuId, CpuSet, Machine, OnPanic, TimerOptions, isolation::HostWatch};
use std::cell::Cell;
use std::fmt::{Debug, Write as _};
use std::fs;
use std::sync::OnceLock;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

const PATIENCE: Duration = Duration::from_secs(20);
const SOON: Duration = Duration::from_millis(3);

/// The machine under test: the subscriber asks it for everything that takes a lock.
static MACHINE: OnceLock<&'static Machine> = OnceLock::new();

thread_local! {
    static IS_TOLD: Cell<bool> = const { Cell::new(false) };
}

/// What the subscriber got.
#[derive(Debug)]
struct Told {
    level: Level,
    /// Name of the thread.
    thread: String,
    /// Message and fields.
    text: String,
}

struct Collector(Sender<Told>);

struct Text(String);

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        write!(self.0, "{field}={value:?} ").expect("a string takes all");
    }
}

impl Subscriber for Collector {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "quietcore"
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        if IS_TOLD.replace(true) {
            return;
        }
        if let Some(machine) = MACHINE.get() {
            // With any of these locks held by the caller, the test would hang here.
            let _ = (machine.metrics(), machine.stalls(), machine.notes());
            let _ = Cpu::claim(machine, CpuId::default());
        }
        let mut text = Text(String::new());
        event.record(&mut text);
        let thread = thread::current().name().unwrap_or_default().to_owned();
        // The test may have ended.
        let _ = self.0.send(Told { level: *event.metadata().level(), thread, text: text.0 });
        IS_TOLD.set(false);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// The next event with `words`; others are passed over.
fn wait_for(told: &Receiver<Told>, words: &str) -> Told {
    let end = Instant::now() + PATIENCE;
    loop {
        let one = told.recv_timeout(end.saturating_duration_since(Instant::now()));
        let one = one.unwrap_or_else(|_| panic!("nobody was told: {words}"));
        if one.text.contains(words) {
            return one;
        }
    }
}

/// A folder that looks like a host whose cpusets isolate `list`.
fn host(list: &str) -> std::path::PathBuf {
    let root = std::env::temp_dir().join(format!("quietcore-events-{}", std::process::id()));
    for (path, text) in [
        ("proc/self/mounts", "cgroup2 /cg cgroup2 rw 0 0\n".to_owned()),
        ("proc/self/cgroup", "0::/\n".to_owned()),
        ("cg/cpuset.cpus.isolated", format!("{list}\n")),
    ] {
        let path = root.join(path);
        fs::create_dir_all(path.parent().expect("in a folder")).expect("a folder of the test's own");
        fs::write(path, text).expect("it can be written");
    }
    root
}

/// The sentinel tells of a lane that no other looks after.
fn tell_of_a_lone_lane(told: &Receiver<Told>) {
    let lanes: CpuSet = "0".parse().expect("a list");
    let machine = Machine::builder().lanes(lanes).start().expect("starts");
    let timer = machine.timer(TimerOptions::new(), |_| ());
    let mut lane = Cpu::claim(machine, CpuId::default()).expect("it is free");
    timer.arm_after(SOON).expect("it runs");
    lane.turn();
    let stall = wait_for(told, "nothing of the machine's");
    assert!(stall.text.contains("cpu=0") && stall.text.contains("number=1 "), "{stall:?}");
    drop(lane);
    machine.shutdown();
    assert!(wait_for(told, "machine shut down").text.contains("cpus="));
}

/// Goal: each kind of event is told, off the hot path and with no lock held. Method: a machine that starts,
/// whose lanes come, get stuck, panic and leave, whose isolation changes in each way, and that ends; the
/// subscriber takes all locks of the machine at each event.
#[test]
fn each_kind_of_event_is_told() {
    let (sender, told) = channel();
    tracing::subscriber::set_global_default(Collector(sender)).expect("the only one");
    let own = thread::current().name().expect("a test has a name").to_owned();
    let lanes: CpuSet = "0-1".parse().expect("a list");
    let machine = Machine::builder().lanes(lanes).on_panic(OnPanic::Continue).start().expect("starts");
    MACHINE.set(machine).expect("the only one");
    let started = wait_for(&told, "machine started");
    assert_eq!((started.level, &started.thread), (Level::INFO, &own));
    assert!(started.text.contains("lanes=0-1"), "{started:?}");

    let stuck = machine.timer(TimerOptions::new().pinned(), move |_| {
        let end = Instant::now() + PATIENCE;
        while machine.stalls().is_empty() && Instant::now() < end {
            thread::sleep(Duration::from_millis(20));
        }
        panic!("a panic that the test wants");
    });
    let play = |name: &str, index: u64, first: Box<dyn FnOnce() + Send>| {
        let play = move || {
            let mut lane = Cpu::claim(machine, CpuId::new(index).expect("small")).expect("it is free");
            first();
            while machine.is_running() {
                if !lane.turn().has_more {
                    lane.park();
                }
            }
        };
        thread::Builder::new().name(name.to_owned()).spawn(play).expect("a thread")
    };
    let watcher = play("watcher", 1, Box::new(|| ()));
    let claimed = wait_for(&told, "lane claimed");
    assert_eq!((claimed.level, claimed.thread.as_str()), (Level::DEBUG, "watcher"));
    let waits = machine.timer(TimerOptions::new(), |_| ());
    let first = move || {
        stuck.arm_after(SOON).expect("it runs");
        waits.arm_after(SOON * 2).expect("it runs");
        std::mem::forget((stuck, waits));
    };
    let lane = play("lane", 0, Box::new(first));
    assert!(wait_for(&told, "lane claimed").text.contains("cpu=0"));
    let stall = wait_for(&told, "stall: lane 0");
    assert_eq!((stall.level, stall.thread.as_str()), (Level::WARN, "quietcore-tell"), "not in a turn");
    assert!(stall.text.contains("each_kind_of_event_is_told::{{closure}}"), "{stall:?}");
    let panicked = wait_for(&told, "a callback panicked");
    assert_eq!((panicked.level, panicked.thread.as_str()), (Level::ERROR, "quietcore-tell"));
    assert!(panicked.text.contains("cpu=0"), "{panicked:?}");

    tell_of_a_lone_lane(&told);
    machine.set_isolated(&"0".parse().expect("a list")).expect("one is left");
    let isolated = wait_for(&told, "isolation changed");
    assert_eq!((isolated.level, &isolated.thread), (Level::INFO, &own));
    assert!(isolated.text.contains("isolated=0 ") && isolated.text.contains("evacuated="), "{isolated:?}");
    let root = host("1");
    let guard = machine.watch_host_isolation(HostWatch::new().below(&root), |_| ()).expect("a thread");
    assert_eq!(wait_for(&told, "host isolation changed").thread, "quietcore-host");
    drop(guard);
    fs::remove_dir_all(root).expect("the test's own");

    machine.shutdown();
    machine.shutdown();
    [watcher, lane].into_iter().for_each(|thread| thread.join().expect("no panic"));
    let all: Vec<Told> = told.try_iter().collect();
    let with = |words: &str| all.iter().filter(|one| one.text.contains(words)).collect::<Vec<_>>();
    assert_eq!(with("lane left").len(), 2, "{all:?}");
    let [end] = with("machine shut down")[..] else { panic!("{all:?}") };
    assert_eq!(end.thread, "quietcore-tell", "also when a callback ends the machine");
}

//! No thread is woken for nothing: what the kernel counts as context switches of each thread, while nothing
//! is due.
//!
//! One test at a time, as the threads of another would be counted too. The bounds are far above what a quiet
//! machine does and far below what one wake-up per tick would come to.

use quietcore_live::softirq::Vector;
use quietcore_live::{Cpu, CpuId, LaneThreads, Machine, TimerOptions};
use std::fs;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// For the test that counts.
static ALONE: Mutex<()> = Mutex::new(());

const SPAN: Duration = Duration::from_millis(600);

/// A sentinel and a spare; the third tells subscribers what lanes find, which is little.
const OWN: usize = if cfg!(feature = "tracing") { 3 } else { 2 };

/// Half of the silence after which a lane counts as stalled.
const PAUSE: Duration = Duration::from_millis(1);

/// A figure of a thread's status.
fn figure(thread: i32, name: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/self/task/{thread}/status")).expect("it lives");
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.and_then(|count| count.trim().parse().ok()).expect("the kernel counts")
}

/// Wake-ups of a thread so far: how often it gave up its CPU by itself.
fn switches(thread: i32) -> u64 {
    figure(thread, "voluntary_ctxt_switches")
}

/// For how long a thread has had a CPU so far, in units of 10 ms.
fn run_time(thread: i32) -> u64 {
    let stat = fs::read_to_string(format!("/proc/self/task/{thread}/stat")).expect("it lives");
    let (_name, rest) = stat.rsplit_once(')').expect("a name");
    // In user mode, and in the kernel.
    rest.split_whitespace().skip(11).take(2).map(|time| time.parse::<u64>().expect("a number")).sum()
}

/// Threads of the machine itself, by their names; as soon as there are `count`.
fn begun_threads(count: usize) -> Vec<i32> {
    let own = (0..1000).find_map(|_| {
        // A thread gets its name when it begins.
        thread::sleep(Duration::from_millis(5));
        Some(own_threads()).filter(|own| own.len() == count)
    });
    own.expect("all of them begin")
}

/// Threads of the machine itself, by their names.
fn own_threads() -> Vec<i32> {
    let tasks = fs::read_dir("/proc/self/task").expect("mounted");
    let numbers = tasks.filter_map(|task| task.ok()?.file_name().to_str()?.parse().ok());
    let name =
        |thread: &i32| fs::read_to_string(format!("/proc/self/task/{thread}/comm")).unwrap_or_default();
    numbers.filter(|thread| name(thread).starts_with("quietcore")).collect()
}

/// By how much the switches of `threads` grow in [`SPAN`], after things have settled.
fn growth(threads: &[i32]) -> Vec<u64> {
    thread::sleep(SPAN / 3);
    let before: Vec<u64> = threads.iter().map(|thread| switches(*thread)).collect();
    thread::sleep(SPAN);
    threads.iter().zip(before).map(|(thread, before)| switches(*thread) - before).collect()
}

/// What a lane is to do, and what it notes.
#[derive(Default)]
struct Notes {
    /// It never parks.
    is_busy: AtomicBool,
    /// How many times [`PAUSE`] its turns paused.
    pauses: AtomicU64,
}

/// A thread that drives `index` until the machine is shut down, and its number. It parks unless it is busy.
fn play(machine: &'static Machine, index: u64, notes: &Arc<Notes>) -> i32 {
    let (sender, receiver) = channel();
    let notes = Arc::clone(notes);
    thread::spawn(move || {
        let mut cpu = Cpu::claim(machine, CpuId::new(index).expect("small")).expect("free");
        sender.send(rustix::thread::gettid().as_raw_nonzero().get()).expect("the test waits");
        let mut turned = Instant::now();
        while machine.is_running() {
            // Relaxed: only that it comes counts.
            if !cpu.turn().has_more && !notes.is_busy.load(Ordering::Relaxed) {
                cpu.park();
            }
            let before = std::mem::replace(&mut turned, Instant::now());
            let pauses = (turned - before).as_nanos() / PAUSE.as_nanos();
            notes.pauses.fetch_add(pauses as u64, Ordering::Relaxed);
        }
    });
    receiver.recv().expect("it begins")
}

/// Goal: two lanes with nothing near, their sentinel and their spare sleep; and while one lane is busy with a
/// timer per millisecond, the others sleep on. Method: switches over a span.
#[test]
fn nobody_is_woken_for_nothing() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let machine = Machine::builder().lanes("0-1".parse().expect("a list")).start().expect("starts");
    let notes = Arc::new(Notes::default());
    let (first, second) = (play(machine, 0, &notes), play(machine, 1, &Arc::default()));
    let mut sleepers = vec![second];
    sleepers.extend(begun_threads(OWN));
    let far: Vec<_> = (0..100).map(|_| machine.timer(TimerOptions::new(), |_| {})).collect();
    for timer in &far {
        timer.arm_after(Duration::from_secs(3600)).expect("it runs");
    }
    let all: Vec<i32> = sleepers.iter().copied().chain([first]).collect();
    let idle = growth(&all);
    assert!(idle.iter().all(|growth| *growth <= 5), "idle: {idle:?} of {all:?}");

    let runs = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&runs);
    let periodic = machine.timer(TimerOptions::new(), move |_| {
        counted.fetch_add(1, Ordering::Relaxed);
    });
    notes.is_busy.store(true, Ordering::Relaxed);
    // Kicks the first lane, which is busy from then on.
    let bell = machine.timer(TimerOptions::new(), |_| {});
    bell.arm_on(CpuId::new(0).expect("small"), machine.now()).expect("it has a lane");
    periodic.arm_periodic(machine.now(), Duration::from_millis(1)).expect("it runs");
    let before = notes.pauses.load(Ordering::Relaxed);
    let busy = growth(&sleepers);
    // A busy lane that the host takes off its CPU for long is rightly found silent, and another one runs the
    // timer until it is back.
    let bound = 10 + 4 * (notes.pauses.load(Ordering::Relaxed) - before);
    assert!(runs.load(Ordering::Relaxed) > 50, "the timer runs");
    assert!(busy.iter().all(|growth| *growth <= bound), "busy: {busy:?} of {sleepers:?}, bound {bound}");
    notes.is_busy.store(false, Ordering::Relaxed);
    drop((periodic, far));
    machine.shutdown();
}

/// Goal: threads of a machine that has nothing to do take no CPU: ready-made lanes, their ksoftirqds, the
/// sentinel and the spare wait, and do not ask again and again. Method: switches and CPU time over a span.
#[test]
fn threads_with_nothing_to_do_take_no_cpu() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let builder = Machine::builder().lanes("0-1".parse().expect("a list")).lane_threads(LaneThreads::new());
    let machine = builder.softirq(Vector::BLOCK, |_| ()).start().expect("starts");
    let threads = begun_threads(4 + OWN);
    let before: u64 = threads.iter().map(|thread| run_time(*thread)).sum();
    let idle = growth(&threads);
    let taken = threads.iter().map(|thread| run_time(*thread)).sum::<u64>() - before;
    assert!(idle.iter().all(|growth| *growth <= 5), "switches: {idle:?} of {threads:?}");
    assert!(taken <= 5, "{taken} times 10 ms");
    machine.shutdown();
}

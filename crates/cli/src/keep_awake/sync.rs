//! Two threads of one CPU that sleep in turns, with wheel timers of the kernel.

use super::turn::{SleeperTurn, turn};
use quietcore_core::{CpuId, CpuSet};
use quietcore_trace::live;
use std::io::{self, ErrorKind};
use std::os::unix::net::UnixDatagram;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// No tick has this number.
const NEVER: u64 = u64::MAX;

/// The sleepers of several CPUs.
#[derive(Debug)]
pub(super) struct AwakeCpus {
    stop: Arc<AtomicBool>,
    pairs: Vec<SleeperPair>,
}

/// What both sleepers of a CPU have done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SleeperTotals {
    pub(super) cpu: CpuId,
    /// How often one woke up.
    pub(super) wakeups: u64,
    /// How often one stayed awake for up to a tick, to take its turn.
    pub(super) turns_put_right: u64,
    pub(super) cpu_nanos: u64,
}

/// The threads of one CPU.
#[derive(Debug)]
struct SleeperPair {
    cpu: CpuId,
    counts: Arc<SleeperCounts>,
    threads: Vec<JoinHandle<io::Result<()>>>,
}

#[derive(Debug, Default)]
struct SleeperCounts {
    wakeups: AtomicU64,
    turns_put_right: AtomicU64,
    cpu_nanos: AtomicU64,
}

impl AwakeCpus {
    /// Starts two sleepers on each.
    pub(super) fn start(cpus: impl Iterator<Item = CpuId>) -> io::Result<Self> {
        let mut awake = Self { stop: Arc::new(AtomicBool::new(false)), pairs: Vec::new() };
        for cpu in cpus {
            match SleeperPair::start(cpu, &awake.stop) {
                Ok(pair) => awake.pairs.push(pair),
                Err(error) => {
                    let _ = awake.end();
                    return Err(error);
                }
            }
        }
        Ok(awake)
    }

    /// Whether a sleeper has ended by itself.
    pub(super) fn has_failed(&self) -> bool {
        self.pairs.iter().any(|pair| pair.threads.iter().any(JoinHandle::is_finished))
    }

    /// Tells the sleepers to stop, waits for them, and says what they have done, or why one ended.
    pub(super) fn end(self) -> io::Result<Vec<SleeperTotals>> {
        self.stop.store(true, Ordering::Relaxed); // pairs with nothing: it carries no other data
        self.pairs.into_iter().map(SleeperPair::join).collect()
    }
}

impl SleeperPair {
    fn start(cpu: CpuId, stop: &Arc<AtomicBool>) -> io::Result<Self> {
        let counts = Arc::new(SleeperCounts::default());
        let armed = Arc::new([AtomicU64::new(NEVER), AtomicU64::new(NEVER)]);
        let mut threads = Vec::new();
        for number in 0..2 {
            let (counts, armed, stop) = (Arc::clone(&counts), Arc::clone(&armed), Arc::clone(stop));
            let name = format!("awake-{}-{number}", cpu.index());
            let run = move || {
                let sleeper = Sleeper::new(cpu)?;
                sleeper.run([&armed[number], &armed[1 - number]], &counts, &stop)
            };
            threads.push(std::thread::Builder::new().name(name).spawn(run)?);
        }
        Ok(Self { cpu, counts, threads })
    }

    fn join(self) -> io::Result<SleeperTotals> {
        for thread in self.threads {
            thread.join().map_err(|_| io::Error::other("a sleeper panicked"))??;
        }
        let counted = |count: &AtomicU64| count.load(Ordering::Relaxed); // the join is behind both
        let SleeperCounts { wakeups, turns_put_right, cpu_nanos } = &*self.counts;
        Ok(SleeperTotals {
            cpu: self.cpu,
            wakeups: counted(wakeups),
            turns_put_right: counted(turns_put_right),
            cpu_nanos: counted(cpu_nanos),
        })
    }
}

#[derive(Debug)]
struct Sleeper {
    /// Nothing is sent to it: a receive ends when its timer does.
    socket: UnixDatagram,
    /// Keeps the socket connected.
    _other: UnixDatagram,
}

impl Sleeper {
    fn new(cpu: CpuId) -> io::Result<Self> {
        let only = CpuSet::from_iter([cpu]);
        let chosen = live::run_on(&only)?;
        if chosen != only {
            return Err(io::Error::other(format!("CPU {} may not be used; CPUs {chosen} may", cpu.index())));
        }
        // It has to arm its timer soon after it wakes up. Without the right to it, it goes as others.
        let _ = live::go_before_others();
        let (socket, other) = UnixDatagram::pair()?;
        // The kernel rounds it up to a tick.
        socket.set_read_timeout(Some(Duration::from_micros(1)))?;
        Ok(Self { socket, _other: other })
    }

    fn run(&self, armed: [&AtomicU64; 2], counts: &SleeperCounts, stop: &AtomicBool) -> io::Result<()> {
        let [mine, partners] = armed;
        // Nothing but numbers is told, and a stale one costs a tick: no order is needed.
        while !stop.load(Ordering::Relaxed) {
            let now = tick_now();
            let partner = Some(partners.load(Ordering::Relaxed)).filter(|&tick| tick != NEVER);
            match turn(now, partner) {
                SleeperTurn::Arm => {
                    mine.store(now, Ordering::Relaxed);
                    self.sleep()?;
                    counts.wakeups.fetch_add(1, Ordering::Relaxed);
                }
                SleeperTurn::StayAwake => {
                    counts.turns_put_right.fetch_add(1, Ordering::Relaxed);
                    while tick_now() == now && !stop.load(Ordering::Relaxed) {
                        std::thread::yield_now(); // others that want the CPU keep it awake as well
                    }
                }
            }
        }
        let used = nanos(rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime));
        counts.cpu_nanos.fetch_add(used, Ordering::Relaxed);
        Ok(())
    }

    /// Until two ticks later.
    fn sleep(&self) -> io::Result<()> {
        match self.socket.recv(&mut [0]) {
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => Ok(()),
            Err(error) => Err(error),
            Ok(_) => Ok(()),
        }
    }
}

/// Names the tick that the kernel counts now, which may be late: this clock is set when it counts one (Linux
/// v6.12, kernel/time/tick-sched.c, `tick_do_update_jiffies64`), so it differs in different ticks. The exact
/// clock does not know how late the count is.
fn tick_now() -> u64 {
    nanos(rustix::time::clock_gettime(rustix::time::ClockId::MonotonicCoarse))
}

fn nanos(time: rustix::time::Timespec) -> u64 {
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// How long a tick is.
pub(super) fn tick() -> Duration {
    Duration::from_nanos(nanos(rustix::time::clock_getres(rustix::time::ClockId::MonotonicCoarse)))
}

#[cfg(test)]
mod tests {
    use super::{tick, tick_now};

    /// Goal: what names a tick stays the same in it. Method: a thousand pairs of looks, one behind the other;
    /// few have a tick between them.
    #[test]
    fn a_tick_has_one_name() {
        let is_same = |_: &u32| tick_now() == tick_now();
        assert!((0..1_000).filter(is_same).count() > 500);
        let first = tick_now();
        std::thread::sleep(3 * tick());
        assert_ne!(tick_now(), first);
    }
}

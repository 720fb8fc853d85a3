//! What a thread gets that claims a CPU: turns, idle, a descriptor for kicks, and a way to block politely.
//!
//! A [`Cpu`] belongs to the thread that claimed it and cannot leave it. While it lives, timers that this
//! thread arms go to its CPU's own bases, for the price of a lock without contention. Dropping it takes
//! the CPU offline: its timers, pinned ones too, go to other CPUs, which run them.

use super::claim::{ClaimError, WaitBy};
use super::current;
use super::outcome::TurnStats;
use super::slot::ThreadSlot;
use super::turn::LaneDriver;
use crate::machine::{EnterGuard, Machine};
use crate::slack::{self, Slack};
use crate::task::{LiveTasks, end_local_tasks};
use core::marker::PhantomData;
use quietcore_core::lane::{IdleUntil, Sleeper};
use quietcore_core::{CpuId, Nanos};
use std::os::fd::BorrowedFd;

/// Wakes the lane of a CPU when it waits, from any thread. Cheap to copy; outlives the lane.
#[derive(Clone, Copy, Debug)]
pub struct Unparker {
    slot: &'static ThreadSlot,
}

impl Unparker {
    /// Ends the lane's wait, or the one that it is about to begin; to a lane that is up it does nothing.
    /// Leave first what the lane is to find. Cost: a fence and a load; 7 us if the lane waits.
    #[inline]
    pub fn unpark(&self) {
        let _ = self.slot.world.kick();
    }
}

/// A CPU of the machine, driven by the thread that claimed it: a *lane*.
///
/// ```
/// use quietcore::{Cpu, CpuId, Machine};
///
/// let machine = Machine::builder().lanes("0".parse()?).start()?;
/// let mut cpu = Cpu::claim(machine, CpuId::new(0)?)?;
/// for _ in 0..3 {
///     cpu.turn(); // runs what is due; the program's own work goes here, too
/// }
/// drop(cpu); // its timers are for others now
/// machine.shutdown();
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// A loop that has nothing else to do waits with [`park`](Self::park).
#[derive(Debug)]
pub struct Cpu {
    lane: LaneDriver,
    tasks: LiveTasks,
    waits: WaitBy,
    /// How late the kernel may end this thread's waits, as it was before the claim, in ns.
    slack: Option<Slack>,
    _entered: EnterGuard,
    /// Of the thread that claimed it.
    thread: PhantomData<*const ()>,
}

impl Cpu {
    /// Claims `cpu` for the calling thread, which will wait with [`park`](Self::park). The machine becomes
    /// the thread's current one, and the thread's waits become precise (its timer slack is 1 ns), until the
    /// CPU is dropped.
    ///
    /// # Errors
    /// See [`ClaimError`].
    pub fn claim(machine: &'static Machine, cpu: CpuId) -> Result<Self, ClaimError> {
        Self::claim_with(machine, cpu, WaitBy::Park)
    }

    /// The same for a thread that waits as `waits` says.
    ///
    /// # Errors
    /// See [`ClaimError`].
    pub fn claim_with(machine: &'static Machine, cpu: CpuId, waits: WaitBy) -> Result<Self, ClaimError> {
        if let Some(cpu) = current::any() {
            return Err(ClaimError::ThreadHasCpu { cpu });
        }
        let slot = machine.claim_slot(cpu, waits)?;
        machine.lane_claimed(cpu);
        let entered = machine.enter();
        current::enter(core::ptr::from_ref(machine).cast(), cpu, machine.now());
        let slack = slack::take_away();
        let lane = LaneDriver::new(machine, slot);
        machine.open_claimed(cpu);
        Ok(Self { lane, tasks: LiveTasks::default(), waits, slack, _entered: entered, thread: PhantomData })
    }

    /// Which CPU it is.
    #[must_use]
    pub fn cpu(&self) -> CpuId {
        self.lane.cpu()
    }

    /// Whose CPU it is.
    #[must_use]
    pub const fn machine(&self) -> &'static Machine {
        self.lane.machine
    }

    /// Runs what is due on this CPU, and on those that it looks after: at most 256 timers, or 2 ms of them.
    /// Ends a wait, if there was one. Call it between any two pieces of work, at least once per tick; the
    /// thread that does not for [`stall_after`](crate::MachineBuilder::stall_after) is taken for stuck.
    ///
    /// Cost when nothing is due: a reading of the cycle counter and a few loads; once per tick a look at the
    /// clock and at the neighbours. On an isolated CPU with nothing armed the loads alone. Does nothing once
    /// the machine was shut down.
    ///
    /// # Panics
    /// Never because of user code: its panics are caught and counted, or end the process
    /// ([`OnPanic`](crate::OnPanic)).
    #[inline]
    pub fn turn(&mut self) -> TurnStats {
        if self.lane.has_nothing() {
            return TurnStats::default();
        }
        self.turn_by_the_clock()
    }

    #[inline(never)]
    fn turn_by_the_clock(&mut self) -> TurnStats {
        let ran = self.lane.turn();
        let (items, softirqs) = (ran.items, ran.softirqs);
        TurnStats { ran: ran.timers, items, softirqs, has_more: self.lane.has_more() }
    }

    pub(crate) const fn local_tasks(&self) -> &LiveTasks {
        &self.tasks
    }

    /// Nothing to run: says how long the thread may wait. From now on kicks arrive at
    /// [`kick_fd`](Self::kick_fd), until [`exit_idle`](Self::exit_idle) or [`turn`](Self::turn). Not while
    /// the last turn said that it has more: then the wait is over at once.
    ///
    /// Cost: up to a tick ahead two fences and a look at the cycle counter; else its bases' locks and a walk
    /// of the hierarchy.
    pub fn enter_idle(&mut self) -> IdleUntil {
        self.lane.enter_idle()
    }

    /// The wait is over, or the program has work: the machine counts on this lane again. [`turn`](Self::turn)
    /// does it, too.
    pub fn exit_idle(&mut self) {
        self.lane.end_idle();
    }

    /// The moment, on the machine's clock, at which a lane that goes on working must turn: the end of the
    /// tick that `now` is in, or what is due on its CPU before that. For loops that cannot look at every
    /// moment, and let a timer of the kernel remind them.
    #[must_use]
    pub fn next_turn(&self, now: Nanos) -> Nanos {
        let machine = self.lane.machine;
        machine.lanes.table().next_turn(&machine.core, self.cpu(), now)
    }

    /// Waits until something is due or a kick comes; returns awake. Cost: a system call.
    ///
    /// # Panics
    /// When the CPU was claimed to be waited for by its descriptor.
    pub fn park(&mut self) {
        self.park_unless(|| false);
    }

    /// The same for a thread that gets work from others, too: `has_work` is asked when kicks already arrive.
    /// So the thread that leaves work and then calls [`Unparker::unpark`] is either seen by `has_work` or
    /// ends the wait.
    ///
    /// # Panics
    /// When the CPU was claimed to be waited for by its descriptor.
    ///
    /// ```
    /// # use quietcore::{Cpu, CpuId, Machine};
    /// use std::sync::mpsc;
    ///
    /// # let machine = Machine::builder().lanes("0".parse()?).start()?;
    /// let mut cpu = Cpu::claim(machine, CpuId::new(0)?)?;
    /// let (sender, receiver) = mpsc::channel();
    /// let unparker = cpu.unparker();
    /// std::thread::spawn(move || {
    ///     sender.send("work").expect("the lane receives it");
    ///     unparker.unpark();
    /// });
    /// let mut work = None;
    /// while work.is_none() {
    ///     cpu.turn();
    ///     cpu.park_unless(|| {
    ///         work = receiver.try_recv().ok();
    ///         work.is_some()
    ///     });
    /// }
    /// # drop(cpu);
    /// # machine.shutdown();
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn park_unless(&mut self, has_work: impl FnOnce() -> bool) {
        assert!(self.waits == WaitBy::Park, "this CPU was claimed with a descriptor to wait for");
        self.lane.park(has_work);
    }

    /// For other threads, to wake this one.
    #[must_use]
    pub fn unparker(&self) -> Unparker {
        Unparker { slot: self.lane.slot() }
    }

    /// Runs `block`, which may take long: everything that others can do for this CPU they do meanwhile, as if
    /// it had been found stuck, but at once. Its pinned timers wait.
    pub fn block_in_place<R>(&mut self, block: impl FnOnce() -> R) -> R {
        /// Comes back also when `block` panics.
        struct Absence<'a>(&'a mut Cpu);

        impl Drop for Absence<'_> {
            fn drop(&mut self) {
                self.0.end_block();
            }
        }

        self.begin_block();
        let _absence = Absence(self);
        block()
    }

    /// The beginning of what [`block_in_place`](Self::block_in_place) does, for callers that cannot give a
    /// closure. [`end_block`](Self::end_block) must follow before the next turn.
    pub fn begin_block(&mut self) {
        if self.lane.machine.is_running() {
            self.lane.go_absent();
        }
    }

    /// The end of it.
    pub fn end_block(&mut self) {
        if self.lane.machine.is_running() {
            self.lane.return_from_block();
        }
    }

    /// Readable when a kick wants the lane awake while it is idle; for `epoll`. It is read by
    /// [`exit_idle`](Self::exit_idle) or [`turn`](Self::turn), not by the caller. `None` unless the CPU was
    /// claimed with [`WaitBy::KickFd`].
    #[must_use]
    pub fn kick_fd(&self) -> Option<BorrowedFd<'_>> {
        self.lane.parker().descriptor()
    }
}

impl Drop for Cpu {
    fn drop(&mut self) {
        if !self.lane.machine.is_forked() {
            end_local_tasks(self.lane.machine, self.cpu(), &self.tasks);
        }
        current::leave();
        slack::give_back(self.slack);
        // Before another thread can claim it, and be counted there.
        self.machine().lane_left(self.cpu());
        self.lane.leave();
        if self.machine().is_over() && !self.machine().is_forked() {
            // What this thread was about to run when the others were dropped.
            self.machine().end_tasks();
        }
    }
}

//! Threads that play CPUs while they do something else, in the ways in which a program may.
//!
//! Between its actions such a thread turns, and then waits: in the machine's own way, or for a descriptor, or
//! for something foreign with the machine told of it, or without telling any thread, which is a stall.

use crate::random::Random;
use crate::scene::Rouser;
use core::time::Duration;
use quietcore_live::{Cpu, CpuId, Machine, Precision, TimerHandle, TimerOptions, lane::WaitBy};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::error::Error;
use std::thread;

/// How long a lane waits at most before it goes on acting.
const REST: Duration = Duration::from_millis(1);

/// The longest stall.
const STALL_MAX: u64 = 20_000;

/// A lane, and what ends its waits.
pub(crate) struct Player {
    cpu: Cpu,
    /// Runs on this lane, so that a wait in the machine's own way ends.
    pace: TimerHandle,
    random: Random,
}

impl Player {
    /// Claims `number` for the calling thread, and moves the thread there.
    ///
    /// # Errors
    /// When another thread has it, or the thread may not run there.
    pub(crate) fn new(
        machine: &'static Machine,
        number: CpuId,
        mut random: Random,
    ) -> Result<Self, Box<dyn Error + Send + Sync>> {
        stay_on(number)?;
        let waits = if random.below(2) == 0 { WaitBy::Park } else { WaitBy::KickFd };
        let cpu = Cpu::claim_with(machine, number, waits)?;
        let options = TimerOptions::new().precision(Precision::Tick).pinned();
        let pace = machine.timer(options, |_run| {});
        Ok(Self { cpu, pace, random })
    }

    /// Ends its waits.
    pub(crate) fn rouser(&self) -> Rouser {
        Rouser::Lane(self.cpu.unparker())
    }

    /// Turns, and waits for a moment.
    pub(crate) fn rest(&mut self) {
        while self.cpu.turn().has_more {}
        match self.random.below(200) {
            0 => thread::sleep(Duration::from_micros(self.random.below(STALL_MAX))),
            1 => self.cpu.block_in_place(|| thread::sleep(REST)),
            _ if self.cpu.kick_fd().is_some() => self.wait_for_descriptor(),
            _ => self.park(),
        }
    }

    fn park(&mut self) {
        // The machine ends when all lanes have; should it have ended, there is no wait.
        if self.pace.arm_after(REST).is_ok() {
            self.cpu.park();
        }
    }

    fn wait_for_descriptor(&mut self) {
        let idle = self.cpu.enter_idle();
        let rest = idle.timeout(self.cpu.machine().now()).map_or(REST, |until| until.min(REST));
        let rest = Timespec { tv_sec: 0, tv_nsec: i64::from(rest.subsec_nanos()) };
        if let Some(descriptor) = self.cpu.kick_fd() {
            // A signal ends the wait, too.
            let _ = poll(&mut [PollFd::from_borrowed_fd(descriptor, PollFlags::IN)], Some(&rest));
        }
        self.cpu.exit_idle();
    }
}

/// The calling thread runs on this CPU only, until a thread changes that.
///
/// # Errors
/// When the process may not run there.
pub(crate) fn stay_on(cpu: CpuId) -> rustix::io::Result<()> {
    let mut set = rustix::thread::CpuSet::new();
    set.set(cpu.index());
    rustix::thread::sched_setaffinity(None, &set)
}

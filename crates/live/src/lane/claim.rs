//! How a thread gets a CPU, and how the CPU comes online and goes offline with it.
//!
//! Claims, leaves and isolation are under one lock of the machine, `LaneSlots::control`. So the table of
//! where foreign threads arm, and each slot's hint whether it is standalone, are written last by the last
//! change.

use super::slot::ThreadSlot;
use crate::machine::Machine;
use crate::words::slot_owner::Waits;
use quietcore_core::CpuId;
use std::io;

/// How a lane waits when it has nothing to run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum WaitBy {
    /// In [`Cpu::park`](crate::Cpu::park).
    #[default]
    Park,
    /// In its own `epoll`, for [`Cpu::kick_fd`](crate::Cpu::kick_fd) and whatever else it waits for.
    KickFd,
}

/// Why a thread did not get a CPU.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClaimError {
    /// The CPU is not in [`MachineBuilder::lanes`](crate::MachineBuilder::lanes), or this process may not run
    /// on it.
    #[error("CPU {cpu} is not one of this machine's lanes")]
    NotALane {
        /// The CPU.
        cpu: CpuId,
    },
    /// Another thread has it.
    #[error("another thread has claimed CPU {cpu}")]
    Taken {
        /// The CPU.
        cpu: CpuId,
    },
    /// This thread has a CPU already; one is all that it can drive.
    #[error("this thread has claimed CPU {cpu}, and can claim one only")]
    ThreadHasCpu {
        /// The one that it has.
        cpu: CpuId,
    },
    /// The machine was shut down, or is a forked parent's.
    #[error("the machine does not run in this process")]
    NotRunning,
    /// The system has no descriptor left.
    #[error("cannot make a descriptor: {0}")]
    System(io::Error),
}

impl Machine {
    /// The slot of `cpu` for the calling thread; the CPU is online afterwards.
    pub(super) fn claim_slot(
        &'static self,
        cpu: CpuId,
        waits: WaitBy,
    ) -> Result<&'static ThreadSlot, ClaimError> {
        if !self.lane_set.contains(cpu) {
            return Err(ClaimError::NotALane { cpu });
        }
        let waits = match waits {
            WaitBy::Park => Waits::Futex,
            WaitBy::KickFd => Waits::Event,
        };
        self.occupy(cpu, waits)
    }

    /// The same for any slot, a spare's too.
    pub(super) fn occupy(&'static self, cpu: CpuId, waits: Waits) -> Result<&'static ThreadSlot, ClaimError> {
        if !self.is_running() {
            return Err(ClaimError::NotRunning);
        }
        let slot = self.lanes.slot(cpu).ok_or(ClaimError::NotALane { cpu })?;
        let _control = self.lanes.control();
        if !slot.world.claim(waits).map_err(ClaimError::System)? {
            return Err(ClaimError::Taken { cpu });
        }
        let now = self.clock.now();
        if !self.core.online_cpus().contains(cpu) {
            let online = self.act(|actions| self.core.online(cpu, now, actions));
            online.expect("a slot's CPU is possible, and offline while no thread has the slot");
        }
        self.choose_hosts();
        self.act(|actions| self.lanes.table().handle_claim(&self.core, cpu, now, actions));
        Ok(slot)
    }

    /// The thread that had `slot` took its last turn.
    pub(super) fn take_offline(&'static self, slot: &ThreadSlot) {
        let control = self.lanes.control();
        let now = self.clock.now();
        let offline = self.act(|actions| self.core.offline(slot.cpu(), now, actions));
        offline.expect("a lane's CPU is online, and a spare is left for housekeeping");
        self.lanes.table().handle_leave(&self.core);
        slot.world.release();
        self.choose_hosts();
        let unsettled = self.queues().handle_leave(slot.cpu());
        drop(control);
        self.queues().settle(unsettled);
    }

    /// The thread that claimed `cpu` is about to turn: the lane takes what any lane may run.
    pub(super) fn open_claimed(&'static self, cpu: CpuId) {
        let control = self.lanes.control();
        let unsettled = self.queues().handle_claim(cpu);
        drop(control);
        self.queues().settle(unsettled);
    }
}

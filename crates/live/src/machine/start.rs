//! Starting a machine: its CPUs, its parts, its threads.

use super::alarm::Alarm;
use super::builder::MachineBuilder;
use super::error::StartError;
use super::limits::Limits;
use super::sync::{Hosts, Life};
use super::{Machine, host};
use crate::clock::Clock;
use crate::events::Events;
use crate::lane::{LaneSlots, LaneThreads};
use crate::metrics::MetricWords;
use crate::stall::Stalls;
use crate::task::{BlockingPool, LiveTasks};
use crate::timer::RunEnds;
use crate::virtual_time::{Allowed, VirtualTime};
use quietcore_core::lane::Helper;
use quietcore_core::place::{Isolation, Policy};
use quietcore_core::{CpuId, CpuSet, Machine as Core, Nanos, Settings};
use std::sync::{Mutex, Once};

impl MachineBuilder {
    /// Starts the machine and its helper thread. It lives as long as the process; its memory (about 30 KiB
    /// per CPU, 6 KiB once it was shut down) is never given back, so that a timer can name it without
    /// counting.
    ///
    /// # Errors
    /// When a setting makes no sense, no CPU is left for housekeeping, or the kernel refuses a timer or a
    /// thread.
    pub fn start(self) -> Result<&'static Machine, StartError> {
        Machine::launch(self)
    }
}

impl Machine {
    /// A machine with the default settings. See [`MachineBuilder::start`].
    ///
    /// # Errors
    /// When the kernel refuses a timer or a thread.
    pub fn start() -> Result<&'static Self, StartError> {
        Self::builder().start()
    }

    /// For settings.
    #[must_use]
    pub fn builder() -> MachineBuilder {
        MachineBuilder::default()
    }

    fn launch(builder: MachineBuilder) -> Result<&'static Self, StartError> {
        let machine: &'static Self = Box::leak(Box::new(Self::assemble(&builder)?));
        static ON_FORK: Once = Once::new();
        ON_FORK.call_once(crate::fork::count_in_children);
        if let Err(error) = machine.start_threads(&builder) {
            machine.shutdown();
            // Its helper may not have begun.
            machine.alarm.end();
            return Err(error);
        }
        machine.tell_of_start();
        Ok(machine)
    }

    fn start_threads(&'static self, builder: &MachineBuilder) -> Result<(), StartError> {
        self.start_events()?;
        self.start_helper()?;
        self.start_spares()?;
        self.start_ksoftirqds()?;
        match builder.lane_threads {
            Some(threads) => self.start_lane_threads(threads, Limits::of_this_process().is_exclusive),
            None => Ok(()),
        }
    }

    fn assemble(builder: &MachineBuilder) -> Result<Self, StartError> {
        let allowed = host::allowed()?;
        let mut cpus =
            builder.cpus.as_ref().map_or_else(|| allowed.clone(), |cpus| cpus.intersection(&allowed));
        if builder.virtual_time == Allowed::Yes {
            if builder.lanes.as_ref().is_none_or(|lanes| !lanes.is_empty()) {
                return Err(StartError::LanesInVirtualTime);
            }
            // One base for all: what is due at the same moment runs in the order in which it was armed.
            cpus = cpus.first().into_iter().collect();
        }
        let highest = cpus.last().ok_or(StartError::NoCpu)?;
        let lane_set = match &builder.lanes {
            Some(lanes) => lanes.intersection(&cpus),
            None => Limits::of_this_process().lanes(&cpus),
        };
        if lane_set.is_empty() && builder.policy != Policy::Pull {
            return Err(StartError::NeedsLanes { policy: builder.policy });
        }
        let spare = CpuId::new(highest.index() as u64 + 1).map_err(|_| StartError::NoCpu)?;
        let count = if lane_set.is_empty() { 1 } else { builder.spare_lanes.max(1) };
        let spares = CpuSet::range(spare, count).map_err(|_| StartError::NoCpu)?;
        let settings = Self::settings(builder, &cpus)?;
        let topology = host::topology(&cpus, &spares, &builder.nodes)?;
        let own_priority = builder.lane_threads.and_then(LaneThreads::own_priority);
        let lanes = LaneSlots::new(&lane_set, &spares, &settings, own_priority);
        let core = Core::new(topology, settings).map_err(StartError::Housekeeping)?;
        let alarm = match builder.virtual_time {
            Allowed::Yes => Alarm::of_sleep(),
            Allowed::No => {
                Alarm::of_kernel().map_err(|error| StartError::System { what: "make a timer", error })?
            }
        };
        let machine = Self {
            core,
            clock: Clock::default(),
            alarm,
            virtual_time: VirtualTime::new(builder.virtual_time, Nanos(builder.tick.as_nanos() as u64)),
            hosts: Hosts::new(highest.index() + 1, spare),
            spare_turn: Mutex::new(Helper::new(spare)),
            life: Life::new(builder.arm_locations),
            cpu_limit: spare.index() as u16 + count,
            counts: (0..spare.index() + usize::from(count)).map(|_| MetricWords::new()).collect(),
            cpus,
            lane_set,
            lanes,
            on_panic: builder.on_panic,
            spare,
            run_ends: RunEnds::new(),
            stalls: Stalls::new(spare.index() + usize::from(count)),
            events: Events::default(),
            threads: Mutex::new(Vec::new()),
            softirqs: builder.softirqs.clone(),
            awareness: builder.awareness,
            defer_limit: Nanos(u64::try_from(builder.defer_limit.as_nanos()).unwrap_or(u64::MAX)),
            wake_to: builder.wake_to,
            timer_raise: builder.timer_raise,
            tasks: LiveTasks::default(),
            blocking: BlockingPool::default(),
        };
        machine.connect(&spares);
        Ok(machine)
    }

    /// What the core is made with.
    fn settings(builder: &MachineBuilder, cpus: &CpuSet) -> Result<Settings, StartError> {
        let kernel = builder.isolated.clone().unwrap_or_else(host::isolated);
        let nohz_full = builder.nohz_full.intersection(cpus);
        let isolation = Isolation { domain: kernel.intersection(cpus), nohz_full, ..Isolation::default() };
        let tick = builder.tick_length()?;
        Ok(Settings {
            policy: builder.policy,
            exact_policy: builder.exact_policy,
            exclusion: builder.exclusion,
            isolation: builder.from_host.or(isolation, cpus)?,
            tick,
            turn: builder.turn,
            // A lane that dozes says once per tick that it turns.
            stall: builder.stall.at_least(Nanos(tick.nanos().0.saturating_mul(2))),
        })
    }

    /// Every CPU that is there from the start comes online and goes idle.
    fn connect(&self, spares: &CpuSet) {
        let now = self.clock.now();
        let guests = if self.lanes.exist() { CpuSet::new() } else { self.cpus.clone() };
        for cpu in spares.iter().chain(guests.iter()) {
            self.act(|actions| self.core.online(cpu, now, actions))
                .expect("it is offline, and a spare is housekeeping");
            let _ = self.core.enter_idle(cpu, now);
        }
        self.choose_hosts();
        self.lanes.table().renew_standalone(&self.core);
    }
}

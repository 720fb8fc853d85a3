//! Arming exact timers in other ways: on a CPU, only earlier, only if pending.
//!
//! Each does for an exact timer what the method of `arm.rs` that it is named after does for one of ticks. An
//! exact timer is earlier than another by the moment before which it does not run. Absent:
//! [`arm_exact`](Machine::arm_exact), which is in `arm.rs`.

use super::arm::Promptness;
use super::name::AnyExact;
use super::{ArmError, Armed, Context, Machine, flag};
use crate::base::{BaseId, BaseKind, Pinning};
use crate::{Actions, CpuId, RawLock};
use quietcore_wheel::Expiry;

impl<L: RawLock, T: Copy> Machine<L, T> {
    /// [`arm_on`](Self::arm_on) for an exact timer: pins it on `cpu`, until it is armed with
    /// [`arm_exact_floating`](Self::arm_exact_floating).
    ///
    /// # Errors
    /// As [`arm`](Self::arm), and when `cpu` is not online.
    ///
    /// ```
    /// # use quietcore_core::{Actions, BaseKind, Context, CpuId, Expiry};
    /// # use quietcore_core::{Machine, Nanos, SequentialLock, Settings, TimerOptions};
    /// # use quietcore_core::topology::Topology;
    /// # let mut machine: Machine<SequentialLock, u32> =
    /// #     Machine::new(Topology::builder(2).build()?, Settings::default())?;
    /// # let (cpu, mut actions) = (CpuId::default(), Actions::new(2));
    /// # machine.online(cpu, Nanos(0), &mut actions)?;
    /// let timer = machine.add_exact(TimerOptions::new(), 7);
    /// let context = Context::on(cpu, Nanos(0));
    /// let armed = machine.arm_exact_on(timer, (cpu, Expiry::at(9)), context, &mut actions)?;
    /// assert_eq!(armed.base.kind, BaseKind::Local);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn arm_exact_on(
        &self,
        timer: impl AnyExact<T>,
        (cpu, expiry): (CpuId, Expiry),
        context: Context,
        actions: &mut Actions,
    ) -> Result<Armed, ArmError> {
        let timer = self.find_exact(timer).ok_or(ArmError::UnknownTimer)?;
        if cpu.index() >= self.watch.len() || !self.has_flag(cpu, flag::ONLINE) {
            return Err(ArmError::NoSuchCpu { cpu });
        }
        self.bases.set_pinning(timer, Pinning::Pinned, context.base());
        let onto = BaseId { cpu, kind: BaseKind::Local };
        let armed = self.bases.arm_exact(timer, expiry, onto, context.base());
        self.armed(armed, (Promptness::Exact, context), actions)
    }

    /// [`arm_floating`](Self::arm_floating) for an exact timer: it may run anywhere, whatever it was before.
    ///
    /// # Errors
    /// As [`arm`](Self::arm).
    ///
    /// ```
    /// # use quietcore_core::{Actions, BaseKind, Context, CpuId, Expiry};
    /// # use quietcore_core::{Machine, Nanos, SequentialLock, Settings, TimerOptions};
    /// # use quietcore_core::topology::Topology;
    /// # let mut machine: Machine<SequentialLock, u32> =
    /// #     Machine::new(Topology::builder(2).build()?, Settings::default())?;
    /// # let (cpu, mut actions) = (CpuId::default(), Actions::new(2));
    /// # machine.online(cpu, Nanos(0), &mut actions)?;
    /// let timer = machine.add_exact(TimerOptions::new().pinned(), 7);
    /// let context = Context::on(cpu, Nanos(0));
    /// let armed = machine.arm_exact_floating(timer, Expiry::at(9), context, &mut actions)?;
    /// assert_eq!(armed.base.kind, BaseKind::Global);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn arm_exact_floating(
        &self,
        timer: impl AnyExact<T>,
        expiry: Expiry,
        context: Context,
        actions: &mut Actions,
    ) -> Result<Armed, ArmError> {
        let timer = self.find_exact(timer).ok_or(ArmError::UnknownTimer)?;
        self.bases.set_pinning(timer, Pinning::Floating, context.base());
        self.arm_exact(timer, expiry, context, actions)
    }

    /// [`reduce`](Self::reduce) for an exact timer: arms it, unless it is pending for that moment or an
    /// earlier one.
    ///
    /// # Errors
    /// As [`arm`](Self::arm).
    ///
    /// ```
    /// # use quietcore_core::{Actions, Context, CpuId, Expiry};
    /// # use quietcore_core::{Machine, Nanos, SequentialLock, Settings, TimerOptions};
    /// # use quietcore_core::topology::Topology;
    /// # let mut machine: Machine<SequentialLock, u32> =
    /// #     Machine::new(Topology::builder(2).build()?, Settings::default())?;
    /// # let (cpu, mut actions) = (CpuId::default(), Actions::new(2));
    /// # machine.online(cpu, Nanos(0), &mut actions)?;
    /// let timer = machine.add_exact(TimerOptions::new(), 7);
    /// let context = Context::on(cpu, Nanos(0));
    /// assert!(!machine.reduce_exact(timer, Expiry::at(9), context, &mut actions)?.was_pending);
    /// assert!(machine.reduce_exact(timer, Expiry::at(20), context, &mut actions)?.was_pending);
    /// assert_eq!(machine.next_event(cpu), Some(Nanos(9)));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn reduce_exact(
        &self,
        timer: impl AnyExact<T>,
        expiry: Expiry,
        context: Context,
        actions: &mut Actions,
    ) -> Result<Armed, ArmError> {
        let timer = self.find_exact(timer).ok_or(ArmError::UnknownTimer)?;
        let onto = self.exact_base(timer, expiry, context)?;
        let armed = self.bases.reduce_exact(timer, expiry, onto, context.base());
        self.armed(armed, (Promptness::Exact, context), actions)
    }

    /// [`mod_pending`](Self::mod_pending) for an exact timer: arms it if it is pending.
    ///
    /// # Errors
    /// As [`arm`](Self::arm).
    ///
    /// ```
    /// # use quietcore_core::{Actions, Context, CpuId, Expiry};
    /// # use quietcore_core::{Machine, Nanos, SequentialLock, Settings, TimerOptions};
    /// # use quietcore_core::topology::Topology;
    /// # let mut machine: Machine<SequentialLock, u32> =
    /// #     Machine::new(Topology::builder(2).build()?, Settings::default())?;
    /// # let (cpu, mut actions) = (CpuId::default(), Actions::new(2));
    /// # machine.online(cpu, Nanos(0), &mut actions)?;
    /// let timer = machine.add_exact(TimerOptions::new(), 7);
    /// let context = Context::on(cpu, Nanos(0));
    /// assert!(!machine.mod_pending_exact(timer, Expiry::at(9), context, &mut actions)?.was_pending);
    /// assert_eq!(machine.next_event(cpu), None);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn mod_pending_exact(
        &self,
        timer: impl AnyExact<T>,
        expiry: Expiry,
        context: Context,
        actions: &mut Actions,
    ) -> Result<Armed, ArmError> {
        let timer = self.find_exact(timer).ok_or(ArmError::UnknownTimer)?;
        let onto = self.exact_base(timer, expiry, context)?;
        let armed = self.bases.mod_pending_exact(timer, expiry, onto, context.base());
        self.armed(armed, (Promptness::Exact, context), actions)
    }
}

//! What a caller may name a timer by: its number in the machine, or a reference whose maker promised to keep
//! it.

use super::Machine;
use crate::RawLock;
use crate::base::{ExactId, ExactRef, RemoveError, TimerId, TimerName, TimerOptions, TimerRef};

mod sealed {
    /// Only the types of this crate name timers.
    pub trait Sealed {}
}

/// Names a timer of ticks: a [`TimerId`] or a [`TimerRef`].
///
/// ```
/// use quietcore_core::{AnyTimer, TimerId};
///
/// fn takes<N: AnyTimer<u32>>(_: N) {}
/// let _: fn(TimerId) = takes::<TimerId>;
/// ```
pub trait AnyTimer<T>: sealed::Sealed {
    /// The name.
    fn name(self) -> TimerName<T>;
}

/// Names an exact timer: an [`ExactId`] or an [`ExactRef`].
///
/// ```
/// use quietcore_core::{AnyExact, ExactId};
///
/// fn takes<N: AnyExact<u32>>(_: N) {}
/// let _: fn(ExactId) = takes::<ExactId>;
/// ```
pub trait AnyExact<T>: sealed::Sealed {
    /// The name.
    fn name(self) -> TimerName<T>;
}

impl sealed::Sealed for TimerId {}
impl sealed::Sealed for ExactId {}
impl<T> sealed::Sealed for TimerRef<T> {}
impl<T> sealed::Sealed for ExactRef<T> {}

impl<T> AnyTimer<T> for TimerId {
    #[inline]
    fn name(self) -> TimerName<T> {
        TimerName::Id(self)
    }
}

impl<T> AnyTimer<T> for TimerRef<T> {
    #[inline]
    fn name(self) -> TimerName<T> {
        TimerName::Timer(self)
    }
}

impl<T> AnyExact<T> for ExactId {
    #[inline]
    fn name(self) -> TimerName<T> {
        TimerName::ExactId(self)
    }
}

impl<T> AnyExact<T> for ExactRef<T> {
    #[inline]
    fn name(self) -> TimerName<T> {
        TimerName::Exact(self)
    }
}

impl<L: RawLock, T: Copy> Machine<L, T> {
    /// Makes an idle timer that the machine keeps. Allocates now and then.
    ///
    /// ```
    /// # use quietcore_core::{Machine, SequentialLock, Settings, TimerOptions, topology::Topology};
    /// # let mut machine: Machine<SequentialLock, u32> =
    /// #     Machine::new(Topology::builder(1).build()?, Settings::default())?;
    /// let one = machine.add_timer(TimerOptions::new(), 7);
    /// assert_ne!(one, machine.add_timer(TimerOptions::new(), 7));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn add_timer(&mut self, options: TimerOptions, payload: T) -> TimerId {
        self.bases.add_timer(options, payload)
    }

    /// Makes an idle exact timer that the machine keeps. Allocates now and then.
    ///
    /// ```
    /// # use quietcore_core::{Machine, SequentialLock, Settings, TimerOptions, topology::Topology};
    /// # let mut machine: Machine<SequentialLock, u32> =
    /// #     Machine::new(Topology::builder(1).build()?, Settings::default())?;
    /// let one = machine.add_exact(TimerOptions::new(), 7);
    /// assert_ne!(one, machine.add_exact(TimerOptions::new(), 7));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn add_exact(&mut self, options: TimerOptions, payload: T) -> ExactId {
        self.bases.add_exact(options, payload)
    }

    /// Takes an idle timer away; its number is not used for another one.
    ///
    /// # Errors
    /// When there is no such timer, or it is pending or running.
    ///
    /// ```
    /// # use quietcore_core::{Machine, SequentialLock, Settings, TimerOptions, topology::Topology};
    /// # let mut machine: Machine<SequentialLock, u32> =
    /// #     Machine::new(Topology::builder(1).build()?, Settings::default())?;
    /// let timer = machine.add_timer(TimerOptions::new(), 7);
    /// machine.remove_timer(timer)?;
    /// assert!(machine.remove_timer(timer).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn remove_timer(&mut self, timer: TimerId) -> Result<(), RemoveError> {
        self.bases.remove_timer(timer)
    }

    /// The same for an exact timer.
    ///
    /// # Errors
    /// When there is no such timer, or it is pending or running.
    ///
    /// ```
    /// # use quietcore_core::{Actions, CpuId, Machine, Nanos, SequentialLock, Settings, TimerOptions};
    /// # use quietcore_core::topology::Topology;
    /// # let mut machine: Machine<SequentialLock, u32> =
    /// #     Machine::new(Topology::builder(2).build()?, Settings::default())?;
    /// # let (cpu, mut actions) = (CpuId::default(), Actions::new(2));
    /// # machine.online(cpu, Nanos(0), &mut actions)?;
    /// let timer = machine.add_exact(TimerOptions::new(), 7);
    /// assert!(machine.remove_exact(timer).is_ok());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn remove_exact(&mut self, timer: ExactId) -> Result<(), RemoveError> {
        self.bases.remove_exact(timer)
    }

    #[inline]
    pub(super) fn find(&self, timer: impl AnyTimer<T>) -> Option<TimerRef<T>> {
        match timer.name() {
            TimerName::Id(id) => self.bases.timer(id),
            TimerName::Timer(timer) => Some(timer),
            TimerName::ExactId(_) | TimerName::Exact(_) => None,
        }
    }

    #[inline]
    pub(super) fn find_exact(&self, timer: impl AnyExact<T>) -> Option<ExactRef<T>> {
        match timer.name() {
            TimerName::ExactId(id) => self.bases.exact(id),
            TimerName::Exact(timer) => Some(timer),
            TimerName::Id(_) | TimerName::Timer(_) => None,
        }
    }
}

//! What the core asks of a world: written under locks, carried out after all of them are dropped.
//!
//! Kicks are idempotent and unordered, so a CPU is named once however often it is asked for. Absent: doing
//! anything; an action that is never carried out is a lost wake-up, hence `#[must_use]`.

use crate::{CpuId, Nanos};
use alloc::boxed::Box;
use alloc::vec;

/// Work for the world, collected over one or more calls. Made once, used for all calls of a thread.
///
/// ```
/// use quietcore_core::{Actions, CpuId, Nanos};
///
/// let mut actions = Actions::new(8);
/// actions.kick(CpuId::new(3)?);
/// actions.kick(CpuId::new(3)?);
/// actions.set_alarm(Nanos(700));
/// assert_eq!(actions.take_kick(), Some(CpuId::new(3)?));
/// assert_eq!(actions.take_kick(), None);
/// assert_eq!(actions.take_alarm(), Some(Nanos(700)));
/// # Ok::<(), quietcore_core::CpuError>(())
/// ```
#[derive(Debug)]
#[must_use = "an action that is not carried out is a lost wake-up"]
pub struct Actions {
    kicks: Box<[u64]>,
    /// Words of `kicks` below this one are empty.
    first: usize,
    alarm: Option<Nanos>,
}

impl Actions {
    /// Nothing to do, on a machine with CPUs below `cpu_limit`. The only call that allocates.
    ///
    /// ```
    /// assert!(quietcore_core::Actions::new(2).is_empty());
    /// ```
    pub fn new(cpu_limit: u16) -> Self {
        let words = usize::from(cpu_limit).div_ceil(64);
        Self { kicks: vec![0; words].into(), first: words, alarm: None }
    }

    /// Asks for `cpu` to look again at once. Twice is as good as once.
    ///
    /// # Panics
    /// When `cpu` is not below the limit given to [`new`](Self::new), rounded up to 64.
    ///
    /// ```
    /// # use quietcore_core::{Actions, CpuId};
    /// let mut actions = Actions::new(1);
    /// actions.kick(CpuId::default());
    /// assert!(!actions.is_empty());
    /// ```
    pub fn kick(&mut self, cpu: CpuId) {
        let word = cpu.index() / 64;
        self.kicks[word] |= 1 << (cpu.index() % 64);
        self.first = self.first.min(word);
    }

    /// Asks that some CPU that may pull is awake at `expires`: nobody in the hierarchy will be.
    /// The earliest of several counts.
    ///
    /// ```
    /// # use quietcore_core::{Actions, Nanos};
    /// let mut actions = Actions::new(1);
    /// actions.set_alarm(Nanos(9));
    /// actions.set_alarm(Nanos(5));
    /// assert_eq!(actions.take_alarm(), Some(Nanos(5)));
    /// ```
    pub fn set_alarm(&mut self, expires: Nanos) {
        self.alarm = Some(self.alarm.map_or(expires, |alarm| alarm.min(expires)));
    }

    /// The next CPU to kick, lowest first; each is returned once.
    ///
    /// ```
    /// assert_eq!(quietcore_core::Actions::new(9).take_kick(), None);
    /// ```
    pub fn take_kick(&mut self) -> Option<CpuId> {
        while let Some(word) = self.kicks.get_mut(self.first) {
            if *word != 0 {
                let bit = word.trailing_zeros() as usize;
                *word &= *word - 1;
                return Some(CpuId((self.first * 64 + bit) as u16));
            }
            self.first += 1;
        }
        None
    }

    /// The alarm asked for, once.
    ///
    /// ```
    /// assert_eq!(quietcore_core::Actions::new(9).take_alarm(), None);
    /// ```
    pub fn take_alarm(&mut self) -> Option<Nanos> {
        self.alarm.take()
    }

    /// Whether there is nothing to do.
    ///
    /// ```
    /// assert!(quietcore_core::Actions::new(9).is_empty());
    /// ```
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.alarm.is_none() && self.kicks.iter().skip(self.first).all(|word| *word == 0)
    }
}

//! What only looks at timers, and changes nothing in the wheel.

use super::Timers;
use crate::slots::{Slot, SlotKey};
use crate::{Placement, Precision, Tick, WheelNodes};

impl<T, S: AsRef<[Slot<T>]> + AsMut<[Slot<T>]>, const LEVELS: usize, const BUCKETS: usize>
    Timers<T, S, LEVELS, BUCKETS>
{
    /// The wheel's clock; see [`Wheel::clock`](crate::Wheel::clock).
    #[inline]
    #[must_use]
    pub fn clock(&self) -> Tick {
        self.wheel.clock()
    }

    /// Where a timer for `expires` would be put now; see [`Wheel::place`](crate::Wheel::place).
    #[inline]
    #[must_use]
    pub fn place(&self, expires: Tick, precision: Precision) -> Placement {
        self.wheel.place(expires, precision)
    }

    /// The value of a pending timer.
    #[must_use]
    pub fn get(&self, key: SlotKey) -> Option<&T> {
        self.wheel.nodes.value(self.wheel.nodes.find(key).ok()?)
    }

    /// The same, to be changed.
    #[must_use]
    pub fn get_mut(&mut self, key: SlotKey) -> Option<&mut T> {
        let index = self.wheel.nodes.find(key).ok()?;
        self.wheel.nodes.value_mut(index)
    }

    /// The tick that a pending timer was armed for.
    #[must_use]
    pub fn expires(&self, key: SlotKey) -> Option<Tick> {
        Some(self.wheel.nodes.links(self.wheel.nodes.find(key).ok()?).expires())
    }

    /// How many timers are pending.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        self.wheel.nodes.taken()
    }

    /// Whether none is.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many slots there are.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.wheel.nodes.capacity()
    }

    /// Asserts the wheel's invariants; see [`Wheel::check`](crate::Wheel::check).
    ///
    /// # Panics
    /// When one does not hold, which is a bug of this crate.
    pub fn check(&self) {
        self.wheel.check();
    }
}

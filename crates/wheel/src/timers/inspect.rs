//! What only looks at timers, and changes nothing in the wheel.

use super::Timers;
use crate::slots::{Key, Slot};
use crate::{Placement, Precision, Tick, WheelNodes};

impl<T, S: AsRef<[Slot<T>]> + AsMut<[Slot<T>]>, const LEVELS: usize, const BUCKETS: usize>
    Timers<T, S, LEVELS, BUCKETS>
{
    /// The wheel's clock; see [`Wheel::clock`](crate::Wheel::clock).
    ///
    /// ```
    /// # use quietcore_wheel::{Slot, Tick, Timers};
    /// let timers: Timers<u8, _> = Timers::new(Tick(7), [const { Slot::new() }; 4]);
    /// assert_eq!(timers.clock(), Tick(7));
    /// ```
    #[inline]
    #[must_use]
    pub fn clock(&self) -> Tick {
        self.wheel.clock()
    }

    /// Where a timer for `expires` would be put now; see [`Wheel::place`](crate::Wheel::place).
    ///
    /// ```
    /// # use quietcore_wheel::{Precision, Slot, Tick, Timers};
    /// let timers: Timers<u8, _> = Timers::new(Tick(0), [const { Slot::new() }; 4]);
    /// assert_eq!(timers.place(Tick(100), Precision::Coarse).expiry, Tick(104));
    /// ```
    #[inline]
    #[must_use]
    pub fn place(&self, expires: Tick, precision: Precision) -> Placement {
        self.wheel.place(expires, precision)
    }

    /// The value of a pending timer.
    ///
    /// ```
    /// # use quietcore_wheel::{Tick, Timers};
    /// # let mut timers = Timers::new(Tick(0), Vec::new());
    /// let key = timers.arm_growing(Tick(30), "request 7");
    /// assert_eq!(timers.get(key), Some(&"request 7"));
    /// ```
    #[must_use]
    pub fn get(&self, key: Key) -> Option<&T> {
        self.wheel.nodes.value(self.wheel.nodes.find(key).ok()?)
    }

    /// The same, to be changed.
    ///
    /// ```
    /// # use quietcore_wheel::{Tick, Timers};
    /// # let mut timers = Timers::new(Tick(0), Vec::new());
    /// let key = timers.arm_growing(Tick(30), 1);
    /// *timers.get_mut(key).expect("pending") += 1;
    /// assert_eq!(timers.get(key), Some(&2));
    /// ```
    #[must_use]
    pub fn get_mut(&mut self, key: Key) -> Option<&mut T> {
        let index = self.wheel.nodes.find(key).ok()?;
        self.wheel.nodes.value_mut(index)
    }

    /// The tick that a pending timer was armed for.
    ///
    /// ```
    /// # use quietcore_wheel::{Tick, Timers};
    /// # let mut timers = Timers::new(Tick(0), Vec::new());
    /// let key = timers.arm_growing(Tick(30), ());
    /// assert_eq!(timers.expires(key), Some(Tick(30)));
    /// ```
    #[must_use]
    pub fn expires(&self, key: Key) -> Option<Tick> {
        Some(self.wheel.nodes.links(self.wheel.nodes.find(key).ok()?).expires())
    }

    /// How many timers are pending.
    ///
    /// ```
    /// # use quietcore_wheel::{Slot, Tick, Timers};
    /// # let mut timers = Timers::new(Tick(7), [const { Slot::new() }; 4]);
    /// timers.arm(Tick(30), ())?;
    /// assert_eq!(timers.len(), 1);
    /// # Ok::<(), quietcore_wheel::Full<()>>(())
    /// ```
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        self.wheel.nodes.taken()
    }

    /// Whether none is.
    ///
    /// ```
    /// # use quietcore_wheel::{Slot, Tick, Timers};
    /// let timers: Timers<u8, _> = Timers::new(Tick(7), [const { Slot::new() }; 4]);
    /// assert!(timers.is_empty());
    /// ```
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many slots there are.
    ///
    /// ```
    /// # use quietcore_wheel::{Slot, Tick, Timers};
    /// let timers: Timers<u8, _> = Timers::new(Tick(7), [const { Slot::new() }; 4]);
    /// assert_eq!(timers.capacity(), 4);
    /// ```
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.wheel.nodes.capacity()
    }

    /// Asserts the wheel's invariants; see [`Wheel::check`](crate::Wheel::check).
    ///
    /// # Panics
    /// When one does not hold, which is a bug of this crate.
    ///
    /// ```
    /// # use quietcore_wheel::{Slot, Tick, Timers};
    /// # let mut timers = Timers::new(Tick(7), [const { Slot::new() }; 4]);
    /// timers.arm(Tick(30), ())?;
    /// timers.check();
    /// # Ok::<(), quietcore_wheel::Full<()>>(())
    /// ```
    pub fn check(&self) {
        self.wheel.check();
    }
}

//! The vectors, and sets of them.

use core::fmt;

/// A kind of deferred work. Lower numbers run first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Vector(u8);

/// Vectors with names.
const NAMES: [&str; 10] =
    ["HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET", "SCHED", "HRTIMER", "RCU"];

/// All vectors, the program's own included.
const COUNT: u8 = 16;

impl Vector {
    /// Tasklets that come first.
    pub const HI: Self = Self(0);
    /// Timers.
    pub const TIMER: Self = Self(1);
    /// Packets that leave.
    pub const NET_TX: Self = Self(2);
    /// Packets that arrive.
    pub const NET_RX: Self = Self(3);
    /// Block devices.
    pub const BLOCK: Self = Self(4);
    /// Polled interrupts.
    pub const IRQ_POLL: Self = Self(5);
    /// Tasklets.
    pub const TASKLET: Self = Self(6);
    /// The scheduler's balancing.
    pub const SCHED: Self = Self(7);
    /// Exact timers.
    pub const HRTIMER: Self = Self(8);
    /// Memory that waits for its readers.
    pub const RCU: Self = Self(9);

    /// The program's own vector `number`, 0 to 5; `None` beyond that.
    #[must_use]
    pub const fn user(number: u8) -> Option<Self> {
        let first = NAMES.len() as u8;
        if number < COUNT - first { Some(Self(first + number)) } else { None }
    }

    /// The vector at `index`.
    #[must_use]
    pub const fn from_index(index: u8) -> Option<Self> {
        if index < COUNT { Some(Self(index)) } else { None }
    }

    /// Its number, below 16.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    /// As the kernel writes it; `USER` for the program's own.
    #[must_use]
    pub const fn name(self) -> &'static str {
        if self.index() < NAMES.len() { NAMES[self.index()] } else { "USER" }
    }
}

impl fmt::Display for Vector {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.index().checked_sub(NAMES.len()) {
            None => out.write_str(self.name()),
            Some(number) => write!(out, "USER{number}"),
        }
    }
}

/// A set of vectors, in one word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct VectorSet(u16);

impl VectorSet {
    /// None.
    pub const EMPTY: Self = Self(0);

    /// Those whose handlers may take long: what real-time tasks avoid.
    pub const LONG: Self = Self(0b11_1100);

    /// Those that ksoftirqd may run in the place of the CPU's own thread: the long ones and the program's.
    pub const MOVABLE: Self = Self(0b1111_1100_0011_1100);

    /// From a word with a bit per vector.
    #[must_use]
    pub const fn from_bits(bits: u16) -> Self {
        Self(bits)
    }

    /// As such a word.
    #[must_use]
    pub const fn bits(self) -> u16 {
        self.0
    }

    /// Whether there is none.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether `vector` is one of them.
    #[must_use]
    pub const fn contains(self, vector: Vector) -> bool {
        self.0 >> vector.0 & 1 != 0
    }

    /// Those in either.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Those in both.
    #[must_use]
    pub const fn intersection(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Those that are not in `other`.
    #[must_use]
    pub const fn difference(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// In the order in which they run.
    pub fn iter(self) -> impl Iterator<Item = Vector> + Clone {
        (0..COUNT).map(Vector).filter(move |vector| self.contains(*vector))
    }
}

impl From<Vector> for VectorSet {
    fn from(vector: Vector) -> Self {
        Self(1 << vector.0)
    }
}

impl FromIterator<Vector> for VectorSet {
    fn from_iter<I: IntoIterator<Item = Vector>>(vectors: I) -> Self {
        vectors.into_iter().fold(Self::EMPTY, |set, vector| set.union(vector.into()))
    }
}

impl fmt::Display for VectorSet {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, vector) in self.iter().enumerate() {
            if at > 0 {
                out.write_str(" ")?;
            }
            fmt::Display::fmt(&vector, out)?;
        }
        Ok(())
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::{COUNT, Vector, VectorSet};
    use alloc::string::ToString;

    /// Goal: sets are what their vectors are, in order, with names that tell them apart. Method: each vector
    /// alone, and all together.
    #[test]
    fn sets_of_vectors() {
        let all: VectorSet = (0..COUNT).filter_map(Vector::from_index).collect();
        assert_eq!((all.bits(), all.iter().count()), (u16::MAX, 16));
        assert!(all.iter().is_sorted());
        for vector in all.iter() {
            let one = VectorSet::from(vector);
            assert!(one.contains(vector) && !all.difference(one).contains(vector), "{vector}");
            assert_eq!(all.iter().filter(|other| other.to_string() == vector.to_string()).count(), 1);
        }
        let stays = all.difference(VectorSet::MOVABLE).to_string();
        assert_eq!(stays, "HI TIMER TASKLET SCHED HRTIMER RCU");
        let moves = VectorSet::MOVABLE.to_string();
        assert_eq!(moves, "NET_TX NET_RX BLOCK IRQ_POLL USER0 USER1 USER2 USER3 USER4 USER5");
    }
}

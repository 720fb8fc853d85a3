//! Deficit round robin: whose turn it is, and how many bytes are left of it.
//!
//! A class that has something to send waits in a row. The first may send as long as its deficit covers its
//! next packet; then it goes to the back, with a quantum more. So over a long time each sends as its quantum
//! is to those of the others, to within a packet, whatever the lengths of packets are, and a packet costs a
//! constant number of steps where no quantum is shorter than a packet.
//!
//! Source: M. Shreedhar and G. Varghese, Efficient Fair Queueing Using Deficit Round Robin, SIGCOMM 1995,
//! section 3.2. As in Linux a class begins with a whole quantum, which it gets when it begins to have
//! packets, and what is left is gone when it has none any more.

use alloc::collections::VecDeque;

/// The row of those that have something to send.
#[derive(Debug)]
pub(crate) struct DeficitRound<K> {
    /// Each with the bytes that are left of its turn. A deficit is below a packet's length and a quantum
    /// together, so it fits.
    row: VecDeque<(K, u64)>,
}

impl<K: Copy + PartialEq> DeficitRound<K> {
    pub(crate) const fn new() -> Self {
        Self { row: VecDeque::new() }
    }

    /// Whose turn it is.
    pub(crate) fn first(&self) -> Option<K> {
        self.row.front().map(|(class, _)| *class)
    }

    /// Puts one that is not in the row behind all others, with a whole quantum.
    pub(crate) fn wake(&mut self, class: K, quantum: u32) {
        self.row.push_back((class, quantum.into()));
    }

    /// Takes `bytes` out of what the first has left; says whether there was enough.
    pub(crate) fn pay(&mut self, bytes: u32) -> bool {
        let Some((_, deficit)) = self.row.front_mut() else { return false };
        let left = deficit.checked_sub(bytes.into());
        *deficit = left.unwrap_or(*deficit);
        left.is_some()
    }

    /// The first goes to the back, with a quantum more.
    pub(crate) fn pass(&mut self, quantum: u32) {
        if let Some((class, deficit)) = self.row.pop_front() {
            self.row.push_back((class, deficit + u64::from(quantum)));
        }
    }

    /// Takes one out, wherever it is.
    pub(crate) fn remove(&mut self, class: K) {
        if let Some(at) = self.row.iter().position(|(other, _)| *other == class) {
            self.row.remove(at);
        }
    }

    pub(crate) fn contains(&self, class: K) -> bool {
        self.deficit(class).is_some()
    }

    /// What one has left of its turn, if it is in the row.
    pub(crate) fn deficit(&self, class: K) -> Option<u64> {
        self.row.iter().find(|(other, _)| *other == class).map(|(_, deficit)| *deficit)
    }

    pub(crate) fn clear(&mut self) {
        self.row.clear();
    }
}

//! What no lane takes, as all are isolated or none was claimed: it waits aside until one opens.

use alloc::vec::Vec;

/// Items that no lane takes now. The world has a lock around it, which it also holds while a lane's gate is
/// opened: so an item is held before that, and given back by it, or the open gate is seen.
#[derive(Debug)]
pub struct Unplaced<I> {
    items: Vec<I>,
    /// The machine has ended.
    is_over: bool,
}

impl<I> Default for Unplaced<I> {
    fn default() -> Self {
        Self { items: Vec::new(), is_over: false }
    }
}

impl<I> Unplaced<I> {
    /// Keeps `item` until a gate opens.
    ///
    /// # Errors
    /// Gives it back if one is open now, or none ever will be.
    pub fn hold(&mut self, item: I, is_any_open: bool) -> Result<(), I> {
        if self.is_over || is_any_open {
            return Err(item);
        }
        self.items.push(item);
        Ok(())
    }

    /// What has waited for a gate that opens.
    #[must_use]
    pub fn take(&mut self) -> Vec<I> {
        core::mem::take(&mut self.items)
    }

    /// The machine has ended: nothing is kept any more. Gives what has waited.
    #[must_use]
    pub fn end(&mut self) -> Vec<I> {
        self.is_over = true;
        self.take()
    }

    /// How many wait.
    #[must_use]
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Whether none does.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }
}

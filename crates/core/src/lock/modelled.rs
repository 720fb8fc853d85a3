//! The lock under loom: loom's own, so that its models see what a lock orders.

use super::RawLock;
use core::ops::{Deref, DerefMut};

/// A value that only the holder of its lock reaches; `L` says nothing.
pub(crate) struct ModelLocked<L, T> {
    value: loom::sync::Mutex<T>,
    raw: core::marker::PhantomData<fn() -> L>,
}

impl<L: RawLock, T> ModelLocked<L, T> {
    pub(crate) fn new(value: T) -> Self {
        Self { value: loom::sync::Mutex::new(value), raw: core::marker::PhantomData }
    }

    pub(crate) fn lock_owner(&self) -> ModelGuard<'_, L, T> {
        ModelGuard { held: self.value.lock().expect("no holder panicked"), raw: core::marker::PhantomData }
    }

    pub(crate) fn lock_remote(&self) -> ModelGuard<'_, L, T> {
        self.lock_owner()
    }

    pub(crate) fn try_lock_remote(&self) -> Option<ModelGuard<'_, L, T>> {
        self.value.try_lock().ok().map(|held| ModelGuard { held, raw: core::marker::PhantomData })
    }
}

/// Holds a lock until it is dropped.
pub(crate) struct ModelGuard<'a, L, T> {
    held: loom::sync::MutexGuard<'a, T>,
    raw: core::marker::PhantomData<fn() -> L>,
}

impl<L, T> Deref for ModelGuard<'_, L, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.held
    }
}

impl<L, T> DerefMut for ModelGuard<'_, L, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.held
    }
}

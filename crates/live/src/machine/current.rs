//! Which machine a thread means when it names none: the one it entered, else the process's default.
//!
//! There is no default unless the program installs one; nothing is started behind its back.

use super::Machine;
use core::cell::Cell;
use core::marker::PhantomData;
use std::sync::OnceLock;

static DEFAULT: OnceLock<&'static Machine> = OnceLock::new();

thread_local! {
    static ENTERED: Cell<Option<&'static Machine>> = const { Cell::new(None) };
}

/// The process has a default machine already.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this process has a default machine already")]
pub struct InstallError;

/// While it lives, the machine that was entered is the current one of its thread.
#[derive(Debug)]
#[must_use = "the machine is current only while the guard lives"]
pub struct EnterGuard {
    before: Option<&'static Machine>,
    /// For the thread that entered only.
    thread: PhantomData<*const ()>,
}

impl Drop for EnterGuard {
    fn drop(&mut self) {
        // A thread that ends may have lost the slot already; then no thread asks any more.
        let _ = ENTERED.try_with(|slot| slot.set(self.before));
    }
}

impl Machine {
    /// Makes this the current machine of the calling thread until the guard is dropped. Guards nest; drop
    /// them in the opposite order.
    pub fn enter(&'static self) -> EnterGuard {
        let before = ENTERED.with(|slot| slot.replace(Some(self)));
        EnterGuard { before, thread: PhantomData }
    }

    /// Makes this the current machine of every thread that has not entered another one, for the rest of the
    /// process.
    ///
    /// # Errors
    /// When there is a default already.
    pub fn install_default(&'static self) -> Result<(), InstallError> {
        DEFAULT.set(self).map_err(|_| InstallError)
    }

    /// The default machine of the process, if one was installed.
    #[must_use]
    pub fn installed() -> Option<&'static Self> {
        DEFAULT.get().copied()
    }

    /// The current machine, if there is one.
    #[inline]
    #[must_use]
    pub fn try_current() -> Option<&'static Self> {
        ENTERED.try_with(Cell::get).ok().flatten().or_else(Self::installed)
    }

    /// The current machine.
    ///
    /// # Panics
    /// When this thread has entered none and none was installed as the default.
    #[inline]
    #[must_use]
    #[track_caller]
    pub fn current() -> &'static Self {
        Self::try_current().expect(
            "there is no current quietcore machine: call `Machine::start()?.install_default()` once, or enter one",
        )
    }
}

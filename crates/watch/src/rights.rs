//! What the process may do, given up when it is not needed any more.

use crate::error::WatchError;
use rustix::thread::{CapabilitySet, CapabilitySets, set_capabilities, set_no_new_privs};

/// Gives up all rights of the calling thread, and of those that it starts later, for good: the program is
/// loaded, and its memory is mapped. What is owned by the user of the process can be written still.
///
/// # Errors
/// [`WatchError::Rights`].
pub(crate) fn give_up() -> Result<(), WatchError> {
    let none = CapabilitySet::empty();
    set_no_new_privs(true).map_err(|error| WatchError::Rights(error.into()))?;
    let sets = CapabilitySets { effective: none, permitted: none, inheritable: none };
    set_capabilities(None, sets).map_err(|error| WatchError::Rights(error.into()))
}

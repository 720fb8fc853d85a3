//! What a control knows: the devices by name, and what the next discipline gets.

use super::TcControlError;
use super::action::ActionTable;
use super::tree::DeviceEntry;
use quietcore_live::Machine;
use quietcore_live::TimerHandle;
use quietcore_qdisc::Distribution;
use rand_chacha::ChaCha8Rng;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// The first handle that is given to what has none.
pub(super) const FIRST_HANDLE: u16 = 0x8001;

/// What the timer of the estimates shares with the control.
pub(super) struct ControlShared<P> {
    pub(super) machine: &'static Machine,
    /// Taken before any queue's lock.
    pub(super) state: Mutex<ControlState<P>>,
    /// Made when something is estimated.
    pub(super) sampler: OnceLock<TimerHandle>,
}

/// What commands change.
pub(super) struct ControlState<P> {
    pub(super) machine: &'static Machine,
    pub(super) devices: BTreeMap<String, DeviceEntry<P>>,
    pub(super) next_handle: u16,
    /// Disciplines that were made.
    pub(super) made: u64,
    pub(super) seeds: ChaCha8Rng,
    /// What filters do with packets, by number.
    pub(super) actions: ActionTable,
    /// How tables of delays are found by name.
    pub(super) find_distribution: fn(&str) -> Result<Distribution, String>,
}

impl<P> ControlShared<P> {
    pub(super) fn state(&self) -> MutexGuard<'_, ControlState<P>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<P> ControlState<P> {
    pub(super) fn entry(&mut self, device: &str) -> Result<&mut DeviceEntry<P>, TcControlError> {
        if !self.devices.contains_key(device) {
            let known = self.devices.keys().cloned().collect();
            return Err(TcControlError::UnknownDevice { device: device.into(), known });
        }
        Ok(self.devices.get_mut(device).expect("it is there"))
    }
}

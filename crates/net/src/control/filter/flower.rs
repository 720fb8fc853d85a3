//! `flower`: the filters of one priority.
//!
//! Those that look at the same bits are asked together, and such groups in the order in which they came into
//! being. Source: Linux net/sched/cls_flower.c, by behaviour.

use super::basic::free_handle;
use super::error::TcFilterError;
use super::outcome::{Outcome, ShownFilter, number};
use quietcore_qdisc::tc::{FilterHandle, FilterOffload, FlowerOptions, Protocol, describe_flower};
use quietcore_qdisc::{ClassId, Packet};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::control) struct Flowers {
    /// With their handles, as they are asked.
    filters: Vec<(u32, FlowerOptions)>,
}

impl Flowers {
    pub(super) fn add(
        &mut self,
        options: &FlowerOptions,
        handle: Option<FilterHandle>,
    ) -> Result<(), TcFilterError> {
        let free = || free_handle(|handle| self.place(handle).is_some());
        let handle = number(handle).filter(|handle| *handle != 0).or_else(free);
        let handle = handle.ok_or(TcFilterError::NoPriorityLeft)?;
        self.insert(handle, options)
    }

    fn insert(&mut self, handle: u32, options: &FlowerOptions) -> Result<(), TcFilterError> {
        if options.offload == FilterOffload::SkipSoftware {
            return Err(TcFilterError::NoHardware);
        }
        if let Some((known, _)) = self.filters.iter().find(|(_, other)| other.keys.is_as(&options.keys)) {
            return Err(TcFilterError::SameKeys(FilterHandle::Number(*known)));
        }
        let like = self.filters.iter().rposition(|(_, other)| other.keys.looks_at_as(&options.keys));
        let place = like.map_or(self.filters.len(), |last| last + 1);
        self.filters.insert(place, (handle, options.clone()));
        Ok(())
    }

    fn place(&self, handle: u32) -> Option<usize> {
        self.filters.iter().position(|(known, _)| *known == handle)
    }

    fn place_of(&self, handle: FilterHandle) -> Option<usize> {
        number(Some(handle)).and_then(|handle| self.place(handle))
    }

    pub(super) fn holds(&self, handle: FilterHandle) -> bool {
        self.place_of(handle).is_some()
    }

    /// Puts another one in its place, which has its handle and nothing else of it.
    pub(super) fn change(
        &mut self,
        options: &FlowerOptions,
        handle: FilterHandle,
    ) -> Result<(), TcFilterError> {
        let Some(place) = self.place_of(handle) else { return Err(TcFilterError::UnknownFilter(handle)) };
        let before = self.filters.clone();
        let (handle, _) = self.filters.remove(place);
        let done = self.insert(handle, options);
        if done.is_err() {
            self.filters = before;
        }
        done
    }

    /// Says whether it was the last one.
    pub(super) fn remove(&mut self, handle: FilterHandle) -> Result<bool, TcFilterError> {
        let place = self.place_of(handle).ok_or(TcFilterError::UnknownFilter(handle))?;
        self.filters.remove(place);
        Ok(self.filters.is_empty())
    }

    pub(super) fn ask(&self, packet: &impl Packet) -> Outcome {
        let network = packet.network_bytes();
        let found = self.filters.iter().find(|(_, options)| options.keys.is_met(network));
        found.map_or(Outcome::Next, |(_, options)| Outcome::For(options.flow.unwrap_or(ClassId(0))))
    }

    pub(super) fn sends_to(&self, class: ClassId) -> bool {
        self.filters.iter().any(|(_, options)| options.flow == Some(class))
    }

    /// By their handles.
    pub(super) fn shown(&self, protocol: Protocol) -> Vec<ShownFilter> {
        let mut filters: Vec<&(u32, FlowerOptions)> = self.filters.iter().collect();
        filters.sort_by_key(|(handle, _)| *handle);
        let shown = |(handle, options): &(u32, FlowerOptions)| ShownFilter {
            handle: Some(FilterHandle::Number(*handle)),
            flow: options.flow,
            options: describe_flower(*handle, options, protocol),
        };
        filters.into_iter().map(shown).collect()
    }
}

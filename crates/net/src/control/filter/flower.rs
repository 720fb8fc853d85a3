//! `flower`: the filters of one priority.
//!
//! Those that look at the same bits are asked together, and such groups in the order in which they came into
//! being. Source: Linux net/sched/cls_flower.c, by behaviour.

use super::super::action::{ActionChain, Asked};
use super::basic::free_handle;
use super::error::TcFilterError;
use super::outcome::{Outcome, ShownFilter, number};
use quietcore_live::Nanos;
use quietcore_qdisc::tc::{FilterHandle, FilterOffload, FlowerOptions, Protocol, describe_flower};
use quietcore_qdisc::{ClassId, Packet};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::control) struct Flowers {
    /// As they are asked.
    filters: Vec<Flower>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Flower {
    handle: u32,
    options: FlowerOptions,
    actions: ActionChain,
}

impl Flowers {
    pub(super) fn add(
        &mut self,
        options: &FlowerOptions,
        actions: &ActionChain,
        handle: Option<FilterHandle>,
    ) -> Result<(), TcFilterError> {
        let free = || free_handle(|handle| self.place(handle).is_some());
        let handle = number(handle).filter(|handle| *handle != 0).or_else(free);
        let handle = handle.ok_or(TcFilterError::NoPriorityLeft)?;
        self.insert(handle, options, actions)
    }

    fn insert(
        &mut self,
        handle: u32,
        options: &FlowerOptions,
        actions: &ActionChain,
    ) -> Result<(), TcFilterError> {
        if options.offload == FilterOffload::SkipSoftware {
            return Err(TcFilterError::NoHardware);
        }
        if let Some(known) = self.filters.iter().find(|other| other.options.keys.is_as(&options.keys)) {
            return Err(TcFilterError::SameKeys(FilterHandle::Number(known.handle)));
        }
        let like = self.filters.iter().rposition(|other| other.options.keys.looks_at_as(&options.keys));
        let place = like.map_or(self.filters.len(), |last| last + 1);
        let (options, actions) = (options.clone(), actions.clone());
        self.filters.insert(place, Flower { handle, options, actions });
        Ok(())
    }

    fn place(&self, handle: u32) -> Option<usize> {
        self.filters.iter().position(|flower| flower.handle == handle)
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
        actions: &ActionChain,
        handle: FilterHandle,
    ) -> Result<(), TcFilterError> {
        let Some(place) = self.place_of(handle) else { return Err(TcFilterError::UnknownFilter(handle)) };
        let before = self.filters.clone();
        let Flower { handle, .. } = self.filters.remove(place);
        let done = self.insert(handle, options, actions);
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

    /// The first that a packet is for decides, also if its actions say `continue`.
    pub(super) fn ask(&self, packet: &impl Packet, asked: &mut Asked) -> Outcome {
        let network = packet.network_bytes();
        let found = self.filters.iter().find(|flower| flower.options.keys.is_met(network));
        found.map_or(Outcome::Next, |flower| Outcome::of(flower.options.flow, &flower.actions, asked))
    }

    pub(super) fn sends_to(&self, class: ClassId) -> bool {
        self.filters.iter().any(|flower| flower.options.flow == Some(class))
    }

    /// By their handles.
    pub(super) fn shown(&self, protocol: Protocol, now: Nanos) -> Vec<ShownFilter> {
        let mut filters: Vec<&Flower> = self.filters.iter().collect();
        filters.sort_by_key(|flower| flower.handle);
        let shown = |Flower { handle, options, actions }: &Flower| {
            let mut shown = describe_flower(*handle, options, protocol);
            actions.describe(now, &mut shown);
            ShownFilter { handle: Some(FilterHandle::Number(*handle)), flow: options.flow, options: shown }
        };
        filters.into_iter().map(shown).collect()
    }
}

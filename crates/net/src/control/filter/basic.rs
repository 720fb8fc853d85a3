//! `basic`: the filters of one priority. The newest is asked first. Source: Linux net/sched/cls_basic.c, by
//! behaviour.

use super::super::action::{ActionChain, Asked};
use super::error::TcFilterError;
use super::outcome::{Outcome, ShownFilter, number};
use quietcore_live::Nanos;
use quietcore_qdisc::filter::are_met;
use quietcore_qdisc::tc::{BasicOptions, FilterHandle, describe_basic};
use quietcore_qdisc::{ClassId, Packet};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::control) struct Basics {
    /// The newest first.
    filters: Vec<Basic>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Basic {
    handle: u32,
    options: BasicOptions,
    actions: ActionChain,
}

/// The lowest number from 1 on that none has.
pub(super) fn free_handle(taken: impl Fn(u32) -> bool) -> Option<u32> {
    (1..=u32::MAX).find(|handle| !taken(*handle))
}

impl Basics {
    pub(super) fn add(
        &mut self,
        options: &BasicOptions,
        actions: &ActionChain,
        handle: Option<FilterHandle>,
    ) -> Result<(), TcFilterError> {
        if *options == BasicOptions::default() {
            return Err(TcFilterError::NoClass);
        }
        let free = || free_handle(|handle| self.place(handle).is_some());
        let handle = number(handle).filter(|handle| *handle != 0).or_else(free);
        let handle = handle.ok_or(TcFilterError::NoPriorityLeft)?;
        self.filters.insert(0, Basic { handle, options: options.clone(), actions: actions.clone() });
        Ok(())
    }

    fn place(&self, handle: u32) -> Option<usize> {
        self.filters.iter().position(|basic| basic.handle == handle)
    }

    fn place_of(&self, handle: FilterHandle) -> Option<usize> {
        number(Some(handle)).and_then(|handle| self.place(handle))
    }

    pub(super) fn holds(&self, handle: FilterHandle) -> bool {
        self.place_of(handle).is_some()
    }

    /// The class stays, if none is named; what it decides by and its actions do not.
    pub(super) fn change(&mut self, options: &BasicOptions, actions: &ActionChain, handle: FilterHandle) {
        if let Some(place) = self.place_of(handle) {
            let Basic { options: before, actions: acted, .. } = &mut self.filters[place];
            *before = BasicOptions { flow: options.flow.or(before.flow), ..options.clone() };
            *acted = actions.clone();
        }
    }

    /// Says whether it was the last one.
    pub(super) fn remove(&mut self, handle: FilterHandle) -> Result<bool, TcFilterError> {
        let place = self.place_of(handle).ok_or(TcFilterError::UnknownFilter(handle))?;
        self.filters.remove(place);
        Ok(self.filters.is_empty())
    }

    pub(super) fn ask(&self, packet: &impl Packet, asked: &mut Asked) -> Outcome {
        let mut met = self.filters.iter().filter(|basic| are_met(&basic.options.matches, packet));
        let said = met.find_map(|basic| Outcome::or_next(basic.options.flow, &basic.actions, asked));
        said.unwrap_or(Outcome::Next)
    }

    pub(super) fn sends_to(&self, class: ClassId) -> bool {
        self.filters.iter().any(|basic| basic.options.flow == Some(class))
    }

    pub(super) fn shown(&self, now: Nanos) -> Vec<ShownFilter> {
        let shown = |Basic { handle, options, actions }: &Basic| {
            let mut shown = describe_basic(*handle, options);
            actions.describe(now, &mut shown);
            ShownFilter { handle: Some(FilterHandle::Number(*handle)), flow: options.flow, options: shown }
        };
        self.filters.iter().map(shown).collect()
    }
}

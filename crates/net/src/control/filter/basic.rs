//! `basic`: the filters of one priority. The newest is asked first. Source: Linux net/sched/cls_basic.c, by
//! behaviour.

use super::error::TcFilterError;
use super::outcome::{Outcome, ShownFilter, number};
use quietcore_qdisc::filter::are_met;
use quietcore_qdisc::tc::{BasicOptions, FilterHandle, describe_basic};
use quietcore_qdisc::{ClassId, Packet};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::control) struct Basics {
    /// With their handles, the newest first.
    filters: Vec<(u32, BasicOptions)>,
}

/// The lowest number from 1 on that none has.
pub(super) fn free_handle(taken: impl Fn(u32) -> bool) -> Option<u32> {
    (1..=u32::MAX).find(|handle| !taken(*handle))
}

impl Basics {
    pub(super) fn add(
        &mut self,
        options: &BasicOptions,
        handle: Option<FilterHandle>,
    ) -> Result<(), TcFilterError> {
        if *options == BasicOptions::default() {
            return Err(TcFilterError::NoClass);
        }
        let free = || free_handle(|handle| self.place(handle).is_some());
        let handle = number(handle).filter(|handle| *handle != 0).or_else(free);
        let handle = handle.ok_or(TcFilterError::NoPriorityLeft)?;
        self.filters.insert(0, (handle, options.clone()));
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

    /// The class stays, if none is named; what it decides by does not.
    pub(super) fn change(&mut self, options: &BasicOptions, handle: FilterHandle) {
        if let Some(place) = self.place_of(handle) {
            let before = &mut self.filters[place].1;
            *before = BasicOptions { flow: options.flow.or(before.flow), ..options.clone() };
        }
    }

    /// Says whether it was the last one.
    pub(super) fn remove(&mut self, handle: FilterHandle) -> Result<bool, TcFilterError> {
        let place = self.place_of(handle).ok_or(TcFilterError::UnknownFilter(handle))?;
        self.filters.remove(place);
        Ok(self.filters.is_empty())
    }

    pub(super) fn ask(&self, packet: &impl Packet) -> Outcome {
        let found = self.filters.iter().find(|(_, options)| are_met(&options.matches, packet));
        found.map_or(Outcome::Next, |(_, options)| Outcome::For(options.flow.unwrap_or(ClassId(0))))
    }

    pub(super) fn sends_to(&self, class: ClassId) -> bool {
        self.filters.iter().any(|(_, options)| options.flow == Some(class))
    }

    pub(super) fn shown(&self) -> Vec<ShownFilter> {
        let shown = |(handle, options): &(u32, BasicOptions)| ShownFilter {
            handle: Some(FilterHandle::Number(*handle)),
            flow: options.flow,
            options: describe_basic(*handle, options),
        };
        self.filters.iter().map(shown).collect()
    }
}

//! `fw`: the filters of one priority, by marks.
//!
//! All have one mask. Without any, a mark is itself the class. They are listed as the kernel lists them: by
//! 256 buckets, in each the newest first. Source: Linux net/sched/cls_fw.c, by behaviour.

use super::error::TcFilterError;
use super::outcome::{Outcome, ShownFilter};
use quietcore_qdisc::tc::{FilterHandle, FwOptions, describe_fw};
use quietcore_qdisc::{ClassId, Packet};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::control) struct Marks {
    mask: u32,
    /// As they are listed.
    filters: Vec<(u32, Option<ClassId>)>,
}

/// The bucket of a mark.
const fn bucket(mark: u32) -> u32 {
    let mark = mark ^ mark >> 16;
    (mark ^ mark >> 8) & 0xff
}

impl Marks {
    /// Without a handle and without options nothing is added: marks are taken for classes then.
    pub(super) fn add(
        &mut self,
        options: &FwOptions,
        handle: Option<FilterHandle>,
    ) -> Result<(), TcFilterError> {
        if handle.is_none() && *options == FwOptions::default() {
            return Ok(());
        }
        let Some(FilterHandle::Mark { value: value @ 1.., mask }) = handle else {
            return Err(TcFilterError::NoMark);
        };
        if *options == FwOptions::default() {
            return Err(TcFilterError::NoClass);
        }
        if !self.filters.is_empty() && mask != self.mask {
            return Err(TcFilterError::OtherMask(self.mask));
        }
        self.mask = mask;
        let place = self.filters.partition_point(|(mark, _)| bucket(*mark) < bucket(value));
        self.filters.insert(place, (value, options.flow));
        Ok(())
    }

    fn place(&self, handle: FilterHandle) -> Option<usize> {
        let FilterHandle::Mark { value, .. } = handle else { return None };
        self.filters.iter().position(|(mark, _)| *mark == value)
    }

    pub(super) fn holds(&self, handle: FilterHandle) -> bool {
        self.place(handle).is_some()
    }

    pub(super) fn change(&mut self, options: &FwOptions, handle: FilterHandle) {
        if let Some(place) = self.place(handle) {
            let flow = &mut self.filters[place].1;
            *flow = options.flow.or(*flow);
        }
    }

    /// Says whether it was the last one.
    pub(super) fn remove(&mut self, handle: FilterHandle) -> Result<bool, TcFilterError> {
        let place = self.place(handle).ok_or(TcFilterError::UnknownFilter(handle))?;
        self.filters.remove(place);
        Ok(self.filters.is_empty())
    }

    pub(super) fn ask(&self, packet: &impl Packet) -> Outcome {
        let mark = packet.mark();
        if self.filters.is_empty() {
            return if mark == 0 { Outcome::Next } else { Outcome::For(ClassId(mark)) };
        }
        let found = self.filters.iter().find(|(wanted, _)| *wanted == mark & self.mask);
        found.map_or(Outcome::Next, |(_, flow)| Outcome::For(flow.unwrap_or(ClassId(0))))
    }

    pub(super) fn sends_to(&self, class: ClassId) -> bool {
        self.filters.iter().any(|(_, flow)| *flow == Some(class))
    }

    pub(super) fn shown(&self) -> Vec<ShownFilter> {
        let shown = |(value, flow): &(u32, Option<ClassId>)| {
            let handle = FilterHandle::Mark { value: *value, mask: self.mask };
            ShownFilter { handle: Some(handle), flow: *flow, options: describe_fw(handle, *flow) }
        };
        self.filters.iter().map(shown).collect()
    }
}

//! `fw`: the filters of one priority, by marks.
//!
//! All have one mask. Without any, a mark is itself the class. They are listed as the kernel lists them: by
//! 256 buckets, in each the newest first. Source: Linux net/sched/cls_fw.c, by behaviour.

use super::super::action::{ActionChain, Asked};
use super::error::TcFilterError;
use super::outcome::{Outcome, ShownFilter};
use quietcore_live::Nanos;
use quietcore_qdisc::tc::{FilterHandle, FwOptions, describe_fw};
use quietcore_qdisc::{ClassId, Packet};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::control) struct Marks {
    mask: u32,
    /// As they are listed.
    filters: Vec<Marked>,
}

/// What becomes of packets of a mark.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Marked {
    mark: u32,
    flow: Option<ClassId>,
    actions: ActionChain,
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
        actions: &ActionChain,
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
        let place = self.filters.partition_point(|marked| bucket(marked.mark) < bucket(value));
        let actions = actions.clone();
        self.filters.insert(place, Marked { mark: value, flow: options.flow, actions });
        Ok(())
    }

    fn place(&self, handle: FilterHandle) -> Option<usize> {
        let FilterHandle::Mark { value, .. } = handle else { return None };
        self.filters.iter().position(|marked| marked.mark == value)
    }

    pub(super) fn holds(&self, handle: FilterHandle) -> bool {
        self.place(handle).is_some()
    }

    /// The class stays, if none is named; the actions do not.
    pub(super) fn change(&mut self, options: &FwOptions, actions: &ActionChain, handle: FilterHandle) {
        if let Some(place) = self.place(handle) {
            let marked = &mut self.filters[place];
            marked.flow = options.flow.or(marked.flow);
            marked.actions = actions.clone();
        }
    }

    /// Says whether it was the last one.
    pub(super) fn remove(&mut self, handle: FilterHandle) -> Result<bool, TcFilterError> {
        let place = self.place(handle).ok_or(TcFilterError::UnknownFilter(handle))?;
        self.filters.remove(place);
        Ok(self.filters.is_empty())
    }

    pub(super) fn ask(&self, packet: &impl Packet, asked: &mut Asked) -> Outcome {
        let mark = packet.mark();
        if self.filters.is_empty() {
            return if mark == 0 { Outcome::Next } else { Outcome::For(ClassId(mark)) };
        }
        let mut met = self.filters.iter().filter(|marked| marked.mark == mark & self.mask);
        let said = met.find_map(|marked| Outcome::or_next(marked.flow, &marked.actions, asked));
        said.unwrap_or(Outcome::Next)
    }

    pub(super) fn sends_to(&self, class: ClassId) -> bool {
        self.filters.iter().any(|marked| marked.flow == Some(class))
    }

    pub(super) fn shown(&self, now: Nanos) -> Vec<ShownFilter> {
        let shown = |Marked { mark, flow, actions }: &Marked| {
            let handle = FilterHandle::Mark { value: *mark, mask: self.mask };
            let mut options = describe_fw(handle, *flow);
            // `tc` ends the line of a `fw` twice.
            options.text_only(if actions.is_list() { "\n" } else { "" });
            actions.describe(now, &mut options);
            ShownFilter { handle: Some(handle), flow: *flow, options }
        };
        self.filters.iter().map(shown).collect()
    }
}

//! What a device has: its root, and where in it a command's words lead.

use super::clsact::ClsactEntry;
use super::error::TcControlError;
use super::node::{Estimate, QdiscNode, node, node_mut};
use crate::device::Device;
use core::fmt::Debug;
use quietcore_live::Nanos;
use quietcore_qdisc::tc::{CLSACT, TcParent};
use quietcore_qdisc::{ClassId, Packet};
use std::collections::BTreeMap;
use std::sync::Arc;

pub(super) struct DeviceEntry<P> {
    pub(super) device: Arc<Device<P>>,
    pub(super) root: DeviceRoot,
    /// `ingress` or `clsact`.
    pub(super) clsact: Option<ClsactEntry<P>>,
}

pub(super) enum DeviceRoot {
    /// One discipline per queue.
    Mq {
        /// 0 of the default.
        handle: u16,
        estimate: Option<Estimate>,
    },
    /// One for all, which is queue 0's.
    One,
}

/// A place that can have a discipline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Attachment {
    Root,
    /// A queue of `mq`.
    Queue(usize),
    /// A class of the discipline `owner`.
    Slot {
        owner: u16,
        class: ClassId,
    },
}

/// The discipline at a place, if it is no default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Occupant {
    pub(super) handle: u16,
    pub(super) kind: &'static str,
}

/// A place, as it would be typed.
pub(super) fn place_text(place: Option<ClassId>) -> String {
    place.map_or_else(|| "root".into(), |parent| format!("parent {parent}"))
}

impl<P: Packet + Debug + Send> DeviceEntry<P> {
    /// Shows every discipline that `Control` made, with its queue and its place.
    pub(super) fn each(&self, mut visit: impl FnMut(usize, Option<ClassId>, &QdiscNode<P>)) {
        for queue in 0..self.device.queues() {
            let top = self.top(queue);
            self.device.look(queue, |qdisc| {
                if let Some(node) = node(qdisc) {
                    node.walk(top, &mut |place, node| visit(queue, place, node));
                }
            });
        }
    }

    /// The place of a queue's discipline.
    pub(super) fn top(&self, queue: usize) -> Option<ClassId> {
        match &self.root {
            // Devices have fewer queues than there are minor numbers; more than that cannot be named.
            DeviceRoot::Mq { handle, .. } => {
                Some(ClassId::new(*handle, u16::try_from(queue + 1).unwrap_or(u16::MAX)))
            }
            DeviceRoot::One => None,
        }
    }

    /// The queue below which a handle is; `mq` is below none.
    pub(super) fn queue_of(&self, handle: u16) -> Option<usize> {
        let mut found = None;
        self.each(|queue, _, node| {
            if node.handle == handle {
                found = Some(queue);
            }
        });
        found
    }

    /// How many disciplines there are on the way to a handle, its own included.
    pub(super) fn depth(&self, handle: u16) -> usize {
        let mut owners = BTreeMap::new();
        self.each(|_, place, node| {
            owners.insert(node.handle, place.map_or(0, ClassId::major));
        });
        core::iter::successors(Some(handle), |handle| owners.get(handle).copied())
            .take_while(|handle| owners.contains_key(handle))
            .take(owners.len())
            .count()
    }

    /// All handles that there are, in order of their places.
    pub(super) fn handles(&self) -> Vec<ClassId> {
        let mut handles = Vec::new();
        if let DeviceRoot::Mq { handle, .. } = self.root
            && handle != 0
        {
            handles.push(ClassId::new(handle, 0));
        }
        self.each(|_, _, node| handles.push(node.id()));
        handles.extend(self.clsact.as_ref().map(|_| ClassId::new(CLSACT.major(), 0)));
        handles
    }

    /// Where a handle is, as it would be typed.
    pub(super) fn place_of(&self, handle: u16) -> Option<String> {
        if self.mq() == Some(handle) {
            return Some("root".into());
        }
        let clsact = self.clsact.as_ref().filter(|_| handle == CLSACT.major());
        let mut found = clsact.map(|clsact| clsact.kind.name().into());
        self.each(|_, place, node| {
            if node.handle == handle {
                found = Some(place_text(place));
            }
        });
        found
    }

    /// The handle of `mq`, if it is one that can be named.
    pub(super) const fn mq(&self) -> Option<u16> {
        match &self.root {
            DeviceRoot::Mq { handle, .. } if *handle != 0 => Some(*handle),
            _ => None,
        }
    }

    /// Looks at the discipline of a handle.
    pub(super) fn look<R>(
        &self,
        handle: u16,
        look: impl FnOnce(&QdiscNode<P>) -> R,
    ) -> Result<R, TcControlError> {
        let mut look = Some(look);
        let mut answer = None;
        self.each(|_, _, node| {
            if node.handle == handle
                && let Some(look) = look.take()
            {
                answer = Some(look(node));
            }
        });
        answer.ok_or_else(|| self.unknown(handle))
    }

    pub(super) fn unknown(&self, handle: u16) -> TcControlError {
        TcControlError::UnknownHandle { handle: ClassId::new(handle, 0), known: self.handles() }
    }

    /// Changes the discipline of a handle; the queue is run again then.
    pub(super) fn change<R>(
        &self,
        handle: u16,
        now: Nanos,
        change: impl FnOnce(&mut QdiscNode<P>) -> Result<R, TcControlError>,
    ) -> Result<R, TcControlError> {
        let queue = self.queue_of(handle).ok_or_else(|| self.unknown(handle))?;
        let (mut change, mut answer) = (Some(change), None);
        self.device.with_qdisc(queue, |qdisc| {
            if let Some(node) = node_mut(qdisc) {
                node.with(now, handle, &mut |node| answer = change.take().map(|change| change(node)));
            }
        });
        answer.unwrap_or_else(|| Err(self.unknown(handle)))
    }

    /// Where a command's words lead.
    pub(super) fn resolve(&self, place: TcParent) -> Result<Attachment, TcControlError> {
        let TcParent::Parent(named) = place else { return Ok(Attachment::Root) };
        let owner = named.major();
        if owner == 0 {
            return Err(self.unknown(0));
        }
        if self.mq() == Some(owner) {
            let queue =
                usize::from(named.minor()).checked_sub(1).filter(|queue| *queue < self.device.queues());
            let known = (0..self.device.queues()).filter_map(|queue| self.top(queue)).collect();
            let unknown = || TcControlError::UnknownClass { class: named, known };
            return queue.map(Attachment::Queue).ok_or_else(unknown);
        }
        self.look(owner, |node| {
            let slots = node.slots();
            if let Some(class) = node.slot(named) {
                return Ok(Attachment::Slot { owner, class });
            }
            if slots.is_empty() && !node.body.has_filters() {
                let what = format!("{} {} has no classes", node.options.kind(), node.id());
                return Err(TcControlError::not_possible(what, "only classes have disciplines inside"));
            }
            if node.classes.contains_key(&named) {
                return Err(TcControlError::in_use(named, "classes below it"));
            }
            Err(TcControlError::UnknownClass { class: named, known: slots })
        })?
    }

    /// The discipline there, if it is no default.
    pub(super) fn occupant(&self, spot: Attachment) -> Option<Occupant> {
        let of = |node: &QdiscNode<P>| Occupant { handle: node.handle, kind: node.options.kind() };
        match (spot, &self.root) {
            (Attachment::Root, DeviceRoot::Mq { handle, .. }) => {
                (*handle != 0).then_some(Occupant { handle: *handle, kind: "mq" })
            }
            (Attachment::Root, DeviceRoot::One) => self.device.look(0, |qdisc| node(qdisc).map(of)),
            (Attachment::Queue(queue), _) => self.device.look(queue, |qdisc| node(qdisc).map(of)),
            (Attachment::Slot { owner, class }, _) => {
                self.look(owner, |node| node.child(class).map(of)).ok().flatten()
            }
        }
    }
}

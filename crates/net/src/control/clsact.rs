//! `ingress` and `clsact`: filters of packets that come in at a device, and of those that are sent before
//! they are queued.
//!
//! Neither queues anything; their filters' actions let a packet pass, drop it or send it through another
//! device. All of their filters and counts are under one lock, which no packet waits for where there is no
//! filter.
//!
//! Source: Linux 6.12 net/sched/sch_ingress.c, act_mirred.c, net/core/dev.c, by behaviour: packets are
//! counted where there is a filter, and only there; those of `ingress` are asked whatever their parent is
//! called, and it is shown by the name that was last typed; what comes in counts without the header of the
//! link.

use super::TcControlError;
use super::action::{Asked, SharedAction};
use super::filter::{Classified, FilterBlock, FilterOrder};
use super::node::Estimate;
use crate::device::Device;
use crate::hook::{Hooked, PacketHook};
use core::cell::Cell;
use core::fmt::Debug;
use core::marker::PhantomData;
use quietcore_live::Machine;
use quietcore_qdisc::tc::{CLSACT, CLSACT_EGRESS, CLSACT_INGRESS};
use quietcore_qdisc::{ClassId, Packet, Statistics};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// Devices that a packet may go through from one to the other by `mirred`, without having been queued, and
/// through none of them twice.
const NEST_MAX: usize = 4;

thread_local! {
    /// Where they are, as far as there are any.
    static NEST: Cell<[Option<usize>; NEST_MAX]> = const { Cell::new([None; NEST_MAX]) };
}

/// Which of the two it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ClsactKind {
    Ingress,
    Clsact,
}

impl ClsactKind {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Ingress => "ingress",
            Self::Clsact => "clsact",
        }
    }

    /// The kind of that name.
    pub(super) fn named(name: &str) -> Option<Self> {
        [Self::Ingress, Self::Clsact].into_iter().find(|kind| kind.name() == name)
    }

    /// Which packets the filters of `parent` are for.
    pub(super) fn side(self, parent: ClassId) -> Result<ClsactSide, TcControlError> {
        match (self, parent) {
            (Self::Ingress, _) | (Self::Clsact, CLSACT_INGRESS) => Ok(ClsactSide::Ingress),
            (Self::Clsact, CLSACT_EGRESS) => Ok(ClsactSide::Egress),
            _ => {
                let what = format!("Specified class doesn't exist: clsact has no filters of {parent}");
                Err(TcControlError::not_possible(what, "say `ingress` or `egress`"))
            }
        }
    }
}

/// Which packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ClsactSide {
    /// Those that come in.
    Ingress,
    /// Those that are sent.
    Egress,
}

/// The `ingress` or `clsact` of a device.
pub(super) struct ClsactEntry<P> {
    pub(super) kind: ClsactKind,
    pub(super) filters: Arc<ClsactFilters<P>>,
    pub(super) estimate: Option<Estimate>,
}

/// Its filters.
pub(super) struct ClsactFilters<P> {
    machine: &'static Machine,
    state: Mutex<ClsactState>,
    packets: PhantomData<fn(P)>,
}

/// The filters of one side, and the parent that was named last.
#[derive(Debug)]
pub(super) struct ClsactBlock {
    pub(super) filters: FilterBlock,
    pub(super) parent: ClassId,
}

#[derive(Debug)]
struct ClsactState {
    ingress: ClsactBlock,
    egress: ClsactBlock,
    statistics: Statistics,
}

impl ClsactState {
    const fn side(&mut self, side: ClsactSide) -> &mut ClsactBlock {
        match side {
            ClsactSide::Ingress => &mut self.ingress,
            ClsactSide::Egress => &mut self.egress,
        }
    }
}

impl<P: Packet + Debug + Send> ClsactEntry<P> {
    /// One without filters.
    pub(super) fn new(machine: &'static Machine, kind: ClsactKind, estimate: Option<Estimate>) -> Self {
        let block = || ClsactBlock { filters: FilterBlock::default(), parent: CLSACT };
        let statistics = Statistics::default();
        let state = Mutex::new(ClsactState { ingress: block(), egress: block(), statistics });
        Self { kind, filters: Arc::new(ClsactFilters { machine, state, packets: PhantomData }), estimate }
    }

    /// Carries out a command about filters of `parent`; the device asks them from now on.
    pub(super) fn execute(
        &self,
        device: &Device<P>,
        parent: ClassId,
        order: &FilterOrder<'_>,
    ) -> Result<(), TcControlError> {
        let side = self.kind.side(parent)?;
        let mut state = self.filters.lock();
        let block = state.side(side);
        block.filters.execute(order)?;
        if order.adds() {
            block.parent = parent;
        }
        let is_empty = block.filters.priorities.is_empty();
        drop(state);
        let asked: Arc<dyn PacketHook<P>> = Arc::new(ClsactHook { filters: Arc::clone(&self.filters), side });
        let point = match side {
            ClsactSide::Ingress => device.ingress(),
            ClsactSide::Egress => device.egress(),
        };
        point.set((!is_empty).then_some(asked));
        Ok(())
    }
}

impl<P> ClsactFilters<P> {
    fn lock(&self) -> MutexGuard<'_, ClsactState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn statistics(&self) -> Statistics {
        self.lock().statistics
    }

    /// Looks at the filters of one side.
    pub(super) fn look<R>(&self, side: ClsactSide, look: impl FnOnce(&ClsactBlock) -> R) -> R {
        look(self.lock().side(side))
    }
}

/// What a device asks of its packets.
struct ClsactHook<P> {
    filters: Arc<ClsactFilters<P>>,
    side: ClsactSide,
}

impl<P: Packet + Debug + Send> PacketHook<P> for ClsactHook<P> {
    fn pass(&self, packet: P) -> Hooked<P> {
        let now = self.filters.machine.now();
        let mut asked = match self.side {
            ClsactSide::Ingress => Asked::received(now, &packet),
            ClsactSide::Egress => Asked::sent(now, &packet),
        };
        let size = asked.size;
        let mut state = self.filters.lock();
        let said = state.side(self.side).filters.first(&packet, &mut asked);
        state.statistics.sent_bytes += u64::from(size.bytes);
        state.statistics.sent_packets += u64::from(size.packets);
        state.statistics.dropped += if said == Classified::Drop { u64::from(size.packets) } else { 0 };
        drop(state);
        match said {
            Classified::Drop => {
                asked.mirreds.iter().for_each(|mirror| copy_to(mirror, &packet));
                Hooked::Dropped
            }
            Classified::Stolen => self.redirect(packet, &asked.mirreds),
            Classified::Class(_) | Classified::Unknown => {
                asked.mirreds.iter().for_each(|mirror| copy_to(mirror, &packet));
                Hooked::On(packet)
            }
        }
    }
}

impl<P: Packet + Debug + Send> ClsactHook<P> {
    /// Copies go to all but the last; that gets the packet.
    fn redirect(&self, packet: P, sent: &[Arc<SharedAction>]) -> Hooked<P> {
        let Some((last, mirrors)) = sent.split_last() else { return Hooked::On(packet) };
        mirrors.iter().for_each(|mirror| copy_to(mirror, &packet));
        let packets = packet.packets();
        if send(last, packet).is_err() {
            self.filters.lock().statistics.dropped += u64::from(packets);
            return Hooked::Dropped;
        }
        Hooked::Taken
    }
}

fn copy_to<P: Packet + Debug + Send>(action: &SharedAction, packet: &P) {
    match packet.duplicate() {
        Some(copy) => _ = send(action, copy),
        None => action.not_sent(packet.packets()),
    }
}

/// There is no device any more, or it is one too many.
struct CannotSend;

/// Sends a packet through the device of an action.
fn send<P: Packet + Debug + Send>(action: &SharedAction, packet: P) -> Result<(), CannotSend> {
    let packets = packet.packets();
    let target = action.target();
    let device = target.as_ref().and_then(|target| target.device::<Weak<Device<P>>>()?.upgrade());
    let Some((device, _nested)) =
        device.and_then(|device| Some((Arc::clone(&device), Nested::through(&device)?)))
    else {
        action.not_sent(packets);
        return Err(CannotSend);
    };
    if !device.send(packet).is_accepted() {
        action.not_sent(packets);
    }
    Ok(())
}

/// On the way through one device more; dropped, also by a panic, it is one less.
struct Nested(usize);

impl Nested {
    /// `None` if there is no way: a packet goes round and round, or from one to the other for too long.
    fn through<P>(device: &Arc<Device<P>>) -> Option<Self> {
        let mut nest = NEST.get();
        let address = Arc::as_ptr(device).addr();
        if nest.contains(&Some(address)) {
            return None;
        }
        let free = nest.iter().position(Option::is_none)?;
        nest[free] = Some(address);
        NEST.set(nest);
        Some(Self(free))
    }
}

impl Drop for Nested {
    fn drop(&mut self) {
        let mut nest = NEST.get();
        nest[self.0] = None;
        NEST.set(nest);
    }
}

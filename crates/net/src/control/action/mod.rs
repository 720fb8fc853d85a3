//! Actions of filters while they run: each with its number, its counts, and its own lock, since filters of
//! several queues and devices can have one in common.
//!
//! Lock order: the control's state, a queue's or a hook's, an action's. Source: Linux 6.12
//! net/sched/act_api.c, act_mirred.c, by behaviour. Deviation: an action is there as long as a filter has it;
//! `tc actions` does not exist.

mod chain;
mod table;

pub(in crate::control) use chain::{ActionChain, Asked, Said};
pub(in crate::control) use table::{ActionContext, ActionTable};

use core::any::Any;
use core::fmt::{self, Debug, Formatter};
use quietcore_live::Nanos;
use quietcore_qdisc::Statistics;
use quietcore_qdisc::action::{ControlAction, Gact, Police};
use quietcore_qdisc::tc::{ActionUse, FilterAction, MirredKind, RandomWords};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// An action that filters have.
pub(in crate::control) struct SharedAction {
    told: FilterAction,
    index: u32,
    state: Mutex<ActionState>,
}

struct ActionState {
    body: ActionBody,
    installed: Nanos,
    /// When it was asked, first and last.
    asked: Option<(Nanos, Nanos)>,
    statistics: Statistics,
}

/// What decides.
pub(super) enum ActionBody {
    Gact(Gact, RandomWords),
    Police(Police),
    Mirred(MirredKind, MirredTarget),
}

/// Where packets go: a device of the type that who sends them there knows.
#[derive(Clone)]
pub(in crate::control) struct MirredTarget(Arc<dyn Any + Send + Sync>);

impl MirredTarget {
    pub(in crate::control) fn new(device: impl Any + Send + Sync) -> Self {
        Self(Arc::new(device))
    }

    /// The device as what it is.
    pub(in crate::control) fn device<D: 'static>(&self) -> Option<&D> {
        self.0.downcast_ref()
    }
}

/// What one action says.
enum OneSaid {
    Control(ControlAction),
    /// The packet goes elsewhere, or a copy of it.
    Sends(MirredKind),
}

impl Debug for SharedAction {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        out.debug_struct("SharedAction")
            .field("told", &self.told)
            .field("index", &self.index)
            .finish_non_exhaustive()
    }
}

impl SharedAction {
    fn new(told: FilterAction, index: u32, body: ActionBody, now: Nanos) -> Self {
        let state = ActionState { body, installed: now, asked: None, statistics: Statistics::default() };
        Self { told, index, state: Mutex::new(state) }
    }

    fn lock(&self) -> MutexGuard<'_, ActionState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ask(&self, &Asked { now, size, longest, .. }: &Asked) -> OneSaid {
        let mut state = self.lock();
        let ActionState { body, asked, statistics, .. } = &mut *state;
        asked.get_or_insert((now, now)).1 = now;
        statistics.sent_bytes += u64::from(size.bytes);
        statistics.sent_packets += u64::from(size.packets);
        let control = match body {
            ActionBody::Gact(gact, random) => gact.ask(random),
            ActionBody::Police(police) => {
                let verdict = police.ask(now, size, longest);
                statistics.overlimits += if verdict.exceeds { u64::from(size.packets) } else { 0 };
                verdict.control
            }
            ActionBody::Mirred(kind, _) => return OneSaid::Sends(*kind),
        };
        statistics.dropped += if control == ControlAction::Drop { u64::from(size.packets) } else { 0 };
        OneSaid::Control(control)
    }

    /// Where its packets go, if it is a `mirred`.
    pub(in crate::control) fn target(&self) -> Option<MirredTarget> {
        match &self.lock().body {
            ActionBody::Mirred(_, target) => Some(target.clone()),
            _ => None,
        }
    }

    /// A packet could not be sent where it was to go.
    pub(in crate::control) fn not_sent(&self, packets: u32) {
        self.lock().statistics.overlimits += u64::from(packets);
    }

    /// What is known of it; `bound` filters have it.
    fn describe(&self, bound: usize, now: Nanos) -> ActionUse {
        let ActionState { installed, asked, statistics, .. } = &*self.lock();
        let age = |moment: Nanos| Nanos(now.0.saturating_sub(moment.0));
        ActionUse {
            told: self.told.clone(),
            index: self.index,
            bound: u32::try_from(bound).unwrap_or(u32::MAX),
            installed: age(*installed),
            used: age(asked.map_or(*installed, |(_, last)| last)),
            first_used: asked.map(|(first, _)| age(first)),
            statistics: *statistics,
        }
    }
}

//! The actions that there are, by their numbers, of each kind its own.

use super::{ActionBody, ActionChain, MirredTarget, SharedAction};
use crate::control::TcControlError;
use core::fmt::Debug;
use quietcore_live::Nanos;
use quietcore_qdisc::action::{Gact, Police};
use quietcore_qdisc::tc::{
    FilterAction, FilterActions, GactOptions, MirredDirection, MirredOptions, RandomWords,
};
use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

/// What making actions takes from what the control knows.
pub(in crate::control) struct ActionContext<'a> {
    pub(in crate::control) now: Nanos,
    /// Random numbers of a new seed.
    pub(in crate::control) random: &'a mut dyn FnMut() -> RandomWords,
    /// The device of a name.
    pub(in crate::control) device: &'a dyn Fn(&str) -> Result<MirredTarget, TcControlError>,
}

/// The actions that filters have.
#[derive(Debug, Default)]
pub(in crate::control) struct ActionTable {
    /// By kind and number; what no filter has any more is not there.
    actions: BTreeMap<(&'static str, u32), Weak<SharedAction>>,
}

const fn kind(action: &FilterAction) -> &'static str {
    match action {
        FilterAction::Police(_) => "police",
        FilterAction::Mirred(_) => "mirred",
        _ => "gact",
    }
}

fn index(action: &FilterAction) -> Option<u32> {
    match action {
        FilterAction::Gact(options) => options.index,
        FilterAction::Police(options) => options.index,
        FilterAction::Mirred(options) => options.index,
        _ => None,
    }
}

impl ActionTable {
    /// The actions of a line: those that it names by numbers are as they are, others are made.
    pub(in crate::control) fn chain(
        &mut self,
        typed: &FilterActions,
        context: &mut ActionContext<'_>,
    ) -> Result<ActionChain, TcControlError> {
        self.actions.retain(|_, action| action.strong_count() > 0);
        let police;
        let (list, is_old) = match typed {
            FilterActions::List(list) => (&list[..], false),
            FilterActions::Police(options) => {
                police = [FilterAction::Police(options.clone())];
                (&police[..], true)
            }
            _ => (&[][..], false),
        };
        let actions: Result<_, _> = list.iter().map(|action| self.action(action, context)).collect();
        Ok(ActionChain::new(actions?, is_old))
    }

    fn action(
        &mut self,
        typed: &FilterAction,
        context: &mut ActionContext<'_>,
    ) -> Result<Arc<SharedAction>, TcControlError> {
        let kind = kind(typed);
        let named = index(typed);
        let there = named.and_then(|index| self.actions.get(&(kind, index))).and_then(Weak::upgrade);
        if let Some(there) = there {
            return Ok(there);
        }
        let is_free = |index: &u32| {
            let there = self.actions.get(&(kind, *index));
            there.is_none_or(|action| action.strong_count() == 0)
        };
        // There are fewer actions than numbers.
        let index = named.or_else(|| (1..=u32::MAX).find(is_free)).unwrap_or(u32::MAX);
        let body = body(typed, context)?;
        let made = Arc::new(SharedAction::new(typed.clone(), index, body, context.now));
        self.actions.insert((kind, index), Arc::downgrade(&made));
        Ok(made)
    }
}

fn body(typed: &FilterAction, context: &mut ActionContext<'_>) -> Result<ActionBody, TcControlError> {
    match typed {
        FilterAction::Gact(GactOptions { control, random, .. }) => {
            let numbers: RandomWords = match random {
                Some(_) => (context.random)(),
                None => Box::new(|| 0),
            };
            Ok(ActionBody::Gact(Gact::new(*control, *random), numbers))
        }
        FilterAction::Police(options) => {
            let settings = options.settings();
            let settings = settings.map_err(|refusal| TcControlError::refused(refusal, Vec::new()))?;
            Ok(ActionBody::Police(Police::new(settings, context.now)))
        }
        FilterAction::Mirred(MirredOptions { kind, direction, device, .. }) => {
            let target = (context.device)(device)?;
            if *direction == MirredDirection::Ingress {
                let what = format!(
                    "mirred ingress {} dev {device}: what comes in at a device is not the",
                    kind.name()
                );
                return Err(TcControlError::not_possible(
                    format!("{what} device's to give on, but the program's that runs it"),
                    "use `mirred egress`",
                ));
            }
            Ok(ActionBody::Mirred(*kind, target))
        }
        other => {
            let what = format!("action `{other}` is not known here");
            Err(TcControlError::not_possible(what, "use gact, police or mirred"))
        }
    }
}

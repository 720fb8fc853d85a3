//! What is open on one CPU: each on top of what it came in.

use super::cause::CauseId;
use super::source::ThingKey;
use crate::figures::side::TimerSide;
use quietcore_core::Nanos;
use quietcore_trace::{DisturbanceSource, InterruptContext, NameId, Record};

/// So many are open at once at most, of a hostile input: more are ends that are missing.
const OPEN_MAX: usize = 64;

/// It has begun and not ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct Open {
    pub(super) key: ThingKey,
    pub(super) name: NameId,
    /// Where it is counted; `None` on a CPU that is not watched.
    pub(super) row: Option<usize>,
    pub(super) cause: Option<CauseId>,
    /// Of a wheel timer's callback, where another CPU had armed it and this one is isolated.
    pub(super) side: Option<TimerSide>,
    /// What the CPU was doing when it began, itself included.
    pub(super) context: Option<InterruptContext>,
    pub(super) since: Nanos,
    /// How long others were on top of it since.
    pub(super) above: u64,
    /// Its own time before its task lost the CPU and had it again.
    pub(super) before: u64,
}

impl Open {
    /// It begins with an event.
    pub(super) fn of(
        record: &Record<'_>,
        key: ThingKey,
        name: NameId,
        row: Option<usize>,
        cause: Option<CauseId>,
    ) -> Self {
        let (context, since) = (record.context, record.at);
        Self { key, name, row, cause, side: None, context, since, above: 0, before: 0 }
    }
}

/// What is open on a CPU, the last on top.
#[derive(Debug, Default)]
pub(super) struct SpanStack(Vec<Open>);

impl SpanStack {
    pub(super) fn begin(&mut self, thing: Open) {
        self.0.retain(|open| open.key != thing.key);
        if self.0.len() >= OPEN_MAX {
            self.0.clear();
        }
        self.0.push(thing);
    }

    /// What is on top is a timer's callback of this side.
    pub(super) fn came_from(&mut self, side: Option<TimerSide>) {
        if let Some(callback) = self.0.last_mut() {
            callback.side = side;
        }
    }

    /// It, and how long nothing was on top of it; `None` if it began before the input did.
    pub(super) fn end(&mut self, key: ThingKey, now: Nanos) -> Option<(Open, u64)> {
        let place = self.0.iter().rposition(|open| open.key == key)?;
        // What was on top of it has ended, too, and no event said so.
        self.0.truncate(place + 1);
        self.pop(now)
    }

    /// Ends what is on top.
    pub(super) fn pop(&mut self, now: Nanos) -> Option<(Open, u64)> {
        let open = self.0.pop()?;
        let all = now.since(open.since).0;
        self.cover(all);
        Some((open, open.before.saturating_add(all.saturating_sub(open.above))))
    }

    /// What is on top was not there for so long.
    pub(super) fn cover(&mut self, nanos: u64) {
        if let Some(below) = self.0.last_mut() {
            below.above = below.above.saturating_add(nanos);
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Open> {
        self.0.iter()
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// What an event happened in, whose CPU was doing `context` then.
    pub(super) fn within(
        &self,
        context: Option<InterruptContext>,
        may_be: impl Fn(DisturbanceSource) -> bool,
    ) -> Option<&Open> {
        let is_it = |open: &&Open| context.is_none() || open.context.is_none() || open.context == context;
        self.0.iter().rev().filter(|open| may_be(open.key.0)).find(is_it)
    }
}

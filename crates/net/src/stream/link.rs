//! One way of one connection: what was read, the toxics that it goes through, and what may be written.
//!
//! ```text
//! feed -> buffer 0 -> stage 0 -> buffer 1 -> stage 1 -> buffer 2 -> exit
//! ```
//!
//! A buffer holds what the stage behind it does not take yet. Everything that is due by a moment happens in
//! the order of its own moments, however late or seldom the caller looks, so delays add up exactly.
//!
//! Invariants (tests beside this file): bytes leave in the order in which they came; `came` is `went`,
//! `dropped` and what is held; a change of toxics loses and reorders nothing; what is held is bounded, as the
//! caller reads no more than there is [`room`](StreamLink::room) for.
//! Not here: sockets and clocks. Moments come as arguments.

use super::draws::DrawKey;
use super::stage::{Stage, StreamItem};
use super::toxic::ToxicKind;
use bytes::Bytes;
use quietcore_core::Nanos;
use std::collections::VecDeque;

/// What waits for the first stage, or to be written where there is none: more is not read.
const WAITING_MAX: u64 = 1 << 16;
/// Memory that a piece takes besides its bytes.
const PIECE_COST: u64 = 128;

/// A toxic as a link is told of it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct AppliedToxic {
    /// Of this toxic alone, as long as the relay runs.
    pub(super) id: u64,
    /// Another one each time it is changed.
    pub(super) revision: u64,
    pub(super) kind: ToxicKind,
    pub(super) toxicity: f64,
    pub(super) name: String,
}

/// Bytes of a link, and what happened to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct LinkCounts {
    /// Read.
    pub(super) came: u64,
    /// Written.
    pub(super) went: u64,
    /// Thrown away: by a toxic, or as nothing could be written any more.
    pub(super) dropped: u64,
    /// Times that a loss was waited for.
    pub(super) stalls: u64,
}

impl LinkCounts {
    /// Bytes that are neither here nor there.
    pub(super) const fn held(&self) -> u64 {
        self.came - self.went - self.dropped
    }
}

#[derive(Debug)]
struct LinkStage {
    id: u64,
    revision: u64,
    stage: Stage,
}

#[derive(Debug)]
pub(super) struct StreamLink {
    key: DrawKey,
    /// In bytes.
    memory_max: u64,
    stages: Vec<LinkStage>,
    /// One more than there are stages; the last is the exit.
    buffers: Vec<VecDeque<StreamItem>>,
    /// Until when all that was due has happened.
    clock: Nanos,
    counts: LinkCounts,
    /// Data that are held, in pieces.
    pieces: u64,
    is_ended: bool,
    /// Nothing can be written any more.
    is_broken: bool,
}

impl StreamLink {
    /// Numbers are drawn by `key`; `memory_max` is in bytes.
    pub(super) fn new(key: DrawKey, memory_max: u64, now: Nanos) -> Self {
        Self {
            key,
            memory_max,
            stages: Vec::new(),
            buffers: vec![VecDeque::new()],
            clock: now,
            counts: LinkCounts::default(),
            pieces: 0,
            is_ended: false,
            is_broken: false,
        }
    }

    pub(super) const fn counts(&self) -> LinkCounts {
        self.counts
    }

    /// Most bytes that may be fed now. After the end there are 0, and nothing need be read.
    pub(super) fn room(&self) -> usize {
        let waiting: u64 = self.buffers[0].iter().map(|item| item.len() + PIECE_COST).sum();
        if self.is_ended || waiting >= WAITING_MAX {
            return 0;
        }
        let held = self.counts.held() + self.pieces * PIECE_COST;
        usize::try_from(self.memory_max.saturating_sub(held)).unwrap_or(usize::MAX)
    }

    /// Takes what was read.
    pub(super) fn feed(&mut self, bytes: Bytes, now: Nanos) {
        self.counts.came += bytes.len() as u64;
        self.enter(StreamItem::Data(bytes), now);
    }

    /// There is no more to read: the stream has ended, or the connection was reset.
    pub(super) fn end(&mut self, item: StreamItem, now: Nanos) {
        if !self.is_ended {
            self.is_ended = true;
            self.enter(item, now);
        }
    }

    fn enter(&mut self, item: StreamItem, now: Nanos) {
        self.advance(now);
        if self.is_broken {
            self.counts.dropped += item.len();
            return;
        }
        self.pieces += u64::from(item.len() > 0);
        self.buffers[0].push_back(item);
        self.advance(now);
    }

    /// When to look again, whatever comes in.
    pub(super) fn next_expiry(&self) -> Option<Nanos> {
        self.stages.iter().filter_map(|it| it.stage.next_expiry()).min()
    }

    /// Lets everything happen that is due by `now`.
    pub(super) fn advance(&mut self, now: Nanos) {
        loop {
            while self.move_on() {}
            match self.next_expiry().filter(|expiry| *expiry <= now) {
                // It is taken at this moment at the latest, so the loop ends.
                Some(expiry) => self.clock = self.clock.max(expiry),
                None => break,
            }
        }
        self.clock = self.clock.max(now);
    }

    /// Moves what can be moved at the clock's moment, from the exit backwards; says whether there was any.
    fn move_on(&mut self) -> bool {
        let mut is_moved = false;
        for at in (0..self.stages.len()).rev() {
            while let Some(item) = self.stages[at].stage.next_due(self.clock) {
                self.buffers[at + 1].push_back(item);
                is_moved = true;
            }
            let room = self.stages[at].stage.room();
            if room > 0
                && let Some(item) = self.next_piece(at, room)
            {
                let stage = &mut self.stages[at].stage;
                let length = item.len();
                let dropped = stage.accept(item, self.clock);
                self.counts.dropped += dropped;
                self.counts.stalls += stage.take_stalls();
                self.pieces -= u64::from(length > 0 && dropped == length);
                is_moved = true;
            }
        }
        is_moved
    }

    /// Takes from a buffer what comes next, in a piece of at most so many bytes.
    fn next_piece(&mut self, at: usize, most: usize) -> Option<StreamItem> {
        match self.buffers[at].front_mut()? {
            StreamItem::Data(bytes) if bytes.len() > most => {
                self.pieces += 1;
                Some(StreamItem::Data(bytes.split_to(most)))
            }
            _ => self.buffers[at].pop_front(),
        }
    }

    /// What is to be written, or done, next.
    pub(super) fn exit(&self) -> Option<&StreamItem> {
        self.buffers.last()?.front()
    }

    /// So many bytes of the next item were written.
    pub(super) fn written(&mut self, length: usize) {
        self.counts.went += length as u64;
        let Some(exit) = self.buffers.last_mut() else { return };
        if let Some(StreamItem::Data(bytes)) = exit.front_mut() {
            let _ = bytes.split_to(length);
            if bytes.is_empty() {
                exit.pop_front();
                self.pieces -= 1;
            }
        }
    }

    /// The next item, which is not data, was done.
    pub(super) fn done(&mut self) {
        if let Some(exit) = self.buffers.last_mut() {
            exit.pop_front();
        }
    }

    /// Nothing can be written any more: all that is held, and all that comes, is dropped.
    pub(super) fn break_off(&mut self) {
        self.counts.dropped += self.counts.held();
        (self.is_broken, self.pieces) = (true, 0);
        self.stages.clear();
        self.buffers = vec![VecDeque::new()];
    }

    /// Has the toxics of this list from now on, in its order; those that it had already stay where they are.
    pub(super) fn apply(&mut self, toxics: &[AppliedToxic], now: Nanos) {
        self.advance(now);
        if self.is_broken {
            return;
        }
        for at in (0..self.stages.len()).rev() {
            let LinkStage { id, revision, .. } = self.stages[at];
            match toxics.iter().find(|toxic| toxic.id == id) {
                Some(toxic) if toxic.revision == revision => {}
                Some(toxic) => self.replace(at, toxic),
                None => self.remove(at),
            }
        }
        for toxic in toxics {
            if self.stages.iter().all(|stage| stage.id != toxic.id) {
                let exit = self.buffers.len() - 1;
                self.buffers.insert(exit, VecDeque::new());
                let stage = self.stage(toxic, 0);
                self.stages.push(stage);
            }
        }
        self.advance(now);
    }

    fn stage(&self, toxic: &AppliedToxic, passed: u64) -> LinkStage {
        let AppliedToxic { id, revision, kind, toxicity, .. } = *toxic;
        let stage = Stage::new(kind, toxicity, self.key.and(toxic.name.as_bytes()), self.clock, passed);
        LinkStage { id, revision, stage }
    }

    fn replace(&mut self, at: usize, toxic: &AppliedToxic) {
        let stage = self.stage(toxic, self.stages[at].stage.passed());
        let old = core::mem::replace(&mut self.stages[at], stage);
        self.buffers[at + 1].extend(old.stage.give_up());
    }

    fn remove(&mut self, at: usize) {
        let old = self.stages.remove(at);
        let waits = self.buffers.remove(at);
        self.buffers[at].extend(old.stage.give_up());
        self.buffers[at].extend(waits);
    }
}

#[cfg(test)]
mod tests;

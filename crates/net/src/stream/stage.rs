//! A toxic at work on one way of one connection: what comes in leaves at a moment, in order.
//!
//! Invariants: what is held leaves in the order in which it came, each at its moment or later, so no byte
//! overtakes another; after the end of the stream there are no data, and after a close nothing. Moments are
//! the world's to tell: there is no clock here.

use super::draws::{DrawKey, StreamDraws};
use super::toxic::ToxicKind;
use bytes::Bytes;
use quietcore_core::Nanos;
use std::collections::VecDeque;

/// What flows on a way of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum StreamItem {
    /// One piece, which is written by itself.
    Data(Bytes),
    /// There are no more; the other way goes on.
    End,
    /// The connection is closed.
    Close,
    /// The connection is reset.
    Reset,
}

impl StreamItem {
    pub(super) fn len(&self) -> u64 {
        if let Self::Data(bytes) = self { bytes.len() as u64 } else { 0 }
    }
}

/// A piece of data that can be lost, in bytes: a segment of TCP on Ethernet.
const SEGMENT: usize = 1448;
/// Losses in a row.
const LOSSES_MAX: u32 = 8;
/// Of a limited rate, the piece that leaves at once is what passes in so many ms.
const PIECE_MS: u64 = 10;

/// What may still come in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Intake {
    Open,
    /// The stream has ended.
    Ended,
    /// The connection is to be closed.
    Closed,
}

#[derive(Debug)]
pub(super) struct Stage {
    /// `None`: the toxic does not apply to this connection.
    kind: Option<ToxicKind>,
    draws: StreamDraws,
    held: VecDeque<(Nanos, StreamItem)>,
    intake: Intake,
    /// When it began; of `timeout` and `reset_peer`.
    began: Nanos,
    /// The last moment at which something leaves.
    last: Nanos,
    /// Of `bandwidth`: since when the link is busy, and with how many bytes.
    busy: (Nanos, u64),
    /// Of `slicer`: the size of the next piece.
    slice: usize,
    /// Bytes that have come in, in the life of the toxic; of `limit_data`.
    passed: u64,
    /// Whether data were thrown away that a program on the other side would miss.
    is_torn: bool,
    stalls: u64,
}

const fn millis(ms: u64) -> u64 {
    ms.saturating_mul(1_000_000)
}

const fn after(moment: Nanos, nanos: u64) -> Nanos {
    Nanos(moment.0.saturating_add(nanos))
}

impl Stage {
    /// Begins now. `passed` is what an earlier version of the toxic let through.
    pub(super) fn new(kind: ToxicKind, toxicity: f64, key: DrawKey, now: Nanos, passed: u64) -> Self {
        let mut draws = StreamDraws::new(key);
        let kind = draws.happens(toxicity).then_some(kind);
        let mut stage = Self {
            kind,
            draws,
            held: VecDeque::new(),
            intake: Intake::Open,
            began: now,
            last: now,
            busy: (now, 0),
            slice: 0,
            passed,
            is_torn: false,
            stalls: 0,
        };
        stage.draw_slice();
        stage
    }

    fn draw_slice(&mut self) {
        if let Some(ToxicKind::Slicer { average_size, size_variation, .. }) = self.kind {
            let size = if average_size == 0 {
                u64::MAX
            } else {
                let least = average_size.saturating_sub(size_variation);
                least.saturating_add(self.draws.up_to(average_size.saturating_add(size_variation) - least))
            };
            self.slice = usize::try_from(size.max(1)).unwrap_or(usize::MAX);
        }
    }

    /// How many bytes of the next piece may come in now; with 0 nothing may.
    pub(super) fn room(&self) -> usize {
        match self.kind {
            Some(ToxicKind::Bandwidth { rate: 0 }) => 0,
            Some(ToxicKind::Bandwidth { rate }) if self.held.is_empty() => {
                usize::try_from(rate.saturating_mul(PIECE_MS)).unwrap_or(usize::MAX)
            }
            Some(ToxicKind::Slicer { .. }) if self.held.is_empty() => self.slice,
            Some(ToxicKind::Bandwidth { .. } | ToxicKind::Slicer { .. }) => 0,
            Some(ToxicKind::Loss { .. }) => SEGMENT,
            _ => usize::MAX,
        }
    }

    /// Takes what comes in, no more than there is room for; says how many bytes it threw away.
    pub(super) fn accept(&mut self, item: StreamItem, now: Nanos) -> u64 {
        match item {
            StreamItem::Data(bytes) if self.intake == Intake::Open => self.accept_data(bytes, now),
            StreamItem::Data(bytes) => bytes.len() as u64,
            StreamItem::End if self.intake == Intake::Open && !self.is_torn => {
                self.intake = Intake::Ended;
                self.hold(StreamItem::End, now);
                0
            }
            // A stream that misses something has no proper end.
            StreamItem::End if self.intake == Intake::Open => self.accept(StreamItem::Close, now),
            StreamItem::End => 0,
            StreamItem::Close | StreamItem::Reset => {
                if self.intake != Intake::Closed {
                    self.intake = Intake::Closed;
                    self.hold(item, now);
                }
                0
            }
        }
    }

    fn accept_data(&mut self, mut bytes: Bytes, now: Nanos) -> u64 {
        let length = bytes.len() as u64;
        match self.kind {
            Some(ToxicKind::Timeout { .. }) => {
                self.is_torn |= length > 0;
                return length;
            }
            Some(ToxicKind::LimitData { bytes: most }) => {
                let kept = most.saturating_sub(self.passed).min(length);
                bytes.truncate(kept as usize);
                self.passed += kept;
                if kept > 0 {
                    self.hold(StreamItem::Data(bytes), now);
                }
                if self.passed >= most {
                    self.accept(StreamItem::Close, now);
                }
                return length - kept;
            }
            _ => {}
        }
        self.passed += length;
        self.hold(StreamItem::Data(bytes), now);
        0
    }

    /// Puts it behind what is held.
    fn hold(&mut self, item: StreamItem, now: Nanos) {
        let leaves = self.leaves(&item, now).max(self.last);
        self.last = leaves;
        self.held.push_back((leaves, item));
    }

    /// When it leaves, if nothing is before it.
    fn leaves(&mut self, item: &StreamItem, now: Nanos) -> Nanos {
        let length = item.len();
        match self.kind {
            Some(ToxicKind::Latency { latency, jitter }) => {
                let (latency, jitter) = (millis(latency), millis(jitter));
                let drawn = self.draws.up_to(jitter.saturating_mul(2));
                after(now, latency.saturating_add(drawn).saturating_sub(jitter))
            }
            Some(ToxicKind::Bandwidth { rate }) if length > 0 => {
                if now > self.last {
                    self.busy = (now, 0);
                }
                self.busy.1 += length;
                // Of the whole busy time: nothing is lost by rounding.
                let nanos = (u128::from(self.busy.1) * 1_000_000).div_ceil(u128::from(rate.max(1)));
                after(self.busy.0, u64::try_from(nanos).unwrap_or(u64::MAX))
            }
            Some(ToxicKind::Slicer { delay, .. }) if length > 0 => {
                let is_first = self.passed <= length;
                self.draw_slice();
                if is_first { now } else { now.max(after(self.last, delay.saturating_mul(1_000))) }
            }
            Some(ToxicKind::SlowClose { delay }) if matches!(item, StreamItem::End | StreamItem::Close) => {
                after(now, millis(delay))
            }
            Some(ToxicKind::Loss { percent, rto }) if length > 0 => {
                let losses = (0..LOSSES_MAX).take_while(|_| self.draws.happens(percent / 100.0)).count();
                self.stalls += u64::from(losses > 0);
                let waits = (1_u64 << losses) - 1;
                after(now, millis(rto).saturating_mul(waits))
            }
            _ => now,
        }
    }

    /// When it ends the connection by itself.
    fn deadline(&self) -> Option<Nanos> {
        let deadline = match self.kind? {
            ToxicKind::Timeout { timeout } if timeout > 0 => timeout,
            ToxicKind::ResetPeer { timeout } => timeout,
            _ => return None,
        };
        (self.intake != Intake::Closed).then(|| after(self.began, millis(deadline)))
    }

    /// The next moment at which something happens here, whatever comes in.
    pub(super) fn next_expiry(&self) -> Option<Nanos> {
        let front = self.held.front().map(|(leaves, _)| *leaves);
        front.into_iter().chain(self.deadline()).min()
    }

    /// Gives out what is to leave by now.
    pub(super) fn next_due(&mut self, now: Nanos) -> Option<StreamItem> {
        if self.deadline().is_some_and(|deadline| deadline <= now) {
            let is_reset = matches!(self.kind, Some(ToxicKind::ResetPeer { .. }));
            self.accept(if is_reset { StreamItem::Reset } else { StreamItem::Close }, now);
        }
        let is_due = self.held.front().is_some_and(|(leaves, _)| *leaves <= now);
        if is_due { self.held.pop_front().map(|(_, item)| item) } else { None }
    }

    /// The toxic is removed or changed: all that is held, and a close where the stream misses something.
    pub(super) fn give_up(self) -> impl Iterator<Item = StreamItem> {
        let close = (self.is_torn && self.intake == Intake::Open).then_some(StreamItem::Close);
        self.held.into_iter().map(|(_, item)| item).chain(close)
    }

    pub(super) const fn passed(&self) -> u64 {
        self.passed
    }

    /// Retransmission timeouts that were waited for; counted once.
    pub(super) const fn take_stalls(&mut self) -> u64 {
        core::mem::replace(&mut self.stalls, 0)
    }
}

//! What `Htb` does as a discipline: the loop that takes packets out.
//!
//! Invariant: a round of the loop sends, or takes a leaf out of all rows until its queue has something, so it
//! ends; and after it nothing is due, so the moment that is named is later than now.

use super::Htb;
use super::node::HtbNode;
use crate::classful::{end_inner_delays, inner_delays};
use crate::{ClassId, DelayTimer, Dequeued, Enqueued, Packet, Qdisc, Statistics};
use core::fmt::Debug;
use quietcore_core::Nanos;

/// The latest that `Throttled` names, from now.
const LATEST: Nanos = Nanos(5_000_000_000);

impl<P: Packet + Debug + Send + 'static> Htb<P> {
    /// The next packet of a class, if one may leave.
    fn dequeue_class(&mut self, now: Nanos) -> Option<P> {
        self.tree.run_events(now);
        while let Some((level, prio)) = self.tree.first_row() {
            let leaf = self.tree.leaf_in_turn(level, prio);
            let queue = self.tree.node_mut(leaf).queue.as_mut();
            match queue.map_or(Dequeued::Empty, |queue| queue.dequeue(now)) {
                Dequeued::Packet(packet) => {
                    self.tree.sent(leaf, (level, prio), packet.size(), now);
                    return Some(packet);
                }
                Dequeued::Throttled(until) => {
                    self.tree.throttle(leaf, until.max(Nanos(now.0.saturating_add(1))));
                }
                Dequeued::Empty => self.tree.deactivate(leaf),
            }
        }
        None
    }
}

impl<P: Packet + Debug + Send + 'static> Qdisc<P> for Htb<P> {
    fn kind(&self) -> &'static str {
        "htb"
    }

    fn enqueue(&mut self, now: Nanos, packet: P) -> Enqueued {
        self.enqueue_to(now, ClassId(packet.priority()), packet)
    }

    fn dequeue(&mut self, now: Nanos) -> Dequeued<P> {
        let direct = self.direct.dequeue(now).packet();
        if let Some(packet) = direct.or_else(|| self.dequeue_class(now)) {
            self.counted.count_sent(packet.size());
            return Dequeued::Packet(packet);
        }
        if self.tree.is_idle() {
            return Dequeued::Empty;
        }
        let latest = Nanos(now.0.saturating_add(LATEST.0));
        Dequeued::Throttled(self.tree.next_event().map_or(latest, |event| event.min(latest)))
    }

    fn reset(&mut self, now: Nanos) {
        self.direct.reset(now);
        self.tree.reset(now);
    }

    fn statistics(&self) -> Statistics {
        let mut all = self.counted;
        all.include(&self.direct.statistics());
        all.overlimits += self.tree.overlimits;
        self.tree.classes.values().for_each(|node| all.include(&node.statistics().queue));
        all
    }

    /// Whose buckets hold the longest, all of them, and whose rates count bytes as they are.
    fn keeps_whole(&self) -> bool {
        self.direct.keeps_whole() && self.tree.classes.values().all(HtbNode::keeps_whole)
    }

    fn delays(&self) -> DelayTimer {
        inner_delays(self)
    }

    fn end_delays(&mut self, now: Nanos) {
        end_inner_delays(self, now);
    }
}

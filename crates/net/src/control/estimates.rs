//! The timer behind `est`: when the first estimate is due, it gives all of them what was sent.
//!
//! One timer for all, which may be moved and coalesced, as nothing waits for it; an estimate that is told
//! late takes what was sent for evenly spread. It holds the control weakly, and is idle while nothing is
//! estimated.

use super::clsact::ClsactEntry;
use super::node::node_mut;
use super::state::ControlShared;
use super::tree::{DeviceEntry, DeviceRoot};
use core::fmt::Debug;
use quietcore_live::{Nanos, TimerOptions};
use quietcore_qdisc::{Packet, Statistics};
use std::sync::Arc;

/// Arms the timer, if something is estimated.
pub(super) fn watch<P: Packet + Debug + Send>(shared: &Arc<ControlShared<P>>) {
    sample(shared, |next| {
        let timer = shared.sampler.get_or_init(|| {
            let weak = Arc::downgrade(shared);
            shared.machine.timer(TimerOptions::new(), move |run| {
                let Some(shared) = weak.upgrade() else { return };
                // Refused when the machine has ended.
                sample(&shared, |next| _ = run.timer().arm_at(next));
            })
        });
        let _ = timer.arm_at(next);
    });
}

/// Tells all estimates, and has the timer armed for the next one. Under the lock: the last look arms
/// last, and no look puts off an estimate that it did not see.
pub(super) fn sample<P: Packet + Debug + Send>(shared: &ControlShared<P>, arm: impl FnOnce(Nanos)) {
    let mut state = shared.state();
    let now = shared.machine.now();
    let next = state.devices.values_mut().filter_map(|entry| entry.sample(now)).min();
    if let Some(next) = next {
        arm(next);
    }
}

impl<P: Packet + Debug + Send> DeviceEntry<P> {
    fn sample(&mut self, now: Nanos) -> Option<Nanos> {
        let mut next: Option<Nanos> = None;
        let mut sooner = |at: Option<Nanos>| next = next.into_iter().chain(at).min();
        let all = self.queues_statistics();
        if let DeviceRoot::Mq { estimate: Some(estimate), .. } = &mut self.root {
            sooner(Some(estimate.take(now, &all)));
        }
        if let Some(ClsactEntry { filters, estimate: Some(estimate), .. }) = &mut self.clsact {
            sooner(Some(estimate.take(now, &filters.statistics())));
        }
        let mut estimated = vec![false; self.device.queues()];
        self.each(|queue, _, node| {
            let classes = node.classes.values().any(|class| class.estimate.is_some());
            estimated[queue] |= classes || node.estimate.is_some();
        });
        for queue in (0..self.device.queues()).filter(|queue| estimated[*queue]) {
            self.device.look(queue, |qdisc| {
                if let Some(node) = node_mut(qdisc) {
                    node.with_all(now, &mut |node| sooner(node.sample(now)));
                }
            });
        }
        next
    }

    /// What all queues have done, and hold.
    pub(super) fn queues_statistics(&self) -> Statistics {
        sum((0..self.device.queues()).map(|queue| self.device.statistics(queue).qdisc))
    }
}

fn sum(each: impl Iterator<Item = Statistics>) -> Statistics {
    let mut all = Statistics::default();
    for one in each {
        all.sent_bytes += one.sent_bytes;
        all.sent_packets += one.sent_packets;
        all.dropped += one.dropped;
        all.overlimits += one.overlimits;
        all.requeues += one.requeues;
        all.backlog += one.backlog;
        all.qlen += one.qlen;
    }
    all
}

#[cfg(test)]
mod tests {
    use super::{Statistics, sum};

    /// Goal: each figure of all queues is the sum of that figure. Method: two queues, no two figures alike.
    #[test]
    fn each_figure_is_a_sum() {
        let counted = |figures: [u64; 7]| {
            let mut counted = Statistics::default();
            [counted.sent_bytes, counted.sent_packets, counted.dropped, counted.overlimits] =
                [figures[0], figures[1], figures[2], figures[3]];
            [counted.requeues, counted.backlog, counted.qlen] = [figures[4], figures[5], figures[6]];
            counted
        };
        let two = [counted([10, 11, 12, 13, 14, 15, 16]), counted([100, 201, 302, 403, 504, 605, 706])];
        assert_eq!(sum(two.into_iter()), counted([110, 212, 314, 416, 518, 620, 722]));
    }
}

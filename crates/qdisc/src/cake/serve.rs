//! Which packet leaves next: the shaper, the tins, the queues of a tin, COBALT.

use super::cobalt::{CobaltFate, CobaltPacket};
use super::rotation::TurnList;
use super::{Cake, CakeHeld, QueueId};
use crate::{Dequeued, Packet};
use quietcore_core::Nanos;

/// What became of the turn of a queue.
enum TurnEnd<P> {
    /// This packet leaves.
    Sent(CakeHeld<P>),
    /// The queue is empty: tins are looked at again.
    Empty,
    /// A packet was dropped that counted: the queue may have used up its turn.
    Charged,
}

impl<P: Packet, R: FnMut() -> u32> Cake<P, R> {
    /// The packet that leaves, or when one does.
    pub(super) fn next(&mut self, now: u64) -> Dequeued<P> {
        // A queue that decays is looked at once per packet, before the others.
        let mut is_first = true;
        loop {
            if self.statistics.qlen == 0 {
                return Dequeued::Empty;
            }
            if self.next_packet > now && self.failsafe > now {
                self.statistics.overlimits += 1;
                return Dequeued::Throttled(Nanos(self.next_packet.min(self.failsafe)));
            }
            if !self.choose_tin(now) {
                return Dequeued::Empty;
            }
            if let Some(held) = self.next_of_tin(now, &mut is_first) {
                return Dequeued::Packet(self.send(now, held));
            }
        }
    }

    /// Chooses the tin whose turn it is; says whether there is one.
    fn choose_tin(&mut self, now: u64) -> bool {
        let count = self.active_tins();
        if !self.tins[..count].iter().any(super::CakeTin::is_active) {
            return false;
        }
        if self.settings.bandwidth.is_none_or(|rate| rate == 0) {
            self.next_by_share(count);
        } else {
            self.next_by_time(now, count);
        }
        true
    }

    /// Without a rate tins take turns, each with its quantum.
    fn next_by_share(&mut self, count: usize) {
        loop {
            let tin = &mut self.tins[self.tin];
            if tin.deficit >= 0 && tin.is_active() {
                return;
            }
            if tin.deficit <= 0 {
                tin.deficit += i32::from(tin.law.quantum);
            }
            self.tin = (self.tin + 1) % count;
        }
    }

    /// With one, the last of those goes that are within their threshold, or else the one that is soonest.
    fn next_by_time(&mut self, now: u64, count: usize) {
        let mut soonest = u64::MAX;
        for (number, tin) in self.tins[..count].iter().enumerate() {
            if tin.is_active() && (tin.next_packet <= now || tin.next_packet <= soonest) {
                soonest = tin.next_packet;
                self.tin = number;
            }
        }
    }

    /// The next packet of the tin; nothing if tins have to be looked at again.
    fn next_of_tin(&mut self, now: u64, is_first: &mut bool) -> Option<CakeHeld<P>> {
        let isolation = self.settings.isolation;
        loop {
            let tin = &mut self.tins[self.tin];
            let rotation = &tin.rotation;
            let decaying = || rotation.first(TurnList::Decaying);
            let waiting = || rotation.first(TurnList::New).or_else(|| rotation.first(TurnList::Old));
            let next = if *is_first { decaying().or_else(waiting) } else { waiting().or_else(decaying) };
            let at = next?;
            *is_first = false;
            if tin.queues[at].deficit <= 0 {
                tin.end_turn(at, isolation);
                let random = (self.random)();
                let turn = self.tins[self.tin].turn(at, isolation, random);
                self.tins[self.tin].queues[at].deficit += turn;
                continue;
            }
            match self.take_turn(now, QueueId { tin: self.tin, at }) {
                TurnEnd::Sent(held) => {
                    self.charge(QueueId { tin: self.tin, at }, held.adjusted);
                    return Some(held);
                }
                TurnEnd::Empty => {
                    self.tins[self.tin].retire(at, now as i64, isolation);
                    return None;
                }
                TurnEnd::Charged => {}
            }
        }
    }

    /// Takes packets of a queue, of which COBALT may drop some; the last one is never dropped.
    fn take_turn(&mut self, now: u64, id: QueueId) -> TurnEnd<P> {
        loop {
            let Some(mut held) = self.take_first(id) else { return TurnEnd::Empty };
            let tin = &mut self.tins[id.tin];
            let bulk_flows = if self.settings.ingress { tin.bulk } else { 0 };
            let waited = now.saturating_sub(held.arrived) as i64;
            let seen = CobaltPacket { now: now as i64, waited, bulk_flows };
            let (law, queue) = (tin.law.cobalt, &mut tin.queues[id.at]);
            let mark = || held.packet.mark_congestion();
            let fate = queue.cobalt.decide(&law, seen, mark, &mut self.random);
            let CobaltFate { is_dropped, is_marked } = fate;
            if !is_dropped || queue.packets.len() == 0 {
                tin.counts.ecn_marks += u64::from(is_marked);
                return TurnEnd::Sent(held);
            }
            queue.dropped += 1;
            tin.counts.drops += 1;
            self.statistics.dropped += 1;
            if self.settings.ingress {
                self.advance(now, id.tin, held.adjusted, false);
                self.charge(id, held.adjusted);
                return TurnEnd::Charged;
            }
        }
    }

    /// Counts a packet that leaves.
    fn send(&mut self, now: u64, held: CakeHeld<P>) -> P {
        self.statistics.count_sent(held.packet.size());
        self.tins[self.tin].note_delay(now.saturating_sub(held.arrived));
        self.advance(now, self.tin, held.adjusted, true);
        self.longest.packet_left();
        held.packet
    }

    /// Bytes go off what a queue and its tin may send.
    fn charge(&mut self, id: QueueId, bytes: u32) {
        let tin = &mut self.tins[id.tin];
        tin.queues[id.at].deficit -= i64::from(bytes);
        tin.deficit = tin.deficit.wrapping_sub_unsigned(bytes);
    }

    /// The link is busy for longer, by so many bytes, of a packet that was sent or one that was dropped.
    pub(super) fn advance(&mut self, now: u64, tin: usize, bytes: u32, is_sent: bool) {
        if self.settings.bandwidth.is_none_or(|rate| rate == 0) {
            return;
        }
        let tin = &mut self.tins[tin];
        let (own, whole) = (tin.law.pace.time_of(bytes), self.pace.time_of(bytes));
        // One that is late keeps what it is late by; one that is ahead is no further ahead than this packet.
        if tin.next_packet < now {
            tin.next_packet = tin.next_packet.saturating_add(own);
        } else if tin.next_packet < now.saturating_add(own) {
            tin.next_packet = now.saturating_add(own);
        }
        self.next_packet = self.next_packet.saturating_add(whole);
        if is_sent {
            self.failsafe = self.failsafe.saturating_add(whole + whole / 2);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{Cake, CakeSettings};
    use alloc::vec::Vec;

    /// Goal: a tin that is late keeps what it is late by, and one that is ahead is ahead by no more than a
    /// packet. Method: a packet of 1000 bytes of a tin that has a quarter of 1 MB/s, which take 4 ms; sent
    /// late, early, and far ahead.
    #[test]
    fn a_late_tin_stays_late() {
        let settings = CakeSettings { bandwidth: Some(1_000_000), ..CakeSettings::default() };
        let mut queue: Cake<Vec<u8>, _> = Cake::new(settings, || 0).expect("settings that can be");
        let now = 1_000_000_000;
        let ahead = now + 9_000_000;
        let late = (now - 7_000_000, now - 3_000_000);
        for (before, after) in [late, (now + 1_000_000, now + 4_000_000), (ahead, ahead)] {
            queue.tins[2].next_packet = before;
            queue.advance(now, 2, 1_000, true);
            let next = queue.tins[2].next_packet;
            assert!(next.abs_diff(after) <= 1, "{next} of {after}");
        }
    }
}

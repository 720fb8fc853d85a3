//! CoDel as RFC 8289 tells it in section 5, in units of 1024 ns, with the 16 bits of the kernel's root.

use crate::Datagram;
use quietcore_qdisc::{CodelLaw, CodelStatistics};
use std::collections::VecDeque;

pub(crate) const fn units(nanos: u64) -> u64 {
    nanos / 1_024
}

/// A queue of the model: when each packet came, and the packet.
pub(crate) type List = VecDeque<(u64, Datagram)>;

/// What all queues have together.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Totals {
    pub(crate) bytes: u64,
    pub(crate) dropped: u64,
    pub(crate) longest: u32,
    pub(crate) ecn_marks: u64,
    pub(crate) ce_marks: u64,
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Control {
    pub(crate) first_above_time: u64,
    pub(crate) drop_next: u64,
    pub(crate) count: u32,
    pub(crate) lastcount: u32,
    pub(crate) dropping: bool,
    pub(crate) delay: u64,
    /// 1 is 2^16.
    inverse_root: u64,
}

impl Control {
    /// x (3 - n x^2) / 2 with x in 32 bits behind the point, of which 16 are kept.
    fn newton(&mut self) {
        let x = i128::from(self.inverse_root) * 65_536;
        let rest = 3 * (1_i128 << 32) - i128::from(self.count) * (x * x / (1 << 32));
        let quarter = rest.rem_euclid(1 << 64) / 4;
        let half = (quarter * x).rem_euclid(1 << 64) / (1_i128 << 31);
        self.inverse_root = u64::try_from(half / 65_536 % 65_536).expect("16 bits").max(1);
    }

    fn control_law(&self, from: u64, law: &CodelLaw) -> u64 {
        from + units(law.interval.0) * self.inverse_root / 65_536
    }

    fn dodequeue(
        &mut self,
        law: &CodelLaw,
        now: u64,
        (list, all): (&mut List, &mut Totals),
    ) -> (Option<Datagram>, bool) {
        let Some((came, packet)) = list.pop_front() else {
            self.first_above_time = 0;
            return (None, false);
        };
        all.bytes -= u64::from(packet.bytes);
        all.longest = all.longest.max(packet.bytes);
        self.delay = now - came;
        if self.delay < units(law.target.0) || all.bytes <= u64::from(law.mtu) {
            self.first_above_time = 0;
            return (Some(packet), false);
        }
        if self.first_above_time == 0 {
            self.first_above_time = now + units(law.interval.0);
            return (Some(packet), false);
        }
        (Some(packet), now > self.first_above_time)
    }

    pub(crate) fn dequeue(
        &mut self,
        law: &CodelLaw,
        now: u64,
        (list, all): (&mut List, &mut Totals),
    ) -> Option<Datagram> {
        let (mut packet, mut ok_to_drop) = self.dodequeue(law, now, (list, all));
        if packet.is_none() {
            self.dropping = false;
            return None;
        }
        let signal = |packet: &mut Option<Datagram>, all: &mut Totals| {
            let is_marked = law.ecn && packet.is_some_and(|packet| packet.markable);
            if is_marked {
                all.ecn_marks += 1;
                packet.as_mut().expect("it is there").marks += 1;
            } else {
                all.dropped += 1;
            }
            is_marked
        };
        if self.dropping {
            if !ok_to_drop {
                self.dropping = false;
            }
            while self.dropping && now >= self.drop_next {
                self.count += 1;
                self.newton();
                if signal(&mut packet, all) {
                    self.drop_next = self.control_law(self.drop_next, law);
                    break;
                }
                (packet, ok_to_drop) = self.dodequeue(law, now, (list, all));
                if ok_to_drop {
                    self.drop_next = self.control_law(self.drop_next, law);
                } else {
                    self.dropping = false;
                }
            }
        } else if ok_to_drop {
            if !signal(&mut packet, all) {
                (packet, _) = self.dodequeue(law, now, (list, all));
            }
            self.dropping = true;
            let delta = self.count - self.lastcount;
            let recently = now.saturating_sub(self.drop_next) < 16 * units(law.interval.0);
            if delta > 1 && recently && self.inverse_root > 0 {
                self.count = delta;
                self.newton();
            } else {
                self.count = 1;
                self.inverse_root = 65_535;
            }
            self.lastcount = self.count;
            self.drop_next = self.control_law(now, law);
        }
        let mut packet = packet?;
        let selector = law.ce_selector;
        let is_selected = match (selector.mask, packet.traffic_class) {
            (0, _) => true,
            (mask, Some(class)) => class & mask == selector.value,
            _ => false,
        };
        let is_late = law.ce_threshold.is_some_and(|threshold| self.delay > units(threshold.0));
        if is_late && is_selected && packet.markable {
            packet.marks += 1;
            all.ce_marks += 1;
        }
        Some(packet)
    }

    /// What is told of it, when a packet was last asked for at `now`.
    pub(crate) fn told(&self, now: u64) -> CodelStatistics {
        let mut told = CodelStatistics::default();
        (told.count, told.last_count) = (self.count, self.lastcount);
        told.delay = quietcore_core::Nanos(self.delay * 1_024);
        if self.dropping {
            told.drop_next = Some((self.drop_next as i64 - now as i64) * 1_024);
        }
        told
    }
}

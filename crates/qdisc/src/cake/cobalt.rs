//! COBALT: which packets of a queue are dropped, or marked, as they leave. CoDel for queues that answer,
//! BLUE for those that do not.
//!
//! CoDel: once packets have waited too long for an interval, one is dropped or marked, and further ones at
//! moments that come closer with the root of their number; when packets wait no longer, that number goes
//! down by the same law. BLUE: a queue that overflows gets a probability of drops, which rises with every
//! overflow and falls when the queue is found empty, at most once per target.
//!
//! Invariant: a queue in which no packet waits longer than the target, and that never overflows, drops
//! nothing.
//!
//! Source: tc-cake(8); "Piece of CAKE" (2018), section III; RFC 8289, section 4; Feng, Kandlur, Saha, Shin:
//! "The BLUE Active Queue Management Algorithms" (2002); Linux 6.12 net/sched/sch_cake.c, by behaviour. As
//! there, a queue that has never dropped has an inverse root of 0, so its first drop comes with the first
//! packet after the one that waited too long, and intervals count modulo 2^32 ns where a gap is made of
//! them.

/// As long ago as it can be: a moment before every other.
const NEVER: i64 = i64::MIN / 2;
/// How far an overflow raises BLUE's probability: 1 in 256.
const PROBABILITY_UP: u32 = 1 << 24;
/// How far an empty queue lowers it: 1 in 4096.
const PROBABILITY_DOWN: u32 = 1 << 20;
/// Of so many numbers of drops the root is in a table; of larger ones it is improved step by step.
const ROOTS_KNOWN: usize = 16;

/// Inverse roots of 0 to 15, in parts of 2^32.
const ROOTS: [u32; ROOTS_KNOWN] = {
    let mut roots = [u32::MAX; ROOTS_KNOWN];
    let mut count = 1;
    while count < ROOTS_KNOWN {
        roots[count] = (u64::MAX / count as u64).isqrt() as u32;
        count += 1;
    }
    roots
};

/// A step of Newton's method for the inverse root of `count`: x (3 - n x^2) / 2.
fn improved_root(root: u32, count: u32) -> u32 {
    let square = (u64::from(root) * u64::from(root)) >> 32;
    let rest = (3_u64 << 32).wrapping_sub(u64::from(count) * square);
    // Less a quarter before the product, so that it fits: of the half another half is left.
    ((rest >> 2).wrapping_mul(u64::from(root)) >> 31) as u32
}

/// What COBALT goes by in the queues of a tin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct CobaltLaw {
    /// The delay that is fine, in nanoseconds.
    pub(super) target: u64,
    /// Nanoseconds from a delay that is not to the first drop.
    pub(super) interval: u64,
    /// How long the device's longest packet takes at the tin's rate, in nanoseconds.
    pub(super) packet_time: u64,
}

impl CobaltLaw {
    /// Whether a packet waited too long, beside so many flows that cannot wait.
    const fn is_over(&self, waited: i64, bulk_flows: u64) -> bool {
        let (target, packet) = (self.target as i64, self.packet_time);
        let turns = packet.saturating_mul(bulk_flows).saturating_mul(2) as i64;
        waited > target && waited > turns && waited > packet.saturating_mul(4) as i64
    }
}

/// A packet that is about to leave its queue.
#[derive(Clone, Copy, Debug)]
pub(super) struct CobaltPacket {
    /// Nanoseconds, like all moments here.
    pub(super) now: i64,
    pub(super) waited: i64,
    /// Flows beside which it may wait longer.
    pub(super) bulk_flows: u64,
}

/// What becomes of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CobaltFate {
    pub(super) is_dropped: bool,
    pub(super) is_marked: bool,
}

/// What COBALT knows of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cobalt {
    /// Drops and marks since the queue was last at rest, less those that time has taken back.
    pub(super) count: u32,
    /// Of `count`, in parts of 2^32.
    inverse_root: u32,
    /// When the next drop is due; of a queue at rest, when it has been so for an interval.
    pub(super) drop_next: i64,
    /// When BLUE's probability last changed.
    pub(super) blue_changed: i64,
    /// BLUE's probability, in parts of 2^32.
    pub(super) probability: u32,
    pub(super) is_dropping: bool,
}

impl Cobalt {
    pub(super) const fn new() -> Self {
        Self {
            count: 0,
            inverse_root: 0,
            drop_next: NEVER,
            blue_changed: NEVER,
            probability: 0,
            is_dropping: false,
        }
    }

    fn find_root(&mut self) {
        self.inverse_root = match ROOTS.get(self.count as usize) {
            Some(root) => *root,
            None => improved_root(self.inverse_root, self.count),
        };
    }

    /// The next drop is a gap behind `last`.
    fn schedule(&mut self, last: i64, law: &CobaltLaw) {
        let interval = u64::from(law.interval as u32);
        let gap = (interval * u64::from(self.inverse_root)) >> 32;
        self.drop_next = last.saturating_add(gap as i64);
    }

    /// One drop fewer is remembered; the next one would have been a gap behind the last.
    fn forget_one(&mut self, law: &CobaltLaw) {
        self.count -= 1;
        self.find_root();
        self.schedule(self.drop_next, law);
    }

    /// Whether BLUE's probability may change again, which it then has.
    fn is_blue_due(&mut self, now: i64, law: &CobaltLaw) -> bool {
        let is_due = now.saturating_sub(self.blue_changed) > law.target as i64;
        if is_due {
            self.blue_changed = now;
        }
        is_due
    }

    /// The queue was the longest one when there was no room. Says whether it does not answer from now on.
    pub(super) fn overflow(&mut self, now: i64, law: &CobaltLaw) -> bool {
        let was_off = self.probability == 0;
        let is_raised = self.is_blue_due(now, law);
        if is_raised {
            self.probability = self.probability.saturating_add(PROBABILITY_UP);
        }
        self.is_dropping = true;
        self.drop_next = now;
        self.count = self.count.max(1);
        is_raised && was_off
    }

    /// The queue was found empty. Says whether it answers from now on.
    pub(super) fn empty(&mut self, now: i64, law: &CobaltLaw) -> bool {
        let is_lowered = self.probability > 0 && self.is_blue_due(now, law);
        if is_lowered {
            self.probability = self.probability.saturating_sub(PROBABILITY_DOWN);
        }
        self.is_dropping = false;
        if self.count > 0 && now >= self.drop_next {
            self.forget_one(law);
        }
        is_lowered && self.probability == 0
    }

    /// Whether an empty queue is at rest, and can be forgotten.
    pub(super) const fn is_at_rest(&self, now: i64) -> bool {
        self.probability == 0 && self.count == 0 && now >= self.drop_next
    }

    /// Decides over a packet; `mark` marks it, and says whether that could be; `random` is a number of
    /// BLUE's.
    pub(super) fn decide(
        &mut self,
        law: &CobaltLaw,
        packet: CobaltPacket,
        mark: impl FnOnce() -> bool,
        random: impl FnOnce() -> u32,
    ) -> CobaltFate {
        let CobaltPacket { now, waited, bulk_flows } = packet;
        let mut overdue = now.saturating_sub(self.drop_next);
        let is_due = self.count > 0 && overdue >= 0;
        let is_over = law.is_over(waited, bulk_flows);
        if is_over {
            if !self.is_dropping {
                self.schedule(now, law);
            }
            self.count = self.count.max(1);
        }
        self.is_dropping = is_over;
        let mut fate = CobaltFate { is_dropped: false, is_marked: false };
        if is_due && is_over {
            fate.is_marked = mark();
            fate.is_dropped = !fate.is_marked;
            self.count = self.count.saturating_add(1);
            self.find_root();
            self.schedule(self.drop_next, law);
            overdue = now.saturating_sub(self.drop_next);
        } else if is_due {
            while self.count > 0 && overdue >= 0 {
                self.forget_one(law);
                overdue = now.saturating_sub(self.drop_next);
            }
        }
        if self.probability > 0 && random() < self.probability {
            fate.is_dropped = true;
        }
        if self.count == 0 {
            self.drop_next = now.saturating_add(law.interval as i64);
        } else if overdue > 0 && !fate.is_dropped {
            self.drop_next = now;
        }
        fate
    }
}

#[cfg(test)]
mod tests {
    use super::{
        Cobalt, CobaltFate, CobaltLaw, CobaltPacket, NEVER, PROBABILITY_DOWN, PROBABILITY_UP, ROOTS,
    };

    use std::vec::Vec;

    const LAW: CobaltLaw = CobaltLaw { target: 5_000_000, interval: 100_000_000, packet_time: 1_211_200 };
    const KEPT: CobaltFate = CobaltFate { is_dropped: false, is_marked: false };

    fn decide(cobalt: &mut Cobalt, now: i64, waited: i64) -> CobaltFate {
        let packet = CobaltPacket { now, waited, bulk_flows: 0 };
        cobalt.decide(&LAW, packet, || false, || u32::MAX)
    }

    /// Goal: inverse roots are exact in the table, and right to a part in 300 where they follow step by
    /// step, the first of which is the worst. Method: their squares.
    #[test]
    fn roots_are_roots() {
        let mut cobalt = Cobalt { inverse_root: ROOTS[15], ..Cobalt::new() };
        for count in 1..2_000_u32 {
            cobalt.count = count;
            cobalt.find_root();
            let root = f64::from(cobalt.inverse_root) / 4_294_967_296.0;
            let most = if count < 16 { 1e-8 } else { 4e-3 };
            assert!((root * root * f64::from(count) - 1.0).abs() < most, "{count}: {root}");
        }
    }

    /// Goal: drops come at gaps of the interval by the root of their number. Method: a packet per
    /// millisecond, all of which waited too long; the moments of drops beside sums of gaps.
    #[test]
    fn drops_come_closer_with_the_root() {
        let (mut cobalt, step) = (Cobalt::new(), 1_000_000);
        // At rest: the first packet that waited for long finds an interval ahead.
        assert_eq!(decide(&mut cobalt, 0, 0), KEPT);
        assert_eq!((cobalt.count, cobalt.drop_next), (0, LAW.interval as i64));
        let drops: Vec<i64> =
            (1..600).filter(|at| decide(&mut cobalt, at * step, 6_000_000).is_dropped).collect();
        // With the second packet, as a queue that never dropped has no gap, then after 100 ms / sqrt(2) and
        // on.
        let mut due = 2.0;
        for (number, drop) in drops.iter().enumerate() {
            assert_eq!(*drop, f64::ceil(due) as i64, "drop {number} of {drops:?}");
            due = due - if number == 0 { 1.0 } else { 0.0 } + 100.0 / f64::sqrt(number as f64 + 2.0);
        }
        assert!(drops.len() > 15, "{drops:?}");
    }

    /// Goal: the target itself is fine, and so is what four of the longest packets take. Method: both sides
    /// of each limit, and of that beside other flows.
    #[test]
    fn what_is_too_long() {
        let slow = CobaltLaw { packet_time: 2_000_000, ..LAW };
        assert!(!LAW.is_over(5_000_000, 0) && LAW.is_over(5_000_001, 0));
        assert!(!slow.is_over(8_000_000, 0) && slow.is_over(8_000_001, 0));
        assert!(!slow.is_over(20_000_000, 5) && slow.is_over(20_000_001, 5));
    }

    /// Goal: BLUE goes up by 1/256 and down by 1/4096, once per target at most, and says when it begins and
    /// ends. Method: overflows and empty queues at both sides of the target.
    #[test]
    fn blue_goes_up_and_down() {
        let (mut cobalt, target) = (Cobalt::new(), LAW.target as i64);
        assert!(cobalt.overflow(0, &LAW) && !cobalt.overflow(target, &LAW));
        assert_eq!((cobalt.probability, cobalt.count, cobalt.drop_next), (PROBABILITY_UP, 1, target));
        assert!(!cobalt.overflow(target + 1, &LAW));
        assert_eq!(cobalt.probability, 2 * PROBABILITY_UP);
        let mut now = target + 1;
        for left in (0..32).rev() {
            assert!(!cobalt.empty(now + target, &LAW), "too early");
            now += target + 1;
            assert_eq!(cobalt.empty(now, &LAW), left == 0);
            assert_eq!(cobalt.probability, left * PROBABILITY_DOWN);
        }
        assert!(!cobalt.empty(now + 2 * target, &LAW), "it answers already");
    }

    /// Goal: a queue that was at rest for longer than it has to be drops with the next packet; one that was
    /// not has an interval ahead. Method: both sides of that moment, of a queue that has dropped before.
    #[test]
    fn rest_ends_at_its_moment() {
        let interval = LAW.interval as i64;
        for (now, drop_next) in [(1_000, 1_000 + interval - 1), (1_001, 1_001)] {
            let mut cobalt = Cobalt { inverse_root: u32::MAX, drop_next: 1_000, ..Cobalt::new() };
            assert_eq!((decide(&mut cobalt, now, 6_000_000), cobalt.count), (KEPT, 1));
            assert_eq!(cobalt.drop_next, drop_next);
        }
    }

    /// Goal: BLUE drops by its probability, and marks nothing. Method: the numbers at both sides of it.
    #[test]
    fn blue_drops_by_chance() {
        let mut cobalt = Cobalt { probability: 7, ..Cobalt::new() };
        for (random, is_dropped) in [(6, true), (7, false)] {
            let packet = CobaltPacket { now: 10, waited: 0, bulk_flows: 0 };
            let fate = cobalt.decide(&LAW, packet, || panic!("nothing is marked"), || random);
            assert_eq!(fate, CobaltFate { is_dropped, is_marked: false });
        }
    }

    /// Goal: a queue is at rest when it has nothing to remember. Method: each thing that it can remember.
    #[test]
    fn rest() {
        let new = Cobalt::new();
        assert!(new.is_at_rest(0) && new.drop_next == NEVER);
        assert!(!Cobalt { probability: 1, ..new }.is_at_rest(0) && !Cobalt { count: 1, ..new }.is_at_rest(0));
        let drop_next = 5;
        assert!(!Cobalt { drop_next, ..new }.is_at_rest(4) && Cobalt { drop_next, ..new }.is_at_rest(5));
    }

    /// Goal: what was dropped is forgotten by the law by which it was dropped. Method: a count of 3 of a
    /// queue without delay: how much is left after each gap.
    #[test]
    fn drops_are_forgotten() {
        let mut cobalt = Cobalt { count: 3, inverse_root: ROOTS[3], drop_next: 1_000, ..Cobalt::new() };
        assert_eq!((decide(&mut cobalt, 999, 0), cobalt.count), (KEPT, 3));
        assert_eq!((decide(&mut cobalt, 1_000, 0), cobalt.count), (KEPT, 2));
        let gap = cobalt.drop_next - 1_000;
        assert_eq!(gap, 70_710_678, "100 ms by the root of 2");
        assert_eq!((decide(&mut cobalt, 1_000 + gap - 1, 0), cobalt.count), (KEPT, 2));
        assert_eq!((decide(&mut cobalt, 1_000 + gap, 0), cobalt.count), (KEPT, 1));
        let now = 1_000 + gap + 100_000_000;
        assert_eq!((decide(&mut cobalt, now, 0), cobalt.count), (KEPT, 0));
        assert_eq!(cobalt.drop_next, now + 100_000_000, "at rest in an interval");
    }
}

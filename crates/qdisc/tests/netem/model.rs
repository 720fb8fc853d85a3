//! netem as its description reads: everything that waits is in one list that is searched from end to end,
//! and what happens is written down rule by rule.

use super::Parcel;
use quietcore_core::Nanos;
use quietcore_qdisc::{
    Dequeued, Enqueued, NetemDelay, NetemLoss, NetemSettings, OnLoss, Packet, Probability, SlotSpacing,
    Statistics,
};

/// Indices of the random numbers before.
const DUPLICATE: usize = 0;
const LOSS: usize = 1;
const CORRUPT: usize = 2;
const REORDER: usize = 3;
const DELAY: usize = 4;
const SLOT: usize = 5;

pub(crate) struct Model {
    settings: NetemSettings,
    random: Box<dyn FnMut() -> u32>,
    before: [u32; 6],
    /// Of the four states 1 to 4; of the two 1 and 3.
    state: u8,
    since: u64,
    /// What leaves first, and what waits: moment, number of arrival.
    front: Vec<Parcel>,
    waiting: Vec<(u64, u64, Parcel)>,
    arrivals: u64,
    opens: Option<u64>,
    room: (u64, u64),
    pub(crate) marked: u64,
    sent: (u64, u64),
    dropped: u64,
    /// What was put to the front.
    requeued: u64,
}

impl Model {
    pub(crate) fn new(settings: NetemSettings, random: impl FnMut() -> u32 + 'static) -> Self {
        let opens = settings.slot.as_ref().map(|_| 0);
        let mut model = Self {
            settings,
            random: Box::new(random),
            before: [0; 6],
            state: 1,
            since: 0,
            front: Vec::new(),
            waiting: Vec::new(),
            arrivals: 0,
            opens,
            room: (0, 0),
            marked: 0,
            sent: (0, 0),
            dropped: 0,
            requeued: 0,
        };
        model.room = model.whole_room();
        model
    }

    fn whole_room(&self) -> (u64, u64) {
        let unlimited = |limit: u64| if limit == 0 { u64::MAX } else { limit };
        self.settings
            .slot
            .as_ref()
            .map_or((0, 0), |slot| (unlimited(u64::from(slot.packets)), unlimited(slot.bytes)))
    }

    fn draw(&mut self, which: usize, correlation: Probability) -> u32 {
        let fresh = (self.random)();
        if correlation.share() == 0 {
            return fresh;
        }
        let (one, rho) = (1_u128 << 32, u128::from(correlation.share()) + 1);
        let mixed = (u128::from(fresh) * (one - rho) + u128::from(self.before[which]) * rho) / one;
        self.before[which] = u32::try_from(mixed).expect("a mean of two such numbers");
        self.before[which]
    }

    fn happens(&mut self, which: usize) -> bool {
        let chance = match which {
            DUPLICATE => self.settings.duplicate,
            CORRUPT => self.settings.corrupt,
            _ => unreachable!("of these two only"),
        };
        if chance.probability.share() == 0 {
            return false;
        }
        chance.probability.share() >= self.draw(which, chance.correlation)
    }

    fn is_lost(&mut self) -> bool {
        match self.settings.loss {
            NetemLoss::None => false,
            NetemLoss::Random(chance) => {
                chance.probability.share() > 0
                    && chance.probability.share() >= self.draw(LOSS, chance.correlation)
            }
            NetemLoss::FourStates { p13, p31, p32, p23, p14 } => {
                let number = u64::from((self.random)());
                let [p13, p31, p32, p23, p14] =
                    [p13, p31, p32, p23, p14].map(|probability| u64::from(probability.share()));
                self.state = match self.state {
                    1 if number < p14 => 4,
                    1 if number < p14 + p13 => 3,
                    1 => 1,
                    2 if number < p23 => 3,
                    2 => 2,
                    3 if number < p32 => 2,
                    3 if number < p32 + p31 => 1,
                    3 => 3,
                    _ => 1,
                };
                self.state >= 3
            }
            NetemLoss::GilbertElliott { p, r, h, lost_in_good } => {
                let (moves, decides) = ((self.random)(), (self.random)());
                let was_good = self.state == 1;
                if was_good && moves < p.share() {
                    self.state = 3;
                }
                if !was_good && moves < r.share() {
                    self.state = 1;
                }
                if was_good { decides < lost_in_good.share() } else { decides > h.share() }
            }
        }
    }

    /// In whole ns; may be negative.
    fn delay(&mut self, which: usize, delay: &NetemDelay) -> i128 {
        let (mean, jitter) = (i128::from(delay.latency.0), i128::from(delay.jitter.0));
        if jitter == 0 {
            return mean;
        }
        let number = self.draw(which, delay.correlation);
        match &delay.distribution {
            None => i128::from(number) % (2 * jitter) + mean - jitter,
            Some(distribution) => {
                let table = distribution.table();
                let entry = i128::from(table[number as usize % table.len()]);
                let (whole, rest) = ((jitter / 8192) * entry, (jitter % 8192) * entry);
                let rounded = if rest < 0 { (rest - 4096) / 8192 } else { (rest + 4096) / 8192 };
                mean + whole + rounded
            }
        }
    }

    pub(crate) fn enqueue(&mut self, now: Nanos, parcel: Parcel) -> Enqueued {
        let is_double = self.happens(DUPLICATE);
        self.arrives(now, parcel, is_double)
    }

    fn arrives(&mut self, now: Nanos, mut parcel: Parcel, is_double: bool) -> Enqueued {
        let mut count = if is_double { 2 } else { 1 };
        if self.is_lost() {
            let is_marked = self.settings.on_loss == OnLoss::Mark && parcel.mark_congestion();
            if is_marked {
                self.marked += 1;
            } else {
                count -= 1;
            }
        }
        if count == 0 {
            self.dropped += 1;
            return Enqueued::Lost;
        }
        let other = parcel.clone();
        if self.happens(CORRUPT) {
            let byte = (self.random)();
            let bit = (self.random)();
            parcel.corrupt(byte, bit);
        }
        if self.waiting.len() >= self.settings.limit as usize {
            self.dropped += 1;
            return Enqueued::Dropped;
        }
        if count == 2 {
            let _ = self.arrives(now, other, false);
        }
        self.waits(now, parcel);
        Enqueued::Queued
    }

    fn waits(&mut self, now: Nanos, parcel: Parcel) {
        let gap = u64::from(self.settings.gap);
        let reorder = self.settings.reorder;
        if gap != 0 && self.since + 1 >= gap {
            let threshold =
                if reorder.probability.share() == 0 { u32::MAX } else { reorder.probability.share() };
            if threshold >= self.draw(REORDER, reorder.correlation) {
                self.since = 0;
                self.requeued += 1;
                self.front.insert(0, parcel);
                return;
            }
        }
        self.since += 1;
        let settings = self.settings.clone();
        let mut at = i128::from(now.0) + self.delay(DELAY, &settings.delay);
        if settings.rate.bytes_per_second > 0 {
            let free = self.waiting.iter().map(|(at, _, _)| i128::from(*at)).max();
            // It cannot begin before the one before it has left.
            at = free.map_or(at, |free| at.max(free)) + transmission(&settings, parcel.bytes);
        }
        let at = u64::try_from(at.max(0)).expect("not that late");
        self.waiting.push((at, self.arrivals, parcel));
        self.arrivals += 1;
    }

    fn opens_next(&mut self, now: Nanos) {
        let slot = self.settings.slot.clone().expect("there are slots");
        let spacing = match &slot.spacing {
            SlotSpacing::Between { min, max } => {
                let number = u128::from((self.random)());
                (u128::from(min.0) + number * u128::from(max.0 - min.0) / (1 << 32)) as i128
            }
            SlotSpacing::Distributed(delay) => self.delay(SLOT, delay),
        };
        self.opens = Some(u64::try_from((i128::from(now.0) + spacing).max(0)).expect("not that late"));
        self.room = self.whole_room();
    }

    pub(crate) fn dequeue(&mut self, now: Nanos) -> Dequeued<Parcel> {
        if !self.front.is_empty() {
            return self.leaves(0, |model, at| model.front.remove(at));
        }
        let first = (0..self.waiting.len()).min_by_key(|at| (self.waiting[*at].0, self.waiting[*at].1));
        let Some(first) = first else { return Dequeued::Empty };
        let moment = self.waiting[first].0;
        if self.opens.is_some_and(|opens| opens < moment) {
            self.opens_next(now);
        }
        let needed = moment.max(self.opens.unwrap_or(0));
        if needed > now.0 {
            return Dequeued::Throttled(Nanos(needed));
        }
        let bytes = u64::from(self.waiting[first].2.bytes);
        if self.opens.is_some() {
            self.room = (self.room.0 - 1, self.room.1.saturating_sub(bytes));
            if self.room.0 == 0 || self.room.1 == 0 {
                self.opens_next(now);
            }
        }
        self.leaves(first, |model, at| model.waiting.remove(at).2)
    }

    fn leaves(&mut self, at: usize, take: impl FnOnce(&mut Self, usize) -> Parcel) -> Dequeued<Parcel> {
        let parcel = take(self, at);
        self.sent = (self.sent.0 + u64::from(parcel.bytes), self.sent.1 + 1);
        Dequeued::Packet(parcel)
    }

    pub(crate) fn reset(&mut self, now: Nanos) {
        self.front.clear();
        self.waiting.clear();
        self.since = 0;
        self.opens = self.settings.slot.as_ref().map(|_| now.0);
        self.room = self.whole_room();
    }

    pub(crate) fn statistics(&self) -> Statistics {
        let held = self.front.iter().chain(self.waiting.iter().map(|(_, _, parcel)| parcel));
        let mut statistics = Statistics::default();
        statistics.backlog = held.clone().map(|parcel| u64::from(parcel.bytes)).sum();
        statistics.qlen = held.count() as u64;
        (statistics.sent_bytes, statistics.sent_packets) = self.sent;
        statistics.dropped = self.dropped;
        statistics.requeues = self.requeued;
        statistics
    }
}

/// In ns, of the bytes that the link carries for it.
fn transmission(settings: &NetemSettings, bytes: u32) -> i128 {
    let rate = settings.rate;
    let mut carried = (i128::from(bytes) + i128::from(rate.overhead)).max(0);
    if rate.cell != 0 {
        let cell = i128::from(rate.cell);
        let mut cells = carried / cell;
        if carried > cells * cell {
            cells += 1;
        }
        carried = (cells * (cell + i128::from(rate.cell_overhead))).max(0);
    }
    carried * 1_000_000_000 / i128::from(rate.bytes_per_second)
}

//! What `Cbq` should do, by another way: a list of classes that is searched, rounds as lists that are
//! rotated, no set of who is delayed, times as numbers that may be negative.
//!
//! Written before `serve.rs` was looked at, from what is told of the kernel's behaviour and of the papers (S.
//! Floyd and V. Jacobson, "Link-sharing and Resource Management Models for Packet Networks", 1995; Floyd's
//! notes on settings of the same year). Where neither says (who was delayed comes back still counted as
//! such; who has one packet more keeps others from lending; an empty class leaves its round; time between
//! packets is not negative) it follows the discipline. Powers are those of the same library, as they are cut
//! to whole numbers. Absent: queues of classes that are throttled themselves.

use crate::common::Parcel;
use quietcore_core::Nanos;
use quietcore_qdisc::{CbqClass, CbqOverlimit, CbqSettings, Dequeued};

/// A delay is at least as long.
const TICK: i128 = 1_024;
/// A pause of so much is so long that everything about it is forgotten.
const LONG: i128 = (1 << 27) * 1_000;
const ALL: usize = 8;

#[derive(Debug)]
pub(crate) struct Class {
    pub(crate) id: u32,
    parent: Option<u32>,
    told: CbqClass,
    pub(crate) queue: Vec<Parcel>,
    /// Time times `2^ewma_log`.
    pub(crate) average_idle: i128,
    /// End of its last packet.
    last: i128,
    /// Above its rate before that moment; nothing if it is not at all.
    under_time: Option<i128>,
    /// It was acted upon since it was under its rate last.
    delayed: bool,
    /// Out of its round until then.
    penalty: Option<i128>,
    deficit: i128,
    pub(crate) borrows: u64,
    pub(crate) overlimits: u64,
    pub(crate) overactions: u64,
    pub(crate) sent: (u64, u64),
}

#[derive(Debug)]
pub(crate) struct Model {
    settings: CbqSettings,
    pub(crate) classes: Vec<Class>,
    /// By priority; the first is next.
    rounds: [Vec<u32>; 8],
    top_level: usize,
    /// How long until the earliest of those that were refused in this attempt.
    shortest: Option<i128>,
}

fn shift(told: &CbqClass) -> u32 {
    u32::from(told.ewma_log.clamp(1, 20))
}

fn band(told: &CbqClass) -> usize {
    usize::from(told.prio.clamp(1, 8)) - 1
}

impl Model {
    pub(crate) fn new(settings: CbqSettings) -> Self {
        let rounds = Default::default();
        let mut model = Self { settings, classes: vec![], rounds, top_level: ALL, shortest: None };
        let link = CbqClass { bounded: true, isolated: true, ..CbqClass::new(settings.bandwidth) };
        model.add(u32::from(settings.major) << 16, None, link);
        model
    }

    pub(crate) fn add(&mut self, id: u32, parent: Option<u32>, told: CbqClass) {
        let mut class = Class {
            id,
            parent,
            told,
            queue: vec![],
            average_idle: 0,
            last: 0,
            under_time: None,
            delayed: false,
            penalty: None,
            deficit: 0,
            borrows: 0,
            overlimits: 0,
            overactions: 0,
            sent: (0, 0),
        };
        class.average_idle = self.max_idle(&class);
        self.classes.push(class);
    }

    pub(crate) fn find(&self, id: u32) -> Option<usize> {
        self.classes.iter().position(|class| class.id == id)
    }

    fn class(&mut self, id: u32) -> &mut Class {
        self.classes.iter_mut().find(|class| class.id == id).expect("the model knows it")
    }

    fn seen(&self, id: u32) -> &Class {
        &self.classes[self.find(id).expect("the model knows it")]
    }

    /// 0 without classes below, else one more than the highest of those.
    fn level(&self, id: u32) -> usize {
        let below = self.classes.iter().filter(|class| class.parent == Some(id));
        below.map(|class| 1 + self.level(class.id)).max().unwrap_or(0)
    }

    /// Whom it borrows from.
    fn borrows_from(&self, id: u32) -> Option<u32> {
        let class = self.seen(id);
        if class.told.bounded { None } else { class.parent }
    }

    /// What a typical packet takes at the class's rate and on the link, and the part of the estimate that
    /// stays at a packet.
    fn times(&self, class: &Class) -> (f64, f64, f64) {
        let bytes = self.settings.average_packet;
        let own = class.told.rate.time(bytes).0 as f64;
        (own, self.settings.bandwidth.time(bytes).0 as f64, 1.0 - 0.5_f64.powi(shift(&class.told) as i32))
    }

    /// A class that has saved all it may sends `max_burst` typical packets at once.
    fn max_idle(&self, class: &Class) -> i128 {
        let (own, link, kept) = self.times(class);
        let burst = (own - link) * (libm::pow(kept, -f64::from(class.told.max_burst)) - 1.0);
        let scale = f64::from(1_u32 << shift(&class.told));
        (burst.max(link * (1.0 - kept)) * scale) as i64 as i128
    }

    /// How much longer a class stays away so that it may send `min_burst` packets then.
    fn off_time(&self, class: &Class) -> i128 {
        let (own, link, kept) = self.times(class);
        match class.told.min_burst {
            0 => 0,
            burst => {
                let powers = libm::pow(kept, -f64::from(burst - 1)) - 1.0;
                ((own - link).max(0.0) * (1.0 + powers / (1.0 - kept))) as i64 as i128
            }
        }
    }

    fn quantum(&self, class: &Class) -> i128 {
        let weight = |class: &Class| i128::from(class.told.weight.unwrap_or(class.told.rate.get()).max(1));
        let peers = || self.classes.iter().filter(|peer| band(&peer.told) == band(&class.told));
        let (count, sum) = (peers().count() as i128, peers().map(weight).sum::<i128>());
        let allot = i128::from(class.told.allot);
        (weight(class) * allot * count / sum).clamp(256, (32 * allot).max(256))
    }

    pub(crate) fn reset(&mut self, now: u64) {
        (self.rounds, self.top_level) = (Default::default(), ALL);
        for at in 0..self.classes.len() {
            let idle = self.max_idle(&self.classes[at]);
            let class = &mut self.classes[at];
            class.queue.clear();
            (class.average_idle, class.last, class.deficit) = (idle, i128::from(now), 0);
            (class.under_time, class.delayed, class.penalty) = (None, false, None);
        }
    }

    pub(crate) fn enqueue(&mut self, now: u64, id: u32, parcel: Parcel) {
        self.class(id).queue.push(parcel);
        // Who is under its rate and has something to send keeps those of higher levels from lending.
        let mut one = Some(id);
        while let Some(id) = one.filter(|&id| self.level(id) < self.top_level) {
            if self.seen(id).under_time.is_none_or(|until| until < i128::from(now)) {
                self.top_level = self.level(id);
            }
            one = self.borrows_from(id);
        }
        self.join_round(id);
    }

    fn join_round(&mut self, id: u32) {
        let class = self.seen(id);
        let round = band(&class.told);
        if class.penalty.is_none() && !class.queue.is_empty() && !self.rounds[round].contains(&id) {
            self.rounds[round].push(id);
        }
    }

    /// Brings back who was out of its round for long enough.
    pub(crate) fn end_penalties(&mut self, now: u64) {
        let mut due: Vec<(i128, u32)> =
            self.classes.iter().filter_map(|class| Some((class.penalty?, class.id))).collect();
        due.retain(|&(until, _)| until <= i128::from(now));
        due.sort_unstable();
        for (_, id) in due {
            self.class(id).penalty = None;
            self.join_round(id);
        }
    }

    pub(crate) fn next_penalty(&self) -> Option<u64> {
        self.classes.iter().filter_map(|class| class.penalty).min().map(|until| until as u64)
    }

    pub(crate) fn dequeue(&mut self, now: u64) -> Dequeued<Parcel> {
        self.end_penalties(now);
        let link = self.classes[0].id;
        loop {
            self.shortest = None;
            for round in 0..8 {
                if let Some(parcel) = self.dequeue_round(round, i128::from(now)) {
                    return Dequeued::Packet(parcel);
                }
            }
            // Another attempt, in which everybody may lend, the link most of all.
            if self.top_level == ALL && self.class(link).under_time.is_none() {
                break;
            }
            self.top_level = ALL;
            self.class(link).under_time = None;
        }
        if self.classes.iter().all(|class| class.queue.is_empty()) {
            return Dequeued::Empty;
        }
        let refused = self.shortest.map(|delay| now + delay as u64);
        let moment = refused.into_iter().chain(self.next_penalty()).min();
        Dequeued::Throttled(Nanos(moment.expect("who may not send waits for something")))
    }

    fn dequeue_round(&mut self, round: usize, now: i128) -> Option<Parcel> {
        loop {
            let mut short_of_bytes = false;
            for id in self.rounds[round].clone() {
                let Some(lender) = self.lender(id, now) else { continue };
                let quantum = self.quantum(self.seen(id));
                let class = self.class(id);
                if class.deficit <= 0 {
                    class.deficit += quantum;
                    short_of_bytes = true;
                    continue;
                }
                return Some(self.send(id, lender, round, now));
            }
            if !short_of_bytes {
                return None;
            }
        }
    }

    /// Who pays for the class's next packet, maybe itself.
    fn lender(&mut self, id: u32, now: i128) -> Option<u32> {
        let is_under = |class: &Class| class.under_time.is_none_or(|until| until <= now);
        let mut lender = id;
        // The link needs no lender.
        while self.seen(lender).parent.is_some() || lender != id {
            if is_under(self.seen(lender)) {
                break;
            }
            let Some(above) = self.borrows_from(lender) else {
                self.refuse(id, now);
                return None;
            };
            if self.level(above) > self.top_level {
                return None;
            }
            lender = above;
        }
        self.class(lender).delayed = false;
        Some(lender)
    }

    /// Does what is to be done with a class that is above its rate.
    fn refuse(&mut self, id: u32, now: i128) {
        let off_time = self.off_time(self.seen(id));
        let class = self.class(id);
        class.overlimits += 1;
        let shift = shift(&class.told);
        let mut delay = class.under_time.expect("it is above its rate") - now;
        if !class.delayed {
            delay += off_time;
            if class.average_idle < 0 {
                // It sleeps for this anyway.
                delay -= -class.average_idle - (-class.average_idle >> shift);
            }
            delay = delay.max(TICK);
            class.under_time = Some(now + delay);
            class.delayed = true;
            class.overactions += 1;
        }
        if class.told.overlimit == CbqOverlimit::Delay {
            class.penalty = Some(now + delay);
            let round = band(&class.told);
            self.rounds[round].retain(|&one| one != id);
            return;
        }
        let mut shortest = self.shortest.map_or(delay, |shortest| shortest.min(delay));
        if self.top_level == ALL {
            let mut lender = self.borrows_from(id);
            while let Some(above) = lender {
                let wait = self.seen(above).under_time.map_or(i128::MIN, |until| until - now);
                if wait < shortest {
                    shortest = wait.max(TICK);
                }
                lender = self.borrows_from(above);
            }
        }
        self.shortest = Some(shortest);
    }

    fn send(&mut self, id: u32, lender: u32, round: usize, now: i128) -> Parcel {
        let parcel = self.class(id).queue.remove(0);
        self.class(id).deficit -= i128::from(parcel.bytes);
        let turn_ends = self.class(id).deficit <= 0;
        if turn_ends {
            let at = self.rounds[round].iter().position(|&one| one == id).expect("it was its turn");
            let count = self.rounds[round].len();
            self.rounds[round].rotate_left((at + 1) % count);
        }
        if self.class(id).queue.is_empty() {
            self.rounds[round].retain(|&one| one != id);
        }
        if let Some(&next) = self.rounds[round].first().filter(|_| turn_ends) {
            let quantum = self.quantum(self.seen(next));
            self.class(next).deficit += quantum;
        }
        if lender != id {
            self.class(id).borrows += 1;
            self.class(lender).borrows += 1;
        }
        self.charge(id, parcel.bytes, now);
        // Who has more to send keeps those above from lending while it is under its rate.
        if self.top_level >= self.level(lender) && !self.class(id).queue.is_empty() {
            let mut one = Some(lender);
            while let Some(id) = one {
                if self.class(id).under_time.is_none() {
                    self.top_level = self.level(id);
                    break;
                }
                one = self.borrows_from(id);
            }
        }
        parcel
    }

    /// Estimates anew how idle the class is, and those above it as far as it is shared with them.
    fn charge(&mut self, id: u32, bytes: u32, now: i128) {
        let on_link = i128::from(self.settings.bandwidth.time(bytes).0);
        let end = now + on_link;
        let mut one = Some(id);
        while let Some(id) = one {
            let max_idle = self.max_idle(self.seen(id));
            let class = self.class(id);
            class.sent = (class.sent.0 + u64::from(bytes), class.sent.1 + 1);
            let (own, shift) = (i128::from(class.told.rate.time(bytes).0), shift(&class.told));
            // A packet that is taken before the link is free again has not waited less than nothing.
            let gap = (end - class.last).max(0);
            let mut idle = if gap > LONG {
                max_idle
            } else {
                class.average_idle + gap - own - (class.average_idle >> shift)
            };
            class.under_time = None;
            if idle <= 0 {
                let least = class.told.min_idle.map_or(i128::MIN, |idle| -(i128::from(idle.0) << shift));
                idle = idle.max(least);
                class.under_time = Some(end + (-idle - (-idle >> shift)) - on_link + own);
            }
            class.average_idle = idle.min(max_idle);
            class.last = class.last.max(end);
            one = if class.told.isolated { None } else { class.parent };
        }
    }
}

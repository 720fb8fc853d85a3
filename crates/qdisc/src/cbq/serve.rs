//! Which class may send: limits, borrowing, the rounds of a priority, and what is done with a class that is
//! above its rate.
//!
//! Invariant: a class that holds packets is in the round of its band, or it is out until a moment: for a
//! penalty, or because its queue is throttled.

use super::Cbq;
use super::node::{ALL_LEVELS, CbqNode, TICK};
use super::settings::CbqOverlimit;
use crate::classful::{end_inner_delays, inner_delays};
use crate::{ClassId, DelayTimer, Dequeued, Enqueued, Packet, Qdisc, Statistics};
use alloc::collections::{BTreeSet, VecDeque};
use core::fmt::Debug;
use quietcore_core::Nanos;

impl<P: Packet + Debug + Send + 'static> Cbq<P> {
    /// Puts a class into its round, if it holds packets and nothing keeps it out.
    pub(super) fn activate(&mut self, id: ClassId) {
        let node = self.node(id);
        let band = node.band();
        let is_out =
            [&self.penalties, &self.throttled].iter().any(|out| out.iter().any(|&(_, one)| one == id));
        if !node.queue.is_empty() && !is_out && !self.rounds[band].contains(&id) {
            self.rounds[band].push_back(id);
        }
    }

    pub(super) fn deactivate(&mut self, id: ClassId) {
        for round in &mut self.rounds {
            round.retain(|&one| one != id);
        }
    }

    /// Brings back classes that were kept out until a moment that has come.
    fn end_throttling(&mut self, now: Nanos) {
        while let Some(&(moment, id)) = self.throttled.first()
            && moment <= now
        {
            self.throttled.pop_first();
            self.activate(id);
        }
    }

    pub(super) fn end_penalties(&mut self, now: Nanos) {
        while let Some(&(moment, id)) = self.penalties.first()
            && moment <= now
        {
            self.penalties.pop_first();
            self.activate(id);
        }
    }

    /// Whom a class may borrow from.
    fn lender_of(&self, id: ClassId) -> Option<ClassId> {
        let node = self.node(id);
        if node.settings.bounded { None } else { node.parent }
    }

    /// The class that pays for a packet of `id`: itself or its lender; `None` if there is none.
    fn payer(&mut self, id: ClassId, now: Nanos) -> Option<ClassId> {
        let mut payer = id;
        while payer != self.link && !self.node(payer).is_under_limit(now) {
            match self.lender_of(payer) {
                None => {
                    self.delay(id, now);
                    return None;
                }
                Some(lender) if self.node(lender).level > self.top_level => return None,
                Some(lender) => payer = lender,
            }
            if payer == self.link && !self.node(payer).is_under_limit(now) {
                self.delay(id, now);
                return None;
            }
        }
        self.node_mut(payer).is_delayed = false;
        Some(payer)
    }

    /// A class is above its rate, and no class lends to it.
    fn delay(&mut self, id: ClassId, now: Nanos) {
        let node = self.node_mut(id);
        node.counted.queue.overlimits += 1;
        let mut until = node.delay(now);
        if node.settings.overlimit == CbqOverlimit::Delay {
            self.penalties.insert((until, id));
            self.deactivate(id);
            return;
        }
        // It may also be the first lender that is under its rate again, if any may lend.
        let mut lender = self.lender_of(id).filter(|_| self.top_level == ALL_LEVELS);
        while let Some(id) = lender {
            let least = Nanos(now.0.saturating_add(TICK.unsigned_abs()));
            until = self.node(id).under_time.map_or(until, |under| until.min(under.max(least)));
            lender = self.lender_of(id);
        }
        self.watchdog = Some(self.watchdog.map_or(until, |earlier| earlier.min(until)));
    }

    /// A packet of one of the classes of `band` that may send.
    fn serve_band(&mut self, band: usize, now: Nanos) -> Option<P> {
        loop {
            let (mut is_poor, mut at) = (false, 0);
            // A class that is refused keeps its place: the turn goes on only when a class has used up its
            // own.
            while let Some(&id) = self.rounds[band].get(at) {
                let Some(payer) = self.payer(id, now) else {
                    at += usize::from(self.rounds[band].get(at) == Some(&id));
                    continue;
                };
                let node = self.node_mut(id);
                if node.deficit <= 0 {
                    node.deficit += node.quantum;
                    is_poor = true;
                    at += 1;
                    continue;
                }
                match node.queue.dequeue(now) {
                    Dequeued::Packet(packet) => {
                        self.sent(id, payer, packet.len(), now);
                        return Some(packet);
                    }
                    Dequeued::Throttled(until) => {
                        self.deactivate(id);
                        self.throttled.insert((until.max(Nanos(now.0.saturating_add(1))), id));
                    }
                    Dequeued::Empty => self.deactivate(id),
                }
            }
            if !is_poor {
                return None;
            }
        }
    }

    /// The turn of `id` is over: the class after it is next.
    fn pass(&mut self, band: usize, id: ClassId) {
        let round = &mut self.rounds[band];
        if let Some(at) = round.iter().position(|&one| one == id) {
            round.rotate_left(at + 1);
        }
    }

    /// A packet leaves: the round, the estimates of the classes that share it, and how far up may be borrowed
    /// now.
    fn sent(&mut self, id: ClassId, payer: ClassId, bytes: u32, now: Nanos) {
        let node = self.node_mut(id);
        node.deficit -= i64::from(bytes);
        let (band, is_poor, is_empty) = (node.band(), node.deficit <= 0, node.queue.is_empty());
        if is_poor {
            self.pass(band, id);
        }
        if is_empty {
            self.deactivate(id);
        }
        if is_poor && let Some(&next) = self.rounds[band].front() {
            let next = self.node_mut(next);
            next.deficit += next.quantum;
        }
        if payer != id {
            self.node_mut(id).counted.borrows += 1;
            self.node_mut(payer).counted.borrows += 1;
        }
        let taken = self.settings.bandwidth.time(bytes);
        let end = Nanos(now.0.saturating_add(taken.0));
        let mut sharer = Some(id);
        while let Some(one) = sharer {
            let node = self.node_mut(one);
            node.sent(bytes, end, taken);
            sharer = if node.settings.isolated { None } else { node.parent };
        }
        self.lower_top_level(payer, is_empty);
    }

    /// As long as classes hold packets that need not borrow from above `payer`, none may.
    fn lower_top_level(&mut self, payer: ClassId, is_empty: bool) {
        if is_empty || self.top_level < self.node(payer).level {
            return;
        }
        let mut lender = Some(payer);
        while let Some(id) = lender {
            if self.node(id).under_time.is_none() {
                self.top_level = self.node(id).level;
                return;
            }
            lender = self.lender_of(id);
        }
    }

    /// A packet came to `id`: a class that need not borrow from far does not let others do so.
    pub(super) fn mark_top_level(&mut self, id: ClassId, now: Nanos) {
        let mut class = Some(id);
        while let Some(id) = class {
            let node = self.node(id);
            if self.top_level <= node.level {
                return;
            }
            if node.under_time.is_none_or(|under| under < now) {
                self.top_level = node.level;
                return;
            }
            class = self.lender_of(id);
        }
    }

    fn serve(&mut self, now: Nanos) -> Option<P> {
        loop {
            self.watchdog = None;
            for band in 0..self.rounds.len() {
                if let Some(packet) = self.serve_band(band, now) {
                    return Some(packet);
                }
            }
            let link = self.link;
            if self.top_level == ALL_LEVELS && self.node(link).under_time.is_none() {
                return None;
            }
            // No class may send: then all may borrow, from the link too.
            self.top_level = ALL_LEVELS;
            self.node_mut(link).under_time = None;
        }
    }
}

impl<P: Packet + Debug + Send + 'static> Qdisc<P> for Cbq<P> {
    fn kind(&self) -> &'static str {
        "cbq"
    }

    fn enqueue(&mut self, now: Nanos, packet: P) -> Enqueued {
        self.enqueue_to(now, ClassId(packet.priority()), packet)
    }

    fn dequeue(&mut self, now: Nanos) -> Dequeued<P> {
        self.end_throttling(now);
        self.end_penalties(now);
        if let Some(packet) = self.serve(now) {
            self.counted.count_sent(packet.size());
            return Dequeued::Packet(packet);
        }
        // A class that is out and has nothing, as its queue was exchanged, is not waited for.
        let holds = |id: ClassId| !self.node(id).queue.is_empty();
        let moment = |out: &BTreeSet<(Nanos, ClassId)>| out.iter().find(|one| holds(one.1)).map(|one| one.0);
        let moments = [self.watchdog, moment(&self.throttled), moment(&self.penalties)];
        match moments.into_iter().flatten().min() {
            Some(until) => {
                self.counted.overlimits += 1;
                Dequeued::Throttled(until)
            }
            None => Dequeued::Empty,
        }
    }

    fn reset(&mut self, now: Nanos) {
        self.rounds.iter_mut().for_each(VecDeque::clear);
        self.throttled.clear();
        self.penalties.clear();
        (self.top_level, self.watchdog) = (ALL_LEVELS, None);
        self.classes.values_mut().for_each(|node| node.begin(now));
    }

    fn statistics(&self) -> Statistics {
        let mut all = self.counted;
        self.classes.values().for_each(|node| all.include(&node.statistics().queue));
        all
    }

    fn delays(&self) -> DelayTimer {
        let is_delayed = |node: &CbqNode<P>| node.settings.overlimit == CbqOverlimit::Delay;
        let own = match self.delay_timer() {
            Some(moment) => DelayTimer::Until(moment),
            None if self.classes.values().any(is_delayed) => DelayTimer::Idle,
            None => DelayTimer::Absent,
        };
        own.and(inner_delays(self))
    }

    fn end_delays(&mut self, now: Nanos) {
        self.end_penalties(now);
        end_inner_delays(self, now);
    }
}

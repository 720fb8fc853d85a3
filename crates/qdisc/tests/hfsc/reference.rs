//! The algorithm by its definitions: every beginning of a curve is kept, a curve is the minimum of what all
//! of them give, and an inverse is searched for. Who is backlogged, and who may send, is computed anew at
//! every question.

use quietcore_core::Nanos;
use quietcore_qdisc::{Dequeued, HfscClass, ServiceCurve};
use std::collections::VecDeque;

const BYTE: u128 = 1_000_000_000;
const NEVER: u128 = u64::MAX as u128;

/// What a curve gives within `span`, in parts of a byte.
pub(crate) fn given(curve: ServiceCurve, span: u128) -> u128 {
    let knee = u128::from(curve.d.0);
    if span <= knee {
        u128::from(curve.m1) * span
    } else {
        u128::from(curve.m1) * knee + u128::from(curve.m2) * (span - knee)
    }
}

#[derive(Clone, Debug)]
struct Curve {
    shape: ServiceCurve,
    /// Moments, and bytes had by then.
    beginnings: Vec<(u128, u128)>,
}

impl Curve {
    fn new(shape: ServiceCurve) -> Self {
        Self { shape, beginnings: Vec::new() }
    }

    fn value(&self, at: u128) -> u128 {
        let each = self.beginnings.iter().map(|(x, y)| y * BYTE + given(self.shape, at - x));
        each.min().expect("it has begun")
    }

    /// The first moment from the last beginning on at which `bytes` are reached.
    fn first(&self, bytes: u128) -> Option<u128> {
        let begin = self.beginnings.last().expect("it has begun").0;
        // Whatever is reached at all is by then: the slowest way is from 0, at the second rate.
        let at_last =
            begin + u128::from(self.shape.d.0) + (bytes * BYTE).div_ceil(self.shape.m2.max(1).into());
        if self.value(at_last) < bytes * BYTE {
            return None;
        }
        let (mut low, mut high) = (begin, at_last);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.value(middle) >= bytes * BYTE {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        Some(low)
    }
}

#[derive(Debug)]
struct Class {
    parent: usize,
    is_leaf: bool,
    config: HfscClass,
    deadline: Option<Curve>,
    eligible: Option<Curve>,
    share: Option<Curve>,
    limit: Option<Curve>,
    queue: VecDeque<(usize, u32)>,
    total: u128,
    by_guarantee: u128,
    virtual_time: u128,
    /// Of its children: the greatest one chosen, and the greatest one that stopped.
    floor: u128,
    ceiling: u128,
}

/// Class 0 is the link.
#[derive(Debug)]
pub(crate) struct Reference {
    classes: Vec<Class>,
}

fn eligible_shape(curve: ServiceCurve) -> ServiceCurve {
    if curve.m1 >= curve.m2 { curve } else { ServiceCurve::linear(curve.m2) }
}

impl Reference {
    pub(crate) fn new() -> Self {
        let mut reference = Self { classes: Vec::new() };
        reference.add(0, HfscClass::default());
        reference
    }

    pub(crate) fn add(&mut self, parent: usize, config: HfscClass) {
        if let Some(parent) = self.classes.get_mut(parent) {
            parent.is_leaf = false;
        }
        self.classes.push(Class {
            parent,
            is_leaf: true,
            config,
            deadline: config.realtime.map(Curve::new),
            eligible: config.realtime.map(eligible_shape).map(Curve::new),
            share: config.link_share.map(Curve::new),
            limit: config.upper_limit.map(Curve::new),
            queue: VecDeque::new(),
            total: 0,
            by_guarantee: 0,
            virtual_time: 0,
            floor: 0,
            ceiling: 0,
        });
    }

    pub(crate) fn leaves(&self) -> Vec<usize> {
        (1..self.classes.len()).filter(|class| self.classes[*class].is_leaf).collect()
    }

    /// Its packets, those below included.
    fn shares(&self, class: usize) -> bool {
        let has_share = class == 0 || self.classes[class].config.link_share.is_some();
        has_share && (!self.classes[class].queue.is_empty() || !self.sharing_children(class).is_empty())
    }

    fn sharing_children(&self, parent: usize) -> Vec<usize> {
        let all = 1..self.classes.len();
        all.filter(|class| self.classes[*class].parent == parent && self.shares(*class)).collect()
    }

    /// From a class up to, without, the link.
    fn path(&self, mut class: usize) -> Vec<usize> {
        let mut path = Vec::new();
        while class != 0 {
            path.push(class);
            class = self.classes[class].parent;
        }
        path
    }

    fn fit(&self, class: usize) -> u128 {
        let this = &self.classes[class];
        let own = this.limit.as_ref().map_or(0, |limit| limit.first(this.total).unwrap_or(NEVER));
        let children = self.sharing_children(class);
        own.max(children.iter().map(|child| self.fit(*child)).min().unwrap_or(0))
    }

    pub(crate) fn enqueue(&mut self, now: Nanos, leaf: usize, packet: (usize, u32)) {
        let path = self.path(leaf);
        let before: Vec<bool> = path.iter().map(|class| self.shares(*class)).collect();
        // Where each would begin, as long as none has.
        let begins: Vec<u128> =
            path.iter().map(|class| self.system_time(self.classes[*class].parent)).collect();
        let this = &mut self.classes[leaf];
        this.queue.push_back(packet);
        if this.queue.len() == 1 {
            let begin = (u128::from(now.0), this.by_guarantee);
            for curve in [&mut this.deadline, &mut this.eligible].into_iter().flatten() {
                curve.beginnings.push(begin);
            }
        }
        for ((class, before), begin) in path.into_iter().zip(before).zip(begins) {
            if before || !self.shares(class) {
                continue;
            }
            let this = &mut self.classes[class];
            let share = this.share.as_mut().expect("it shares");
            share.beginnings.push((begin.max(this.virtual_time), this.total));
            this.virtual_time = share.first(this.total).expect("shares do not end");
            if let Some(limit) = &mut this.limit {
                limit.beginnings.push((now.0.into(), this.total));
            }
        }
    }

    fn system_time(&self, parent: usize) -> u128 {
        let times: Vec<u128> = self
            .sharing_children(parent)
            .iter()
            .map(|child| self.classes[*child].virtual_time.max(self.classes[parent].floor))
            .collect();
        match (times.iter().min(), times.iter().max()) {
            (Some(least), Some(greatest)) => (least + greatest) / 2,
            _ => self.classes[parent].ceiling,
        }
    }

    pub(crate) fn dequeue(&mut self, now: Nanos) -> Dequeued<usize> {
        let now = u128::from(now.0);
        let mut moments = Vec::new();
        let mut urgent = None;
        for leaf in self.leaves() {
            let this = &self.classes[leaf];
            let (Some((_, length)), Some(eligible), Some(deadline)) =
                (this.queue.front(), &this.eligible, &this.deadline)
            else {
                continue;
            };
            let eligible = eligible.first(this.by_guarantee).unwrap_or(NEVER);
            let deadline = deadline.first(this.by_guarantee + u128::from(*length)).unwrap_or(NEVER);
            moments.push(eligible);
            if eligible <= now && urgent.is_none_or(|(earliest, _)| deadline < earliest) {
                urgent = Some((deadline, leaf));
            }
        }
        if let Some((_, leaf)) = urgent {
            return Dequeued::Packet(self.send(leaf, true));
        }
        moments.extend(self.sharing_children(0).iter().map(|class| self.fit(*class)));
        if let Some(leaf) = self.choose(now) {
            return Dequeued::Packet(self.send(leaf, false));
        }
        let until = moments.into_iter().min();
        until.map_or(Dequeued::Empty, |until| {
            Dequeued::Throttled(Nanos(u64::try_from(until).unwrap_or(u64::MAX)))
        })
    }

    fn choose(&mut self, now: u128) -> Option<usize> {
        let mut class = 0;
        while !self.classes[class].is_leaf {
            let mut children = self.sharing_children(class);
            children.retain(|child| self.fit(*child) <= now);
            let child =
                children.into_iter().min_by_key(|child| (self.classes[*child].virtual_time, *child))?;
            self.classes[class].floor = self.classes[class].floor.max(self.classes[child].virtual_time);
            class = child;
        }
        Some(class)
    }

    fn send(&mut self, leaf: usize, by_guarantee: bool) -> usize {
        let path = self.path(leaf);
        let before: Vec<bool> = path.iter().map(|class| self.shares(*class)).collect();
        let (number, length) = self.classes[leaf].queue.pop_front().expect("it was chosen");
        if by_guarantee {
            self.classes[leaf].by_guarantee += u128::from(length);
        }
        for (class, before) in path.into_iter().zip(before) {
            let parent = self.classes[class].parent;
            let floor = self.classes[parent].floor;
            let goes_on = self.shares(class);
            let this = &mut self.classes[class];
            this.total += u128::from(length);
            if !before {
                continue;
            }
            let share = this.share.as_mut().expect("it shares");
            this.virtual_time = share.first(this.total).expect("shares do not end");
            if this.virtual_time < floor {
                for beginning in &mut share.beginnings {
                    beginning.0 += floor - this.virtual_time;
                }
                this.virtual_time = floor;
            }
            let virtual_time = this.virtual_time;
            if !goes_on {
                let parent = &mut self.classes[parent];
                parent.ceiling = parent.ceiling.max(virtual_time);
            }
        }
        number
    }
}

//! What the wheels and the time stamps say to the hierarchy: which events are due, and what a CPU publishes.
//!
//! The kernel's events carry nanoseconds that are whole ticks; the wheels have jiffies. The difference
//! between the two is learned from the first event that a CPU publishes, which is our wheel's own first
//! global timer. The moment up to which a CPU takes events out is that of its jiffies, which no line of the
//! hierarchy shows: it is that of a timer line of the same softirq, else it follows from the time stamp.

use super::line::NEVER;
use crate::base::ArmedTimer;
use crate::base::{BaseName, TimerBase, TimerBaseKind};
use quietcore_core::CpuId;
use quietcore_wheel::Tick;
use std::collections::{BTreeMap, HashMap};

/// A jiffies value that a line of the same softirq showed is this fresh, in ns.
const FRESH: u64 = 300_000;
/// The difference of the two clocks is learned anew when so many events in a row show the same other one.
const SEEN_MIN: u32 = 3;
/// It is never far from the one before, in ticks.
const SHIFT_MAX: u64 = 2;
/// The clock of the time stamps drifts at boot, so what jiffies show is forgotten after this time, in ns.
const SPAN: u64 = 1_000_000_000;
/// After so many published events our wheels must have been right about half of them.
const TRUSTED: u64 = 8;
/// Seconds that a timer can be overdue before it is taken for one that the recording lost.
const OVERDUE_SECONDS: u64 = 1;

/// The timers of the replay.
pub(crate) struct Wheels<'a> {
    pub(crate) bases: &'a mut BTreeMap<BaseName, TimerBase>,
    pub(crate) armed: &'a HashMap<u64, ArmedTimer>,
    /// All that happens to timers is in the input.
    pub(crate) is_settled: bool,
}

impl Wheels<'_> {
    /// First bucket of the CPU's global timers, and of its local ones.
    fn next(&mut self, cpu: u16) -> (Option<Tick>, Option<Tick>) {
        let Ok(cpu) = CpuId::new(u64::from(cpu)) else { return (None, None) };
        let mut of =
            |kind| self.bases.get_mut(&BaseName { cpu, kind }).and_then(|base| base.wheel.next_expiry());
        (of(TimerBaseKind::Global), of(TimerBaseKind::Local))
    }

    /// The base in which a timer is pending.
    pub(super) fn base_of(&self, timer: u64) -> Option<BaseName> {
        self.armed.get(&timer).map(|armed| armed.base)
    }
}

#[derive(Debug)]
pub(super) struct HierarchyClock {
    tick: u64,
    /// Jiffies at 0 ns.
    zero: Option<u64>,
    /// The latest jiffies that a line showed.
    jiffies: Option<u64>,
    /// Another such value, how many events in a row show it, and the last of them.
    other: Option<(u64, u32, u64)>,
    ahead: Ahead,
    /// How far the events' own clock is ahead of the time stamps: the most that handled events show.
    events: Ahead,
    /// All that happens to timers is in the input.
    is_settled: bool,
    /// `nextevt=` that could be compared with our wheel, and those that agree.
    pub(super) compared: u64,
    pub(super) agreed: u64,
}

/// Jiffies that a line showed, and when, in ns.
#[derive(Clone, Copy, Debug)]
pub(super) struct ShownJiffies {
    pub(super) jiffies: u64,
    pub(super) at: u64,
}

/// How far jiffies, in ns, are ahead of the time stamps: the most that lines show.
///
/// Jiffies can be late, and an emulated machine that makes up for lost time can show a line whose stamp is
/// too early; so the most counts only when two lines of one span agree on it.
#[derive(Debug, Default)]
struct Ahead {
    /// When this span began.
    begun: u64,
    /// The most in the span before, and in this one.
    most: [Option<u64>; 2],
    /// More than that, once.
    candidate: Option<u64>,
}

impl Ahead {
    /// It was `time` or later at `at`.
    fn take(&mut self, time: u64, at: u64, tick: u64) {
        let ahead = time.wrapping_sub(at);
        if at.saturating_sub(self.begun) > SPAN {
            self.begun = at;
            self.most = [self.most[1].or(self.most[0]), None];
            self.candidate = None;
        }
        if self.most[1].is_some_and(|most| later(most, ahead) == most) {
            return;
        }
        let agrees = |other: u64| ahead.wrapping_sub(other).cast_signed().unsigned_abs() < tick / 16;
        if self.candidate.is_some_and(agrees) {
            self.most[1] = self.candidate.map(|other| later(other, ahead));
            self.candidate = None;
        } else {
            self.candidate = Some(ahead);
        }
    }

    fn value(&self) -> Option<u64> {
        match self.most {
            [Some(before), Some(most)] => Some(later(before, most)),
            [before, most] => most.or(before).or(self.candidate),
        }
    }
}

impl HierarchyClock {
    pub(super) fn new(tick: u64) -> Self {
        Self {
            tick: tick.max(1),
            zero: None,
            other: None,
            jiffies: None,
            ahead: Ahead::default(),
            events: Ahead::default(),
            is_settled: false,
            compared: 0,
            agreed: 0,
        }
    }

    /// Before each line.
    pub(super) fn settle(&mut self, wheels: &Wheels<'_>) {
        self.is_settled = wheels.is_settled;
    }

    pub(super) fn show(&mut self, shown: ShownJiffies) {
        if self.jiffies.is_none_or(|last| !Tick(shown.jiffies).is_before(Tick(last))) {
            self.jiffies = Some(shown.jiffies);
        }
        self.ahead.take(shown.jiffies.wrapping_mul(self.tick), shown.at, self.tick);
    }

    /// The moment up to which a CPU that looks at `at` finds events due.
    pub(super) fn now(&self, at: u64, own: Option<ShownJiffies>) -> u64 {
        // The first to show a tick does so a moment after it, and so does who looks for events.
        let at_slack = at.wrapping_add(self.tick / 16);
        let zero = self.zero.filter(|_| self.is_trusted());
        let stamp = match (self.ahead.value(), zero, self.events.value()) {
            (Some(ahead), Some(zero), _) => (at_slack.wrapping_add(ahead) / self.tick).wrapping_sub(zero),
            (_, _, Some(ahead)) => at_slack.wrapping_add(ahead) / self.tick,
            _ => at_slack / self.tick,
        };
        let of = |jiffies: u64| zero.map(|zero| jiffies.wrapping_sub(zero));
        let fresh = own.filter(|own| at.saturating_sub(own.at) < FRESH).and_then(|own| of(own.jiffies));
        let ticks = fresh.unwrap_or_else(|| {
            // Another CPU has shown a later tick already.
            let seen = self.jiffies.and_then(of).filter(|seen| seen.wrapping_sub(stamp) < 3);
            seen.unwrap_or(stamp)
        });
        ticks.saturating_mul(self.tick)
    }

    /// No CPU that looks for events takes them up to an earlier moment than this one, when `shown` were the
    /// latest jiffies by the time of its line before; `now` where that is not known.
    pub(super) fn earliest(&self, shown: Option<u64>, now: u64) -> u64 {
        let zero = self.zero.filter(|_| self.is_trusted());
        let ticks = zero.zip(shown).map(|(zero, shown)| shown.wrapping_sub(zero));
        ticks.map_or(now, |ticks| ticks.saturating_mul(self.tick))
    }

    /// The latest jiffies that a line showed.
    pub(super) fn shown(&self) -> Option<u64> {
        self.jiffies
    }

    /// An event that was due at `expires` was handled at `at`.
    pub(super) fn handled(&mut self, expires: u64, at: u64) {
        self.events.take(expires, at, self.tick);
    }

    /// Whether our wheels have the CPUs' timers: not when their events are not all in the input.
    pub(super) fn is_trusted(&self) -> bool {
        self.is_settled && self.zero.is_some() && (self.compared < TRUSTED || self.agreed * 2 > self.compared)
    }

    /// The event that a CPU that is idle publishes, in ns, as far as our wheel knows.
    pub(super) fn published(&self, wheels: &mut Wheels<'_>, cpu: u16, at: u64) -> u64 {
        if !self.is_trusted() {
            return NEVER;
        }
        let (Some(zero), (Some(global), local)) = (self.zero, wheels.next(cpu)) else { return NEVER };
        if local.is_some_and(|local| !global.is_before(local)) {
            return NEVER;
        }
        let now = self.now(at, None) / self.tick;
        let overdue = OVERDUE_SECONDS * 1_000_000_000 / self.tick;
        if global.plus(overdue).is_before(Tick(zero.wrapping_add(now))) {
            return NEVER;
        }
        let ticks = global.0.wrapping_sub(zero);
        let ticks = if ticks.cast_signed() < now.cast_signed() { now } else { ticks };
        ticks.saturating_mul(self.tick)
    }

    /// A CPU published `next`: what does our wheel say? Learns the difference of the two clocks.
    pub(super) fn compare(&mut self, wheels: &mut Wheels<'_>, cpu: u16, next: u64) {
        let (global, local) = wheels.next(cpu);
        let global = global.filter(|global| local.is_none_or(|local| global.is_before(local)));
        self.compared += 1;
        let Some(global) = global else {
            self.agreed += u64::from(next == NEVER);
            return;
        };
        if next == NEVER {
            return;
        }
        let zero = global.0.wrapping_sub(next / self.tick);
        let Some(known) = self.zero else {
            self.zero = Some(zero);
            self.agreed += 1;
            return;
        };
        if known == zero {
            self.agreed += 1;
            self.other = None;
            return;
        }
        // The first events of a boot can be a tick off. Our wheel can be wrong, too: it does not see which
        // CPU takes over the timers of a CPU that goes offline.
        if zero.wrapping_sub(known).cast_signed().unsigned_abs() > SHIFT_MAX {
            return;
        }
        let seen = match self.other {
            Some((other, seen, last)) if other == zero => seen + u32::from(last != next),
            _ => 1,
        };
        self.other = Some((zero, seen, next));
        if seen >= SEEN_MIN {
            (self.zero, self.other) = (Some(zero), None);
        }
    }
}

/// The greater of two differences.
fn later(one: u64, other: u64) -> u64 {
    if one.wrapping_sub(other).cast_signed() < 0 { other } else { one }
}

#[cfg(test)]
mod tests {
    use super::{HierarchyClock, NEVER, ShownJiffies, Wheels};
    use crate::base::{BaseName, TimerBase, TimerBaseKind};
    use crate::wheel::{PendingTimer, WheelLevels};
    use quietcore_core::CpuId;
    use quietcore_wheel::Tick;
    use std::collections::{BTreeMap, HashMap};

    /// Goal: the two clocks are brought together by the first published event, and "now" follows jiffies.
    #[test]
    fn the_first_published_event_tells_the_difference() {
        let cpu = CpuId::new(0).expect("a CPU");
        let mut base = TimerBase::new(WheelLevels::Nine, Tick(1000));
        let place = base.wheel.place(Tick(1009));
        base.arm(Tick(1009), PendingTimer { timer: 1, place, is_early: false, is_irq_safe: false });
        let mut bases = BTreeMap::from([(BaseName { cpu, kind: TimerBaseKind::Global }, base)]);
        let mut wheels = Wheels { bases: &mut bases, armed: &HashMap::new(), is_settled: true };
        let mut clock = HierarchyClock::new(4);
        clock.settle(&wheels);
        assert_eq!(clock.published(&mut wheels, 0, 0), NEVER, "not known yet");
        clock.compare(&mut wheels, 0, 40); // bucket 1010 is at 40 ns, so jiffies 1000 at 0
        assert_eq!(clock.published(&mut wheels, 0, 0), 40);
        clock.show(ShownJiffies { jiffies: 1002, at: 3 });
        assert_eq!(clock.now(3, None), 8, "jiffies 1002");
        assert_eq!(clock.now(7, None), 12, "a tick later");
        assert_eq!(
            clock.now(7, Some(ShownJiffies { jiffies: 1001, at: 6 })),
            4,
            "as the same softirq saw it"
        );
        assert_eq!((clock.compared, clock.agreed), (1, 1));
    }
}

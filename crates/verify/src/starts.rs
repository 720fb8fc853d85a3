//! `timer_start`: where the kernel says that it put a timer, held against where our wheel puts it.
//!
//! The place follows from the timer's expiry and the base's clock. The clock comes from the replay alone,
//! never from the line in question; then our wheel is forwarded to it, arms the timer, and must arrive at
//! the recorded bucket. A contradicted timer is armed where the replay would have it, so that one wrong
//! number is one mismatch.

use crate::base::{ArmedTimer, BaseName, PossibleClock, TimerBaseKind};
use crate::class::ClockClass;
use crate::mismatch::{Check, MismatchText};
use crate::place::RecordedPlace;
use crate::replay::TimerReplay;
use crate::swapped::Owed;
use crate::wheel::{PendingTimer, WheelLevels};
use quietcore_core::Nanos;
use quietcore_trace::{Record, TimerStart};
use quietcore_wheel::Tick;

/// Timers that are remembered as armed before a second CPU was up; the first boot steps arm a few dozen.
const EARLY_MAX: usize = 64;

/// A boot shows in this many seconds of ticks.
const BOOT_SECONDS: u64 = 10;

/// Jiffies start this many seconds before 2^32, so that their wrapping is tried out on every boot.
///
/// Source: Linux 6.12, include/linux/jiffies.h, `INITIAL_JIFFIES`.
const SECONDS_BEFORE_WRAP: u64 = 300;

/// Usual ticks per second, for a recording that does not say.
const USUAL_HZ: [u64; 4] = [100, 250, 300, 1000];

/// A start, with what it says besides its own place.
struct StartCheck<'a> {
    start: &'a TimerStart<'a>,
    base: BaseName,
    jiffies: Tick,
    /// Jiffies were these or later when the base was forwarded.
    shown: Option<Tick>,
    recorded: RecordedPlace,
    levels: WheelLevels,
}

impl StartCheck<'_> {
    fn expires(&self) -> Tick {
        Tick(self.start.expires)
    }

    /// Whether a wheel whose clock shows `clock` puts the timer where it was put.
    fn fits(&self, clock: Tick) -> bool {
        self.recorded.is(self.levels.place(clock, self.expires()))
    }

    /// Jiffies that the base can have been forwarded at before those of the event, as far as they differ in
    /// the place: the earliest, and the latest from which the delay goes to each level.
    fn moments(&self) -> Vec<Tick> {
        let Some(earliest) = self.shown else { return Vec::new() };
        let latest = (0..self.levels.count()).map(|level| {
            let delay = self.levels.level_start(level);
            Tick(self.start.expires.wrapping_sub(delay))
        });
        let moments = latest.chain([earliest]);
        moments.filter(|at| !at.is_before(earliest) && at.is_before(self.jiffies)).collect()
    }

    /// The places that `clocks` give, in words.
    fn expected(&self, clocks: &[PossibleClock]) -> String {
        let words = clocks.iter().take(3).map(|clock| {
            let place = self.levels.place(clock.at, self.expires());
            let from = clock.class.map_or("jiffies", ClockClass::name);
            format!("bucket {} due {} (clock {}, {from})", place.bucket, place.expiry.0, clock.at.0)
        });
        words.collect::<Vec<_>>().join(" or ")
    }
}

enum StartExplanation {
    /// By a clock that the base can have; our wheel is at it.
    Replayed(Option<ClockClass>),
    /// The base's state is not known: by jiffies, or by another possible clock. The timer is not followed.
    Unfollowed(Option<ClockClass>),
    /// By none of these; our wheel is at the first, the likeliest.
    None(Vec<PossibleClock>),
}

impl TimerReplay {
    pub(crate) fn take_start(&mut self, record: &Record<'_>, start: &TimerStart<'_>) {
        let jiffies = Tick(start.expires.wrapping_sub(start.timeout.cast_unsigned()));
        let base = self.base_of(record, start, jiffies);
        if self.armed.len() >= self.timers_max {
            self.is_full = true;
            self.forget();
        }
        let shown = self.shown_before_forward(record.cpu, start.timer, base);
        self.show(jiffies);
        self.settle_taken(base);
        let was_pending = self.take_out(start.timer).is_some();
        let owed = Owed { timer: start.timer, cancels: 1, at: record.at, line: record.line };
        if was_pending && self.seen.cancel {
            self.swapped.add(owed);
        }
        let Some(recorded) = RecordedPlace::of(start) else {
            self.counts.notes.without_bucket += 1;
            self.is_lossy = true;
            return;
        };
        self.seen.bucket_expiry |= start.bucket_expiry.is_some();
        self.counts.starts += 1;
        let levels = self.levels;
        let question = StartCheck { start, base, jiffies, shown, recorded, levels };
        self.judge(record, &question);
        if !was_pending && self.swapped.balance(start.timer) < 0 {
            self.swapped.add(owed); // its timer_cancel came before it
            self.take_out(start.timer);
        }
    }

    /// Explains the start, counts it, and arms its timer.
    fn judge(&mut self, record: &Record<'_>, question: &StartCheck<'_>) {
        let (clocks, why) = match self.explain(question) {
            StartExplanation::Unfollowed(class) => {
                self.is_lossy = true;
                return self.count(class);
            }
            StartExplanation::Replayed(class) => {
                if self.arm(question) {
                    return self.count(class);
                }
                let at = self.base(question.base, question.jiffies).wheel.clock();
                (vec![PossibleClock { at, class }], "our wheel puts it elsewhere at the replayed clock")
            }
            StartExplanation::None(clocks) => {
                self.arm(question);
                match question.fits(question.jiffies) {
                    true => (clocks, "it is placed as if the clock was jiffies, which the base cannot have"),
                    false => (clocks, "no clock that the base can have gives this bucket"),
                }
            }
        };
        self.counts.mismatch(record.line, Check::TimerStart, || MismatchText {
            event: describe(question.start, &question.base.to_string(), question.jiffies),
            expected: question.expected(&clocks),
            recorded: question.recorded.to_string(),
            why,
        });
    }

    pub(crate) fn count(&mut self, class: Option<ClockClass>) {
        match class {
            None => self.counts.exact += 1,
            Some(class) => self.counts.classes.add(class),
        }
    }

    /// Finds the clocks that give the recorded place, and takes the base's clock to them.
    fn explain(&mut self, question: &StartCheck<'_>) -> StartExplanation {
        let mut kept = self.fitting(question);
        if kept.is_empty() && self.was_forwarded_before(question) {
            return StartExplanation::Replayed(Some(ClockClass::TickBetween));
        }
        if kept.is_empty() && self.forget_boot_gap(question.base, question.jiffies) {
            kept = self.fitting(question);
        }
        if kept.is_empty() {
            let clocks = self.base(question.base, question.jiffies).clocks(question.jiffies);
            if self.is_unsettled() {
                if question.fits(question.jiffies) {
                    return StartExplanation::Unfollowed(None);
                }
                if question.recorded.is_possible(question.start, question.jiffies, self.levels) {
                    return StartExplanation::Unfollowed(Some(ClockClass::AfterLoss));
                }
            }
            self.base(question.base, question.jiffies).settle(question.jiffies, &clocks[..1]);
            return StartExplanation::None(clocks);
        }
        let base = self.base(question.base, question.jiffies);
        base.settle(question.jiffies, &kept);
        if question.fits(question.jiffies) {
            let at_jiffies = kept.iter().any(|clock| clock.class.is_none());
            self.counts.notes.same_place += u64::from(!at_jiffies);
            return StartExplanation::Replayed(None);
        }
        // The earliest: the clock that the base goes on with.
        let earliest = kept.iter().reduce(|one, other| if other.at.is_before(one.at) { other } else { one });
        StartExplanation::Replayed(earliest.and_then(|clock| clock.class))
    }

    /// The clocks that the base can have and that give the recorded place.
    fn fitting(&mut self, question: &StartCheck<'_>) -> Vec<PossibleClock> {
        let mut clocks = self.base(question.base, question.jiffies).clocks(question.jiffies);
        let place = |clock: &PossibleClock| question.levels.place(clock.at, question.expires());
        if clocks.iter().any(|clock| place(clock) != place(&clocks[0])) {
            self.counts.notes.two_places += 1;
        }
        clocks.retain(|clock| question.fits(clock.at));
        clocks
    }

    /// Whether the base was forwarded some ticks before the event was written, and gave the recorded place
    /// then. The CPU does both with interrupts off and can stand still in between, as in a guest whose
    /// processor is taken away; other CPUs move jiffies on.
    fn was_forwarded_before(&mut self, question: &StartCheck<'_>) -> bool {
        for jiffies in question.moments() {
            let base = self.base(question.base, question.jiffies);
            let mut clocks = base.clocks(jiffies);
            clocks.retain(|clock| question.fits(clock.at));
            if !clocks.is_empty() {
                base.settle(jiffies, &clocks);
                return true;
            }
        }
        false
    }

    /// Arms the timer where our wheel puts it; whether that is the recorded place.
    fn arm(&mut self, question: &StartCheck<'_>) -> bool {
        let timer = question.start.timer;
        let is_early = self.is_alone && self.begins_at_boot == Some(true);
        let base = self.base(question.base, question.jiffies);
        let place = base.wheel.place(question.expires());
        let is_irq_safe = question.start.irq_safe;
        let key = base.arm(question.expires(), PendingTimer { timer, place, is_early, is_irq_safe });
        if is_early && base.early.len() < EARLY_MAX && !base.early.contains(&timer) {
            base.early.push(timer);
        }
        self.armed.insert(timer, ArmedTimer { base: question.base, key });
        question.recorded.is(place)
    }

    /// The base that the start names. The first start also tells what kind of recording this is.
    fn base_of(&mut self, record: &Record<'_>, start: &TimerStart<'_>, jiffies: Tick) -> BaseName {
        if self.begins_at_boot.is_none() {
            self.begins_at_boot = Some(is_boot(jiffies, self.hz, record.at));
        }
        // 6.9 brought the local bases, and 6.8 the field.
        let bases = *self.bases_per_cpu.get_or_insert(if start.bucket_expiry.is_some() { 3 } else { 2 });
        let kind = match (start.deferrable, start.pinned) {
            (true, _) => TimerBaseKind::Deferrable,
            (false, true) if bases == 3 => TimerBaseKind::Local,
            (false, _) => TimerBaseKind::Global,
        };
        BaseName { cpu: start.base, kind }
    }

    /// At boot, in its first seconds and with CPU 0 alone, the kernel switches its events off and on again.
    /// A timer that was armed before any other CPU wrote a line, was due in these seconds, and is gone as a
    /// later line of its base shows, expired then. There is one such moment, so a base has it once.
    pub(crate) fn forget_boot_gap(&mut self, name: BaseName, before: Tick) -> bool {
        if !self.is_due_before(name, before) {
            return false;
        }
        let hz = self.hz;
        let Some(base) = self.bases.get_mut(&name) else { return false };
        let is_gone = |timer: &u64| {
            let armed = self.armed.get(timer).filter(|armed| armed.base == name);
            let pending = armed.and_then(|armed| base.wheel.get(armed.key));
            let expiry = pending.filter(|pending| pending.is_early).map(|pending| pending.place.expiry);
            expiry.is_some_and(|expiry| expiry.is_before(before) && is_boot(expiry, hz, Nanos(0)))
        };
        let gone: Vec<u64> = base.early.iter().copied().filter(is_gone).collect();
        if gone.is_empty() {
            return false;
        }
        base.early.clear();
        self.is_alone = false; // what is armed from here on is armed after the gap
        for &timer in &gone {
            self.take_out(timer);
        }
        self.counts.notes.boot_gap += gone.len() as u64;
        if let Some(base) = self.bases.get_mut(&name) {
            base.look(); // running a bucket computes the next expiry anew
        }
        true
    }
}

pub(crate) fn describe(start: &TimerStart<'_>, base: &str, jiffies: Tick) -> String {
    let function = String::from_utf8_lossy(start.function);
    let TimerStart { timer, expires, .. } = start;
    format!("timer {timer:x} ({function}) into the {base}: expires {expires}, jiffies {}", jiffies.0)
}

/// Whether `jiffies` are of the first seconds after boot.
fn is_boot(jiffies: Tick, hz: Option<u32>, at: Nanos) -> bool {
    let since_boot = |hz: u64| jiffies.since(Tick((1_u64 << 32).wrapping_sub(SECONDS_BEFORE_WRAP * hz)));
    let is_first = |hz: u64| (0..(BOOT_SECONDS * hz).cast_signed()).contains(&since_boot(hz));
    match hz {
        Some(hz) => is_first(u64::from(hz)),
        // Without HZ, the time stamp must be of the first seconds, too.
        None => at.as_u64() < BOOT_SECONDS * 1_000_000_000 && USUAL_HZ.into_iter().any(is_first),
    }
}

#[cfg(test)]
mod tests {
    use super::is_boot;
    use quietcore_core::Nanos;
    use quietcore_wheel::Tick;

    /// Goal: a boot is told from a running machine. Method: both ends of the first ten seconds.
    #[test]
    fn a_boot_shows_in_its_jiffies() {
        let first = (1 << 32) - 300 * 250;
        for (jiffies, expected) in
            [(first - 1, false), (first, true), (first + 2499, true), (first + 2500, false)]
        {
            assert_eq!(is_boot(Tick(jiffies), Some(250), Nanos(0)), expected, "{jiffies}");
            assert_eq!(is_boot(Tick(jiffies), None, Nanos(0)), expected, "{jiffies}, HZ unknown");
            assert!(!is_boot(Tick(jiffies), None, Nanos(10_000_000_000)), "{jiffies}, late");
        }
        assert!(is_boot(Tick((1 << 32) - 300_000), Some(1000), Nanos(u64::MAX)));
        assert!(!is_boot(Tick(first), Some(u32::MAX), Nanos(0)));
    }
}

//! When a CPU counts as stalled, and what follows from that span: the only place where it is compared.
//!
//! A CPU says with a heartbeat that it turns; its *silence* is the time since the last one. The machine asks
//! this policy whether a silence is a stall, whether a mark was made without need, and whether a watcher may
//! judge at all; a world asks it when its sentinel has to look. Another span or
//! judgement is another body of these functions; what follows from a stall is in `watch.rs` and
//! `missed_wakeup.rs`.

use crate::Nanos;
use core::time::Duration;

/// For how long a CPU may be silent, and what a mark that was made without need costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StallPolicy {
    /// For how long a CPU may be silent, in ns; `None`: no CPU counts as stalled.
    pub after: Option<Nanos>,
    /// Two false marks of a CPU within this span double its time for as long again, in ns.
    pub patience: Nanos,
}

/// How much silence a CPU is granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Patience {
    /// The policy's span.
    Usual,
    /// Twice that: it was marked without need twice, lately.
    Doubled,
}

impl Default for StallPolicy {
    /// 2 ms, and a second of patience.
    fn default() -> Self {
        Self::after(Duration::from_millis(2))
    }
}

impl StallPolicy {
    /// No CPU ever counts as stalled.
    pub const NEVER: Self = Self { after: None, patience: Nanos(1_000_000_000) };

    /// A CPU is stalled that is silent for `span`, as in [`with_span`](Self::with_span).
    #[must_use]
    pub const fn after(span: Duration) -> Self {
        Self::NEVER.with_span(span)
    }

    /// The same policy with another span; never, if that is longer than a clock of 64 bits runs (584 years).
    #[must_use]
    pub const fn with_span(self, span: Duration) -> Self {
        let nanos = span.as_nanos();
        let after = if nanos < u64::MAX as u128 { Some(Nanos(nanos as u64)) } else { None };
        Self { after, ..self }
    }

    /// The same policy, but with no span below `least`.
    #[must_use]
    pub fn at_least(self, least: Nanos) -> Self {
        Self { after: self.after.map(|after| after.max(least)), ..self }
    }

    /// Whether no CPU ever counts as stalled.
    #[inline]
    #[must_use]
    pub const fn is_never(self) -> bool {
        self.after.is_none()
    }

    /// Whether a silence of this length is a stall.
    #[inline]
    #[must_use]
    pub fn is_stalled(self, silence: Nanos, patience: Patience) -> bool {
        let allowed = match patience {
            Patience::Usual => self.after,
            Patience::Doubled => self.doubled(),
        };
        allowed.is_some_and(|allowed| silence >= allowed)
    }

    /// Whether a CPU that another one marked after this silence was slow, not stuck.
    #[must_use]
    pub fn was_false(self, silence: Nanos) -> bool {
        self.doubled().is_none_or(|limit| silence < limit)
    }

    /// Until when a CPU has [`Patience::Doubled`] that was marked falsely at `now`, and before that at
    /// `last`.
    pub(in crate::machine) fn patient_until(self, last: Option<Nanos>, now: Nanos) -> Option<Nanos> {
        let is_second = last.is_some_and(|last| now.since(last) < self.patience);
        is_second.then(|| later(now, self.patience))
    }

    /// When a CPU counts as stalled that is silent from `now` on.
    #[inline]
    #[must_use]
    pub fn deadline(self, now: Nanos) -> Option<Nanos> {
        self.after.map(|after| later(now, after))
    }

    /// When a world's sentinel looks whether anything turns, if no CPU does from `now` on: a tick after the
    /// [deadline](Self::deadline), so that other CPUs come first.
    #[inline]
    #[must_use]
    pub fn sentinel_deadline(self, now: Nanos, tick: Nanos) -> Option<Nanos> {
        self.deadline(now).map(|deadline| later(deadline, tick))
    }

    /// Whether a CPU that looked at others `gap` ago may judge them: else it was stopped itself, and after a
    /// stop of the whole machine every CPU is silent.
    #[inline]
    pub(in crate::machine) fn may_judge(self, gap: Nanos, tick: Nanos) -> bool {
        self.after.is_none_or(|after| gap <= after.max(later(tick, tick)))
    }

    /// The same of a sentinel that looks `late` after its deadline.
    #[inline]
    #[must_use]
    pub const fn sentinel_may_judge(self, late: Nanos, tick: Nanos) -> bool {
        late.0 <= tick.0 / 2
    }

    /// Whether a timer that was due at `next` has waited long enough to mark its CPU: a tick.
    #[inline]
    pub(in crate::machine) fn is_overdue(self, next: Nanos, now: Nanos, tick: Nanos) -> bool {
        now.since(next) >= tick
    }

    #[inline]
    fn doubled(self) -> Option<Nanos> {
        self.after.map(|after| later(after, after))
    }
}

#[inline]
fn later(moment: Nanos, span: Nanos) -> Nanos {
    Nanos(moment.0.saturating_add(span.0))
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::{Patience, StallPolicy};
    use crate::Nanos;
    use core::time::Duration;

    /// Goal: every answer changes exactly at its boundary. Method: both sides of each, with 10 ns and ticks
    /// of 4 ns.
    #[test]
    fn every_boundary() {
        let policy = StallPolicy { after: Some(Nanos(10)), patience: Nanos(100) };
        let tick = Nanos(4);
        for (silence, stalled, doubled, false_mark) in [
            (9, false, false, true),
            (10, true, false, true),
            (19, true, false, true),
            (20, true, true, false),
        ] {
            assert_eq!(policy.is_stalled(Nanos(silence), Patience::Usual), stalled, "{silence} ns");
            assert_eq!(policy.is_stalled(Nanos(silence), Patience::Doubled), doubled, "{silence} ns");
            assert_eq!(policy.was_false(Nanos(silence)), false_mark, "{silence} ns");
        }
        assert_eq!((policy.deadline(Nanos(5)), policy.sentinel_deadline(Nanos(5), tick)), (at(15), at(19)));
        assert_eq!(policy.patient_until(at(400), Nanos(499)), at(599));
        assert_eq!(policy.patient_until(at(400), Nanos(500)), None);
        assert_eq!(policy.patient_until(None, Nanos(500)), None);
        assert!(policy.may_judge(Nanos(10), tick) && !policy.may_judge(Nanos(11), tick));
        assert!(policy.may_judge(Nanos(12), Nanos(6)) && !policy.may_judge(Nanos(13), Nanos(6)));
        assert!(policy.sentinel_may_judge(Nanos(2), tick) && !policy.sentinel_may_judge(Nanos(3), tick));
        assert!(
            policy.is_overdue(Nanos(6), Nanos(10), tick) && !policy.is_overdue(Nanos(7), Nanos(10), tick)
        );
    }

    /// Goal: never is never, and a span that no clock reaches is never. Method: the longest silence; spans
    /// around the limit.
    #[test]
    fn never() {
        let (never, longest) = (StallPolicy::NEVER, Nanos(u64::MAX));
        assert!(!never.is_stalled(longest, Patience::Usual) && never.was_false(longest));
        assert!(never.may_judge(longest, Nanos(1)) && never.sentinel_deadline(Nanos(0), Nanos(1)).is_none());
        assert_eq!(never.at_least(Nanos(7)), never);
        assert_eq!(StallPolicy::after(Duration::from_nanos(u64::MAX)), never);
        let limit = StallPolicy::after(Duration::from_nanos(u64::MAX - 1));
        assert_eq!((limit.after, limit.deadline(Nanos(9))), (at(u64::MAX - 1), Some(longest)));
        assert_eq!(StallPolicy::after(Duration::ZERO).at_least(Nanos(7)).after, at(7));
    }

    fn at(nanos: u64) -> Option<Nanos> {
        Some(Nanos(nanos))
    }
}

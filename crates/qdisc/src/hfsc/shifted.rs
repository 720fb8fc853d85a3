//! The least of a class's service curves, each begun when the class became backlogged.
//!
//! A class that becomes backlogged at `x`, having had `y`, is entitled to what its curve gives from there on,
//! but not to more than the curves that it began before still give: the class's curve is the minimum of all
//! (Stoica, Zhang, Ng 1997, sections IV and V). The question asked is when it reaches an amount.
//!
//! A two-piece curve is two straight lines: the lower one counts of a concave curve, the upper one of a
//! convex one. Lines of one piece are parallel, so a line is its intercept. The minimum of concave curves is
//! two lines again, whatever their number. That of convex curves may have many pieces; those are kept that
//! are the lowest anywhere ahead. Amounts are in parts of a byte ([`BYTE`]), so everything is exact, but for
//! the moment of an answer, which is rounded up to a nanosecond.
//!
//! All curves that count are kept here because a guarantee needs them: keeping one convex curve only, the old
//! one if it is the lower one at the moment of the change, gives deadlines that are earlier than the
//! guarantee asks for where the kept curve is the higher one later, at the cost of others' (a rule like that
//! fails `a_guarantee_is_kept` in tests/hfsc). Whether the kernel keeps one or more is not known here.
//!
//! Deviation: the kernel's slopes are fixed-point numbers and its moments ticks of 1024 ns.
//!
//! Arithmetic saturates at 2^127 parts of a byte: beyond every link and clock that is.

use super::curve::{BYTE, ServiceCurve};
use alloc::collections::VecDeque;
use quietcore_core::Nanos;

/// A moment as a curve gives it; never is the end of time.
pub(super) fn moment(at: Option<u128>) -> Nanos {
    Nanos(at.and_then(|at| u64::try_from(at).ok()).unwrap_or(u64::MAX))
}

/// A service curve that began somewhere: what its two lines give at the last beginning of any.
#[derive(Clone, Copy, Debug)]
struct Begun {
    /// The line with slope `m1`.
    first: i128,
    /// The line with slope `m2`.
    second: i128,
}

/// The minimum of one service curve begun at several points.
#[derive(Clone, Debug)]
pub(super) struct ShiftedCurve {
    shape: ServiceCurve,
    /// Of a concave curve at most one. Of a convex one those that are the lowest somewhere: `first` grows
    /// and `second` falls, so that the front is the lowest one now.
    begun: VecDeque<Begun>,
    /// The curve is of use from here on: the last point at which it began. Amounts count from here, so that
    /// they are small.
    start: u128,
}

impl ShiftedCurve {
    /// One that has begun nowhere.
    pub(super) const fn new(shape: ServiceCurve) -> Self {
        Self { shape, begun: VecDeque::new(), start: 0 }
    }

    /// Begins at moment `x`, which is not before any earlier one, with `y` bytes.
    pub(super) fn begin(&mut self, x: u128, y: u64) {
        let passed = x.saturating_sub(self.start);
        self.start = x;
        let (bytes, ServiceCurve { m1, d, m2 }) = (parts(y), self.shape);
        if self.shape.is_one_line() {
            return self.begin_line(passed, bytes);
        }
        self.count_from_start(passed);
        let span = u128::from(d.0);
        let second = bytes.saturating_add(line(m1, span)).saturating_sub(line(m2, span));
        let begun = Begun { first: bytes, second };
        if self.shape.is_concave() {
            self.begin_concave(begun);
        } else {
            self.begin_convex(begun);
            self.drop_passed(y);
        }
    }

    /// The start has moved by `passed`, from which amounts count.
    fn count_from_start(&mut self, passed: u128) {
        let (first, second) = (line(self.shape.m1, passed), line(self.shape.m2, passed));
        for begun in &mut self.begun {
            begun.first = begun.first.saturating_add(first);
            begun.second = begun.second.saturating_add(second);
        }
    }

    /// Both of one line, which is the lower one for good.
    fn begin_line(&mut self, passed: u128, bytes: i128) {
        match self.begun.front_mut() {
            Some(old) => {
                let first = bytes.min(old.first.saturating_add(line(self.shape.m1, passed)));
                *old = Begun { first, second: first };
            }
            None => self.begun.push_back(Begun { first: bytes, second: bytes }),
        }
    }

    fn begin_concave(&mut self, new: Begun) {
        match self.begun.front_mut() {
            Some(old) => {
                old.first = old.first.min(new.first);
                old.second = old.second.min(new.second);
            }
            None => self.begun.push_back(new),
        }
    }

    fn begin_convex(&mut self, new: Begun) {
        // One that is not lower at its first line, and began earlier, is not lower at its second one either.
        while self.begun.back().is_some_and(|old| old.first >= new.first) {
            self.begun.pop_back();
        }
        // Otherwise the last one is lower now, and the new one either never or from some point on.
        if self.begun.back().is_none_or(|old| old.second > new.second) {
            self.begun.push_back(new);
        }
    }

    /// Forgets curves that were the lowest only below `y` bytes, which have been had.
    fn drop_passed(&mut self, y: u64) {
        while self.begun.len() > 1 {
            let (front, next) = (self.begun_reaches(self.begun[0], y), self.begun_reaches(self.begun[1], y));
            // Rounded up, a tie may be none: then it stays.
            if !matches!((front, next), (Some(front), Some(next)) if front < next) {
                return;
            }
            self.begun.pop_front();
        }
    }

    /// The first moment, not before the last beginning, at which it has reached `y` bytes; `None` if never.
    pub(super) fn reaches(&self, y: u64) -> Option<u128> {
        // The minimum reaches an amount when the last one does.
        let latest = match (self.begun.len(), self.begun.front()) {
            (1, Some(only)) => self.begun_reaches(*only, y),
            _ => self
                .begun
                .iter()
                .try_fold(0, |latest: u128, begun| Some(latest.max(self.begun_reaches(*begun, y)?))),
        };
        Some(self.start.saturating_add(latest?))
    }

    /// How long after the last beginning.
    #[inline]
    fn begun_reaches(&self, begun: Begun, y: u64) -> Option<u128> {
        let bytes = parts(y);
        let first = line_reaches(self.shape.m1, begun.first, bytes);
        if self.shape.is_one_line() {
            return first;
        }
        let second = line_reaches(self.shape.m2, begun.second, bytes);
        if self.shape.is_concave() {
            Some(first?.max(second?)) // the lower line
        } else {
            first.into_iter().chain(second).min() // the upper line
        }
    }

    /// Makes all that is ahead later by `by`.
    pub(super) const fn delay(&mut self, by: u128) {
        self.start = self.start.saturating_add(by);
    }
}

/// What `slope` bytes per second give within `span`, in parts of a byte.
fn line(slope: u64, span: u128) -> i128 {
    // Nearly all spans are below 584 years, and then this is one multiplication.
    signed(match u64::try_from(span) {
        Ok(span) => u128::from(slope) * u128::from(span),
        Err(_) => u128::from(slope).saturating_mul(span),
    })
}

/// So many bytes, in parts of a byte.
fn parts(bytes: u64) -> i128 {
    i128::from(bytes) * BYTE.cast_signed()
}

fn signed(amount: u128) -> i128 {
    i128::try_from(amount).unwrap_or(i128::MAX)
}

/// When a line reaches `amount` that gives `now` at first.
fn line_reaches(slope: u64, now: i128, amount: i128) -> Option<u128> {
    let Ok(missing) = u128::try_from(amount.saturating_sub(now)) else { return Some(0) };
    match (missing, slope) {
        (0, _) => Some(0),
        (_, 0) => None,
        (missing, slope) => Some(quotient_up(missing, slope)),
    }
}

/// `missing / slope`, rounded up; one division, and a short one where that is enough.
fn quotient_up(missing: u128, slope: u64) -> u128 {
    if let Ok(missing) = u64::try_from(missing) {
        return missing.div_ceil(slope).into();
    }
    let quotient = missing / u128::from(slope);
    quotient + u128::from(quotient * u128::from(slope) < missing)
}

#[cfg(test)]
mod tests {
    use super::{ServiceCurve, ShiftedCurve};
    use quietcore_core::Nanos;

    const SECOND: u128 = 1_000_000_000;

    /// Goal: the answer is the first nanosecond. Method: rates that do not divide a second.
    #[test]
    fn an_amount_is_reached_at_the_first_nanosecond() {
        let mut curve = ShiftedCurve::new(ServiceCurve::linear(3));
        curve.begin(5, 10);
        assert_eq!(curve.reaches(10), Some(5));
        assert_eq!(curve.reaches(11), Some(5 + SECOND.div_ceil(3)));
        assert_eq!(curve.reaches(13), Some(5 + SECOND));
        curve.delay(7);
        assert_eq!((curve.reaches(10), curve.reaches(13)), (Some(12), Some(12 + SECOND)));
        let mut flat = ShiftedCurve::new(ServiceCurve::two_piece(0, Nanos(50), 1_000_000_000));
        flat.begin(5, 10);
        flat.delay(7);
        assert_eq!((flat.reaches(10), flat.reaches(11)), (Some(12), Some(63)), "had at once, then late");
    }

    /// Goal: a plateau ends the answers. Method: bursts of one second with nothing after them.
    #[test]
    fn a_plateau_is_never_left() {
        let mut curve = ShiftedCurve::new(ServiceCurve::two_piece(10, Nanos(1_000_000_000), 0));
        curve.begin(0, 0);
        assert_eq!((curve.reaches(10), curve.reaches(11)), (Some(SECOND), None));
        curve.begin(20 * SECOND, 5);
        assert_eq!(curve.reaches(11), None, "what was begun first still counts");
    }

    /// Goal: a second burst is cut by the first beginning. Method: 20 B/s for 1 s, then 10 B/s; begun again
    /// after 2 s with 20 of the 30 bytes that were due.
    #[test]
    fn the_lower_concave_curve_counts() {
        let mut curve = ShiftedCurve::new(ServiceCurve::two_piece(20, Nanos(1_000_000_000), 10));
        curve.begin(0, 0);
        curve.begin(2 * SECOND, 20);
        assert_eq!(curve.reaches(40), Some(3 * SECOND), "both give 40 bytes by then");
        assert_eq!(curve.reaches(50), Some(4 * SECOND), "the first would give 50 in 4 s, and so does it");
        assert_eq!(curve.reaches(30), Some(5 * SECOND / 2));
    }

    /// Goal: convex curves that cross both count, and one that was passed is forgotten. Method: a curve
    /// begun again while ahead of it, looked at before and after the crossing.
    #[test]
    fn crossing_convex_curves_both_count() {
        let shape = ServiceCurve::two_piece(1, Nanos(10_000_000_000), 10);
        let mut curve = ShiftedCurve::new(shape);
        curve.begin(0, 0);
        curve.begin(5 * SECOND, 8);
        // The old one is at 5 of 8 bytes; it is at 10 after 10 s, at 20 after 11 s. The new one is at 13
        // after 10 s and at 18 after 15 s. They cross between.
        assert_eq!(curve.begun.len(), 2);
        assert_eq!(curve.reaches(10), Some(10 * SECOND), "the old one is the lower one");
        assert_eq!(curve.reaches(18), Some(15 * SECOND), "the new one is");
        curve.begin(7 * SECOND, 9);
        assert_eq!(curve.begun.len(), 2, "the third one is below the second");
        assert_eq!((curve.reaches(10), curve.reaches(19)), (Some(10 * SECOND), Some(17 * SECOND)));
        curve.begin(40 * SECOND, 300);
        assert_eq!(curve.begun.len(), 2, "the first one is above the others for good");
        assert_eq!(curve.reaches(310), Some(50 * SECOND));
        curve.begin(900 * SECOND, 310);
        assert_eq!(curve.begun.len(), 1, "all that went before give more for good");
    }
}

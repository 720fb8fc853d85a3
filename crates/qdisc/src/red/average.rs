//! Random early detection itself: what a queue's average length says of a packet that comes.
//!
//! The average moves towards the length with every packet that comes, by a power of two's part of the
//! difference. Below `min` nothing is marked, from `max` on everything; between them a packet is marked the
//! sooner the more have come since the last one that was, and the higher the average is, so that marks
//! are spread evenly. While a queue is empty the average falls as if short packets left it.
//!
//! Source: Floyd and Jacobson, "Random Early Detection Gateways for Congestion Avoidance" (1993), sections 4
//! and 11; Linux include/net/red.h, by behaviour: averages have as many bits behind the point as the weight
//! is small, the fall of an empty queue is looked up in a table. Floyd, Gummadi and Shenker, "Adaptive RED"
//! (2001), section 4, for `adapt`.

use quietcore_core::Nanos;

/// How far averages can fall in an empty queue, in steps that [`IdleDamping`] tells.
const STEPS: usize = 256;
/// An average that is halved more often is nothing.
const HALVES_MAX: u32 = 31;
/// One of a hundred, of 2^32.
const PERCENT: u32 = 42_949_673;

/// How an average falls while its queue is empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdleDamping {
    /// Microseconds of a step, as a power of 2.
    step_log: u32,
    /// How often the average is halved after so many steps.
    halves: [u8; STEPS],
}

impl IdleDamping {
    /// For an average of weight 2^-`weight_log`, as if packets of `packet` bytes left at `rate` bytes per
    /// second. `None` for a link that is too slow, or for packets without bytes.
    ///
    /// Like `tc`, reckons in units of 64 ns what Linux takes for microseconds, so an average falls by a
    /// factor of 16 more slowly than the paper says; a packet of less than a microsecond takes no time, so an
    /// average is forgotten at once.
    #[must_use]
    pub fn new(weight_log: u32, packet: u32, rate: u64) -> Option<Self> {
        const TICK_NANOS: f64 = 64.0;
        if rate == 0 || packet == 0 {
            return None;
        }
        let kept = 1.0 - 1.0 / (1_u64 << weight_log.min(HALVES_MAX)) as f64;
        let micros = libm::trunc(1e6 * f64::from(packet) / rate as f64);
        let ticks = libm::trunc(micros * 1_000.0 / TICK_NANOS);
        let halves_per_tick = -libm::log(kept) / ticks;
        let longest = f64::from(HALVES_MAX) / halves_per_tick;
        let step_log = (0..32).find(|log| longest / ((1_u64 << log) as f64) < 512.0)?;
        let mut halves = [0_u8; STEPS];
        for (step, halves) in (0_u64..).zip(&mut halves) {
            *halves = ((step << step_log) as f64 * halves_per_tick).min(f64::from(HALVES_MAX)) as u8;
        }
        halves[STEPS - 1] = HALVES_MAX as u8;
        Some(Self { step_log, halves })
    }

    /// Microseconds of a step, as a power of 2: `Scell_log` of `tc`.
    #[must_use]
    pub const fn step_log(&self) -> u32 {
        self.step_log
    }

    /// What is left of an average after `idle`.
    fn after(&self, average: u64, idle: Nanos) -> u64 {
        let most = (STEPS as u64 - 1) << self.step_log;
        let micros = (idle.0 / 1_000).min(most);
        let halves = self.halves[(micros >> self.step_log) as usize];
        if halves > 0 {
            return average >> halves;
        }
        // Less than a half: in proportion to the first step.
        let lost = (u128::from(average) * u128::from(micros)) >> self.step_log;
        average - u64::try_from(lost).unwrap_or(u64::MAX).min(average / 2)
    }
}

/// From which averages on packets are marked, and how averages are taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RedCurve {
    /// Bytes: below, nothing is marked.
    pub min: u32,
    /// Bytes: from there on, everything is.
    pub max: u32,
    /// The part by which an average moves towards the length is 2^-`weight_log`: at most 31.
    pub weight_log: u32,
    /// Just below `max` so many of 2^32 packets are marked, if each is by chance.
    pub probability: u32,
    /// How averages fall in an empty queue.
    pub idle: IdleDamping,
}

impl RedCurve {
    fn span(&self) -> u64 {
        u64::from(self.max.saturating_sub(self.min)).max(1)
    }
}

/// What to do with a packet that comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RedVerdict {
    Pass,
    /// By chance.
    Early,
    /// The average is too high.
    Forced,
}

/// The average of a queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RedAverage {
    /// Bytes, with `weight_log` bits behind the point.
    bytes: u64,
    /// Packets since the last that was marked, and between the limits; none yet.
    since_mark: Option<u32>,
    /// How many bytes above `min`, summed over packets, are enough to mark one.
    until_mark: u64,
    idle_since: Option<Nanos>,
}

impl RedAverage {
    pub(crate) const fn new() -> Self {
        Self { bytes: 0, since_mark: None, until_mark: 0, idle_since: None }
    }

    /// Its queue is empty, from `now` on or for longer.
    pub(crate) fn rest(&mut self, now: Nanos) {
        self.idle_since.get_or_insert(now);
    }

    /// The average, as it has fallen by `now`.
    fn fallen(&self, curve: &RedCurve, now: Nanos) -> u64 {
        self.idle_since.map_or(self.bytes, |since| curve.idle.after(self.bytes, now.since(since)))
    }

    /// Lets the probability follow the average of `now`: towards the middle fifth between the limits.
    pub(crate) fn adapt(&self, curve: &mut RedCurve, now: Nanos) {
        let average = self.fallen(curve, now) >> curve.weight_log;
        let fifth = curve.span() / 5;
        let (low, high) = (u64::from(curve.min) + 2 * fifth, u64::from(curve.min) + 3 * fifth);
        let probability = curve.probability;
        if average > high && probability <= 50 * PERCENT {
            curve.probability += (probability / 4).min(PERCENT);
        } else if average < low && probability >= PERCENT {
            curve.probability = probability / 10 * 9;
        }
    }

    /// A packet comes to a queue of `backlog` bytes.
    pub(crate) fn arrive(
        &mut self,
        curve: &RedCurve,
        now: Nanos,
        backlog: u64,
        random: &mut impl FnMut() -> u32,
    ) -> RedVerdict {
        self.bytes = if self.idle_since.is_some() {
            self.fallen(curve, now)
        } else {
            self.bytes - (self.bytes >> curve.weight_log) + backlog
        };
        self.idle_since = None;
        let (min, max) = (u64::from(curve.min), u64::from(curve.max));
        if self.bytes < min << curve.weight_log {
            self.since_mark = None;
            return RedVerdict::Pass;
        }
        if self.bytes >= max << curve.weight_log {
            self.since_mark = None;
            return RedVerdict::Forced;
        }
        let count = self.since_mark.map_or(0, |count| count.saturating_add(1));
        let above = (self.bytes - (min << curve.weight_log)) >> curve.weight_log;
        if count > 0 && above.saturating_mul(count.into()) < self.until_mark {
            self.since_mark = Some(count);
            return RedVerdict::Pass;
        }
        self.until_mark = draw(curve, random());
        self.since_mark = Some(0);
        if count > 0 { RedVerdict::Early } else { RedVerdict::Pass }
    }
}

/// Uniform up to what a packet at the upper end has above `min`, divided by the probability there.
fn draw(curve: &RedCurve, random: u32) -> u64 {
    let per_byte = (u64::from(curve.probability) / curve.span()).max(1);
    u64::from(random) / per_byte
}

//! Which packets are lost: at random, or by a Markov chain that knows good and bad times.
//!
//! The chain of four states is that of Salsano, Ludovici, Ordine and Giannuzzi ("Definition of a general and
//! intuitive loss model for packet networks", 2012): good times (1), losses in a burst (3), what arrives
//! within a burst (2), a lost packet on its own in good times (4). The second model is Gilbert's and
//! Elliott's. Source: Linux net/sched/sch_netem.c, by behaviour.

use super::chance::{Chance, Correlated, Probability};

/// A model of losses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NetemLoss {
    /// None are lost.
    #[default]
    None,
    /// Each with a probability.
    Random(Chance),
    /// `loss state`: from good to bursts and back, and lone losses.
    FourStates {
        /// From good times into a burst.
        p13: Probability,
        /// From a burst to good times.
        p31: Probability,
        /// From losing to arriving, within a burst.
        p32: Probability,
        /// From arriving to losing, within a burst.
        p23: Probability,
        /// A lone loss in good times.
        p14: Probability,
    },
    /// `loss gemodel`: good and bad times, with a probability of loss in each.
    GilbertElliott {
        /// From good to bad.
        p: Probability,
        /// From bad to good.
        r: Probability,
        /// To arrive in bad times (`tc` takes its complement, `1-h`).
        h: Probability,
        /// To be lost in good times (`1-k`).
        lost_in_good: Probability,
    },
}

impl NetemLoss {
    /// Bad times in which all is lost, good times in which nothing is (`loss gemodel P R`).
    #[must_use]
    pub const fn gilbert(p: Probability, r: Probability) -> Self {
        Self::GilbertElliott { p, r, h: Probability::NEVER, lost_in_good: Probability::NEVER }
    }

    /// The share of packets that is lost in the long run; `None` where no formula tells: correlated losses,
    /// chains that stay where they began.
    #[must_use]
    pub fn mean(&self) -> Option<f64> {
        let share = |probability: Probability| f64::from(probability.share()) / f64::from(u32::MAX);
        match *self {
            Self::None => Some(0.0),
            Self::Random(Chance { probability, correlation: Probability::NEVER }) => Some(share(probability)),
            Self::Random(_) => None,
            Self::FourStates { p13, p31, p32, p23, p14 } => {
                let [p13, p31, p32, p23, p14] = [p13, p31, p32, p23, p14].map(share);
                // The chain's stationary distribution, by its flows into and out of each state.
                let (good, lost, between) = (p31 * p23, p13 * p23, p13 * p32);
                let alone = good * p14;
                let all = good + lost + between + alone;
                (all > 0.0).then(|| (lost + alone) / all)
            }
            Self::GilbertElliott { p, r, h, lost_in_good } => {
                let [p, r, h, lost_in_good] = [p, r, h, lost_in_good].map(share);
                (p + r > 0.0).then(|| (p * (1.0 - h) + r * lost_in_good) / (p + r))
            }
        }
    }
}

/// Where the chain is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum LossPeriod {
    #[default]
    Good,
    /// Of a burst, or just bad.
    Bad,
    /// Within a burst, a packet has arrived.
    Between,
    /// A lone loss was just before.
    Alone,
}

/// What a model remembers.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Chain {
    times: LossPeriod,
    random: Correlated,
}

impl Chain {
    /// Whether the next packet is lost.
    pub(super) fn loses(&mut self, loss: &NetemLoss, random: &mut impl FnMut() -> u32) -> bool {
        match *loss {
            NetemLoss::None => false,
            NetemLoss::Random(chance) => self.random.happens(chance, random),
            NetemLoss::FourStates { .. } => self.four_states(loss, random()),
            NetemLoss::GilbertElliott { p, r, h, lost_in_good } => {
                // The packet meets the times before the step.
                let moves = random();
                if self.times == LossPeriod::Bad {
                    if moves < r.share() {
                        self.times = LossPeriod::Good;
                    }
                    random() > h.share()
                } else {
                    if moves < p.share() {
                        self.times = LossPeriod::Bad;
                    }
                    random() < lost_in_good.share()
                }
            }
        }
    }

    /// One number decides where the chain goes; the packet meets where it went.
    fn four_states(&mut self, loss: &NetemLoss, random: u32) -> bool {
        let NetemLoss::FourStates { p13, p31, p32, p23, p14 } = *loss else { return false };
        let either = |one: Probability, other: Probability| u64::from(one.share()) + u64::from(other.share());
        let is_below = |sum: u64| u64::from(random) < sum;
        self.times = match self.times {
            LossPeriod::Good if random < p14.share() => LossPeriod::Alone,
            LossPeriod::Good if is_below(either(p14, p13)) => LossPeriod::Bad,
            LossPeriod::Bad if random < p32.share() => LossPeriod::Between,
            LossPeriod::Bad if is_below(either(p32, p31)) => LossPeriod::Good,
            LossPeriod::Between if random < p23.share() => LossPeriod::Bad,
            LossPeriod::Alone => LossPeriod::Good,
            times => times,
        };
        matches!(self.times, LossPeriod::Bad | LossPeriod::Alone)
    }
}

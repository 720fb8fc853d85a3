//! Every candidate against a sorted `Vec`: random scripts with ties, slack, late arms and re-arms.

use super::dary::Dary;
use super::digital::Digital;
use super::leftist::Leftist;
use super::load::{ORDERS, Random, START, at};
use super::pairing::Pairing;
use super::radix::Radix;
use super::rbtree::RedBlack;
use super::thin::Thin;
use super::{Queue, Silent, Times};

const NODES: u32 = 200;
const STEPS: u32 = 10_000;

/// The obvious queue: sorted by hard expiry, equal ones in arm order.
#[derive(Debug, Default)]
struct Oracle(Vec<(u32, Times)>);

impl Oracle {
    fn arm(&mut self, id: u32, times: Times) {
        self.cancel(id);
        let at = self.0.partition_point(|(_, other)| other.hard <= times.hard);
        self.0.insert(at, (id, times));
    }

    fn cancel(&mut self, id: u32) -> bool {
        let before = self.0.len();
        self.0.retain(|&(other, _)| other != id);
        self.0.len() < before
    }

    fn first(&self) -> Option<(u32, Times)> {
        self.0.first().copied()
    }

    fn pop_expired(&mut self, now: u64) -> Option<u32> {
        let expired = self.first().filter(|(_, times)| times.soft <= now)?;
        self.0.remove(0);
        Some(expired.0)
    }
}

/// What a random script looks like.
#[derive(Clone, Copy, Debug)]
struct Flavour {
    /// Delays are a multiple of this, which is what makes ties.
    grain: u64,
    delay_max: u64,
    slack_max: u64,
    /// How far before `now` a timer may be armed.
    late_max: u64,
    /// Percentage of steps that arm; the rest cancel, move the clock and pop.
    arms: u64,
}

const FLAVOURS: [Flavour; 5] = [
    Flavour { grain: 1, delay_max: 1 << 33, slack_max: 0, late_max: 0, arms: 50 },
    Flavour { grain: 64, delay_max: 512, slack_max: 0, late_max: 0, arms: 60 },
    Flavour { grain: 10, delay_max: 100_000, slack_max: 50_000, late_max: 0, arms: 45 },
    Flavour { grain: 16, delay_max: 4_096, slack_max: 256, late_max: 2_048, arms: 70 },
    Flavour { grain: 1, delay_max: 1, slack_max: 0, late_max: 0, arms: 60 },
];

/// Returns how many steps were compared.
fn compare<Q: Queue>(flavour: Flavour, seed: u64) -> u32 {
    let mut random = Random::new(seed);
    let (mut queue, mut oracle, mut now) = (Q::with_nodes(NODES as usize), Oracle::default(), START);
    for step in 0..STEPS {
        let context = || format!("{flavour:?}, seed {seed}, step {step}");
        let id = random.below(u64::from(NODES)) as u32;
        let choice = random.below(100);
        if choice < flavour.arms {
            let delay = random.below(flavour.delay_max) / flavour.grain * flavour.grain;
            let hard = now + delay - random.below(flavour.late_max + 1);
            let times = Times { soft: hard - random.below(flavour.slack_max + 1), hard };
            queue.arm(id, times);
            oracle.arm(id, times);
            assert_eq!(queue.times(id), times, "{}", context());
        } else if choice < flavour.arms + (100 - flavour.arms) / 2 {
            assert_eq!(queue.cancel(id), oracle.cancel(id), "cancel {id}, {}", context());
        } else {
            now += random.below(flavour.delay_max / 16 + 2);
            loop {
                let (popped, expected) = (queue.pop_expired(now), oracle.pop_expired(now));
                assert_eq!(popped, expected, "pop at {now}, {}", context());
                if popped.is_none() {
                    break;
                }
            }
        }
        let first = queue.first().map(|id| (id, queue.times(id)));
        assert_eq!(first, oracle.first(), "first, {}", context());
        if step % 8 == 0 {
            assert_eq!(queue.check(), oracle.0.len(), "armed, {}", context());
        }
    }
    STEPS
}

/// Bursts in every order are popped as the oracle says, with checks on the way. Returns how many timers.
fn bursts<Q: Queue>() -> usize {
    let mut timers = 0;
    for order in ORDERS {
        for count in [1, 2, 3, 64, 1_000] {
            let delays = order.delays(count, &mut Random::new(count as u64));
            let (mut queue, mut oracle) = (Q::with_nodes(count), Oracle::default());
            for (id, delay) in delays.iter().enumerate() {
                queue.arm(id as u32, at(START + delay));
                oracle.arm(id as u32, at(START + delay));
            }
            assert_eq!(queue.check(), count, "{order:?}, {count}");
            for popped in 0..=count {
                assert_eq!(queue.pop_expired(START - 1), None, "{order:?}, {count}");
                let expected = oracle.pop_expired(u64::MAX);
                assert_eq!(queue.pop_expired(u64::MAX), expected, "{order:?}, {count}, {popped}");
                if popped % 16 == 0 {
                    assert_eq!(queue.check(), oracle.0.len(), "{order:?}, {count}, {popped}");
                }
            }
            timers += count;
        }
    }
    timers
}

/// All scripts of six steps out of: arm one of three timers at one of two expiries, cancel one, pop.
/// Returns how many.
fn exhaust<Q: Queue>() -> u32 {
    const CHOICES: u32 = 10;
    for script in 0..CHOICES.pow(6) {
        let (mut queue, mut oracle, mut rest) = (Q::with_nodes(3), Oracle::default(), script);
        for _ in 0..6 {
            let choice = rest % CHOICES;
            let id = choice % 3;
            rest /= CHOICES;
            match choice {
                0..6 => {
                    let times = at(START + u64::from(choice / 3));
                    queue.arm(id, times);
                    oracle.arm(id, times);
                }
                6..9 => assert_eq!(queue.cancel(id), oracle.cancel(id), "script {script}"),
                _ => {
                    let expected = oracle.pop_expired(START + 1);
                    assert_eq!(queue.pop_expired(START + 1), expected, "script {script}");
                }
            }
            assert_eq!(queue.first(), oracle.first().map(|(id, _)| id), "script {script}");
        }
        assert_eq!(queue.check(), oracle.0.len(), "script {script}");
    }
    CHOICES.pow(6)
}

macro_rules! against_oracle {
    ($($name:ident: $queue:ty;)*) => {$(
        mod $name {
            use super::*;

            #[test]
            fn random_scripts() {
                for (number, flavour) in FLAVOURS.into_iter().enumerate() {
                    for seed in 0..4 {
                        assert_eq!(compare::<$queue>(flavour, 100 * number as u64 + seed), STEPS);
                    }
                }
            }

            #[test]
            fn bursts_pop_in_order() {
                assert_eq!(bursts::<$queue>(), ORDERS.len() * (1 + 2 + 3 + 64 + 1_000));
            }

            #[test]
            fn short_scripts() {
                assert_eq!(exhaust::<$queue>(), 1_000_000);
            }
        }
    )*};
}

against_oracle! {
    pairing: Pairing<Silent>;
    dary4: Dary<Silent, 4>;
    dary8: Dary<Silent, 8>;
    rbtree: RedBlack<Silent>;
    radix: Radix<Silent>;
    leftist: Leftist<Silent>;
    digital: Digital<Silent>;
    thin: Thin<Silent>;
}

//! What the core asks of a world: written under locks, carried out after all of them are dropped.
//!
//! Kicks are idempotent and unordered, so a CPU is named once however often it is asked for. Those of CPUs
//! below 64 are a bit each, of the others a few are listed by number, so that a world can make a list on the
//! stack for one call on a machine of any size; only a call that kicks many of those allocates. Absent: doing
//! anything; an action that is never carried out is a lost wake-up, hence `#[must_use]`.

use crate::{CpuId, Nanos};
use alloc::boxed::Box;
use alloc::vec;

/// CPUs per word of kicks.
const WORD: usize = u64::BITS as usize;

/// CPUs from 64 on that are listed before a bitmap of all of them is made.
const FEW: usize = 4;

/// Work for the world, collected over one or more calls. 64 bytes; costs nothing to make for one call.
#[derive(Debug)]
#[must_use = "an action that is not carried out is a lost wake-up"]
pub struct Actions {
    /// CPUs 0 to 63.
    kicks: u64,
    /// From CPU 64 on, as long as they are few: the first `listed` of these.
    few: [CpuId; FEW],
    listed: u8,
    /// CPUs are below this.
    limit: u16,
    /// The words from CPU 64 on, once these are more than few.
    more: Box<[u64]>,
    /// The first word of `more` that is not 0; its length when there is none.
    first: usize,
    alarm: Option<Nanos>,
    /// The deadline word was changed.
    must_program: bool,
    /// Something was asked for since it was made; most calls ask for nothing.
    is_asked: bool,
}

const _: () = assert!(size_of::<Actions>() <= 64);

impl Actions {
    /// Nothing to do, on a machine with CPUs below `cpu_limit`. No allocation.
    #[inline]
    pub fn new(cpu_limit: u16) -> Self {
        Self {
            kicks: 0,
            few: [CpuId(0); FEW],
            listed: 0,
            limit: cpu_limit,
            more: Box::default(),
            first: 0,
            alarm: None,
            must_program: false,
            is_asked: false,
        }
    }

    /// Asks for `cpu` to look again at once. Twice is as good as once. Allocates at the fifth CPU from 64 on.
    ///
    /// # Panics
    /// When `cpu` is not below the limit given to [`new`](Self::new), rounded up to 64.
    pub fn kick(&mut self, cpu: CpuId) {
        self.is_asked = true;
        if cpu.index() < WORD {
            self.kicks |= 1 << cpu.index();
        } else {
            self.kick_far(cpu);
        }
    }

    fn kick_far(&mut self, cpu: CpuId) {
        assert!(cpu.index() / WORD <= self.words(), "CPU {cpu} is not below {}", self.limit);
        let listed = usize::from(self.listed);
        if !self.more.is_empty() {
            self.set(cpu);
        } else if self.few[..listed].contains(&cpu) {
            // It is asked for already.
        } else if listed < FEW {
            self.few[listed] = cpu;
            self.listed += 1;
        } else {
            self.more = vec![0; self.words()].into();
            self.first = self.more.len();
            self.listed = 0;
            let few = self.few;
            few.into_iter().chain([cpu]).for_each(|cpu| self.set(cpu));
        }
    }

    /// How many words there are from CPU 64 on.
    fn words(&self) -> usize {
        usize::from(self.limit.saturating_sub(1)) / WORD
    }

    fn set(&mut self, cpu: CpuId) {
        let word = cpu.index() / WORD - 1;
        self.more[word] |= 1 << (cpu.index() % WORD);
        self.first = self.first.min(word);
    }

    /// Asks that some CPU that may pull is awake at `expires`: no CPU in the hierarchy will be. The earliest
    /// of several counts.
    pub fn set_alarm(&mut self, expires: Nanos) {
        self.is_asked = true;
        self.alarm = Some(self.alarm.map_or(expires, |alarm| alarm.min(expires)));
    }

    /// The next CPU to kick, lowest first; each is returned once.
    #[inline]
    pub fn take_kick(&mut self) -> Option<CpuId> {
        if self.kicks != 0 {
            return Some(CpuId(take_lowest(&mut self.kicks)));
        }
        if self.listed > 0 { self.take_listed() } else { self.take_far() }
    }

    /// The lowest of those that are listed.
    fn take_listed(&mut self) -> Option<CpuId> {
        let listed = &mut self.few[..usize::from(self.listed)];
        let last = listed.len() - 1;
        let lowest = (0..=last).min_by_key(|at| listed[*at])?;
        listed.swap(lowest, last);
        self.listed -= 1;
        Some(listed[last])
    }

    fn take_far(&mut self) -> Option<CpuId> {
        let word = self.more.get_mut(self.first)?;
        let cpu = (self.first + 1) * WORD + usize::from(take_lowest(word));
        while self.more.get(self.first) == Some(&0) {
            self.first += 1;
        }
        Some(CpuId(cpu as u16))
    }

    /// The alarm asked for, once.
    pub fn take_alarm(&mut self) -> Option<Nanos> {
        self.alarm.take()
    }

    /// Asks that the timer of the [deadline](crate::lane::Deadline::program) is programmed: a moment that it
    /// follows was changed.
    pub const fn program_timer(&mut self) {
        (self.must_program, self.is_asked) = (true, true);
    }

    /// Whether the timer of the deadline is to be programmed, once.
    #[inline]
    #[must_use = "a timer that is not programmed wakes nobody"]
    pub const fn take_program(&mut self) -> bool {
        core::mem::replace(&mut self.must_program, false)
    }

    /// Whether there is nothing to do.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        !self.is_asked
            || self.kicks == 0
                && self.listed == 0
                && self.first == self.more.len()
                && self.alarm.is_none()
                && !self.must_program
    }
}

/// Takes the lowest bit out of a word that is not 0; its number.
#[inline]
fn take_lowest(word: &mut u64) -> u16 {
    let lowest = word.trailing_zeros() as u16;
    *word &= *word - 1;
    lowest
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::Actions;
    use crate::{CpuId, Nanos};
    use alloc::vec::Vec;
    use core::iter::from_fn;

    /// Goal: kicks come out once each, lowest first, and may be asked for again; the last CPU of a machine is
    /// in. Method: machines around the sizes of the words; the same CPUs twice, in a wrong order, then a low
    /// one when higher ones are taken, and the last one alone.
    #[test]
    fn kicks_of_every_word_come_out_in_order() {
        for limit in [1_u16, 63, 64, 65, 128, 129, 300] {
            let mut actions = Actions::new(limit);
            let mut expected: Vec<u16> = (0..limit).filter(|cpu| cpu % 37 == 0 || cpu + 1 == limit).collect();
            for cpu in expected.iter().rev().chain(&expected) {
                actions.kick(CpuId(*cpu));
            }
            assert!(!actions.is_empty());
            let taken: Vec<u16> = from_fn(|| actions.take_kick()).map(|cpu| cpu.0).collect();
            assert_eq!(taken, expected, "{limit} CPUs");
            assert!(actions.is_empty() && actions.take_kick().is_none());
            expected.truncate(1);
            actions.kick(CpuId(expected[0]));
            assert_eq!(actions.take_kick(), Some(CpuId(0)), "{limit} CPUs");
            actions.set_alarm(Nanos(5));
            assert!(!actions.is_empty() && actions.take_alarm() == Some(Nanos(5)) && actions.is_empty());
            actions.kick(CpuId(limit - 1));
            assert!(!actions.is_empty() && actions.take_kick() == Some(CpuId(limit - 1)));
            assert!(actions.is_empty(), "{limit} CPUs");
        }
    }

    /// Goal: a call that kicks few CPUs allocates nothing on a machine of any size. Method: the four highest
    /// of 8192, in a wrong order and twice; then a fifth.
    #[test]
    fn few_kicks_are_listed() {
        let mut actions = Actions::new(8192);
        let few = [8191_u16, 64, 4711, 100];
        for cpu in few.iter().chain(&few) {
            actions.kick(CpuId(*cpu));
        }
        assert!(actions.more.is_empty() && !actions.is_empty());
        actions.kick(CpuId(65));
        assert_eq!(actions.more.len(), 127);
        actions.kick(CpuId(3));
        let taken: Vec<u16> = from_fn(|| actions.take_kick()).map(|cpu| cpu.0).collect();
        assert_eq!(taken, [3, 64, 65, 100, 4711, 8191]);
        assert!(actions.is_empty());
    }

    /// Goal: a CPU that the machine cannot have is refused. Method: the first behind the last word.
    #[test]
    #[should_panic(expected = "CPU 128 is not below 65")]
    fn a_cpu_beyond_the_limit_is_refused() {
        Actions::new(65).kick(CpuId(128));
    }
}

//! Threads that arm, poll, reset, hand over and drop sleeps for a second, in real time.

use crate::scene::{Dice, Woken, check_books, poll};
use core::pin::Pin;
use core::task::{Poll, Waker};
use quietcore_live::Machine;
use quietcore_live::time::{Duration, Instant, Precision, Sleep, sleep};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

const THREADS: usize = 4;
const SLEEPS: usize = 64;

/// A sleep on its way through the threads.
struct Nap {
    sleep: Pin<Box<Sleep>>,
    record: Record,
}

/// How often a thread may have been woken for a sleep: once for each time it was made or reset, and once for
/// each poll of one that was over and gave way.
struct Record {
    woken: Arc<Woken>,
    waker: Waker,
    starts: u32,
}

impl Record {
    fn check(&self) {
        assert!(self.woken.count() <= self.starts, "{} wakes, {} starts", self.woken.count(), self.starts);
    }
}

impl Nap {
    fn new(dice: &mut Dice) -> Self {
        let precision = [Precision::Coarse, Precision::Tick, Precision::Exact][dice.below(3) as usize];
        let sleep = Box::pin(sleep(delay(dice)).with_precision(precision));
        let (woken, waker) = Woken::new();
        Self { sleep, record: Record { woken, waker, starts: 1 } }
    }

    /// Whether it is over.
    fn look(&mut self) -> bool {
        let (woken, was_over) = (self.record.woken.count(), Instant::now() >= self.sleep.deadline());
        let is_over = poll(self.sleep.as_mut(), &self.record.waker) == Poll::Ready(());
        if was_over && !is_over && self.record.woken.count() > woken {
            self.record.starts += 1;
        }
        assert!(!is_over || Instant::now() >= self.sleep.deadline(), "early: {:?}", self.sleep);
        is_over
    }

    fn reset(&mut self, deadline: Instant) {
        self.record.starts += 1;
        self.sleep.as_mut().reset(deadline);
    }
}

fn delay(dice: &mut Dice) -> Duration {
    Duration::from_micros(dice.below(5_000))
}

/// Goal: under contention nothing is early, lost or woken twice, and every arm ends once. Method: four
/// threads with 64 sleeps each poll, renew, drop and hand them to each other for a second; those that are
/// left are polled until they are over. Wakes are compared with starts when the machine has ended, so that
/// late ones are seen.
#[test]
fn for_a_second() {
    let machine = Machine::start().expect("threads and timers can be had");
    let (senders, receivers): (Vec<_>, Vec<_>) = (0..THREADS).map(|_| channel::<Nap>()).unzip();
    let until = Instant::now() + Duration::from_secs(1);
    let play = |(number, receiver): (usize, Receiver<Nap>)| {
        let next = senders[(number + 1) % THREADS].clone();
        thread::spawn(move || {
            let _entered = machine.enter();
            play(&mut Dice::new(number as u64), (&receiver, &next), until)
        })
    };
    let threads: Vec<_> = receivers.into_iter().enumerate().map(play).collect();
    drop(senders);
    let records: Vec<_> = threads.into_iter().flat_map(|thread| thread.join().expect("no panic")).collect();
    check_books(machine);
    machine.shutdown();
    records.iter().for_each(Record::check);
    assert!(records.iter().any(|record| record.woken.count() > 1), "nothing was started again");
}

/// What became of the sleeps that ended here.
fn play(dice: &mut Dice, (receiver, next): (&Receiver<Nap>, &Sender<Nap>), until: Instant) -> Vec<Record> {
    let (mut naps, mut records) = (Vec::new(), Vec::new());
    while Instant::now() < until {
        naps.extend(receiver.try_iter());
        while naps.len() < SLEEPS {
            naps.push(Nap::new(dice));
        }
        let chosen = dice.below(naps.len() as u64) as usize;
        match dice.below(16) {
            0 => records.push(naps.swap_remove(chosen).record),
            // The other thread may be at its end already.
            1 => drop(next.send(naps.swap_remove(chosen))),
            2 => naps[chosen].reset(Instant::now() + delay(dice)),
            // Over: half of them begin again.
            _ if naps[chosen].look() && dice.below(2) == 0 => {
                naps[chosen].reset(Instant::now() + delay(dice))
            }
            _ => {}
        }
    }
    let limit = Instant::now() + Duration::from_secs(20);
    while let Some(mut nap) = naps.pop() {
        while !nap.look() {
            assert!(Instant::now() < limit, "never over: {:?}", nap.sleep);
            thread::yield_now();
        }
        records.push(nap.record);
    }
    records
}

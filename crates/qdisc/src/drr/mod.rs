//! `drr`: classes that share a link by deficit round robin, each as its quantum is to the others'.
//!
//! A packet whose priority names a class of this discipline (`major:minor`), or that a filter sends to one,
//! is that class's; every other one is dropped, as there is no class for it. A class whose discipline makes
//! its packet wait makes all wait: only disciplines that always have one belong inside.
//!
//! Invariants (tests/drr.rs): a class is in the round exactly while it holds something; what two classes sent
//! while both had packets differs, over their quanta, by less than what the longest packets take. Source: M.
//! Shreedhar and G. Varghese, SIGCOMM 1995; tc-drr(8) and Linux 6.12 net/sched/sch_drr.c, by behaviour.
//! Deviation: a class `major:0`, which Linux lets be, is refused.

mod inner;
pub(crate) mod tc;

use crate::class_map::ClassMap;
use crate::classful::{end_inner_delays, inner_delays};
use crate::round::DeficitRound;
use crate::{ClassId, DelayTimer, Dequeued, Enqueued, InnerQdisc, Packet, Qdisc, Statistics};
use core::fmt::{self, Debug};
use quietcore_core::Nanos;

/// A class.
#[derive(Debug)]
struct DrrClass<P> {
    quantum: u32,
    queue: InnerQdisc<P>,
    /// What was sent: disciplines inside come and go.
    sent: Statistics,
}

/// Classes by deficit round robin.
///
/// ```
/// use quietcore_core::Nanos;
/// use quietcore_qdisc::{ClassId, Drr, Qdisc};
///
/// let (large, small) = (ClassId::new(1, 1), ClassId::new(1, 2));
/// let mut queue = Drr::new(1);
/// queue.add_class(large, 3_000)?;
/// queue.add_class(small, 1_000)?;
/// for number in 0..8_u8 {
///     for (class, name) in [(large, b'l'), (small, b's')] {
///         assert!(queue.enqueue_to(Nanos(0), class, vec![name; 1_000]).is_accepted());
///     }
/// }
/// let order: Vec<u8> = (0..8).filter_map(|_| queue.dequeue(Nanos(0)).packet()).map(|p| p[0]).collect();
/// assert_eq!(order, b"lllsllls");
/// # Ok::<(), quietcore_qdisc::DrrError>(())
/// ```
#[derive(Debug)]
pub struct Drr<P> {
    major: u16,
    classes: ClassMap<DrrClass<P>>,
    round: DeficitRound<ClassId>,
    /// What was sent, and what was dropped for want of a class, or with one.
    own: Statistics,
}

/// Why a class cannot be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DrrError {
    /// There is no such class.
    Unknown(ClassId),
    /// There is one of that name.
    Exists(ClassId),
    /// A quantum of 0 bytes.
    Quantum,
}

impl fmt::Display for DrrError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown(class) => write!(out, "there is no class {class}"),
            Self::Exists(class) => write!(out, "there is a class {class} already"),
            Self::Quantum => out.write_str("a class with a quantum of 0 could never send"),
        }
    }
}

impl core::error::Error for DrrError {}

impl<P: Packet + Debug + Send> Drr<P> {
    /// One without classes, which drops all; `major` is the major number of its classes.
    #[must_use]
    pub fn new(major: u16) -> Self {
        let (classes, round) = (ClassMap::new(), DeficitRound::new());
        Self { major, classes, round, own: Statistics::default() }
    }

    /// A class that sends `quantum` bytes in its turn, with a `pfifo` of 1,000 packets.
    ///
    /// # Errors
    /// Of a name that is taken, or a quantum of 0.
    pub fn add_class(&mut self, class: ClassId, quantum: u32) -> Result<(), DrrError> {
        if quantum == 0 {
            return Err(DrrError::Quantum);
        }
        if self.classes.contains_key(class) {
            return Err(DrrError::Exists(class));
        }
        let (queue, sent) = (InnerQdisc::first(), Statistics::default());
        self.classes.insert(class, DrrClass { quantum, queue, sent });
        Ok(())
    }

    /// Another quantum, from the class's next turn on.
    ///
    /// # Errors
    /// Where there is no such class, or of a quantum of 0.
    pub fn change_class(&mut self, class: ClassId, quantum: u32) -> Result<(), DrrError> {
        if quantum == 0 {
            return Err(DrrError::Quantum);
        }
        self.classes.get_mut(class).ok_or(DrrError::Unknown(class))?.quantum = quantum;
        Ok(())
    }

    /// Removes a class; what it holds is dropped.
    ///
    /// # Errors
    /// Where there is no such class.
    pub fn remove_class(&mut self, class: ClassId) -> Result<(), DrrError> {
        let gone = self.classes.remove(class).ok_or(DrrError::Unknown(class))?;
        self.drop_all(class, &gone.queue.statistics());
        Ok(())
    }

    /// Another discipline inside a class; what the one before held is dropped.
    ///
    /// # Errors
    /// Where there is no such class.
    pub fn set_inner(&mut self, class: ClassId, inner: InnerQdisc<P>) -> Result<(), DrrError> {
        let told = self.classes.get_mut(class).ok_or(DrrError::Unknown(class))?;
        let before = core::mem::replace(&mut told.queue, inner).statistics();
        self.drop_all(class, &before);
        Ok(())
    }

    /// What a discipline that is gone had dropped and held.
    fn drop_all(&mut self, class: ClassId, gone: &Statistics) {
        self.own.dropped += gone.dropped + gone.qlen;
        self.round.remove(class);
    }

    /// The bytes that a class sends in its turn.
    #[must_use]
    pub fn quantum(&self, class: ClassId) -> Option<u32> {
        self.classes.get(class).map(|told| told.quantum)
    }

    /// The bytes that are left of its turn, while it holds something.
    #[must_use]
    pub fn deficit(&self, class: ClassId) -> Option<u64> {
        self.round.deficit(class)
    }

    /// Takes a packet for a class, as if a filter had named it; where there is none, drops it.
    pub fn enqueue_to(&mut self, now: Nanos, class: ClassId, packet: P) -> Enqueued {
        let Some(told) = self.classes.get_mut(class) else {
            self.own.dropped += 1;
            return Enqueued::Lost;
        };
        let was_empty = told.queue.is_empty();
        let enqueued = told.queue.enqueue(now, packet);
        match (was_empty, told.queue.is_empty()) {
            (true, false) => self.round.wake(class, told.quantum),
            // What made room has dropped all.
            (false, true) => self.round.remove(class),
            _ => {}
        }
        enqueued
    }

    /// The class that a priority names, if it is of this discipline.
    fn named_class(&self, priority: u32) -> Option<ClassId> {
        Some(ClassId(priority)).filter(|class| class.major() == self.major)
    }
}

impl<P: Packet + Debug + Send> Qdisc<P> for Drr<P> {
    fn kind(&self) -> &'static str {
        "drr"
    }

    fn enqueue(&mut self, now: Nanos, packet: P) -> Enqueued {
        self.enqueue_to(now, ClassId(packet.priority()), packet)
    }

    fn dequeue(&mut self, now: Nanos) -> Dequeued<P> {
        while let Some(class) = self.round.first() {
            let told = self.classes.get_mut(class).expect("the round has classes that are there");
            let bytes = match told.queue.peek(now) {
                Dequeued::Packet(bytes) => bytes,
                Dequeued::Throttled(until) => return Dequeued::Throttled(until),
                // It has dropped what it held.
                Dequeued::Empty => {
                    self.round.remove(class);
                    continue;
                }
            };
            if !self.round.pay(bytes) {
                self.round.pass(told.quantum);
                continue;
            }
            let next = told.queue.dequeue(now);
            let size = if let Dequeued::Packet(packet) = &next { packet.size() } else { bytes.into() };
            if told.queue.is_empty() {
                self.round.remove(class);
            }
            told.sent.count_sent(size);
            self.own.count_sent(size);
            return next;
        }
        Dequeued::Empty
    }

    fn reset(&mut self, now: Nanos) {
        self.classes.values_mut().for_each(|told| told.queue.reset(now));
        self.round.clear();
    }

    fn is_empty(&self) -> bool {
        self.round.first().is_none()
    }

    fn statistics(&self) -> Statistics {
        let mut all = self.own;
        self.classes.values().for_each(|told| all.include(&told.queue.statistics()));
        all
    }

    fn delays(&self) -> DelayTimer {
        inner_delays(self)
    }

    fn end_delays(&mut self, now: Nanos) {
        end_inner_delays(self, now);
    }
}

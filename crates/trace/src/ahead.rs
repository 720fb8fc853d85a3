//! Decoding ahead: threads that decode blocks before the reader comes to them.
//!
//! Blocks stand in a ring in the order of their lines. The reader fills it at one end and takes from the
//! other; decoders make records of what stands between, which borrow from their block. The reader never waits
//! for a thread to begin: the block that it needs next it reads itself if no decoder has it, and while one
//! has it, the reader decodes another block. So the order of events does not depend on the threads, and a
//! decoder that gets no CPU delays the reader by the one block that it holds.
//!
//! Memory: [`BLOCKS_PER_THREAD`] blocks for each thread, the reader's included, each of 256 KiB and at most
//! [`ENTRIES_MAX`] records (some 700 KiB).

use crate::decode::record;
use crate::event::{Event, Record};
use crate::line::{Columns, split_usual};
use crate::lines::{Block, Blocks, RawLine, Refill, Untaken};
use self_cell::self_cell;
use std::any::Any;
use std::collections::VecDeque;
use std::io::{self, Read};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

const BLOCKS_PER_THREAD: usize = 2;
/// So many lines of a block are decoded at most; a block of the kernel's own lines has some 2,000.
const ENTRIES_MAX: usize = 4096;

/// A line of a block that was looked at.
pub(crate) enum Entry<'a> {
    /// An event, and the name of its tracepoint; the record's line number is not set.
    Event(Record<'a>, &'a [u8]),
    /// A line that is read by the reader: it is not of the usual form, or malformed.
    Line(&'a [u8]),
    /// A line that is too long.
    TooLong,
}

/// The lines at the front of a block, looked at.
pub(crate) struct Entries<'a> {
    entries: Vec<Entry<'a>>,
    /// So many of them were taken.
    taken: usize,
    /// What of the block lies behind them.
    left: Untaken,
}

self_cell! {
    /// A block with its entries.
    pub(crate) struct Decoded {
        owner: Block,
        #[not_covariant]
        dependent: Entries,
    }
}

/// A block's memory and that of its entries, of which there are none.
struct Room {
    block: Block,
    entries: Vec<Entry<'static>>,
}

impl Room {
    /// Decodes the lines at the front of the block.
    fn decode(self) -> Decoded {
        let Self { block, entries } = self;
        Decoded::new(block, |block| Entries::of(block, entries))
    }
}

impl<'a> Entries<'a> {
    fn of(block: &'a Block, entries: Vec<Entry<'a>>) -> Self {
        let (mut entries, mut lines, mut columns) = (entries, block.lines(), Columns::none());
        while entries.len() < ENTRIES_MAX
            && let Some(line) = lines.next()
        {
            entries.push(match line {
                RawLine::Line(line) => Entry::of(line, &mut columns),
                RawLine::TooLong => Entry::TooLong,
            });
        }
        Self { entries, taken: 0, left: lines.left() }
    }
}

impl<'a> Entry<'a> {
    #[inline(always)]
    fn of(line: &'a [u8], columns: &mut Columns) -> Self {
        let Some(prefix) = split_usual(line, columns) else { return Self::Line(line) };
        match record(0, &prefix) {
            // Its set of CPUs is memory of its own, which is not kept for a whole block.
            Ok(Record { event: Event::IpiSendMask { .. }, .. }) | Err(_) => Self::Line(line),
            Ok(record) => Self::Event(record, prefix.name),
        }
    }
}

impl Decoded {
    /// Hands out at most so many of its entries, in order; says how many they were.
    pub(crate) fn for_each<E>(
        &mut self,
        entries_max: u64,
        mut take: impl FnMut(&mut Entry<'_>) -> Result<(), E>,
    ) -> Result<u64, E> {
        self.with_dependent_mut(|_, Entries { entries, taken, .. }| {
            let mut count = 0;
            while count < entries_max
                && let Some(entry) = entries.get_mut(*taken)
            {
                (*taken, count) = (*taken + 1, count + 1);
                take(entry)?;
            }
            Ok(count)
        })
    }

    /// The block with the lines behind the entries, and the entries' memory.
    fn into_rest(mut self) -> Room {
        let (entries, left) = self.with_dependent_mut(|_, dependent| {
            let mut entries = std::mem::take(&mut dependent.entries);
            entries.clear();
            // An empty list keeps its memory and loses its lifetime.
            let entries = entries.into_iter().map(|_| Entry::TooLong).collect();
            (entries, dependent.left)
        });
        let mut block = self.into_owner();
        block.take_until(left);
        Room { block, entries }
    }
}

/// A place of the ring.
enum Slot {
    /// Lines that no thread has looked at.
    Raw(Room),
    /// A thread is decoding them.
    Taken,
    Decoded(Decoded),
    /// Decoding them panicked.
    Failed(Box<dyn Any + Send>),
}

/// A block that a thread has taken to decode it.
struct Job {
    /// How many blocks of the input lie before it.
    number: u64,
    room: Room,
}

struct Ring {
    slots: VecDeque<Slot>,
    /// How many slots were taken from the front.
    taken: u64,
    is_over: bool,
}

impl Ring {
    /// Takes the first raw block from `index` on.
    fn take_raw(&mut self, index: usize) -> Option<Job> {
        let found = (index..self.slots.len()).find(|&at| matches!(self.slots[at], Slot::Raw(_)))?;
        let Slot::Raw(room) = std::mem::replace(&mut self.slots[found], Slot::Taken) else { return None };
        Some(Job { number: self.taken + found as u64, room })
    }

    /// Puts what became of block `number`, which was taken, in its place.
    fn put(&mut self, number: u64, slot: Slot) {
        self.slots[(number - self.taken) as usize] = slot;
    }
}

struct Shared {
    ring: Mutex<Ring>,
    changed: Condvar,
}

impl Shared {
    fn ring(&self) -> MutexGuard<'_, Ring> {
        self.ring.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, ring: MutexGuard<'a, Ring>) -> MutexGuard<'a, Ring> {
        self.changed.wait(ring).unwrap_or_else(PoisonError::into_inner)
    }

    /// Decodes a block that was taken, and puts it back.
    fn decode(&self, Job { number, room }: Job) -> MutexGuard<'_, Ring> {
        let slot = match catch_unwind(AssertUnwindSafe(|| room.decode())) {
            Ok(decoded) => Slot::Decoded(decoded),
            Err(panic) => Slot::Failed(panic),
        };
        let mut ring = self.ring();
        ring.put(number, slot);
        ring
    }

    /// Decodes blocks until the reader is gone. The first block is left to the reader.
    fn help(&self) {
        let mut ring = self.ring();
        while !ring.is_over {
            ring = match ring.take_raw(1) {
                Some(job) => {
                    drop(ring);
                    let ring = self.decode(job);
                    self.changed.notify_all();
                    ring
                }
                None => self.wait(ring),
            };
        }
    }
}

/// What the reader gets next.
pub(crate) enum Next {
    /// Lines to be read as they are.
    Raw(Block),
    /// Lines that were decoded.
    Decoded(Decoded),
    /// There are none: [`Refill::WouldBlock`] or [`Refill::End`].
    Nothing(Refill),
}

/// The reader's side of the ring.
pub(crate) struct Ahead {
    shared: Arc<Shared>,
    decoders: Vec<JoinHandle<()>>,
    blocks_max: usize,
    /// Memory that nothing is in.
    blocks: Vec<Block>,
    entries: Vec<Vec<Entry<'static>>>,
    /// What the source said when it had no more lines; told when the ring is empty.
    stopped: Option<io::Result<Refill>>,
}

impl Ahead {
    /// Starts `decoders` threads, or as many of them as can be started.
    pub(crate) fn start(decoders: usize) -> Self {
        let ring = Ring { slots: VecDeque::new(), taken: 0, is_over: false };
        let shared = Arc::new(Shared { ring: Mutex::new(ring), changed: Condvar::new() });
        let start = |_| {
            let shared = shared.clone();
            thread::Builder::new().name("trace-decoder".to_owned()).spawn(move || shared.help())
        };
        let decoders: Vec<_> = (0..decoders).map_while(|number| start(number).ok()).collect();
        let blocks_max = BLOCKS_PER_THREAD * (decoders.len() + 1);
        Self { shared, decoders, blocks_max, blocks: Vec::new(), entries: Vec::new(), stopped: None }
    }

    /// The next lines of `source`; `used` is a block without lines.
    pub(crate) fn next<R: Read>(&mut self, source: &mut Blocks<R>, used: Block) -> io::Result<Next> {
        if used.has_memory() {
            self.blocks.push(used);
        }
        self.fill(source);
        let mut ring = self.shared.ring();
        loop {
            match ring.slots.pop_front() {
                Some(Slot::Taken) => ring.slots.push_front(Slot::Taken),
                Some(slot) => {
                    ring.taken += 1;
                    drop(ring);
                    return Ok(self.open(slot));
                }
                None => {
                    let stopped = self.stopped.take().unwrap_or(Ok(Refill::WouldBlock));
                    return stopped.map(Next::Nothing);
                }
            }
            ring = match ring.take_raw(1) {
                Some(job) => {
                    drop(ring);
                    self.shared.decode(job)
                }
                None => self.shared.wait(ring),
            };
        }
    }

    /// Ends a block of which all entries were taken; gives its other lines, if there are any.
    pub(crate) fn rest_of(&mut self, decoded: Decoded) -> Block {
        let Room { block, entries } = decoded.into_rest();
        self.entries.push(entries);
        block
    }

    /// Reads until the ring is full or the source stops.
    fn fill<R: Read>(&mut self, source: &mut Blocks<R>) {
        while self.stopped.is_none() && self.shared.ring().slots.len() < self.blocks_max {
            let mut block = self.blocks.pop().unwrap_or_default();
            match source.next(&mut block) {
                Ok(Refill::Lines) => {
                    let room = Room { block, entries: self.entries.pop().unwrap_or_default() };
                    self.shared.ring().slots.push_back(Slot::Raw(room));
                    self.shared.changed.notify_one();
                }
                stopped => {
                    self.blocks.push(block);
                    self.stopped = Some(stopped);
                }
            }
        }
    }

    fn open(&mut self, slot: Slot) -> Next {
        match slot {
            Slot::Raw(Room { block, entries }) => {
                self.entries.push(entries);
                Next::Raw(block)
            }
            Slot::Decoded(decoded) => Next::Decoded(decoded),
            Slot::Failed(panic) => resume_unwind(panic),
            Slot::Taken => unreachable!("it is not taken from the ring"),
        }
    }
}

impl Drop for Ahead {
    fn drop(&mut self) {
        self.shared.ring().is_over = true;
        self.shared.changed.notify_all();
        for decoder in self.decoders.drain(..) {
            let _ = decoder.join(); // what it decodes cannot unwind out of it
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Ahead, Block, Blocks, Entry, Next, Refill, Room, Slot};
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::thread;
    use std::time::{Duration, Instant};

    /// Goal: a block that could not be decoded is not left out in silence. Method: a ring in which a decoder
    /// has left one.
    #[test]
    fn a_failure_of_a_decoder_is_the_readers() {
        let mut ahead = Ahead::start(0);
        ahead.shared.ring().slots.push_back(Slot::Failed(Box::new("no such event")));
        let next = || ahead.next(&mut Blocks::new(&b""[..]), Block::default());
        let panic = catch_unwind(AssertUnwindSafe(next)).err().expect("a panic");
        assert_eq!(panic.downcast_ref(), Some(&"no such event"));
    }

    /// Goal: the block that comes next is waited for while a decoder has it, however much behind it is
    /// ready. Method: the first of two blocks is taken; when the reader has decoded the second, the first is
    /// put back.
    #[test]
    fn the_first_block_is_waited_for() {
        let room = |text: &'static str| {
            let mut block = Block::default();
            let filled = Blocks::new(text.as_bytes()).next(&mut block);
            assert_eq!(filled.expect("a text"), Refill::Lines);
            Room { block, entries: Vec::new() }
        };
        let mut ahead = Ahead::start(0);
        let shared = ahead.shared.clone();
        shared.ring().slots.extend(["first\n", "second\n"].map(|text| Slot::Raw(room(text))));
        let job = shared.ring().take_raw(0).expect("nothing was taken before");
        let reader = thread::spawn(move || {
            let mut lines = Vec::new();
            for _ in 0..2 {
                let next = ahead.next(&mut Blocks::new(&b""[..]), Block::default());
                let Ok(Next::Decoded(mut decoded)) = next else { panic!("both are decoded") };
                let taken = decoded.for_each(9, |entry| match entry {
                    Entry::Line(line) => {
                        lines.push(line.to_vec());
                        Ok(())
                    }
                    _ => Err("it is a line of no event"),
                });
                assert_eq!(taken, Ok(1));
            }
            lines
        });
        let begun = Instant::now();
        loop {
            let ring = shared.ring();
            assert!(matches!(ring.slots[0], Slot::Taken), "nothing else comes first");
            if matches!(ring.slots[1], Slot::Decoded(_)) {
                break;
            }
            drop(ring);
            assert!(begun.elapsed() < Duration::from_secs(30), "the reader decodes what comes later");
            thread::sleep(Duration::from_millis(1));
        }
        drop(shared.decode(job));
        shared.changed.notify_all();
        assert_eq!(reader.join().expect("no panic"), [b"first".to_vec(), b"second".to_vec()]);
    }

    /// Goal: a reader that is dropped in the middle takes its decoders along. Method: one that has seen the
    /// first of many blocks.
    #[test]
    fn decoders_end_with_their_reader() {
        let text = "a line\n".repeat(300_000);
        let (mut ahead, mut source) = (Ahead::start(2), Blocks::new(text.as_bytes()));
        let shared = ahead.shared.clone();
        let first = ahead.next(&mut source, Block::default()).expect("a text");
        assert!(matches!(first, Next::Raw(_) | Next::Decoded(_)));
        drop(ahead);
        assert_eq!(std::sync::Arc::strong_count(&shared), 1);
    }

    /// Goal: a source that has nothing for now costs no memory, however often it is asked. Method: one that
    /// never has anything.
    #[test]
    fn nothing_costs_nothing() {
        struct Dry;
        impl std::io::Read for Dry {
            fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
                Err(std::io::ErrorKind::WouldBlock.into())
            }
        }
        let (mut ahead, mut source) = (Ahead::start(1), Blocks::new(Dry));
        for _ in 0..9 {
            let next = ahead.next(&mut source, Block::default()).expect("it fails never");
            assert!(matches!(next, Next::Nothing(Refill::WouldBlock)));
            assert!(ahead.blocks.len() <= 1, "{} blocks", ahead.blocks.len());
        }
    }

    /// Goal: what the source says when it stops is told once, after its lines.
    #[test]
    fn the_end_comes_last() {
        let (mut ahead, mut source) = (Ahead::start(1), Blocks::new(&b"one\ntwo"[..]));
        let mut steps = Vec::new();
        for _ in 0..4 {
            steps.push(match ahead.next(&mut source, Block::default()).expect("a text") {
                Next::Nothing(step) => step,
                _ => Refill::Lines,
            });
        }
        assert_eq!(steps, [Refill::Lines, Refill::Lines, Refill::End, Refill::End]);
    }
}

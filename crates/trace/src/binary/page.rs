//! Pages of the kernel's ring buffer: the events of one CPU, each with its moment.
//!
//! A page begins with the moment that its first event counts from, and how many bytes follow. Each event
//! begins with a word: five bits for its length or kind, 27 for the ns since the event before it.
//!
//! Source: Linux 6.18 Documentation/trace/ring-buffer-design.rst, include/linux/ring_buffer.h, and the files
//! `events/header_page` and `events/header_event` of tracefs. Read are little-endian machines of 64 bits.

use super::field::little_endian;
use std::fmt;
use std::ops::Range;

/// An event with four bytes for each of so many is the longest that needs no length of its own.
const LENGTH_WORDS_MAX: u32 = 28;
const PADDING: u32 = 29;
const TIME_EXTEND: u32 = 30;
const TIME_STAMP: u32 = 31;
/// The bits of a moment that an absolute time stamp holds.
const STAMP_BITS: u32 = 59;
const DELTA_BITS: u32 = 27;

/// Behind the bytes' count: events were lost before this page.
const LOST: u64 = 1 << 31;
/// Behind the last event stands how many.
const LOST_COUNT: u64 = 1 << 30;
const COUNT_MASK: u64 = LOST_COUNT - 1;

/// The largest page, with its head: that of a sub-buffer of the largest order.
const PAGE_BYTES_MAX: usize = 1 << 20;

/// Where the parts of a page lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PageLayout {
    count_at: usize,
    count_bytes: usize,
    data_at: usize,
    bytes: usize,
}

/// Events of one CPU were lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LostBefore {
    /// How many, if the kernel says.
    pub(crate) count: Option<u64>,
}

/// Why a page cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BrokenPage(&'static str);

/// One sentence part: `a page that is longer than a page`.
impl fmt::Display for BrokenPage {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.0)
    }
}

impl PageLayout {
    /// Reads `events/header_page`; `None` when pages are not of a form that is read here.
    pub(crate) fn parse(header_page: &str) -> Option<Self> {
        let place = |name: &str| {
            let line = header_page.lines().find(|line| line.contains(&format!(" {name};")))?;
            let number = |key: &str| {
                let (_, rest) = line.split_once(key)?;
                rest.split(';').next()?.parse::<usize>().ok()
            };
            Some((number("offset:")?, number("size:")?))
        };
        let ((0, 8), (count_at, count_bytes @ 8), (data_at, data_bytes)) =
            (place("timestamp")?, place("commit")?, place("data")?)
        else {
            return None;
        };
        let bytes = data_at.checked_add(data_bytes).filter(|&bytes| bytes <= PAGE_BYTES_MAX)?;
        (count_at + count_bytes <= data_at).then_some(Self { count_at, count_bytes, data_at, bytes })
    }

    /// How long a page is at most.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// The same with pages of another length, as an instance may have them.
    pub(crate) fn with_bytes(self, bytes: usize) -> Option<Self> {
        (self.data_at < bytes && bytes <= PAGE_BYTES_MAX).then_some(Self { bytes, ..self })
    }
}

/// An event of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PageEvent {
    /// In ns of the recording's clock.
    pub(crate) at: u64,
    /// Where in the page its bytes are.
    pub(crate) bytes: Range<usize>,
}

/// A page and the place in it that comes next.
#[derive(Debug, Default)]
pub(crate) struct RingPage {
    bytes: Vec<u8>,
    next: usize,
    end: usize,
    /// The moment of the event before that place.
    at: u64,
}

impl RingPage {
    /// The memory that the next page is read into, which is then given to [`RingPage::begin`].
    pub(crate) fn memory(&mut self) -> &mut Vec<u8> {
        (self.next, self.end) = (0, 0);
        &mut self.bytes
    }

    /// Goes to the first event of the page that the memory holds.
    pub(crate) fn begin(&mut self, layout: &PageLayout) -> Result<Option<LostBefore>, BrokenPage> {
        let head =
            self.bytes.get(..layout.data_at).ok_or(BrokenPage("a page that is shorter than its head"))?;
        let word = little_endian(&head[layout.count_at..layout.count_at + layout.count_bytes]);
        let end = layout.data_at + (word & COUNT_MASK) as usize;
        if end > self.bytes.len() {
            return Err(BrokenPage("a page that ends before its last event"));
        }
        (self.at, self.next, self.end) = (little_endian(&head[..8]), layout.data_at, end);
        if word & LOST == 0 {
            return Ok(None);
        }
        let stored = self.bytes.get(end..end + 8).filter(|_| word & LOST_COUNT != 0);
        Ok(Some(LostBefore { count: stored.map(little_endian) }))
    }

    /// The next event.
    #[inline]
    pub(crate) fn next(&mut self) -> Result<Option<PageEvent>, BrokenPage> {
        loop {
            let Some(word) = self.word(self.next) else {
                let is_whole = self.next >= self.end;
                return if is_whole { Ok(None) } else { Err(BrokenPage("an event of less than four bytes")) };
            };
            let (kind, delta) = (word & 31, u64::from(word >> 5));
            let body = self.next + 4;
            let (bytes, after) = match kind {
                1..=LENGTH_WORDS_MAX => (body..body + 4 * kind as usize, body + 4 * kind as usize),
                PADDING if delta == 0 => {
                    self.next = self.end;
                    return Ok(None);
                }
                TIME_STAMP => {
                    self.at = absolute(self.at, self.second_word(body)? << DELTA_BITS | delta);
                    self.next = body + 4;
                    continue;
                }
                TIME_EXTEND => {
                    self.at = self.at.wrapping_add(self.second_word(body)? << DELTA_BITS | delta);
                    self.next = body + 4;
                    continue;
                }
                // Its length counts the word that holds it.
                _ => {
                    let length = self.second_word(body)? as usize;
                    let after = body.checked_add(length.max(4)).ok_or(BEYOND)?;
                    (body + 4..after, after)
                }
            };
            // The kernel keeps events at places that are multiples of four.
            self.at = self.at.wrapping_add(delta);
            self.next = after.next_multiple_of(4);
            if bytes.end > self.end {
                return Err(BEYOND);
            }
            if kind != PADDING {
                return Ok(Some(PageEvent { at: self.at, bytes }));
            }
        }
    }

    /// The bytes of an event.
    #[inline]
    pub(crate) fn event(&self, event: &PageEvent) -> &[u8] {
        &self.bytes[event.bytes.clone()]
    }

    fn word(&self, at: usize) -> Option<u32> {
        Some(u32::from_le_bytes(*self.bytes.get(at..self.end)?.first_chunk()?))
    }

    fn second_word(&self, at: usize) -> Result<u64, BrokenPage> {
        self.word(at).map(u64::from).ok_or(BEYOND)
    }
}

const BEYOND: BrokenPage = BrokenPage("an event that ends behind its page");

/// The moment whose lowest bits are `stamp`, not before `at`.
fn absolute(at: u64, stamp: u64) -> u64 {
    let high = at >> STAMP_BITS << STAMP_BITS;
    let moment = high | stamp;
    if moment < at { moment.wrapping_add(1 << STAMP_BITS) } else { moment }
}

#[cfg(test)]
pub(super) mod made {
    use super::PageLayout;

    /// What tracefs says of a page on machines of 64 bits.
    pub(crate) const HEADER_PAGE: &str = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\
        \tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n\
        \tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n\
        \tfield: char data;\toffset:16;\tsize:4080;\tsigned:0;\n";

    pub(crate) fn layout() -> PageLayout {
        PageLayout::parse(HEADER_PAGE).expect("the kernel's own")
    }

    /// A page that begins at `at`, with these bytes for its events.
    pub(crate) fn page(at: u64, count_bits: u64, data: &[u8]) -> Vec<u8> {
        let count = (data.len() as u64 | count_bits).to_le_bytes();
        [&at.to_le_bytes()[..], &count, data].concat()
    }

    /// The first word of an event, then `rest`.
    pub(crate) fn entry(kind: u32, delta: u32, rest: &[u8]) -> Vec<u8> {
        [&(delta << 5 | kind).to_le_bytes()[..], rest].concat()
    }
}

#[cfg(test)]
mod tests {
    use super::made::{HEADER_PAGE, entry, layout, page};
    use super::{BrokenPage, LOST, LOST_COUNT, LostBefore, PageLayout, RingPage};

    /// The moments and the bytes of a page's events.
    fn events(bytes: Vec<u8>) -> Result<Vec<(u64, Vec<u8>)>, BrokenPage> {
        let mut page = RingPage::default();
        *page.memory() = bytes;
        page.begin(&layout())?;
        let mut events = Vec::new();
        while let Some(event) = page.next()? {
            events.push((event.at, page.event(&event).to_vec()));
        }
        Ok(events)
    }

    /// Goal: events of every kind, each with its moment. Method: a page with a short event, a long one, both
    /// kinds of times, a discarded event and the rest unused.
    #[test]
    fn every_kind_of_event_is_read() {
        let long = [&8u32.to_le_bytes()[..], b"long"].concat();
        let discarded = [&8u32.to_le_bytes()[..], b"gone"].concat();
        let data = [
            entry(1, 5, b"abcd"),
            entry(2, 0, b"efghijkl"),
            entry(30, 3, &1u32.to_le_bytes()),
            entry(0, 1, &long),
            entry(29, 10, &discarded),
            entry(1, 2, b"mnop"),
            entry(31, 7, &2u32.to_le_bytes()),
            entry(1, 0, b"qrst"),
            entry(29, 0, &[0xff; 20]),
        ];
        let extended = 105 + (1 << 27) + 3 + 1;
        let expected = [
            (105, &b"abcd"[..]),
            (105, b"efghijkl"),
            (extended, b"long"),
            (extended + 12, b"mnop"),
            ((2 << 27) + 7, b"qrst"),
        ];
        let expected = expected.map(|(at, bytes)| (at, bytes.to_vec()));
        assert_eq!(events(page(100, 0, &data.concat())), Ok(expected.to_vec()));
        assert_eq!(events(page(100, 0, b"")), Ok(vec![]));
    }

    /// Goal: an absolute time has the high bits of the time before it, and goes over into the next ones.
    #[test]
    fn a_time_stamp_goes_on_from_the_time_before() {
        let stamp = |at: u64, low: u64| {
            let words = (((low >> 27) as u32).to_le_bytes(), (low & ((1 << 27) - 1)) as u32);
            let data = [entry(31, words.1, &words.0), entry(1, 0, b"abcd")].concat();
            events(page(at, 0, &data)).expect("a good page")[0].0
        };
        let high = 5 << 59;
        assert_eq!(stamp(high | 100, 200), high | 200);
        assert_eq!(stamp(high | 100, 99), (6 << 59) | 99);
        assert_eq!(stamp(high | 100, 100), high | 100);
    }

    /// Goal: what was lost before a page is told, and how much. Method: each form of the count.
    #[test]
    fn losses_are_told() {
        let lost = |bytes: Vec<u8>| {
            let mut page = RingPage::default();
            *page.memory() = bytes;
            page.begin(&layout())
        };
        let data = entry(1, 0, b"abcd");
        let stored = [page(1, LOST | LOST_COUNT, &data), 77u64.to_le_bytes().to_vec()].concat();
        assert_eq!(lost(page(1, 0, &data)), Ok(None));
        assert_eq!(lost(page(1, LOST, &data)), Ok(Some(LostBefore { count: None })));
        assert_eq!(lost(stored), Ok(Some(LostBefore { count: Some(77) })));
        assert_eq!(lost(page(1, LOST | LOST_COUNT, &data)), Ok(Some(LostBefore { count: None })), "no room");
    }

    /// Goal: a page that is damaged says so, and nothing outside of it is read. Method: every cut of a good
    /// page, and lengths that go beyond.
    #[test]
    fn a_damaged_page_is_told() {
        let good = page(1, 0, &[entry(1, 0, b"abcd"), entry(0, 0, &[8, 0, 0, 0, 1, 2, 3, 4])].concat());
        assert_eq!(events(good.clone()).map(|events| events.len()), Ok(2));
        for cut in 0..good.len() {
            assert!(events(good[..cut].to_vec()).is_err(), "{cut} of {} bytes", good.len());
        }
        for data in [
            entry(2, 0, b"abcd"),
            entry(0, 0, &100u32.to_le_bytes()),
            entry(0, 0, &u32::MAX.to_le_bytes()),
            entry(0, 0, b""),
            entry(30, 0, b""),
            entry(31, 0, b""),
            b"ab".to_vec(),
        ] {
            assert!(events(page(1, 0, &data)).is_err(), "{data:?}");
        }
        let empty = entry(0, 0, &0u32.to_le_bytes());
        assert_eq!(events(page(1, 0, &empty)), Ok(vec![(1, vec![])]), "it counts its own length");
    }

    /// Goal: only pages of the known form are read. Method: changes of what tracefs says.
    #[test]
    fn other_pages_are_not_read() {
        assert_eq!(layout().bytes(), 4096);
        assert_eq!(layout().with_bytes(65_536).map(|layout| layout.bytes()), Some(65_536));
        assert_eq!((layout().with_bytes(16), layout().with_bytes(1 << 21)), (None, None));
        for (from, to) in [
            ("offset:8;\tsize:8", "offset:8;\tsize:4"),
            ("offset:16", "offset:15"),
            ("offset:0", "offset:4"),
            ("data", "dota"),
            ("4080", "99999999999"),
            ("4080", "x"),
        ] {
            assert_eq!(PageLayout::parse(&HEADER_PAGE.replace(from, to)), None, "{from} -> {to}");
        }
    }
}

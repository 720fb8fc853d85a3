//! The pages of all CPUs as one text, in the order of time: what tracefs prints as `trace`.
//!
//! Decides which CPU's event comes next. Memory is one page for each CPU and a block of text. A recording
//! that goes on is read in passes: a pass prints what happened until it began, as other CPUs may still write
//! events that are older than the newest one.

use super::line_printer::LinePrinter;
use super::page::{LostBefore, PageEvent, PageLayout, RingPage};
use super::text_block::TextBlock;
use quietcore_core::{CpuId, Nanos};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::{self, Read};

/// Where the pages of CPUs come from.
pub(crate) trait RingPages {
    /// Reads the next page of the CPU with this index into `page`, whose bytes it replaces. False when there
    /// is none now.
    fn read_page(&mut self, index: usize, page: &mut Vec<u8>) -> io::Result<bool>;

    /// The moment until which all events of all CPUs can be read from now on; `None` when no page is added to
    /// those that there are.
    fn complete_until(&mut self) -> Option<Nanos>;
}

/// The text of a recording that is read from pages. It ends when there are no pages now.
#[derive(Debug)]
pub(crate) struct RingText<P> {
    pages: P,
    layout: PageLayout,
    printer: LinePrinter,
    cpus: Vec<RingCpu>,
    /// The moments of the CPUs' next events, with their indices.
    coming: BinaryHeap<Reverse<(u64, usize)>>,
    /// The pass prints what happened until then.
    pass: Option<u64>,
    text: TextBlock,
}

/// A CPU of a recording.
#[derive(Debug)]
struct RingCpu {
    cpu: CpuId,
    page: RingPage,
    coming: Option<PageEvent>,
    /// Lost before that event.
    lost: Option<LostBefore>,
}

impl<P: RingPages> RingText<P> {
    /// The text of `cpus`, whose pages `pages` reads by their indices.
    pub(crate) fn new(
        pages: P,
        layout: PageLayout,
        printer: LinePrinter,
        cpus: impl IntoIterator<Item = CpuId>,
    ) -> Self {
        let cpus =
            cpus.into_iter().map(|cpu| RingCpu { cpu, page: RingPage::default(), coming: None, lost: None });
        Self {
            pages,
            layout,
            printer,
            cpus: cpus.collect(),
            coming: BinaryHeap::new(),
            pass: None,
            text: TextBlock::default(),
        }
    }

    /// Where its pages come from.
    #[cfg(target_os = "linux")]
    pub(crate) fn pages_mut(&mut self) -> &mut P {
        &mut self.pages
    }

    /// Makes the next piece of text, if there is any.
    fn fill(&mut self) -> io::Result<()> {
        self.text.begin();
        let until = match self.pass {
            Some(until) => until,
            None => self.begin_sweep()?,
        };
        while !self.text.is_full() {
            match self.coming.peek() {
                Some(&Reverse((at, index))) if at <= until => {
                    self.coming.pop();
                    self.print(index);
                    self.advance(index)?;
                }
                _ => {
                    self.pass = None;
                    break;
                }
            }
        }
        Ok(())
    }

    fn begin_sweep(&mut self) -> io::Result<u64> {
        let until = self.pages.complete_until().map_or(u64::MAX, Nanos::as_u64);
        for index in 0..self.cpus.len() {
            if self.cpus[index].coming.is_none() {
                self.advance(index)?;
            }
        }
        self.pass = Some(until);
        Ok(until)
    }

    /// Goes to the next event of a CPU.
    fn advance(&mut self, index: usize) -> io::Result<()> {
        let Self { pages, layout, cpus, coming, .. } = self;
        let cpu = &mut cpus[index];
        let broken = |cpu: CpuId, what: &dyn std::fmt::Display| {
            io::Error::new(io::ErrorKind::InvalidData, format!("CPU {cpu} has {what}"))
        };
        cpu.coming = None;
        loop {
            if let Some(event) = cpu.page.next().map_err(|what| broken(cpu.cpu, &what))? {
                coming.push(Reverse((event.at, index)));
                cpu.coming = Some(event);
                return Ok(());
            }
            if !pages.read_page(index, cpu.page.memory())? {
                return Ok(());
            }
            let lost = cpu.page.begin(layout).map_err(|what| broken(cpu.cpu, &what))?;
            cpu.lost = cpu.lost.or(lost);
        }
    }

    /// Prints the next event of a CPU, and before it what was lost.
    fn print(&mut self, index: usize) {
        let Self { printer, cpus, text, .. } = self;
        let cpu = &mut cpus[index];
        let Some(coming) = &cpu.coming else { return };
        if let Some(lost) = cpu.lost.take() {
            printer.print_lost(cpu.cpu, lost.count, text.text_mut());
        }
        printer.print(cpu.cpu, coming.at, cpu.page.event(coming), text.text_mut());
    }
}

impl<P: RingPages> Read for RingText<P> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.text.is_empty() {
            self.fill()?;
        }
        Ok(self.text.hand_out(buffer))
    }
}

#[cfg(test)]
mod tests {
    use super::{LinePrinter, RingPages, RingText};
    use crate::binary::format::made::format;
    use crate::binary::page::made::{entry, layout, page};
    use crate::binary::{EventFormats, KernelNames};
    use quietcore_core::{CpuId, Nanos};
    use std::collections::VecDeque;
    use std::io::{self, Read};

    /// Pages that are there from the start, and when others may come.
    #[derive(Default)]
    struct Given {
        pages: Vec<VecDeque<Vec<u8>>>,
        until: Option<Nanos>,
    }

    impl RingPages for Given {
        fn read_page(&mut self, index: usize, page: &mut Vec<u8>) -> io::Result<bool> {
            let next = self.pages[index].pop_front();
            *page = next.clone().unwrap_or_default();
            Ok(next.is_some())
        }

        fn complete_until(&mut self) -> Option<Nanos> {
            self.until
        }
    }

    const NUMBER: &str = "\tfield:int n;\toffset:8;\tsize:4;\tsigned:1;\n";

    /// An event that holds `n`, so many ns after the one before it.
    fn event(delta: u32, n: u8) -> Vec<u8> {
        entry(3, delta, &[7, 0, 0x01, 0x02, 42, 0, 0, 0, n, 0, 0, 0])
    }

    fn text(given: Given) -> RingText<Given> {
        let (mut formats, mut names) = (EventFormats::default(), KernelNames::default());
        assert!(formats.add(&format("count", 7, NUMBER, r#""n=%d", REC->n"#)));
        names.learn_task(42, b"a\nb");
        let printer = LinePrinter::new(formats, names);
        let cpus = (0..given.pages.len()).map(|cpu| CpuId::new(10 * cpu as u64).expect("few"));
        RingText::new(given, layout(), printer, cpus)
    }

    fn read(text: &mut RingText<Given>) -> String {
        let mut read = String::new();
        text.read_to_string(&mut read).expect("good pages");
        read
    }

    /// What each line says behind its CPU and before its event.
    fn summary(text: &str) -> Vec<String> {
        text.lines().map(|line| line.rsplit(' ').next().expect("a word").to_owned()).collect()
    }

    /// Goal: a line has the kernel's columns. Method: one event, whose task has a name of two lines.
    #[test]
    fn a_line_has_the_kernels_columns() {
        let pages = vec![VecDeque::from([page(12_000_000_034, 0, &event(5, 9))]), VecDeque::new()];
        let line = "             a b-42      [000] d..2.    12.000000039: count: n=9\n";
        assert_eq!(read(&mut text(Given { pages, until: None })), line);
    }

    /// Goal: events come in the order of their times, over pages and CPUs; equal ones by CPU. Method: two
    /// CPUs with two pages each that interleave.
    #[test]
    fn events_come_in_order() {
        let pages = vec![
            VecDeque::from([
                page(100, 0, &[event(0, 1), event(20, 3)].concat()),
                page(130, 0, &event(10, 6)),
            ]),
            VecDeque::from([page(110, 0, &event(0, 2)), page(120, 0, &[event(0, 4), event(5, 5)].concat())]),
        ];
        let read = read(&mut text(Given { pages, until: None }));
        assert_eq!(summary(&read), ["n=1", "n=2", "n=3", "n=4", "n=5", "n=6"]);
        assert!(read.contains("[010]"), "{read}");
    }

    /// Goal: while a recording goes on, what happened after a pass began waits: another CPU may still write
    /// what is older. Method: one CPU has an event at 200, the other's at 150 comes after it was seen.
    #[test]
    fn what_may_not_be_the_next_waits() {
        let pages = vec![VecDeque::from([page(200, 0, &event(0, 2))]), VecDeque::new()];
        let mut text = text(Given { pages, until: Some(Nanos(199)) });
        assert_eq!(read(&mut text), "");
        text.pages_mut().pages[1].push_back(page(150, 0, &event(0, 1)));
        text.pages_mut().until = Some(Nanos(200));
        assert_eq!(summary(&read(&mut text)), ["n=1", "n=2"]);
        text.pages_mut().pages[0].push_back(page(900, 0, &event(0, 3)));
        assert_eq!(read(&mut text), "");
        text.pages_mut().until = None;
        assert_eq!(summary(&read(&mut text)), ["n=3"]);
    }

    /// Goal: what was lost is told before the event that follows it, also over a page without one.
    #[test]
    fn losses_stand_where_they_happened() {
        let counted = [page(120, 3 << 30, &event(0, 2)), 5u64.to_le_bytes().to_vec()].concat();
        let pages = vec![
            VecDeque::from([
                page(100, 0, &event(0, 1)),
                counted,
                page(130, 1 << 31, b""),
                page(140, 0, &event(0, 4)),
            ]),
            VecDeque::from([page(125, 0, &event(0, 3))]),
        ];
        let read = read(&mut text(Given { pages, until: None }));
        let expected = ["n=1", "EVENTS]", "n=2", "n=3", "EVENTS]", "n=4"];
        assert_eq!(summary(&read), expected);
        assert!(
            read.contains("\nCPU:0 [LOST 5 EVENTS]\n") && read.contains("\nCPU:0 [LOST EVENTS]\n"),
            "{read}"
        );
    }

    /// Goal: a damaged page is told with its CPU, after what was good.
    #[test]
    fn a_damaged_page_is_told_with_its_cpu() {
        let pages = vec![VecDeque::new(), VecDeque::from([page(1, 0, &[event(0, 1), vec![1, 0]].concat())])];
        let error =
            text(Given { pages, until: None }).read_to_string(&mut String::new()).expect_err("two bytes");
        assert_eq!(error.to_string(), "CPU 10 has an event of less than four bytes");
    }

    /// Goal: an event whose number has no format is still a line.
    #[test]
    fn an_event_without_a_format_is_a_line() {
        let unknown = entry(3, 0, &[8, 0, 0, 0, 42, 0, 0, 0, 0, 0, 0, 0]);
        let pages = vec![VecDeque::from([page(1, 0, &unknown)])];
        let read = read(&mut text(Given { pages, until: None }));
        assert!(read.ends_with(" 0.000000001: unknown_event:\n"), "{read}");
    }

    /// Goal: more text than is made at once comes whole.
    #[test]
    fn a_long_text_comes_whole() {
        let data: Vec<u8> = (0..200).flat_map(|n| event(1, n)).collect();
        let pages = vec![(0..20).map(|number| page(1000 * number, 0, &data)).collect()];
        let read = read(&mut text(Given { pages, until: None }));
        assert_eq!(read.lines().count(), 4000);
        assert!(read.len() > 200_000, "more than two blocks");
    }
}

//! Writes small traces: lines as the kernel writes them, with places from the wheel's own arithmetic.

use quietcore_trace::TraceReader;
use quietcore_verify::{Verification, Verify};
use quietcore_wheel::{Precision, Shape, Tick};

/// A jiffy of the first seconds after boot at HZ=250, on an edge of the first levels.
pub(crate) const JIFFIES: u64 = (1 << 32) - 74_752;

/// An event that says nothing of timers.
pub(crate) const TICK_STOP: &str = "tick_stop: success=1 dependency=NONE";

#[derive(Clone, Copy, Debug)]
pub(crate) struct Start {
    pub(crate) timer: u64,
    pub(crate) expires: u64,
    pub(crate) jiffies: u64,
    /// What the base's clock was: decides the place.
    pub(crate) clock: u64,
    /// The CPU whose base it is, and that starts it.
    pub(crate) cpu: u16,
    pub(crate) flags: &'static str,
}

/// A start on CPU 0, into its global base, placed as if the clock was jiffies.
pub(crate) fn start(timer: u64, expires: u64, jiffies: u64) -> Start {
    Start { timer, expires, jiffies, clock: jiffies, cpu: 0, flags: "" }
}

impl Start {
    pub(crate) fn at_clock(self, clock: u64) -> Self {
        Self { clock, ..self }
    }

    /// The bucket, and when it is due.
    pub(crate) fn place(&self) -> (u16, u64) {
        let place = Shape::<9, 64>::place(Tick(self.clock), Tick(self.expires), Precision::Coarse);
        (place.bucket, place.expiry.0)
    }

    fn text(&self) -> String {
        let Self { timer, expires, jiffies, cpu, flags, .. } = *self;
        let (bucket, expiry) = self.place();
        let timeout = expires.wrapping_sub(jiffies).cast_signed();
        format!(
            "timer_start: timer={timer:016x} function=f expires={expires} [timeout={timeout}] \
             bucket_expiry={expiry} cpu={cpu} idx={bucket} flags={flags}"
        )
    }
}

/// xorshift64*: the same changes on every machine.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % limit
    }
}

/// A trace that grows line by line, a microsecond each.
#[derive(Clone, Debug)]
pub(crate) struct Trace {
    pub(crate) text: String,
    micros: u64,
}

impl Trace {
    /// A recording of 6.12 that begins at boot, in which each of the three events was seen already, so that
    /// nothing is left open. They are of CPU 0's local base; the tests use the global one. CPU 1 is up.
    pub(crate) fn new() -> Self {
        let header = "# trace: x\n# kernel: Linux 6.12.1, x86-64, HZ=250\n";
        let mut trace = Self { text: header.to_owned(), micros: 1_000_000 };
        trace.start(Start { flags: "P", ..start(0x99, JIFFIES - 2, JIFFIES - 2) });
        trace.expire(0x99, JIFFIES - 1, JIFFIES - 1);
        trace.line(0, "d..1.", TICK_STOP).line(1, "d..1.", TICK_STOP);
        trace
    }

    /// The next line comes 10 ms later.
    pub(crate) fn wait(&mut self) -> &mut Self {
        self.micros += 10_000;
        self
    }

    /// The number of the line that is written next.
    pub(crate) fn next_line(&self) -> u64 {
        self.text.lines().count() as u64 + 1
    }

    pub(crate) fn line(&mut self, cpu: u16, flags: &str, event: &str) -> &mut Self {
        self.micros += 1;
        self.line_at_same_time(cpu, flags, event)
    }

    /// A line with the time stamp of the one before.
    pub(crate) fn line_at_same_time(&mut self, cpu: u16, flags: &str, event: &str) -> &mut Self {
        let (seconds, micros) = (self.micros / 1_000_000, self.micros % 1_000_000);
        let line = format!("{:>16}-7       [{cpu:03}] {flags} {seconds:>5}.{micros:06}: {event}\n", "task");
        self.text.push_str(&line);
        self
    }

    pub(crate) fn start(&mut self, start: Start) -> &mut Self {
        self.line(start.cpu, "d..1.", &start.text())
    }

    pub(crate) fn start_at_same_time(&mut self, start: Start) -> &mut Self {
        self.line_at_same_time(start.cpu, "d..1.", &start.text())
    }

    pub(crate) fn cancel(&mut self, timer: u64) -> &mut Self {
        self.line(0, "d..1.", &format!("timer_cancel: timer={timer:016x}"))
    }

    /// An expiry on CPU 0, with the `timer_cancel` before it.
    pub(crate) fn expire(&mut self, timer: u64, now: u64, baseclk: u64) -> &mut Self {
        self.line(0, "d.s2.", &format!("timer_cancel: timer={timer:016x}"));
        self.expire_entry(timer, now, baseclk)
    }

    pub(crate) fn expire_entry(&mut self, timer: u64, now: u64, baseclk: u64) -> &mut Self {
        let event = format!("timer_expire_entry: timer={timer:016x} function=f now={now} baseclk={baseclk}");
        self.line(0, "..s1.", &event)
    }

    pub(crate) fn verify(&self) -> Verification {
        verify(&self.text)
    }
}

/// Verifies `text`, and that what holds for every input holds.
pub(crate) fn verify(text: &str) -> Verification {
    let mut reader = TraceReader::new(text.as_bytes());
    reader.read_header().expect("readable");
    let mut verify = Verify::new(reader.header());
    verify.read(&mut reader, u64::MAX).expect("readable");
    let verification = verify.finish(&reader);
    check_identities(&verification);
    verification
}

/// The sums that hold whatever the input.
pub(crate) fn check_identities(verification: &Verification) {
    let Verification { timer_starts, explained, exact, classes, mismatches, expiries, .. } = verification;
    assert_eq!(*explained, exact + classes.total(), "{verification:?}");
    assert_eq!(*timer_starts, explained + mismatches, "{verification:?}");
    let parts = expiries.exact + expiries.classes.start_unseen + expiries.mismatches;
    assert_eq!(expiries.total, parts, "{verification:?}");
    let tmigr = &verification.tmigr;
    assert_eq!(tmigr.events, tmigr.exact + tmigr.order_open + tmigr.unexplained, "{tmigr:?}");
    assert_eq!(tmigr.first_unexplained.is_none(), tmigr.unexplained + tmigr.tree_mismatches == 0);
    assert_eq!(verification.ok, verification.mismatches_of_all_kinds() == 0);
    assert_eq!(verification.ok, verification.first_mismatch.is_none());
    assert_eq!(verification.first_mismatch, verification.mismatch_list.first().cloned());
    assert!(verification.mismatch_list.is_sorted_by_key(|mismatch| mismatch.line));
    assert!(verification.mismatch_list.len() <= 20);
}

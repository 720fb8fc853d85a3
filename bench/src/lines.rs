//! Input made to be hard to read: other identities, names, CPUs on every line, or no lines at all.
//!
//! Decided here: what each kind looks like. The same kind is always the same bytes, so a failure
//! can be repeated. Deliberately absent: compression, which is `zstd`'s.

use crate::binary::{Contents, write_perf_data, write_trace_dat};
use crate::perfetto::write_perfetto;
use clap::ValueEnum;
use fastrand::Rng;
use std::io::{self, Write};

/// What to write.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum Kind {
    /// Random bytes
    Random,
    /// Lines of random printable characters, 1 to 200 of them
    GarbageLines,
    /// timer_start and timer_expire_entry, a new pointer on every pair
    Pointers,
    /// timer_start and timer_expire_entry on an isolated CPU, a new function name on every pair
    Functions,
    /// hrtimer_start and hrtimer_expire_entry of hrtimer_wakeup, a new task name on every pair
    Tasks,
    /// timer_start and timer_expire_entry from and on all CPUs of 0..8192 in turn
    Cpus,
    /// irq_handler_entry and irq_handler_exit on 64 CPUs in turn, a new interrupt on every pair
    Interrupts,
    /// An event without a type of its own, a new name on every line
    Unknown,
    /// Zero bytes
    Zeros,
    /// One valid line, over and over
    SameLine,
    /// One line of x without a line break
    OneLine,
    /// A line of 60 KiB of `-1(`, over and over: the front of a task column that never ends
    Dashes,
    /// An ipi_send_cpumask with a CPU list of 60 KiB, and one valid line, over and over
    LongLists,
    /// CPUs that become available and unavailable in turn, with a long list of isolated ones
    Changes,
    /// Pointers, functions, tasks, interrupts and unknown events in turn: all tables at once
    Mixed,
    /// The bundled recording g612-c16-iso, its header once
    Trace,
    /// A trace.dat of two CPUs, its pages over and over
    TraceDat,
    /// The front of one, and random pages
    TraceDatRandom,
    /// A perf.data, its samples over and over in one round
    PerfData,
    /// The front of one, and random records
    PerfDataRandom,
    /// A trace of Perfetto: softirqs and wake-ups on four CPUs in turn
    Perfetto,
    /// The first packet of one, and packets of random bytes
    PerfettoRandom,
}

/// Writes `kind` until at least `size` bytes are written (exactly `size` for kinds without lines).
///
/// # Errors
/// What `out` says.
pub fn write(kind: Kind, size: u64, out: &mut dyn Write) -> io::Result<()> {
    match kind {
        Kind::Random => write_blocks(size, out, Rng::fill),
        Kind::GarbageLines => write_blocks(size, out, |random, block| {
            random.fill(block);
            make_lines(block);
        }),
        Kind::Zeros => write_blocks(size, out, |_, _| {}),
        Kind::OneLine => write_blocks(size, out, |_, block| block.fill(b'x')),
        Kind::Trace => {
            let recording = crate::recording::Recording::bundled("g612-c16-iso")?;
            crate::recording::repeat(&[recording], size, out).map(|_| ())
        }
        Kind::TraceDat => write_trace_dat(Contents::Repeated, size, out),
        Kind::TraceDatRandom => write_trace_dat(Contents::Random, size, out),
        Kind::PerfData => write_perf_data(Contents::Repeated, size, out),
        Kind::PerfDataRandom => write_perf_data(Contents::Random, size, out),
        Kind::Perfetto => write_perfetto(Contents::Repeated, size, out),
        Kind::PerfettoRandom => write_perfetto(Contents::Random, size, out),
        _ => write_lines(kind, size, out),
    }
}

const BLOCK_BYTES: usize = 1 << 16;

fn write_blocks(size: u64, out: &mut dyn Write, mut fill: impl FnMut(&mut Rng, &mut [u8])) -> io::Result<()> {
    let (mut block, mut random, mut left) = (vec![0; BLOCK_BYTES], Rng::with_seed(1), size);
    while left > 0 {
        fill(&mut random, &mut block);
        let count = left.min(BLOCK_BYTES as u64);
        out.write_all(&block[..count as usize])?;
        left -= count;
    }
    Ok(())
}

/// Printable characters, with line breaks at most 200 bytes apart.
fn make_lines(block: &mut [u8]) {
    let mut left = 1;
    for byte in block {
        left -= 1;
        (*byte, left) = if left == 0 { (b'\n', 1 + *byte % 200 + 1) } else { (b' ' + *byte % 95, left) };
    }
}

fn write_lines(kind: Kind, size: u64, out: &mut dyn Write) -> io::Result<()> {
    let mut text = Vec::with_capacity(2 * BLOCK_BYTES);
    header(kind, &mut text);
    let long = match kind {
        Kind::Dashes => "-1(".repeat(20_000),
        Kind::LongLists => "0-8191,".repeat(8_600),
        _ => String::new(),
    };
    let (mut written, mut number) = (0, 0);
    while written < size {
        while text.len() < BLOCK_BYTES {
            line(kind, number, &long, &mut text)?;
            number += 1;
        }
        out.write_all(&text)?;
        written += text.len() as u64;
        text.clear();
    }
    Ok(())
}

fn header(kind: Kind, text: &mut Vec<u8>) {
    let isolated = match kind {
        Kind::Cpus => "1-8191".to_owned(),
        Kind::Changes => (0..4096).map(|cpu| (2 * cpu + 1).to_string()).collect::<Vec<_>>().join(","),
        _ => "1-7,9-15".to_owned(),
    };
    text.extend_from_slice(format!("# trace: hostile\n# isolated: {isolated}; nohz_full: -\n").as_bytes());
}

/// One line, or the two that belong together.
fn line(kind: Kind, number: u64, long: &str, text: &mut Vec<u8>) -> io::Result<()> {
    // Near the kernel's pace: one event in 4 µs.
    let (seconds, micros) = (number / 250_000, number % 250_000 * 4);
    match kind {
        Kind::Mixed => {
            let kinds = [Kind::Pointers, Kind::Functions, Kind::Tasks, Kind::Interrupts, Kind::Unknown];
            line(kinds[number as usize % kinds.len()], number, long, text)
        }
        Kind::Pointers | Kind::Functions | Kind::Cpus => {
            let pointer =
                if matches!(kind, Kind::Pointers) { number.wrapping_mul(0x9e37_79b9_7f4a_7c15) } else { 1 };
            let function = if matches!(kind, Kind::Functions) { number } else { 0 };
            let (from, to) = if matches!(kind, Kind::Cpus) {
                (number % 8192, number * 7 % 8192)
            } else {
                (0, 1 + number % 7)
            };
            writeln!(
                text,
                "          <idle>-0       [{from:03}] d..2. {seconds:5}.{micros:06}: timer_start: \
                 timer={pointer:016x} function=f{function} expires=4294892546 [timeout=250] \
                 bucket_expiry=4294892552 cpu={from} idx=65 flags=I"
            )?;
            writeln!(
                text,
                "          <idle>-0       [{to:03}] ..s1. {seconds:5}.{micros:06}: timer_expire_entry: \
                 timer={pointer:016x} function=f{function} now=4294892552 baseclk=4294892552"
            )
        }
        Kind::Tasks => {
            let task = format!("t{}", number % 1_000_000_000);
            let pid = number % 4_194_304;
            writeln!(
                text,
                "{task:>16}-{pid:<7} [000] d..2. {seconds:5}.{micros:06}: hrtimer_start: \
                 hrtimer={number:016x} function=hrtimer_wakeup expires=1 softexpires=1 mode=REL"
            )?;
            writeln!(
                text,
                "          <idle>-0       [001] d.h1. {seconds:5}.{micros:06}: hrtimer_expire_entry: \
                 hrtimer={number:016x} function=hrtimer_wakeup now=1"
            )
        }
        Kind::Interrupts => interrupt(number, text),
        Kind::Unknown => {
            writeln!(
                text,
                "          <idle>-0       [000] d..2. {seconds:5}.{micros:06}: event_{number}: x=1"
            )
        }
        Kind::SameLine => {
            writeln!(
                text,
                "          <idle>-0       [001] d.s2.     0.008000: timer_cancel: timer=00000000cefecd69"
            )
        }
        Kind::Dashes => writeln!(text, "{long}"),
        Kind::LongLists => {
            writeln!(
                text,
                "          <idle>-0       [000] d..2. {seconds:5}.{micros:06}: ipi_send_cpumask: cpumask={long}0"
            )?;
            line(Kind::SameLine, number, long, text) // a reader that refuses such a mask still has events
        }
        _ => changes(number, text),
    }
}

/// Two contradictions a second, alternating, so that no two belong together.
fn changes(number: u64, text: &mut Vec<u8>) -> io::Result<()> {
    let (cpu, word) = if number.is_multiple_of(2) { (1, "available") } else { (2, "unavailable") };
    writeln!(
        text,
        "          <idle>-0       [000] d..2. {number:5}.000000: tmigr_cpu_{word}: cpu={cpu} \
         parent=00000000b4f1bbc6 wakeup=9223372036854775807"
    )
}

/// An interrupt of a device, by the number of its pair of lines.
fn interrupt(number: u64, text: &mut Vec<u8>) -> io::Result<()> {
    let (seconds, micros) = (number / 250_000, number % 250_000 * 4);
    // Each takes another span, so that a histogram of them is as long as it can be.
    let (cpu, later) = (number % 64, seconds + 1 + number * number % 1_000_000);
    writeln!(
        text,
        "          <idle>-0       [{cpu:03}] d.h1. {seconds:5}.{micros:06}: irq_handler_entry: irq={number} \
         name=device{number}"
    )?;
    writeln!(
        text,
        "          <idle>-0       [{cpu:03}] d.h1. {later:5}.{micros:06}: irq_handler_exit: irq={number} \
         ret=handled"
    )
}

#[cfg(test)]
mod tests {
    use super::{Kind, write};
    use clap::ValueEnum;
    use quietcore_trace::{LINE_BYTES_MAX, TraceReader};
    use std::fs;

    /// Goal: kinds that claim to be valid are. Method: read each from a file.
    #[test]
    fn valid_kinds_are_valid() {
        for &kind in Kind::value_variants() {
            let garbage = matches!(
                kind,
                Kind::Random | Kind::GarbageLines | Kind::Zeros | Kind::OneLine | Kind::Dashes
            );
            // Binary files are not read line by line: the first bad page or record ends them.
            let damaged = matches!(kind, Kind::TraceDatRandom | Kind::PerfDataRandom | Kind::PerfettoRandom);
            let (mut text, size) = (Vec::new(), 130_000);
            write(kind, size, &mut text).expect("a Vec takes all");
            assert!(text.len() as u64 >= size, "{kind:?}");
            let path = std::env::temp_dir().join(format!("quietcore-bench-{}", std::process::id()));
            fs::write(&path, &text).expect("the folder for temporary files can be written");
            let opened = quietcore_trace::open(&path).expect("the front of each kind is read");
            fs::remove_file(&path).expect("it is there");
            let mut reader = TraceReader::new(opened);
            let end = reader.read(u64::MAX, &mut |_| {});
            assert_eq!(end.is_err(), garbage || damaged, "{kind:?}: {end:?}");
            let refused = garbage || matches!(kind, Kind::LongLists);
            assert_eq!(reader.tally().malformed > 0, refused, "{kind:?}: {:?}", reader.tally());
            if matches!(kind, Kind::Dashes | Kind::LongLists) {
                let longest = text.split(|&byte| byte == b'\n').map(<[u8]>::len).max();
                assert!(longest < Some(LINE_BYTES_MAX), "{kind:?}: {longest:?} bytes are not read at all");
            }
        }
    }
}

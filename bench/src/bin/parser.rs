//! `parser`: how fast a trace is read and explained, beside `grep -c` on the same file.
//!
//! One file is written below the temporary directory and removed at the end. Every round measures
//! every way of reading once, beginning with another one each time, so that a slow moment of the
//! machine falls on all of them. Shown are median, fastest and slowest of the rounds; nothing is
//! pinned, no frequency is fixed, and the file is in the page cache (a first round is not counted).

use clap::Parser;
use quietcore_bench::MIB;
use quietcore_bench::machine::Machine;
use quietcore_bench::recording::{Recording, repeat};
use quietcore_bench::statistics::Summary;
use quietcore_explain::{Explain, ExplainOptions};
use quietcore_trace::TraceReader;
use serde::Serialize;
use std::fs::File;
use std::hint::black_box;
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

/// Measures reading and explaining a trace beside `grep -c timer_start` on the same file.
#[derive(Debug, Parser)]
#[command(after_help = "MB is 10^6 bytes. Run it with --release on a machine that is otherwise idle.")]
struct Args {
    /// Size of the trace, in MiB
    #[arg(long, value_name = "MIB", default_value_t = 256)]
    size: u64,
    /// How often everything is measured
    #[arg(long, value_name = "COUNT", default_value_t = 9, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Bundled recordings whose events are repeated in turn
    #[arg(long, value_name = "NAME", value_delimiter = ',', default_value = "g612-c16-iso,h618-c2-detail")]
    recordings: Vec<String>,
    /// Measure only these ways
    #[arg(long, value_name = "WAY", value_delimiter = ',')]
    only: Vec<Way>,
    /// Print JSON instead of text
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
enum Way {
    /// TraceReader::read with a visitor that does nothing
    Read,
    /// TraceReader and Explain
    Explain,
    /// TraceReader with one decoder, and a visitor that does nothing
    ReadAhead,
    /// TraceReader with one decoder, and Explain
    ExplainAhead,
    /// `LC_ALL=C grep -c timer_start FILE`, the process included
    Grep,
    /// Reading and counting line breaks: the floor
    Newlines,
}

const WAYS: [Way; 6] = [Way::Read, Way::Explain, Way::ReadAhead, Way::ExplainAhead, Way::Grep, Way::Newlines];

impl Way {
    fn label(self) -> &'static str {
        match self {
            Self::Read => "TraceReader, empty visitor",
            Self::Explain => "TraceReader and Explain",
            Self::ReadAhead => "TraceReader on two threads",
            Self::ExplainAhead => "both, on two threads",
            Self::Grep => "grep -c timer_start",
            Self::Newlines => "count line breaks",
        }
    }

    /// Reads the whole file this way; the result is something that depends on all of it.
    fn run(self, path: &Path) -> io::Result<u64> {
        match self {
            Self::Read => read(path, 0),
            Self::ReadAhead => read(path, 1),
            Self::Explain => explain(path, 0),
            Self::ExplainAhead => explain(path, 1),
            Self::Grep => grep(path),
            Self::Newlines => newlines(path),
        }
    }
}

fn read(path: &Path, decoders: usize) -> io::Result<u64> {
    let mut reader = TraceReader::new(File::open(path)?).with_decoders(decoders);
    reader.read(u64::MAX, &mut |record| _ = black_box(record)).map_err(io::Error::other)?;
    Ok(reader.tally().events)
}

fn explain(path: &Path, decoders: usize) -> io::Result<u64> {
    let mut reader = TraceReader::new(File::open(path)?).with_decoders(decoders);
    reader.read_header().map_err(io::Error::other)?;
    let isolated = reader.header().isolated.clone().unwrap_or_default();
    let mut explain = Explain::new(ExplainOptions { isolated, ..ExplainOptions::default() });
    reader.read(u64::MAX, &mut |record| explain.take(record)).map_err(io::Error::other)?;
    Ok(explain.finish(reader.tally()).events)
}

fn grep(path: &Path) -> io::Result<u64> {
    let mut command = Command::new("grep");
    command.args(["-c", "timer_start"]).arg(path).env("LC_ALL", "C");
    let output = command.stderr(Stdio::inherit()).output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    text.trim().parse().map_err(|_| io::Error::other(format!("grep answered {text:?}")))
}

fn newlines(path: &Path) -> io::Result<u64> {
    let (mut file, mut buffer, mut count) = (File::open(path)?, vec![0; 256 * 1024], 0);
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(count),
            filled => count += memchr::memchr_iter(b'\n', &buffer[..filled]).count() as u64,
        }
    }
}

/// Seconds that one way took, and what follows from them.
#[derive(Debug, Serialize)]
struct Figures {
    way: Way,
    seconds_median: f64,
    seconds_min: f64,
    seconds_max: f64,
    mb_per_s_median: f64,
    mb_per_s_min: f64,
    mb_per_s_max: f64,
    lines_per_s_median: f64,
    /// Throughput as a multiple of grep's: the median over rounds of the ratio within one round.
    ratio_to_grep: Option<f64>,
}

#[derive(Debug, Serialize)]
struct Outcome {
    #[serde(flatten)]
    machine: Machine,
    recordings: Vec<String>,
    bytes: u64,
    lines: u64,
    events: u64,
    rounds: u32,
    figures: Vec<Figures>,
}

/// A file that is removed when this goes out of scope.
#[derive(Debug)]
struct TemporaryFile(PathBuf);

impl Drop for TemporaryFile {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_file(&self.0) {
            eprintln!("parser: {} could not be removed: {error}", self.0.display());
        }
    }
}

fn main() -> ExitCode {
    let args = Args::parse();
    let shown = measure(&args).and_then(|outcome| show(&outcome, args.json));
    match shown {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("parser: {error}");
            ExitCode::from(2)
        }
    }
}

fn measure(args: &Args) -> io::Result<Outcome> {
    let path = std::env::temp_dir().join(format!("quietcore-bench-{}.txt", std::process::id()));
    let recordings: Vec<_> =
        args.recordings.iter().map(|name| Recording::bundled(name)).collect::<Result<_, _>>()?;
    let mut out = BufWriter::new(File::create(&path)?);
    let file = TemporaryFile(path);
    let bytes = repeat(&recordings, args.size * MIB, &mut out)?;
    out.into_inner().map_err(|error| error.into_error())?.sync_all()?;

    let ways: Vec<Way> =
        WAYS.into_iter().filter(|way| args.only.is_empty() || args.only.contains(way)).collect();
    let (lines, events) = (newlines(&file.0)?, Way::Read.run(&file.0)?);
    let mut seconds = vec![Vec::new(); ways.len()];
    for round in 0..=args.rounds as usize {
        for step in 0..ways.len() {
            let at = (round + step) % ways.len();
            let start = Instant::now();
            black_box(ways[at].run(&file.0)?);
            if round > 0 {
                seconds[at].push(start.elapsed().as_secs_f64());
            }
        }
    }
    let grep = ways.iter().position(|&way| way == Way::Grep).map(|at| seconds[at].clone());
    let rate = |way, spans: &Vec<f64>| {
        figures(way, spans, grep.as_deref(), TraceSize { bytes: bytes as f64, lines: lines as f64 })
    };
    let figures = ways.iter().zip(&seconds).map(|(&way, spans)| rate(way, spans));
    Ok(Outcome {
        machine: Machine::here(),
        recordings: args.recordings.clone(),
        bytes,
        lines,
        events,
        rounds: args.rounds,
        figures: figures.collect(),
    })
}

/// What is read.
struct TraceSize {
    bytes: f64,
    lines: f64,
}

fn figures(way: Way, spans: &[f64], grep: Option<&[f64]>, size: TraceSize) -> Figures {
    let TraceSize { bytes, lines } = size;
    // Seconds the other way round: a ratio of throughputs.
    let ratio = grep.and_then(|grep| Summary::of_ratios(grep, spans));
    let Summary { median, min, max } = Summary::of(spans).expect("there is at least one round");
    Figures {
        way,
        seconds_median: median,
        seconds_min: min,
        seconds_max: max,
        mb_per_s_median: bytes / median / 1e6,
        mb_per_s_min: bytes / max / 1e6,
        mb_per_s_max: bytes / min / 1e6,
        lines_per_s_median: lines / median,
        ratio_to_grep: ratio.map(|ratio| ratio.median),
    }
}

fn show(outcome: &Outcome, json: bool) -> io::Result<()> {
    let mut out = io::stdout().lock();
    if json {
        serde_json::to_writer_pretty(&mut out, outcome)?;
        return writeln!(out);
    }
    let machine = &outcome.machine;
    let commit = machine.commit.as_deref().unwrap_or("unknown");
    writeln!(out, "machine   {}, {} cores, Linux {}", machine.cpu, machine.cores, machine.kernel)?;
    writeln!(out, "commit    {commit}; {}", machine.rustc)?;
    let (lines, events) = (outcome.lines, outcome.events);
    writeln!(
        out,
        "file      {} bytes, {lines} lines, {events} events: {}",
        outcome.bytes,
        outcome.recordings.join(", ")
    )?;
    writeln!(
        out,
        "rounds    {}, interleaved; nothing pinned; file cached; MB is 10^6 bytes\n",
        outcome.rounds
    )?;
    let titles = ("MB/s median", "(min..max)", "Mlines/s", "x grep -c");
    writeln!(out, "{:28}{:>12}  {:^16}{:>9}{:>11}", "", titles.0, titles.1, titles.2, titles.3)?;
    for figures in &outcome.figures {
        let range = format!("({:.0}..{:.0})", figures.mb_per_s_min, figures.mb_per_s_max);
        let ratio = figures.ratio_to_grep.map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.2}"));
        writeln!(
            out,
            "{:28}{:>12.0}  {:^16}{:>9.2}{:>11}",
            figures.way.label(),
            figures.mb_per_s_median,
            range,
            figures.lines_per_s_median / 1e6,
            ratio
        )?;
    }
    Ok(())
}

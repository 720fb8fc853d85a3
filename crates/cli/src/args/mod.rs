//! What can be typed. One definition per flag; the help is generated from it.

pub(crate) mod expansion;
pub(crate) mod value;

use crate::wall_clock::{TypedMoment, moment};
use clap::{ArgGroup, Args, Parser, Subcommand};
use expansion::ExpansionArgs;
use quietcore_core::{CpuSet, Nanos};
use quietcore_explain::Threshold;
use quietcore_trace::Question;
use quietcore_trace::live::BUFFER_KIB_MAX;
use quietcore_watch::WatchRequest;
use std::path::PathBuf;
use std::time::Duration;
pub(crate) use value::MetricsPlace;
use value::{ColorArg, PolicyArg, cpus, identities, metrics_place, question, short_span, span, trigger};

/// Kernel buffer per CPU of a live recording, unless more is needed.
pub(crate) const DEFAULT_BUFFER_KIB: u32 = 4096;

/// Of which commit, for which machines, and how it was built: what a report of a defect needs.
const VERSION: &str = concat!(
    env!("CARGO_PKG_VERSION"),
    "\ncommit:  ",
    env!("QUIETCORE_COMMIT"),
    "\ntarget:  ",
    env!("QUIETCORE_TARGET"),
    "\nprofile: ",
    env!("QUIETCORE_PROFILE"),
);

const EXIT_CODES: &str = "\
Exit codes: 0 fine; 1 what was checked does not hold (--help of a command says
what that is); 2 an error; 130 interrupted. No command writes a kernel setting:
changes are printed.";

const DOCTOR_EXIT_CODES: &str = "\
Exit codes: 0 fine, or collected; 1 a finding of severity warning or above (with
--exit-zero 0, too); 2 an error; 130 interrupted. No command writes a kernel
setting: changes are printed.";

const KEEP_AWAKE_NOTES: &str = "\
Begin it before the isolated load: a CPU that runs others' timers does so until
it is idle once. One housekeeping CPU in each group of eight that has one is
woken by its own timers in every tick, and so stays in the kernel's hierarchy.

Exit codes: 0 ended by --for or a signal; 2 an error, or it is of no use here.
It writes no kernel setting.";

const WATCH_NOTES: &str = "\
A program in the kernel counts; this command reads its memory, so that no CPU is
woken by it once it has begun. It gives up all rights then. Linux 5.17 or later;
to begin needs root, or CAP_BPF, CAP_PERFMON and CAP_SYSLOG.

Exit codes: 0 ended by --for or a signal; 2 an error.
It writes no kernel setting and leaves nothing behind, however it ends.";

const EXPLAIN_EXIT_CODES: &str = "\
Exit codes: 0 explained, whatever was found; 1 a figure is beyond a limit of
--fail-on; 2 an error; 130 interrupted. No command writes a kernel setting:
changes are printed.";

const RECORD_EXIT_CODES: &str = "\
Exit codes: 0 recorded, or, with --trigger, it did not happen and FILE was not
written; 1 with --trigger: it happened, and FILE has it; 2 an error; 130
interrupted.";

const VERIFY_EXIT_CODES: &str = "\
Exit codes: 0 every line agrees with the wheel; 1 at least one does not (--exit-zero makes it 0); \
2 an error; 130 interrupted.";

const WHATIF_EXIT_CODES: &str = "\
Exit codes: 0 the question was answered; 2 an error.";

const COMPLETIONS_NOTES: &str = "\
Where shells look for it:
  bash   quietcore completions bash > ~/.local/share/bash-completion/completions/quietcore
  fish   quietcore completions fish > ~/.config/fish/completions/quietcore.fish
  zsh    quietcore completions zsh > FOLDER/_quietcore, a folder of $fpath";

/// The page of `quietcore --help`: commands by what a person wants, 80 columns.
const PAGE: &str = "\
{about-with-newline}
{usage-heading} {usage}

Look at this machine:
  (no command)    The check-up: this host, and ten seconds of its kernel
  doctor          Examine this host's configuration, or a copy (no root)
  explain --live  Who disturbs which CPU while it records the kernel (root)
  watch           The same all the time, counted in the kernel: table, metrics
  record          Record the kernel to explain it later or elsewhere (root)

Look at a recording:
  explain         Who disturbed which CPU, and what to change
  diff            Compare two: did a change help?
  verify          Replay its timers in our wheel; name the first difference
  whatif          Replay its timers under another policy: pulls and wake-ups
  export          Write it as Parquet tables, for DuckDB, pandas or Spark
  cat             Print it as text (decompresses; `-` reads standard input)

Act:
  keep-awake      Keep others' timers off isolated CPUs (Linux 6.9 to 6.18)

Try things out:
  sim             Run a scenario on simulated CPUs, and check what it expects
  sweep           Run a scenario over a grid of values and seeds, on all cores
  lab             Measure the timer runtime on this machine, before and after
  calibrate       Measure what things cost on this machine, for the simulator

Packets:
  netem           Delay, lose and queue packets of real programs, in user space
  tc              Say to a running netem what tc would say to the kernel

Set it up:
  man             Write the manual pages of all commands into a folder
  completions     Print what makes bash, zsh or fish complete what is typed

Options:
{options}

`quietcore COMMAND --help` has a command's options.{after-help}";

/// Who disturbed which CPU, armed where, why it ran there, and what to change
#[derive(Debug, Parser)]
#[command(name = "quietcore", version, long_version = VERSION, help_template = PAGE, after_help = EXIT_CODES)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) verb: Option<CliVerb>,
    #[command(flatten)]
    pub(crate) check_up: CheckUpArgs,
    /// Colours: auto (on a terminal, unless NO_COLOR is set), always or never
    #[arg(long, global = true, value_name = "WHEN", value_enum, default_value_t = ColorArg::Auto, hide_possible_values = true)]
    pub(crate) color: ColorArg,
}

#[derive(Debug, Subcommand)]
pub(crate) enum CliVerb {
    /// Explain a trace, or the running kernel: who disturbed which CPU, and what to change
    Explain(ExplainArgs),
    /// Compare two recordings, or two reports: did a change help?
    Diff(DiffArgs),
    /// Record the running kernel, to explain it later or elsewhere (root)
    Record(RecordArgs),
    /// Count in the kernel, all the time, what disturbs isolated CPUs and who started it (root to begin)
    Watch(WatchArgs),
    /// Keep housekeeping CPUs awake, so that isolated CPUs run no timers of others (Linux 6.9 to 6.18)
    KeepAwake(KeepAwakeArgs),
    /// Examine this host's configuration (no root, no tracing), or a copy of another host's
    Doctor(DoctorArgs),
    /// Replay a trace's timers through quietcore's own wheel, and name the first line that differs
    Verify(VerifyArgs),
    /// Replay a trace's timers under another policy: who would pull, who would be woken
    Whatif(WhatIfArgs),
    /// Write a recording as Parquet tables: events, timers, disturbances
    Export(crate::export::ExportArgs),
    /// Run a scenario on simulated CPUs, with a virtual clock, and check what it expects
    Sim(crate::sim::SimArgs),
    /// Run a scenario over a grid of values and seeds, on all cores, into a table
    Sweep(crate::sweep::SweepArgs),
    /// Experiments on the timer runtime, live, with the noise floor of the same run
    Lab(crate::lab::LabArgs),
    /// Measure what things cost on this machine, for the simulator
    Calibrate(crate::calibrate::CalibrateArgs),
    /// Delay, lose and queue packets of real programs, in user space, with tc's disciplines
    Netem(crate::netem::NetemArgs),
    /// Say to a running `quietcore netem` what tc would say to the kernel; the kernel's own is left alone
    Tc(crate::tc::TcArgs),
    /// Print a recording as text (decompresses; `-` reads standard input)
    Cat(CatArgs),
    /// Write the manual pages of all commands into a folder
    Man(ManArgs),
    /// Print what makes a shell complete commands and options
    Completions(CompletionsArgs),
}

#[derive(Debug, Args)]
pub(crate) struct CheckUpArgs {
    /// Print JSON instead of text
    #[arg(long)]
    pub(crate) json: bool,
    /// How long to record the running kernel, as 10s; 0s skips it
    #[arg(long, value_name = "SPAN", value_parser = span, default_value = "10s")]
    pub(crate) live: Duration,
}

/// A file or the running kernel: one of them, and what belongs to a recording goes with the kernel only.
#[derive(Debug, Args)]
#[command(after_help = EXPLAIN_EXIT_CODES)]
#[command(group(ArgGroup::new("input").required(true).args(["trace", "live"])))]
pub(crate) struct ExplainArgs {
    /// A trace: text of tracefs, `trace-cmd report` or `perf script` (or a .gz, .xz, .zst of it), a
    /// trace.dat, a perf.data, a Perfetto trace; `-` is standard input, @g612-c16-iso a recording of the
    /// program
    pub(crate) trace: Option<PathBuf>,
    /// Record the running kernel for this long instead, as 10s, 500ms or 2m (needs root)
    #[arg(long, value_name = "SPAN", value_parser = span)]
    pub(crate) live: Option<Duration>,
    /// The CPUs that must stay quiet, as 1-7,9, or none [default: the recording's list, else the host's]
    #[arg(long, value_name = "LIST", value_parser = cpus)]
    pub(crate) isolated: Option<CpuSet>,
    /// The kernel release that wrote the trace, as 6.12, when the trace does not say
    #[arg(long, value_name = "RELEASE", conflicts_with = "live")]
    pub(crate) kernel: Option<String>,
    /// With --live: record only the events of these questions, of packet-timers, isolation, placement,
    /// real-time and empty-softirqs [default: all five]
    #[arg(long, alias = "seeds", value_name = "LIST", value_delimiter = ',', value_parser = question, conflicts_with = "trace")]
    pub(crate) questions: Vec<Question>,
    /// With --live: kernel buffer per CPU, in KiB [default: 4096, and more where a trial of a second shows
    /// that it is needed]
    #[arg(long, value_name = "KIB", value_parser = clap::value_parser!(u32).range(64..=i64::from(BUFFER_KIB_MAX)), conflicts_with = "trace")]
    pub(crate) buffer: Option<u32>,
    /// Also say what held the isolated CPUs at this time: in seconds of the recording's clock, or, if it was
    /// made by `quietcore record`, by the wall clock, as 2026-11-27T22:19:09.5
    #[arg(long, value_name = "TIME", value_parser = moment, conflicts_with = "live")]
    pub(crate) at: Option<TypedMoment>,
    /// With --at: and so long before and after it, as 50us or 1ms
    #[arg(long, value_name = "SPAN", value_parser = short_span, default_value = "100us", requires = "at")]
    pub(crate) around: Nanos,
    /// Remember at most this many timers, and as many hrtimers
    #[arg(long, value_name = "COUNT", default_value_t = quietcore_trace::IDENTITIES_MAX, value_parser = identities)]
    pub(crate) max_identities: usize,
    #[command(flatten)]
    pub(crate) expansion: ExpansionArgs,
    /// Also write the figures as OpenMetrics text (for a textfile collector; replaced atomically)
    #[arg(long, value_name = "FILE")]
    pub(crate) openmetrics: Option<PathBuf>,
    /// Also write a Perfetto trace: timers, interrupts and work per CPU, with arrows from their causes
    #[arg(long, value_name = "FILE")]
    pub(crate) perfetto: Option<PathBuf>,
    /// Also write a page for a browser: findings, when, who disturbs whom, for how long
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    /// Print JSON instead of text (docs/reference/explain-json.md)
    #[arg(long)]
    pub(crate) json: bool,
    /// Exit with 1 if a figure is beyond its limit, as 'foreign>0,rt_delay_p99>50us' (counts, counts per
    /// second as foreign/s>1, spans; docs/reference/explain-json.md has the names)
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = clap::value_parser!(Threshold))]
    pub(crate) fail_on: Vec<Threshold>,
}

#[derive(Debug, Args)]
pub(crate) struct DiffArgs {
    /// A recording, or a report of `quietcore explain --json`
    pub(crate) before: PathBuf,
    /// Another one of the same load
    pub(crate) after: PathBuf,
    /// The CPUs that must stay quiet, as 1-7,9, or none [default: the recording's list, else the host's]
    #[arg(long, value_name = "LIST", value_parser = cpus)]
    pub(crate) isolated: Option<CpuSet>,
    #[command(flatten)]
    pub(crate) expansion: ExpansionArgs,
    /// Print JSON instead of text
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = RECORD_EXIT_CODES)]
pub(crate) struct RecordArgs {
    /// Where to keep it: text, compressed with zstd if the name ends with .zst; replaced at the end
    pub(crate) file: PathBuf,
    /// How long to record, as 10s, 500ms, 2m or 1h; Ctrl-C ends it early and keeps what there is [default:
    /// 10s, with --trigger 24h]
    #[arg(long = "for", value_name = "SPAN", value_parser = span)]
    pub(crate) live: Option<Duration>,
    /// Wait until an isolated CPU is taken away from its tasks for longer, as 'gap>50us'; keep what was
    /// before it and end then
    #[arg(long, value_name = "CONDITION", value_parser = trigger)]
    pub(crate) trigger: Option<Nanos>,
    /// With --trigger: keep so much before it, as 500ms or 10s
    #[arg(long, value_name = "SPAN", value_parser = span, default_value = "1s", requires = "trigger")]
    pub(crate) before: Duration,
    /// The CPUs that must stay quiet, as 1-7,9, or none: what takes them away is recorded [default: the
    /// host's]
    #[arg(long, value_name = "LIST", value_parser = cpus)]
    pub(crate) isolated: Option<CpuSet>,
    /// Kernel buffer per CPU, in KiB [default: 4096, and more where a trial of a second shows that it is
    /// needed]
    #[arg(long, value_name = "KIB", value_parser = clap::value_parser!(u32).range(64..=i64::from(BUFFER_KIB_MAX)))]
    pub(crate) buffer: Option<u32>,
    /// End the recording when the file has so many MiB
    #[arg(long, value_name = "MIB", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_size: Option<u32>,
    /// Print what was recorded as JSON instead of text
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = WATCH_NOTES)]
pub(crate) struct WatchArgs {
    /// The CPUs that must stay quiet, as 1-7,9 [default: the host's isolated ones]
    #[arg(long, value_name = "LIST", value_parser = cpus)]
    pub(crate) isolated: Option<CpuSet>,
    /// How often to show what was counted, as 10s or 1m
    #[arg(long, value_name = "SPAN", value_parser = span, default_value = "10s")]
    pub(crate) interval: Duration,
    /// End by itself after this long, as 10m or 1h [default: Ctrl-C ends it]
    #[arg(long = "for", value_name = "SPAN", value_parser = span)]
    pub(crate) span: Option<Duration>,
    /// Offer metrics: in a file, or on a port (of this host alone; ADDRESS:PORT for others), as
    /// http://127.0.0.1:PORT/metrics and /healthz
    #[arg(long, value_name = "FILE|PORT", value_parser = metrics_place)]
    pub(crate) openmetrics: Option<MetricsPlace>,
    /// So many sets of labels have a series of their own in the metrics
    #[arg(long, value_name = "COUNT", default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) series: u32,
    /// So many rows the table has at most
    #[arg(long, value_name = "COUNT", default_value_t = 20, value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) top: u16,
    /// So many different things are told apart on a CPU in ten seconds; 496 bytes of the kernel's memory each
    #[arg(long, value_name = "COUNT", default_value_t = WatchRequest::ROWS_EACH, value_parser = clap::value_parser!(u32).range(64..=65_536))]
    pub(crate) rows: u32,
    /// Print a line of JSON at each interval instead of the table (docs/reference/watch.md)
    #[arg(long)]
    pub(crate) json: bool,
    /// Print no table: the metrics have all of it
    #[arg(long, conflicts_with = "json", requires = "openmetrics")]
    pub(crate) quiet: bool,
}

#[derive(Debug, Args)]
#[command(after_help = KEEP_AWAKE_NOTES)]
pub(crate) struct KeepAwakeArgs {
    /// The CPUs that must stay quiet, as 1-7,9 [default: the host's isolated ones]
    #[arg(long, value_name = "LIST", value_parser = cpus)]
    pub(crate) isolated: Option<CpuSet>,
    /// End by itself after this long, as 10s or 1h [default: Ctrl-C ends it]
    #[arg(long = "for", value_name = "SPAN", value_parser = span)]
    pub(crate) span: Option<Duration>,
    /// Also on a kernel whose release says that it does not help
    #[arg(long)]
    pub(crate) force: bool,
    /// Print what was done as JSON instead of text
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = DOCTOR_EXIT_CODES)]
pub(crate) struct DoctorArgs {
    /// Examine the host whose proc and sys are below this directory
    #[arg(long, value_name = "DIR", default_value = "/")]
    pub(crate) root: PathBuf,
    /// Write what is read of the host to this file instead (tar, compressed with gzip), to unpack and
    /// examine it elsewhere with --root
    #[arg(long, value_name = "FILE", conflicts_with_all = ["json", "exit_zero"])]
    pub(crate) collect: Option<PathBuf>,
    /// Print JSON instead of text (docs/reference/doctor.md)
    #[arg(long)]
    pub(crate) json: bool,
    /// Exit with 0 even when there are findings
    #[arg(long)]
    pub(crate) exit_zero: bool,
}

#[derive(Debug, Args)]
#[command(after_help = VERIFY_EXIT_CODES)]
pub(crate) struct VerifyArgs {
    /// A trace: text of tracefs, `trace-cmd report` or `perf script` (or a .gz, .xz, .zst of it), a
    /// trace.dat, a perf.data, a Perfetto trace; `-` is standard input
    pub(crate) trace: PathBuf,
    #[command(flatten)]
    pub(crate) expansion: ExpansionArgs,
    /// Print JSON instead of text (docs/reference/verify.md)
    #[arg(long)]
    pub(crate) json: bool,
    /// Exit with 0 even when there are mismatches
    #[arg(long)]
    pub(crate) exit_zero: bool,
}

/// What to change is one option at least.
#[derive(Debug, Args)]
#[command(after_help = WHATIF_EXIT_CODES)]
#[command(group(ArgGroup::new("question").required(true).multiple(true).args(["policy", "exclude", "keep_awake"])))]
pub(crate) struct WhatIfArgs {
    /// A trace: text of tracefs, `trace-cmd report` or `perf script` (or a .gz, .xz, .zst of it), a
    /// trace.dat, a perf.data, a Perfetto trace; `-` is standard input
    pub(crate) trace: PathBuf,
    /// Where unpinned timers go [default: as the kernel of the trace placed them]
    #[arg(long, value_name = "POLICY")]
    pub(crate) policy: Option<PolicyArg>,
    /// CPUs that neither pull nor are pulled, as 1-7,9, or none [default: as recorded]
    #[arg(long, value_name = "LIST", value_parser = cpus)]
    pub(crate) exclude: Option<CpuSet>,
    /// CPUs that never go idle, as 0,8
    #[arg(long, value_name = "LIST", value_parser = cpus)]
    pub(crate) keep_awake: Option<CpuSet>,
    /// The CPUs that must stay quiet, as 1-7,9, or none [default: the recording's list]
    #[arg(long, value_name = "LIST", value_parser = cpus)]
    pub(crate) isolated: Option<CpuSet>,
    /// The kernel release that wrote the trace, as 6.12, when the trace does not say
    #[arg(long, value_name = "RELEASE")]
    pub(crate) kernel: Option<String>,
    #[command(flatten)]
    pub(crate) expansion: ExpansionArgs,
    /// Print JSON instead of text (docs/reference/whatif.md)
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct CatArgs {
    /// The recording
    pub(crate) trace: PathBuf,
    #[command(flatten)]
    pub(crate) expansion: ExpansionArgs,
}

#[cfg(test)]
mod tests {
    use super::{Cli, EXIT_CODES, PAGE};
    use clap::CommandFactory;

    /// Goal: the definitions are consistent (clap's own check).
    #[test]
    fn the_definitions_are_consistent() {
        Cli::command().debug_assert();
    }

    /// Goal: the page has every command, fits 80 columns, and an unknown command is told its neighbour.
    /// Method: the definitions; the usual slips.
    #[test]
    fn the_page_has_every_command() {
        for command in Cli::command().get_subcommands().filter(|command| command.get_name() != "help") {
            let line = format!("\n  {:<16}", command.get_name());
            assert_eq!(PAGE.matches(&line).count(), 1, "{}", command.get_name());
        }
        let lines = PAGE.lines().chain(EXIT_CODES.lines());
        lines.for_each(|line| assert!(line.len() <= 80, "{line}"));
        for (typed, meant) in [("explian", "explain"), ("docter", "doctor"), ("what-if", "whatif")] {
            let error = Cli::command().try_get_matches_from(["quietcore", typed]).expect_err(typed);
            assert!(error.to_string().contains(&format!("'{meant}'")), "{error}");
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct ManArgs {
    /// Where the pages go, as /usr/local/share/man/man1; those of these names that are there are replaced
    #[arg(value_name = "FOLDER")]
    pub(crate) folder: PathBuf,
}

#[derive(Debug, Args)]
#[command(after_help = COMPLETIONS_NOTES)]
pub(crate) struct CompletionsArgs {
    /// bash, elvish, fish, powershell or zsh
    #[arg(value_name = "SHELL", hide_possible_values = true)]
    pub(crate) shell: clap_complete::Shell,
}

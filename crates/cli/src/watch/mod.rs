//! `quietcore watch`: what disturbs isolated CPUs, counted in the kernel, all the time.

mod interval;
mod serve;

use crate::args::{MetricsPlace, WatchArgs};
use crate::atomic_file::{AtomicFile, OutputContent};
use crate::error::CliError;
use crate::host;
use crate::outcome::CommandOutcome;
use crate::output::{self, say};
use crate::signals::SignalFlag;
use crate::text;
use crate::wall_clock;
#[cfg(test)]
pub(crate) use interval::{IntervalCause, IntervalLeftOut, IntervalLosses};
pub(crate) use interval::{IntervalReport, IntervalRow};
use quietcore_core::CpuSet;
use quietcore_trace::live::run_on;
use quietcore_watch::{SeriesTable, Watch, WatchReport, WatchRequest, openmetrics};
use serve::MetricsServer;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// So often it is looked whether it is time to end.
const LOOK: Duration = Duration::from_millis(250);
/// What was counted is taken over this often, so that the kernel's rows suffice.
const COLLECT: Duration = Duration::from_secs(10);
/// Shorter intervals would be most of what happens.
const INTERVAL_MIN: Duration = Duration::from_millis(100);

/// What is so when metrics cannot be written.
const OWN_FOLDER: &str = "all rights were given up, root's too, so the folder and a file that is there must be of the user \
                          that this command runs as; or name a port";

/// Where metrics go.
#[derive(Debug)]
enum MetricsSink {
    File(PathBuf),
    Server(MetricsServer),
}

pub(crate) fn run(args: &WatchArgs) -> Result<CommandOutcome, CliError> {
    if args.interval < INTERVAL_MIN {
        return Err(CliError::Usage("--interval is 100ms at least".to_owned()));
    }
    let facts = host::facts();
    let cpus = args.isolated.clone().unwrap_or_else(|| facts.domain_isolated());
    if cpus.is_empty() {
        return Err(CliError::Usage(
            "this host has no isolated CPU: name those that must be quiet with --isolated".to_owned(),
        ));
    }
    if let Some(absent) = cpus.difference(&facts.online()).iter().next() {
        return Err(CliError::Usage(format!("CPU {absent} of --isolated {cpus} is not online")));
    }
    let interrupt = SignalFlag::install()?;
    let housekeeping = facts.housekeeping().difference(&cpus);
    let running_on = run_on(&housekeeping).map_err(|error| {
        CliError::Live(format!("cannot move to the housekeeping CPUs {housekeeping}: {error}"))
    })?;
    // What may fail is tried before anything is done to the kernel.
    let sink = args.openmetrics.as_ref().map(metrics_sink).transpose()?;
    let request = WatchRequest { cpus: cpus.clone(), rows_each: args.rows };
    let watch = Watch::start(&request).map_err(|error| CliError::Live(error.to_string()))?;
    watch.give_up_rights().map_err(|error| CliError::Live(error.to_string()))?;
    say(&begun(&watch, &cpus, &running_on));
    Resident { args, watch, sink, series: SeriesTable::new(args.series as usize) }.run(&interrupt)
}

fn metrics_sink(place: &MetricsPlace) -> Result<MetricsSink, CliError> {
    match place {
        MetricsPlace::Port(address) => MetricsServer::bind(*address).map(MetricsSink::Server),
        MetricsPlace::File(path) => {
            // A place that cannot be written is refused before anything is done to the kernel.
            let file = AtomicFile::create(path, OutputContent::Live)?;
            drop(file);
            Ok(MetricsSink::File(path.clone()))
        }
    }
}

fn begun(watch: &Watch, cpus: &CpuSet, running_on: &CpuSet) -> String {
    let mut text = format!(
        "counting {} tracepoints in the kernel for CPUs {cpus}; to begin sent them {} interrupts, from now on there are none; running on \
         CPUs {running_on}; Ctrl-C ends it",
        watch.tracepoints(),
        watch.own_interrupts(),
    );
    for left_out in watch.left_out() {
        text.push_str(&format!("\nnot counted: {}: {}", left_out.tracepoint, left_out.why));
    }
    if !watch.has_function_names() {
        text.push_str(
            "\nfunctions have numbers for names: the kernel shows their addresses to processes with CAP_SYSLOG \
             (and to none where kernel.kptr_restrict is 2)",
        );
    }
    if !running_on.intersection(cpus).is_empty() {
        text.push_str(
            "\nthis command has no other CPU to run on than watched ones, and disturbs them itself",
        );
    }
    text
}

fn write_file(path: &Path, text: &str) -> Result<(), CliError> {
    let mut file = AtomicFile::create(path, OutputContent::Live)?;
    file.write_all(text.as_bytes()).map_err(|error| CliError::Write(path.to_owned(), error))?;
    file.finish()
}

/// A watch that has begun.
struct Resident<'a> {
    args: &'a WatchArgs,
    watch: Watch,
    sink: Option<MetricsSink>,
    series: SeriesTable,
}

impl Resident<'_> {
    fn run(mut self, interrupt: &SignalFlag) -> Result<CommandOutcome, CliError> {
        if let Some(MetricsSink::Server(server)) = &mut self.sink {
            server.start(self.args.interval)?;
        }
        let begun = Instant::now();
        let mut last = self.watch.report();
        self.publish(&last)?;
        let (mut is_over, mut end) = (false, begun);
        while !is_over {
            // An interval that was missed is part of the next one.
            end = (end + self.args.interval).max(Instant::now());
            is_over = self.wait(interrupt, begun, end);
            let clock = wall_clock::now();
            let report = self.watch.report();
            self.publish(&report)?;
            // One that a signal cut short has what was counted until then.
            self.show(&IntervalReport::between(&last, &report, clock))?;
            last = report;
        }
        // It is there to be ended so.
        Ok(CommandOutcome::Fine)
    }

    /// Waits for the end of an interval; whether it was the last one.
    fn wait(&mut self, interrupt: &SignalFlag, begun: Instant, end: Instant) -> bool {
        let now = Instant::now();
        let last = self.args.span.map(|span| begun + span);
        let end = last.map_or(end, |last| last.min(end));
        let mut collected = now;
        loop {
            let now = Instant::now();
            let is_over = interrupt.arrived() || last.is_some_and(|last| now >= last);
            if is_over || now >= end {
                self.watch.collect();
                return is_over;
            }
            if now - collected >= COLLECT {
                self.watch.collect();
                collected = now;
            }
            std::thread::sleep(LOOK.min(end - now));
        }
    }

    fn publish(&mut self, report: &WatchReport) -> Result<(), CliError> {
        match &self.sink {
            None => {}
            Some(MetricsSink::Server(server)) => server.publish(openmetrics(report, &mut self.series)),
            Some(MetricsSink::File(path)) => {
                let text = openmetrics(report, &mut self.series);
                write_file(path, &text).map_err(|error| CliError::Live(format!("{error}; {OWN_FOLDER}")))?;
            }
        }
        Ok(())
    }

    fn show(&self, report: &IntervalReport) -> Result<(), CliError> {
        if self.args.json {
            return output::print_json_line(report);
        }
        if self.args.quiet {
            return Ok(());
        }
        let mut page = text::Page::for_stdout();
        text::watched(&mut page, report, usize::from(self.args.top));
        output::print_over(&page.into_text())
    }
}

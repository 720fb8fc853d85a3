//! `quietcore record FILE`: the running kernel, recorded to explain it later or elsewhere.

use crate::args::RecordArgs;
use crate::error::CliError;
use crate::host;
use crate::kept::KeptText;
use crate::live::{Own, Request, Session, TracepointChoice, Triggered, room};
use crate::outcome::CommandOutcome;
use crate::output::{self, say};
use crate::signals::SignalFlag;
use crate::trigger::TriggerRequest;
use crate::wall_clock;
use quietcore_core::{CpuSet, Nanos};
use quietcore_explain::Facts;
use quietcore_trace::{Header, counted, shell_word, visible_path};
use serde::Serialize;
use std::path::Path;
use std::time::Duration;

/// What was recorded: the JSON of `quietcore record --json`, schema 1.
#[derive(Debug, Serialize)]
struct Recorded {
    schema: u32,
    /// `null` where nothing was kept, as what was waited for did not happen.
    file: Option<String>,
    bytes: u64,
    /// In the file.
    events: u64,
    lost_events: u64,
    /// From the first event in the file to the last.
    duration_ns: u64,
    /// What ended the recording; `null` without it, and without `--trigger`.
    gap: Option<RecordedGap>,
    /// Why something may be missing, besides lost events.
    incomplete: Vec<String>,
    /// The KiB of a CPU's buffer that would have held what was lost; `null` if nothing was.
    lossless_kib: Option<u64>,
    own_disturbance: Option<Own>,
}

/// A stretch in which a CPU was taken away from its tasks.
#[derive(Debug, Serialize)]
struct RecordedGap {
    cpu: u16,
    /// On the recording's clock.
    from_ns: u64,
    until_ns: u64,
}

/// How long is recorded where nothing else is said, and how long something is waited for.
const SPAN: Duration = Duration::from_secs(10);
const WAIT: Duration = Duration::from_secs(86_400);

pub(crate) fn run(args: &RecordArgs) -> Result<CommandOutcome, CliError> {
    let span = args.live.unwrap_or(if args.trigger.is_some() { WAIT } else { SPAN });
    if span.is_zero() {
        return Err(CliError::Usage("--for 0s records nothing; give it a time, as --for 10s".to_owned()));
    }
    let interrupt = SignalFlag::install()?;
    let facts = host::facts();
    let isolated = args.isolated.clone().unwrap_or_else(|| facts.domain_isolated());
    if args.trigger.is_some() && isolated.is_empty() {
        return Err(CliError::Usage(
            "--trigger watches isolated CPUs, and this host has none: name them with --isolated".to_owned(),
        ));
    }
    let request = Request {
        span,
        choice: TracepointChoice::All,
        buffer_kib: args.buffer,
        housekeeping: facts.housekeeping().difference(&isolated),
        bytes_max: args.max_size.map(|mib| u64::from(mib) << 20),
        trigger: args.trigger.map(|longer_than| TriggerRequest { longer_than, before: args.before }),
        isolated,
    };
    let mut file = KeptText::create(&args.file)?;
    file.write(header(&facts, &request.isolated, &args.file).to_string().as_bytes())?;
    let session = Session::start(&request, Some(file), &interrupt)?;
    let (mut first, mut last) = (None, Nanos(0));
    let mut recorded = session.run(&mut |record| {
        first.get_or_insert(record.at);
        last = last.max(record.at);
    })?;
    let file = recorded.file.take().filter(|_| args.trigger.is_none() || recorded.triggered.is_some());
    let bytes = match file {
        Some(mut file) => {
            file.write(format!("# lost events: {}\n", recorded.tally.lost_events).as_bytes())?;
            Some(file.finish()?)
        }
        None => None,
    };
    let watched = first.map_or(Nanos(0), |first| last.since(first));
    let first = recorded.triggered.map_or(first, |triggered| triggered.kept_from);
    let summary = Recorded {
        schema: 1,
        file: bytes.map(|_| visible_path(&args.file)),
        bytes: bytes.unwrap_or(0),
        events: recorded.triggered.map_or(recorded.tally.events, |triggered| triggered.events),
        lost_events: recorded.tally.lost_events,
        duration_ns: first.map_or(0, |first| last.since(first).as_u64()),
        gap: recorded.triggered.map(|Triggered { gap, .. }| RecordedGap {
            cpu: gap.cpu.index() as u16,
            from_ns: gap.from.0,
            until_ns: gap.until.0,
        }),
        incomplete: recorded.incomplete,
        lossless_kib: recorded.lossless_kib,
        own_disturbance: recorded.own,
    };
    if args.json {
        output::print_json(&summary)?;
    } else {
        output::print(&text(&summary, &args.file, watched))?;
    }
    if recorded.is_full {
        say("the recording was ended at --max-size");
    }
    Ok(match () {
        () if summary.gap.is_some() => CommandOutcome::Found,
        () if recorded.interrupted => CommandOutcome::Interrupted,
        () => CommandOutcome::Fine,
    })
}

/// What a reader of the file has to know of this machine.
fn header(facts: &Facts, isolated: &CpuSet, file: &Path) -> Header {
    let mut header = Header::of_recording(&visible_path(file).to_string());
    header.kernel = facts.kernel().cloned();
    header.hz = host::hz();
    header.cpu_count = host::options(facts).cpu_count;
    header.nodes = facts.nodes();
    header.isolated = Some(isolated.clone());
    // Of others the kernel leaves out what no question needs.
    header.whole_on = Some(isolated.clone()).filter(|isolated| !isolated.is_empty());
    header.nohz_full = Some(facts.nohz_full());
    header.timer_migration = facts.timer_migration();
    header.wall_clock = Some(wall_clock::now());
    header
}

/// `watched` is how long was recorded, whether it was kept or not.
fn text(recorded: &Recorded, file: &Path, watched: Nanos) -> String {
    let Recorded { events, lost_events, bytes, duration_ns, incomplete, gap, .. } = recorded;
    let lost = match lost_events {
        0 => "none lost".to_owned(),
        count => format!("{count} LOST ({})", recorded.lossless_kib.map_or(String::new(), room)),
    };
    let Some(name) = &recorded.file else {
        let events = counted(*events, "event", "events");
        return format!(
            "no isolated CPU was taken away for so long in {watched} ({events}, {lost}); nothing was kept\n"
        );
    };
    let kept = Duration::from_nanos(*duration_ns);
    let mut text = format!(
        "{name}: {} in {:.1} s, {lost}; {} KiB\n",
        counted(*events, "event", "events"),
        kept.as_secs_f64(),
        bytes.div_ceil(1024)
    );
    for reason in incomplete {
        text += &format!("INCOMPLETE {reason}\n");
    }
    let mut command = format!("quietcore explain {}", shell_word(&file.to_string_lossy()));
    if let Some(RecordedGap { cpu, from_ns, until_ns }) = gap {
        let (long, from) = (Nanos(until_ns - from_ns), Nanos(*from_ns).as_secs_f64());
        text += &format!("CPU {cpu} was taken away for {long} from {from:.6} s on\n");
        command += &format!(" --at {from:.6} --around {}", around(long));
    }
    text + &format!("explain it: {command}\n")
}

/// Whole microseconds, as they are typed.
fn around(long: Nanos) -> String {
    format!("{}us", long.0.div_ceil(1_000))
}

#[cfg(test)]
mod tests {
    use super::{Recorded, RecordedGap, header, text};
    use quietcore_core::Nanos;
    use quietcore_explain::Facts;
    use quietcore_trace::TraceReader;

    /// Goal: a file says of its machine what its readers need. Method: a copy of a host; the header is read
    /// back.
    #[test]
    fn a_file_says_of_which_machine_it_is() {
        let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../explain/tests/hosts/telco-6.12");
        let facts = Facts::read(root.as_ref());
        let written = header(&facts, &facts.domain_isolated(), "a.txt".as_ref());
        let text = format!("{written}a-7 [000] 1.0: timer_cancel: timer=1\n");
        let mut reader = TraceReader::new(text.as_bytes());
        reader.read_header().expect("a header");
        assert_eq!(*reader.header(), written);
        assert!(written.is_recording);
        assert_eq!(written.whole_on, written.isolated);
        assert_eq!(written.kernel.expect("a release").text, "6.12.48-generic");
        assert_eq!(written.isolated.expect("a list").to_string(), "2-7,10-15");
        assert_eq!((written.cpu_count, written.timer_migration), (Some(16), Some(true)));
    }

    /// Goal: a person reads what was recorded, what is missing, and what to do next.
    #[test]
    fn a_person_reads_what_was_recorded() {
        let mut recorded = Recorded {
            schema: 1,
            file: Some("a b.txt".to_owned()),
            bytes: 2049,
            events: 7,
            lost_events: 0,
            duration_ns: 1_450_000_000,
            gap: None,
            incomplete: vec![],
            lossless_kib: None,
            own_disturbance: None,
        };
        let next = "explain it: quietcore explain 'a b.txt'\n";
        let path = "a b.txt".as_ref();
        let text = |recorded: &Recorded| text(recorded, path, Nanos(7_000_000_000));
        assert_eq!(text(&recorded), format!("a b.txt: 7 events in 1.4 s, none lost; 3 KiB\n{next}"));
        (recorded.lost_events, recorded.incomplete) = (3, vec!["of a reason".to_owned()]);
        recorded.lossless_kib = Some(5000);
        let lost = "3 LOST (--buffer 5000 would have held them)";
        let expected = format!("a b.txt: 7 events in 1.4 s, {lost}; 3 KiB\nINCOMPLETE of a reason\n{next}");
        assert_eq!(text(&recorded), expected);
        recorded.gap = Some(RecordedGap { cpu: 3, from_ns: 12_000_345_000, until_ns: 12_000_418_200 });
        let gap = "CPU 3 was taken away for 73.2 us from 12.000345 s on\n\
                   explain it: quietcore explain 'a b.txt' --at 12.000345 --around 74us\n";
        assert!(text(&recorded).ends_with(gap), "{}", text(&recorded));
        (recorded.file, recorded.gap, recorded.lost_events) = (None, None, 0);
        let nothing =
            "no isolated CPU was taken away for so long in 7 s (7 events, none lost); nothing was kept\n";
        assert_eq!(text(&recorded), nothing);
    }
}

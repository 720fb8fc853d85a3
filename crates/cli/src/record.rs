//! `quietcore record FILE`: the running kernel, recorded to explain it later or elsewhere.

use crate::args::RecordArgs;
use crate::error::CliError;
use crate::host;
use crate::kept::KeptText;
use crate::live::{Own, Request, Session, TracepointChoice};
use crate::outcome::CommandOutcome;
use crate::output::{self, say};
use crate::signals::SignalFlag;
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
    file: String,
    bytes: u64,
    events: u64,
    lost_events: u64,
    /// From the first event to the last.
    duration_ns: u64,
    /// Why something may be missing, besides lost events.
    incomplete: Vec<String>,
    own_disturbance: Option<Own>,
}

pub(crate) fn run(args: &RecordArgs) -> Result<CommandOutcome, CliError> {
    if args.live.is_zero() {
        return Err(CliError::Usage("--for 0s records nothing; give it a time, as --for 10s".to_owned()));
    }
    let interrupt = SignalFlag::install()?;
    let facts = host::facts();
    let isolated = args.isolated.clone().unwrap_or_else(|| facts.domain_isolated());
    let request = Request {
        span: args.live,
        choice: TracepointChoice::All,
        buffer_kib: args.buffer,
        housekeeping: facts.housekeeping().difference(&isolated),
        bytes_max: args.max_size.map(|mib| u64::from(mib) << 20),
        isolated,
    };
    let mut file = KeptText::create(&args.file)?;
    file.write(header(&facts, &request.isolated, &args.file).to_string().as_bytes())?;
    let session = Session::start(&request, Some(file), &interrupt)?;
    let (mut first, mut last) = (None, Nanos(0));
    let recorded = session.run(&mut |record| {
        first.get_or_insert(record.at);
        last = last.max(record.at);
    })?;
    let Some(mut file) = recorded.file else {
        return Err(CliError::Live("the recording was not kept".to_owned()));
    };
    file.write(format!("# lost events: {}\n", recorded.tally.lost_events).as_bytes())?;
    let bytes = file.finish()?;
    let summary = Recorded {
        schema: 1,
        file: visible_path(&args.file).to_string(),
        bytes,
        events: recorded.tally.events,
        lost_events: recorded.tally.lost_events,
        duration_ns: first.map_or(0, |first| last.since(first).as_u64()),
        incomplete: recorded.incomplete,
        own_disturbance: recorded.own,
    };
    if args.json {
        output::print_json(&summary)?;
    } else {
        output::print(&text(&summary, &args.file))?;
    }
    if recorded.is_full {
        say("the recording was ended at --max-size");
    }
    Ok(if recorded.interrupted { CommandOutcome::Interrupted } else { CommandOutcome::Fine })
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
    header
}

fn text(recorded: &Recorded, file: &Path) -> String {
    let Recorded { events, lost_events, bytes, duration_ns, incomplete, .. } = recorded;
    let lost = match lost_events {
        0 => "none lost".to_owned(),
        count => format!("{count} LOST (a larger --buffer, or fewer events on this machine)"),
    };
    let span = Duration::from_nanos(*duration_ns);
    let mut text = format!(
        "{}: {} in {:.1} s, {lost}; {} KiB\n",
        recorded.file,
        counted(*events, "event", "events"),
        span.as_secs_f64(),
        bytes.div_ceil(1024)
    );
    for reason in incomplete {
        text += &format!("INCOMPLETE {reason}\n");
    }
    text + &format!("explain it: quietcore explain {}\n", shell_word(&file.to_string_lossy()))
}

#[cfg(test)]
mod tests {
    use super::{Recorded, header, text};
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
            file: "a b.txt".to_owned(),
            bytes: 2049,
            events: 7,
            lost_events: 0,
            duration_ns: 1_450_000_000,
            incomplete: vec![],
            own_disturbance: None,
        };
        let next = "explain it: quietcore explain 'a b.txt'\n";
        let path = "a b.txt".as_ref();
        assert_eq!(text(&recorded, path), format!("a b.txt: 7 events in 1.4 s, none lost; 3 KiB\n{next}"));
        (recorded.lost_events, recorded.incomplete) = (3, vec!["of a reason".to_owned()]);
        let lost = "3 LOST (a larger --buffer, or fewer events on this machine)";
        let expected = format!("a b.txt: 7 events in 1.4 s, {lost}; 3 KiB\nINCOMPLETE of a reason\n{next}");
        assert_eq!(text(&recorded, path), expected);
    }
}

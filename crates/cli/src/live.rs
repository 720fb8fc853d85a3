//! Recording the running kernel for an explanation: says what it will do to the machine, records,
//! reads while recording, and leaves nothing behind.

use crate::args::DEFAULT_BUFFER_KIB;
use crate::error::CliError;
use crate::host;
use crate::kept::{Kept, KeptText, WaitingText};
use crate::output::say;
use crate::progress::Display;
use crate::signals::SignalFlag;
use crate::trigger::{Trigger, TriggerRequest};
use crate::typed::again_as_root;
use crate::wall_clock;
use quietcore_answers::AnswerError;
use quietcore_core::{CpuId, CpuSet, Nanos};
use quietcore_explain::Gap;
use quietcore_trace::live::{
    BUFFER_KIB_MAX, BufferCounts, LiveError, LiveText, OwnDisturbance, Recording, Tracefs, go_before_others,
    recorded_tracepoints, run_on, tracepoints,
};
use quietcore_trace::{Event, Header, Progress, Question, Record, Tally, TraceReader};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// How long the reader sleeps when the buffers are empty.
const PAUSE: Duration = Duration::from_millis(50);
/// Systems whose tracepoints differ between kernels and machines; what lacks them still has figures.
const OPTIONAL: [&str; 4] = ["ipi/", "irq_vectors/", "nmi/", "timer_migration/"];
const LINES_PER_TURN: u64 = 50_000;
/// How long is tried out what is recorded.
const TRIAL: Duration = Duration::from_secs(1);
/// Buffers get this part of the memory that is available at most: an eighth.
const MEMORY_SHARE: u64 = 8;
/// So long it goes on after what triggered its end, so that what was open then has an end.
const AFTER_TRIGGER: Duration = Duration::from_millis(100);
/// Events are read so long after they happened, at most.
const READ_WITHIN: Duration = Duration::from_millis(500);

/// What to record.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) span: Duration,
    pub(crate) choice: TracepointChoice,
    /// Per CPU; `None`: as a trial shows.
    pub(crate) buffer_kib: Option<u32>,
    /// CPUs that may be disturbed: online, neither isolated nor `nohz_full`.
    pub(crate) housekeeping: CpuSet,
    /// CPUs of which everything is recorded that takes them away.
    pub(crate) isolated: CpuSet,
    /// Where a file that is kept ends the recording.
    pub(crate) bytes_max: Option<u64>,
    /// What ends it, too; a file has what was before that alone.
    pub(crate) trigger: Option<TriggerRequest>,
}

/// Which tracepoints to switch on.
#[derive(Debug)]
pub(crate) enum TracepointChoice {
    /// Those that answer these questions.
    Of(Vec<Question>),
    /// All that a reader of recordings uses.
    All,
}

/// What was recorded, besides the events themselves.
pub(crate) struct LiveRecording {
    pub(crate) tally: Tally,
    pub(crate) unknown: Vec<(String, u64)>,
    /// `None` when it cannot be known.
    pub(crate) own: Option<Own>,
    pub(crate) interrupted: bool,
    /// Why figures may be wrong, besides lost events.
    pub(crate) incomplete: Vec<String>,
    /// Where it was kept, not yet finished.
    pub(crate) file: Option<KeptText>,
    /// The file was full before the time was over.
    pub(crate) is_full: bool,
    /// What triggered the end.
    pub(crate) triggered: Option<Triggered>,
    /// The KiB of a buffer that would have lost nothing, if events were lost.
    pub(crate) lossless_kib: Option<u64>,
}

/// What ended a recording, and what is kept of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Triggered {
    pub(crate) gap: Gap,
    /// When the first event that is kept happened.
    pub(crate) kept_from: Option<Nanos>,
    /// How many events are kept.
    pub(crate) events: u64,
}

impl LiveRecording {
    /// What its reader must know besides the figures.
    pub(crate) fn warning(&self) -> Option<String> {
        self.interrupted.then(|| "the recording was ended early by a signal".to_owned())
    }
}

/// What the recording itself did to the machine, as far as it was recorded.
#[derive(Debug, Serialize)]
pub(crate) struct Own {
    /// Interrupts that our threads sent to other CPUs, mostly by switching tracepoints on.
    pub(crate) interrupts_sent: u64,
    /// The same by receiving CPU.
    pub(crate) interrupts_by_cpu: BTreeMap<u16, u64>,
    /// CPUs that our threads ran on, a kernel list.
    pub(crate) thread_cpus: String,
}

/// A recording that is about to begin: the instance exists, the tracepoints are on.
pub(crate) struct Session {
    // The pipe must close before the instance can be removed: fields drop in this order.
    reader: TraceReader<Kept<LiveText>>,
    recording: Recording,
    interrupt: SignalFlag,
    deadline: Instant,
    bytes_max: Option<u64>,
    trigger: Option<Trigger>,
    triggered: Option<Triggered>,
    /// What we did to the machine is in it.
    is_whole: bool,
}

impl Session {
    /// Announces, makes the instance, and switches the tracepoints on. The text is kept in `file`.
    pub(crate) fn start(
        request: &Request,
        mut file: Option<KeptText>,
        interrupt: &SignalFlag,
    ) -> Result<Self, CliError> {
        let tracefs = Tracefs::find().map_err(live_error)?;
        for name in tracefs.remove_leftovers() {
            say(&format!("removed the tracing instance {name} that a killed run left behind"));
        }
        let chosen = match &request.choice {
            TracepointChoice::Of(questions) => tracepoints(questions, &request.isolated),
            TracepointChoice::All => recorded_tracepoints(&request.isolated),
        };
        let housekeeping = &request.housekeeping;
        let running_on = run_on(housekeeping).map_err(|error| {
            CliError::Live(format!("cannot move to the housekeeping CPUs {housekeeping}: {error}"))
        })?;
        // Where that is not allowed, events may be lost, and are then counted.
        let _ = go_before_others();
        say(&what_it_will_do(request, chosen.len(), &running_on));
        let buffer_kib = request.buffer_kib.unwrap_or(DEFAULT_BUFFER_KIB);
        let mut recording = Recording::start(&tracefs, &chosen, buffer_kib).map_err(live_error)?;
        if let Some(file) = &mut file {
            let mut header = Header::default();
            header.whole_from = Some(wall_clock::now().at);
            file.write(header.to_string().as_bytes())?;
        }
        if let Some(sentence) = what_is_missing(recording.missing()) {
            say(&sentence);
        }
        let Some(text) = recording.text() else {
            return Err(CliError::Live("the recording has no text".to_owned()));
        };
        if text.is_the_kernels() {
            say(SLOW_TEXT);
        }
        let waiting = request.trigger.map(|trigger| WaitingText::new(trigger.before + READ_WITHIN));
        let reader = TraceReader::new(Kept::new(text, file, waiting));
        say(&format!("recording for {:?} (Ctrl-C ends it early)", request.span));
        let (began, bytes_max) = (Instant::now(), request.bytes_max);
        let is_whole = request.buffer_kib.is_some() || try_out(&recording, request.span, interrupt)?;
        let deadline = if is_whole { began } else { Instant::now() } + request.span;
        let now = wall_clock::now().at;
        let trigger = request.trigger.map(|trigger| Trigger::new(trigger, &request.isolated, now));
        let interrupt = interrupt.clone();
        let triggered = None;
        Ok(Self { reader, recording, interrupt, deadline, bytes_max, trigger, triggered, is_whole })
    }

    /// Names of the events that are on.
    pub(crate) fn switched_on(&self) -> Vec<String> {
        self.recording.switched_on().to_vec()
    }

    /// Hands every event to `visit` until the span is over or a signal arrives.
    pub(crate) fn run(mut self, visit: &mut dyn FnMut(&Record<'_>)) -> Result<LiveRecording, CliError> {
        let threads = own_threads();
        let is_known = threads.is_some() && self.is_whole;
        let mut own = OwnDisturbance::of(threads.unwrap_or_default());
        let mut seen = SeenEvents::default();
        let visit = &mut |record: &Record<'_>| {
            own.take(record);
            seen.take(record);
            visit(record);
        };
        let (mut display, began) = (Display::new(), Instant::now());
        while !self.interrupt.arrived() && Instant::now() < self.deadline && !self.is_full() {
            if self.turn(visit)? == Progress::Waiting {
                let left = self.deadline.saturating_duration_since(Instant::now());
                pause(left.min(PAUSE));
            }
            self.look_at_trigger()?;
            let left = self.deadline.saturating_duration_since(Instant::now()).as_secs();
            display.show(|| how_far(left, began.elapsed(), self.reader.tally()));
        }
        self.recording.stop().map_err(live_error)?;
        let stopped = self.recording.counts().map_err(live_error)?;
        let lossless_kib = self.recording.lossless_kib(&stopped).map_err(live_error)?;
        let is_full = self.is_full();
        self.reader.source_mut().source_mut().recording_stopped();
        while self.turn(visit)? == Progress::Paused {}
        display.clear();
        let events = self.reader.source_mut().lines();
        let counts = self.recording.counts().map_err(live_error)?;
        let tally = with_losses(self.reader.tally(), counts.iter().map(|(_, counts)| counts.lost).sum());
        let unknown = self.reader.unknown_events();
        let file = self.reader.source_mut().take_file()?;
        drop(self.reader);
        self.recording.remove().map_err(live_error)?;
        Ok(LiveRecording {
            tally,
            unknown,
            own: is_known.then(|| own_report(&own)),
            interrupted: self.interrupt.arrived(),
            incomplete: seen.missing(&counts),
            file,
            is_full,
            triggered: self.triggered.map(|triggered| Triggered { events, ..triggered }),
            lossless_kib,
        })
    }

    fn turn(&mut self, visit: &mut dyn FnMut(&Record<'_>)) -> Result<Progress, CliError> {
        let Self { reader, trigger, .. } = self;
        let visit = &mut |record: &Record<'_>| {
            if let Some(trigger) = trigger {
                trigger.take(record);
            }
            visit(record);
        };
        reader.read(LINES_PER_TURN, visit).map_err(|error| match reader.source_mut().take_file() {
            Err(not_kept) => not_kept,
            Ok(_) => AnswerError::Read(PathBuf::from("the kernel's buffers"), error).into(),
        })
    }

    /// If what is waited for has happened, what was read lately is kept, and the end is near.
    fn look_at_trigger(&mut self) -> Result<(), CliError> {
        if let (None, Some(gap)) = (&self.triggered, self.trigger.as_ref().and_then(Trigger::gap)) {
            let kept_from = self.reader.source_mut().keep_waiting()?;
            self.triggered = Some(Triggered { gap, kept_from, events: 0 });
            self.deadline = self.deadline.min(Instant::now() + AFTER_TRIGGER);
        }
        Ok(())
    }

    /// Whether the file is as long as it may be.
    fn is_full(&mut self) -> bool {
        self.bytes_max.is_some_and(|most| self.reader.source_mut().file_bytes() >= most)
    }
}

/// Sleeps without polling the buffers: a wake-up per page of events would disturb more.
fn pause(span: Duration) {
    let timeout = rustix::time::Timespec { tv_sec: 0, tv_nsec: i64::from(span.subsec_nanos()) };
    // An early return (a signal) is what we want here; nothing else can fail.
    let _ = rustix::event::poll(&mut [], Some(&timeout));
}

/// Said where the kernel does not tell the names of its functions, or has pages that are not read here.
const SLOW_TEXT: &str = "reading the kernel's own text, which costs it more (kernel.kptr_restrict is 2, or its \
                         buffers have an unknown form)";

/// How many events of each CPU were seen.
#[derive(Debug, Default)]
struct SeenEvents(BTreeMap<CpuId, u64>);

impl SeenEvents {
    fn take(&mut self, record: &Record<'_>) {
        *self.0.entry(record.cpu).or_default() += u64::from(!matches!(record.event, Event::Lost { .. }));
    }

    /// Says where the kernel counted other events than were seen, though it lost none of them.
    fn missing(&self, counts: &[(CpuId, BufferCounts)]) -> Vec<String> {
        let of = |cpu| self.0.get(&cpu).copied().unwrap_or(0);
        let differing = counts.iter().filter(|(cpu, counts)| counts.read + counts.left != of(*cpu));
        let sentence = |(cpu, counts): &(CpuId, BufferCounts)| {
            let (seen, written) = (of(*cpu), counts.read + counts.left);
            format!("the kernel has kept {written} events of CPU {cpu}, of which {seen} were seen")
        };
        differing.map(sentence).collect()
    }
}

/// Records for a moment, and makes the buffers as large as the recording needs. False when events were lost
/// in that moment: the recording begins after it.
fn try_out(recording: &Recording, span: Duration, interrupt: &SignalFlag) -> Result<bool, CliError> {
    let (trial, began) = (TRIAL.min(span), Instant::now());
    while began.elapsed() < trial && !interrupt.arrived() {
        pause(trial.saturating_sub(began.elapsed()).min(PAUSE));
    }
    let bytes_max = host::memory_available().unwrap_or(0) / MEMORY_SHARE;
    let tried = recording.size_buffers(began.elapsed(), span, DEFAULT_BUFFER_KIB, bytes_max);
    let tried = tried.map_err(live_error)?;
    if let Some(sentence) = what_grew(&tried.grown) {
        say(&sentence);
    }
    Ok(!tried.was_lossy)
}

fn what_grew(grown: &[(CpuId, u32)]) -> Option<String> {
    let sizes = grown.iter().map(|(_, kib)| kib / 1024);
    let (least, most) = (sizes.clone().min()?, sizes.max()?);
    let cpus: CpuSet = grown.iter().map(|(cpu, _)| *cpu).collect();
    let sizes = if least == most { format!("{most} MiB") } else { format!("{least} to {most} MiB") };
    Some(format!("much happens on CPUs {cpus}: buffers of {sizes} there"))
}

/// Tracepoints that the kernel should have and has not, if there are any.
fn what_is_missing(tracepoints: &[&str]) -> Option<String> {
    let is_optional = |tracepoint: &&&str| OPTIONAL.iter().any(|system| tracepoint.starts_with(system));
    let missing: Vec<_> = tracepoints.iter().filter(|name| !is_optional(name)).copied().collect();
    let sentence =
        || format!("this kernel does not have {}: figures made of them are null", missing.join(", "));
    (!missing.is_empty()).then(sentence)
}

/// What a recording does to the machine, said before it is done.
fn what_it_will_do(request: &Request, tracepoints: usize, running_on: &CpuSet) -> String {
    format!(
        "switching {tracepoints} tracepoints on, and off at the end, interrupts every online CPU a few \
         times, isolated ones included; running on CPUs {running_on}; buffers of {} KiB per CPU",
        request.buffer_kib.unwrap_or(DEFAULT_BUFFER_KIB)
    )
}

/// Which buffer would have held what was lost.
pub(crate) fn room(lossless_kib: u64) -> String {
    match u32::try_from(lossless_kib) {
        Ok(kib) if kib <= BUFFER_KIB_MAX => format!("--buffer {kib} would have held them"),
        _ => "no buffer would have held them: name fewer CPUs with --isolated, or record a shorter time"
            .to_owned(),
    }
}

fn how_far(seconds_left: u64, since: Duration, tally: &Tally) -> String {
    let per_second = tally.events as f64 / since.as_secs_f64().max(1e-3);
    let lost = if tally.lost_events == 0 { String::new() } else { format!(", {} LOST", tally.lost_events) };
    format!("{seconds_left} s left, {} events, {per_second:.0}/s{lost}", tally.events)
}

/// The text's marks and the buffers' counts are of the same losses, and either may lack some.
fn with_losses(marked: &Tally, counted: u64) -> Tally {
    let mut tally = marked.clone();
    tally.lost_events = tally.lost_events.max(counted);
    tally
}

fn live_error(error: LiveError) -> CliError {
    CliError::Live(match error {
        LiveError::NotPermitted { .. } => format!("{error}: {}", again_as_root()),
        _ => error.to_string(),
    })
}

/// The namespace in which the kernel's own tracing counts threads (its fixed inode number).
const INITIAL_PID_NAMESPACE: &str = "pid:[4026531836]";

/// The thread ids of this process as a trace has them; `None` in another PID namespace.
fn own_threads() -> Option<Vec<i32>> {
    let namespace = std::fs::read_link("/proc/self/ns/pid").ok()?;
    let entries = std::fs::read_dir("/proc/self/task").ok()?;
    if namespace.to_str() != Some(INITIAL_PID_NAMESPACE) {
        return None;
    }
    let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    Some(names.filter_map(|name| name.parse().ok()).collect())
}

fn own_report(own: &OwnDisturbance) -> Own {
    let receivers = own.receivers().iter();
    Own {
        interrupts_sent: own.interrupts(),
        interrupts_by_cpu: receivers.map(|(cpu, count)| (cpu.index() as u16, *count)).collect(),
        thread_cpus: own.cpus().to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::{
        BufferCounts, LiveRecording, Request, SeenEvents, TracepointChoice, how_far, own_report, room,
        what_grew, what_is_missing, what_it_will_do, with_losses,
    };
    use quietcore_core::{CpuId, CpuSet};
    use quietcore_trace::live::OwnDisturbance;
    use quietcore_trace::{Tally, TraceReader};
    use std::time::Duration;

    /// A tally of nine events.
    fn tally(lost_events: u64) -> Tally {
        let mut tally = Tally::default();
        (tally.events, tally.lost_events) = (9, lost_events);
        tally
    }

    /// Goal: what either says is lost, and nothing is counted twice. Method: one of each order.
    #[test]
    fn losses_are_counted_once() {
        for (marked, counted, lost) in [(0, 0, 0), (5, 0, 5), (0, 7, 7), (5, 7, 7), (7, 5, 7)] {
            let tally = with_losses(&tally(marked), counted);
            assert_eq!((tally.events, tally.lost_events), (9, lost), "{marked} marked, {counted} counted");
        }
    }

    /// Goal: what a recording will do to the machine is said, and how far it is. Method: no two figures are
    /// the same.
    #[test]
    fn a_recording_says_what_it_does() {
        let housekeeping = "0-3".parse().expect("a list");
        let request = Request {
            span: Duration::from_secs(5),
            choice: TracepointChoice::All,
            buffer_kib: Some(512),
            housekeeping,
            isolated: CpuSet::new(),
            bytes_max: None,
            trigger: None,
        };
        let sentence = "switching 17 tracepoints on, and off at the end, interrupts every online CPU a few \
                        times, isolated ones included; running on CPUs 1-2; buffers of 512 KiB per CPU";
        assert_eq!(what_it_will_do(&request, 17, &"1-2".parse().expect("a list")), sentence);
        let since = Duration::from_millis(4_500);
        assert_eq!(how_far(4, since, &tally(6)), "4 s left, 9 events, 2/s, 6 LOST");
        assert_eq!(how_far(0, since, &tally(0)), "0 s left, 9 events, 2/s");
    }

    /// Goal: a buffer that would have held what was lost is named as it is typed, if there is one.
    #[test]
    fn the_buffer_that_would_do_is_named() {
        assert_eq!(room(1 << 20), "--buffer 1048576 would have held them");
        for too_much in [(1 << 20) + 1, u64::MAX] {
            assert!(room(too_much).starts_with("no buffer would have held them: name fewer"));
        }
    }

    /// Goal: buffers that grew are told.
    #[test]
    fn buffers_that_grew_are_told() {
        let cpu = |number| CpuId::new(number).expect("few");
        assert_eq!(what_grew(&[]), None);
        let one = "much happens on CPUs 3: buffers of 8 MiB there";
        assert_eq!(what_grew(&[(cpu(3), 8192)]).as_deref(), Some(one));
        let two = "much happens on CPUs 0,2: buffers of 8 to 40 MiB there";
        assert_eq!(what_grew(&[(cpu(0), 40_960), (cpu(2), 8192)]).as_deref(), Some(two));
    }

    /// Goal: a recording that a signal ended says so, and no other. Method: both.
    #[test]
    fn a_signal_is_a_warning() {
        let warning = |interrupted| {
            LiveRecording {
                tally: Tally::default(),
                unknown: vec![],
                own: None,
                interrupted,
                incomplete: vec![],
                file: None,
                is_full: false,
                triggered: None,
                lossless_kib: None,
            }
            .warning()
        };
        assert_eq!(warning(false), None);
        assert_eq!(warning(true).as_deref(), Some("the recording was ended early by a signal"));
    }

    /// Goal: what the kernel lacks is named, but not what differs between kernels. Method: none, only such,
    /// and two others among them.
    #[test]
    fn missing_tracepoints_are_named() {
        assert_eq!(what_is_missing(&[]), None);
        assert_eq!(what_is_missing(&["ipi/ipi_send_cpu", "timer_migration/tmigr_cpu_idle"]), None);
        let some = ["timer/tick_stop", "ipi/ipi_send_cpu", "irq/softirq_raise"];
        let sentence =
            "this kernel does not have timer/tick_stop, irq/softirq_raise: figures made of them are null";
        assert_eq!(what_is_missing(&some).as_deref(), Some(sentence));
    }

    /// Goal: what the kernel kept and was not seen is told, and what it lost is not told twice. Method:
    /// counts of four CPUs: as seen, one more, one that is left, and one of which nothing was seen.
    #[test]
    fn events_that_were_not_seen_are_told() {
        let text = "a-7 [000] 1.0: x: y\na-7 [001] 1.0: x: y\nCPU:1 [LOST 5 EVENTS]\na-7 [001] 1.1: x: y\n\
                    a-7 [002] 1.0: x: y\n";
        let mut seen = SeenEvents::default();
        let read = TraceReader::new(text.as_bytes()).read(9, &mut |record| seen.take(record));
        read.expect("a trace");
        let counts = [(1, 0), (3, 0), (0, 1), (4, 0)].into_iter().enumerate().map(|(cpu, (read, left))| {
            (CpuId::new(cpu as u64).expect("few"), BufferCounts { lost: 5, read, left, left_bytes: 0 })
        });
        let sentences = [
            "the kernel has kept 3 events of CPU 1, of which 2 were seen",
            "the kernel has kept 4 events of CPU 3, of which 0 were seen",
        ];
        assert_eq!(seen.missing(&counts.collect::<Vec<_>>()), sentences);
    }

    /// Goal: our own interrupts by receiving CPU, and where we ran. Method: thread 7 on CPU 2 sends two to
    /// CPU 5 and one to CPU 6.
    #[test]
    fn our_own_interrupts_are_reported() {
        let mut own = OwnDisturbance::of(vec![7]);
        let text = "a-7 [002] 1.0: ipi_send_cpumask: cpumask=5-6 callsite=x callback=y\n\
                    a-7 [002] 1.0: ipi_send_cpu: cpu=5 callsite=x callback=y\n";
        let read = TraceReader::new(text.as_bytes()).read(9, &mut |record| own.take(record));
        read.expect("a trace");
        let report = own_report(&own);
        assert_eq!((report.interrupts_sent, report.interrupts_by_cpu), (3, [(5, 2), (6, 1)].into()));
        assert_eq!(report.thread_cpus, "2");
    }
}

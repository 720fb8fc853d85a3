//! Bundled recordings as tables, counted beside the explanation, and read back from Parquet.

use arrow_array::cast::AsArray;
use arrow_array::types::{UInt16Type, UInt64Type};
use arrow_array::{Array, RecordBatch};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::file::reader::ChunkReader;
use quietcore_answers::{ExplainRequest, explain, open, read_all};
use quietcore_explain::Explanation;
use quietcore_tables::{EventTable, ExportTables, TimerTable, disturbances, figures, findings};
use quietcore_trace::{EXPANSION_MAX, IDENTITIES_MAX, TraceReader};

const RECORDINGS: [&str; 4] = ["@g61-c16-iso", "@g612-c16-iso", "@g612-c16-iso-tm0", "@g619-c16-iso"];

fn explained(name: &str) -> Explanation {
    explain(&ExplainRequest::new(name), &mut |_| true).expect("a recording")
}

/// The three tables of a recording as files in memory.
fn exported(name: &str) -> ([Vec<u8>; 3], quietcore_tables::ExportCounts) {
    let mut reader = open(name.as_ref(), EXPANSION_MAX).expect("it is bundled");
    reader.read_header().expect("a header");
    let options = ExplainRequest::new(name).options(reader.header()).expect("options");
    let mut tables = ExportTables::new(options, [vec![], vec![], vec![]]).expect("memory");
    read_all(name.as_ref(), &mut reader, &mut |_| true, &mut |record| tables.take(record)).expect("a trace");
    assert!(!tables.failed());
    tables.finish(reader.tally()).expect("memory")
}

fn read(file: Vec<u8>) -> Vec<RecordBatch> {
    batches(parquet_bytes(file))
}

fn parquet_bytes(file: Vec<u8>) -> impl ChunkReader + 'static {
    let path = std::env::temp_dir().join(format!("quietcore-tables-{}-{}", std::process::id(), file.len()));
    std::fs::write(&path, file).expect("a file");
    let opened = std::fs::File::open(&path).expect("it is there");
    std::fs::remove_file(&path).expect("it is ours");
    opened
}

fn batches(file: impl ChunkReader + 'static) -> Vec<RecordBatch> {
    let reader = ParquetRecordBatchReaderBuilder::try_new(file).expect("Parquet").build().expect("a reader");
    reader.map(|batch| batch.expect("rows")).collect()
}

fn trues(batches: &[RecordBatch], column: &str) -> u64 {
    let count = |batch: &RecordBatch| {
        let column = batch.column_by_name(column).expect("a column").as_boolean().clone();
        column.iter().filter(|value| *value == Some(true)).count() as u64
    };
    batches.iter().map(count).sum()
}

/// Goal: the files hold what the explanation counts, and every event. Method: each bundled recording,
/// exported and read back: rows, foreign timers, pulled ones, and which CPU ran them.
#[test]
fn the_files_hold_what_the_explanation_counts() {
    for name in RECORDINGS {
        let report = explained(name);
        let ([events, timers, disturbed], counts) = exported(name);
        let (events, timers, disturbed) = (read(events), read(timers), read(disturbed));
        let rows = |batches: &[RecordBatch]| batches.iter().map(RecordBatch::num_rows).sum::<usize>() as u64;
        assert_eq!((rows(&events), counts.events), (report.events, report.events), "{name}");
        assert_eq!(rows(&timers), counts.timers, "{name}");
        let expired = [report.timers.expired, report.hrtimers.expired].into_iter().flatten().sum::<u64>();
        assert_eq!(counts.timers, expired, "{name}");
        assert_eq!(rows(&disturbed), report.interruptions.len() as u64, "{name}");
        let foreign = report.foreign.total.expect("recorded");
        let hrtimers = report.hrtimers.foreign.unwrap_or(0);
        assert_eq!(trues(&timers, "foreign"), foreign + hrtimers, "{name}");
        assert_eq!(Some(trues(&timers, "pulled")), report.remote.total, "{name}");
        let between = report.between_isolated.total.expect("recorded");
        assert!(trues(&timers, "between_isolated") >= between, "{name}");
    }
}

/// Goal: a timer's row has the CPUs that the explanation's proof has. Method: every example of a recording,
/// by its line.
#[test]
fn a_timer_has_its_three_cpus() {
    let report = explained("@g612-c16-iso");
    let ([_, timers, _], _) = exported("@g612-c16-iso");
    let mut found = 0;
    for batch in read(timers) {
        let lines = batch.column_by_name("ran_line").expect("a column").as_primitive::<UInt64Type>().clone();
        let cpu = |column: &str, row: usize| {
            batch.column_by_name(column).expect("a column").as_primitive::<UInt16Type>().value(row)
        };
        for example in &report.foreign.examples {
            let Some(row) = lines.values().iter().position(|line| *line == example.line) else { continue };
            let cpus = (cpu("armed_cpu", row), cpu("base_cpu", row), cpu("ran_cpu", row));
            assert_eq!(cpus, (example.armed_cpu, example.base_cpu, example.cpu), "line {}", example.line);
            found += 1;
        }
    }
    assert_eq!(found, report.foreign.examples.len());
}

/// Goal: a figure that was not recorded is null, and one that is 0 is 0. Method: a recording without
/// softirqs and one without foreign timers, beside their reports.
#[test]
fn what_was_not_recorded_is_null() {
    let text = "a-7 [000] 1.0: timer_cancel: timer=1\n";
    let report = quietcore_answers::explain_source("t".as_ref(), text.as_bytes()).expect("a trace");
    let batch = figures(&report).into_batch();
    let values = batch.column(2).as_primitive::<UInt64Type>();
    assert!(values.is_null(0), "foreign was not recorded");
    assert!(!values.is_null(values.len() - 1), "lost events are always known");
    let report = explained("@g619-c16-iso");
    let batch = figures(&report).into_batch();
    let values = batch.column(2).as_primitive::<UInt64Type>();
    assert_eq!((values.is_null(0), values.value(0)), (false, 0), "6.19 has none");
    assert_eq!(findings(&report).len(), report.findings.len());
    assert_eq!(disturbances(&report).len(), report.interruptions.len());
}

/// Goal: where events were lost, what a timer was armed by before is not known any more, and a callback
/// without its end has no length. Method: one timer before the mark and one after it, without exits.
#[test]
fn a_mark_of_lost_events_forgets_what_was_armed() {
    let start = |timer: u8, at: u8| {
        format!(
            "a-8 [000] {at}.0: timer_start: timer=0{timer} function=f expires=9 [timeout=1] cpu=0 idx=1 \
             flags=\n"
        )
    };
    let expiry = |timer: u8, at: u8| {
        format!("b-9 [001] {at}.0: timer_expire_entry: timer=0{timer} function=f now=9\n")
    };
    let text =
        [start(1, 1), "CPU:1 [LOST 3 EVENTS]\n".to_owned(), start(2, 2), expiry(1, 3), expiry(2, 4)].concat();
    let (mut timers, mut events) =
        (TimerTable::new("1".parse().expect("a list"), IDENTITIES_MAX), EventTable::new());
    let mut reader = TraceReader::new(text.as_bytes());
    let mut take = |record: &quietcore_trace::Record<'_>| {
        timers.take(record);
        events.take(record);
    };
    reader.read(u64::MAX, &mut take).expect("a trace");
    timers.finish();
    let batch = timers.rows().take_batch();
    let column = |name: &str| batch.column_by_name(name).expect("a column").clone();
    let armed = column("armed_cpu");
    assert_eq!((batch.num_rows(), armed.is_null(0), armed.is_null(1)), (2, true, false));
    let foreign = column("foreign");
    assert_eq!((foreign.is_null(0), foreign.as_boolean().value(1)), (true, true));
    assert_eq!(column("took_ns").null_count(), 2);
    let batch = events.rows().take_batch();
    let lost = batch.column_by_name("lost").expect("a column").as_boolean().clone();
    let lost: Vec<bool> = lost.iter().map(|lost| lost == Some(true)).collect();
    assert_eq!(lost, [false, true, false, false, false]);
}

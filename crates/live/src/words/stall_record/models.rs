//! The record of what a lane runs, under weak memory: what is read belongs together.

use super::{Callback, CodeKind, RunRecord, RunningCode};
use crate::words::sync::models::ends;
use loom::sync::Arc;
use loom::thread;

static FIRST: Callback = Callback { name: || "first", kind: CodeKind::Timer };
static SECOND: Callback = Callback { name: || "second", kind: CodeKind::Task };

fn running(callback: &'static Callback, number: usize) -> RunningCode {
    RunningCode { callback, subject: number, function: number + 10, location: None }
}

/// Goal: a reader finds one of the callbacks, whole, or nothing. Method: a lane runs two, one after the
/// other, while another thread looks. The mutants without a fence, or with a relaxed last store, give
/// a reader the name of one with the address of the other.
#[test]
fn what_is_read_belongs_together() {
    let found = ends(|| {
        let record = Arc::new(RunRecord::new());
        let lane = {
            let record = Arc::clone(&record);
            thread::spawn(move || {
                record.begin(running(&FIRST, 1));
                record.end();
                record.begin(running(&SECOND, 2));
            })
        };
        let reader = {
            let record = Arc::clone(&record);
            thread::spawn(move || {
                let seen = record.running();
                if let Some(seen) = seen {
                    let number = if core::ptr::eq(seen.callback, &FIRST) { 1 } else { 2 };
                    assert_eq!((seen.subject, seen.function), (number, number + 10));
                }
                seen.map_or(0, |seen| seen.subject)
            })
        };
        let seen = reader.join().expect("no panic");
        lane.join().expect("no panic");
        assert_eq!(record.running().map(|seen| seen.subject), Some(2));
        seen
    });
    assert_eq!(found, [0, 1, 2].into(), "all of them come to pass");
}

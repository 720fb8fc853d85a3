//! Must fail: a planted bug that shows that the fuzzer finds one.
//!
//! The bug stands behind the parser: a `timer_cancel` of a pointer that ends in 5 or d (modulo 8 it
//! is 5); the one seed ends in 1. A run that ends without a finding says that the build is not
//! instrumented.
#![no_main]

use libfuzzer_sys::fuzz_target;
use quietcore_trace::{Event, parse_line};

fuzz_target!(|bytes: &[u8]| {
    if let Ok(Event::TimerCancel { timer }) = parse_line(bytes).map(|record| record.event) {
        assert!(timer & 7 != 5, "the planted bug was found, as it must be");
    }
});

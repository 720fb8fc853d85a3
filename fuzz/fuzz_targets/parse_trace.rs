//! Any bytes as a trace: read twice, explained with normal and with tiny tables, all invariants checked.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| quietcore_fuzz::check_trace(bytes));

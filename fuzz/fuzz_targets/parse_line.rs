//! Any bytes as one line: no panic, and the same record alone and as a whole trace.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| quietcore_fuzz::check_line(bytes));

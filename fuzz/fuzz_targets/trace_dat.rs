//! Any bytes as a `trace.dat`, without its first bytes: an error, or a text that is the same each time.
#![no_main]

use libfuzzer_sys::fuzz_target;
use quietcore_fuzz::binary::{TRACE_DAT, check_binary};

fuzz_target!(|bytes: &[u8]| check_binary(TRACE_DAT, bytes));

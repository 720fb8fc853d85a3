//! Any bytes as a `perf.data`, without its first bytes: an error, or a text that is the same each time.
#![no_main]

use libfuzzer_sys::fuzz_target;
use quietcore_fuzz::binary::{PERF_DATA, check_binary};

fuzz_target!(|bytes: &[u8]| check_binary(PERF_DATA, bytes));

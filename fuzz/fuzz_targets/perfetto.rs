//! Any bytes as a trace of Perfetto, without its first packet: an error, or a text that is the same each
//! time.
#![no_main]

use libfuzzer_sys::fuzz_target;
use quietcore_fuzz::binary::{PERFETTO, check_binary};

fuzz_target!(|bytes: &[u8]| check_binary(PERFETTO, bytes));

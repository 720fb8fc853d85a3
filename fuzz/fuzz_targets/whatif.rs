//! Any bytes as a recording, replayed under every policy.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| quietcore_fuzz::whatif::check_whatif(bytes));

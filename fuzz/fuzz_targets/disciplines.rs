//! Any bytes as a discipline and what is done to it: no panic, no packet from nowhere, none lost uncounted.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| quietcore_fuzz::disciplines::check_operations(bytes));

//! Any text as a scenario with its costs: read, and run for a millisecond if it is small.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| quietcore_fuzz::scenario::check_scenario(text));

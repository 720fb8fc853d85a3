//! Any bytes as what a client sends to a control socket: every request is answered once, in words.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| quietcore_fuzz::control::check(bytes));

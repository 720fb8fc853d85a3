//! Any bytes as a script of `tc`: no panic, errors that can be shown, and commands that are read back.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| quietcore_fuzz::grammar::check_script(bytes));

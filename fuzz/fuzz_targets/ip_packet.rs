//! Any bytes as an IP packet: no panic, and what is remembered of them is what they say.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| quietcore_fuzz::packets::check_packet(bytes));

//! Lines with structure: written from typed values and read back, then damaged field by field.
#![no_main]

use libfuzzer_sys::fuzz_target;
use quietcore_fuzz::damage::Damage;
use quietcore_fuzz::written::Line;

fuzz_target!(|input: (Line, Vec<Damage>)| {
    let (line, damages) = input;
    let text = line.check();
    let damaged = damages.iter().fold(text, |text, damage| damage.apply(text));
    quietcore_fuzz::check_line(&damaged);
});

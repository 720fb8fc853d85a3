//! What a program says: one JSON object per line on its standard output.
//!
//! - `{"figure":NAME,"value":NUMBER}`: a result;
//! - `{"samples":NAME,"us":[INTEGER,...]}`: how late each sleep was, in microseconds;
//! - `{"window":"start"}` and `{"window":"end","events":COUNT}`: between these, the benchmark counts this
//!   process's CPU time and wake-ups;
//! - `{"absent":REASON}`: why there is no result.
//!
//! A failure is another exit status than 0 and a line on standard error.
//!
//! A line is out when the function returns.

use std::io::Write;

/// A result.
pub fn figure(name: &str, value: f64) {
    line(&format!("{{\"figure\":\"{name}\",\"value\":{value:.3}}}"));
}

/// How late sleeps were, in microseconds; below 0 if too early.
pub fn samples(name: &str, micros: &[i64]) {
    let numbers: Vec<String> = micros.iter().map(i64::to_string).collect();
    line(&format!("{{\"samples\":\"{name}\",\"us\":[{}]}}", numbers.join(",")));
}

/// From here on CPU time and wake-ups count.
pub fn window_start() {
    line("{\"window\":\"start\"}");
}

/// Up to here, for `events` timers, pairs or whatever the measure is about.
pub fn window_end(events: u64) {
    line(&format!("{{\"window\":\"end\",\"events\":{events}}}"));
}

/// Why there is no result.
pub fn absent(reason: &str) {
    line(&format!("{{\"absent\":\"{}\"}}", reason.replace('\\', "/").replace('"', "'").replace('\n', " ")));
}

fn line(text: &str) {
    let mut out = std::io::stdout().lock();
    // Without a reader the rest is not needed.
    if writeln!(out, "{text}").and_then(|()| out.flush()).is_err() {
        std::process::exit(1);
    }
}

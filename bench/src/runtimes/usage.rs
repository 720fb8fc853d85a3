//! What a process has used so far: CPU time and how often its threads left their CPU, seen from outside.
//!
//! A voluntary context switch is a thread that stopped because it had nothing to do; what comes after it is
//! a wake-up. An involuntary one is a thread that lost its CPU to another. Threads that ended are in the CPU
//! time and not in the switches.

use nix::time::{clock_getcpuclockid, clock_gettime};
use nix::unistd::Pid;
use std::fs;
use std::io;
use std::time::{Duration, Instant};

/// Since the process began.
#[derive(Clone, Copy, Debug)]
pub struct Usage {
    at: Instant,
    cpu: Duration,
    /// Context switches of the threads there are.
    voluntary: u64,
    involuntary: u64,
}

/// Between two looks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Window {
    /// How long.
    pub seconds: f64,
    /// CPU time of all threads, in nanoseconds.
    pub cpu_ns: f64,
    /// Of all threads.
    pub wake_ups: f64,
    /// How often a thread lost its CPU to another, of this process or not.
    pub preemptions: f64,
    /// As the process itself says.
    pub events: f64,
}

impl Usage {
    /// Of the process `pid`, now.
    ///
    /// # Errors
    /// If there is no such process (any more).
    pub fn of(pid: u32) -> io::Result<Self> {
        let process = Pid::from_raw(i32::try_from(pid).map_err(io::Error::other)?);
        let cpu = clock_gettime(clock_getcpuclockid(process)?)?;
        let (mut voluntary, mut involuntary) = (0, 0);
        for thread in fs::read_dir(format!("/proc/{pid}/task"))? {
            // A thread may end between the listing and this.
            let status = fs::read_to_string(thread?.path().join("status")).unwrap_or_default();
            voluntary += switches(&status, "voluntary_ctxt_switches:").unwrap_or(0);
            involuntary += switches(&status, "nonvoluntary_ctxt_switches:").unwrap_or(0);
        }
        Ok(Self { at: Instant::now(), cpu: cpu.into(), voluntary, involuntary })
    }

    /// From `self` until `end`, in which there were `events`.
    #[must_use]
    pub fn until(&self, end: &Self, events: u64) -> Window {
        Window {
            seconds: (end.at - self.at).as_secs_f64(),
            cpu_ns: end.cpu.saturating_sub(self.cpu).as_nanos() as f64,
            wake_ups: end.voluntary.saturating_sub(self.voluntary) as f64,
            preemptions: end.involuntary.saturating_sub(self.involuntary) as f64,
            events: events as f64,
        }
    }
}

fn switches(status: &str, kind: &str) -> Option<u64> {
    status.lines().find_map(|line| line.strip_prefix(kind))?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead, BufReader, Write};
    use std::process::{Command, Stdio};

    /// Goal: wake-ups and CPU time of a process are seen. Method: a shell that waits for eight others in
    /// turn, says so, and waits for its input.
    #[test]
    fn waiting_and_computing_are_counted() {
        let mut shell = Command::new("sh");
        shell.args(["-c", "read go; for each in 1 2 3 4 5 6 7 8; do sleep 0.01; done; echo; read x"]);
        let mut shell = shell.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("there is a shell");
        let start = Usage::of(shell.id()).expect("it waits");
        let mut input = shell.stdin.take().expect("it is piped");
        writeln!(input, "go").expect("it reads");
        let mut line = String::new();
        BufReader::new(shell.stdout.take().expect("it is piped")).read_line(&mut line).expect("it writes");
        let window = start.until(&Usage::of(shell.id()).expect("it waits"), 20);
        drop(input);
        shell.wait().expect("its input ended");
        assert!(window.wake_ups >= 8.0 && window.cpu_ns > 0.0 && window.seconds >= 0.08, "{window:?}");
        assert_eq!(window.events, 20.0);
        assert!(Usage::of(shell.id()).is_err(), "there is no such process any more");
    }

    /// Goal: the right line is read. Method: a status as the kernel writes it.
    #[test]
    fn voluntary_switches_are_not_the_others() {
        let status = "Name:\tx\nvoluntary_ctxt_switches:\t150\nnonvoluntary_ctxt_switches:\t545\n";
        assert_eq!(switches(status, "voluntary_ctxt_switches:"), Some(150));
        assert_eq!(switches(status, "nonvoluntary_ctxt_switches:"), Some(545));
        assert_eq!(switches("nonvoluntary_ctxt_switches:\t545\n", "voluntary_ctxt_switches:"), None);
    }
}

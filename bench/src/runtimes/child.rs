//! One run of one program: its lines read, its usage taken when it says so, an end put to it if need be.
//!
//! At most one child is alive. It is kept where the handler of Ctrl-C can end it.

use super::usage::{Usage, Window};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Read};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::Mutex;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

/// No run is longer, and no build.
const LONGEST_RUN: Duration = Duration::from_secs(120);
const LONGEST_BUILD: Duration = Duration::from_secs(900);

/// The child that is alive.
static CHILD: Mutex<Option<Child>> = Mutex::new(None);

/// What came of a run.
#[derive(Clone, Debug, Default)]
pub struct Ran {
    /// Results by name.
    pub figures: BTreeMap<String, f64>,
    /// Microseconds late, by name.
    pub samples: BTreeMap<String, Vec<i64>>,
    /// What was used while it mattered.
    pub window: Option<Window>,
    /// Why there is nothing, as the program says.
    pub absent: Option<String>,
    /// What went wrong.
    pub failed: Option<String>,
}

/// A line of a program.
#[derive(Debug, Deserialize, Serialize)]
#[serde(untagged)]
enum Line {
    Figure { figure: String, value: f64 },
    Samples { samples: String, us: Vec<i64> },
    End { window: String, events: u64 },
    Start { window: String },
    Absent { absent: String },
}

/// Runs `command` to its end. Whatever goes wrong is in [`Ran::failed`].
#[must_use]
pub fn run(command: &mut Command) -> Ran {
    match try_run(command) {
        Ok(ran) => ran,
        Err(error) => Ran { failed: Some(error.to_string()), ..Ran::default() },
    }
}

/// Ends the child that is alive.
pub fn kill() {
    if let Some(child) = lock().as_mut() {
        // It may have ended by itself.
        let _ = child.kill();
    }
}

/// The output of `command`, which is no measurement, to its end.
///
/// # Errors
/// That it cannot be started; or what it said last, if it failed.
pub fn output(command: &mut Command) -> io::Result<String> {
    let mut text = String::new();
    supervise(command, LONGEST_BUILD, |_pid, out| BufReader::new(out).read_to_string(&mut text).map(drop))?;
    Ok(text)
}

fn try_run(command: &mut Command) -> io::Result<Ran> {
    let mut ran = Ran::default();
    supervise(command, LONGEST_RUN, |pid, out| {
        let mut start = None;
        for line in BufReader::new(out).lines() {
            let line = line?;
            match serde_json::from_str(&line) {
                Ok(Line::Start { .. }) => start = Some(Usage::of(pid)?),
                Ok(Line::End { events, .. }) => {
                    let end = Usage::of(pid)?;
                    ran.window = start.map(|start: Usage| start.until(&end, events));
                }
                Ok(Line::Figure { figure, value }) => drop(ran.figures.insert(figure, value)),
                Ok(Line::Samples { samples, us }) => drop(ran.samples.insert(samples, us)),
                Ok(Line::Absent { absent }) => ran.absent = Some(absent),
                Err(error) => return Err(io::Error::other(format!("{error} in the line `{line}`"))),
            }
        }
        Ok(())
    })?;
    Ok(ran)
}

/// Starts `command`, lets `read` have its output, and waits for its end.
fn supervise(
    command: &mut Command,
    longest: Duration,
    read: impl FnOnce(u32, ChildStdout) -> io::Result<()>,
) -> io::Result<()> {
    let name = command.get_program().to_string_lossy().into_owned();
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child =
        command.spawn().map_err(|error| io::Error::other(format!("{name} does not start: {error}")))?;
    let (pid, out, err) = (child.id(), child.stdout.take(), child.stderr.take());
    *lock() = Some(child);
    let complaints = thread::spawn(move || {
        let mut text = Vec::new();
        err.map(|mut err| err.read_to_end(&mut text));
        String::from_utf8_lossy(&text).into_owned()
    });
    let (done, waits) = mpsc::channel::<()>();
    let watchdog = thread::spawn(move || {
        let late = waits.recv_timeout(longest) == Err(RecvTimeoutError::Timeout);
        if late {
            kill();
        }
        late
    });
    let read = out.map_or(Ok(()), |out| read(pid, out));
    if read.is_err() {
        kill();
    }
    let status = end();
    drop(done);
    let late = watchdog.join().unwrap_or(false);
    lock().take();
    let complaints = complaints.join().unwrap_or_default();
    read?;
    if late {
        return Err(io::Error::other(format!("stopped after {} s", longest.as_secs())));
    }
    let status = status?;
    if status.success() {
        return Ok(());
    }
    let said = last_line(&complaints).unwrap_or("it says nothing");
    Err(io::Error::other(format!("{name}: {status}: {said}")))
}

/// Waits for the end of the child, which others can bring about meanwhile: nothing is locked between looks.
fn end() -> io::Result<ExitStatus> {
    loop {
        let status = lock().as_mut().map_or_else(|| Err(io::Error::other("no child")), Child::try_wait)?;
        if let Some(status) = status {
            return Ok(status);
        }
        thread::sleep(Duration::from_millis(1));
    }
}

fn lock() -> std::sync::MutexGuard<'static, Option<Child>> {
    CHILD.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// What most programs end with, or the first of their errors.
fn last_line(text: &str) -> Option<&str> {
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let error = lines.clone().find(|line| line.to_lowercase().starts_with("error"));
    error.or_else(|| lines.next_back())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Children are one at a time, tests are not.
    static ALONE: Mutex<()> = Mutex::new(());

    fn shell(script: &str) -> Ran {
        let _alone = ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        run(Command::new("sh").args(["-c", script]))
    }

    /// Goal: every kind of line is understood. Method: a program that prints one of each.
    #[test]
    fn lines_are_read() {
        let ran = shell(
            r#"echo '{"window":"start"}'; sleep 0.02; echo '{"window":"end","events":7}'
               echo '{"figure":"ns","value":1.5}'; echo '{"samples":"calm","us":[3,-1]}'"#,
        );
        assert_eq!(ran.figures.get("ns"), Some(&1.5), "{ran:?}");
        assert_eq!(ran.samples.get("calm"), Some(&vec![3, -1]));
        assert!(ran.window.is_some_and(|window| window.events == 7.0 && window.seconds > 0.0), "{ran:?}");
        assert!(ran.absent.is_none() && ran.failed.is_none());
    }

    /// Goal: no failure is lost. Method: a reason, a bad line, a bad end, no program.
    #[test]
    fn failures_are_reasons() {
        let ran = shell(r#"echo '{"absent":"no such call"}'"#);
        assert_eq!((ran.absent.as_deref(), ran.failed), (Some("no such call"), None));
        let reason = |ran: Ran| ran.failed.expect("it failed");
        assert!(reason(shell("echo what; sleep 9")).contains("`what`"));
        assert!(reason(shell("echo first >&2; echo then >&2; exit 3")).contains("then"));
        assert!(reason(run(&mut Command::new("./no-such-program"))).contains("does not start"));
    }
}

//! A child that is watched from outside: this program again, as a process of its own.
//!
//! The child says "ready" when it has nothing more to do, and then waits for the end of its input; so it ends
//! with its parent, however that ends. Counting happens in the parent: it costs the child nothing.

use crate::process::{self, Switches, ThreadId};
use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::thread;
use std::time::Duration;

/// What a child says when it can be watched.
const READY: &str = "ready";

/// How long threads that were just started may still be busy with that.
const SETTLE: Duration = Duration::from_secs(2);

/// A process that ends, at the latest, with this value.
#[derive(Debug)]
pub(crate) struct Guarded(pub(crate) Child);

impl Drop for Guarded {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// How much a thread's count grew.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Growth {
    pub(crate) name: String,
    pub(crate) switches: u64,
}

/// Starts this program with `arguments`, and counts its threads' context switches over `span`. Returns also
/// what the child printed after that.
pub(crate) fn watch(arguments: &[String], span: Duration) -> io::Result<(Vec<Growth>, String)> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = Guarded(command.spawn()?);
    let mut output = BufReader::new(child.0.stdout.take().expect("it is piped"));
    await_ready(&mut output)?;
    thread::sleep(SETTLE);
    let before = process::switches(child.0.id())?;
    thread::sleep(span);
    let after = process::switches(child.0.id())?;
    drop(child.0.stdin.take());
    let last_words = io::read_to_string(output)?;
    Ok((growth(&before, &after), last_words))
}

fn await_ready(output: &mut BufReader<ChildStdout>) -> io::Result<()> {
    let mut line = String::new();
    output.read_line(&mut line)?;
    if line.trim_end() == READY { Ok(()) } else { Err(io::Error::other(format!("the child said {line:?}"))) }
}

/// In the child: ready, until the parent has seen enough.
pub(crate) fn be_watched() -> io::Result<()> {
    println!("{READY}");
    io::copy(&mut io::stdin().lock(), &mut io::sink()).map(|_| ())
}

/// A thread that came or went in between counts with all it had.
fn growth(before: &BTreeMap<ThreadId, Switches>, after: &BTreeMap<ThreadId, Switches>) -> Vec<Growth> {
    let came = after.iter().map(|(thread, now)| {
        let then = before.get(thread).map_or(0, Switches::total);
        Growth { name: now.name.clone(), switches: now.total() - then }
    });
    let went = before.iter().filter(|(thread, _)| !after.contains_key(thread));
    came.chain(went.map(|(_, then)| Growth { name: then.name.clone(), switches: then.total() })).collect()
}

//! Running instances: a record and a control socket each, in a folder that only their user can read.
//!
//! A record is a file whose lock its instance holds for as long as it lives: the kernel releases it however
//! the process ends, and process ids of other namespaces cannot confuse it. Process id and start time are
//! written into it too: for messages, and as a second opinion where a file system has no locks. What a dead
//! instance left is removed by the next start of the same name; of a living one nothing is ever touched.
//! A folder that somebody else made or can write to is neither used nor believed: it could lead anywhere.

use crate::error::CliError;
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{Read, Seek, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// What an instance says about itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Record {
    pub(crate) name: String,
    pub(crate) pid: u32,
    /// Clock ticks after the boot, as in /proc/PID/stat.
    pub(crate) start: u64,
    /// What `tc` calls its devices.
    pub(crate) devices: Vec<String>,
    /// Network namespaces that it made.
    pub(crate) namespaces: Vec<String>,
}

impl Record {
    /// One of the calling process.
    pub(crate) fn of_this_process(name: &str, devices: &[&str], namespaces: &[String]) -> Self {
        let pid = std::process::id();
        Self {
            name: name.to_owned(),
            pid,
            start: start_of(pid).unwrap_or_default(),
            devices: devices.iter().map(|&device| device.to_owned()).collect(),
            namespaces: namespaces.to_vec(),
        }
    }
}

/// When process `pid` was started; nothing if there is none.
fn start_of(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    start_in(&stat)
}

/// Field 22 of /proc/PID/stat; the second one, the name, may have blanks and parentheses.
fn start_in(stat: &str) -> Option<u64> {
    stat.rsplit_once(')')?.1.split_whitespace().nth(19)?.parse().ok()
}

/// Whether an instance lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Life {
    Living,
    Dead,
}

/// Who holds the lock lives; who does not is dead, unless its process says otherwise.
fn judge(lock: Life, record: Option<&Record>, start: impl Fn(u32) -> Option<u64>) -> Life {
    let its_process = |record: &Record| start(record.pid) == Some(record.start);
    match lock {
        Life::Living => Life::Living,
        Life::Dead if record.is_some_and(its_process) => Life::Living,
        Life::Dead => Life::Dead,
    }
}

/// The record and the socket of the calling process, both removed with it.
#[derive(Debug)]
pub(crate) struct Instance {
    /// Its lock is ours.
    file: File,
    folder: PathBuf,
    name: String,
}

impl Instance {
    /// Takes the name, and hands out what a dead instance of that name left.
    pub(crate) fn take(name: &str) -> Result<(Self, Option<Record>), CliError> {
        Self::take_in(&folder(), name)
    }

    fn take_in(folder: &Path, name: &str) -> Result<(Self, Option<Record>), CliError> {
        let path = folder.join(format!("{name}.json"));
        let failed = |error: std::io::Error| CliError::Live(format!("{}: {error}", path.display()));
        DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(failed)?;
        check_folder(folder).map_err(CliError::Live)?;
        let until = Instant::now() + Duration::from_secs(1);
        loop {
            let mut options = OpenOptions::new();
            let options = options.read(true).write(true).create(true).truncate(false).mode(0o600);
            let mut file = options.open(&path).map_err(failed)?;
            let is_held = match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => Life::Dead,
                Err(rustix::io::Errno::WOULDBLOCK) => Life::Living,
                Err(error) => return Err(failed(error.into())),
            };
            // Whoever removed the file in between has left us a lock that nobody else can see.
            let same = |found: fs::Metadata| file.metadata().is_ok_and(|own| own.ino() == found.ino());
            if is_held == Life::Dead && !fs::metadata(&path).is_ok_and(same) {
                continue;
            }
            let record = read_record(&mut file);
            let is_gone = record.as_ref().is_some_and(|record| start_of(record.pid) != Some(record.start));
            if is_held == Life::Living && is_gone && Instant::now() < until {
                // Killed just now: what it had begun (`ip`) holds the lock until it is a program of its own.
                std::thread::sleep(Duration::from_millis(10));
                continue;
            }
            if judge(is_held, record.as_ref(), start_of) == Life::Living {
                let pid = record.map_or_else(String::new, |record| format!(" (process {})", record.pid));
                return Err(CliError::Live(format!(
                    "an instance {name} runs already{pid}; end it, or give this one another --name"
                )));
            }
            return Ok((Self { file, folder: folder.to_owned(), name: name.to_owned() }, record));
        }
    }

    /// Writes what this instance is.
    pub(crate) fn write(&mut self, record: &Record) -> Result<(), CliError> {
        let text = serde_json::to_vec(record).map_err(|error| CliError::Output(error.into()))?;
        let written = self.file.set_len(0).and_then(|()| self.file.rewind());
        written
            .and_then(|()| self.file.write_all(&text))
            .map_err(|error| CliError::Write(self.folder.join(&self.name), error))
    }

    /// Where its control socket is.
    pub(crate) fn socket(&self) -> PathBuf {
        socket_of(&self.folder, &self.name)
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        // While the lock is ours; what cannot be removed is found, and is nobody's, at the next start.
        let _ = fs::remove_file(self.socket());
        let _ = fs::remove_file(self.folder.join(format!("{}.json", self.name)));
        // Ours if nobody else is in it.
        let _ = fs::remove_dir(&self.folder);
    }
}

/// The living instances, by name, each with a connection to it: a dead one's socket refuses.
pub(crate) fn running() -> Vec<(Record, UnixStream)> {
    running_in(&folder())
}

fn running_in(folder: &Path) -> Vec<(Record, UnixStream)> {
    if check_folder(folder).is_err() {
        return Vec::new();
    }
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let paths = entries.flatten().map(|entry| entry.path());
    let paths = paths.filter(|path| path.extension().is_some_and(|extension| extension == "json"));
    let living = |path: PathBuf| {
        let record = read_record(&mut File::open(path).ok()?)?;
        let stream = UnixStream::connect(socket_of(folder, &record.name)).ok()?;
        Some((record, stream))
    };
    let mut found: Vec<_> = paths.filter_map(living).collect();
    found.sort_by(|(one, _), (other, _)| one.name.cmp(&other.name));
    found
}

/// Whether nobody else can put anything there; why not, if not.
fn check_folder(folder: &Path) -> Result<(), String> {
    let shown = folder.display();
    // Not of what a link leads to.
    let found = fs::symlink_metadata(folder).map_err(|error| format!("{shown}: {error}"))?;
    if !found.is_dir() || found.uid() != rustix::process::geteuid().as_raw() {
        return Err(format!("{shown} is not a folder of this user: remove it, or set XDG_RUNTIME_DIR"));
    }
    if found.mode() & 0o077 != 0 {
        return Err(format!("{shown} is open to others: `chmod 700` it"));
    }
    Ok(())
}

fn read_record(file: &mut File) -> Option<Record> {
    let mut text = String::new();
    file.take(65_536).read_to_string(&mut text).ok()?;
    serde_json::from_str(&text).ok()
}

fn socket_of(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("{name}.sock"))
}

/// Where records and sockets are: /run/quietcore, or below a user's own runtime folder.
fn folder() -> PathBuf {
    if rustix::process::geteuid().is_root() {
        return PathBuf::from("/run/quietcore");
    }
    let own = || std::env::temp_dir().join(format!("quietcore-{}", rustix::process::geteuid().as_raw()));
    let given = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    // One that depends on where a program was started is none.
    given.filter(|folder| folder.is_absolute()).map_or_else(own, |folder| folder.join("quietcore"))
}

/// Names become parts of file names and of namespaces.
pub(crate) fn name(text: &str) -> Result<String, String> {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    if !text.is_empty() && text.len() <= 32 && text.bytes().all(allowed) && !text.starts_with('-') {
        return Ok(text.to_owned());
    }
    Err(format!("{text:?} is no name: 1 to 32 letters, digits, - and _"))
}

#[cfg(test)]
mod tests {
    use super::{Instance, Life, Record, judge, name, running_in, start_in, start_of};
    use std::os::unix::net::UnixListener;

    fn record() -> Record {
        Record { name: "qc".into(), pid: 70, start: 900, ..Record::default() }
    }

    /// Goal: nobody who lives is taken for dead. Method: all combinations of lock and process.
    #[test]
    fn who_lives() {
        let same = |pid| (pid == 70).then_some(900);
        let (another, gone) = (|_| Some(901), |_| None);
        let record = record();
        assert_eq!(judge(Life::Living, Some(&record), gone), Life::Living, "the lock says so");
        assert_eq!(judge(Life::Living, None, gone), Life::Living, "its record is not written yet");
        assert_eq!(judge(Life::Dead, Some(&record), same), Life::Living, "its process says so");
        assert_eq!(judge(Life::Dead, Some(&record), another), Life::Dead, "its number was given again");
        assert_eq!(judge(Life::Dead, Some(&record), gone), Life::Dead);
        assert_eq!(judge(Life::Dead, None, same), Life::Dead, "no record: it did nothing yet");
    }

    /// Goal: the start time is found whatever a process calls itself.
    #[test]
    fn a_process_may_call_itself_anything() {
        let after = (3..=52).map(|field| format!(" {field}")).collect::<String>();
        assert_eq!(start_in(&format!("70 (a) b) c){after}")), Some(22));
        assert_eq!(start_in("70 (cut) S 1"), None);
        assert!(start_of(std::process::id()).is_some_and(|start| start > 0));
    }

    /// Goal: a name belongs to one; what a dead one left is handed out once; a drop leaves nothing.
    #[test]
    fn a_name_belongs_to_one() {
        let folder = std::env::temp_dir().join(format!("quietcore-instances-{}", std::process::id()));
        let (mut first, left) = Instance::take_in(&folder, "qc").unwrap();
        assert_eq!(left, None);
        first.write(&Record::of_this_process("qc", &["eth1"], &[])).unwrap();
        let refused = Instance::take_in(&folder, "qc").unwrap_err().to_string();
        assert!(refused.contains(&format!("process {}", std::process::id())), "{refused}");
        assert_eq!(running_in(&folder).len(), 0, "it does not listen yet");
        let listener = UnixListener::bind(first.socket()).unwrap();
        let found = running_in(&folder);
        assert_eq!((found.len(), found[0].0.devices.as_slice()), (1, &["eth1".to_owned()][..]));
        // Killed: the lock is gone, the files are not, and the process has another start time.
        let dead = Record { start: 1, ..Record::of_this_process("qc", &["eth1"], &["qc-a".into()]) };
        first.write(&dead).unwrap();
        drop(listener);
        let Instance { file, .. } = &first;
        rustix::fs::flock(file, rustix::fs::FlockOperation::Unlock).unwrap();
        std::mem::forget(first);
        assert_eq!(running_in(&folder).len(), 0, "nobody listens any more");
        let (second, left) = Instance::take_in(&folder, "qc").unwrap();
        assert_eq!(left, Some(dead));
        drop(second);
        assert!(!folder.exists(), "a drop leaves nothing");
    }

    /// Goal: nothing is written to, or believed of, a folder that others can put things into. Method: one
    /// that all may write to, and a link to one's own.
    #[test]
    fn others_folders_are_not_used() {
        use std::os::unix::fs::PermissionsExt;
        let folder = std::env::temp_dir().join(format!("quietcore-others-{}", std::process::id()));
        let link = folder.with_extension("link");
        std::fs::create_dir(&folder).unwrap();
        let victim = folder.join("victim");
        std::fs::write(&victim, "precious").unwrap();
        std::os::unix::fs::symlink(&victim, folder.join("qc.json")).unwrap();
        std::os::unix::fs::symlink(&folder, &link).unwrap();
        let open_to =
            |mode| std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(mode)).unwrap();
        for (mode, path) in [(0o777, &folder), (0o750, &folder), (0o700, &link)] {
            open_to(mode);
            let refused = Instance::take_in(path, "qc").map(drop).unwrap_err().to_string();
            assert!(refused.contains("folder") || refused.contains("chmod"), "{mode:o}: {refused}");
        }
        assert_eq!(std::fs::read_to_string(&victim).unwrap(), "precious");
        std::fs::remove_file(folder.join("qc.json")).unwrap();
        // An instance as it is, but where others could have put it.
        open_to(0o700);
        let (mut first, _) = Instance::take_in(&folder, "qc").unwrap();
        first.write(&record()).unwrap();
        let listener = UnixListener::bind(first.socket()).unwrap();
        assert_eq!(running_in(&folder).len(), 1);
        open_to(0o777);
        assert_eq!(running_in(&folder).len(), 0, "not believed");
        drop((listener, first));
        std::fs::remove_dir_all(&folder).unwrap();
        std::fs::remove_file(&link).unwrap();
    }

    /// Goal: no name leads out of the folder.
    #[test]
    fn names_are_plain() {
        assert_eq!(name("qc-2_x"), Ok("qc-2_x".into()));
        for bad in ["", "../x", "a/b", "a b", "-a", "ä", &"x".repeat(33)] {
            assert!(name(bad).is_err(), "{bad:?}");
        }
    }
}

//! Names of running instances: a record and a control socket each, in a folder that only their user can read.
//!
//! A record is a file whose lock its instance holds for as long as it lives: the kernel releases it however
//! the process ends, and process ids of other namespaces cannot confuse it. Process id and start time are
//! written into it too: for messages, and as a second opinion where a file system has no locks. What a dead
//! instance left is removed by the next start of the same name; of a living one nothing is ever touched.
//! A folder that another user made or can write to is neither used nor believed: it could lead anywhere.

use super::error::InstanceError;
use crate::tun::NamespaceId;
use rustix::fs::{FlockOperation, flock};
use rustix::process::Uid;
use serde::{Deserialize, Serialize};
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{Read, Seek, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long a name is waited for whose process is gone.
const GONE_WITHIN: Duration = Duration::from_secs(1);

/// What an instance says about itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct InstanceRecord {
    /// Its name.
    pub name: String,
    /// Its process.
    pub pid: u32,
    /// When that was started: clock ticks after the boot, as in /proc/PID/stat.
    pub start: u64,
    /// What lines of `tc` call its devices.
    pub devices: Vec<String>,
    /// Network namespaces that it made, or was about to name.
    pub namespaces: Vec<NamespaceRecord>,
}

/// A network namespace of an instance.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamespaceRecord {
    /// Its name.
    pub name: String,
    /// Which one it is, in case another one has that name by now.
    pub id: NamespaceId,
}

impl InstanceRecord {
    /// One of the calling process.
    pub(crate) fn of_this_process(name: &str, devices: &[String], namespaces: &[NamespaceRecord]) -> Self {
        let pid = std::process::id();
        Self {
            name: name.to_owned(),
            pid,
            start: start_of(pid).unwrap_or_default(),
            devices: devices.to_vec(),
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

/// An instance whose lock is held lives; else it is dead, unless its process still runs.
fn judge(lock: Life, record: Option<&InstanceRecord>, start: impl Fn(u32) -> Option<u64>) -> Life {
    let its_process = |record: &InstanceRecord| start(record.pid) == Some(record.start);
    match lock {
        Life::Living => Life::Living,
        Life::Dead if record.is_some_and(its_process) => Life::Living,
        Life::Dead => Life::Dead,
    }
}

/// A name that the calling process has taken: its record and its socket, both removed by a drop.
#[derive(Debug)]
pub(super) struct TakenName {
    /// This process holds its lock.
    file: File,
    folder: PathBuf,
    name: String,
}

impl TakenName {
    /// Takes the name; also returns the record that a dead instance of that name left.
    pub(super) fn take(name: &str) -> Result<(Self, Option<InstanceRecord>), InstanceError> {
        Self::take_in(&folder(), name, GONE_WITHIN)
    }

    /// Waits as long as `patience` for what a killed process has begun.
    fn take_in(
        folder: &Path,
        name: &str,
        patience: Duration,
    ) -> Result<(Self, Option<InstanceRecord>), InstanceError> {
        let path = record_of(folder, name);
        let failed = |error: std::io::Error| InstanceError::Record { path: path.clone(), error };
        DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(failed)?;
        check_folder(folder)?;
        let until = Instant::now() + patience;
        loop {
            let mut options = OpenOptions::new();
            let options = options.read(true).write(true).create(true).truncate(false).mode(0o600);
            let mut file = options.open(&path).map_err(failed)?;
            let is_held = match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => Life::Dead,
                Err(rustix::io::Errno::WOULDBLOCK) => Life::Living,
                Err(error) => return Err(failed(error.into())),
            };
            // If the file was removed meanwhile, this lock is on a file that no other instance can open.
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
                let pid = record.map(|record| record.pid);
                return Err(InstanceError::NameTaken { name: name.to_owned(), pid });
            }
            return Ok((Self { file, folder: folder.to_owned(), name: name.to_owned() }, record));
        }
    }

    /// Writes the record.
    pub(super) fn write(&mut self, record: &InstanceRecord) -> Result<(), InstanceError> {
        let text = serde_json::to_vec(record).map_err(std::io::Error::from);
        let written = text.and_then(|text| {
            self.file.set_len(0)?;
            self.file.rewind()?;
            self.file.write_all(&text)
        });
        let path = record_of(&self.folder, &self.name);
        written.map_err(|error| InstanceError::Record { path, error })
    }

    /// Where its control socket is.
    pub(super) fn socket(&self) -> PathBuf {
        socket_of(&self.folder, &self.name)
    }
}

impl Drop for TakenName {
    fn drop(&mut self) {
        // Under the lock. What cannot be removed is found at the next start, without a lock.
        let _ = fs::remove_file(self.socket());
        let _ = fs::remove_file(record_of(&self.folder, &self.name));
        // Fails while other instances are in it.
        let _ = fs::remove_dir(&self.folder);
    }
}

/// The living instances of this user by name, each with a connection to its control socket.
///
/// A dead instance's socket refuses, so it is not among them.
#[must_use]
pub fn running() -> Vec<(InstanceRecord, UnixStream)> {
    running_in(&folder())
}

fn running_in(folder: &Path) -> Vec<(InstanceRecord, UnixStream)> {
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

/// Refuses a folder into which another user can put something.
fn check_folder(folder: &Path) -> Result<(), InstanceError> {
    // Not of what a link leads to.
    let found = fs::symlink_metadata(folder);
    let found = found.map_err(|error| InstanceError::Record { path: folder.to_owned(), error })?;
    if !found.is_dir() || found.uid() != rustix::process::geteuid().as_raw() {
        return Err(InstanceError::FolderNotOwn(folder.to_owned()));
    }
    if found.mode() & 0o077 != 0 {
        return Err(InstanceError::FolderOpen(folder.to_owned()));
    }
    Ok(())
}

fn read_record(file: &mut File) -> Option<InstanceRecord> {
    let mut text = String::new();
    file.take(65_536).read_to_string(&mut text).ok()?;
    serde_json::from_str(&text).ok()
}

fn record_of(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("{name}.json"))
}

fn socket_of(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("{name}.sock"))
}

/// Where records and sockets are.
fn folder() -> PathBuf {
    let given = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    folder_for(rustix::process::geteuid(), given, &std::env::temp_dir())
}

/// /run/quietcore, or below a user's own runtime folder if one is `given`.
fn folder_for(user: Uid, given: Option<PathBuf>, temporary: &Path) -> PathBuf {
    if user.is_root() {
        return PathBuf::from("/run/quietcore");
    }
    // A relative path would depend on where the program was started.
    match given.filter(|folder| folder.is_absolute()) {
        Some(folder) => folder.join("quietcore"),
        None => temporary.join(format!("quietcore-{}", user.as_raw())),
    }
}

#[cfg(test)]
mod tests {
    use super::{
        GONE_WITHIN, InstanceError, InstanceRecord, Life, NamespaceId, NamespaceRecord, TakenName, Uid,
        check_folder, folder_for, judge, record_of, running_in, start_in, start_of,
    };
    use rustix::fs::{FlockOperation, flock};
    use std::fs::File;
    use std::os::unix::net::UnixListener;
    use std::path::{Path, PathBuf};
    use std::time::Duration;

    fn take_in(folder: &Path, name: &str) -> Result<(TakenName, Option<InstanceRecord>), InstanceError> {
        TakenName::take_in(folder, name, GONE_WITHIN)
    }

    fn test_folder(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("quietcore-{name}-{}", std::process::id()))
    }

    fn record() -> InstanceRecord {
        InstanceRecord { name: "qc".into(), pid: 70, start: 900, ..InstanceRecord::default() }
    }

    /// Goal: no living instance is taken for dead. Method: all combinations of lock and process.
    #[test]
    fn the_living_are_told_from_the_dead() {
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
        let folder = test_folder("instances");
        let (mut first, left) = take_in(&folder, "qc").unwrap();
        assert_eq!(left, None);
        first.write(&InstanceRecord::of_this_process("qc", &["eth1".into()], &[])).unwrap();
        let refused = take_in(&folder, "qc").unwrap_err().to_string();
        assert_eq!(refused, format!("an instance qc runs already (process {})", std::process::id()));
        assert_eq!(running_in(&folder).len(), 0, "it does not listen yet");
        let listener = UnixListener::bind(first.socket()).unwrap();
        let found = running_in(&folder);
        let own = InstanceRecord {
            name: "qc".into(),
            pid: std::process::id(),
            start: start_of(std::process::id()).unwrap(),
            devices: vec!["eth1".into()],
            namespaces: Vec::new(),
        };
        assert_eq!(found.into_iter().map(|(record, _)| record).collect::<Vec<_>>(), [own]);
        // Killed: the lock is gone, the files are not, and the process has another start time.
        let namespace = NamespaceRecord { name: "qc-a".into(), id: NamespaceId::default() };
        let dead = InstanceRecord {
            start: 1,
            ..InstanceRecord::of_this_process("qc", &["eth1".into()], std::slice::from_ref(&namespace))
        };
        assert_eq!(dead.namespaces, [namespace]);
        first.write(&dead).unwrap();
        drop(listener);
        let TakenName { file, .. } = &first;
        flock(file, FlockOperation::Unlock).unwrap();
        std::mem::forget(first);
        assert_eq!(running_in(&folder).len(), 0, "its socket is closed");
        let (second, left) = take_in(&folder, "qc").unwrap();
        assert_eq!(left, Some(dead));
        drop(second);
        assert!(!folder.exists(), "a drop leaves nothing");
    }

    /// Goal: the name of a process that was killed is waited for, as what it had begun holds the lock for a
    /// moment; that of a living one is not. Method: another descriptor holds the lock, and lets it go.
    #[test]
    fn a_killed_ones_name_is_waited_for() {
        let folder = test_folder("killed");
        let (mut first, _) = take_in(&folder, "qc").unwrap();
        first.write(&InstanceRecord { start: 1, ..record() }).unwrap();
        let refused = TakenName::take_in(&folder, "qc", Duration::ZERO).unwrap_err();
        assert_eq!(refused.to_string(), "an instance qc runs already (process 70)");
        let file = first.file.try_clone().unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(Duration::from_millis(50));
                flock(&file, FlockOperation::Unlock).unwrap();
            });
            // Longer than the other thread takes on any machine.
            let (second, left) = TakenName::take_in(&folder, "qc", Duration::from_secs(60)).unwrap();
            assert_eq!(left.map(|left| left.start), Some(1));
            std::mem::forget(second);
        });
        drop(first);
        assert!(!folder.exists());
    }

    /// Goal: running instances are listed by name, and nothing but records is read. Method: two that started
    /// in the other order, and a copy of a record under another name.
    #[test]
    fn running_instances_are_sorted() {
        let folder = test_folder("sorted");
        let start = |name: &str| {
            let (mut taken, _) = take_in(&folder, name).unwrap();
            taken.write(&InstanceRecord::of_this_process(name, &[], &[])).unwrap();
            assert_eq!(taken.socket(), folder.join(format!("{name}.sock")));
            let listener = UnixListener::bind(taken.socket()).unwrap();
            (taken, listener)
        };
        let running = ["d", "b", "c", "a"].map(start);
        let copy = folder.join("copy");
        std::fs::copy(record_of(&folder, "a"), &copy).unwrap();
        let names: Vec<_> = running_in(&folder).into_iter().map(|(record, _)| record.name).collect();
        std::fs::remove_file(copy).unwrap();
        drop(running);
        assert_eq!(names, ["a", "b", "c", "d"]);
        assert!(!folder.exists());
    }

    /// Goal: what cannot be read or written is told with its place. Method: a folder that is not there, one
    /// where none can be, and a record whose file is open for reading only.
    #[test]
    fn what_cannot_be_written_is_named() {
        let folder = test_folder("named");
        let told = |error: InstanceError| error.to_string();
        let missing = check_folder(&folder).map_err(told).unwrap_err();
        assert!(missing.starts_with(&format!("{}: ", folder.display())), "{missing}");
        let (taken, _) = take_in(&folder, "qc").unwrap();
        let path = record_of(&folder, "qc");
        let inside = take_in(&path.join("x"), "qc").map(drop).map_err(told).unwrap_err();
        assert!(inside.starts_with(&format!("{}: ", path.join("x/qc.json").display())), "{inside}");
        let file = File::open(&path).unwrap();
        let mut read_only = TakenName { file, folder: folder.clone(), name: "qc".to_owned() };
        let refused = read_only.write(&record()).map_err(told).unwrap_err();
        assert!(refused.starts_with(&format!("{}: ", path.display())), "{refused}");
        drop((read_only, taken));
        assert!(!folder.exists());
    }

    /// Goal: each user has a folder of their own. Method: root, a user with a runtime folder, and one
    /// without.
    #[test]
    fn each_user_has_a_folder() {
        let (user, temporary) = (Uid::from_raw(1_007), Path::new("/tmp"));
        let of = |user, given: Option<&str>| folder_for(user, given.map(PathBuf::from), temporary);
        assert_eq!(of(Uid::ROOT, Some("/run/user/0")), Path::new("/run/quietcore"));
        assert_eq!(of(user, Some("/run/user/1007")), Path::new("/run/user/1007/quietcore"));
        for none in [None, Some("run/user/1007")] {
            assert_eq!(of(user, none), Path::new("/tmp/quietcore-1007"), "{none:?}");
        }
    }

    /// Goal: nothing is written to, or believed of, a folder that others can put things into. Method: one
    /// that all may write to, and a link to one's own.
    #[test]
    fn others_folders_are_not_used() {
        use std::os::unix::fs::PermissionsExt;
        let folder = test_folder("others");
        let link = folder.with_extension("link");
        std::fs::create_dir(&folder).unwrap();
        let victim = folder.join("victim");
        std::fs::write(&victim, "precious").unwrap();
        std::os::unix::fs::symlink(&victim, folder.join("qc.json")).unwrap();
        std::os::unix::fs::symlink(&folder, &link).unwrap();
        let open_to =
            |mode| std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(mode)).unwrap();
        let (open, not_own) = (
            "is open to others: `chmod 700` it",
            "is not a folder of this user: remove it, or set XDG_RUNTIME_DIR",
        );
        for (mode, path, why) in [(0o777, &folder, open), (0o750, &folder, open), (0o700, &link, not_own)] {
            open_to(mode);
            let refused = take_in(path, "qc").map(drop).unwrap_err().to_string();
            assert_eq!(refused, format!("{} {why}", path.display()), "{mode:o}");
        }
        assert_eq!(std::fs::read_to_string(&victim).unwrap(), "precious");
        std::fs::remove_file(folder.join("qc.json")).unwrap();
        // An instance as it is, but where others could have put it.
        open_to(0o700);
        let (mut first, _) = take_in(&folder, "qc").unwrap();
        first.write(&record()).unwrap();
        let listener = UnixListener::bind(first.socket()).unwrap();
        assert_eq!(running_in(&folder).len(), 1);
        open_to(0o777);
        assert_eq!(running_in(&folder).len(), 0, "not believed");
        drop((listener, first));
        std::fs::remove_dir_all(&folder).unwrap();
        std::fs::remove_file(&link).unwrap();
    }
}

//! What is written where, in a folder of other users, too. Tests that need another user run as root only.

use super::{AtomicFile, OutputContent, Place, named, temporary_name};
use rustix::thread::{CapabilitySet, CapabilitySets};
use std::fs::{self, Permissions};
use std::io::{BufWriter, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, lchown, symlink};
use std::path::{Path, PathBuf};

const OTHER_USER: Option<u32> = Some(65_534);

/// An empty folder of this test.
fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("quietcore-atomic-{name}-{}", std::process::id()));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    folder
}

fn write(target: &Path, content: OutputContent, text: &str) -> Result<(), String> {
    let mut file = AtomicFile::create(target, content).map_err(|error| error.to_string())?;
    file.write_all(text.as_bytes()).unwrap();
    file.finish().map_err(|error| error.to_string())
}

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().mode() & 0o7777
}

/// Whether `test` can give files to another user.
fn is_root(test: &str) -> bool {
    let is_root = rustix::process::geteuid().is_root();
    if !is_root {
        quietcore_testing::left_out(test, "only root can give files to another user");
    }
    is_root
}

/// Goal: only regular files are replaced; a link of our own stays, and its file is.
#[test]
fn only_a_regular_file_is_replaced() {
    let folder = folder("kinds");
    assert!(write(&folder, OutputContent::Ordinary, "").is_err(), "a folder");
    assert!(write(Path::new("/dev/null"), OutputContent::Ordinary, "").is_err(), "a device");
    let (file, link) = (folder.join("file"), folder.join("link"));
    fs::write(&file, "old").unwrap();
    symlink("file", folder.join("second")).unwrap();
    symlink(folder.join("second"), &link).unwrap();
    write(&link, OutputContent::Ordinary, "new").unwrap();
    assert!(link.is_symlink());
    assert_eq!(fs::read(&file).unwrap(), b"new");
    symlink("circle", folder.join("circle")).unwrap();
    assert!(write(&folder.join("circle"), OutputContent::Ordinary, "").is_err(), "a link to itself");
    fs::remove_dir_all(&folder).unwrap();
}

/// Goal: the file appears whole at the end, and an abandoned one leaves nothing.
#[test]
fn a_file_appears_whole_or_not_at_all() {
    let folder = folder("whole");
    let target = folder.join("metrics.prom");
    let mut abandoned = AtomicFile::create(&target, OutputContent::Ordinary).unwrap();
    abandoned.write_all(b"half").unwrap();
    drop(abandoned);
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
    let mut whole = AtomicFile::create(&target, OutputContent::Ordinary).unwrap();
    whole.write_all(b"whole").unwrap();
    assert!(!target.exists());
    whole.finish().unwrap();
    assert_eq!(fs::read(&target).unwrap(), b"whole");
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
    fs::remove_dir_all(&folder).unwrap();
}

/// Goal: a link that another user planted leads nowhere. Method: one to a private file.
#[test]
fn a_link_of_another_user_is_not_followed() {
    if !is_root("a_link_of_another_user_is_not_followed") {
        return;
    }
    let folder = folder("planted");
    let (victim, link) = (folder.join("victim"), folder.join("report.prom"));
    fs::write(&victim, "precious").unwrap();
    symlink(&victim, &link).unwrap();
    lchown(&link, OTHER_USER, None).unwrap();
    let error = write(&link, OutputContent::Ordinary, "new").unwrap_err();
    assert!(error.contains("symbolic link of another user (uid 65534)"), "{error}");
    assert_eq!(fs::read(&victim).unwrap(), b"precious");
    fs::remove_dir_all(&folder).unwrap();
}

/// Goal: another user gets no content by leaving a file of its own where all users can write; in a folder
/// of ours such a file is replaced. Method: the same file under both modes of the folder.
#[test]
fn a_file_that_another_user_left_in_a_shared_folder_is_refused() {
    if !is_root("a_file_that_another_user_left_in_a_shared_folder_is_refused") {
        return;
    }
    let folder = folder("shared");
    let target = folder.join("report.prom");
    fs::write(&target, "").unwrap();
    chown(&target, OTHER_USER, None).unwrap();
    fs::set_permissions(&folder, Permissions::from_mode(0o1777)).unwrap();
    let error = write(&target, OutputContent::Live, "new").unwrap_err();
    assert!(error.contains("a folder in which all users can write"), "{error}");
    fs::set_permissions(&folder, Permissions::from_mode(0o755)).unwrap();
    write(&target, OutputContent::Live, "new").unwrap();
    fs::remove_dir_all(&folder).unwrap();
}

/// Goal: our own file is replaced where all users can write, too.
#[test]
fn a_file_of_ours_in_a_shared_folder_is_replaced() {
    let folder = folder("ours");
    let target = folder.join("report.prom");
    fs::write(&target, "old").unwrap();
    fs::set_permissions(&folder, Permissions::from_mode(0o1777)).unwrap();
    write(&target, OutputContent::Ordinary, "new").unwrap();
    assert_eq!(fs::read(&target).unwrap(), b"new");
    fs::remove_dir_all(&folder).unwrap();
}

/// Goal: without privileges, too, a folder need not be read to write a file in it, and an owner that cannot
/// be kept is a reason to write nothing. Method: on a thread that gives up its capabilities, in a folder that
/// is not readable, a new file and one of another user.
#[test]
fn without_privileges_an_owner_cannot_be_kept() {
    let folder = folder("unprivileged");
    let [new, other] = ["new", "other"].map(|name| folder.join(name));
    fs::write(&other, "theirs").unwrap();
    let has_other_user = is_root("another user's file in without_privileges_an_owner_cannot_be_kept");
    if has_other_user {
        chown(&other, Some(1234), Some(5678)).unwrap();
    }
    fs::set_permissions(&folder, Permissions::from_mode(0o300)).unwrap();
    let work = || {
        let permitted = rustix::thread::capabilities(None).unwrap().permitted;
        let (effective, inheritable) = (CapabilitySet::empty(), CapabilitySet::empty());
        let sets = CapabilitySets { effective, permitted, inheritable };
        rustix::thread::set_capabilities(None, sets).unwrap();
        (write(&new, OutputContent::Ordinary, "new"), write(&other, OutputContent::Ordinary, "new"))
    };
    let (written, refused) = std::thread::scope(|scope| scope.spawn(work).join().unwrap());
    fs::set_permissions(&folder, Permissions::from_mode(0o700)).unwrap();
    assert_eq!((written, fs::read(&new).unwrap()), (Ok(()), b"new".into()));
    if has_other_user {
        let why = "its owner (uid 1234, gid 5678) cannot be kept: Operation not permitted (os error 1); \
                   remove it first, or name another file";
        assert_eq!(refused, Err(format!("writing {} failed: {why}", other.display())));
        assert_eq!(fs::read(&other).unwrap(), b"theirs");
    }
    fs::remove_dir_all(&folder).unwrap();
}

/// Goal: the file goes to the folder that was named when the work began. Method: meanwhile the folder is
/// moved, and a link to another one takes its name.
#[test]
fn a_folder_that_is_swapped_changes_nothing() {
    let folder = folder("swapped");
    let (named, moved, other) = (folder.join("d"), folder.join("d.old"), folder.join("other"));
    fs::create_dir(&named).unwrap();
    fs::create_dir(&other).unwrap();
    let mut file = AtomicFile::create(&named.join("cron"), OutputContent::Ordinary).unwrap();
    file.write_all(b"new").unwrap();
    fs::rename(&named, &moved).unwrap();
    symlink(&other, &named).unwrap();
    file.finish().unwrap();
    assert_eq!(fs::read_dir(&other).unwrap().count(), 0);
    assert_eq!(fs::read(moved.join("cron")).unwrap(), b"new");
    fs::remove_dir_all(&folder).unwrap();
}

/// Goal: a replaced file keeps who may read it, whatever it is to hold, and does not run as its owner.
/// Method: unusual modes, with and without an owner and a group of its own.
#[test]
fn a_replaced_file_keeps_mode_and_owner() {
    let folder = folder("kept");
    let target = folder.join("out");
    let owner = if is_root("the owner in a_replaced_file_keeps_mode_and_owner") { Some(1234) } else { None };
    for (had, kept, content, user, group) in [
        (0o600, 0o600, OutputContent::Ordinary, owner, None),
        (0o640, 0o640, OutputContent::Live, None, owner),
        (0o4714, 0o714, OutputContent::Ordinary, owner, owner),
        (0o2604, 0o604, OutputContent::Ordinary, None, None),
    ] {
        fs::write(&target, "old").unwrap();
        chown(&target, user, group).unwrap();
        fs::set_permissions(&target, Permissions::from_mode(had)).unwrap();
        let before = fs::metadata(&target).unwrap();
        write(&target, content, "new").unwrap();
        let after = fs::metadata(&target).unwrap();
        assert_eq!((after.uid(), after.gid()), (before.uid(), before.gid()), "{had:o}");
        assert_eq!((mode(&target), fs::read(&target).unwrap().as_slice()), (kept, &b"new"[..]), "{had:o}");
        fs::remove_file(&target).unwrap();
    }
    fs::remove_dir_all(&folder).unwrap();
}

/// Goal: what was recorded live is for its owner alone, and the umask decides of the rest. Method: beside a
/// file that the standard library makes.
#[test]
fn a_new_file_is_as_open_as_its_content() {
    let folder = folder("new");
    let [live, ordinary, usual] = ["live", "ordinary", "usual"].map(|name| folder.join(name));
    write(&live, OutputContent::Live, "").unwrap();
    write(&ordinary, OutputContent::Ordinary, "").unwrap();
    fs::write(&usual, "").unwrap();
    assert_eq!((mode(&live), mode(&ordinary)), (0o600, mode(&usual)));
    fs::remove_dir_all(&folder).unwrap();
}

/// Goal: a temporary that is not ours stays, and does not keep us from writing. Method: the first name is
/// taken, for a file without a name until its end and for one that has a name from the beginning.
#[test]
fn a_foreign_temporary_stays() {
    let folder = folder("foreign");
    let (target, foreign) = (folder.join("out"), folder.join(temporary_name(0)));
    fs::write(&foreign, "other").unwrap();
    write(&target, OutputContent::Ordinary, "unnamed").unwrap();
    let (place, _) = Place::of(&target).unwrap();
    let (file, temporary) = named(&place.folder, 0o600).unwrap();
    let file = Some(BufWriter::new(fs::File::from(file)));
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 3, "the target, the foreign file, and ours");
    drop(AtomicFile { file, place, temporary: Some(temporary), target: target.clone() });
    assert_eq!(
        (fs::read(&foreign).unwrap(), fs::read(&target).unwrap()),
        (b"other".into(), b"unnamed".into())
    );
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 2, "the target and the foreign file");
    fs::remove_dir_all(&folder).unwrap();
}

//! `quietcore doctor --collect`: a host that was collected is examined as the host itself.

use flate2::read::GzDecoder;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tar::Archive;

fn doctor(args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_quietcore"));
    command.arg("doctor").args(args).output().expect("quietcore runs")
}

/// An empty folder of this test.
fn scratch(name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("collect-{name}"));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("a temporary folder");
    folder
}

fn hosts() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../explain/tests/hosts")
}

fn utf8(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

fn collect(root: &Path, archive: &Path) -> Output {
    doctor(&["--root", utf8(root), "--collect", utf8(archive)])
}

fn unpack(archive: &Path, folder: &Path) {
    Archive::new(GzDecoder::new(File::open(archive).expect("an archive")))
        .unpack(folder)
        .expect("it unpacks");
}

/// The JSON of a check-up, without the name of its folder.
fn examined(root: &Path) -> Value {
    let output = doctor(&["--root", utf8(root), "--json", "--exit-zero"]);
    let mut json: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    json.as_object_mut().expect("an object").remove("root");
    json
}

/// What an archive has, and the permissions it gives.
fn contents(archive: &Path) -> BTreeMap<String, (u32, Vec<u8>)> {
    let mut archive = Archive::new(GzDecoder::new(File::open(archive).expect("an archive")));
    let mut contents = BTreeMap::new();
    for entry in archive.entries().expect("entries") {
        let mut entry = entry.expect("an entry");
        let mut bytes = Vec::new();
        entry.read_to_end(&mut bytes).expect("its bytes");
        let path = entry.path().expect("a path").to_string_lossy().into_owned();
        contents.insert(path, (entry.header().mode().expect("a mode"), bytes));
    }
    contents
}

/// Goal: a collected host gives the report of the original. Method: every host of the tests of the rules,
/// collected, unpacked and examined; of one the links that lead out of it cannot be had.
#[test]
fn a_collected_host_gives_the_same_report() {
    let folder = scratch("same");
    let mut count = 0;
    for host in fs::read_dir(hosts()).expect("hosts") {
        let root = host.expect("a host").path();
        let name = root.file_name().expect("a name").to_string_lossy().into_owned();
        let (archive, unpacked) = (folder.join(format!("{name}.tgz")), folder.join(&name));
        let collected = collect(&root, &archive);
        let said = String::from_utf8_lossy(&collected.stdout).into_owned();
        assert_eq!(collected.status.code(), Some(0), "{name}: {said}");
        unpack(&archive, &unpacked);
        let (mut original, mut copy) = (examined(&root), examined(&unpacked));
        if name == "garbled" {
            let lost = ["/proc/cmdline", "/sys/devices/system/cpu/possible", "/sys/kernel/mm/ksm/run"];
            for path in lost {
                assert!(said.contains(&format!("left out {path}: ")), "{said}");
            }
            let all = original["unreadable"].as_array_mut().expect("a list");
            all.retain(|one| !lost.contains(&one["path"].as_str().expect("a path")));
            assert!(all.len() > 10, "{all:?}");
            for json in [&mut original, &mut copy] {
                json["summary"].as_object_mut().expect("an object").remove("unreadable");
            }
        } else {
            assert!(!said.contains("left out"), "{name}: {said}");
        }
        assert_eq!(original, copy, "{name}");
        count += 1;
    }
    assert!(count > 10, "{count} hosts");
}

/// A host of a few files, which all users may read.
fn small_host(folder: &Path) -> PathBuf {
    let root = folder.join("small");
    for (path, text) in [
        ("proc/cmdline", "token=hush isolcpus=domain,1 quiet"),
        ("proc/sys/kernel/osrelease", "6.12.1\n"),
        ("sys/devices/system/cpu/online", "0-1\n"),
        ("sys/devices/system/cpu/isolated", "1\n"),
        ("proc/self/status", "Name:\tx\nCpus_allowed_list:\t0-1\nMems_allowed:\t1\n"),
        ("etc/shadow", "root:hush"),
    ] {
        let file = root.join(path);
        fs::create_dir_all(file.parent().expect("a folder")).expect("a temporary folder");
        fs::write(&file, text).expect("a temporary file");
        fs::set_permissions(&file, PermissionsExt::from_mode(0o644)).expect("its own file");
    }
    root
}

/// Goal: the archive has what the check-up reads, and nothing else of the host. Method: a small host with a
/// file that is not read, and with lines and words that are not; all that is in the archive.
#[test]
fn only_what_is_read_is_collected() {
    let folder = scratch("only");
    let (root, archive) = (small_host(&folder), folder.join("a.tgz"));
    assert_eq!(collect(&root, &archive).status.code(), Some(0));
    let found = contents(&archive);
    let files = found.iter().filter(|(path, _)| !path.ends_with('/') && !root.join(path).is_dir());
    let files: Vec<_> = files
        .map(|(path, (_, bytes))| (path.as_str(), String::from_utf8_lossy(bytes).into_owned()))
        .collect();
    let expected = [
        ("proc/cmdline", "isolcpus=domain,1"),
        ("proc/self/status", "Cpus_allowed_list:\t0-1"),
        ("proc/sys/kernel/osrelease", "6.12.1\n"),
        ("sys/devices/system/cpu/isolated", "1\n"),
        ("sys/devices/system/cpu/online", "0-1\n"),
    ];
    assert_eq!(files, expected.map(|(path, text)| (path, text.to_owned())));
}

/// Goal: a new archive is for its owner alone if something in it is. Method: a host that all users may read,
/// and the same with one file that they may not; what a plain file gets beside it.
#[test]
fn a_private_file_makes_the_archive_private() {
    let folder = scratch("private");
    let (root, usual) = (small_host(&folder), folder.join("usual"));
    let mode = |file: &Path| fs::metadata(file).expect("a file").permissions().mode() & 0o777;
    fs::write(&usual, "").expect("a temporary file");
    let (public, private) = (folder.join("public.tgz"), folder.join("private.tgz"));
    let said = collect(&root, &public).stdout;
    assert!(String::from_utf8_lossy(&said).contains("every user of this host may read them all\n"));
    let release = root.join("proc/sys/kernel/osrelease");
    fs::set_permissions(release, PermissionsExt::from_mode(0o640)).expect("its own file");
    let said = collect(&root, &private).stdout;
    assert!(String::from_utf8_lossy(&said).contains("so a new archive is for you alone\n"));
    assert_eq!((mode(&public), mode(&private)), (mode(&usual), 0o600));
    let modes = |archive: &Path| contents(archive)["proc/sys/kernel/osrelease"].0;
    assert_eq!((modes(&public), modes(&private)), (0o644, 0o600));
}

/// Goal: an archive that cannot be written is an error that names it, and leaves nothing. Method: a folder
/// that is not there, a folder in its place, options that do not go together.
#[test]
fn what_cannot_be_collected_is_an_error() {
    let folder = scratch("refused");
    let root = small_host(&folder);
    for (archive, why) in [
        (folder.join("no/such/a.tgz"), "No such file"),
        (folder.join("small"), "this is no regular file"),
        (PathBuf::from("/dev/null"), "this is no regular file"),
    ] {
        let output = collect(&root, &archive);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(utf8(&archive)) && said.contains(why), "{said}");
        assert_eq!(String::from_utf8_lossy(&output.stdout), "");
    }
    let left: Vec<_> =
        fs::read_dir(&folder).expect("the folder").map(|one| one.expect("one").path()).collect();
    assert_eq!(left, std::slice::from_ref(&root));
    for other in ["--json", "--exit-zero"] {
        let output = doctor(&["--root", utf8(&root), "--collect", utf8(&folder.join("a.tgz")), other]);
        assert_eq!(output.status.code(), Some(2), "{other}");
    }
}

/// Goal: the running host can be collected by any user. Method: this one; the copy has its kernel and CPUs.
#[test]
fn the_running_host_can_be_collected() {
    let folder = scratch("live");
    let (archive, unpacked) = (folder.join("a.tgz"), folder.join("host"));
    assert_eq!(collect(Path::new("/"), &archive).status.code(), Some(0));
    unpack(&archive, &unpacked);
    let (host, copy) = (examined(Path::new("/")), examined(&unpacked));
    for name in ["kernel", "isolated", "nohz_full", "clocksource", "timer_migration"] {
        assert_eq!(host["summary"][name], copy["summary"][name], "{name}");
    }
}

//! `netem tun --unprivileged`: namespaces of this process's own, in which it is root, and nowhere else.
//!
//! A user namespace in which the caller is user 0, with a network and mounts of its own; there /run is an
//! empty folder in memory, so that `ip` and instances have their names among themselves. Nothing of it has a
//! name outside: with the last process in it, it is gone.
//!
//! Invariant: it is entered before there is a second thread, so all threads are in it.
//! Deliberately absent: users besides the caller, which would need `newuidmap` and its list.

use crate::error::CliError;
use quietcore_net::tun::system_program;
use rustix::fs::Access;
use rustix::io::Errno;
use rustix::thread::UnshareFlags;
use std::fs;
use std::path::Path;

const INSTEAD: &str = "or run it as root; `quietcore netem relay` needs no namespaces";

/// A setting of the kernel that forbids user namespaces: its file, the value that does, what to type.
struct Forbidding {
    file: &'static str,
    value: &'static str,
    remedy: &'static str,
}

const SETTINGS: [Forbidding; 3] = [
    Forbidding {
        file: "proc/sys/user/max_user_namespaces",
        value: "0",
        remedy: "user.max_user_namespaces is 0; as root: sysctl user.max_user_namespaces=10000",
    },
    Forbidding {
        file: "proc/sys/kernel/unprivileged_userns_clone",
        value: "0",
        remedy: "kernel.unprivileged_userns_clone is 0; as root: sysctl kernel.unprivileged_userns_clone=1",
    },
    Forbidding {
        file: "proc/sys/kernel/apparmor_restrict_unprivileged_userns",
        value: "1",
        remedy: "AppArmor restricts them; as root: sysctl kernel.apparmor_restrict_unprivileged_userns=0, or a \
                 profile for this program that has `userns,`",
    },
];

/// What forbids user namespaces on the host whose files are below `root`, and what to do.
fn reason(root: &Path) -> &'static str {
    let holds = |setting: &&Forbidding| {
        fs::read_to_string(root.join(setting.file)).is_ok_and(|text| text.trim() == setting.value)
    };
    SETTINGS.iter().find(holds).map_or(
        "no setting of the kernel forbids it, so a container's rules may: start the container with \
         --security-opt seccomp=unconfined",
        |setting| setting.remedy,
    )
}

fn failed(step: &str, error: impl std::fmt::Display) -> CliError {
    let reason = reason(Path::new("/"));
    CliError::Live(format!("--unprivileged: {step}: {error}: {reason}; {INSTEAD}"))
}

/// Whether this user can have TUN interfaces at all; better said before there are namespaces.
fn check_device(tun: &Path) -> Result<(), CliError> {
    match rustix::fs::access(tun, Access::READ_OK | Access::WRITE_OK) {
        // What is not there is said as it is without --unprivileged.
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(error) => Err(CliError::Live(format!(
            "--unprivileged: {}: {error}: this user may not open it; as root: chmod 0666 {0}; {INSTEAD}",
            tun.display()
        ))),
    }
}

/// Enters namespaces of this process's own, as root there. Before there is a second thread.
pub(super) fn enter() -> Result<(), CliError> {
    check_device(Path::new("/dev/net/tun"))?;
    let (user, group) = (rustix::process::geteuid(), rustix::process::getegid());
    let flags = UnshareFlags::NEWUSER | UnshareFlags::NEWNET | UnshareFlags::NEWNS;
    #[expect(deprecated, reason = "only FILES makes it unsound, which is not among the flags")]
    rustix::thread::unshare(flags).map_err(|error| failed("no user namespace", error))?;
    let write = |file: &str, text: &str| {
        fs::write(format!("/proc/self/{file}"), text)
            .map_err(|error| failed(&format!("/proc/self/{file}"), error))
    };
    // In this order: a group of one's own may be given only where groups cannot be dropped.
    write("setgroups", "deny")?;
    write("gid_map", &format!("0 {} 1", group.as_raw()))?;
    write("uid_map", &format!("0 {} 1", user.as_raw()))?;
    mount(&["--make-rprivate", "/"])?;
    mount(&["-t", "tmpfs", "-o", "mode=0755,nosuid,nodev,size=16m", "quietcore", "/run"])
}

fn mount(words: &[&str]) -> Result<(), CliError> {
    let step = format!("mount {}", words.join(" "));
    let output = system_program("mount").and_then(|mut program| program.args(words).output());
    let output = output.map_err(|error| failed(&step, error))?;
    if output.status.success() {
        return Ok(());
    }
    Err(failed(&step, String::from_utf8_lossy(&output.stderr).trim()))
}

#[cfg(test)]
mod tests {
    use super::{check_device, reason};
    use rustix::process::Uid;
    use std::os::unix::fs::PermissionsExt;
    use std::path::Path;
    use std::{fs, thread};

    const NOBODY: u32 = 65534;

    /// Goal: the setting that forbids user namespaces is named with what to type. Method: a host of files for
    /// each, and one where nothing forbids it.
    #[test]
    fn what_forbids_them_is_told() {
        let host = std::env::temp_dir().join(format!("quietcore-userns-{}", std::process::id()));
        let told = |file: &str, value: &str| {
            let path = host.join("proc/sys").join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, format!("{value}\n")).unwrap();
            let told = reason(&host);
            fs::remove_file(path).unwrap();
            told
        };
        assert!(told("user/max_user_namespaces", "0").contains("sysctl user.max_user_namespaces="));
        assert!(
            told("kernel/unprivileged_userns_clone", "0")
                .contains("sysctl kernel.unprivileged_userns_clone=1")
        );
        let apparmor = "kernel/apparmor_restrict_unprivileged_userns";
        assert!(told(apparmor, "1").contains("AppArmor"));
        for (file, value) in [("user/max_user_namespaces", "96551"), (apparmor, "0")] {
            assert!(told(file, value).contains("a container's rules"), "{file}");
        }
        fs::remove_dir_all(host).unwrap();
    }

    /// Goal: a device that this user may not open is told with what to type; one that is not there is not.
    /// Method: a file of this user's without permissions; for root a thread which is another user.
    #[test]
    fn a_device_has_to_be_open_to_all() {
        assert!(check_device(Path::new("/nowhere/tun")).is_ok());
        assert!(check_device(Path::new("/dev/null")).is_ok());
        let device = std::env::temp_dir().join(format!("quietcore-tun-{}", std::process::id()));
        fs::write(&device, "").unwrap();
        fs::set_permissions(&device, fs::Permissions::from_mode(0o000)).unwrap();
        let check = || {
            if rustix::process::geteuid().is_root() {
                rustix::thread::set_thread_uid(Uid::from_raw(NOBODY)).unwrap();
            }
            check_device(&device)
        };
        let refused = thread::scope(|scope| scope.spawn(check).join().unwrap());
        fs::remove_file(&device).unwrap();
        let refused = refused.unwrap_err().to_string();
        assert!(refused.contains(&format!("chmod 0666 {}", device.display())), "{refused}");
    }
}

//! The steps that are scripts in `tests/`, and what a machine must have for them.
//!
//! A script says by itself which tool it does without; here is decided what it cannot do without.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::left_out;
use super::options::CiOptions;
use crate::workspace::{Failure, Workspace, is_installed, run};

/// Where recordings of the running kernel are made.
const TRACING: &str = "/sys/kernel/tracing/instances";

/// Why recordings cannot be made here.
pub(super) fn cannot_record() -> Option<&'static str> {
    if !is_root() {
        return Some("needs root: run it as root, in a clone of its own");
    }
    (!Path::new(TRACING).is_dir()).then_some("needs tracefs: mount -t tracefs nodev /sys/kernel/tracing")
}

/// Why nothing can be counted in the kernel here.
pub(super) fn cannot_watch() -> Option<&'static str> {
    if !Path::new("/sys/kernel/btf/vmlinux").exists() {
        return Some("needs a kernel with CONFIG_DEBUG_INFO_BTF");
    }
    cannot_record()
}

/// Why packets cannot be sent through devices here.
pub(super) fn has_no_devices() -> Option<&'static str> {
    if !is_root() {
        return Some("needs root: run it as root, in a clone of its own");
    }
    if !Path::new("/dev/net/tun").exists() {
        return Some("needs /dev/net/tun: modprobe tun");
    }
    if !["ip", "ping"].into_iter().all(is_installed) {
        return Some("needs ip and ping: install iproute2 and iputils-ping");
    }
    let mut namespace = Command::new("unshare");
    let tried = namespace.args(["-n", "true"]).stderr(Stdio::null()).status();
    (!tried.is_ok_and(|status| status.success()))
        .then_some("needs network namespaces: a kernel with CONFIG_NET_NS, and CAP_SYS_ADMIN in a container")
}

pub(super) fn hostile(workspace: &Workspace, _: &CiOptions) -> Result<(), Failure> {
    let quietcore = release(workspace, &["build", "--release", "-p", "quietcore-cli"], "quietcore")?;
    let bench = workspace.target.join("bench");
    let generate = ["build", "--release", "--manifest-path", "bench/Cargo.toml", "--bin", "generate"];
    run(workspace.cargo(&generate).arg("--locked").env("CARGO_TARGET_DIR", &bench), "mend it in bench/")?;
    let mut script = workspace.program("bash");
    script.args(["tests/hostile.sh", "--quick"]).arg(quietcore);
    script.env("GENERATE", bench.join("release/generate"));
    run_script(workspace, &mut script)
}

pub(super) fn disturbance(workspace: &Workspace, _: &CiOptions) -> Result<(), Failure> {
    let mut script = workspace.program("bash");
    script.args(["tests/live_timers.sh", "--quick"]).env("CARGO_TARGET_DIR", &workspace.target);
    run_script(workspace, &mut script)
}

pub(super) fn live(workspace: &Workspace, _: &CiOptions) -> Result<(), Failure> {
    with_tool(workspace, "tests/live_root.sh")
}

pub(super) fn watch(workspace: &Workspace, options: &CiOptions) -> Result<(), Failure> {
    let quietcore = release(workspace, &["build", "--release", "-p", "quietcore-cli"], "quietcore")?;
    let mut command = workspace.program("bash");
    command.arg("tests/watch_root.sh").arg(quietcore).args(options.all.then_some("--all"));
    run_script(workspace, &mut command)
}

pub(super) fn packets(workspace: &Workspace, _: &CiOptions) -> Result<(), Failure> {
    with_tool(workspace, "tests/packets_root.sh")
}

/// Why a user without privileges cannot have devices here.
pub(super) fn has_no_user_namespaces() -> Option<&'static str> {
    let is_open = fs::metadata("/dev/net/tun").is_ok_and(|tun| tun.permissions().mode() & 0o006 == 0o006);
    if !is_open {
        return Some("needs a /dev/net/tun that all users may open: modprobe tun; chmod 0666 /dev/net/tun");
    }
    if !["ip", "ping", "nsenter"].into_iter().all(is_installed) || is_root() && !is_installed("setpriv") {
        return Some("needs ip, ping, nsenter, setpriv: install iproute2, iputils-ping, util-linux");
    }
    let mut namespace = Command::new("unshare");
    if is_root() {
        namespace = Command::new("setpriv");
        namespace.args(["--reuid=65534", "--regid=65534", "--clear-groups", "unshare"]);
    }
    let tried = namespace.args(["-Urnm", "true"]).stderr(Stdio::null()).status();
    (!tried.is_ok_and(|status| status.success()))
        .then_some("needs user namespaces for all users: sysctl user.max_user_namespaces, AppArmor, seccomp")
}

pub(super) fn unprivileged(workspace: &Workspace, _: &CiOptions) -> Result<(), Failure> {
    with_tool(workspace, "tests/packets_nobody.sh")
}

fn with_tool(workspace: &Workspace, script: &str) -> Result<(), Failure> {
    let quietcore = release(workspace, &["build", "--release", "-p", "quietcore-cli"], "quietcore")?;
    let mut command = workspace.program("bash");
    run_script(workspace, command.arg(script).arg(quietcore))
}

fn run_script(workspace: &Workspace, command: &mut Command) -> Result<(), Failure> {
    run(
        left_out::noted_by(workspace, command),
        "run this command by hand and look at the line that says FAIL",
    )
}

/// A program of the workspace, built in release.
fn release(workspace: &Workspace, build: &[&str], program: &str) -> Result<PathBuf, Failure> {
    run(workspace.cargo(build).args(["--locked", "--quiet"]), "correct what the compiler names")?;
    Ok(workspace.target.join("release").join(program))
}

/// The effective user is the second number of the line.
fn is_root() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let users = status.lines().find_map(|line| line.strip_prefix("Uid:"));
    users.and_then(|users| users.split_whitespace().nth(1)) == Some("0")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: root is seen as such. Method: against `id`.
    #[test]
    fn root_is_seen() {
        let said = Command::new("id").arg("-u").output().expect("coreutils").stdout;
        assert_eq!(is_root(), said == b"0\n");
    }
}

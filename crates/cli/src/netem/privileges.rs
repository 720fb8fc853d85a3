//! The capabilities that `netem` needs; all others are given up before there is a second thread.
//!
//! Capabilities, the bounding set and `no_new_privs` are each thread's own, and a new thread has those of the
//! thread that starts it: what the first thread gives up before it starts others, the whole process has not.
//! COMMAND is not meant: it is started by a thread from before (`command`).

use crate::error::CliError;
use rustix::io::Errno;
use rustix::thread::{self, CapabilitySet, CapabilitySets};

/// Network namespaces and interfaces, to make them and to remove them.
const NETWORK: CapabilitySet = CapabilitySet::NET_ADMIN.union(CapabilitySet::SYS_ADMIN);
/// To start COMMAND as another user.
const OTHER_USER: CapabilitySet = CapabilitySet::SETUID.union(CapabilitySet::SETGID);

/// Whose program COMMAND is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CommandOwner {
    Caller,
    OtherUser,
}

/// What is kept until the end: names in /run/netns are root's, and a signal is passed on to COMMAND.
fn kept(is_root: bool, owner: CommandOwner) -> CapabilitySet {
    let names = if is_root { CapabilitySet::empty() } else { CapabilitySet::DAC_OVERRIDE };
    let signal = if owner == CommandOwner::Caller { CapabilitySet::empty() } else { CapabilitySet::KILL };
    NETWORK | names | signal
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

fn failed(error: Errno) -> CliError {
    CliError::Live(format!("privileges cannot be given up: {error}"))
}

/// Refuses to begin without the capabilities that it takes, and names those that are missing.
pub(super) fn check(owner: CommandOwner) -> Result<(), CliError> {
    let effective = thread::capabilities(None).map_err(failed)?.effective;
    let user = if owner == CommandOwner::Caller { CapabilitySet::empty() } else { OTHER_USER };
    missing((kept(is_root(), owner) | user).difference(effective))
}

fn missing(capabilities: CapabilitySet) -> Result<(), CliError> {
    if capabilities.is_empty() {
        return Ok(());
    }
    let names: Vec<String> = capabilities.iter_names().map(|(name, _)| format!("CAP_{name}")).collect();
    let needs = "making network namespaces and TUN interfaces needs root";
    let instead = "run it with sudo, or with --unprivileged; `quietcore netem relay` needs no privileges";
    Err(CliError::Live(format!("{needs} or some capabilities; missing: {}: {instead}", names.join(", "))))
}

/// Gives up all privileges but those that are needed until the end, for this thread and those that it starts
/// from now on. Programs that they run get no others.
pub(super) fn give_up(owner: CommandOwner) -> Result<(), CliError> {
    keep_only(kept(is_root(), owner)).map_err(failed)
}

/// The same for `netem relay`, which needs none but that to listen at a port below 1024.
pub(super) fn give_up_for_relay() -> Result<(), CliError> {
    keep_only(CapabilitySet::NET_BIND_SERVICE).map_err(failed)
}

fn keep_only(kept: CapabilitySet) -> Result<(), Errno> {
    let ones = (0..u64::BITS).map(|bit| CapabilitySet::from_bits_retain(1 << bit));
    // An error: the kernel has no more of them.
    for one in ones.take_while(|one| thread::capability_is_in_bounding_set(*one).is_ok()) {
        let removed =
            if kept.contains(one) { Ok(()) } else { thread::remove_capability_from_bounding_set(one) };
        // Without CAP_SETPCAP it cannot be done; `no_new_privs` then limits programs alone.
        removed.or_else(|error| if error == Errno::PERM { Ok(()) } else { Err(error) })?;
    }
    thread::set_no_new_privs(true)?;
    thread::clear_ambient_capability_set()?;
    let kept = kept.intersection(thread::capabilities(None)?.permitted);
    // A program that root runs has them anyway; for another user they have to be handed down to `ip`.
    let inheritable = if is_root() { CapabilitySet::empty() } else { kept };
    thread::set_capabilities(None, CapabilitySets { effective: kept, permitted: kept, inheritable })?;
    inheritable.iter().try_for_each(|one| thread::configure_capability_in_ambient_set(one, true))
}

#[cfg(test)]
mod tests {
    use super::{CommandOwner, check, keep_only, kept, missing};
    use rustix::thread::{self, CapabilitySet, CapabilitySets};

    /// Goal: the error names what is missing, and the command that needs no privileges.
    #[test]
    fn what_is_missing_is_told() {
        let told = missing(CapabilitySet::NET_ADMIN | CapabilitySet::KILL).unwrap_err().to_string();
        let expected = "making network namespaces and TUN interfaces needs root or some capabilities; \
                        missing: CAP_KILL, CAP_NET_ADMIN: run it with sudo, or with --unprivileged; \
                        `quietcore netem relay` needs no privileges";
        assert_eq!(told, expected);
        assert!(missing(CapabilitySet::empty()).is_ok());
    }

    /// Goal: all that is needed and not there is missing, and no more. Method: on a thread that keeps one
    /// capability that is always needed, one for a COMMAND of another user and one that nothing needs.
    #[test]
    fn what_is_needed_and_not_there_is_missing() {
        let had = thread::capabilities(None).unwrap().permitted;
        let left = CapabilitySet::NET_ADMIN | CapabilitySet::SETUID | CapabilitySet::CHOWN;
        if !rustix::process::geteuid().is_root() || !had.contains(left) {
            return quietcore_testing::left_out("what_is_needed_and_not_there_is_missing", "needs root");
        }
        let checked = std::thread::spawn(move || {
            let inheritable = CapabilitySet::empty();
            let sets = CapabilitySets { effective: left, permitted: had, inheritable };
            thread::set_capabilities(None, sets).unwrap();
            [CommandOwner::Caller, CommandOwner::OtherUser].map(check).map(Result::unwrap_err)
        });
        let [caller, other] = checked.join().unwrap().map(|error| error.to_string());
        assert!(caller.contains("; missing: CAP_SYS_ADMIN: "), "{caller}");
        assert!(other.contains("; missing: CAP_KILL, CAP_SETGID, CAP_SYS_ADMIN: "), "{other}");
    }

    /// Goal: no more is kept than is needed.
    #[test]
    fn what_is_kept() {
        let both = CapabilitySet::NET_ADMIN | CapabilitySet::SYS_ADMIN;
        assert_eq!(kept(true, CommandOwner::Caller), both);
        assert_eq!(kept(true, CommandOwner::OtherUser), both | CapabilitySet::KILL);
        assert_eq!(kept(false, CommandOwner::Caller), both | CapabilitySet::DAC_OVERRIDE);
    }

    /// Goal: what is given up is gone, for this thread, those that it starts and programs; what is not there
    /// cannot be kept, which is no error. Method: on a thread of its own, which has one capability left, or
    /// none where the test does not run as root, and would then keep another; then what the kernel says of a
    /// thread of it.
    #[test]
    fn what_is_given_up_is_gone() {
        let kept = CapabilitySet::NET_ADMIN;
        let had = thread::capabilities(None).unwrap().permitted;
        let status = std::thread::spawn(move || {
            keep_only(kept).unwrap();
            keep_only(kept | CapabilitySet::KILL).unwrap();
            let read = || std::fs::read_to_string("/proc/thread-self/status").unwrap();
            std::thread::spawn(read).join().unwrap()
        });
        let status = status.join().unwrap();
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name)).expect("the kernel says so");
            u64::from_str_radix(line.trim_start_matches(':').trim(), 16).unwrap()
        };
        let left = kept.intersection(had).bits();
        assert_eq!((field("CapEff"), field("CapPrm"), field("NoNewPrivs")), (left, left, 1), "{status}");
        if had.contains(CapabilitySet::SETPCAP) {
            assert_eq!(field("CapBnd"), left, "{status}");
        }
        assert_eq!(thread::capabilities(None).unwrap().permitted, had, "other threads keep theirs");
    }
}

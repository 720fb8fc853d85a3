//! COMMAND of `netem tun`: the user that runs it, and how it is started.
//!
//! It is the caller's program, with the caller's privileges, which the instance gives up. So a thread from
//! before that starts it: the thread waits until there is a network namespace, enters it, becomes the user
//! that was asked for, starts COMMAND, and ends.

use quietcore_net::tun::system_program;
use rustix::fs::{Gid, Uid};
use rustix::thread::{self, CapabilitySet, CapabilitySets, LinkNameSpaceType};
use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::process::{Child, Command};
use std::str::FromStr;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::JoinHandle;

/// A user as `--user` names one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum UserName {
    Name(String),
    Numbers { user: u32, group: u32 },
}

/// The number that means none.
const NO_ID: u32 = u32::MAX;

fn number(text: &str) -> Option<u32> {
    text.trim().parse().ok().filter(|number| *number != NO_ID)
}

impl FromStr for UserName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once(':').map(|(user, group)| (number(user), number(group))) {
            None if !text.is_empty() => Ok(Self::Name(text.to_owned())),
            Some((Some(user), Some(group))) => Ok(Self::Numbers { user, group }),
            _ => Err(format!("{text:?}: write the name of a user, or two numbers as 1000:1000")),
        }
    }
}

/// Who a user is for the kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct User {
    user: Uid,
    group: Gid,
    groups: Vec<Gid>,
}

impl User {
    /// Looks the user up; numbers have no groups but the one.
    pub(super) fn find(name: &UserName) -> io::Result<Self> {
        match name {
            UserName::Name(name) => {
                let numbers = [ids("-u", name)?, ids("-g", name)?, ids("-G", name)?];
                let ([user], [group], groups) = (&*numbers[0], &*numbers[1], &numbers[2]) else {
                    return Err(io::Error::other(format!("`id` does not say who {name} is")));
                };
                let groups = groups.iter().map(|group| Gid::from_raw(*group)).collect();
                Ok(Self { user: Uid::from_raw(*user), group: Gid::from_raw(*group), groups })
            }
            UserName::Numbers { user, group } => {
                let group = Gid::from_raw(*group);
                Ok(Self { user: Uid::from_raw(*user), group, groups: vec![group] })
            }
        }
    }

    /// The calling thread, and no other, is this user's from now on, without privileges.
    fn become_it(&self) -> rustix::io::Result<()> {
        thread::set_thread_groups(&self.groups)?;
        thread::set_thread_res_gid(self.group, self.group, self.group)?;
        thread::set_thread_res_uid(self.user, self.user, self.user)?;
        // A change between two users that are not root takes nothing away.
        let none = CapabilitySet::empty();
        thread::set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none })
    }
}

/// What `id` says, which knows users of directories too.
fn ids(what: &str, name: &str) -> io::Result<Vec<u32>> {
    let output = system_program("id")?.args([what, "--", name]).output()?;
    if !output.status.success() {
        return Err(io::Error::other(String::from_utf8_lossy(&output.stderr).trim().to_owned()));
    }
    let text = String::from_utf8_lossy(&output.stdout);
    Ok(text.split_whitespace().filter_map(number).collect())
}

/// Starts COMMAND once, with the privileges that its maker had.
#[derive(Debug)]
pub(super) struct Launcher {
    namespace: SyncSender<OwnedFd>,
    thread: JoinHandle<io::Result<Child>>,
}

impl Launcher {
    /// Of a command with its arguments. If [`start`](Self::start) is never called, the thread ends with this.
    pub(super) fn new(command: &[OsString], user: Option<User>) -> io::Result<Self> {
        let (namespace, namespaces) = sync_channel::<OwnedFd>(1);
        let command = command.to_vec();
        let launch = move || {
            let namespace = namespaces.recv().map_err(io::Error::other)?;
            thread::move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))?;
            user.map_or(Ok(()), |user| user.become_it())?;
            Command::new(&command[0]).args(&command[1..]).spawn()
        };
        let thread = std::thread::Builder::new().name("qc-command".to_owned()).spawn(launch)?;
        Ok(Self { namespace, thread })
    }

    /// Starts it in the network namespace, and waits for the end of the thread that has privileges.
    pub(super) fn start(self, namespace: BorrowedFd<'_>) -> io::Result<Child> {
        // If it cannot be sent, the thread has ended, and says why.
        let _ = self.namespace.send(namespace.try_clone_to_owned()?);
        self.thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

#[cfg(test)]
mod tests {
    use super::{User, UserName};

    /// Goal: users are read as they are typed.
    #[test]
    fn users_are_read() {
        assert_eq!("daemon".parse(), Ok(UserName::Name("daemon".to_owned())));
        assert_eq!("1000:7".parse(), Ok(UserName::Numbers { user: 1000, group: 7 }));
        for bad in ["", ":", "1:", "a:b", "1:4294967295", "-1:1"] {
            assert!(bad.parse::<UserName>().is_err(), "{bad:?}");
        }
    }

    /// Goal: a user is found by name, with all groups, and one that is none is an error. Method: root, whom
    /// every system has.
    #[test]
    fn users_are_found() {
        let root = User::find(&UserName::Name("root".to_owned())).unwrap();
        assert!(root.user.is_root() && root.group.is_root() && root.groups.contains(&root.group));
        let nobody = User::find(&UserName::Name("no such user".to_owned()));
        assert!(nobody.is_err_and(|error| error.to_string().contains("no such user")));
    }
}

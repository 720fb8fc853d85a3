//! Network namespaces: made, entered for a moment, configured and removed.
//!
//! A namespace is made without a name, so that it can be written down before anything is left behind by the
//! end of this process; then `ip` (iproute2) gives it a name, and `ip netns exec` finds it.
//!
//! Invariants: what is removed is the namespace that was made, never another one that has its name by now
//! ([`NamespaceId`]). Settings are written inside of namespaces, never outside.

use super::error::TunError;
use super::program::system_program;
use super::system;
use rustix::fs::{Mode, OFlags};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::thread;

/// Which network namespace it is, whatever its name.
///
/// Numbers of files are given again once a namespace is gone; the cookie is not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "instance", derive(serde::Serialize, serde::Deserialize))]
pub struct NamespaceId {
    /// The device of its file.
    device: u64,
    /// The number of its file.
    inode: u64,
    /// What the kernel calls it until the next boot; 0 before Linux 5.14.
    cookie: u64,
}

impl NamespaceId {
    /// Of the namespace that `file` is.
    fn of(file: &File) -> io::Result<Self> {
        let cookie = inside(file.as_fd(), system::network_cookie)??;
        let found = file.metadata()?;
        Ok(Self { device: found.dev(), inode: found.ino(), cookie })
    }

    /// Of the namespace that has this name now; `None` if there is none.
    fn named(name: &str) -> io::Result<Option<Self>> {
        // What is there may be anything; a fifo must not hold us up.
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        match rustix::fs::open(path(name), flags, Mode::empty()) {
            Ok(file) => Self::of(&File::from(file)).map(Some),
            Err(rustix::io::Errno::NOENT) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Whose name it is, if this is what has it now. What cannot be entered is no namespace of ours.
    fn holder(self, found: &io::Result<Option<Self>>) -> Holder {
        match found {
            Ok(None) => Holder::Nobody,
            Ok(Some(found)) if *found == self => Holder::This,
            Ok(Some(_)) | Err(_) => Holder::Another,
        }
    }

    /// Removes it, if `name` is still its name; `false` if nothing has that name. Programs that run in it
    /// keep it, without a name.
    ///
    /// # Errors
    /// [`TunError::NamespaceReplaced`] if something else has that name; else what `ip` said.
    pub(crate) fn remove(self, name: &str) -> Result<bool, TunError> {
        match self.holder(&Self::named(name)) {
            Holder::Nobody => Ok(false),
            Holder::This => ip(&["netns", "del", name], "").map(|()| true),
            Holder::Another => Err(TunError::NamespaceReplaced { name: name.to_owned() }),
        }
    }
}

/// What has a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Holder {
    This,
    Another,
    Nobody,
}

/// A network namespace that has no name yet. A drop leaves nothing of it.
#[derive(Debug)]
pub struct UnnamedNamespace {
    file: File,
    id: NamespaceId,
}

impl UnnamedNamespace {
    /// Makes one.
    ///
    /// # Errors
    /// [`TunError::NewNamespace`]: this needs `CAP_SYS_ADMIN`.
    pub fn new() -> Result<Self, TunError> {
        let make = || {
            system::enter_new_network()?;
            File::open("/proc/thread-self/ns/net")
        };
        let made = joined(thread::scope(|scope| scope.spawn(make).join()));
        let with_id = |file: File| Ok(Self { id: NamespaceId::of(&file)?, file });
        made.and_then(with_id).map_err(TunError::NewNamespace)
    }

    /// Which one it is.
    #[must_use]
    pub const fn id(&self) -> NamespaceId {
        self.id
    }

    /// Gives it a name.
    ///
    /// # Errors
    /// [`TunError::NamespaceTaken`] if there is one of that name; else what `ip` said.
    pub fn named(self, name: &str) -> Result<Namespace, TunError> {
        check_free(name)?;
        inside(self.file.as_fd(), || attach(name)).map_err(TunError::NewNamespace)??;
        Ok(Namespace { name: Some(name.to_owned()), file: self.file, id: self.id })
    }
}

/// A network namespace that this process made. A drop removes it; [`remove`](Self::remove) says whether that
/// worked.
#[derive(Debug)]
pub struct Namespace {
    /// `None` once it is removed.
    name: Option<String>,
    /// The namespace itself, whatever has its name.
    file: File,
    id: NamespaceId,
}

impl Namespace {
    /// Makes one.
    ///
    /// # Errors
    /// [`TunError::NamespaceTaken`] if there is one of that name; else what the kernel or `ip` said.
    pub fn create(name: &str) -> Result<Self, TunError> {
        check_free(name)?;
        UnnamedNamespace::new()?.named(name)
    }

    /// As `ip netns` lists it.
    #[must_use]
    pub fn name(&self) -> &str {
        self.name.as_deref().unwrap_or_default()
    }

    /// Runs lines of `ip -batch` in it.
    ///
    /// # Errors
    /// What `ip` said.
    pub fn configure(&self, lines: &str) -> Result<(), TunError> {
        self.inside(|| ip(&["-batch", "-"], lines))?
    }

    /// Runs `act` inside, on a thread of its own. Sockets, interfaces and processes that it opens stay there.
    ///
    /// # Errors
    /// [`TunError::Namespace`] if it cannot be entered, which needs `CAP_SYS_ADMIN`.
    ///
    /// # Panics
    /// If `act` panics.
    pub fn inside<T: Send>(&self, act: impl FnOnce() -> T + Send) -> Result<T, TunError> {
        let failed = |error: io::Error| TunError::Namespace { name: self.name().to_owned(), error };
        inside(self.file.as_fd(), act).map_err(failed)
    }

    /// Removes it. Programs that still run in it keep it, without a name.
    ///
    /// # Errors
    /// [`TunError::NamespaceReplaced`] if another one has its name by now, which is left alone; else what
    /// `ip` said.
    pub fn remove(mut self) -> Result<(), TunError> {
        let id = self.id;
        self.name.take().map_or(Ok(()), |name| id.remove(&name).map(drop))
    }
}

impl AsFd for Namespace {
    /// The namespace, as `setns` takes it.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        if let Some(name) = self.name.take() {
            let _ = self.id.remove(&name); // a drop cannot say why not
        }
    }
}

/// Refuses a name that is in use.
pub(crate) fn check_free(name: &str) -> Result<(), TunError> {
    if path(name).exists() { Err(TunError::NamespaceTaken { name: name.to_owned() }) } else { Ok(()) }
}

fn path(name: &str) -> PathBuf {
    Path::new("/run/netns").join(name)
}

/// Runs `act` on a thread of its own that is in `namespace`.
fn inside<T: Send>(namespace: BorrowedFd<'_>, act: impl FnOnce() -> T + Send) -> io::Result<T> {
    let enter = || {
        move_into_link_name_space(namespace, Some(LinkNameSpaceType::Network))?;
        Ok(act())
    };
    joined(thread::scope(|scope| scope.spawn(enter).join()))
}

/// What a thread returned; its panic goes on here.
fn joined<T>(result: thread::Result<T>) -> T {
    result.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Has `ip` give the calling thread's namespace a name.
///
/// `ip` finds the namespace by a process that is in it, and takes itself: so it ends what it has begun also
/// if this process is killed meanwhile. Test: `tests/packets_root.sh`, starts that are killed.
fn attach(name: &str) -> Result<(), TunError> {
    let arguments = ["-c", "exec ip netns attach \"$1\" $$", "sh", name];
    run("sh", &arguments, format!("netns attach {name}"), "")
}

/// Runs `ip` with `input`.
fn ip(arguments: &[&str], input: &str) -> Result<(), TunError> {
    run("ip", arguments, arguments.join(" "), input)
}

/// Runs `program`, which is `ip` or becomes it; `shown` is what it is to do.
fn run(program: &str, arguments: &[&str], shown: String, input: &str) -> Result<(), TunError> {
    let failed = |error: io::Error| TunError::NoIp { arguments: shown.clone(), error };
    let mut command = system_program(program).map_err(failed)?;
    // A process group of its own, so that Ctrl-C does not cut it short.
    command.process_group(0);
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(failed)?;
    if let Some(mut stdin) = child.stdin.take() {
        // If it ends early, its words say why.
        let _ = stdin.write_all(input.as_bytes());
    }
    let output = child.wait_with_output().map_err(failed)?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(TunError::Ip { arguments: shown, said })
}

#[cfg(test)]
mod tests {
    use super::{Holder, Namespace, NamespaceId, TunError, UnnamedNamespace, ip, path};
    use std::{fs, io};

    /// Goal: a name belongs to the namespace that is the same in all three. Method: one that differs in each,
    /// and what cannot be looked at.
    #[test]
    fn a_namespace_is_known_by_what_it_is() {
        let ours = NamespaceId { device: 4, inode: 4_026_532_200, cookie: 77 };
        assert_eq!(ours.holder(&Ok(None)), Holder::Nobody);
        assert_eq!(ours.holder(&Ok(Some(ours))), Holder::This);
        for other in [
            NamespaceId { device: 5, ..ours },
            NamespaceId { inode: 1, ..ours },
            NamespaceId { cookie: 78, ..ours },
        ] {
            assert_eq!(ours.holder(&Ok(Some(other))), Holder::Another, "{other:?}");
        }
        assert_eq!(ours.holder(&Err(io::ErrorKind::InvalidInput.into())), Holder::Another);
    }

    /// A name for this test's namespaces; `None`, and a word about it, where the test cannot make any.
    fn name(of: &str) -> Option<String> {
        let name = format!("quietcore-{of}-{}", std::process::id());
        if UnnamedNamespace::new().is_ok() {
            return Some(name);
        }
        println!("skipped: {of}, which needs to make network namespaces");
        None
    }

    /// Goal: a namespace that has our name and is not ours is left alone, by the end and by a later start,
    /// also if it has the number that ours had; ours is removed. Method: remove ours as another program
    /// would, put another one, a file and nothing in its place.
    #[test]
    fn only_our_own_is_removed() {
        let Some(name) = name("replaced") else { return };
        for _ in 0..10 {
            let ours = Namespace::create(&name).unwrap();
            let id = ours.id;
            assert_eq!(NamespaceId::named(&name).unwrap(), Some(id));
            assert!(matches!(Namespace::create(&name), Err(TunError::NamespaceTaken { .. })));
            ip(&["netns", "del", &name], "").unwrap();
            ip(&["netns", "add", &name], "").unwrap();
            assert!(matches!(ours.remove(), Err(TunError::NamespaceReplaced { .. })), "at the end");
            assert!(matches!(id.remove(&name), Err(TunError::NamespaceReplaced { .. })), "at a start");
            drop(UnnamedNamespace::new().unwrap());
            assert!(path(&name).exists());
            ip(&["netns", "del", &name], "").unwrap();
        }
        let ours = UnnamedNamespace::new().unwrap();
        let id = ours.id();
        fs::write(path(&name), "").unwrap();
        assert!(matches!(id.remove(&name), Err(TunError::NamespaceReplaced { .. })), "a file");
        fs::remove_file(path(&name)).unwrap();
        let ours = ours.named(&name).unwrap();
        ip(&["netns", "del", &name], "").unwrap();
        ours.remove().expect("it is gone, as it should be");
        let ours = Namespace::create(&name).unwrap();
        ours.remove().unwrap();
        assert!(!path(&name).exists());
    }

    /// Goal: two namespaces are told apart when the kernel gives the second one the first one's number.
    /// Method: one after the other, each gone before the next.
    #[test]
    fn numbers_that_are_given_again_do_not_confuse() {
        if name("numbers").is_none() {
            return;
        }
        let mut seen = Vec::new();
        for _ in 0..50 {
            let id = UnnamedNamespace::new().unwrap().id();
            assert!(!seen.contains(&id), "{id:?} of {seen:?}");
            seen.push(id);
        }
    }
}

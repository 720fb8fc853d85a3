//! Makes a program a command: compiled now, with whatever compiler is there.
//!
//! A peer whose compiler, library or network is missing is left out, with the reason. Everything that is
//! made lies below one folder of the target directory; nothing is written beside the sources.

use super::child;
use super::programs::{Program, Source};
use crate::versions::locked;
use std::env;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A program that can be run.
#[derive(Clone, Debug)]
pub struct Built {
    command: Vec<OsString>,
    /// Of the runtime, if it can be found out.
    pub version: Option<String>,
}

impl Built {
    /// The command, without arguments of a measure.
    #[must_use]
    pub fn command(&self) -> Command {
        let mut command = Command::new(&self.command[0]);
        command.args(&self.command[1..]);
        command
    }
}

/// Where programs are put: `runtimes` in the directory that the running program was built to.
///
/// # Errors
/// If the system does not say where that is.
pub fn folder() -> io::Result<PathBuf> {
    let own = env::current_exe()?;
    // target/release/runtimes
    let target = own.ancestors().nth(2).ok_or_else(|| io::Error::other("no target directory"))?;
    Ok(target.join("runtimes"))
}

/// Makes `program`, below `folder`.
///
/// # Errors
/// What is missing, or what its compiler said.
pub fn build(program: &Program, folder: &Path) -> io::Result<Built> {
    fs::create_dir_all(folder)?;
    match program.source {
        Source::Rust { binary, package, cfg } => rust(binary, package, cfg, folder),
        Source::C { file, library } => c(file, library, folder),
        Source::Go => go(folder),
        Source::Java => java(folder),
    }
}

fn sources(folder: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("peers").join(folder)
}

fn rust(binary: &str, package: &str, cfg: Option<&str>, folder: &Path) -> io::Result<Built> {
    // A directory for each configuration, or each build would undo the other's.
    let target = folder.join(cfg.unwrap_or("rust"));
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(["build", "--quiet", "--release", "--locked", "--package", "quietcore-peers"]);
    command.args(["--bin", binary, "--features", binary, "--manifest-path"]);
    command.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml"));
    command.arg("--target-dir").arg(&target);
    if let Some(cfg) = cfg {
        let flags = env::var("RUSTFLAGS").unwrap_or_default();
        command.env("RUSTFLAGS", format!("{flags} --cfg {cfg}"));
    }
    child::output(&mut command)?;
    let program = target.join("release").join(binary);
    Ok(Built { command: vec![program.into()], version: locked(package).map(str::to_owned) })
}

fn c(file: &str, library: &str, folder: &Path) -> io::Result<Built> {
    let known = |what: &[&str]| child::output(Command::new("pkg-config").args(what).arg(library));
    let version = known(&["--modversion"])?.trim().to_owned();
    let flags = known(&["--cflags", "--libs"])?;
    let program = folder.join(file);
    let mut command = Command::new(env::var_os("CC").unwrap_or_else(|| "cc".into()));
    command.args(["-std=gnu11", "-O2", "-Wall", "-Wextra", "-o"]).arg(&program);
    command.arg(sources("c").join(format!("{file}.c"))).arg("-pthread");
    command.args(flags.split_whitespace());
    child::output(&mut command)?;
    Ok(Built { command: vec![program.into()], version: Some(version) })
}

fn go(folder: &Path) -> io::Result<Built> {
    let program = folder.join("go");
    child::output(
        Command::new("go").args(["build", "-o"]).arg(&program).arg(".").current_dir(sources("go")),
    )?;
    let version = child::output(Command::new("go").args(["env", "GOVERSION"]))?;
    Ok(Built {
        command: vec![program.into()],
        version: Some(version.trim().trim_start_matches("go").to_owned()),
    })
}

fn java(folder: &Path) -> io::Result<Built> {
    let target = folder.join("java");
    let mut command = Command::new("mvn");
    command.args(["--quiet", "--batch-mode", "--file"]).arg(sources("java").join("pom.xml"));
    let mut directory = OsString::from("-Dtarget=");
    directory.push(&target);
    command.arg(directory).args(["compile", "dependency:copy-dependencies"]);
    child::output(&mut command)?;
    let libraries = target.join("dependency");
    let mut path = target.join("classes").into_os_string();
    path.push(":");
    path.push(libraries.join("*"));
    let command = vec!["java".into(), "-cp".into(), path, "Netty".into()];
    Ok(Built { command, version: version_of_jar(&libraries, "netty-common-")? })
}

/// Of `folder/NAME-VERSION.jar`, where `name` ends with the hyphen.
fn version_of_jar(folder: &Path, name: &str) -> io::Result<Option<String>> {
    for entry in fs::read_dir(folder)? {
        let file = entry?.file_name().to_string_lossy().into_owned();
        if let Some(version) = file.strip_prefix(name).and_then(|rest| rest.strip_suffix(".jar")) {
            return Ok(Some(version.to_owned()));
        }
    }
    Ok(None)
}

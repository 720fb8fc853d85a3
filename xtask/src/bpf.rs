//! `cargo xtask bpf`: compiles the program that `quietcore watch` loads into the kernel.
//!
//! The object is in the repository, so that users need no compiler of their own for it. Beside it stands of
//! which sources and by which compiler it was made: changed sources with an old object are an error on every
//! machine, and where that very compiler is, the object is made again and compared.

use crate::files;
use crate::workspace::{Failure, Workspace, capture, exit_code, is_installed, run};
use std::path::PathBuf;
use std::process::ExitCode;

const FOLDER: &str = "crates/watch/bpf";
const SOURCES: [&str; 3] = ["kernel.h", "layout.h", "watch.bpf.c"];
const OBJECT: &str = "watch.bpf.o";
/// Of what and by what the object was made.
const MADE_OF: &str = "watch.bpf.o.txt";

const REMEDY: &str =
    "run `cargo xtask bpf`, which needs clang, llvm-strip and the headers of libbpf (libbpf-dev)";

/// Makes the object anew, and writes down of what.
pub(crate) fn command() -> ExitCode {
    exit_code("bpf", make())
}

fn make() -> Result<(), Failure> {
    let workspace = Workspace::open()?;
    let folder = workspace.root.join(FOLDER);
    let made = compile(&workspace)?;
    files::write(&folder.join(OBJECT), files::read(&made)?)?;
    let made_of = format!("{}\n{}", compiler(&workspace)?, sums(&workspace)?);
    files::write(&folder.join(MADE_OF), &made_of)?;
    print!("{made_of}");
    Ok(())
}

/// # Errors
/// When the object is not that of the sources.
pub(crate) fn check() -> Result<(), Failure> {
    let workspace = Workspace::open()?;
    let folder = workspace.root.join(FOLDER);
    let made_of = files::read_text(&folder.join(MADE_OF))?;
    let (by, of) = made_of.split_once('\n').unwrap_or_default();
    if of != sums(&workspace)? {
        return Err(Failure::new(format!("{FOLDER}/{OBJECT} was made of other sources"), REMEDY));
    }
    if !is_installed("clang") || !is_installed("llvm-strip") || compiler(&workspace)? != by {
        println!(
            "bpf: the sources are those that the object was made of; not made again, as {by} is not here"
        );
        return Ok(());
    }
    if files::read(&compile(&workspace)?)? != files::read(&folder.join(OBJECT))? {
        return Err(Failure::new(format!("{by} makes another {FOLDER}/{OBJECT}"), REMEDY));
    }
    println!("bpf: {by} makes the same object");
    Ok(())
}

/// The object of the sources as they are, below the target folder.
fn compile(workspace: &Workspace) -> Result<PathBuf, Failure> {
    let made = workspace.target.join(OBJECT);
    let mut clang = workspace.program("clang");
    clang.args(["-O2", "-g", "-target", "bpf", "-mcpu=v3", "-Wall", "-Werror"]);
    // Where Debian has the headers of the processor; paths of this machine stay out of the object.
    clang.args(["-I/usr/include/x86_64-linux-gnu", "-I/usr/include/aarch64-linux-gnu"]);
    clang.arg(format!("-fdebug-prefix-map={}=.", workspace.root.join(FOLDER).display()));
    clang.args(["-c", "watch.bpf.c", "-o"]).arg(&made).current_dir(workspace.root.join(FOLDER));
    run(&mut clang, REMEDY)?;
    run(workspace.program("llvm-strip").arg("-g").arg(&made), REMEDY)?;
    Ok(made)
}

fn compiler(workspace: &Workspace) -> Result<String, Failure> {
    let said = capture(workspace.program("clang").arg("--version"))?;
    Ok(said.lines().next().unwrap_or_default().to_owned())
}

fn sums(workspace: &Workspace) -> Result<String, Failure> {
    capture(workspace.program("sha256sum").args(SOURCES).current_dir(workspace.root.join(FOLDER)))
}

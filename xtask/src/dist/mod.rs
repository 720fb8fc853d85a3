//! `cargo xtask dist`: what others are given, and what must be so of it.
//!
//! A binary that needs no library (musl), so that it runs on any Linux of its processor. The profile `dist`
//! of Cargo.toml ends the program where a number overflows, and has no debug information. Added here is what
//! a profile cannot say: zstd's C code has the stack protector, and paths of this machine are named by what
//! they are, so the binary tells nothing of the place where it was built. Around it are the manual pages,
//! completions, licences (`tree.rs`) and what it is made of (`parts.rs`), as an archive and as packages of
//! distributions (`formats.rs`), with their sums. Invariant: a binary that holds such a path, is too large,
//! or has no stack protector, is refused.

mod formats;
mod parts;
mod target;
mod tree;

use crate::files;
use crate::workspace::{Failure, Workspace, capture, exit_code, run};
use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use target::DistTarget;

/// For the compiler of C; what a distribution sets by itself is set anew. Functions that check are the C
/// library's, and this one has none.
const C_FLAGS: &str = "-fstack-protector-strong -U_FORTIFY_SOURCE";

/// Addresses that are relative to the program's own, one bit each instead of 24 bytes (`DT_RELR`): half a
/// megabyte here. The C library that is linked in reads them since musl 1.2.4, which Rust 1.93 brings; the
/// linker has them since binutils 2.38.
const LINK_FLAG: &str = "-Clink-arg=-Wl,-z,pack-relative-relocs";

/// The symbol that code with a stack protector needs.
const STACK_PROTECTOR: &[u8] = b"__stack_chk_fail";

/// Most bytes of a binary.
const BINARY_LIMIT: usize = 13_000_000;

/// `processors`: of which a binary is made; none: of this machine's.
pub(crate) fn command(processors: &[&str]) -> ExitCode {
    exit_code("dist", make(processors))
}

fn make(processors: &[&str]) -> Result<(), Failure> {
    let own = target::of_processor(std::env::consts::ARCH)?;
    let targets = match processors {
        [] => vec![own],
        names => names.iter().map(|name| target::of_processor(name)).collect::<Result<_, _>>()?,
    };
    let workspace = Workspace::open()?;
    // Pages and completions are printed by the command, so by one that runs here.
    let speaker = build(&workspace, own)?;
    let folder = workspace.target.join("dist");
    let mut made = vec![];
    for target in targets {
        let binary = if target == own { speaker.clone() } else { build(&workspace, target)? };
        let tree = tree::InstalledTree::make(&workspace, target, &binary, &speaker)?;
        made.extend(formats::all(&workspace, &tree)?);
    }
    let sums = formats::write_sums(&workspace, &folder, &made)?;
    print!("{sums}");
    println!("dist: {} files and SHA256SUMS are in {}", made.len(), folder.display());
    Ok(())
}

/// Builds the command, and says where it is.
fn build(workspace: &Workspace, target: DistTarget) -> Result<PathBuf, Failure> {
    let triple = target.triple;
    let (compiler, package) = target.compiler();
    if !crate::workspace::is_installed(&compiler) {
        let remedy = format!("apt-get install {package}");
        return Err(Failure::new(format!("{compiler} compiles C for {triple}; it is not here"), remedy));
    }
    crate::workspace::install_target(workspace, triple)?;
    let hidden = hidden_paths(workspace)?;
    let mut flags: Vec<String> =
        hidden.iter().map(|(path, name)| format!("--remap-path-prefix={}={name}", path.display())).collect();
    flags.push(LINK_FLAG.to_owned());
    let arguments =
        ["build", "--profile", "dist", "--locked", "-p", "quietcore-cli", "--bin", "quietcore", "--target"];
    let mut cargo = workspace.cargo(&arguments);
    let variable = triple.replace('-', "_");
    // Separated as cargo wants it: a path may have spaces.
    cargo.arg(triple).env("CARGO_ENCODED_RUSTFLAGS", flags.join("\u{1f}"));
    cargo.env(format!("CFLAGS_{variable}"), C_FLAGS).env(format!("CC_{variable}"), &compiler);
    if !target.is_own() {
        cargo.env(format!("CARGO_TARGET_{}_LINKER", variable.to_uppercase()), &compiler);
    }
    run(&mut cargo, "mend what the compiler names")?;
    let built = workspace.target.join(triple).join("dist");
    let binary = built.join("quietcore");
    let content = files::read(&binary)?;
    check(&content, &hidden)?;
    has_stack_protector(&built.join("build"))?;
    println!("{}: {:.1} MB, without a path of this machine", binary.display(), content.len() as f64 / 1e6);
    Ok(binary)
}

/// The folders that things are built from and in, and what they are called in the binary. The last one that
/// fits a path counts.
fn hidden_paths(workspace: &Workspace) -> Result<Vec<(PathBuf, &'static str)>, Failure> {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let sysroot = capture(workspace.program(rustc).args(["--print", "sysroot"]))?;
    let home = std::env::var_os("HOME").unwrap_or_default();
    let cargo = std::env::var_os("CARGO_HOME").filter(|home| !home.is_empty());
    let cargo = cargo.map_or_else(|| Path::new(&home).join(".cargo"), PathBuf::from);
    Ok(vec![
        (workspace.root.clone(), "quietcore"),
        (workspace.target.clone(), "target"),
        (cargo, "cargo"),
        (PathBuf::from(sysroot.trim()), "rust"),
    ])
}

/// Refuses a binary that tells where it was built, or is too large.
fn check(binary: &[u8], hidden: &[(PathBuf, &'static str)]) -> Result<(), Failure> {
    for (path, _) in hidden {
        let mut folder = OsString::from(path);
        folder.push("/");
        let found = binary.windows(folder.len()).filter(|window| *window == folder.as_bytes()).count();
        if found > 0 {
            let what = format!("the binary holds {found} paths below {}", path.display());
            return Err(Failure::new(what, "add what names it to the flags in xtask/src/dist/mod.rs"));
        }
    }
    if binary.len() > BINARY_LIMIT {
        let what = format!("the binary has {} bytes, more than {BINARY_LIMIT}", binary.len());
        return Err(Failure::new(what, "look at what has grown: `nm --size-sort` of a build without strip"));
    }
    Ok(())
}

/// Refuses C code without a stack protector, in the library that was linked: the binary has no symbols left.
fn has_stack_protector(built: &Path) -> Result<(), Failure> {
    let entries = fs::read_dir(built).map_err(|error| files::failed(built, &error))?;
    let libraries = entries.filter_map(|entry| Some(entry.ok()?.path().join("out/libzstd.a")));
    let libraries: Vec<PathBuf> = libraries.filter(|library| library.is_file()).collect();
    for library in &libraries {
        let content = files::read(library)?;
        if !content.windows(STACK_PROTECTOR.len()).any(|window| window == STACK_PROTECTOR) {
            let remedy = "remove it, and use a compiler of C that has -fstack-protector-strong";
            let what = format!("the C code in {} has no stack protector", library.display());
            return Err(Failure::new(what, remedy));
        }
    }
    if libraries.is_empty() {
        let what = format!("no libzstd.a is below {}, so nothing says how C was compiled", built.display());
        return Err(Failure::new(what, "is zstd still part of the command?"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{BINARY_LIMIT, check, has_stack_protector};
    use std::fs;
    use std::path::PathBuf;

    /// Goal: a path of the builder is found wherever it is, and so is one byte too much. Method: binaries of
    /// a few bytes.
    #[test]
    fn a_path_of_the_builder_is_refused() {
        let hidden = [(PathBuf::from("/one/.cargo"), "cargo"), (PathBuf::from("/build"), "quietcore")];
        let refused = |binary: &[u8]| check(binary, &hidden).err().map(|failure| failure.what);
        assert_eq!(refused(b"\0cargo/registry/src/a.rs\0/buildings"), None);
        let told = refused(b"\xff/one/.cargo/registry/a.rs\0/one/.cargo/b");
        assert_eq!(told.as_deref(), Some("the binary holds 2 paths below /one/.cargo"));
        assert!(refused(b"/build/").is_some_and(|what| what.contains("1 paths below /build")));
        assert_eq!(refused(&vec![0; BINARY_LIMIT]), None);
        assert!(refused(&vec![0; BINARY_LIMIT + 1]).is_some_and(|what| what.contains("13000001 bytes")));
    }

    /// Goal: C without a stack protector is refused, and so is no C at all. Method: folders as cargo makes
    /// them.
    #[test]
    fn c_without_a_stack_protector_is_refused() {
        let folder = std::env::temp_dir().join(format!("quietcore-dist-{}", std::process::id()));
        let out = folder.join("zstd-sys-1/out");
        fs::create_dir_all(&out).expect("a folder of our own");
        let refused = || has_stack_protector(&folder).err().map(|failure| failure.what);
        assert!(refused().is_some_and(|what| what.contains("no libzstd.a")));
        for (content, word) in [("compress", Some("no stack protector")), ("\0__stack_chk_fail\0", None)] {
            fs::write(out.join("libzstd.a"), content).expect("a folder of our own");
            let said = refused();
            assert_eq!(said.as_deref().map(|what| what.ends_with(word.unwrap_or("?"))), word.map(|_| true));
        }
        fs::remove_dir_all(&folder).expect("it was made here");
    }
}

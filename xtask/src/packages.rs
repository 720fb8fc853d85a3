//! `cargo xtask packages`: what would be published, and a stranger who has nothing else.
//!
//! Makes the packages of all crates and looks at each: it has the texts of both licences, a README, and a
//! manifest that says where it is from. With `--build` they are put into a registry of files beside those
//! they depend on; from that registry alone a program outside of the workspace is built (`tests/packages`)
//! and the command is installed, and both are run. Invariant: nothing is uploaded, and what is installed is
//! below the target folder.

use crate::files::{empty, failed, read_text, write};
use crate::workspace::{Failure, Workspace, capture, exit_code, run};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// What every package has, beside its code.
const FILES: [&str; 4] = ["LICENSE-APACHE", "LICENSE-MIT", "README.md", "Cargo.toml"];

/// What the manifest of every package says.
const FIELDS: [&str; 7] =
    ["license", "description", "repository", "homepage", "keywords", "categories", "rust-version"];

/// What is not published.
const PRIVATE: [&str; 2] = ["xtask", "quietcore-testing"];

/// Most bytes of a package that the registry takes.
const PACKAGE_LIMIT: u64 = 10_000_000;

pub(crate) fn command(build: bool) -> ExitCode {
    exit_code("packages", check(build))
}

/// Makes them and looks at each; `build`: a stranger uses them.
///
/// # Errors
/// When one cannot be made, lacks something, or cannot be used.
pub(crate) fn check(build: bool) -> Result<(), Failure> {
    let workspace = Workspace::open()?;
    let made = Packages::make(&workspace)?;
    for package in &made.all {
        let problems = package.problems();
        if !problems.is_empty() {
            let what = format!("package {}: {}", package.name, problems.join(", "));
            return Err(Failure::new(
                what,
                "compare crates/wheel: its Cargo.toml, and its links to the licences",
            ));
        }
        println!("{:<20} {:>5} files, {:>7.1} KB", package.name, package.files, package.bytes as f64 / 1e3);
    }
    if build { made.try_as_stranger() } else { Ok(()) }
}

/// A package, unpacked.
#[derive(Debug)]
struct Package {
    name: String,
    folder: PathBuf,
    files: usize,
    bytes: u64,
}

/// All of them, in a folder that cargo takes for a registry.
#[derive(Debug)]
struct Packages<'a> {
    workspace: &'a Workspace,
    root: PathBuf,
    all: Vec<Package>,
}

impl<'a> Packages<'a> {
    fn make(workspace: &'a Workspace) -> Result<Self, Failure> {
        let root = workspace.target.join("packages");
        let archives = workspace.target.join("package");
        empty(&root)?;
        empty(&archives)?;
        let registry = root.join("registry");
        empty(&registry)?;
        // What others depend on is verified by the stranger, once, not by each package again.
        let mut package = workspace.cargo(&["package", "--quiet", "--workspace", "--locked", "--no-verify"]);
        package.arg("--allow-dirty").args(PRIVATE.iter().flat_map(|name| ["--exclude", name]));
        run(&mut package, "mend what cargo names; a package holds what is below its folder")?;
        let mut all = vec![];
        let entries = fs::read_dir(&archives).map_err(|error| failed(&archives, &error))?;
        for entry in entries {
            let archive = entry.map_err(|error| failed(&archives, &error))?.path();
            if archive.extension().is_some_and(|end| end == "crate") {
                all.push(Package::unpack(workspace, &archive, &registry)?);
            }
        }
        all.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(Self { workspace, root, all })
    }

    /// Builds and runs what a stranger would.
    fn try_as_stranger(&self) -> Result<(), Failure> {
        let registry = self.root.join("registry");
        let mut vendor = self.workspace.cargo(&["vendor", "--quiet", "--locked", "--versioned-dirs"]);
        vendor.arg("--no-delete").arg(&registry);
        capture(&mut vendor)?;
        let source = format!(
            "[source.crates-io]\nreplace-with = \"files\"\n[source.files]\ndirectory = \"{}\"\n",
            registry.display()
        );
        let program = self.root.join("stranger");
        let texts = self.workspace.root.join("tests/packages");
        let manifest = read_text(&texts.join("Cargo.toml.in"))?.replace("VERSION", env!("CARGO_PKG_VERSION"));
        write(&program.join("Cargo.toml"), &manifest)?;
        write(&program.join("src/main.rs"), &read_text(&texts.join("main.rs"))?)?;
        let configuration = program.join(".cargo/config.toml");
        write(&configuration, &source)?;
        let remedy = "what it lacks is not in the packages: compare the lists above";
        run(self.workspace.cargo(&["run", "--quiet", "--offline"]).current_dir(&program), remedy)?;
        let mut install = self.workspace.cargo(&["install", "--quiet", "--offline", "--locked", "--debug"]);
        // It reads no configuration of the folder where it is typed.
        install.args(["quietcore-cli", "--root"]).arg(&self.root).arg("--config").arg(&configuration);
        run(&mut install, remedy)?;
        self.try_command()
    }

    /// What is part of the command is in its package.
    fn try_command(&self) -> Result<(), Failure> {
        let command = self.root.join("bin").join("quietcore");
        let version = capture(self.workspace.program(&command).arg("--version"))?;
        print!("installed from its package: {version}");
        let wanted = format!("quietcore {}", env!("CARGO_PKG_VERSION"));
        if !version.starts_with(&wanted) || version.contains("commit:  unknown") {
            let what = format!("`quietcore --version` says {version:?}, not {wanted:?} and its commit");
            return Err(Failure::new(what, "look at crates/cli/build.rs"));
        }
        for arguments in [["sim", "@isolated", "--json"], ["explain", "@g612-c16-iso", "--json"]] {
            capture(self.workspace.program(&command).args(arguments).current_dir(&self.root))?;
        }
        Ok(())
    }
}

impl Package {
    fn unpack(workspace: &Workspace, archive: &Path, registry: &Path) -> Result<Self, Failure> {
        let stem = archive.file_stem().unwrap_or_default();
        let folder = registry.join(stem);
        let bytes = fs::metadata(archive).map_err(|error| failed(archive, &error))?.len();
        let mut tar = workspace.program("tar");
        tar.arg("-xzf").arg(archive).arg("-C").arg(registry);
        run(&mut tar, "look at the archive by hand")?;
        // A registry of files wants sums: that of the archive, which lock files of other packages name. The
        // files in it are our own, of a moment ago.
        let sum = capture(workspace.program("sha256sum").arg(archive))?;
        let sum = sum.split_whitespace().next().unwrap_or_default();
        let sums = format!("{{\"files\":{{}},\"package\":\"{sum}\"}}");
        write(&folder.join(".cargo-checksum.json"), sums)?;
        let name = stem
            .to_string_lossy()
            .trim_end_matches(env!("CARGO_PKG_VERSION"))
            .trim_end_matches('-')
            .to_owned();
        let files = capture(workspace.program("tar").arg("-tzf").arg(archive))?.lines().count();
        Ok(Self { name, folder, files, bytes })
    }

    /// What it lacks.
    fn problems(&self) -> Vec<String> {
        let manifest = fs::read_to_string(self.folder.join("Cargo.toml")).unwrap_or_default();
        let lacks_file =
            |file: &&&str| fs::metadata(self.folder.join(file)).map_or(true, |file| file.len() == 0);
        let mut problems: Vec<String> =
            FILES.iter().filter(lacks_file).map(|file| format!("no {file}")).collect();
        let has = |field: &str| manifest.lines().any(|line| line.starts_with(&format!("{field} = ")));
        let fields = FIELDS.iter().filter(|field| !has(field));
        problems.extend(fields.map(|field| format!("no {field} in its manifest")));
        if self.bytes > PACKAGE_LIMIT {
            problems.push(format!("{} bytes, more than the registry takes", self.bytes));
        }
        problems
    }
}

#[cfg(test)]
mod tests {
    use super::{FIELDS, FILES, PACKAGE_LIMIT, Package, write};
    use std::fs;

    /// Goal: whatever a package lacks is named. Method: one that has all, less one thing after the other.
    #[test]
    fn what_a_package_lacks_is_named() {
        let folder = std::env::temp_dir().join(format!("quietcore-package-{}", std::process::id()));
        let mut package = Package { name: "a".to_owned(), folder, files: 4, bytes: PACKAGE_LIMIT };
        let manifest: Vec<String> = FIELDS.iter().map(|field| format!("{field} = \"x\"")).collect();
        let fill = |manifest: &[String]| {
            for file in FILES {
                let text = if file == "Cargo.toml" { manifest.join("\n") } else { "text".to_owned() };
                write(&package.folder.join(file), &text).expect("a folder of our own");
            }
        };
        fill(&manifest);
        assert_eq!(package.problems(), [] as [&str; 0]);
        for (place, field) in FIELDS.iter().enumerate() {
            let mut shorter = manifest.clone();
            shorter.remove(place);
            fill(&shorter);
            assert_eq!(package.problems(), [format!("no {field} in its manifest")]);
        }
        fill(&manifest);
        fs::write(package.folder.join("LICENSE-MIT"), "").expect("a folder of our own");
        package.bytes += 1;
        assert_eq!(package.problems(), ["no LICENSE-MIT", "10000001 bytes, more than the registry takes"]);
        fs::remove_dir_all(&package.folder).expect("it was made here");
    }
}

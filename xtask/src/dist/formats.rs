//! A tree as files that people install: an archive for any Linux, a package for Debian's relatives and one
//! for Red Hat's, each by the format's own program; and the sums of them.

use super::tree::InstalledTree;
use crate::files::{failed, write};
use crate::workspace::{Failure, Workspace, capture, is_installed, run};
use std::fs;
use std::path::{Path, PathBuf};

const CONTROL: &str = include_str!("control.in");
/// Ends the service before its command is removed. A newer package leaves a watch alone that runs: starting
/// it anew would interrupt the CPUs that it watches.
const BEFORE_REMOVAL: &str = include_str!("prerm.in");
const COPYRIGHT: &str = include_str!("copyright.in");
const SPECIFICATION: &str = include_str!("quietcore.spec.in");

/// Programs, and Debian's packages that have them.
const PROGRAMS: [(&str, &str); 5] =
    [("tar", "tar"), ("zstd", "zstd"), ("sha256sum", "coreutils"), ("dpkg-deb", "dpkg"), ("rpmbuild", "rpm")];

/// Makes all of them of a tree, and says where they are.
pub(super) fn all(workspace: &Workspace, tree: &InstalledTree) -> Result<Vec<PathBuf>, Failure> {
    for (program, package) in PROGRAMS {
        if !is_installed(program) {
            return Err(Failure::new(
                format!("`{program}` is not here"),
                format!("apt-get install {package}"),
            ));
        }
    }
    Ok(vec![archive(workspace, tree)?, debian(workspace, tree)?, rpm(workspace, tree)?])
}

/// `quietcore-VERSION-PROCESSOR-linux.tar.zst`, with `bin` and `share` below a folder of that name.
fn archive(workspace: &Workspace, tree: &InstalledTree) -> Result<PathBuf, Failure> {
    let name = format!("quietcore-{}-{}-linux", tree.version, tree.target.processor);
    let file = folder(workspace).join(format!("{name}.tar.zst"));
    let mut tar = workspace.program("tar");
    tar.args(["--sort=name", "--owner=0", "--group=0", "--numeric-owner", "--mode=go-w"]);
    tar.arg(format!("--mtime=@{}", tree.moment)).arg(format!("--transform=s,^usr,{name},"));
    tar.args(["--use-compress-program", "zstd -19 --quiet", "-cf"]).arg(&file);
    tar.arg("-C").arg(&tree.root).arg("usr");
    run(&mut tar, "look at what tar says")?;
    Ok(file)
}

fn debian(workspace: &Workspace, tree: &InstalledTree) -> Result<PathBuf, Failure> {
    let root = copy(workspace, tree, "deb")?;
    write(&root.join("usr/share/doc/quietcore/copyright"), COPYRIGHT)?;
    let size = capture(workspace.program("du").args(["-sk", "--apparent-size"]).arg(root.join("usr")))?;
    let size = size.split_whitespace().next().unwrap_or("0").to_owned();
    let values = [("VERSION", &*tree.version), ("ARCHITECTURE", tree.target.debian), ("SIZE", &size)];
    write(&root.join("DEBIAN/control"), filled(CONTROL, &values))?;
    let script = root.join("DEBIAN/prerm");
    write(&script, BEFORE_REMOVAL)?;
    run(workspace.program("chmod").arg("755").arg(&script), "is there room, and may we write?")?;
    let file = folder(workspace).join(format!("quietcore_{}-1_{}.deb", tree.version, tree.target.debian));
    let mut dpkg = workspace.program("dpkg-deb");
    dpkg.env("SOURCE_DATE_EPOCH", &tree.moment);
    dpkg.args(["--root-owner-group", "-Zxz", "--build"]).arg(&root).arg(&file);
    run(&mut dpkg, "look at what dpkg-deb says")?;
    Ok(file)
}

fn rpm(workspace: &Workspace, tree: &InstalledTree) -> Result<PathBuf, Failure> {
    let root = copy(workspace, tree, "rpm")?;
    let work = folder(workspace).join("rpmbuild");
    let specification = work.join("quietcore.spec");
    let values = [("VERSION", &*tree.version), ("TREE", &*root.to_string_lossy())];
    write(&specification, filled(SPECIFICATION, &values))?;
    let mut rpmbuild = workspace.program("rpmbuild");
    rpmbuild.env("SOURCE_DATE_EPOCH", &tree.moment);
    rpmbuild.args(["-bb", "--quiet", "--target", tree.target.processor]);
    rpmbuild.arg("--define").arg(format!("_topdir {}", work.display())).arg(&specification);
    run(&mut rpmbuild, "look at what rpmbuild says")?;
    let name = format!("quietcore-{}-1.{}.rpm", tree.version, tree.target.processor);
    let made = work.join("RPMS").join(tree.target.processor).join(&name);
    let file = folder(workspace).join(&name);
    fs::rename(&made, &file).map_err(|error| failed(&made, &error))?;
    Ok(file)
}

/// A copy of the tree with pages compressed, as packages have them.
fn copy(workspace: &Workspace, tree: &InstalledTree, format: &str) -> Result<PathBuf, Failure> {
    let root = folder(workspace).join(format!("{format}-{}", tree.target.processor));
    if root.exists() {
        fs::remove_dir_all(&root).map_err(|error| failed(&root, &error))?;
    }
    run(workspace.program("cp").arg("-a").arg(&tree.root).arg(&root), "is there room?")?;
    let mut gzip = workspace.program("gzip");
    run(gzip.args(["-9", "-n", "-r"]).arg(root.join("usr/share/man")), "look at what gzip says")?;
    Ok(root)
}

/// The sums of all files, as `sha256sum --check` reads them.
pub(super) fn write_sums(workspace: &Workspace, folder: &Path, files: &[PathBuf]) -> Result<String, Failure> {
    let names = files.iter().filter_map(|file| file.file_name());
    let sums = capture(workspace.program("sha256sum").args(names).current_dir(folder))?;
    write(&folder.join("SHA256SUMS"), &sums)?;
    Ok(sums)
}

fn folder(workspace: &Workspace) -> PathBuf {
    workspace.target.join("dist")
}

/// A template with its words in capitals, as `@VERSION@`, replaced.
fn filled(template: &str, values: &[(&str, &str)]) -> String {
    values.iter().fold(template.to_owned(), |text, (name, value)| text.replace(&format!("@{name}@"), value))
}

#[cfg(test)]
mod tests {
    use super::{CONTROL, SPECIFICATION, filled};

    /// Goal: no word of a template is left as it is. Method: the templates, filled as they are here.
    #[test]
    fn templates_are_filled() {
        let control = filled(CONTROL, &[("VERSION", "1.2.3"), ("ARCHITECTURE", "amd64"), ("SIZE", "7")]);
        assert!(control.contains("\nVersion: 1.2.3-1\n") && !control.contains('@'), "{control}");
        let specification = filled(SPECIFICATION, &[("VERSION", "1.2.3"), ("TREE", "/a")]);
        assert!(specification.contains("\nVersion: 1.2.3\n") && !specification.contains('@'));
    }
}

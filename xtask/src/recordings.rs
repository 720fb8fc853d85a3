//! What the steps that read recordings share: the files of a folder, their names, and the tool.

use crate::workspace::{Failure, Workspace, run};
use std::fs;
use std::path::{Path, PathBuf};

/// Endings of a recording.
const ENDINGS: [&str; 2] = [".txt.zst", ".txt"];

const REMEDY: &str = "name a folder with recordings, or restore it from the repository";

/// All recordings in the order of their names; none at all is a failure, as it would show nothing.
pub(crate) fn all(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let cannot = |error: std::io::Error| Failure::new(format!("{}: {error}", folder.display()), REMEDY);
    let mut found = vec![];
    for entry in fs::read_dir(folder).map_err(cannot)? {
        let path = entry.map_err(cannot)?.path();
        let name = path.to_string_lossy();
        if ENDINGS.iter().any(|ending| name.ends_with(ending)) {
            found.push(fs::canonicalize(&path).map_err(cannot)?);
        }
    }
    found.sort();
    if found.is_empty() {
        let what = format!("{} has no {}", folder.display(), ENDINGS.join(" and no "));
        return Err(Failure::new(what, REMEDY));
    }
    Ok(found)
}

/// Its file, without the ending.
pub(crate) fn name_of(recording: &Path) -> String {
    let name = recording.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let stem = ENDINGS.iter().find_map(|ending| name.strip_suffix(ending));
    stem.map_or(name.clone(), str::to_owned)
}

/// The release build of the tool.
pub(crate) fn built_tool(workspace: &Workspace) -> Result<PathBuf, Failure> {
    let arguments = ["build", "--release", "--locked", "-p", "quietcore-cli", "--bin", "quietcore"];
    let mut command = workspace.cargo(&arguments);
    // Where it lands must not depend on a default target of this machine's configuration.
    command.env_remove("CARGO_BUILD_TARGET");
    run(&mut command, "make it build")?;
    let path = workspace.target.join("release").join("quietcore");
    if path.is_file() {
        return Ok(path);
    }
    let what = format!("{} was built but is not there", path.display());
    Err(Failure::new(what, "unset build.target in cargo's configuration for this run"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: no recordings is a failure, not a pass. Method: this repository's folder and two without.
    #[test]
    fn a_folder_without_recordings_fails() {
        let found =
            all(&crate::workspace::root().join("recordings")).expect("the folder is in the repository");
        assert!(found.len() > 1 && found.is_sorted());
        assert_eq!(name_of(Path::new("recordings/g61-c16-iso.txt.zst")), "g61-c16-iso");
        assert_eq!(name_of(Path::new("x/trace.txt")), "trace");
        all(&crate::workspace::root().join("xtask/src")).expect_err("there is no recording");
        all(&crate::workspace::root().join("no such folder")).expect_err("there is no folder");
    }
}

//! What a binary is made of, for those who must know: a list in a format that scanners read, and the licences
//! of all libraries in it, whose authors ask for that.

use super::target::DistTarget;
use crate::files::{failed, read, read_text};
use crate::workspace::{Failure, Workspace, capture, is_installed, json_string};
use std::fs;
use std::path::{Path, PathBuf};

/// The program that makes the list.
const LISTER: &str = "cargo-cyclonedx";

/// How the names of files with licences begin.
const LICENCE_FILES: [&str; 4] = ["LICENSE", "LICENCE", "COPYING", "NOTICE"];

/// Packages with versions, licences and where they are from: CycloneDX as JSON, of the commit's `moment`,
/// without a path of this machine.
pub(super) fn list(workspace: &Workspace, target: DistTarget, moment: &str) -> Result<String, Failure> {
    if !is_installed(LISTER) {
        let remedy = format!("cargo install {LISTER} --locked");
        return Err(Failure::new(
            format!("{LISTER} lists what the binary is made of; it is not here"),
            remedy,
        ));
    }
    let name = format!("quietcore-{}", target.processor);
    let mut cargo = workspace.cargo(&["cyclonedx", "--quiet", "--format", "json", "--spec-version", "1.5"]);
    cargo.args(["--manifest-path", "crates/cli/Cargo.toml", "--target", target.triple]);
    cargo.args(["--no-build-deps", "--override-filename", &name]);
    capture(cargo.env("SOURCE_DATE_EPOCH", moment))?;
    // It writes beside every manifest that it read.
    let mut found = None;
    for place in ["crates", "."] {
        let folder = workspace.root.join(place);
        for entry in fs::read_dir(&folder).map_err(|error| failed(&folder, &error))? {
            let folder = entry.map_err(|error| failed(&folder, &error))?.path();
            let file = folder.join(format!("{name}.json"));
            if !file.is_file() {
                continue;
            }
            if folder.ends_with("crates/cli") {
                let root = format!("{}/", workspace.root.display());
                found = Some(read_text(&file)?.replace(&root, "quietcore/"));
            }
            fs::remove_file(&file).map_err(|error| failed(&file, &error))?;
        }
    }
    found.ok_or_else(|| Failure::new(format!("{LISTER} wrote no list"), "run it by hand in crates/cli"))
}

/// A library with its licence, and the folder of its source.
#[derive(Debug, PartialEq, Eq)]
struct Library {
    name: String,
    licence: String,
    folder: PathBuf,
}

/// The texts of all licences, of libraries that are not ours.
pub(super) fn licences(workspace: &Workspace, target: DistTarget) -> Result<String, Failure> {
    let arguments =
        ["tree", "--locked", "-p", "quietcore-cli", "-e", "normal", "--prefix", "none", "--no-dedupe"];
    let mut tree = workspace.cargo(&arguments);
    let tree = capture(tree.args(["--target", target.triple, "--format", "{p}|{l}"]))?;
    let metadata = capture(&mut workspace.cargo(&["metadata", "--format-version", "1", "--locked"]))?;
    let mut text = "The libraries that are part of the program quietcore, with their licences.\n".to_owned();
    for library in libraries(&tree, &metadata)? {
        text += &format!("\n\n{}\n{} ({})\n{0}\n", "=".repeat(78), library.name, library.licence);
        let texts = licence_texts(&library.folder)?;
        if texts.is_empty() {
            // Its package has no text; the names above are standard ones.
            text += "\nIts licence is known by this name.\n";
        }
        for licence in texts {
            text += &format!("\n{}\n", licence.trim());
        }
    }
    Ok(text)
}

/// Those of the lines `NAME vVERSION|LICENCE` that are from a registry, each once, in order.
fn libraries(tree: &str, metadata: &str) -> Result<Vec<Library>, Failure> {
    let manifests: Vec<String> = metadata
        .match_indices("\"manifest_path\":")
        .filter_map(|(at, _)| json_string(&metadata[at..], "manifest_path"))
        .collect();
    let mut lines: Vec<&str> = tree.lines().filter(|line| !line.contains(" (/")).collect();
    lines.sort_unstable();
    lines.dedup();
    let mut found = vec![];
    for (package, licence) in lines.iter().filter_map(|line| line.split_once('|')) {
        let name = package.split(" (").next().unwrap_or(package).replacen(" v", "-", 1);
        let manifest = manifests.iter().find(|path| path.ends_with(&format!("/{name}/Cargo.toml")));
        let Some(folder) = manifest.and_then(|path| Path::new(path).parent()) else {
            return Err(Failure::new(format!("cargo does not say where {name} is"), "run `cargo fetch`"));
        };
        found.push(Library { name, licence: licence.to_owned(), folder: folder.to_owned() });
    }
    Ok(found)
}

fn licence_texts(folder: &Path) -> Result<Vec<String>, Failure> {
    let mut files = vec![];
    for entry in fs::read_dir(folder).map_err(|error| failed(folder, &error))? {
        let path = entry.map_err(|error| failed(folder, &error))?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_uppercase();
        if path.is_file() && LICENCE_FILES.iter().any(|begin| name.starts_with(begin)) {
            files.push(path);
        }
    }
    files.sort();
    files.iter().map(|file| Ok(String::from_utf8_lossy(&read(file)?).into_owned())).collect()
}

#[cfg(test)]
mod tests {
    use super::{Library, libraries};

    /// Goal: each library of others once, with its folder; ours are left out; one whose source is nowhere is
    /// named. Method: what cargo prints, in small.
    #[test]
    fn libraries_of_others_are_listed_once() {
        let tree = "quietcore-cli v0.1.0 (/a/crates/cli)|MIT\nb v1.2.3|MIT\nm v2.0.0 (proc-macro)|Apache-2.0\nb v1.2.3|MIT\n";
        let metadata =
            r#"{"manifest_path":"/r/b-1.2.3/Cargo.toml"},{"manifest_path":"/r/m-2.0.0/Cargo.toml"}"#;
        let library = |name: &str, licence: &str| Library {
            name: name.to_owned(),
            licence: licence.to_owned(),
            folder: format!("/r/{name}").into(),
        };
        let found = libraries(tree, metadata).expect("both are there");
        assert_eq!(found, [library("b-1.2.3", "MIT"), library("m-2.0.0", "Apache-2.0")]);
        let missing = libraries("c v1.0.0|MIT", metadata).expect_err("it is nowhere");
        assert_eq!(missing.what, "cargo does not say where c-1.0.0 is");
    }
}

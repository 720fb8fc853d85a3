//! Rules about the whole tree: which crate may name which, and what the recordings weigh.
//!
//! The arrows are those of ARCHITECTURE.md. A crate that is not in the table is an error, so that a new
//! crate gets its place in the picture before its first user.

use super::source::{SourceFile, SourceTree, Violation};

/// Most bytes of `recordings/` together: they are embedded and cloned by everybody.
const RECORDINGS_LIMIT: u64 = 6 * 1024 * 1024;

/// Crate folder and the crates of ours it may name. `live` and `sim` never name each other.
const ARROWS: [(&str, &[&str]); 21] = [
    ("macros", &[]),
    ("page", &[]),
    ("testing", &[]),
    ("wheel", &[]),
    ("core", &["wheel"]),
    ("qdisc", &["wheel", "core"]),
    ("trace", &["wheel", "core"]),
    ("explain", &["core", "trace"]),
    // What-if answers in the figures of explain.
    ("verify", &["wheel", "core", "trace", "explain"]),
    // Names of interrupts and softirqs, and what may be shown of a name.
    ("watch", &["core", "trace"]),
    ("live", &["wheel", "core"]),
    // The packets of a scenario pass through the disciplines that programs use; a run is written as tracks.
    ("sim", &["wheel", "core", "qdisc", "trace"]),
    ("answers", &["core", "trace", "explain", "verify", "sim"]),
    ("tables", &["core", "trace", "explain", "verify", "sim", "answers"]),
    ("tokio", &["live"]),
    ("net", &["wheel", "core", "qdisc", "live", "tokio"]),
    ("adapters", &["live"]),
    ("quietcore", &["wheel", "core", "qdisc", "live", "net", "tokio", "adapters", "sim", "macros"]),
    ("ffi", &["wheel", "core", "qdisc", "live", "sim", "quietcore"]),
    ("lab", &["core", "qdisc", "trace", "explain", "live", "net", "sim", "page"]),
    (
        "cli",
        &[
            "wheel",
            "core",
            "qdisc",
            "trace",
            "explain",
            "verify",
            "live",
            "net",
            "sim",
            "quietcore",
            "lab",
            "page",
            "watch",
            "answers",
            "tables",
        ],
    ),
];

/// Crates whose examples and tests are written against the facade: their development may depend on it.
const WRITTEN_AGAINST_FACADE: [&str; 4] = ["adapters", "live", "net", "tokio"];

pub(crate) fn check(tree: &SourceTree) -> Vec<Violation> {
    let mut found = vec![];
    for source in &tree.sources {
        if let Some(folder) = crate_of(&source.path) {
            check_arrows(source, folder, &mut found);
        }
    }
    check_recordings(tree, RECORDINGS_LIMIT, &mut found);
    found
}

/// `crates/NAME/Cargo.toml` -> `NAME`.
fn crate_of(path: &str) -> Option<&str> {
    let name = path.strip_prefix("crates/")?.strip_suffix("/Cargo.toml")?;
    (!name.contains('/')).then_some(name)
}

fn check_arrows(source: &SourceFile, folder: &str, found: &mut Vec<Violation>) {
    let Some((_, allowed)) = ARROWS.iter().find(|(name, _)| *name == folder) else {
        let remedy = format!("`{folder}` has no place; add it to ARROWS in xtask/src/tidy/tree.rs");
        found.push(Violation::error(source, 0, "crate-arrows", remedy));
        return;
    };
    for (number, name, purpose) in dependencies(&source.text) {
        let other = match name.strip_prefix("quietcore") {
            Some("") => "quietcore",
            Some(rest) => rest.trim_start_matches('-'),
            None => continue,
        };
        let is_example = other == "quietcore" && purpose == Purpose::Development;
        if is_example && WRITTEN_AGAINST_FACADE.contains(&folder) {
            continue;
        }
        // What tests share is no dependency of what is published.
        if other == "testing" && purpose == Purpose::Development {
            continue;
        }
        // A crate may name itself: its tests then have all its features.
        if other != folder && !allowed.contains(&other) {
            let remedy = format!("`{folder}` must not name `{other}`; turn the arrow round or move the code");
            found.push(Violation::error(source, number, "crate-arrows", remedy));
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Purpose {
    Build,
    Development,
}

/// SourceLine (from 0), name and purpose of every dependency, whatever table it stands in.
fn dependencies(manifest: &str) -> Vec<(usize, String, Purpose)> {
    let mut found = vec![];
    let (mut in_table, mut purpose) = (false, Purpose::Build);
    for (number, line) in manifest.lines().enumerate() {
        let line = line.trim();
        if let Some(table) = line.strip_prefix('[').and_then(|rest| rest.split(']').next()) {
            in_table = table.ends_with("dependencies");
            let is_development = table.contains("dev-dependencies");
            purpose = if is_development { Purpose::Development } else { Purpose::Build };
            if let Some((_, name)) = table.split_once("dependencies.") {
                found.push((number, name.trim_matches(['"', '\'']).to_owned(), purpose));
            }
        } else if in_table && !line.is_empty() && !line.starts_with('#') {
            let name = line.split(['=', '.', ' ']).next().unwrap_or_default();
            found.push((number, name.trim_matches(['"', '\'']).to_owned(), purpose));
        }
        // A rename hides the name in front: `x = { package = "quietcore-live" }`.
        if let Some((_, rest)) = line.split_once("package = \"").filter(|_| in_table) {
            found.push((number, rest.split('"').next().unwrap_or_default().to_owned(), purpose));
        }
    }
    found
}

fn check_recordings(tree: &SourceTree, limit: u64, found: &mut Vec<Violation>) {
    let sizes = tree.sizes.iter().filter(|(path, _)| path.starts_with("recordings/"));
    let total: u64 = sizes.map(|(_, bytes)| bytes).sum();
    if total > limit {
        let remedy = format!("{total} bytes, more than {limit}; leave a recording out");
        found.push(Violation::error(&SourceFile::of("recordings", ""), 0, "recordings-size", remedy));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(folder: &str, dependencies: &str) -> usize {
        let path = format!("crates/{folder}/Cargo.toml");
        check(&SourceTree::of(&[(&path, dependencies)])).len()
    }

    /// Goal: every way to write a dependency is seen. Method: `core -> trace`, which is forbidden.
    #[test]
    fn forbidden_arrows_in_every_spelling() {
        for text in [
            "[dependencies]\nquietcore-trace.workspace = true\n",
            "[dependencies]\nquietcore-trace = { path = \"../trace\" }\n",
            "[dev-dependencies]\nquietcore-trace = \"1\"\n",
            "[target.'cfg(unix)'.dependencies]\n\"quietcore-trace\" = \"1\"\n",
            "[dependencies.quietcore-trace]\npath = \"../trace\"\n",
            "[dependencies]\nother = { package = \"quietcore-trace\", version = \"1\" }\n",
        ] {
            assert_eq!(problems("core", text), 1, "{text}");
        }
    }

    #[test]
    fn allowed_arrows() {
        assert_eq!(problems("core", "[dependencies]\nserde = \"1\"\n# quietcore-trace\n"), 0);
        assert_eq!(problems("core", "[package]\nname = \"quietcore-core\"\n"), 0);
        let text = "[dependencies]\nquietcore-core.workspace = true\nquietcore-trace.workspace = true\n";
        assert_eq!(problems("cli", text), 0);
        assert_eq!(problems("live", text), 1);
        let itself = "[dev-dependencies]\nquietcore = { path = \".\" }\n";
        assert_eq!((problems("quietcore", itself), problems("core", itself)), (0, 1));
    }

    /// Goal: examples may be written against the facade, code may not. Method: both tables, three crates.
    #[test]
    fn only_examples_name_the_facade() {
        let table = |table: &str| format!("[{table}]\nquietcore.workspace = true\n");
        for table in ["dev-dependencies", "target.'cfg(not(loom))'.dev-dependencies"].map(table) {
            assert_eq!(
                (problems("net", &table), problems("live", &table), problems("core", &table)),
                (0, 0, 1)
            );
        }
        assert_eq!(problems("net", &table("dependencies")), 1);
    }

    /// Goal: the worlds stay apart. Method: the table itself, and both manifests.
    #[test]
    fn live_and_sim_never_name_each_other() {
        assert_eq!(problems("live", "[dependencies]\nquietcore-sim = \"1\"\n"), 1);
        assert_eq!(problems("sim", "[dependencies]\nquietcore-live = \"1\"\n"), 1);
        assert_eq!(problems("core", "[dependencies]\nquietcore = \"1\"\n"), 1);
        assert_eq!(problems("nowhere", ""), 1);
    }

    /// Goal: the arrows have no circle. Method: each crate only names crates above it in the table.
    #[test]
    fn arrows_have_no_circle() {
        for (place, (name, allowed)) in ARROWS.iter().enumerate() {
            for other in *allowed {
                assert!(ARROWS[..place].iter().any(|(known, _)| known == other), "{name} -> {other}");
            }
        }
    }

    #[test]
    fn recordings_have_a_limit() {
        let tree = SourceTree::of(&[("recordings/a.txt.zst", "12345"), ("docs/b.md", "123456789")]);
        for (limit, expected) in [(5, 0), (4, 1)] {
            let mut found = vec![];
            check_recordings(&tree, limit, &mut found);
            assert_eq!(found.len(), expected);
        }
    }
}

//! `cargo xtask tidy`: the rules of style that a program can check.
//!
//! Decides which files are looked at and by which rules; every rule has a file beside this one, a
//! constant for each limit, and unit tests with a text that breaks it and one that does not. A violation
//! prints as `file:line: rule: remedy`. Errors fail the run, wishes are only printed.
//!
//! Deliberately absent: what rustfmt, clippy and the compiler's own lints check already.

mod circles;
mod citations;
mod claims;
mod docs;
mod functions;
mod names;
mod paths;
mod prose;
mod rust_source;
mod scan;
mod seeds;
mod source;
mod tree;

use crate::workspace::root;
use source::{SourceTree, Violation};
use std::process::ExitCode;

pub(crate) fn command() -> ExitCode {
    match report() {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("tidy: {problem}");
            ExitCode::FAILURE
        }
    }
}

/// Prints every violation; the error is the one sentence to end with.
///
/// # Errors
/// When a rule is broken, or the tree cannot be read.
pub(crate) fn report() -> Result<(), String> {
    let tree = SourceTree::read(&root()).map_err(|error| format!("cannot read the tree: {error}"))?;
    let violations = check(&tree);
    for violation in &violations {
        println!("{violation}");
    }
    match violations.iter().filter(|violation| violation.is_error()).count() {
        0 => {
            println!("tidy: no rule is broken");
            Ok(())
        }
        1 => Err("1 rule is broken; the line above says what to do".to_owned()),
        many => Err(format!("{many} rules are broken; the lines above say what to do")),
    }
}

/// Every rule over every file it is for.
fn check(tree: &SourceTree) -> Vec<Violation> {
    let mut found = vec![];
    for source in &tree.sources {
        found.extend(paths::check(source));
        if is_judged_rust(&source.path) {
            found.extend(rust_source::check(source));
            found.extend(functions::check(source));
            found.extend(prose::check(source));
            found.extend(citations::check(tree, source));
        } else if source.path.ends_with(".md") {
            found.extend(docs::check(tree, source));
        }
    }
    found.extend(circles::check(tree));
    found.extend(claims::check(tree));
    found.extend(names::check(tree));
    found.extend(rust_source::check_exceptions(tree));
    found.extend(tree::check(tree));
    found.extend(seeds::check(tree));
    found
}

/// Rust, and not the data of a test.
fn is_judged_rust(path: &str) -> bool {
    let data = path.split('/').any(|part| part == "data" || part == "fixtures");
    path.ends_with(".rs") && !data
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: this tree keeps its own rules. Method: the whole check; the text names every violation.
    #[test]
    fn this_tree_is_tidy() {
        let tree = SourceTree::read(&root()).expect("the tree can be read");
        let errors: Vec<String> =
            check(&tree).iter().filter(|violation| violation.is_error()).map(Violation::to_string).collect();
        assert!(errors.is_empty(), "\n{}\n", errors.join("\n"));
    }

    /// Goal: the check above looked at something. Method: files that must have been read.
    #[test]
    fn the_walk_finds_the_files() {
        let tree = SourceTree::read(&root()).expect("the tree can be read");
        for path in ["Cargo.toml", "xtask/src/tidy/mod.rs", "docs/seeds.md", ".ci/run"] {
            assert!(tree.source(path).is_some() && tree.has(path), "{path} was not read");
        }
        assert!(tree.has("xtask/src") && !tree.has("target") && !tree.has("xtask/sr"));
    }

    /// Goal: a violation can be clicked on and tells what to do. Method: the exact text of one.
    #[test]
    fn a_violation_prints_file_line_rule_remedy() {
        let tree = SourceTree::of(&[("crates/core/src/a.rs", "//! A.\nfn a() { b().unwrap() }\n")]);
        let found: Vec<String> = check(&tree).iter().map(Violation::to_string).collect();
        let text = "crates/core/src/a.rs:2: unwrap: return an error, or `expect` with the invariant that \
                    makes it impossible";
        assert!(found.iter().any(|violation| violation == text), "{found:?}");
    }

    /// Goal: test data is not judged as code. Method: one bad text in both places.
    #[test]
    fn data_is_not_judged() {
        assert!(is_judged_rust("crates/a/tests/b.rs") && !is_judged_rust("crates/a/tests/data/b.rs"));
        assert!(!is_judged_rust("crates/a/tests/b.txt"));
    }
}

//! Rule about names of types: one name means one thing in the whole workspace.
//!
//! Compares the types that a crate's other files can see, by name alone. Types of tests, examples, benchmarks
//! and fuzzers are left out: no reader meets them beside others. A name may stand twice only with a reason in
//! [`ALLOWED`], and an entry that is no longer needed is an error.

use super::source::{SourceFile, SourceTree, Violation};
use std::collections::BTreeMap;

/// Names that may be given more than once, and why.
const ALLOWED: &[(&str, &str)] = &[
    ("Builder", "tokio's attributes and programs name `runtime::Builder`"),
    ("Machine", "the core's decides, live's carries out; programs meet one of them"),
    ("TimerOptions", "a timer of the core, and of live; programs meet one of them"),
    ("Precision", "of the wheel, and of a timer, which may be exact, too"),
];

/// Words in front of a name of a type.
const TYPE_WORDS: [&str; 5] = ["struct", "enum", "trait", "union", "type"];

pub(crate) fn check(tree: &SourceTree) -> Vec<Violation> {
    check_with(tree, ALLOWED)
}

fn check_with(tree: &SourceTree, allowed: &[(&str, &str)]) -> Vec<Violation> {
    let mut places: BTreeMap<String, Vec<(&SourceFile, usize)>> = BTreeMap::new();
    for source in tree.sources.iter().filter(|source| is_judged(source)) {
        for (number, line) in source.lines.iter().enumerate().filter(|(_, line)| !line.in_test) {
            if let Some(name) = visible_type(&line.code) {
                let known = places.entry(name.to_owned()).or_default();
                // Twice in one file are two builds of one thing, by a `cfg`.
                if known.iter().all(|(other, _)| other.path != source.path) {
                    known.push((source, number));
                }
            }
        }
    }
    let mut found = vec![];
    for (name, places) in places.iter().filter(|(_, places)| places.len() > 1) {
        if allowed.iter().any(|(known, _why)| known == name) {
            continue;
        }
        let (source, number) = places[0];
        let others: Vec<String> =
            places[1..].iter().map(|(source, number)| format!("{}:{}", source.path, number + 1)).collect();
        let remedy = format!("`{name}` is also {}; say in each name what it is", others.join(", "));
        found.push(Violation::error(source, number, "one-name", remedy));
    }
    for (name, _why) in allowed {
        if places.get(*name).is_none_or(|places| places.len() < 2) {
            let remedy = format!("`{name}` is not given twice; take it from ALLOWED");
            found.push(Violation::error(
                &SourceFile::of("xtask/src/tidy/names.rs", ""),
                0,
                "stale-exception",
                remedy,
            ));
        }
    }
    found
}

fn is_judged(source: &SourceFile) -> bool {
    let is_ours = source.path.starts_with("crates/") || source.path.starts_with("xtask/");
    is_ours
        && source.path.ends_with(".rs")
        && source.path.contains("/src/")
        && !source.is_test()
        && !source.path.ends_with("models.rs")
}

/// The name of the type that this line declares for others.
fn visible_type(code: &str) -> Option<&str> {
    let rest = code.trim_start().strip_prefix("pub")?;
    let rest = match rest.strip_prefix('(') {
        Some(inner) => inner.split_once(')')?.1,
        None => rest,
    };
    let mut words = rest.split_whitespace().skip_while(|word| *word == "unsafe");
    // A type of a trait or an alias in an `impl` is not visible by itself, and has no `pub`.
    TYPE_WORDS.contains(&words.next()?).then_some(())?;
    let name = words.next()?;
    let end = name.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(name.len());
    // A macro's `$name` is not a name yet.
    (end > 0).then_some(&name[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(files: &[(&str, &str)], allowed: &[(&str, &str)]) -> Vec<String> {
        check_with(&SourceTree::of(files), allowed).iter().map(Violation::to_string).collect()
    }

    /// Goal: a second thing of a name is found in any crate and any visibility, private ones are not.
    #[test]
    fn a_name_is_given_once() {
        let one = ("crates/a/src/b.rs", "//! B.\npub(crate) struct Place<T>(T);\nstruct Own;\n");
        let two = ("crates/c/src/d.rs", "//! D.\npub unsafe trait Place {}\nstruct Own;\n");
        let found = rules(&[one, two], &[]);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with("crates/a/src/b.rs:2: one-name: `Place` is also crates/c/src/d.rs:2"));
        assert_eq!(rules(&[one, two], &[("Place", "why")]), [""; 0]);
        let test = ("crates/c/tests/d.rs", "//! D.\npub struct Place;\n");
        assert_eq!(rules(&[one, test], &[]), [""; 0]);
    }

    /// Goal: an exception that nothing needs fails. Method: a name that is given once.
    #[test]
    fn exceptions_do_not_outlive_their_reason() {
        let found = rules(&[("crates/a/src/b.rs", "//! B.\npub enum Place {}\n")], &[("Place", "why")]);
        assert!(found.len() == 1 && found[0].contains("stale-exception"), "{found:?}");
    }
}

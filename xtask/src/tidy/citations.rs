//! Rule about citations in comments: a file that is named is there, and so is the section.
//!
//! A word that ends like a file of ours is looked for from the root, from the citing file's folder, and as
//! the end of any path. Behind a document a number (`docs/design/PROTOCOL.md, section 4` or `KERNEL.md 1.10`)
//! must be that of a heading. The names of documents without their file are errors: they lead nowhere.

use super::source::{SourceFile, SourceTree, Violation};

/// Endings of files that a comment may cite.
const ENDINGS: [&str; 4] = [".rs", ".md", ".py", ".sh"];

/// Documents that must be cited with their path.
const BARE: [&str; 4] = ["PROTOCOL section", "PROTOCOL sections", "KERNEL section", "(KERNEL "];

pub(crate) fn check(tree: &SourceTree, source: &SourceFile) -> Vec<Violation> {
    let mut found = vec![];
    // The checker's own examples name files that are not there.
    if source.path.starts_with("xtask/src/tidy/") {
        return found;
    }
    let mut is_example = false;
    for (number, line) in source.lines.iter().enumerate().filter(|(_, line)| !line.comment.is_empty()) {
        if line.comment.trim_start_matches(['/', '!']).trim_start().starts_with("```") {
            is_example = !is_example;
        }
        if is_example {
            continue;
        }
        for bare in BARE.iter().filter(|bare| line.comment.contains(**bare)) {
            let remedy =
                format!("`{}` leads nowhere; name the file and its section", bare.trim_start_matches('('));
            found.push(Violation::error(source, number, "citation", remedy));
        }
        for (word, behind) in cited(&line.comment) {
            if let Err(problem) = resolve(tree, source, word, behind) {
                found.push(Violation::error(source, number, "citation", problem));
            }
        }
    }
    found
}

/// The words of a comment that look like our files, and the text behind each.
fn cited(comment: &str) -> Vec<(&str, &str)> {
    let is_path = |c: char| c.is_alphanumeric() || "_-./".contains(c);
    let mut found = vec![];
    let mut from = 0;
    while let Some(begin) = comment[from..].find(is_path).map(|at| at + from) {
        let end = comment[begin..].find(|c| !is_path(c)).map_or(comment.len(), |at| at + begin);
        let word = comment[begin..end].trim_end_matches('.');
        let is_named = word.rsplit('/').next().is_some_and(|name| !name.starts_with('.'));
        let is_address = comment[..begin].ends_with("://") || word.starts_with("//");
        if is_named && !is_address && ENDINGS.iter().any(|ending| word.ends_with(ending)) {
            found.push((word, &comment[begin + word.len()..]));
        }
        from = end;
    }
    found
}

fn resolve(tree: &SourceTree, source: &SourceFile, word: &str, behind: &str) -> Result<(), String> {
    let path = word.trim_start_matches("./").trim_start_matches("../");
    let folder = source.path.rsplit_once('/').map_or("", |(folder, _)| folder);
    let nearby = format!("{folder}/{path}");
    let ending = format!("/{path}");
    let matches = |known: &&String| **known == path || **known == nearby || known.ends_with(&ending);
    let Some(known) = tree.paths.iter().find(matches) else {
        return Err(format!("there is no {word}; name the file as it is called"));
    };
    let Some(section) = section(behind).filter(|_| path.ends_with(".md")) else { return Ok(()) };
    let text = tree.source(known).map_or("", |document| &document.text);
    let is_there = text.lines().filter(|line| line.starts_with('#')).any(|line| {
        let heading = line.trim_start_matches('#').trim_start();
        heading.strip_prefix(section).is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric()))
    });
    if is_there { Ok(()) } else { Err(format!("{known} has no section {section}")) }
}

/// The number behind `, section`, `, sections` or a space.
fn section(behind: &str) -> Option<&str> {
    let rest = behind.trim_start_matches('`').trim_start_matches(',').strip_prefix(' ')?;
    let rest = rest.strip_prefix("sections ").or(rest.strip_prefix("section ")).unwrap_or(rest);
    let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
    let number = rest[..end].trim_end_matches('.');
    (!number.is_empty() && number.starts_with(|c: char| c.is_ascii_digit())).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(comment: &str) -> Vec<String> {
        let document = ("docs/design/PLAN.md", "# Plan\n## 4. Stalls\n### 1.10 Arms\n");
        let text = format!("//! A.\n{comment}\n");
        let tree =
            SourceTree::of(&[document, ("crates/a/src/b/c.rs", &text), ("crates/a/src/b/d.rs", "//! D.\n")]);
        let source = tree.source("crates/a/src/b/c.rs").expect("it is in the tree");
        check(&tree, source).iter().map(Violation::to_string).collect()
    }

    /// Goal: what is there resolves, from the root, from beside, and by the end of its path.
    #[test]
    fn files_and_sections_that_are_there() {
        for comment in [
            "// see docs/design/PLAN.md, section 4: marks",
            "// docs/design/PLAN.md 1.10, and `d.rs`.",
            "// (b/d.rs), PLAN.md, sections 4 and 5",
            "// Linux 6.12, kernel/time/timer.c; 3.5 ns; e.g. https://x.org/a.md",
            "const A: &str = \"nowhere.md\";",
            "/// ```\n/// open(\"nowhere.md\");\n/// ```",
        ] {
            assert_eq!(problems(comment), [""; 0], "{comment}");
        }
    }

    /// Goal: what is not there fails, with the line. Method: each kind of dead citation.
    #[test]
    fn dead_citations() {
        for (comment, part) in [
            ("// see e.rs", "there is no e.rs"),
            ("// docs/PLAN2.md", "there is no docs/PLAN2.md"),
            ("// docs/design/PLAN.md, section 5", "docs/design/PLAN.md has no section 5"),
            ("// docs/design/PLAN.md 1.1", "has no section 1.1"),
            ("// PROTOCOL section 4", "name the file"),
        ] {
            let found = problems(comment);
            assert!(found.len() == 1 && found[0].contains(part) && found[0].contains("c.rs:2"), "{found:?}");
        }
    }
}

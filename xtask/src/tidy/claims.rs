//! Rule about what documents count and list: a number in a sentence is the tree's, a list names every file.
//!
//! A claim is a sentence with a number in the middle; what is counted are the files of a folder with one
//! ending, or the mutants. A list is a document that names every file of a folder. A claim that is no longer
//! in its document fails too: the table here is changed with the sentence.

use super::source::{SourceFile, SourceTree, Violation};

/// The files of a folder.
#[derive(Clone, Copy, Debug)]
struct Files {
    folder: &'static str,
    ending: &'static str,
    /// Files that are not meant.
    except: &'static [&'static str],
}

const RECORDINGS: Files = Files { folder: "recordings", ending: ".txt.zst", except: &[] };
const SCENARIOS: Files = Files { folder: "scenarios", ending: ".toml", except: &["costs"] };
const FUZZ_TARGETS: Files = Files { folder: "fuzz/fuzz_targets", ending: ".rs", except: &[] };

/// A sentence: its document, what stands before and behind the number, what is counted.
const EXACT: [(&str, &str, &str, Files); 2] = [
    ("README.md", "verify recordings` replays the ", " that are here", RECORDINGS),
    ("CHANGELOG.md", "Perfetto. ", " recordings of real kernels", RECORDINGS),
];

/// The sentence that says how many mutants there are at least.
const MUTANTS: (&str, &str, &str) = ("README.md", "mutants` breaks more than ", " rules one at a time");

/// Documents, and the files that each names.
const LISTS: [(&str, Files); 4] = [
    ("recordings/README.md", RECORDINGS),
    ("docs/guide/simulator.md", SCENARIOS),
    ("fuzz/README.md", FUZZ_TARGETS),
    ("fuzz/run.sh", FUZZ_TARGETS),
];

pub(super) fn check(tree: &SourceTree) -> Vec<Violation> {
    let mut found = vec![];
    for (document, before, behind, files) in EXACT {
        let count = files.names(tree).len();
        let holds = |said: usize| said == count;
        found.extend(claim(tree, document, [before, behind], &format!("{count}"), holds));
    }
    let count = crate::mutants::count();
    let (document, before, behind) = MUTANTS;
    let rounded = |said: usize| said < count && count <= said + 100;
    found.extend(claim(tree, document, [before, behind], &format!("less than {count}"), rounded));
    for (document, files) in LISTS {
        let Some(source) = tree.source(document) else { continue };
        let missing = files.names(tree).into_iter().filter(|name| !source.text.contains(name.as_str()));
        found.extend(missing.map(|name| {
            let remedy = format!("does not name `{name}` of {}", files.folder);
            Violation::error(source, 0, "list", remedy)
        }));
    }
    found
}

/// What is wrong with the number between the two texts of `around`.
fn claim(
    tree: &SourceTree,
    document: &str,
    around: [&str; 2],
    right: &str,
    holds: impl Fn(usize) -> bool,
) -> Option<Violation> {
    let source = tree.source(document)?;
    let [before, behind] = around;
    let text = source.text.replace('\n', " ");
    let said = text.split(before).skip(1).find_map(|rest| {
        let (number, _) = rest.trim_start().split_once(behind)?;
        number.parse().ok()
    });
    let remedy = match said {
        Some(number) if holds(number) => return None,
        Some(number) => format!("`{before}{number}{behind}`: it is {right}"),
        None => format!("`{before}N{behind}` is no longer there; change the table in tidy/claims.rs"),
    };
    Some(Violation::error(source, line_of(source, before), "claim", remedy))
}

/// The line on which a text begins, as far as it is on one.
fn line_of(source: &SourceFile, text: &str) -> usize {
    source.text.lines().position(|line| line.contains(text.trim())).unwrap_or(0)
}

impl Files {
    /// Without folder and ending.
    fn names(self, tree: &SourceTree) -> Vec<String> {
        let inside = |path: &&String| {
            path.strip_prefix(self.folder)?.strip_prefix('/')?.strip_suffix(self.ending).map(str::to_owned)
        };
        let all = tree.paths.iter().filter_map(|path| inside(&path));
        all.filter(|name| !name.contains('/') && !self.except.contains(&name.as_str())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(readme: &str, list: &str) -> SourceTree {
        SourceTree::of(&[
            ("README.md", readme),
            ("fuzz/README.md", list),
            ("fuzz/fuzz_targets/one.rs", ""),
            ("fuzz/fuzz_targets/two.rs", ""),
            ("fuzz/fuzz_targets/deep/three.rs", ""),
        ])
    }

    /// Goal: a number is held against the tree, across the ends of lines; a sentence that is gone is said.
    /// Method: the right number, a wrong one, none.
    #[test]
    fn numbers_are_the_trees() {
        let judge = |text: &str| {
            let holds = |said| said == 2;
            claim(&tree(text, ""), "README.md", ["there are ", " targets"], "2", holds)
                .map(|violation| violation.to_string())
        };
        assert_eq!(judge("so there are\n2 targets"), None);
        let wrong = judge("one\nthere are 3 targets").expect("it is wrong");
        assert!(wrong.starts_with("README.md:2: claim") && wrong.contains("it is 2"), "{wrong}");
        assert!(judge("there are many targets").is_some_and(|said| said.contains("no longer there")));
        assert!(judge("nothing").is_some_and(|said| said.contains("no longer there")));
    }

    /// Goal: a list names every file of its folder, and none below. Method: one is missing.
    #[test]
    fn lists_name_every_file() {
        let tree = tree("", "`one`");
        assert_eq!(FUZZ_TARGETS.names(&tree), ["one", "two"]);
        let found: Vec<_> = check(&tree).iter().map(Violation::to_string).collect();
        let lists: Vec<_> = found.iter().filter(|line| line.contains(": list: ")).collect();
        assert!(lists.len() == 1 && lists[0].contains("does not name `two`"), "{found:?}");
    }
}

//! Which mutants a run checks: by name, or what a change makes worth asking, so that every run is short and
//! all runs together miss none.
//!
//! The choice for a change is every mutant of a file that the working tree or the last commit changed, and a
//! tenth of all others: which tenth follows from the last commit, so that it rotates. Outside of a repository
//! nothing counts as changed, and the first tenth is taken.

use super::killer::Mutant;
use crate::workspace::{Workspace, capture};
use std::process::Stdio;

/// One mutant in this many is checked although nothing that it breaks was changed.
const ROTATION: usize = 10;

#[derive(Clone, Copy, Debug)]
pub(crate) enum MutantChoice<'a> {
    All,
    /// Whose name, or whose list's title, contains the text.
    Named(&'a str),
    /// What the last change touches, and a tenth of the others.
    Change,
}

/// A choice with what it asks of the repository.
#[derive(Debug)]
pub(super) struct Chooser<'a> {
    choice: MutantChoice<'a>,
    changed: Vec<String>,
    turn: usize,
}

impl<'a> Chooser<'a> {
    pub(super) fn new(choice: MutantChoice<'a>, workspace: &Workspace) -> Self {
        let mut chooser = Self { choice, changed: vec![], turn: 0 };
        if matches!(choice, MutantChoice::Change) {
            let head = git(workspace, &["rev-parse", "HEAD"]).unwrap_or_default();
            chooser.turn = turn(head.trim());
            for arguments in
                [&["diff", "--name-only", "HEAD"][..], &["diff", "--name-only", "HEAD~1", "HEAD"]]
            {
                let names = git(workspace, arguments).unwrap_or_default();
                chooser.changed.extend(names.lines().map(str::to_owned));
            }
        }
        chooser
    }

    /// Whether it is checked: the mutant at `index` of all, in the list `title`.
    pub(super) fn takes(&self, index: usize, title: &str, mutant: &Mutant) -> bool {
        match self.choice {
            MutantChoice::All => true,
            MutantChoice::Named(text) => mutant.name.contains(text) || title.contains(text),
            MutantChoice::Change => {
                index % ROTATION == self.turn || self.changed.iter().any(|file| file == mutant.file)
            }
        }
    }

    /// What is not checked, for the last line of a run.
    pub(super) fn left_out(&self) -> String {
        match self.choice {
            MutantChoice::All | MutantChoice::Named(_) => String::new(),
            MutantChoice::Change => {
                let turn = self.turn + 1;
                format!(" (those of changed files, and tenth {turn} of {ROTATION} of the others)")
            }
        }
    }
}

/// Which tenth is a commit's.
fn turn(commit: &str) -> usize {
    let digits = commit.get(..8).unwrap_or_default();
    usize::from_str_radix(digits, 16).map_or(0, |number| number % ROTATION)
}

fn git(workspace: &Workspace, arguments: &[&str]) -> Option<String> {
    capture(workspace.program("git").args(arguments).stderr(Stdio::null())).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MUTANT: Mutant =
        Mutant { name: "a", rule: "b", file: "crates/c.rs", right: "d", wrong: "e", killers: &[] };

    fn chooser<'a>(choice: MutantChoice<'a>, changed: &[&str], turn: usize) -> Chooser<'a> {
        let changed = changed.iter().map(|&file| file.to_owned()).collect();
        Chooser { choice, changed, turn }
    }

    /// Goal: ten commits in a row of the rotation leave none out. Method: every turn over some indices.
    #[test]
    fn the_rotation_covers_all() {
        for index in 0..3 * ROTATION {
            let turns = (0..ROTATION)
                .filter(|&turn| chooser(MutantChoice::Change, &[], turn).takes(index, "", &MUTANT));
            assert_eq!(turns.count(), 1, "{index}");
        }
    }

    /// Goal: a change has the mutants of its files checked. Method: one that is out of turn.
    #[test]
    fn changed_files_are_in_every_turn() {
        assert!(!chooser(MutantChoice::Change, &["crates/x.rs"], 1).takes(2, "", &MUTANT));
        assert!(chooser(MutantChoice::Change, &["crates/x.rs", "crates/c.rs"], 1).takes(2, "", &MUTANT));
    }

    #[test]
    fn names_and_titles_are_searched() {
        for (text, is_taken) in [("a", true), ("title", true), ("z", false), ("", true)] {
            assert_eq!(
                chooser(MutantChoice::Named(text), &[], 0).takes(7, "a title", &MUTANT),
                is_taken,
                "{text}"
            );
        }
    }

    #[test]
    fn a_commit_has_its_turn() {
        assert_eq!(turn("0000000b12345678"), 1);
        assert_eq!((turn(""), turn("no commit")), (0, 0));
    }
}

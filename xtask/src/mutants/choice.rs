//! Which mutants a run checks: by name, or what a change makes worth asking, so that every run is short and
//! all runs together miss none.
//!
//! The choice for a change is every mutant of a file that the working tree or the last commit changed, and a
//! tenth of all: which tenth follows from the last commit, so that it rotates. Mutants of a tenth have their
//! killers in the same suites, as far as that goes: building all suites takes longer than asking a tenth of
//! the mutants. Outside of a repository nothing counts as changed, and the first tenth is taken.

use super::killer::{Mutant, Suite};
use crate::workspace::{Workspace, capture};
use std::process::Stdio;

/// One mutant in this many is checked although nothing that it breaks was changed.
pub(crate) const ROTATION: usize = 10;

#[derive(Clone, Copy, Debug)]
pub(crate) enum MutantChoice<'a> {
    All,
    /// Whose name, or whose list's title, contains the text, or one of several with commas between them.
    Named(&'a str),
    /// What the last change touches, and a tenth of the others.
    Change,
    /// What breaks files that have changed since this commit.
    Since(&'a str),
    /// One of ten parts, from 1, each of mutants whose killers are in few suites.
    Tenth(usize),
}

/// A choice with what it asks of the repository.
#[derive(Debug)]
pub(super) struct Chooser<'a> {
    choice: MutantChoice<'a>,
    changed: Vec<String>,
    turn: usize,
    /// The places of the mutants where they are sorted by the suites of their killers.
    places: Vec<usize>,
}

impl<'a> Chooser<'a> {
    /// Among mutants whose first killers are in these `suites`.
    pub(super) fn new(choice: MutantChoice<'a>, workspace: &Workspace, suites: &[Suite]) -> Self {
        let mut chooser = Self { choice, changed: vec![], turn: 0, places: places(suites) };
        if let MutantChoice::Since(commit) = choice {
            let names = git(workspace, &["diff", "--name-only", commit, "--"]).unwrap_or_default();
            chooser.changed.extend(names.lines().map(str::to_owned));
        }
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
            MutantChoice::Named(texts) => {
                texts.split(',').any(|text| mutant.name.contains(text) || title.contains(text))
            }
            MutantChoice::Change => self.tenth(index) == self.turn || self.has_changed(mutant),
            MutantChoice::Tenth(number) => self.tenth(index) + 1 == number,
            MutantChoice::Since(_) => self.has_changed(mutant),
        }
    }

    fn tenth(&self, index: usize) -> usize {
        self.places[index] * ROTATION / self.places.len()
    }

    fn has_changed(&self, mutant: &Mutant) -> bool {
        self.changed.iter().any(|file| file == mutant.file)
    }

    /// What is not checked, for the last line of a run.
    pub(super) fn left_out(&self) -> String {
        match self.choice {
            MutantChoice::All | MutantChoice::Named(_) => String::new(),
            MutantChoice::Tenth(number) => format!(" (tenth {number} of {ROTATION})"),
            MutantChoice::Since(commit) => format!(" (those of files that have changed since {commit})"),
            MutantChoice::Change => {
                let turn = self.turn + 1;
                format!(" (those of changed files, and tenth {turn} of {ROTATION} of the others)")
            }
        }
    }
}

/// Where each is when they are sorted by package and suite, which are built together.
fn places(suites: &[Suite]) -> Vec<usize> {
    let mut sorted: Vec<usize> = (0..suites.len()).collect();
    sorted.sort_by_key(|&index| (suites[index].package(), suites[index] as usize));
    let mut places = vec![0; suites.len()];
    for (place, index) in sorted.into_iter().enumerate() {
        places[index] = place;
    }
    places
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
        // As many of one suite as of the other, in turns.
        let suites: Vec<Suite> = (0..4 * ROTATION).map(|index| SUITES[index % 2]).collect();
        Chooser { choice, changed, turn, places: places(&suites) }
    }

    const SUITES: [Suite; 2] = [Suite::Futures, Suite::Units];

    /// Goal: ten commits in a row of the rotation leave none out, and each needs few suites. Method: every
    /// turn over mutants of two suites.
    #[test]
    fn the_rotation_covers_all() {
        let takes =
            |turn: usize, index: usize| chooser(MutantChoice::Change, &[], turn).takes(index, "", &MUTANT);
        for index in 0..4 * ROTATION {
            assert_eq!((0..ROTATION).filter(|&turn| takes(turn, index)).count(), 1, "{index}");
        }
        for turn in 0..ROTATION {
            let taken: Vec<usize> = (0..4 * ROTATION).filter(|&index| takes(turn, index)).collect();
            assert_eq!(taken.len(), 4);
            assert!(taken.iter().all(|index| index % 2 == taken[0] % 2), "turn {turn}: {taken:?}");
            let tenth = chooser(MutantChoice::Tenth(turn + 1), &["crates/c.rs"], 0);
            assert!((0..4 * ROTATION).all(|index| tenth.takes(index, "", &MUTANT) == taken.contains(&index)));
        }
    }

    /// Goal: a change has the mutants of its files checked. Method: one that is out of turn.
    #[test]
    fn changed_files_are_in_every_turn() {
        assert!(!chooser(MutantChoice::Change, &["crates/x.rs"], 1).takes(2, "", &MUTANT));
        assert!(chooser(MutantChoice::Change, &["crates/x.rs", "crates/c.rs"], 1).takes(2, "", &MUTANT));
        let since = |file| chooser(MutantChoice::Since("a1b2"), &[file], 0);
        assert!(since("crates/c.rs").takes(2, "", &MUTANT));
        assert!((0..4 * ROTATION).all(|index| !since("crates/x.rs").takes(index, "", &MUTANT)));
    }

    #[test]
    fn names_and_titles_are_searched() {
        for (text, is_taken) in
            [("a", true), ("title", true), ("z", false), ("", true), ("z,a", true), ("y,z", false)]
        {
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

//! Rule about docs/seeds.md: the promise is complete and what it points at is there.
//!
//! A section declares `Sentences: 000.1 to 000.12.` and `Figures: 5.`; its tables must have exactly
//! these rows, in order. The last cell of every row says where the thing is: in backticks a file, a
//! folder, a `file::test_name` or a command, or the words `not yet` or `not modelled, because ...`.

use super::source::{SourceFile, SourceTree, Violation};

/// The document, and the mails that it must have a section for.
const DOCUMENT: &str = "docs/seeds.md";
const SEEDS: [&str; 5] = ["000", "001", "002", "003", "004"];

pub(crate) fn check(tree: &SourceTree) -> Vec<Violation> {
    let Some(source) = tree.source(DOCUMENT) else { return vec![] };
    let mut found = vec![];
    let mut sections = Sections::default();
    for (number, line) in source.text.lines().enumerate() {
        sections.read(source, number, line, &mut found);
        if let Some(cells) = row(line) {
            check_place(tree, source, number, &cells, &mut found);
        }
    }
    sections.finish(source, &mut found);
    for seed in SEEDS {
        if !sections.seen.iter().any(|known| known == seed) {
            let remedy = format!("no `Sentences: {seed}.1 to {seed}.N.`; every mail has its table");
            found.push(Violation::error(source, 0, "seeds", remedy));
        }
    }
    found
}

/// What the section that is being read still owes.
#[derive(Default)]
struct Sections {
    seen: Vec<String>,
    /// Seed, next sentence number, last one.
    sentences: Option<(String, u32, u32)>,
    /// Figure rows that are still to come.
    figures: Option<u32>,
    in_figures: bool,
}

impl Sections {
    fn read(&mut self, source: &SourceFile, number: usize, line: &str, found: &mut Vec<Violation>) {
        let mut fail = |remedy: String| found.push(Violation::error(source, number, "seeds", remedy));
        if let Some(text) = line.strip_prefix("Sentences: ") {
            self.settle(&mut fail);
            match declared(text) {
                Some((seed, last)) => {
                    self.seen.push(seed.clone());
                    self.sentences = Some((seed, 1, last));
                }
                None => fail("write `Sentences: 000.1 to 000.N.`".to_owned()),
            }
        } else if let Some(text) = line.strip_prefix("Figures: ") {
            self.figures = text.trim_end_matches('.').parse().ok();
            if self.figures.is_none() {
                fail("write `Figures: N.`".to_owned());
            }
        }
        let Some(cells) = row(line) else { return };
        match (cells[0].as_str(), self.sentences.as_mut()) {
            ("number", _) => self.in_figures = false,
            ("figure", _) => self.in_figures = true,
            _ if self.in_figures => self.figures = self.figures.and_then(|left| left.checked_sub(1)),
            (cell, Some((seed, next, _))) => {
                if cell != format!("{seed}.{next}") {
                    fail(format!("the row {seed}.{next} should be here, not {cell}"));
                }
                *next += 1;
            }
            (cell, None) => fail(format!("the row {cell} is not declared by `Sentences:`")),
        }
        if self.in_figures && self.figures.is_none() {
            fail("more figure rows than `Figures:` declares".to_owned());
        }
    }

    /// The section ends: every declared row must have come.
    fn settle(&mut self, fail: &mut impl FnMut(String)) {
        if let Some((seed, next, last)) = self.sentences.take() {
            if next != last + 1 {
                fail(format!("{seed} declares {last} sentences but has {} rows", next - 1));
            }
            match self.figures.take() {
                Some(0) => {}
                Some(left) => fail(format!("{seed} lacks {left} of the figure rows it declares")),
                None => fail(format!("{seed} does not declare its figures: `Figures: N.`")),
            }
        }
        self.in_figures = false;
    }

    fn finish(&mut self, source: &SourceFile, found: &mut Vec<Violation>) {
        let last = source.text.lines().count().saturating_sub(1);
        self.settle(&mut |remedy| found.push(Violation::error(source, last, "seeds", remedy)));
    }
}

/// `000.1 to 000.12.` -> seed and last number.
fn declared(text: &str) -> Option<(String, u32)> {
    let (first, last) = text.trim_end_matches('.').split_once(" to ")?;
    let (seed, last) = last.split_once('.')?;
    (first == format!("{seed}.1")).then_some((seed.to_owned(), last.parse().ok()?))
}

/// The trimmed cells of a table row; `None` for other lines and for the line under the header.
fn row(line: &str) -> Option<Vec<String>> {
    let inner = line.strip_prefix('|')?.trim_end().strip_suffix('|')?;
    let cells: Vec<String> = inner.split('|').map(|cell| cell.trim().to_owned()).collect();
    let ruler = cells.iter().all(|cell| cell.chars().all(|c| matches!(c, '-' | ':')) && !cell.is_empty());
    (!ruler).then_some(cells)
}

/// The last cell says where, and what it cites exists.
fn check_place(
    tree: &SourceTree,
    source: &SourceFile,
    number: usize,
    cells: &[String],
    found: &mut Vec<Violation>,
) {
    let mut fail = |remedy: String| found.push(Violation::error(source, number, "seeds", remedy));
    if matches!(cells[0].as_str(), "number" | "figure") {
        return;
    }
    if cells.len() != 3 || cells.iter().any(String::is_empty) {
        fail("a row has three cells: number or figure, our words, where".to_owned());
        return;
    }
    let place = &cells[2];
    let open =
        place == "not yet" || place.starts_with("not yet: ") || place.starts_with("not modelled, because ");
    if !open && !place.contains('`') {
        fail("say where in backticks, or `not yet`, or `not modelled, because ...`".to_owned());
    }
    for cited in place.split('`').skip(1).step_by(2) {
        let (path, test) = cited.split_once("::").map_or((cited, None), |(path, test)| (path, Some(test)));
        if !path.contains('/') || path.contains(' ') {
            continue; // a command or a field
        }
        if !tree.has(path) {
            fail(format!("there is no {path}"));
        } else if test.is_some_and(|test| !has_test(tree, path, test)) {
            fail(format!("there is no test of this name in {path}"));
        }
    }
}

/// A file at or below `path` has a function `test`.
fn has_test(tree: &SourceTree, path: &str, test: &str) -> bool {
    let below = format!("{path}/");
    let inside = tree.sources.iter().filter(|other| other.path == path || other.path.starts_with(&below));
    let heads = [format!("fn {test}("), format!("def {test}(")];
    inside.into_iter().any(|other| heads.iter().any(|head| other.text.contains(head)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "Sentences: 000.1 to 000.2.\nFigures: 1.\n\n\
        | number | ours | where |\n| --- | --- | --- |\n| 000.1 | a | `src/a.rs` |\n| 000.2 | b | not yet |\n\n\
        | figure | meaning | where |\n| --- | --- | --- |\n| 1 % | c | `src/a.rs::shows_c`, `src/do it` |\n";

    /// The problems of the good text after `from` has become `to`.
    fn problems(from: &str, to: &str) -> Vec<String> {
        assert!(GOOD.contains(from), "{from}");
        let mut text = GOOD.replace(from, to);
        for seed in &SEEDS[1..] {
            text += &format!(
                "Sentences: {seed}.1 to {seed}.1.\nFigures: 0.\n| number | a | b |\n| {seed}.1 | a | not yet |\n"
            );
        }
        let tree = SourceTree::of(&[(DOCUMENT, &text), ("src/a.rs", "fn shows_c() {}")]);
        check(&tree).into_iter().map(|violation| violation.remedy).collect()
    }

    #[test]
    fn a_complete_document_passes() {
        assert_eq!(problems("000", "000"), [""; 0]);
    }

    /// Goal: every promise is held to. Method: one change each, and a word of the complaint.
    #[test]
    fn each_gap_is_found() {
        for (from, to, complaint) in [
            ("to 000.2.", "to 000.3.", "declares 3 sentences but has 2"),
            ("to 000.2.", "to 000.1.", "declares 1 sentences but has 2"),
            ("| 000.2 |", "| 000.3 |", "the row 000.2 should be here"),
            ("Sentences: 000.1 to 000.2.", "", "is not declared"),
            ("Sentences: 000.1 to 000.2.", "Sentences: all", "write `Sentences:"),
            ("Figures: 1.", "Figures: 2.", "lacks 1 of the figure rows"),
            ("Figures: 1.", "Figures: 0.", "more figure rows"),
            ("Figures: 1.", "Figures: many", "write `Figures:"),
            ("| b | not yet |", "| b | somewhere |", "say where"),
            ("| b | not yet |", "| b | |", "three cells"),
            ("| b | not yet |", "| not yet |", "three cells"),
            ("`src/a.rs` |", "`src/b.rs` |", "there is no src/b.rs"),
            ("shows_c`", "shows_d`", "no test of this name"),
        ] {
            let found = problems(from, to);
            assert!(found.iter().any(|text| text.contains(complaint)), "{from} -> {to}: {found:?}");
        }
    }

    #[test]
    fn every_mail_has_a_section() {
        let tree = SourceTree::of(&[(DOCUMENT, GOOD), ("src/a.rs", "fn shows_c() {}")]);
        assert_eq!(check(&tree).len(), 4);
        assert!(check(&SourceTree::of(&[])).is_empty());
    }
}

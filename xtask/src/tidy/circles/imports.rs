//! What one Rust file says about others: the modules it declares, the names it brings in, the paths it uses.
//!
//! A small reader of tokens, not a parser: it knows `mod name;`, `mod name { }`, trees of `use`, and paths
//! that begin with `crate`, `super`, `self`, a declared module or a name that a `use` brought in. Lines of
//! tests are left out. Macros are plain tokens, so a path inside of one counts.

use crate::tidy::source::SourceFile;

/// A path with the line (from 0) on which it begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct UsedPath {
    pub(super) line: usize,
    pub(super) segments: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Import {
    pub(super) path: UsedPath,
    /// The name in this file; `*` for everything behind the path.
    pub(super) name: String,
    /// It has a visibility: others may take the name from here.
    pub(super) is_public: bool,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Imports {
    pub(super) modules: Vec<String>,
    pub(super) imports: Vec<Import>,
    pub(super) paths: Vec<UsedPath>,
    /// Names of items that stand in this file.
    pub(super) items: Vec<String>,
}

const ITEM_WORDS: [&str; 9] =
    ["struct", "enum", "trait", "type", "fn", "const", "static", "union", "macro_rules"];

#[derive(Clone, Debug)]
struct Token {
    text: String,
    line: usize,
}

/// Reads the code of `source` that is not a test.
pub(super) fn read(source: &SourceFile) -> Imports {
    let tokens = tokens(source);
    let mut reader = Reader { tokens: &tokens, at: 0, found: Imports::default(), inline: vec![], depth: 0 };
    while reader.at < tokens.len() {
        reader.step();
    }
    reader.found
}

fn tokens(source: &SourceFile) -> Vec<Token> {
    let mut found = vec![];
    for (line, text) in source.lines.iter().enumerate().filter(|(_, line)| !line.in_test) {
        let mut rest = text.code.as_str();
        while let Some(first) = rest.chars().next() {
            let is_word = |c: char| c.is_alphanumeric() || c == '_';
            let width = if is_word(first) {
                rest.find(|c| !is_word(c)).unwrap_or(rest.len())
            } else if rest.starts_with("::") {
                2
            } else {
                first.len_utf8()
            };
            if !first.is_whitespace() {
                found.push(Token { text: rest[..width].to_owned(), line });
            }
            rest = &rest[width..];
        }
    }
    found
}

struct Reader<'a> {
    tokens: &'a [Token],
    at: usize,
    found: Imports,
    /// Depths of braces at which modules inside of this file end.
    inline: Vec<usize>,
    depth: usize,
}

impl Reader<'_> {
    fn text(&self, ahead: usize) -> &str {
        self.tokens.get(self.at + ahead).map_or("", |token| &token.text)
    }

    fn step(&mut self) {
        match self.text(0) {
            "{" => self.depth += 1,
            "}" => {
                self.depth = self.depth.saturating_sub(1);
                self.inline.retain(|&depth| depth < self.depth || depth == self.depth && depth == 0);
                self.inline.retain(|&depth| depth <= self.depth);
            }
            "mod" if self.text(2) == ";" => {
                self.found.modules.push(self.text(1).to_owned());
                self.at += 2;
            }
            "mod" if self.text(2) == "{" => {
                self.depth += 1;
                self.inline.push(self.depth);
                self.at += 2;
            }
            "use" if self.begins_item() => return self.take_use(),
            word if ITEM_WORDS.contains(&word) => {
                let ahead = if self.text(1) == "!" { 2 } else { 1 };
                self.found.items.push(self.text(ahead).to_owned());
            }
            _ => {
                if self.text(1) == "::" && !self.follows_path() {
                    return self.take_path();
                }
            }
        }
        self.at += 1;
    }

    /// `use` as an item, not `use<'a>` in a type.
    fn begins_item(&self) -> bool {
        self.text(1) != "<"
    }

    fn follows_path(&self) -> bool {
        self.at.checked_sub(1).is_some_and(|before| matches!(&*self.tokens[before].text, "::" | "." | "$"))
    }

    /// A `super` for each module inside of this file means the file itself.
    fn without_inline(&self, mut segments: Vec<String>) -> Vec<String> {
        let inner = self.inline.len().min(segments.iter().take_while(|segment| *segment == "super").count());
        if inner > 0 {
            segments.drain(..inner);
            if segments.first().is_none_or(|first| first != "super") {
                segments.insert(0, "self".to_owned());
            }
        }
        segments
    }

    fn take_path(&mut self) {
        let line = self.tokens[self.at].line;
        let mut segments = vec![self.text(0).to_owned()];
        self.at += 1;
        while self.text(0) == "::" && self.text(1).starts_with(|c: char| c.is_alphabetic() || c == '_') {
            segments.push(self.text(1).to_owned());
            self.at += 2;
        }
        let segments = self.without_inline(segments);
        self.found.paths.push(UsedPath { line, segments });
    }

    fn take_use(&mut self) {
        let is_public = self.at.checked_sub(1).is_some_and(|before| {
            matches!(&*self.tokens[before].text, "pub") || self.closes_visibility(before)
        });
        self.at += 1;
        self.take_tree(&[], is_public);
        // The semicolon.
        self.at += 1;
    }

    /// The token at `at` is the end of `pub(crate)`, `pub(super)` or `pub(in path)`.
    fn closes_visibility(&self, at: usize) -> bool {
        self.tokens[at].text == ")"
            && self.tokens[..at]
                .iter()
                .rposition(|token| token.text == "(")
                .is_some_and(|open| open > 0 && self.tokens[open - 1].text == "pub")
    }

    /// One branch of a tree of `use`, up to the token that ends it.
    fn take_tree(&mut self, above: &[String], is_public: bool) {
        let mut path = above.to_vec();
        let line = self.tokens.get(self.at).map_or(0, |token| token.line);
        loop {
            match self.text(0).to_owned().as_str() {
                "" | ";" | "," | "}" => break self.add(line, path.clone(), None, is_public),
                "{" => {
                    self.at += 1;
                    while !matches!(self.text(0), "}" | "") {
                        self.take_tree(&path, is_public);
                        if self.text(0) == "," {
                            self.at += 1;
                        }
                    }
                    self.at += 1;
                    break;
                }
                "as" => {
                    let name = self.text(1).to_owned();
                    self.at += 2;
                    break self.add(line, path.clone(), Some(name), is_public);
                }
                "*" => {
                    self.at += 1;
                    break self.add(line, path.clone(), Some("*".to_owned()), is_public);
                }
                "::" => self.at += 1,
                "self" if !path.is_empty() => self.at += 1,
                word => {
                    path.push(word.to_owned());
                    self.at += 1;
                }
            }
        }
    }

    fn add(&mut self, line: usize, segments: Vec<String>, name: Option<String>, is_public: bool) {
        let Some(last) = segments.last().cloned() else { return };
        let segments = self.without_inline(segments);
        let path = UsedPath { line, segments };
        self.found.imports.push(Import { path, name: name.unwrap_or(last), is_public });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Imports {
        read(&SourceFile::of("crates/a/src/b.rs", text))
    }

    fn shown(path: &UsedPath) -> String {
        path.segments.join("::")
    }

    /// Goal: every form of `use` gives its leaves. Method: one text with groups, names, globs, visibilities.
    #[test]
    fn trees_of_use() {
        let found = of("use crate::a::{B, c::{self, D as E}, f::*};\npub(crate) use super::g::H;\n");
        let leaves: Vec<(String, &str, bool)> =
            found.imports.iter().map(|it| (shown(&it.path), &*it.name, it.is_public)).collect();
        let expected = [
            ("crate::a::B", "B", false),
            ("crate::a::c", "c", false),
            ("crate::a::c::D", "E", false),
            ("crate::a::f", "*", false),
            ("super::g::H", "H", true),
        ];
        assert_eq!(leaves, expected.map(|(path, name, public)| (path.to_owned(), name, public)));
        assert_eq!(found.imports[4].path.line, 1);
    }

    /// Goal: paths in signatures and bodies count, in comments, strings and tests they do not.
    #[test]
    fn paths_outside_of_use() {
        let text = "fn a(b: super::c::D) -> crate::E { f::g() } // crate::h::I\n\
                    const J: &str = \"crate::k::L\";\n#[cfg(test)]\nmod tests { use crate::m::N; }\n";
        let found = of(text);
        let paths: Vec<String> = found.paths.iter().map(shown).collect();
        assert_eq!(paths, ["super::c::D", "crate::E", "f::g"]);
        assert!(found.imports.is_empty() && found.modules.is_empty(), "{found:?}");
        assert_eq!(found.items, ["a", "J"]);
    }

    /// Goal: inside of a module of the file `super` is the file. Method: the same path inside and behind it.
    #[test]
    fn modules_inside_of_a_file() {
        let found = of("mod a { fn b() { super::c::d() } }\nfn e() { super::c::d() }\nmod f;\n");
        let paths: Vec<String> = found.paths.iter().map(shown).collect();
        assert_eq!(paths, ["self::c::d", "super::c::d"]);
        assert_eq!(found.modules, ["f"]);
    }
}

//! Tells code from comments and literals in Rust text, line by line.
//!
//! Decides nothing about style: it blanks out what a rule must not look at. In [`SourceLine::code`] every
//! comment and the inside of every string and character literal is spaces, so a word found there is
//! a word of the program; columns stay where they were. [`SourceLine::comment`] is the text of comments.
//!
//! Invariant: `code` and `raw` have the same number of characters on every line.
//! Deliberately absent: a parser. Macros, attributes and generics are plain characters here.

#[derive(Clone, Debug, Default)]
pub(crate) struct SourceLine {
    /// The line as it is in the file, without its end.
    pub(crate) raw: String,
    /// The line with comments and the insides of literals blanked out.
    pub(crate) code: String,
    /// The text of the comments on this line, markers included.
    pub(crate) comment: String,
    /// Inside an item under `#[cfg(test)]`.
    pub(crate) in_test: bool,
    /// A string literal has characters on this line.
    pub(crate) has_string: bool,
}

/// What the scanner is inside of.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Code,
    LineComment,
    /// Block comments nest; the number is the depth.
    BlockComment(u32),
    Str,
    /// A raw string ends at a quote followed by this many `#`.
    RawStr(usize),
    Char,
}

pub(crate) fn scan(text: &str) -> Vec<SourceLine> {
    let chars: Vec<char> = text.chars().collect();
    let mut scanner =
        Scanner { chars: &chars, at: 0, state: State::Code, line: SourceLine::default(), lines: vec![] };
    while scanner.at < chars.len() {
        scanner.step();
    }
    if !scanner.line.raw.is_empty() {
        scanner.end_line();
    }
    let mut lines = scanner.lines;
    mark_tests(&mut lines);
    lines
}

struct Scanner<'a> {
    chars: &'a [char],
    at: usize,
    state: State,
    line: SourceLine,
    lines: Vec<SourceLine>,
}

impl Scanner<'_> {
    fn peek(&self, ahead: usize) -> char {
        self.chars.get(self.at + ahead).copied().unwrap_or('\0')
    }

    fn end_line(&mut self) {
        self.lines.push(core::mem::take(&mut self.line));
    }

    /// Takes `count` characters, as code, as comment or as the inside of a literal.
    fn take(&mut self, count: usize, as_state: State) {
        for _ in 0..count {
            let Some(&c) = self.chars.get(self.at) else { return };
            self.at += 1;
            if c == '\n' {
                self.end_line();
                continue;
            }
            self.line.raw.push(c);
            match as_state {
                State::Code => self.line.code.push(c),
                State::LineComment | State::BlockComment(_) => {
                    self.line.code.push(' ');
                    self.line.comment.push(c);
                }
                State::Str | State::RawStr(_) => {
                    self.line.code.push(' ');
                    self.line.has_string = true;
                }
                State::Char => self.line.code.push(' '),
            }
        }
    }

    fn step(&mut self) {
        match self.state {
            State::Code => self.step_code(),
            State::LineComment => {
                if self.peek(0) == '\n' {
                    self.state = State::Code;
                }
                self.take(1, State::LineComment);
            }
            State::BlockComment(depth) => {
                let (width, next) = match (self.peek(0), self.peek(1)) {
                    ('/', '*') => (2, State::BlockComment(depth + 1)),
                    ('*', '/') if depth == 1 => (2, State::Code),
                    ('*', '/') => (2, State::BlockComment(depth - 1)),
                    _ => (1, self.state),
                };
                self.take(width, State::BlockComment(depth));
                self.state = next;
            }
            State::Str => match self.peek(0) {
                '\\' => self.take(2, State::Str),
                '"' => self.close(1),
                _ => self.take(1, State::Str),
            },
            State::RawStr(hashes) => {
                let ends = self.peek(0) == '"' && (1..=hashes).all(|i| self.peek(i) == '#');
                if ends { self.close(1 + hashes) } else { self.take(1, self.state) }
            }
            State::Char => match self.peek(0) {
                '\\' => self.take(2, State::Char),
                '\'' => self.close(1),
                _ => self.take(1, State::Char),
            },
        }
    }

    /// The closing marks of a literal are code again.
    fn close(&mut self, width: usize) {
        self.take(width, State::Code);
        self.state = State::Code;
    }

    fn step_code(&mut self) {
        match (self.peek(0), self.peek(1)) {
            ('/', '/') => self.state = State::LineComment,
            ('/', '*') => {
                self.take(2, State::BlockComment(1));
                self.state = State::BlockComment(1);
            }
            ('"', _) => {
                self.take(1, State::Code);
                self.state = State::Str;
            }
            // A quote begins a character unless it begins a lifetime: 'a' against 'a.
            ('\'', next) if next == '\\' || self.peek(2) == '\'' => {
                self.take(1, State::Code);
                self.state = State::Char;
            }
            ('r', '"' | '#') if self.raw_string_may_begin() => {
                let hashes = (1..).take_while(|&i| self.peek(i) == '#').count();
                if self.peek(1 + hashes) == '"' {
                    self.take(2 + hashes, State::Code);
                    self.state = State::RawStr(hashes);
                } else {
                    self.take(1, State::Code); // r#keyword
                }
            }
            _ => self.take(1, State::Code),
        }
    }

    /// The `r` here is the prefix of a literal (`r`, `br`, `cr`), not the end of a word.
    fn raw_string_may_begin(&self) -> bool {
        let before = |back: usize| self.at.checked_sub(back).map_or(' ', |at| self.chars[at]);
        let word = |c: char| c.is_alphanumeric() || c == '_';
        !word(before(1)) || (matches!(before(1), 'b' | 'c') && !word(before(2)))
    }
}

/// Marks the lines of items that stand under `#[cfg(test)]`, up to their closing brace or semicolon.
fn mark_tests(lines: &mut [SourceLine]) {
    let mut number = 0;
    while number < lines.len() {
        if !lines[number].code.contains("#[cfg(test)]") {
            number += 1;
            continue;
        }
        let column = lines[number].code.find("#[cfg(test)]").map_or(0, |at| at + "#[cfg(test)]".len());
        let last = item_end(lines, number, column);
        for line in &mut lines[number..=last] {
            line.in_test = true;
        }
        number = last + 1;
    }
}

/// The line on which the item that begins at (`line`, byte `column`) ends: its matching closing brace,
/// or a `;` before any brace. Further attributes in between are skipped, as brackets nest.
pub(crate) fn item_end(lines: &[SourceLine], line: usize, column: usize) -> usize {
    let mut braces = 0_i32;
    let mut nested = 0_i32; // parentheses and brackets, so that `[u8; 4]` does not end an item
    for (number, text) in lines.iter().enumerate().skip(line) {
        let skip = if number == line { column } else { 0 };
        for c in text.code[skip..].chars() {
            match c {
                '{' => braces += 1,
                '}' => braces -= 1,
                '(' | '[' => nested += 1,
                ')' | ']' => nested -= 1,
                _ => {}
            }
            let closed = c == '}' && braces == 0;
            if closed || (c == ';' && braces == 0 && nested == 0) {
                return number;
            }
        }
    }
    lines.len() - 1
}

/// The byte columns where `word` stands in `code` as a whole word.
pub(crate) fn word_columns(code: &str, word: &str) -> Vec<usize> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let mut found = vec![];
    let mut from = 0;
    while let Some(at) = code[from..].find(word).map(|at| at + from) {
        let end = at + word.len();
        let free = !code[..at].chars().next_back().is_some_and(is_word)
            && !code[end..].chars().next().is_some_and(is_word);
        if free {
            found.push(at);
        }
        from = end;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(text: &str) -> Vec<String> {
        scan(text).into_iter().map(|line| line.code).collect()
    }

    /// Goal: words in literals and comments are invisible. Method: each kind once, with its traps.
    #[test]
    fn comments_and_literals_are_blank() {
        let hidden = [
            "let a = \"bad\";",
            "let a = \"\\\"bad\";",
            "let a = r\"bad\\\";",
            "let a = r##\"bad\"# bad\"##;",
            "let a = br#\"bad\"#;",
            "let a = b\"bad\";",
            "let a = 1; // bad",
            "/// bad",
            "/* bad /* bad */ bad */ let a = 1;",
        ];
        for text in hidden {
            assert!(!code(text)[0].contains("bad"), "{text} -> {}", code(text)[0]);
        }
    }

    /// Goal: code after a literal is code again. Method: a word behind every kind of literal.
    #[test]
    fn code_behind_a_literal_is_seen() {
        let seen = [
            "let a = \"x\\\\\"; good",
            "let a = '\"'; good",
            "let a = '\\''; good",
            "let a = b'\\\\'; good",
            "fn f<'a>(x: &'a str) good",
            "let a = r#\"\"\"#; good",
            "let r#fn = 1; good",
            "for\"x\" good",
            "/* x */ good",
        ];
        for text in seen {
            assert!(code(text)[0].contains("good"), "{text} -> {}", code(text)[0]);
        }
    }

    /// Goal: columns and line numbers stay. Method: lengths of a text with a string over two lines.
    #[test]
    fn columns_and_lines_stay() {
        let text = "let a = \"one\ntwo { } \"; // tail\nlet b = 'ä';\n";
        let lines = scan(text);
        assert_eq!(lines.len(), 3);
        for (line, raw) in lines.iter().zip(text.lines()) {
            assert_eq!(line.raw, raw);
            assert_eq!(line.code.chars().count(), raw.chars().count(), "{raw}");
        }
        assert_eq!(lines[1].comment, "// tail");
        assert!(lines[1].has_string && !lines[1].code.contains('{'));
    }

    /// Goal: exactly the items under `#[cfg(test)]` are tests. Method: code before, between, after.
    #[test]
    fn test_items_are_marked() {
        let text = "fn a() {}\n#[cfg(test)]\n#[rustfmt::skip]\nmod tests {\n  fn b() {}\n}\nfn c() {}\n\
                    #[cfg(test)]\nmod d;\nfn e() {}\n";
        let marked: Vec<bool> = scan(text).iter().map(|line| line.in_test).collect();
        assert_eq!(marked, [false, true, true, true, true, true, false, true, true, false]);
    }

    /// Goal: a word is not found inside another. Method: prefixes, suffixes, and the word itself.
    #[test]
    fn words_are_whole() {
        assert_eq!(word_columns("unsafe_code unsafe xunsafe unsafe{", "unsafe"), [12, 27]);
        assert!(word_columns("", "unsafe").is_empty());
    }
}

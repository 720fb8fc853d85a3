//! JSON as `tc -j` writes it: on one line, or as `-p` spreads it.
//!
//! Source: `tc -j` and `tc -j -p` by behaviour.

use super::text::general;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Write as _;

/// A value of JSON.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum TcJson {
    /// `null`.
    Null,
    /// `true`, `false`.
    Bool(bool),
    /// A whole number, from 0 on.
    Unsigned(u64),
    /// A whole number.
    Signed(i64),
    /// Six digits of it that matter.
    Float(f64),
    /// A text.
    Word(String),
    /// Values.
    List(Vec<TcJson>),
}

/// How it is laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JsonLayout {
    /// On one line.
    Line,
    /// `-p`: a line for each member of an object.
    Spread,
}

/// Writes JSON from its beginning to its end; the caller opens and closes in pairs.
#[derive(Debug)]
pub struct JsonWriter {
    out: String,
    layout: JsonLayout,
    depth: usize,
    /// Whether what comes is the first in what is open.
    is_first: bool,
}

impl JsonWriter {
    /// An empty one.
    #[must_use]
    pub const fn new(layout: JsonLayout) -> Self {
        Self { out: String::new(), layout, depth: 0, is_first: true }
    }

    /// What is written, with a line's end.
    #[must_use]
    pub fn finish(mut self) -> String {
        self.out.push('\n');
        self.out
    }

    fn new_line(&mut self) {
        if self.layout == JsonLayout::Spread {
            self.out.push('\n');
            (0..self.depth).for_each(|_| self.out.push_str("    "));
        }
    }

    fn comma(&mut self) {
        if !self.is_first {
            self.out.push(',');
        }
        self.is_first = false;
    }

    /// Begins an object, or a list.
    fn begin(&mut self, bracket: char) {
        self.out.push(bracket);
        self.depth += 1;
        self.is_first = true;
    }

    /// Begins a member of an object.
    pub(crate) fn name(&mut self, name: &str) {
        self.comma();
        self.new_line();
        self.word(name);
        self.out.push_str(if self.layout == JsonLayout::Spread { ": " } else { ":" });
    }

    /// Begins an object: the value of a member, or in a list.
    pub fn begin_object(&mut self) {
        self.begin('{');
    }

    /// Ends the object.
    pub fn end_object(&mut self) {
        self.depth -= 1;
        if !self.is_first {
            self.new_line();
        }
        self.is_first = false;
        self.out.push('}');
    }

    /// Begins the list of all.
    pub fn begin_list(&mut self) {
        self.begin('[');
        self.blank();
    }

    /// Goes on with the next one in it.
    pub fn next(&mut self) {
        self.comma();
    }

    /// Ends the list of all.
    pub fn end_list(&mut self) {
        self.depth -= 1;
        self.blank();
        self.is_first = false;
        self.out.push(']');
    }

    fn blank(&mut self) {
        if self.layout == JsonLayout::Spread {
            self.out.push(' ');
        }
    }

    fn word(&mut self, word: &str) {
        self.out.push('"');
        for character in word.chars() {
            match character {
                '"' => self.out.push_str("\\\""),
                '\\' => self.out.push_str("\\\\"),
                '\n' => self.out.push_str("\\n"),
                '\t' => self.out.push_str("\\t"),
                control if control.is_control() => {
                    // Writing to a string does not fail.
                    let _ = write!(self.out, "\\u{:04x}", u32::from(control));
                }
                other => self.out.push(other),
            }
        }
        self.out.push('"');
    }

    /// A value.
    pub(crate) fn value(&mut self, value: &TcJson) {
        // Writing to a string does not fail.
        let _ = match value {
            TcJson::Null => self.out.write_str("null"),
            TcJson::Bool(is) => write!(self.out, "{is}"),
            TcJson::Unsigned(number) => write!(self.out, "{number}"),
            TcJson::Signed(number) => write!(self.out, "{number}"),
            TcJson::Float(number) => self.out.write_str(&general(*number, 6)),
            TcJson::Word(word) => {
                self.word(word);
                Ok(())
            }
            TcJson::List(values) => {
                self.list(values);
                Ok(())
            }
        };
    }

    fn list(&mut self, values: &[TcJson]) {
        self.begin('[');
        self.blank();
        for value in values {
            self.comma();
            self.value(value);
        }
        self.end_list();
    }
}

#[cfg(test)]
mod tests {
    use super::{JsonLayout, JsonWriter, TcJson};
    use alloc::vec;

    fn written(layout: JsonLayout) -> alloc::string::String {
        let mut json = JsonWriter::new(layout);
        json.begin_list();
        for number in [1, 2] {
            json.next();
            json.begin_object();
            json.name("number");
            json.value(&TcJson::Unsigned(number));
            json.name("inside");
            json.begin_object();
            json.end_object();
            json.name("all");
            json.value(&TcJson::List(vec![TcJson::Signed(-1), TcJson::Null, TcJson::Bool(true)]));
            json.name("a\"b");
            json.value(&TcJson::Word("\\\n\u{1b}".into()));
            json.name("part");
            json.value(&TcJson::Float(0.25));
            json.end_object();
        }
        json.end_list();
        json.finish()
    }

    /// Goal: JSON is laid out as `tc` lays it out, and words cannot end it. Method: two objects with a value
    /// of each kind, on one line and spread.
    #[test]
    fn both_layouts() {
        let object = |number: u32| {
            alloc::format!(
                "{{\"number\":{number},\"inside\":{{}},\"all\":[-1,null,true],\"a\\\"b\":\"\\\\\\n\\u001b\",\
                 \"part\":0.25}}"
            )
        };
        assert_eq!(written(JsonLayout::Line), alloc::format!("[{},{}]\n", object(1), object(2)));
        let spread = written(JsonLayout::Spread);
        assert!(spread.starts_with("[ {\n        \"number\": 1,\n        \"inside\": {},\n"), "{spread}");
        assert!(spread.contains("\n    },{\n        \"number\": 2,"), "{spread}");
        assert!(spread.ends_with("\"part\": 0.25\n    } ]\n"), "{spread}");
    }
}

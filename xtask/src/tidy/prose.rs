//! Rules about words: a comment names its subject, and what a user reads has no words of the workshop.
//!
//! A pronoun as a subject makes the reader find out which thread, CPU or caller is meant; the glossary has a
//! name for every role. Text in string literals is what users see: the five questions have names there.

use super::scan::word_columns;
use super::source::{SourceFile, Violation};

/// Words that stand in comments where a role of docs/GLOSSARY.md should.
const PRONOUNS: [&str; 6] = ["whoever", "nobody", "somebody", "anybody", "who is told", "the other one"];

/// Words of the workshop in string literals of the crates.
const INTERNAL: [&str; 9] =
    [" mail ", " mails", "mails ", "seed 000", "seed 001", "seed 002", "seed 003", "seed 004", "the mail"];

pub(crate) fn check(source: &SourceFile) -> Vec<Violation> {
    let mut found = vec![];
    let is_shown = source.path.starts_with("crates/") && source.path.contains("/src/") && !source.is_test();
    for (number, line) in source.lines.iter().enumerate() {
        let comment = line.comment.to_lowercase();
        for pronoun in PRONOUNS.iter().filter(|pronoun| !word_columns(&comment, pronoun).is_empty()) {
            let remedy = format!("`{pronoun}` is no subject; name the role (docs/GLOSSARY.md)");
            found.push(Violation::error(source, number, "pronoun", remedy));
        }
        if is_shown && line.has_string && !line.in_test {
            let text: String = literals(&line.raw, &line.code, &line.comment);
            for word in INTERNAL.iter().filter(|word| text.contains(**word)) {
                let remedy = format!("`{}` means nothing to a user; name the question", word.trim());
                found.push(Violation::error(source, number, "internal-word", remedy));
            }
        }
    }
    found
}

/// The insides of the string literals of a line; what is neither code nor comment.
fn literals(raw: &str, code: &str, comment: &str) -> String {
    let end = raw.chars().count() - comment.chars().count();
    raw.chars().zip(code.chars()).take(end).map(|(raw, code)| if code == ' ' { raw } else { ' ' }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(path: &str, text: &str) -> Vec<&'static str> {
        check(&SourceFile::of(path, text)).into_iter().map(|violation| violation.rule).collect()
    }

    /// Goal: a pronoun is found in any comment and case, as a whole word. Method: comments, code, strings.
    #[test]
    fn comments_name_their_subject() {
        for text in
            ["// Whoever runs it", "/// for nobody.", "//! Who is told first", "f(); // the other one"]
        {
            assert_eq!(rules("crates/a/src/b.rs", text), ["pronoun"], "{text}");
        }
        for text in ["let nobody = 1;", "f(\"nobody\");", "// the other ones", "// a nobodys"] {
            assert!(rules("crates/a/src/b.rs", text).is_empty(), "{text}");
        }
    }

    /// Goal: what users read has no number of a question. Method: a string, and where it may stand.
    #[test]
    fn strings_have_no_words_of_the_workshop() {
        assert_eq!(rules("crates/a/src/b.rs", "f(\"see seed 001\");"), ["internal-word"]);
        assert_eq!(rules("crates/a/src/b.rs", "f(\"what the mail says\");").len(), 2);
        for text in ["f(\"seed 17\");", "f(\"email\"); // the mail", "let a = 1;"] {
            assert!(rules("crates/a/src/b.rs", text).is_empty(), "{text}");
        }
        assert!(rules("crates/a/tests/b.rs", "f(\"seed 001\");").is_empty());
        assert!(rules("xtask/src/b.rs", "f(\"seed 001\");").is_empty());
    }
}

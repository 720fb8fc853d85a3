//! Rules about functions: how long they are, and that a test can fail.
//!
//! Works on the blanked code of [`scan`](super::scan), so braces in literals do not count. A function
//! is `fn` and a name; its length runs from that line to its closing brace. Functions without a body
//! (in traits, `extern` blocks) have no length.

use super::scan::{SourceLine, item_end, word_columns};
use super::source::{SourceFile, Violation};

/// Longest function, in lines, from `fn` to its closing brace.
const LONGEST: usize = 70;

/// What proves that a test checks something; `assert...` and `check...` are also looked for as the
/// beginning of any name that is called.
const PROOFS: [&str; 7] =
    ["panic!", "unreachable!", "expect_err(", "should_panic", "proptest!", "insta::", "compile_fail"];

#[derive(Debug)]
struct Function {
    name: String,
    /// First line (of `fn`) and last line (of the closing brace), from 0.
    first: usize,
    last: usize,
    /// It stands under `#[test]`.
    is_test: bool,
    /// First line of its attributes.
    attributes: usize,
}

pub(crate) fn check(source: &SourceFile) -> Vec<Violation> {
    let mut found = vec![];
    for function in functions(&source.lines) {
        let length = function.last - function.first + 1;
        let name = &function.name;
        if length > LONGEST {
            let remedy =
                format!("`{name}` has {length} lines; split it (about 40 wanted, at most {LONGEST} allowed)");
            found.push(Violation::error(source, function.first, "function-length", remedy));
        }
        if !source.is_test() && !source.lines[function.first].in_test {
            for tuple in tuple_parameters(&source.lines[function.first..=function.last]) {
                let remedy =
                    format!("`{name}` takes `{tuple}`; take fewer arguments, or a struct of options");
                found.push(Violation::error(source, function.first, "tuple-parameter", remedy));
            }
        }
        if function.is_test && !can_fail(&source.lines[function.attributes..=function.last]) {
            let remedy = format!("`{name}` asserts nothing; assert what it should have shown, or remove it");
            found.push(Violation::error(source, function.first, "test-asserts", remedy));
        }
    }
    found
}

/// All functions with a body, nested ones included.
fn functions(lines: &[SourceLine]) -> Vec<Function> {
    let mut found = vec![];
    for (first, line) in lines.iter().enumerate() {
        for column in word_columns(&line.code, "fn") {
            let rest = line.code[column + 2..].trim_start();
            let name: String = rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
            let last = item_end(lines, first, column);
            let has_body = lines[first..=last].iter().any(|line| line.code.contains('{'));
            if name.is_empty() || !has_body {
                continue;
            }
            let attributes = attributes_above(lines, first);
            let is_test = lines[attributes..=first].iter().any(|line| {
                let code = line.code.trim_start();
                code.starts_with("#[test]") || code.starts_with("#[tokio::test")
            });
            found.push(Function { name, first, last, is_test, attributes });
        }
    }
    found
}

/// The patterns of parameters that take a tuple apart: arguments that hide from the limit of five.
fn tuple_parameters(lines: &[SourceLine]) -> Vec<String> {
    let text: String = lines.iter().map(|line| line.code.as_str()).collect::<Vec<_>>().join(" ");
    let Some(open) = parameters_begin(&text) else { return vec![] };
    let (mut depth, mut begin, mut found) = (0_i32, open + 1, vec![]);
    for (at, c) in text.char_indices().skip_while(|(at, _)| *at < open) {
        match c {
            '(' | '[' | '{' => depth += 1,
            '<' => depth += 1,
            '>' if !text[..at].ends_with(['-', '=']) => depth -= 1,
            ')' | ']' | '}' => depth -= 1,
            _ => {}
        }
        if (c == ',' && depth == 1) || depth == 0 {
            let pattern = text[begin..at].split(": ").next().unwrap_or_default().trim();
            if pattern.starts_with('(') {
                found.push(pattern.to_owned());
            }
            begin = at + 1;
        }
        if depth == 0 {
            break;
        }
    }
    found
}

/// Where the parameters of the function at the beginning of `text` open: behind its name and generics.
fn parameters_begin(text: &str) -> Option<usize> {
    let name = word_columns(text, "fn").first()? + 2;
    let mut depth = 0_i32;
    for (at, c) in text.char_indices().skip_while(|(at, _)| *at < name) {
        match c {
            '<' => depth += 1,
            '>' if !text[..at].ends_with(['-', '=']) => depth -= 1,
            '(' if depth == 0 => return Some(at),
            _ => {}
        }
    }
    None
}

/// The first line of the attributes and comments directly above line `number`.
fn attributes_above(lines: &[SourceLine], number: usize) -> usize {
    let mut first = number;
    while first > 0 {
        let above = &lines[first - 1];
        let attribute = above.code.trim_start().starts_with("#[") || above.code.trim_end().ends_with(")]");
        let comment = above.code.trim().is_empty() && !above.comment.is_empty();
        if !attribute && !comment {
            break;
        }
        first -= 1;
    }
    first
}

/// A test over these lines could come out red.
fn can_fail(lines: &[SourceLine]) -> bool {
    let proven = |code: &str| PROOFS.iter().any(|proof| code.contains(proof)) || calls_a_check(code);
    lines.iter().any(|line| proven(&line.code))
}

/// Calls something, function or macro, whose name has `assert` in it or begins with `check`.
fn calls_a_check(code: &str) -> bool {
    let words = code.split(|c: char| !(c.is_alphanumeric() || c == '_' || c == '!' || c == '('));
    words.flat_map(|text| text.split_inclusive(['(', '!'])).any(|word| {
        let Some(name) = word.strip_suffix(['(', '!']) else { return false };
        name.contains("assert") || name.starts_with("check")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(text: &str) -> Vec<&'static str> {
        check(&SourceFile::of("a.rs", text)).into_iter().map(|violation| violation.rule).collect()
    }

    /// Goal: the limit is exact. Method: bodies that make 70 and 71 lines, braces in strings included.
    #[test]
    fn length_limit_is_exact() {
        let body = |lines: usize| format!("fn long() {{\n{}}}\n", "    let a = \"}\"; // }\n".repeat(lines));
        assert!(rules(&body(LONGEST - 2)).is_empty());
        assert_eq!(rules(&body(LONGEST - 1)), ["function-length"]);
    }

    /// Goal: what is not a body does not count. Method: a trait's signature far from any brace.
    #[test]
    fn signatures_have_no_length() {
        let text = format!("trait T {{\n fn a(x: [u8; 4]);\n{}}}\n", "    const X: u8;\n".repeat(100));
        assert!(rules(&text).is_empty());
        assert!(rules("type F = fn(u8) -> u8;").is_empty());
    }

    /// Goal: a length is its own function's. Method: a short one in front of a long module.
    #[test]
    fn a_short_function_ends_at_its_brace() {
        let text = format!("fn a() {{ if x {{ }} }}\nstruct S {{\n{}}}\n", "    x: u8,\n".repeat(100));
        assert!(rules(&text).is_empty());
    }

    /// Goal: a test without an assertion is named. Method: the same test with each kind of proof.
    #[test]
    fn tests_must_be_able_to_fail() {
        let with = |body: &str| rules(&format!("#[test]\nfn t() {{\n    {body}\n}}\n"));
        assert_eq!(with("run();"), ["test-asserts"]);
        assert_eq!(with("let asserted = \"assert!(\"; // assert!(x)"), ["test-asserts"]);
        assert_eq!(with("uncheck();"), ["test-asserts"]);
        for proof in ["assert_eq!(1, 1);", "x.expect_err(\"y\");", "check_all(3);", "prop_assert!(x);"] {
            assert!(with(proof).is_empty(), "{proof}");
        }
        assert!(rules("#[test]\n#[should_panic(expected = \"x\")]\nfn t() { run(); }\n").is_empty());
        assert!(rules("fn helper() { run(); }\n").is_empty());
    }

    /// Goal: a tuple that is taken apart is named, whatever stands around it. Method: each form once.
    #[test]
    fn tuples_are_not_parameters() {
        let found = |text: &str| rules(&format!("{text} {{ g(); }}\n"));
        assert_eq!(found("fn f((a, b): (u8, u8), c: u8)"), ["tuple-parameter"]);
        assert_eq!(
            found("fn f<T: Fn(u8) -> u8>(&self, t: T, (a, b): (Vec<u8>, u8)) -> u8"),
            ["tuple-parameter"]
        );
        for fine in [
            "fn f(a: (u8, u8), b: impl Fn((u8, u8)) -> u8)",
            "fn f(a: u8) -> (u8, u8)",
            "fn f<const N: usize>([a, b]: [u8; N])",
            "fn f(Point { x, y }: Point)",
        ] {
            assert!(found(fine).is_empty(), "{fine}");
        }
    }

    /// Goal: comments between `#[test]` and `fn` do not hide a test. Method: one with both orders.
    #[test]
    fn attributes_are_found_above_comments() {
        assert_eq!(rules("#[test]\n// why\nfn t() { run(); }\n"), ["test-asserts"]);
        assert_eq!(rules("/// why\n#[test]\n#[cfg(unix)]\nfn t() { run(); }\n"), ["test-asserts"]);
    }
}

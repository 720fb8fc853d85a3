//! Rule about Markdown: a relative link leads to a file of the tree, an anchor to a heading.
//!
//! Knows inline links and images `[text](target)` and definitions `[name]: target`; code fences and
//! inline code are not links. Headings become anchors as the common hosting sites do it: lower case,
//! punctuation dropped, spaces to hyphens, a number behind the second and later ones.
//! Deliberately absent: links with a scheme; nothing here uses the network.

use super::source::{SourceFile, SourceTree, Violation};

pub(crate) fn check(tree: &SourceTree, source: &SourceFile) -> Vec<Violation> {
    let mut found = vec![];
    for (number, line) in prose(&source.text) {
        for target in targets(&line) {
            if let Err(problem) = resolve(tree, source, &target) {
                let remedy = format!("`{target}` leads nowhere: {problem}");
                found.push(Violation::error(source, number, "link", remedy));
            }
        }
    }
    found
}

/// The lines outside of code fences, numbered from 0, with inline code blanked.
fn prose(text: &str) -> Vec<(usize, String)> {
    let mut fenced = false;
    let mut lines = vec![];
    for (number, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") || line.trim_start().starts_with("~~~") {
            fenced = !fenced;
        } else if !fenced {
            lines.push((number, without_code(line)));
        }
    }
    lines
}

/// The line with everything between backticks blanked.
fn without_code(line: &str) -> String {
    let mut inside = false;
    let blank = |c: char| {
        if c == '`' {
            inside = !inside;
        }
        if inside && c != '`' { ' ' } else { c }
    };
    if line.matches('`').count().is_multiple_of(2) {
        line.chars().map(blank).collect()
    } else {
        line.to_owned()
    }
}

/// What the links of one line lead to.
fn targets(line: &str) -> Vec<String> {
    let mut found = vec![];
    for (at, _) in line.match_indices("](") {
        let rest = &line[at + 2..];
        let target = rest.strip_prefix('<').map_or_else(
            || rest.split([')', ' ']).next().unwrap_or_default(),
            |rest| rest.split('>').next().unwrap_or_default(),
        );
        found.push(target.to_owned());
    }
    let definition = line.trim_start().strip_prefix('[').and_then(|rest| rest.split_once("]: "));
    if let Some((_name, target)) = definition {
        found.push(target.split_whitespace().next().unwrap_or_default().to_owned());
    }
    found
}

/// Whether `target`, in a link of `source`, leads somewhere; the error says why not.
fn resolve(tree: &SourceTree, source: &SourceFile, target: &str) -> Result<(), String> {
    if target.contains("://") || target.starts_with("mailto:") {
        return Ok(());
    }
    let (path, anchor) = target.split_once('#').map_or((target, None), |(path, anchor)| (path, Some(anchor)));
    let full = if path.is_empty() {
        source.path.clone()
    } else {
        joined(&source.path, path).ok_or("it leaves the repository")?
    };
    if !tree.has(&full) {
        return Err(format!("there is no {full}"));
    }
    match (anchor, tree.source(&full)) {
        (Some(anchor), Some(other)) if full.ends_with(".md") => {
            let known = anchors(&other.text);
            let there = known.iter().any(|name| name == anchor);
            there.then_some(()).ok_or(format!("{full} has no heading for #{anchor}"))
        }
        _ => Ok(()),
    }
}

/// The path that `relative` means in the file `from`; `None` above the root or when absolute.
fn joined(from: &str, relative: &str) -> Option<String> {
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    if relative.starts_with('/') {
        return None;
    }
    for part in relative.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            name => parts.push(name),
        }
    }
    Some(parts.join("/"))
}

/// The anchors of all headings, in order.
fn anchors(text: &str) -> Vec<String> {
    let mut found: Vec<String> = vec![];
    let mut fenced = false;
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        }
        let title = line.trim_start_matches('#');
        if fenced || title.len() == line.len() || !title.starts_with(' ') {
            continue;
        }
        let kept = title.trim().chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
        let slug: String =
            kept.flat_map(char::to_lowercase).map(|c| if c == ' ' { '-' } else { c }).collect();
        let mut name = slug.clone();
        let mut number = 0;
        while found.contains(&name) {
            number += 1;
            name = format!("{slug}-{number}");
        }
        found.push(name);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(text: &str) -> usize {
        let files = [
            ("docs/a.md", text),
            ("README.md", "# One\n## The `--json` form: what?\n## One\n```\n# not one\n```\n"),
            ("docs/b.md", "# B\n"),
        ];
        let tree = SourceTree::of(&files);
        check(&tree, &tree.sources[0]).len()
    }

    #[test]
    fn links_that_lead_somewhere() {
        for text in [
            "[b](b.md) and [b](./b.md#b)",
            "[up](../README.md) [docs](../docs) ![x](<b.md>)",
            "[one](../README.md#one), [again](../README.md#one-1 \"title\")",
            "[json](../README.md#the---json-form-what)",
            "[web](https://example.org/x.md) [mail](mailto:a@example.org)",
            "[name]: b.md",
            "# Here\n[there](#here)",
            "`[b](c.md)`\n```\n[b](c.md)\n```",
        ] {
            assert_eq!(problems(text), 0, "{text}");
        }
    }

    #[test]
    fn links_that_lead_nowhere() {
        for text in [
            "[b](c.md)",
            "[b](b.md#c)",
            "[up](../../README.md)",
            "[up](/README.md)",
            "[not](../README.md#not-one)",
            "[third](../README.md#one-2)",
            "[name]: c.md",
            "[there](#here)",
            "text ` [b](c.md)",
        ] {
            assert_eq!(problems(text), 1, "{text}");
        }
        assert_eq!(problems("[a](x.md)\n[b](y.md) [c](z.md)"), 3);
    }
}

//! Keys of a scenario that are given other values from outside, as a sweep does.
//!
//! Decides which keys there are and where each is written. The text is changed and read again, so that a
//! value is checked as if it had been written there, and an error names its line. A key is replaced where it
//! is written; where it is written nowhere, it is added to its table, or to each entry of its list.

use std::fmt;
use std::ops::Range;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// What `[machine]` may hold and a sweep may set by the name alone.
const MACHINE: [&str; 17] = [
    "cpus",
    "nodes",
    "threads_per_core",
    "siblings",
    "cores_per_cache",
    "isolated",
    "nohz_full",
    "exclusion",
    "policy",
    "wake",
    "preempt",
    "tick",
    "skew",
    "awareness",
    "ksoftirqd",
    "defer_limit",
    "timer_raise",
];
/// Those of them that are lists of CPUs, and so texts, even if they look like a number.
const LISTS: [&str; 2] = ["isolated", "nohz_full"];
/// The tables whose keys are set by a path.
const BY_PATH: [&str; 3] = ["load", "fault", "cost"];

/// A key and the value that it is given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScenarioSetting {
    /// `duration`, a key of `[machine]`, or a path: `load.sleeper.count`.
    pub key: String,
    /// As it would be written in the file, without quotes.
    pub value: String,
}

/// Why a key cannot be set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingError {
    /// Which one.
    pub key: String,
    /// What is wrong, and which keys there are.
    pub problem: String,
}

impl fmt::Display for SettingError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}: {}", self.key, self.problem)
    }
}

impl std::error::Error for SettingError {}

/// The scenario `text` with these keys set.
///
/// # Errors
/// [`SettingError`]: there is no such key, or it is one that the scenario varies itself. Values are checked
/// when the text is read as a scenario.
pub fn with_settings(text: &str, settings: &[ScenarioSetting]) -> Result<String, SettingError> {
    let mut text = text.to_owned();
    for setting in settings {
        text = with_setting(&text, setting)
            .map_err(|problem| SettingError { key: setting.key.clone(), problem })?;
    }
    Ok(text)
}

fn with_setting(text: &str, setting: &ScenarioSetting) -> Result<String, String> {
    let table = DeTable::parse(text).map_err(|error| error.message().trim_end().to_owned())?;
    let table = table.get_ref();
    let path = path_of(&setting.key, table)?;
    let (last, tables) = path.split_last().expect("a path has a part");
    if tables == ["machine"] && find(table, &["variants", last]).next().is_some() {
        return Err("the scenario runs all values of it that [variants] has; take it out there".to_owned());
    }
    let mut edits: Vec<(Range<usize>, String)> = Vec::new();
    for found in find(table, &path) {
        edits.push((found.span(), written(&setting.value, found.get_ref().is_str())));
    }
    if edits.is_empty() {
        let value = written(&setting.value, LISTS.contains(last));
        let added = format!("\n{last} = {value}");
        edits.extend(header_ends(text, tables).map(|end| (end..end, added.clone())));
    }
    if edits.is_empty() {
        return Err(format!("the scenario has no [{}]", tables.join(".")));
    }
    let mut text = text.to_owned();
    // From the last one on, so that the places of the others stay.
    edits.sort_by_key(|(place, _)| std::cmp::Reverse(place.start));
    edits.into_iter().for_each(|(place, value)| text.replace_range(place, &value));
    Ok(text)
}

/// Where a key is: its tables, and itself.
fn path_of<'a>(key: &'a str, table: &DeTable<'_>) -> Result<Vec<&'a str>, String> {
    if key == "duration" {
        return Ok(vec![key]);
    }
    if MACHINE.contains(&key) {
        return Ok(vec!["machine", key]);
    }
    let path: Vec<&str> = key.split('.').collect();
    let is_path = path.len() >= 2 && BY_PATH.contains(&path[0]);
    if is_path && path.iter().all(|part| !part.is_empty() && part.chars().all(is_key_char)) {
        return Ok(path);
    }
    Err(format!("no such key; there are duration, {}{}", MACHINE.join(", "), paths_of(table)))
}

const fn is_key_char(char: char) -> bool {
    char.is_ascii_alphanumeric() || matches!(char, '_' | '-')
}

/// The keys of loads and faults that the scenario has, as `, load.sleeper.count`.
fn paths_of(table: &DeTable<'_>) -> String {
    let mut paths = std::collections::BTreeSet::new();
    for top in BY_PATH {
        for value in find(table, &[top]) {
            let Some(kinds) = value.get_ref().as_table() else { continue };
            for (kind, entries) in kinds {
                let list = entries.get_ref().as_array().map_or(vec![entries], |list| list.iter().collect());
                for entry in list.into_iter().filter_map(|entry| entry.get_ref().as_table()) {
                    paths.extend(
                        entry.keys().map(|key| format!(", {top}.{}.{}", kind.get_ref(), key.get_ref())),
                    );
                }
            }
        }
    }
    paths.into_iter().collect()
}

/// Every value at `path`; a list on the way stands for all of its entries.
fn find<'a, 'i>(
    table: &'a DeTable<'i>,
    path: &[&str],
) -> Box<dyn Iterator<Item = &'a Spanned<DeValue<'i>>> + 'a> {
    let Some((first, rest)) = path.split_first() else { return Box::new(std::iter::empty()) };
    let Some((_, value)) = table.iter().find(|(key, _)| key.get_ref() == first) else {
        return Box::new(std::iter::empty());
    };
    if rest.is_empty() {
        return Box::new(std::iter::once(value));
    }
    let entries: Vec<&DeTable<'i>> = match value.get_ref() {
        DeValue::Table(table) => vec![table],
        DeValue::Array(list) => list.iter().filter_map(|entry| entry.get_ref().as_table()).collect(),
        _ => Vec::new(),
    };
    let found: Vec<_> = entries.into_iter().flat_map(|table| find(table, rest)).collect();
    Box::new(found.into_iter())
}

/// The ends of the lines that begin a table, or an entry of a list.
fn header_ends<'a>(text: &'a str, tables: &[&str]) -> impl Iterator<Item = usize> + 'a {
    let name = tables.join(".");
    let headers = [format!("[{name}]"), format!("[[{name}]]")];
    let start = move |line: &str| line.as_ptr() as usize - text.as_ptr() as usize;
    text.lines()
        .filter(move |line| headers.iter().any(|header| line.trim() == header))
        .map(move |line| start(line) + line.len())
}

/// A value as TOML: what is no number and no truth value is a text, and so is what replaces one.
fn written(value: &str, is_text: bool) -> String {
    let is_bare = value.parse::<f64>().is_ok() || matches!(value, "true" | "false");
    if is_bare && !is_text {
        return value.to_owned();
    }
    let escaped: String = value.chars().flat_map(escape).collect();
    format!("\"{escaped}\"")
}

fn escape(char: char) -> Vec<char> {
    match char {
        '"' | '\\' => vec!['\\', char],
        _ if char.is_control() => format!("\\u{:04X}", u32::from(char)).chars().collect(),
        _ => vec![char],
    }
}

#[cfg(test)]
mod tests {
    use super::{LISTS, MACHINE, ScenarioSetting, with_settings};
    use crate::Scenario;

    const TEXT: &str = "duration = \"5ms\"\n[machine]\ncpus = 4\npolicy = \"pull\"\n[[load.sleeper]]\ncpus = \"0\"\n\
                        run = \"20us\"\nsleep = \"3ms\"\n[[load.sleeper]]\ncpus = \"1\"\nrun = \"20us\"\n\
                        sleep = \"4ms\"\n[fault.lost_kicks]\npercent = 10\nretry = \"200us\"\n";

    fn set(text: &str, key: &str, value: &str) -> Result<String, String> {
        let setting = ScenarioSetting { key: key.to_owned(), value: value.to_owned() };
        with_settings(text, &[setting]).map_err(|error| error.to_string())
    }

    /// Goal: a key is replaced where it is written, and added where it is not. Method: one of each place.
    #[test]
    fn a_key_is_set_in_its_place() {
        for (key, value, line, count) in [
            ("cpus", "8", "cpus = 8\n", 1),
            ("duration", "9ms", "duration = \"9ms\"\n", 1),
            ("policy", "push", "policy = \"push\"\n", 1),
            ("isolated", "3", "[machine]\nisolated = \"3\"\n", 1),
            ("skew", "false", "[machine]\nskew = false\n", 1),
            ("load.sleeper.sleep", "7ms", "sleep = \"7ms\"\n", 2),
            ("load.sleeper.count", "3", "[[load.sleeper]]\ncount = 3\n", 2),
            ("fault.lost_kicks.percent", "30", "percent = 30\n", 1),
        ] {
            let text = set(TEXT, key, value).expect(key);
            assert_eq!(text.matches(line).count(), count, "{key}: {text}");
            let parsed = Scenario::parse("x".as_ref(), &text, &|_| Ok(String::new()));
            assert!(parsed.is_ok(), "{key}: {parsed:?}");
        }
    }

    /// Goal: an unknown key is answered with those that there are; one that is varied is refused; a value
    /// cannot add keys of its own. Method: one of each.
    #[test]
    fn what_cannot_be_set_is_refused() {
        let unknown = set(TEXT, "cpuz", "8").expect_err("there is none");
        let names = "cpuz: no such key; there are duration, cpus, nodes, ";
        assert!(unknown.starts_with(names) && unknown.contains(", load.sleeper.run"), "{unknown}");
        assert!(unknown.contains(", fault.lost_kicks.percent"), "{unknown}");
        let varied = format!("{TEXT}[variants]\npolicy = [\"pull\", \"push\"]\n");
        let refused = set(&varied, "policy", "push").expect_err("it is varied");
        assert!(refused.contains("[variants]"), "{refused}");
        assert_eq!(set(TEXT, "load.busy.count", "1").expect_err("no load"), {
            "load.busy.count: the scenario has no [load.busy]".to_owned()
        });
        let text = set(TEXT, "policy", "push\" # ").expect("a text");
        let parsed = Scenario::parse("x".as_ref(), &text, &|_| Ok(String::new()));
        assert!(parsed.expect_err("no policy").to_string().contains("policy"), "{text}");
    }

    /// Goal: every key of the list is one of a scenario. Method: each with a value that cannot be right; the
    /// error is about the value, and never that the key is unknown.
    #[test]
    fn every_key_of_the_machine_is_one() {
        for key in MACHINE {
            let text = set(TEXT, key, "not this").expect(key);
            let error = Scenario::parse("x".as_ref(), &text, &|_| Ok(String::new())).expect_err(key);
            assert!(!error.to_string().contains("unknown field"), "{key}: {error}");
        }
        assert!(LISTS.iter().all(|list| MACHINE.contains(list)));
    }
}

//! Reads `recorded.txt`, `u32_recorded.txt`, `filters_recorded.txt` and `actions_recorded.txt`.

use std::collections::BTreeMap;

const TEXTS: [&str; 4] = [
    include_str!("recorded.txt"),
    include_str!("u32_recorded.txt"),
    include_str!("filters_recorded.txt"),
    include_str!("actions_recorded.txt"),
];

/// What there is of.
pub(crate) const OBJECTS: [&str; 3] = ["qdisc", "class", "filter"];
/// The forms of each.
pub(crate) const STYLES: [&str; 6] = ["", "-d", "-s", "-s -d", "-j", "-j -s -d"];

/// What `tc` said of a line.
pub(crate) struct Recorded {
    /// The whole of it: where it is from, what came before, the line.
    pub(crate) title: String,
    pub(crate) setup: Vec<String>,
    pub(crate) line: String,
    pub(crate) exit: u8,
    pub(crate) stdout: String,
    /// By object and style.
    shown: BTreeMap<(String, String), String>,
}

impl Recorded {
    fn new(block: &str) -> Self {
        let mut lines = block.lines();
        let title = lines.next().expect("a title").to_owned();
        let (setup, line) = title.split_once("=> ").expect("a line");
        let (_, setup) = setup.split_once("| ").expect("a source");
        let setup = setup.trim().split(';').filter(|line| !line.is_empty()).map(str::to_owned).collect();
        let mut recorded = Self {
            line: line.to_owned(),
            setup,
            exit: 0,
            stdout: String::new(),
            shown: BTreeMap::new(),
            title: title.clone(),
        };
        let mut texts: Vec<(&str, String)> = Vec::new();
        for line in lines {
            match (line.strip_prefix('|'), texts.last_mut()) {
                (Some(text), Some((_, before))) => *before += &format!("{text}\n"),
                _ if line.is_empty() => {}
                _ => texts.push((line, String::new())),
            }
        }
        texts.into_iter().for_each(|(name, text)| recorded.take(name, text));
        recorded
    }

    fn take(&mut self, name: &str, text: String) {
        let (kind, rest) = name.split_once(' ').unwrap_or((name, ""));
        match kind {
            "exit" => self.exit = rest.parse().expect("a number"),
            "stdout" => self.stdout = text,
            "stderr" | "setup" => {}
            object => {
                let (style, same) = match rest.split_once('=') {
                    Some((style, same)) => (style.trim(), Some(same.trim())),
                    None => (rest, None),
                };
                let said = match same {
                    Some(same) => self.shown(object, same).expect("it was before").to_owned(),
                    None => text,
                };
                self.shown.insert((object.to_owned(), style.to_owned()), said);
            }
        }
    }

    /// What was said then.
    pub(crate) fn shown(&self, object: &str, style: &str) -> Option<&str> {
        self.shown.get(&(object.to_owned(), style.to_owned())).map(String::as_str)
    }
}

/// All of them.
pub(crate) fn recordings() -> impl Iterator<Item = Recorded> {
    TEXTS.into_iter().flat_map(|text| text.split("\n=> ").skip(1).map(Recorded::new))
}

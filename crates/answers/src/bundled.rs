//! What is part of the binary and is called by its name: recordings as `@g612-c16-iso`, scenarios as
//! `@isolated`. A file whose name begins so is `./@...`.

use crate::error::AnswerError;
use crate::input;
use crate::recordings::{Bundled, ISOLATION};
use quietcore_sim::Scenario;
use quietcore_trace::visible_path;
use std::io;
use std::path::Path;

/// A scenario that is part of the binary, or the costs that scenarios name.
#[derive(Debug)]
pub struct BundledScenario {
    /// Its name, without the `@`.
    pub name: &'static str,
    /// Its file.
    pub text: &'static str,
}

macro_rules! scenario {
    ($name:literal) => {
        BundledScenario { name: $name, text: include_str!(concat!("../scenarios/", $name, ".toml")) }
    };
}

/// The files of `scenarios/`, in the order of their names.
pub const SCENARIOS: [BundledScenario; 11] = [
    scenario!("cyclictest"),
    scenario!("dbench-128"),
    scenario!("enqueue"),
    scenario!("hotplug-storm"),
    scenario!("idle"),
    scenario!("isolate-flips"),
    scenario!("isolated"),
    scenario!("mq-netem"),
    scenario!("oslat-128"),
    scenario!("stall"),
    scenario!("stall-asleep"),
];

const COSTS: BundledScenario = scenario!("costs");

/// The name of what is in the binary, if it is one.
pub fn name_of(path: &Path) -> Option<&str> {
    path.to_str()?.strip_prefix('@')
}

/// The recording of this name.
///
/// # Errors
/// [`AnswerError::Usage`], which names those that there are.
pub fn bundled_recording(name: &str) -> Result<&'static Bundled, AnswerError> {
    ISOLATION.iter().find(|recording| recording.name == name).ok_or_else(|| {
        let names: Vec<String> = ISOLATION.iter().map(|recording| format!("@{}", recording.name)).collect();
        AnswerError::Usage(format!(
            "@{name}: no recording of this name is in the program; it has {}",
            names.join(", ")
        ))
    })
}

/// A scenario's text, or that of the costs it names: of a file, or of the program.
///
/// # Errors
/// Those of reading, and of a name that the program does not have.
pub fn read_scenario(path: &Path) -> io::Result<String> {
    let Some(name) = name_of(path) else { return input::read(path) };
    let found = SCENARIOS.iter().find(|scenario| scenario.name == name);
    let none = || {
        io::Error::new(
            io::ErrorKind::NotFound,
            "no scenario of this name is in the program; `sim --list` has them",
        )
    };
    found.map(|scenario| scenario.text.to_owned()).ok_or_else(none)
}

/// What a scenario names beside itself: for a file a file, for one of the program what the program has.
pub fn read_beside(scenario: &Path) -> impl Fn(&Path) -> io::Result<String> {
    let is_bundled = name_of(scenario).is_some();
    move |path| match path.file_name().and_then(|name| name.to_str()) {
        Some("costs.toml") if is_bundled => Ok(COSTS.text.to_owned()),
        _ if is_bundled => Err(io::Error::from(io::ErrorKind::NotFound)),
        _ => input::read(path),
    }
}

/// The scenario of a file, or of the program.
///
/// # Errors
/// [`AnswerError::Usage`]: file, line, key and what is allowed.
pub fn parsed_scenario(path: &Path) -> Result<Scenario, AnswerError> {
    let failed = |error| AnswerError::Usage(format!("{}: {error}", visible_path(path)));
    let text = read_scenario(path).map_err(failed)?;
    let parsed = Scenario::parse(path, &text, &read_beside(path));
    parsed.map_err(|error| AnswerError::Usage(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::{SCENARIOS, bundled_recording, name_of, read_beside, read_scenario};
    use quietcore_sim::Scenario;
    use std::path::Path;

    /// Goal: every scenario of the folder is in the program, in order, and is one. Method: the folder's
    /// names; each is parsed.
    #[test]
    fn every_scenario_is_in_the_program() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios");
        let files =
            std::fs::read_dir(folder).expect("the folder").map(|entry| entry.expect("an entry").path());
        let mut names: Vec<String> =
            files.filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned())).collect();
        names.retain(|name| name != "costs");
        names.sort();
        assert_eq!(SCENARIOS.map(|scenario| scenario.name.to_owned()).to_vec(), names);
        for name in names {
            let path = format!("@{name}");
            let text = read_scenario(path.as_ref()).expect("it is there");
            let scenario = Scenario::parse(path.as_ref(), &text, &read_beside(path.as_ref()));
            assert!(scenario.is_ok(), "{name}: {:?}", scenario.err());
        }
    }

    /// Goal: names are told from files, and an unknown one is answered with those that there are.
    #[test]
    fn a_name_is_no_file() {
        assert_eq!(["@a", "./@a", "a"].map(|path| name_of(Path::new(path))), [Some("a"), None, None]);
        assert_eq!(bundled_recording("g612-c16-iso").map(|recording| recording.title).ok(), Some("6.12"));
        let unknown = bundled_recording("x").expect_err("there is none").to_string();
        assert!(unknown.starts_with("@x: no recording") && unknown.contains("@g61-c16-iso, "), "{unknown}");
        assert!(read_scenario("@x".as_ref()).is_err());
        let beside = read_beside("@isolated".as_ref());
        assert!(beside("costs.toml".as_ref()).is_ok() && beside("/etc/hostname".as_ref()).is_err());
    }
}

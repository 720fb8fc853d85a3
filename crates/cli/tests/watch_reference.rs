//! `docs/reference/watch.md` says what `quietcore watch` prints, and the files in `deploy/` use only that.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const REFERENCE: &str = "docs/reference/watch.md";
const DASHBOARD: &str = "deploy/grafana/quietcore-watch.json";
const UNIT: &str = "deploy/systemd/quietcore-watch.service";
const DAEMON_SET: &str = "deploy/kubernetes/base/daemonset.yaml";
const PORT: &str = "19187";

/// Labels that Prometheus adds, and the one of a histogram's buckets.
const LABELS_OF_OTHERS: [&str; 3] = ["instance", "job", "le"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// A file of Rust without its tests.
fn source(path: &str) -> String {
    let text = read(path);
    text.split("#[cfg(test)]\nmod ").next().unwrap_or_default().to_owned()
}

fn help() -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_quietcore")).args(["watch", "--help"]).output();
    String::from_utf8(output.expect("quietcore runs").stdout).expect("our output is UTF-8")
}

/// What stands in backquotes.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// The rows of the tables below a heading of the reference, as cells.
fn tables(heading: &str) -> Vec<Vec<String>> {
    let text = read(REFERENCE);
    let section = text.split("\n## ").find(|section| section.starts_with(heading));
    let section = section.unwrap_or_else(|| panic!("{REFERENCE} has no section {heading}"));
    let rows = section.lines().filter(|line| line.starts_with('|') && !line.starts_with("| ---"));
    rows.map(|line| line.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect()).collect()
}

/// What the first cells of a section's tables name.
fn named(heading: &str) -> BTreeSet<String> {
    let rows = tables(heading);
    rows.iter().flat_map(|cells| quoted(&cells[0]).map(str::to_owned).collect::<Vec<_>>()).collect()
}

/// The fields of a struct of the JSON, as they are written.
fn fields(text: &str, name: &str) -> Vec<String> {
    let body = text.split(&format!("struct {name} {{\n")).nth(1);
    let body = body.unwrap_or_else(|| panic!("there is no struct {name}")).split("\n}").next();
    let lines = body.unwrap_or_default().lines();
    let lines = lines.filter_map(|line| line.trim().strip_prefix("pub(crate) "));
    lines.filter_map(|line| line.split_once(':')).map(|(field, _)| field.to_owned()).collect()
}

/// The names of all samples, as `openmetrics` encodes them, and of these the histograms' families.
fn samples() -> (BTreeSet<String>, BTreeSet<String>) {
    let text = source("crates/watch/src/openmetrics.rs");
    let (mut names, mut histograms) = (BTreeSet::new(), BTreeSet::new());
    for call in text.split("encode_descriptor(").skip(1) {
        let arguments: Vec<&str> = call.split(')').next().unwrap_or_default().split(',').collect();
        let [family, _help, unit, kind] =
            arguments.iter().map(|argument| argument.trim()).collect::<Vec<_>>()[..]
        else {
            panic!("a family has other arguments: {arguments:?}");
        };
        let unit = if unit == "None" { "" } else { "_seconds" };
        let family = format!("{}{unit}", family.trim_matches('"'));
        match kind {
            "MetricType::Counter" => assert!(names.insert(format!("{family}_total"))),
            "MetricType::Gauge" => assert!(names.insert(family)),
            "MetricType::Histogram" => assert!(histograms.insert(family)),
            other => panic!("{family} is a {other}"),
        }
    }
    (names, histograms)
}

/// Words that begin as our metrics do.
fn metrics_in(text: &str) -> BTreeSet<&str> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    words.filter(|word| word.starts_with("quietcore_watch_")).collect()
}

/// Goal: the reference has exactly the fields of the JSON. Method: its tables beside the structs that are
/// printed.
#[test]
fn the_reference_has_every_field() {
    let text = source("crates/cli/src/watch/interval.rs");
    let mut printed = BTreeSet::new();
    for (name, before) in [
        ("IntervalReport", ""),
        ("IntervalRow", ""),
        ("IntervalCause", "cause."),
        ("IntervalLosses", "losses."),
        ("IntervalLeftOut", "left_out."),
    ] {
        let fields = fields(&text, name);
        assert!(!fields.is_empty(), "{name} has no fields");
        printed.extend(fields.into_iter().map(|field| format!("{before}{field}")));
    }
    let documented = named("JSON, schema 1\n").into_iter().map(|name| name.replace("[]", ""));
    assert_eq!(documented.collect::<BTreeSet<_>>(), printed, "{REFERENCE}, and what is printed");
}

/// Goal: the reference has exactly the metrics, with labels that are theirs. Method: its table beside the
/// calls that encode them.
#[test]
fn the_reference_has_every_metric() {
    let text = source("crates/watch/src/openmetrics.rs");
    let (samples, histograms) = samples();
    let written: BTreeSet<String> = samples.union(&histograms).cloned().collect();
    assert!(written.len() > 4, "{written:?}");
    let rows = tables("Metrics\n");
    let rows = rows.iter().filter(|cells| cells[0].starts_with("`quietcore_watch_"));
    let mut documented = BTreeSet::new();
    for cells in rows {
        documented.extend(quoted(&cells[0]).map(str::to_owned));
        // Values of a label stand behind it.
        for label in quoted(cells[1].split(':').next().unwrap_or_default()) {
            let is_there = LABELS_OF_OTHERS.contains(&label) || text.contains(&format!("(\"{label}\", "));
            assert!(is_there, "{}: no metric has a label {label}", cells[0]);
        }
    }
    assert_eq!(documented, written, "{REFERENCE}, and what is encoded");
}

/// Goal: the reference has exactly the options, with their defaults. Method: its table beside --help.
#[test]
fn the_reference_has_every_option() {
    let mut options: BTreeMap<String, String> = BTreeMap::new();
    let mut last = String::new();
    for line in help().lines().map(str::trim_start).take_while(|line| !line.starts_with("-h, --help")) {
        if line.starts_with("--") {
            last = line.split(' ').next().unwrap_or_default().to_owned();
        }
        let said = options.entry(last.clone()).or_default();
        said.push_str(line);
        said.push(' ');
    }
    options.remove("");
    let mut documented = BTreeSet::new();
    for cells in tables("Options\n").iter().filter(|cells| cells[0].starts_with("`--")) {
        let name = quoted(&cells[0]).next().unwrap_or_default().split(' ').next().unwrap_or_default();
        let said = options.get(name).unwrap_or_else(|| panic!("--help does not have {name}"));
        let default = format!("[default: {}]", cells[2]);
        let is_value = !cells[2].is_empty() && cells[2].chars().all(char::is_alphanumeric);
        assert!(!is_value || said.contains(&default), "{name}: {said}");
        documented.insert(name.to_owned());
    }
    assert_eq!(documented, options.into_keys().collect(), "{REFERENCE}, and --help");
}

/// Goal: rules and dashboard ask for metrics and labels that there are. Method: every name in them beside
/// what is encoded, every label that is compared beside the encoder's.
#[test]
fn rules_and_dashboard_ask_for_what_there_is() {
    let text = source("crates/watch/src/openmetrics.rs");
    let (mut known, histograms) = samples();
    let of_histogram = |family: &String| ["_bucket", "_count", "_sum"].map(|end| format!("{family}{end}"));
    known.extend(histograms.iter().flat_map(of_histogram));
    for path in ["deploy/prometheus/alerts.yml", "deploy/prometheus/alerts_test.yml", DASHBOARD] {
        let file = read(path);
        let asked = metrics_in(&file);
        assert!(asked.len() > 3, "{path} asks for {asked:?}");
        for name in asked {
            assert!(known.contains(name), "{path}: there is no metric {name}");
        }
        for selector in file.split('{').skip(1).filter_map(|rest| rest.split('}').next()) {
            // Annotations have names in braces, too, and JSON has objects.
            let pairs = selector.split([',', '\n']).filter(|pair| !pair.contains(':') || pair.contains("=~"));
            for pair in pairs.filter(|pair| pair.contains('=')) {
                let label = pair.split(['=', '!']).next().unwrap_or_default().trim();
                let is_there = LABELS_OF_OTHERS.contains(&label) || text.contains(&format!("(\"{label}\", "));
                assert!(is_there, "{path}: no metric has a label {label:?}: {pair}");
            }
        }
    }
}

/// Goal: the dashboard can be read, its panels do not lie on one another, and each of them asks something.
/// Method: its JSON.
#[test]
fn the_dashboard_is_whole() {
    let dashboard: Value = serde_json::from_str(&read(DASHBOARD)).expect("it is JSON");
    let panels = dashboard["panels"].as_array().expect("panels");
    assert!(panels.len() > 9 && dashboard["uid"] == "quietcore-watch");
    let (mut numbers, mut taken) = (BTreeSet::new(), BTreeSet::new());
    for panel in panels {
        let title = panel["title"].as_str().expect("a title");
        assert!(numbers.insert(panel["id"].as_u64()), "{title}: its number is another's");
        let [x, y, width, height] = ["x", "y", "w", "h"].map(|side| panel["gridPos"][side].as_u64());
        let [x, y] = [x, y].map(|place| place.expect("a place"));
        let [width, height] = [width, height].map(|size| size.expect("a size"));
        assert!(x + width <= 24, "{title} is too wide");
        for place in (x..x + width).flat_map(|x| (y..y + height).map(move |y| (x, y))) {
            assert!(taken.insert(place), "{title} lies on another one at {place:?}");
        }
        let targets = panel["targets"].as_array().expect("targets");
        assert!(!targets.is_empty(), "{title} asks nothing");
        for target in targets {
            let asked = target["expr"].as_str().expect("an expression");
            let [open, close] = ['(', ')'].map(|bracket| asked.matches(bracket).count());
            assert!(
                open == close && asked.contains("quietcore_watch_") || asked.contains("up{"),
                "{title}: {asked}"
            );
        }
    }
}

/// Goal: all files speak of one port and the same rights, and give options that there are. Method: the unit,
/// the DaemonSet, the image, the job and the guide beside each other and --help.
#[test]
fn the_files_of_deploy_agree() {
    let help = help();
    for path in [
        UNIT,
        DAEMON_SET,
        "deploy/container/Containerfile",
        "deploy/kubernetes/overlays/annotations/kustomization.yaml",
        "deploy/prometheus/scrape.yml",
        "docs/guide/watch.md",
    ] {
        let text = read(path);
        assert!(text.contains(PORT), "{path} does not name port {PORT}");
        assert!(!text.lines().any(|line| line.starts_with('\t')), "{path} has tabs");
    }
    for path in [UNIT, DAEMON_SET, "deploy/container/Containerfile"] {
        let text = read(path);
        let lines = text.lines().filter(|line| !line.trim_start().starts_with('#'));
        let given = lines.filter(|line| line.contains("--openmetrics"));
        let words =
            given.flat_map(|line| line.split(['"', ' ', '=', ',']).map(str::to_owned).collect::<Vec<_>>());
        let options: Vec<String> = words.filter(|word| word.starts_with("--")).collect();
        assert!(!options.is_empty(), "{path} starts nothing");
        for option in options {
            assert!(help.contains(&format!(" {option} ")), "{path}: there is no {option}");
        }
    }
    let unit = read(UNIT);
    let rights = unit.lines().find_map(|line| line.strip_prefix("AmbientCapabilities="));
    let rights: Vec<&str> = rights.expect("it has rights").split(' ').collect();
    assert!(unit.contains(&format!("CapabilityBoundingSet={}\n", rights.join(" "))));
    let names = rights.iter().filter_map(|right| right.strip_prefix("CAP_"));
    let added = names.map(|name| format!("\"{name}\"")).collect::<Vec<_>>().join(", ");
    assert!(read(DAEMON_SET).contains(&format!("add: [{added}]")), "{added}");
    for right in rights {
        assert!(help.contains(right), "--help does not speak of {right}");
    }
}

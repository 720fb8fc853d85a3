//! `cargo xtask instructions`: how many instructions each hot path of the runtime takes, and a packet through
//! each discipline.
//!
//! `bench/paths` runs one path in a loop, under callgrind. What counts is the difference between
//! many rounds and a few, per round: it is the same on a busy machine, and says nothing of cache misses or
//! locked instructions. The figures are in `docs/results/instructions.txt`, with the compiler that made the
//! code: with another one they are shown and not judged.
//! Invariant: a path that grows beyond the tolerance fails, unless the figure is changed with it.

use crate::workspace::{Failure, Workspace, capture, exit_code, is_installed, run};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const FIGURES: &str = "docs/results/instructions.txt";

/// Rounds of the two runs whose difference counts.
const ROUNDS: [u32; 2] = [2_000, 32_000];

/// How much a path may grow, in percent.
const TOLERANCE: f64 = 3.0;

/// Instructions per round that the machine's other threads add or not, as they happen to run.
const NOISE: f64 = 2.0;

/// A path and its instructions per round.
type Figure = (String, f64);

/// Why they cannot be counted here.
pub(crate) fn is_missing() -> Option<&'static str> {
    if std::thread::available_parallelism().is_ok_and(|cpus| cpus.get() < 2) {
        return Some("needs two CPUs: one of two lanes is isolated");
    }
    (!is_installed("valgrind")).then_some("needs valgrind: install it from your distribution")
}

/// Shows them beside what was written down; with `is_record` writes them down instead.
pub(crate) fn command(is_record: bool) -> ExitCode {
    exit_code("instructions", check(is_record))
}

/// # Errors
/// When a path takes more than was written down, or cannot be counted.
pub(crate) fn check(is_record: bool) -> Result<(), Failure> {
    if let Some(obstacle) = is_missing() {
        return Err(Failure::new(obstacle.to_owned(), "then count again"));
    }
    let workspace = Workspace::open()?;
    let counted = count_all(&workspace)?;
    let compiler = capture(workspace.program("rustc").arg("--version"))?.trim().to_owned();
    let file = workspace.root.join(FIGURES);
    if is_record {
        let failed = |error| Failure::new(format!("{FIGURES}: {error}"), "look at that folder");
        return fs::write(&file, written(&compiler, &counted)).map_err(failed);
    }
    let text = fs::read_to_string(&file).unwrap_or_default();
    let (by, known) = read(&text);
    println!("{:<22}{:>10}{:>10}{:>9}", "instructions per round", "written", "counted", "change");
    let mut grown = Vec::new();
    for (name, count) in &counted {
        let before = known.iter().find(|(one, _)| one == name).map(|(_, count)| *count);
        let change = before.map(|before| (count / before - 1.0) * 100.0);
        let cell = |value: Option<f64>, end| value.map_or("-".to_owned(), |value| format!("{value:.1}{end}"));
        println!("{name:<22}{:>10}{count:>10.1}{:>9}", cell(before, ""), cell(change, "%"));
        if before.is_none_or(|before| has_grown(before, *count)) {
            grown.push(name.as_str());
        }
    }
    if by != compiler {
        println!("written down with `{by}`, counted with `{compiler}`: shown, and not judged");
        return Ok(());
    }
    if grown.is_empty() {
        return Ok(());
    }
    let what = format!("more than {TOLERANCE} % above {FIGURES}, or not in it: {}", grown.join(", "));
    Err(Failure::new(what, "make them shorter, or `cargo xtask instructions --record` and say why"))
}

fn has_grown(before: f64, count: f64) -> bool {
    count > before * (1.0 + TOLERANCE / 100.0) && count > before + NOISE
}

fn count_all(workspace: &Workspace) -> Result<Vec<Figure>, Failure> {
    let target = workspace.target.join("bench");
    let manifest = ["--manifest-path", "bench/paths/Cargo.toml", "--locked", "--profile", "paths"];
    let mut build = workspace.cargo(&[&["build", "-q"], &manifest[..]].concat());
    build.env("CARGO_TARGET_DIR", &target);
    run(&mut build, "mend it in bench/")?;
    let program = target.join("paths").join("quietcore-paths");
    let names = capture(workspace.program(&program).arg("--list"))?;
    let mut counted = Vec::new();
    for name in names.lines() {
        let [few, many] = ROUNDS.map(|rounds| count(workspace, &program, name, rounds));
        counted.push((name.to_owned(), (many? - few?) / f64::from(ROUNDS[1] - ROUNDS[0])));
    }
    Ok(counted)
}

fn count(workspace: &Workspace, program: &Path, name: &str, rounds: u32) -> Result<f64, Failure> {
    let out: PathBuf = workspace.target.join("instructions.callgrind");
    let mut command = workspace.program("valgrind");
    command.args(["-q", "--tool=callgrind"]).arg(format!("--callgrind-out-file={}", out.display()));
    capture(command.arg(program).arg(name).arg(rounds.to_string()))?;
    let failed = |what: String| Failure::new(what, "run callgrind by hand");
    let text = fs::read_to_string(&out).map_err(|error| failed(format!("{}: {error}", out.display())))?;
    total(&text).ok_or_else(|| failed(format!("{}: no line `totals:`", out.display())))
}

/// The instructions that callgrind counted.
fn total(text: &str) -> Option<f64> {
    text.lines().find_map(|line| line.strip_prefix("totals: ")?.trim().parse().ok())
}

fn written(compiler: &str, figures: &[Figure]) -> String {
    let mut text =
        format!("# instructions per round, by `cargo xtask instructions --record`\n# {compiler}\n");
    for (name, count) in figures {
        let _ = writeln!(text, "{name} {count:.1}");
    }
    text
}

/// By which compiler, and the figures.
fn read(text: &str) -> (&str, Vec<Figure>) {
    let compiler = text.lines().filter_map(|line| line.strip_prefix("# ")).nth(1).unwrap_or_default();
    let figure = |line: &str| {
        let (name, count) = line.split_once(' ')?;
        Some((name.to_owned(), count.parse().ok()?))
    };
    (compiler, text.lines().filter(|line| !line.starts_with('#')).filter_map(figure).collect())
}

#[cfg(test)]
mod tests {
    use super::{FIGURES, has_grown, read, total, written};

    /// Goal: what is written is what is read. Method: two figures, there and back.
    #[test]
    fn there_and_back() {
        let figures = vec![("arm_at".to_owned(), 434.5), ("turn".to_owned(), 60.0)];
        assert_eq!(read(&written("rustc 1.2.3", &figures)), ("rustc 1.2.3", figures));
    }

    /// Goal: what is told is a growth of more than 3 %, and of more than two instructions. Method: both sides
    /// of each.
    #[test]
    fn what_has_grown() {
        assert!(has_grown(400.0, 412.1) && !has_grown(400.0, 411.9) && !has_grown(400.0, 300.0));
        assert!(has_grown(20.0, 22.1) && !has_grown(20.0, 21.9));
    }

    /// Goal: callgrind's sum is found. Method: the end of a file of it, and one without.
    #[test]
    fn the_sum_is_found() {
        assert_eq!(total("fn=main\n1 2\n\ntotals: 4711\n"), Some(4711.0));
        assert_eq!(total("fn=main\n1 2\n"), None);
    }

    /// Goal: the file of the tree has figures, and says by which compiler. Method: it is read.
    #[test]
    fn the_tree_has_figures() {
        let file = crate::workspace::root().join(FIGURES);
        let text = std::fs::read_to_string(file).expect("it is in the tree");
        let (compiler, figures) = read(&text);
        assert!(compiler.starts_with("rustc ") && figures.len() > 10, "{text}");
        assert!(figures.iter().all(|(_, count)| *count > 1.0), "{figures:?}");
    }
}

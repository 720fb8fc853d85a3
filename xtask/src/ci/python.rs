//! The steps that hold the tool against something that is not ours, with the scripts in `tests/`.
//!
//! `count`: every recording in `recordings/` is explained by the tool and counted by a script that
//! shares no code with it; all figures must be equal, and each must have a value in some recording. Two of
//! them are counted once more with marks of lost events between their lines.
//! `perfetto`: what the tool writes for Perfetto is read with the published schema, and what is written with
//! that schema is read by the tool. Both first run the scripts' own tests: a check that cannot fail shows
//! nothing.
//! `clients`: a client library that was written for toxiproxy changes a relay of the tool.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::options::CiOptions;
use crate::recordings::{self, name_of};
use crate::workspace::{Failure, Workspace, run, shown, status};

/// The isolated sets that each recording is counted with: its own, and one that it does not have. CPU 0 is in
/// it, where hrtimers go when their CPU goes offline.
const ISOLATED: [Option<&str>; 2] = [None, Some("0-1")];

/// The recordings that are written as Perfetto traces, and counted with marks of lost events: one with pulls,
/// one with softirqs and hrtimers.
const PICTURED: [&str; 2] = ["g612-c16-iso", "h618-c2-detail"];

/// What these are counted with: their own set, and one in which foreign timers run whose callbacks have an
/// end.
const ISOLATED_WITH_MARKS: [Option<&str>; 2] = [None, Some("1")];

/// A recording of a kernel's osnoise tracer, on a kernel with PREEMPT_RT; counted with its own set.
const MEASURED: &str = "crates/explain/tests/data/g612rt-c16-osnoise.txt.zst";

/// So many lines lie between two such marks.
const MARKED_EVERY: usize = 997;

const REQUIREMENTS: &str = "tests/requirements.txt";
const CLIENT_REQUIREMENTS: &str = "tests/toxiproxy_requirements.txt";

pub(super) fn count(workspace: &Workspace, _: &CiOptions) -> Result<(), Failure> {
    let python = system_python(workspace)?;
    unit_tests(workspace, &python, "test_independent*.py")?;
    let quietcore = recordings::built_tool(workspace)?;
    let recordings = recordings::all(&workspace.root.join("recordings"))?;
    let count = Count { workspace, python, quietcore, folder: scratch(workspace, "count")? };
    let unpacks = has_program(workspace, "zstd");
    let mut different = vec![];
    let measured = workspace.root.join(MEASURED);
    let sets = recordings.iter().map(|path| (path, &ISOLATED[..])).chain([(&measured, &ISOLATED[..1])]);
    for (recording, sets) in sets {
        let text = if unpacks { recording.clone() } else { count.unpacked(recording)? };
        for &isolated in sets {
            if !count.is_same(recording, &text, isolated)? {
                different.push(name_of(recording));
            }
        }
    }
    for recording in recordings.iter().filter(|path| PICTURED.contains(&name_of(path).as_str())) {
        let marked = count.marked(recording)?;
        for isolated in ISOLATED_WITH_MARKS {
            if !count.is_same(&marked, &marked, isolated)? {
                different.push(name_of(&marked));
            }
        }
    }
    different.dedup();
    if !different.is_empty() {
        let what = format!("the tool and the script count differently: {}", different.join(" "));
        return Err(Failure::new(what, "find out with the raw text which of the two is wrong"));
    }
    println!("{} recordings, {} counts each: all figures equal", recordings.len(), ISOLATED.len());
    let mut total = count.script();
    total.arg("--total").arg(count.compared());
    run(&mut total, "record a load that has them")
}

/// What counts a recording twice.
struct Count<'a> {
    workspace: &'a Workspace,
    python: PathBuf,
    quietcore: PathBuf,
    folder: PathBuf,
}

impl Count<'_> {
    fn script(&self) -> Command {
        let mut script = self.workspace.program(&self.python);
        script.args(["-B", "tests/independent_count.py"]);
        script
    }

    /// Where the script adds the names of the figures that it compared.
    fn compared(&self) -> PathBuf {
        self.folder.join("compared.txt")
    }

    /// Whether the tool and the script count the same; what differs is printed.
    fn is_same(&self, recording: &Path, text: &Path, isolated: Option<&str>) -> Result<bool, Failure> {
        let name = name_of(recording);
        let json = self.folder.join(format!("{name}.json"));
        let mut explain = self.workspace.program(&self.quietcore);
        explain.arg("explain").arg(recording).arg("--json");
        let mut script = self.script();
        script.arg(text).arg("--compare").arg(&json).arg("--compared").arg(self.compared());
        for command in [&mut explain, &mut script] {
            command.args(isolated.iter().flat_map(|list| ["--isolated", list]));
        }
        run(explain.stdout(create(&json)?), "run this command by hand")?;
        let code = status(&mut script)?.code();
        if code != Some(0) && code != Some(1) {
            return Err(Failure::new(format!("`{}` broke", shown(&script)), "run this command by hand"));
        }
        let verdict = if code == Some(0) { "same" } else { "DIFFERENT, see above" };
        let set = isolated.map_or_else(String::new, |list| format!(" --isolated {list}"));
        println!("{name}{set}: {verdict}");
        Ok(code == Some(0))
    }

    /// A copy of the text with marks of lost events, of one CPU after the other.
    fn marked(&self, recording: &Path) -> Result<PathBuf, Failure> {
        let plain = self.unpacked(recording)?;
        let failed =
            |path: &Path, error| Failure::new(format!("{}: {error}", path.display()), "make room there");
        let text = fs::read_to_string(&plain).map_err(|error| failed(&plain, error))?;
        let mut marked = String::new();
        for (number, line) in text.lines().enumerate() {
            marked += line;
            marked += "\n";
            if number % MARKED_EVERY == MARKED_EVERY - 1 {
                let turn = number / MARKED_EVERY;
                marked += &format!("CPU:{} [LOST {} EVENTS]\n", turn % 4, turn + 1);
            }
        }
        let path = self.folder.join(format!("{}-with-losses.txt", name_of(recording)));
        fs::write(&path, marked).map_err(|error| failed(&path, error))?;
        Ok(path)
    }

    /// Without the `zstd` command the tool itself unpacks; the count still reads the raw text.
    fn unpacked(&self, recording: &Path) -> Result<PathBuf, Failure> {
        let text = self.folder.join(format!("{}.txt", name_of(recording)));
        let mut command = self.workspace.program(&self.quietcore);
        command.arg("cat").arg(recording).stdout(create(&text)?);
        run(&mut command, "install the zstd command, or make `quietcore cat` work")?;
        Ok(text)
    }
}

pub(super) fn perfetto(workspace: &Workspace, _: &CiOptions) -> Result<(), Failure> {
    let python = environment(workspace, "python", REQUIREMENTS, "perfetto")?;
    unit_tests(workspace, &python, "test_perfetto*.py")?;
    let quietcore = recordings::built_tool(workspace)?;
    let folder = scratch(workspace, "perfetto")?;
    for name in PICTURED {
        let trace = folder.join(format!("{name}.pftrace"));
        let mut explain = workspace.program(&quietcore);
        explain.arg("explain").arg(format!("recordings/{name}.txt.zst")).arg("--perfetto").arg(&trace);
        run(explain.stdout(Stdio::null()), "run this command by hand")?;
        let mut script = workspace.program(&python);
        script.args(["-B", "tests/perfetto_schema.py"]).arg(&trace);
        println!("{name}:");
        run(&mut script, "correct what `explain --perfetto` writes")?;
    }
    let mut script = workspace.program(&python);
    script.args(["-B", "tests/perfetto_input.py"]).arg(&quietcore);
    run(&mut script, "correct what `quietcore cat` reads of Perfetto's traces")
}

pub(super) fn clients(workspace: &Workspace, _: &CiOptions) -> Result<(), Failure> {
    let python = environment(workspace, "python-clients", CLIENT_REQUIREMENTS, "clients")?;
    let quietcore = recordings::built_tool(workspace)?;
    let mut script = workspace.program(&python);
    script.args(["-B", "tests/toxiproxy_client.py"]).arg(&quietcore);
    run(&mut script, "correct what `netem relay --api` answers")
}

/// An empty folder of our own below cargo's.
fn scratch(workspace: &Workspace, name: &str) -> Result<PathBuf, Failure> {
    let folder = workspace.target.join("xtask").join(name);
    let _ = fs::remove_dir_all(&folder); // an old one; creating tells whether it can be used
    match fs::create_dir_all(&folder) {
        Ok(()) => Ok(folder),
        Err(error) => Err(Failure::new(format!("{}: {error}", folder.display()), "make room there")),
    }
}

fn create(path: &Path) -> Result<File, Failure> {
    File::create(path)
        .map_err(|error| Failure::new(format!("{}: {error}", path.display()), "make it writable"))
}

fn has_program(workspace: &Workspace, name: &str) -> bool {
    let mut command = workspace.program(name);
    command.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// `python3`, which every distribution has.
fn system_python(workspace: &Workspace) -> Result<PathBuf, Failure> {
    if has_program(workspace, "python3") {
        return Ok(PathBuf::from("python3"));
    }
    let remedy = "install python3 >= 3.9 and python3-venv (Debian: `apt-get install python3 python3-venv`)";
    Err(Failure::new("there is no python3", remedy))
}

fn unit_tests(workspace: &Workspace, python: &Path, pattern: &str) -> Result<(), Failure> {
    let mut command = workspace.program(python);
    command.args(["-B", "-m", "unittest", "discover", "-s", "tests", "-p", pattern]);
    run(&mut command, "correct the script before trusting it")
}

/// A Python environment with what `requirements` lists for a step, kept below cargo's folder until the list
/// changes.
pub(super) fn environment(
    workspace: &Workspace,
    name: &str,
    requirements: &str,
    step: &str,
) -> Result<PathBuf, Failure> {
    let folder = workspace.target.join(name);
    let python = folder.join("bin").join("python");
    let wanted = fs::read_to_string(workspace.root.join(requirements)).map_err(|error| {
        Failure::new(format!("{requirements}: {error}"), "restore it from the repository")
    })?;
    let stamp = folder.join("installed.txt");
    if has_program(workspace, &python.to_string_lossy())
        && fs::read_to_string(&stamp).is_ok_and(|old| old == wanted)
    {
        return Ok(python);
    }
    let mut venv = workspace.program(system_python(workspace)?);
    venv.args(["-m", "venv", "--clear"]).arg(&folder);
    run(&mut venv, "install python3-venv (Debian: `apt-get install python3-venv`)")?;
    let mut install = workspace.program(&python);
    install.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r", requirements]);
    let remedy = format!("pip needs the network once; without it, `cargo xtask ci --skip {step}`");
    run(&mut install, &remedy)?;
    fs::write(&stamp, wanted)
        .map_err(|error| Failure::new(format!("{}: {error}", stamp.display()), "make it writable"))?;
    Ok(python)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: what is pictured is there. Method: this repository's folder.
    #[test]
    fn pictured_recordings_are_there() {
        let found = recordings::all(&crate::workspace::root().join("recordings")).expect("it is there");
        assert!(PICTURED.iter().all(|name| found.iter().any(|path| name_of(path) == *name)), "{found:?}");
    }
}

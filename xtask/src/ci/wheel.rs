//! The step `python`: the Python module, built as users get it, installed, and asked.
//!
//! The wheel is built by maturin and installed into an environment below cargo's folder; then the module's
//! tests run (a small fleet with a worker that is killed among them), and the guide's notebook. With `--all`
//! the wheel is optimised, and a fleet of a thousand recordings runs beside the command in a loop.

use std::fs;
use std::path::{Path, PathBuf};

use super::options::CiOptions;
use super::python::environment;
use crate::recordings;
use crate::workspace::{Failure, Workspace, run};

const REQUIREMENTS: &str = "python/requirements.txt";
const NOTEBOOK: &str = "docs/guide/fleet.ipynb";

pub(super) fn python(workspace: &Workspace, options: &CiOptions) -> Result<(), Failure> {
    let python = environment(workspace, "python-module", REQUIREMENTS, "python")?;
    let wheel = build(workspace, &python, options.all)?;
    let mut install = workspace.program(&python);
    install.args([
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--no-deps",
        "--no-index",
    ]);
    install.arg("--force-reinstall").arg(&wheel);
    run(&mut install, "correct python/pyproject.toml")?;
    let mut tests = workspace.program(&python);
    tests.args(["-B", "-m", "pytest", "-q", "-p", "no:cacheprovider", "python/tests"]);
    run(&mut tests, "correct python/, or what it calls")?;
    let mut notebook = workspace.program(&python);
    notebook.args(["-B", "-m", "pytest", "-q", "-p", "no:cacheprovider", "--nbmake", NOTEBOOK]);
    run(&mut notebook, "correct the notebook, or what it shows")?;
    if options.all {
        return acceptance(workspace, &python);
    }
    Ok(())
}

/// The wheel, the only one in a folder of its own.
fn build(workspace: &Workspace, python: &Path, is_optimised: bool) -> Result<PathBuf, Failure> {
    let folder = workspace.target.join("xtask").join("wheel");
    let _ = fs::remove_dir_all(&folder); // an old one; what is built is looked for
    let mut build = workspace.program(python);
    build.args(["-m", "maturin", "build", "--locked", "--manifest-path", "python/Cargo.toml", "--out"]);
    build.arg(&folder).args(["--profile", if is_optimised { "release" } else { "dev" }]);
    build.env("CARGO_TARGET_DIR", workspace.target.join("python-build"));
    run(&mut build, "mend it in python/; maturin needs the crates of python/Cargo.lock once")?;
    let failed =
        |why: &dyn std::fmt::Display| Failure::new(format!("{}: {why}", folder.display()), "run maturin");
    let entries = fs::read_dir(&folder).map_err(|error| failed(&error))?;
    let wheels = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let mut wheels = wheels.filter(|path| path.extension().is_some_and(|ending| ending == "whl"));
    wheels.next().ok_or_else(|| failed(&"there is no wheel"))
}

/// A thousand recordings, a worker killed in the middle, a sweep beside the command's.
fn acceptance(workspace: &Workspace, python: &Path) -> Result<(), Failure> {
    let quietcore = recordings::built_tool(workspace)?;
    let mut script = workspace.program(python);
    script.args(["-B", "tests/fleet_acceptance.py"]).arg(&quietcore);
    run(&mut script, "correct python/package/quietcore/fleet.py")
}

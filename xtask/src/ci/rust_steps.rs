//! The steps that cargo alone can do: format, lints, tests, documentation, the core without std.

use std::fs;

use super::left_out;
use super::options::CiOptions;
use crate::workspace::{Failure, Workspace, capture, install_target, run};

/// Targets without an operating system: what builds for them needs no std. One has no atomics of 64 bits.
const BARE_TARGETS: [&str; 2] = ["x86_64-unknown-none", "thumbv7em-none-eabi"];

/// Other systems and processors, and what must compile there: of `ci --all`.
const OTHER_TARGETS: [(&str, &[&str]); 5] = [
    ("x86_64-unknown-linux-musl", &["quietcore", "quietcore-ffi"]),
    ("i686-unknown-linux-gnu", &["quietcore", "quietcore-ffi"]),
    ("armv7-unknown-linux-gnueabihf", &["quietcore", "quietcore-ffi"]),
    ("x86_64-pc-windows-gnu", &EVERYWHERE),
    ("aarch64-apple-darwin", &EVERYWHERE),
];

/// Packages that need no Linux.
const EVERYWHERE: [&str; 5] =
    ["quietcore-wheel", "quietcore-core", "quietcore-qdisc", "quietcore-trace", "quietcore-sim"];

/// Packages that must build without std, and their crate roots.
const NO_STD: [(&str, &str); 3] = [
    ("quietcore-wheel", "crates/wheel/src/lib.rs"),
    ("quietcore-core", "crates/core/src/lib.rs"),
    ("quietcore-qdisc", "crates/qdisc/src/lib.rs"),
];

/// What no crate of the workspace turns on by itself; release and mutants are built without.
const FEATURES: &str = "quietcore-live/tracing,quietcore-live/usdt";

pub(super) fn fmt(workspace: &Workspace, _: &CiOptions) -> Result<(), Failure> {
    run(&mut workspace.cargo(&["fmt", "--all", "--check"]), "run `cargo fmt --all`")
}

pub(super) fn clippy(workspace: &Workspace, _: &CiOptions) -> Result<(), Failure> {
    let arguments = ["clippy", "--workspace", "--all-targets", "--locked", "--features", FEATURES];
    run(
        workspace.cargo(&arguments).args(["--", "-D", "warnings"]),
        "change the lines it names; if Cargo.lock is old, `cargo check` renews it",
    )
}

pub(super) fn tests(workspace: &Workspace, _: &CiOptions) -> Result<(), Failure> {
    let remedy = "run the test that failed alone: `cargo test -p PACKAGE NAME`";
    let mut command = workspace.cargo(&["test", "--workspace", "--locked", "--features", FEATURES]);
    run(left_out::noted_by(workspace, &mut command), remedy)
}

/// The core with a mark between any two steps that matter. A place of its own: changed flags build all again.
pub(super) fn site(workspace: &Workspace, _: &CiOptions) -> Result<(), Failure> {
    test_with(workspace, "site", &["-p", "quietcore-core", "--test", "site"])
}

/// On loom's atomics: the hierarchy, the models beside the code of bases, and the words of threads.
pub(super) fn loom(workspace: &Workspace, _: &CiOptions) -> Result<(), Failure> {
    test_with(workspace, "loom", &["-p", "quietcore-core", "--lib", "--test", "loom"])?;
    test_with(workspace, "loom", &["-p", "quietcore-live", "--test", "loom"])
}

fn test_with(workspace: &Workspace, name: &str, targets: &[&str]) -> Result<(), Failure> {
    let mut command = workspace.cargo(&["test", "--locked"]);
    command.args(targets);
    command.env("RUSTFLAGS", format!("--cfg {name}")).env("CARGO_TARGET_DIR", workspace.target.join(name));
    run(
        &mut command,
        "the failure names the order of steps that leads to it; crates/core/src/tmigr/README.md, or the word's file",
    )
}

pub(super) fn doc(workspace: &Workspace, _: &CiOptions) -> Result<(), Failure> {
    let mut command = workspace.cargo(&["doc", "--workspace", "--no-deps", "--locked"]);
    run(command.env("RUSTDOCFLAGS", "-D warnings"), "change the comments it names")
}

pub(super) fn targets(workspace: &Workspace, options: &CiOptions) -> Result<(), Failure> {
    for (_, root) in NO_STD {
        let text = fs::read_to_string(workspace.root.join(root))
            .map_err(|error| Failure::new(format!("{root}: {error}"), "give the crate a root"))?;
        if !text.lines().any(|line| line.trim() == "#![no_std]") {
            return Err(Failure::new(format!("{root} is not `#![no_std]`"), "add the attribute"));
        }
    }
    for target in BARE_TARGETS {
        install_target(workspace, target)?;
        let packages = NO_STD.iter().flat_map(|(package, _)| ["-p", package]);
        let mut command = workspace.cargo(&["build", "--locked", "--target", target]);
        run(command.args(packages), "use `core` and `alloc` there, not `std`")?;
    }
    for (target, packages) in OTHER_TARGETS.into_iter().filter(|_| options.all) {
        install_target(workspace, target)?;
        let packages = packages.iter().flat_map(|package| ["-p", package]);
        let mut command = workspace.cargo(&["check", "--locked", "--target", target]);
        run(command.args(packages), "what needs Linux is in modules that only Linux has")?;
    }
    if options.all { with_oldest_compiler(workspace) } else { Ok(()) }
}

/// With the compiler that `rust-version` promises: no lint knows all that a later one takes.
fn with_oldest_compiler(workspace: &Workspace) -> Result<(), Failure> {
    let version = env!("CARGO_PKG_RUST_VERSION");
    let rustup = || workspace.program("rustup");
    if capture(rustup().args(["run", version, "cargo", "--version"])).is_err() {
        let mut install = rustup();
        install.args(["toolchain", "install", version, "--profile", "minimal"]);
        run(&mut install, "install that toolchain, or leave the step out: --skip targets")?;
    }
    let mut check = rustup();
    check.args(["run", version, "cargo", "check", "--locked", "--workspace", "--all-features"]);
    check.env("CARGO_TARGET_DIR", workspace.target.join("oldest")).env_remove("CARGO").env_remove("RUSTC");
    run(&mut check, "write it as that compiler takes it, or raise rust-version and say so in the CHANGELOG")
}

/// The peers must stay comparable: their adapters compile, and every workload's own assertions hold.
pub(super) fn bench(workspace: &Workspace, _: &CiOptions) -> Result<(), Failure> {
    let manifest = ["--manifest-path", "bench/Cargo.toml", "--locked"];
    let run_in = |verb: &[&str], rest: &[&str]| {
        let mut command = workspace.cargo(&[verb, &manifest, rest].concat());
        // A place of its own below ours: the two workspaces differ in features.
        command.env("CARGO_TARGET_DIR", workspace.target.join("bench"));
        run(&mut command, "mend it in bench/; bench/README.md says how each peer is driven")
    };
    run_in(&["clippy"], &["--workspace", "--all-targets", "--", "-D", "warnings"])?;
    run_in(&["test", "-q", "--release"], &[])?;
    run_in(&["run", "-q", "--release"], &["--bin", "peers", "--", "--quick", "--rounds", "1"])
}

/// The checks that the fuzz targets make, on their seeds; to fuzz takes a nightly toolchain (fuzz/README.md).
pub(super) fn fuzz(workspace: &Workspace, _: &CiOptions) -> Result<(), Failure> {
    let mut command = workspace.cargo(&["test", "-q", "--locked", "--manifest-path", "fuzz/Cargo.toml"]);
    command.env("CARGO_TARGET_DIR", workspace.target.join("fuzz"));
    run(&mut command, "fuzz/README.md says what each target asserts")
}

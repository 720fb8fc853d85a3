//! The project's own commands: `cargo xtask help` lists them.
//!
//! Decides only which command was asked for. Exit codes: 0 all is well, 1 a step failed or a rule is
//! broken, 2 the command line is wrong. Uses the standard library alone, so that the checks of this
//! project never wait for the release of another.

#![forbid(unsafe_code)]

mod bench;
mod borrowed_tests;
mod bpf;
mod ci;
mod dist;
mod files;
mod guest;
mod instructions;
mod miri;
mod mutants;
mod nightly;
mod packages;
mod packets;
mod recordings;
mod tidy;
mod tsan;
mod verify;
mod workspace;

use std::io::{self, Write as _};
use std::process::ExitCode;

const HELP: &str = "\
usage: cargo xtask COMMAND

  ci [--all] [--skip NAME]...   what must pass before a change goes in; stops at the first failure; the last line names
                        what passed and what this machine cannot run; of the mutants those of changed files and a
                        tenth of the others, which rotates; --all: every mutant, and miri
  tidy                  the rules of style that a program can check
  mutants [NAME|--since COMMIT|--tenth K] [--times N]   breaks one rule at a time and expects the tests to notice, N
                        times of N; NAME chooses mutants or lists (several: A,B), COMMIT those of files that have changed
                        since then, K one of ten parts (1 to 10), as all of them take hours
  instructions [--record]   counts the instructions of the runtime's hot paths, beside those written down; --record:
                        writes them down
  bench [--record] [--rounds N] [--quick]   measures every target of speed beside the machine's own limits; half an
                        hour; --record: writes the table down
  dist [PROCESSOR]...   makes what others are given, in target/dist: archive, .deb and .rpm with a checked binary, manual
                        pages, completions and the list of what is in it; PROCESSOR: x86_64, aarch64
  packages [--build]    makes the packages of all crates and looks at each; --build: a program outside of the
                        workspace is built from them alone, and the command installed
  bpf                   compiles the program that `quietcore watch` loads into the kernel; needs clang
  guest [--kernel V]... boots real kernels under QEMU, V a version of Debian's as 6.12 or an image, and runs the
                        command inside: recording, check-up, keep-awake; minutes each
  verify DIR            replays every recording in DIR through the wheel: no line may contradict it
  packets [PART]...     packet schedulers on network devices beside the kernel's own; as root; PART: seed, ping,
                        shape, throughput
  borrowed-tests [NAME]... [--sources DIR]   own tests of tokio, tower, hyper-util, quinn on our timers, or of those that
                        are named; DIR has tokio-VERSION and so on, instead of cargo's cache
  miri [NAME]           named tests of wheel, core and runtime under the interpreter that reports undefined behaviour;
                        minutes; needs a nightly toolchain
  tsan                  the tests of threads with a detector of races in all of it, std too; needs a nightly toolchain
  help                  this text

steps of ci, in order (the names are for --skip):
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    if words.iter().any(|word| matches!(*word, "--help" | "-h")) {
        return help();
    }
    match words.as_slice() {
        ["ci", rest @ ..] => match ci::options(rest) {
            Ok(options) => ci::run(&options),
            Err(problem) => refuse(&problem),
        },
        ["tidy"] => tidy::command(),
        ["instructions"] => instructions::command(false),
        ["instructions", "--record"] => instructions::command(true),
        ["bench", "--record", words @ ..] => bench::command(true, words),
        ["bench", words @ ..] => bench::command(false, words),
        ["dist", processors @ ..] => dist::command(processors),
        ["bpf"] => bpf::command(),
        ["packages"] => packages::command(false),
        ["packages", "--build"] => packages::command(true),
        ["guest", words @ ..] => guest::command(words),
        ["guest-load", words @ ..] => guest::load::command(words),
        ["verify", folder] => verify::command(folder),
        ["packets", names @ ..] => packets::command(names),
        ["packets-load", words @ ..] => packets::load::command(words),
        ["borrowed-tests", words @ ..] => borrowed_tests::command(words),
        ["miri"] => miri::command(None),
        ["miri", name] => miri::command(Some(name)),
        ["tsan"] => tsan::command(),
        ["mutants", rest @ ..] => match mutants_options(rest) {
            Ok((choice, times)) => mutants::command(choice, times),
            Err(problem) => refuse(&problem),
        },
        ["help"] => help(),
        [] => refuse("a command is missing"),
        [other, ..] => refuse(&format!("cannot do `{other}` with these arguments")),
    }
}

fn help() -> ExitCode {
    // A reader that has seen enough may close the pipe.
    let _ = write!(io::stdout(), "{HELP}{}", ci::step_list());
    ExitCode::SUCCESS
}

/// Which mutants, and how often each killer is asked.
fn mutants_options<'a>(words: &[&'a str]) -> Result<(mutants::MutantChoice<'a>, u32), String> {
    let (name, times) = match words {
        [name @ .., "--times", times] => (name, *times),
        name => (name, "1"),
    };
    let times = times.parse().ok().filter(|&times| times > 0).ok_or("--times needs a number from 1")?;
    match name {
        [] => Ok((mutants::MutantChoice::All, times)),
        [name] if !name.starts_with('-') => Ok((mutants::MutantChoice::Named(name), times)),
        ["--since", commit] => Ok((mutants::MutantChoice::Since(commit), times)),
        ["--tenth", number] => {
            let number = number.parse().ok().filter(|number| (1..=mutants::ROTATION).contains(number));
            Ok((mutants::MutantChoice::Tenth(number.ok_or("--tenth needs a number from 1 to 10")?), times))
        }
        _ => Err("mutants takes a name, --since COMMIT or --tenth K, and --times N behind it".to_owned()),
    }
}

/// The command line is wrong: says so, and what is right.
fn refuse(problem: &str) -> ExitCode {
    eprint!("xtask: {problem}\n\n{HELP}{}", ci::step_list());
    ExitCode::from(2)
}

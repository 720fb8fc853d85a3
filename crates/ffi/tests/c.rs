//! The programs of `tests/c` and the examples in C, compiled against the header that is
//! shipped and linked with the static library.
//!
//! A compiler is needed; the sanitizer and valgrind are used where they are installed, and what is left
//! out is printed.

use quietcore_testing::left_out;
use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

const PROGRAMS: [&str; 8] = ["basic", "reset", "work", "stress", "race", "memory", "lanes", "misuse"];

/// Those of `examples/c`, and what makes a run short.
const EXAMPLES: [(&str, &[&str]); 3] = [("epoll", &[]), ("poll_mode", &[]), ("poll_loop", &["300"])];

/// What a static library of Rust needs from the system (`rustc --print native-static-libs`).
const SYSTEM: [&str; 6] = ["-lgcc_s", "-lutil", "-lrt", "-lpthread", "-lm", "-ldl"];

/// Where cargo puts the library and this test.
fn built() -> PathBuf {
    let test = env::current_exe().expect("a test knows where it is");
    test.parent().expect("it is in a folder").to_path_buf()
}

fn compiler() -> OsString {
    env::var_os("CC").unwrap_or_else(|| "cc".into())
}

/// Compiles one program of the tests; `kind` is part of its name.
fn compile(program: &str, kind: &str, flags: &[&str]) -> Result<PathBuf, String> {
    compile_in("tests/c", program, kind, flags)
}

fn compile_in(folder: &str, program: &str, kind: &str, flags: &[&str]) -> Result<PathBuf, String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let target = built().join(format!("c-{program}-{kind}"));
    let library = built().join("libquietcore_ffi.a");
    assert!(library.exists(), "{} is missing: cargo builds it with this test", library.display());
    let output = Command::new(compiler())
        .args(["-std=c11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-g", "-O1"])
        .args(flags)
        .arg("-I")
        .arg(root.join("include"))
        .arg(root.join(folder).join(format!("{program}.c")))
        .arg(library)
        .args(SYSTEM)
        .arg("-o")
        .arg(&target)
        .output()
        .unwrap_or_else(|error| panic!("no C compiler ({}): {error}; set CC", compiler().display()));
    if output.status.success() { Ok(target) } else { Err(text(&output)) }
}

fn text(output: &Output) -> String {
    let all = [output.stdout.as_slice(), output.stderr.as_slice()].concat();
    format!("{}\n{}", output.status, String::from_utf8_lossy(&all))
}

fn run(command: &mut Command) {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}: {}", text(&output));
    print!("{}", String::from_utf8_lossy(&output.stdout));
}

/// Goal: the interface does what its header says, for a program in C. Method: each program of `tests/c`,
/// which ends with an error where something is not so.
#[test]
fn programs_in_c() {
    for program in PROGRAMS {
        let compiled = compile(program, "plain", &[]).unwrap_or_else(|error| panic!("{program}.c: {error}"));
        run(&mut Command::new(compiled));
    }
}

/// Goal: what a program must not do and the library can notice is refused. Method: `tests/c/misuse.c`, alone.
#[test]
fn misuse_is_refused() {
    let compiled = compile("misuse", "alone", &[]).unwrap_or_else(|error| panic!("misuse.c: {error}"));
    run(&mut Command::new(compiled));
}

/// Goal: the examples work, as they end with an error where something is not as they say. Method: each of
/// them, with nothing to read.
#[test]
fn examples_in_c() {
    for (program, arguments) in EXAMPLES {
        let compiled = compile_in("../../examples/c", program, "example", &[]);
        let compiled = compiled.unwrap_or_else(|error| panic!("{program}.c: {error}"));
        run(Command::new(compiled).args(arguments).stdin(Stdio::null()));
    }
}

/// Goal: the header is one for C++, too. Method: a translation unit that only includes it, if there
/// is a compiler for C++.
#[test]
fn the_header_compiles_alone() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for (compiler, language, standard) in [("cc", "c", "-std=c99"), ("c++", "c++", "-std=c++11")] {
        let output = Command::new(compiler)
            .args(["-fsyntax-only", "-Wall", "-Wextra", "-Wpedantic", "-Werror", standard, "-x", language])
            .arg(root.join("include/quietcore.h"))
            .output();
        match output {
            Ok(output) => assert!(output.status.success(), "{compiler}: {}", text(&output)),
            Err(error) => left_out(&format!("the header as {language}"), format_args!("{compiler}: {error}")),
        }
    }
    assert!(root.join("include/quietcore.h").exists());
}

/// Goal: no program or callback touches memory that is not its own, and the library gives no such memory out.
/// Method: the programs with AddressSanitizer on the side of C, a fifth of everything.
#[test]
fn programs_under_the_address_sanitizer() {
    let mut ran = 0;
    for program in PROGRAMS {
        match compile(program, "asan", &["-fsanitize=address,undefined", "-fno-sanitize-recover=undefined"]) {
            // Machines live as long as the process.
            Ok(compiled) => run(Command::new(compiled).arg("20").env("ASAN_OPTIONS", "detect_leaks=0")),
            Err(error) => {
                left_out(&format!("{program}.c with AddressSanitizer"), error);
                continue;
            }
        }
        ran += 1;
    }
    assert!(ran == 0 || ran == PROGRAMS.len(), "the sanitizer is there or it is not: {ran}");
}

/// Goal: nothing reads memory that was not written. Method: valgrind, where it is installed, on what is not
/// about time.
#[test]
fn programs_under_valgrind() {
    if let Err(error) = Command::new("valgrind").arg("--version").output() {
        left_out("programs_under_valgrind", format_args!("valgrind: {error}"));
        return;
    }
    for program in ["basic", "reset", "work", "race", "misuse"] {
        let compiled =
            compile(program, "valgrind", &[]).unwrap_or_else(|error| panic!("{program}.c: {error}"));
        run(Command::new("valgrind")
            .args(["--quiet", "--error-exitcode=9", "--fair-sched=yes"])
            .arg(compiled)
            .arg("2"));
    }
    assert!(built().join("c-basic-valgrind").exists());
}

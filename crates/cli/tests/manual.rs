//! Manual pages and completions, as `man` and a shell meet them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn quietcore(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_quietcore")).args(args).output().expect("quietcore runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("our output is UTF-8")
}

/// A folder of this test alone, empty.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("the target folder");
    folder
}

/// The options that a help page lists, with their dashes.
fn options(help: &str) -> Vec<String> {
    let lines = help.lines().map(str::trim_start).filter(|line| line.starts_with('-'));
    let words = lines.flat_map(|line| line.split([' ', ',', '=']).take_while(|word| !word.starts_with('<')));
    words.filter(|word| word.starts_with("--")).map(str::to_owned).collect()
}

/// Goal: every command has a page that lists its options. Method: the pages beside what --help says.
#[test]
fn every_command_has_a_page() {
    let folder = folder("man1");
    let output = quietcore(&["man", folder.to_str().expect("our own name")]);
    let said = text(&output.stdout);
    let verbs =
        ["", "explain", "diff", "record", "watch", "keep-awake", "doctor", "verify", "whatif", "sim", "lab"];
    let others = ["calibrate", "netem", "netem tun", "netem relay", "tc", "cat", "man", "completions"];
    for verb in verbs.into_iter().chain(others) {
        let words: Vec<&str> = verb.split_whitespace().collect();
        let help = text(&quietcore(&[&words[..], &["--help"]].concat()).stdout);
        let name = [&["quietcore"], &words[..]].concat().join("-");
        let page = fs::read_to_string(folder.join(format!("{name}.1"))).expect("a page");
        assert!(page.contains(&format!(".TH {name} 1")), "{name}: {page}");
        let listed = options(&help);
        assert!(listed.contains(&"--help".to_owned()), "{name}: {help}");
        for option in listed {
            assert!(page.contains(&option.replace('-', "\\-")), "{name} lacks {option}");
        }
    }
    let count = fs::read_dir(&folder).expect("it was made").count();
    assert!(said.starts_with(&format!("{count} pages are in ")), "{said}");
}

/// Goal: a folder that is not there is named, and nothing is made.
#[test]
fn pages_need_a_folder() {
    let missing = folder("nothing").join("man1");
    let output = quietcore(&["man", missing.to_str().expect("our own name")]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("nothing/man1/quietcore"), "{}", text(&output.stderr));
    assert!(!missing.exists() && output.stdout.is_empty());
}

/// Goal: bash completes commands and options. Method: bash, with the script that was printed.
#[test]
fn bash_completes_what_is_typed() {
    let script = folder("completions").join("quietcore");
    fs::write(&script, quietcore(&["completions", "bash"]).stdout).expect("the target folder");
    let ask = "source \"$1\"; COMP_WORDS=($2); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); \
               _quietcore quietcore \"${COMP_WORDS[COMP_CWORD]}\" \"${COMP_WORDS[COMP_CWORD-1]}\"; \
               echo \"${COMPREPLY[*]}\"";
    for (typed, completed) in
        [("quietcore expl", "explain"), ("quietcore explain --per", "--perfetto"), ("quietcore nothing", "")]
    {
        let mut bash = Command::new("bash");
        let Ok(output) = bash.args(["-c", ask, "bash"]).arg(&script).arg(typed).output() else {
            quietcore_testing::left_out("completions", "there is no bash");
            return;
        };
        assert_eq!(text(&output.stdout).trim(), completed, "{typed}: {}", text(&output.stderr));
    }
}

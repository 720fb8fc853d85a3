//! Rules about one Rust file: its opening, size, lines, and words that need a reason or a place.
//!
//! Each rule is a small function over the scanned lines; the lists of exceptions are constants here,
//! and each exception says why. Rules about functions are in [`functions`](super::functions).

use super::scan::{SourceLine, item_end, word_columns};
use super::source::{SourceFile, SourceTree, Violation};

/// Wanted and allowed lines of a file, its tests not counted.
const WANTED_FILE: usize = 400;
const LONGEST_FILE: usize = 600;

/// Longest line, in characters; rustfmt.toml has the same number.
pub(crate) const LONGEST_LINE: usize = 110;

/// Files that may say `unsafe`, and why.
const UNSAFE_ALLOWED: &[(&str, &str)] = &[
    ("crates/wheel/src/node_ref.rs", "nodes that are reached by address"),
    ("crates/wheel/tests/property/exact.rs", "its user's half of the promise"),
    ("crates/wheel/tests/property/subject.rs", "its user's half of the promise"),
    ("crates/core/src/lock.rs", "data behind a lock is reached by its holder"),
    ("crates/core/src/base/arena.rs", "slots that queues link are reached by pointer"),
    ("crates/core/src/base/queues.rs", "links of timers go to another thread with the lock of their base"),
    ("crates/core/src/base/timer.rs", "timers that are reached by address"),
    ("crates/core/src/base/timer/tests.rs", "its user's half of the promise"),
    ("crates/core/src/base/tests/locks.rs", "locks for tests: the implementer's half of the promise"),
    ("crates/core/tests/machine/lock.rs", "a lock for tests: the implementer's half of the promise"),
    ("crates/core/tests/site/lock.rs", "a lock for virtual CPUs: the implementer's half of the promise"),
    ("crates/sim/src/runtime/switch.rs", "a virtual thread's way back is found from its depths"),
    ("crates/sim/src/runtime/virtual_lock.rs", "a lock for virtual threads"),
    ("crates/live/src/words/lock.rs", "a lock says that it is one"),
    ("crates/live/src/words/futex.rs", "the C library's own call, for the interpreter alone"),
    ("crates/live/src/words/waker_cell.rs", "a waker that a word gives to one thread at a time"),
    ("crates/live/src/words/present_cpu.rs", "the C library's word for the present CPU"),
    ("crates/live/src/clock/cycles.rs", "an instruction that reads a counter"),
    ("crates/live/src/fork/mod.rs", "the C library is told whom to call in a child"),
    ("crates/live/src/job.rs", "an expired timer is the first field of what its payload says"),
    ("crates/live/src/machine/mod.rs", "the one type that a machine's parts refer to"),
    ("crates/live/src/machine_ref.rs", "a machine's address without its type"),
    ("crates/live/src/time/entry.rs", "a future's timer is pinned with it"),
    ("crates/live/src/timer/callback.rs", "a counted timer names itself"),
    ("crates/live/src/timer/raw.rs", "a caller's timer is where its maker promised"),
    ("crates/ffi/src/machine.rs", "C's pointers, by the header's contract"),
    ("crates/ffi/src/timer.rs", "C's pointers, by the header's contract"),
    ("crates/ffi/src/timers.rs", "C's pointers, by the header's contract"),
    ("crates/ffi/src/work.rs", "C's pointers, by the header's contract"),
    ("crates/ffi/src/cpu.rs", "C's pointers, by the header's contract"),
    ("crates/ffi/src/stats.rs", "C's pointers, by the header's contract"),
    ("crates/ffi/src/texts.rs", "C's pointers, by the header's contract"),
    ("crates/ffi/src/result.rs", "C's pointers, by the header's contract"),
    ("crates/live/src/words/lock/models.rs", "loom's cell behind the lock that is modelled"),
    ("crates/live/src/words/waker_cell/models.rs", "its user's half of the promise"),
    ("crates/live/src/words/waker_cell/tests.rs", "its user's half of the promise"),
    ("crates/live/src/timer/tests/cancel_all.rs", "its user's half of the promise"),
    ("crates/live/src/timer/tests/late_ends.rs", "its user's half of the promise"),
    ("crates/live/src/timer/tests/pending.rs", "its user's half of the promise"),
    ("crates/live/src/lane/realtime.rs", "a scheduling policy that the safe bindings lack"),
    ("crates/watch/src/memory.rs", "the kernel hands out memory as an address and a length"),
    ("crates/net/src/tun/system.rs", "system calls that the safe bindings lack"),
    ("crates/live/src/words/stall_record.rs", "references that last for ever, in a word"),
    ("crates/live/tests/time_fork.rs", "a process that forks"),
    ("crates/live/tests/turn_fork.rs", "a process that forks"),
    ("crates/live/src/machine/tests.rs", "its user's half of the promise"),
    ("crates/testing/src/allocations.rs", "an allocator that counts, for tests"),
    ("crates/tokio/src/lanes/descriptor.rs", "tokio is promised that a descriptor stays open"),
    ("bench/src/peers/adapters/quietcore.rs", "its user's half of the promise"),
];

/// Files besides `sync.rs` that may use atomics, and why.
const ATOMICS_ALLOWED: &[(&str, &str)] = &[
    ("bench/src/limits.rs", "measures what a compare-and-swap costs; guards nothing"),
    ("crates/cli/src/signals.rs", "one flag that a signal sets; it guards no other data"),
    ("crates/watch/src/memory.rs", "words that the kernel's program changes; each is a count of its own"),
    ("crates/live/src/words/lock.rs", "the word of a lock; its orderings are modelled"),
    ("crates/live/src/words/futex.rs", "a word that the kernel compares; whose states are elsewhere"),
    ("crates/live/src/words/park/event.rs", "what a descriptor owes; its orderings are modelled"),
    ("crates/live/src/words/park.rs", "the park word; its orderings are modelled"),
    ("crates/live/src/words/waker_cell.rs", "the word of a waker; its orderings are modelled"),
    ("crates/live/src/words/work.rs", "the word of work; its orderings are modelled"),
    ("crates/live/src/words/cycle_clock.rs", "a sequence lock; its orderings are modelled"),
    ("crates/live/src/words/slot_owner.rs", "who has a lane's slot; its orderings are modelled"),
    ("crates/live/src/words/run_queue.rs", "the words of a run queue; their orderings are modelled"),
    ("crates/live/src/words/stall_record.rs", "what a lane runs; its orderings are modelled"),
    ("crates/live/src/words/run_wait.rs", "the epoch of ended runs; its orderings are modelled"),
    ("crates/core/src/machine/cpu_flags.rs", "the flags of a CPU; modelled"),
    ("crates/core/src/tmigr/state.rs", "the word of a group; its orderings are modelled"),
    ("crates/core/src/tmigr/event.rs", "links and hints of a group; their orderings are modelled"),
    ("crates/core/src/tmigr/record.rs", "a CPU's link and wake-up; written under its record's lock"),
    ("crates/core/src/realtime/cpupri.rs", "slots of priorities; their orderings are modelled"),
    ("crates/core/src/lane/deadline.rs", "the deadline word; its orderings are modelled"),
    ("crates/core/src/lane/slot_words.rs", "the words of a lane's slot; their orderings are modelled"),
    ("crates/core/src/softirq/claims.rs", "who runs which vector; its orderings are modelled"),
    ("crates/core/src/softirq/call.rs", "a call under way; its orderings are modelled"),
];

/// File names that say nothing.
const EMPTY_NAMES: [&str; 4] = ["utils.rs", "common.rs", "helpers.rs", "types.rs"];

/// Macros that stand for work not done.
const LEFTOVER_MACROS: [&str; 3] = ["todo!", "unimplemented!", "dbg!"];

/// Notes that stand for work not done; in pieces, so that this file does not have them.
const LEFTOVER_NOTES: [&str; 2] = [concat!("TO", "DO"), concat!("FIX", "ME")];

/// Memory orderings; the three of comparisons (`Less`, `Equal`, `Greater`) are another type.
const ORDERINGS: [&str; 5] = ["Relaxed", "Acquire", "Release", "AcqRel", "SeqCst"];

pub(crate) fn check(source: &SourceFile) -> Vec<Violation> {
    let mut found = vec![];
    check_opening(source, &mut found);
    check_size(source, &mut found);
    check_name(source, &mut found);
    for (number, line) in source.lines.iter().enumerate() {
        check_unsafe(source, number, line, &mut found);
        check_atomics(source, number, line, &mut found);
        check_leftovers(source, number, line, &mut found);
        check_attributes(source, number, line, &mut found);
        check_unwrap(source, number, line, &mut found);
    }
    check_width(source, &mut found);
    found
}

/// Exceptions whose file no longer needs them.
pub(crate) fn check_exceptions(tree: &SourceTree) -> Vec<Violation> {
    let list = SourceFile::of("xtask/src/tidy/rust_source.rs", "");
    let needs_unsafe = |line: &SourceLine| !word_columns(&line.code, "unsafe").is_empty();
    let needs_atomics = |line: &SourceLine| uses_atomics(&line.code);
    let unsafe_files = stale(tree, UNSAFE_ALLOWED, needs_unsafe).map(|path| (path, "UNSAFE_ALLOWED"));
    let atomics_files = stale(tree, ATOMICS_ALLOWED, needs_atomics).map(|path| (path, "ATOMICS_ALLOWED"));
    unsafe_files
        .chain(atomics_files)
        .map(|(path, name)| {
            let remedy = format!("{path} no longer needs its exception; take it from {name}");
            Violation::error(&list, 0, "stale-exception", remedy)
        })
        .collect()
}

fn stale<'a>(
    tree: &'a SourceTree,
    exceptions: &'a [(&'a str, &'a str)],
    needs: impl Fn(&SourceLine) -> bool + 'a,
) -> impl Iterator<Item = &'a str> {
    let paths = exceptions.iter().map(|(path, _why)| *path);
    paths.filter(move |path| !tree.source(path).is_some_and(|source| source.lines.iter().any(&needs)))
}

fn check_opening(source: &SourceFile, found: &mut Vec<Violation>) {
    if !source.lines.first().is_some_and(|line| line.raw.starts_with("//!")) {
        let remedy = "begin the file with `//!`: what it decides, its invariants, what is absent".to_owned();
        found.push(Violation::error(source, 0, "module-comment", remedy));
    }
}

fn check_size(source: &SourceFile, found: &mut Vec<Violation>) {
    if source.is_test() {
        return;
    }
    let count = source.lines.iter().filter(|line| !line.in_test).count();
    let remedy = format!(
        "{count} lines without tests; split it by idea ({WANTED_FILE} wanted, at most {LONGEST_FILE} allowed)"
    );
    if count > LONGEST_FILE {
        found.push(Violation::error(source, count, "file-length", remedy));
    } else if count > WANTED_FILE {
        found.push(Violation::wish(source, count, "file-length", remedy));
    }
}

fn check_name(source: &SourceFile, found: &mut Vec<Violation>) {
    let name = source.path.rsplit('/').next().unwrap_or_default();
    if EMPTY_NAMES.contains(&name) {
        let remedy = format!("`{name}` says nothing; name the file after the one idea in it");
        found.push(Violation::error(source, 0, "file-name", remedy));
    }
}

fn check_unsafe(source: &SourceFile, number: usize, line: &SourceLine, found: &mut Vec<Violation>) {
    let allowed = UNSAFE_ALLOWED.iter().any(|(path, _why)| *path == source.path);
    if !allowed && !word_columns(&line.code, "unsafe").is_empty() {
        let remedy = "`unsafe` is not allowed in this file; do without, or add the file to UNSAFE_ALLOWED \
                      in xtask/src/tidy/rust_source.rs with the reason";
        found.push(Violation::error(source, number, "unsafe-file", remedy.to_owned()));
    }
}

fn check_atomics(source: &SourceFile, number: usize, line: &SourceLine, found: &mut Vec<Violation>) {
    // A model plays the words that it is about; threads of a test count what they did.
    let name = source.path.rsplit('/').next();
    let named_sync =
        matches!(name, Some("sync.rs" | "models.rs" | "tests.rs")) || source.path.contains("/tests/");
    let allowed = ATOMICS_ALLOWED.iter().any(|(path, _why)| *path == source.path);
    if !named_sync && !allowed && uses_atomics(&line.code) {
        let remedy = "atomics live in a file named sync.rs; move them there, or add the file to \
                      ATOMICS_ALLOWED in xtask/src/tidy/rust_source.rs with the reason";
        found.push(Violation::error(source, number, "atomics-file", remedy.to_owned()));
    }
}

fn uses_atomics(code: &str) -> bool {
    let ordering = ORDERINGS.iter().any(|name| code.contains(&format!("Ordering::{name}")));
    let typed = code.match_indices("Atomic").any(|(at, _)| {
        let rest = &code[at + "Atomic".len()..];
        ["Bool", "Ptr", "U", "I"].iter().any(|kind| rest.starts_with(kind))
    });
    ordering || typed || code.contains("sync::atomic")
}

fn check_leftovers(source: &SourceFile, number: usize, line: &SourceLine, found: &mut Vec<Violation>) {
    let macros = LEFTOVER_MACROS.iter().filter(|name| !word_columns(&line.code, name).is_empty());
    let noted = |text: &str, note: &str| !word_columns(text, note).is_empty();
    let notes = LEFTOVER_NOTES.iter().filter(|note| noted(&line.code, note) || noted(&line.comment, note));
    for leftover in macros.chain(notes) {
        let remedy = format!("`{leftover}` is work not done; finish it or write an issue");
        found.push(Violation::error(source, number, "leftover", remedy));
    }
}

fn check_attributes(source: &SourceFile, number: usize, line: &SourceLine, found: &mut Vec<Violation>) {
    if line.code.contains("#[ignore") {
        let remedy = "a test that does not run protects nothing; make it run or remove it".to_owned();
        found.push(Violation::error(source, number, "ignored-test", remedy));
    }
    let silences = ["#[allow(", "#![allow(", "#[expect(", "#![expect("];
    let Some(column) = silences.iter().find_map(|text| line.code.find(text)) else { return };
    let end = attribute_end(&source.lines, number, column);
    let explained = source.lines[number..=end]
        .iter()
        .any(|line| line.code.contains("reason =") || line.comment.trim_start_matches('/').trim().len() > 3);
    if !explained {
        let remedy = "say why: `#[allow(lint, reason = \"...\")]`".to_owned();
        found.push(Violation::error(source, number, "allow-reason", remedy));
    }
}

/// The line on which the attribute that begins at (`line`, byte `column`) is closed.
fn attribute_end(lines: &[SourceLine], line: usize, column: usize) -> usize {
    let mut open = 0_i32;
    for (number, text) in lines.iter().enumerate().skip(line) {
        let skip = if number == line { column } else { 0 };
        for c in text.code[skip..].chars() {
            open += i32::from(c == '[') - i32::from(c == ']');
            if c == ']' && open == 0 {
                return number;
            }
        }
    }
    item_end(lines, line, column)
}

fn check_unwrap(source: &SourceFile, number: usize, line: &SourceLine, found: &mut Vec<Violation>) {
    if !source.is_test() && !line.in_test && line.code.contains(".unwrap()") {
        let remedy = "return an error, or `expect` with the invariant that makes it impossible".to_owned();
        found.push(Violation::error(source, number, "unwrap", remedy));
    }
}

/// Excused are lines that cannot be broken: with a string, a table, an address, or text quoted in a
/// comment (behind a fence or four spaces), such as a line of a trace.
fn check_width(source: &SourceFile, found: &mut Vec<Violation>) {
    let mut fenced = false;
    for (number, line) in source.lines.iter().enumerate() {
        let comment = line.comment.trim_start_matches(['/', '!']);
        if comment.trim_start().starts_with("```") {
            fenced = !fenced;
        }
        let quoted = (fenced && !comment.is_empty()) || comment.starts_with("     ");
        let excused = line.has_string || quoted || comment.contains("://") || comment.contains("| ");
        let width = line.raw.chars().count();
        if width > LONGEST_LINE && !excused {
            let remedy = format!("{width} characters; break it (at most {LONGEST_LINE})");
            found.push(Violation::error(source, number, "line-width", remedy));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules_of(path: &str, text: &str) -> Vec<&'static str> {
        check(&SourceFile::of(path, text)).into_iter().map(|violation| violation.rule).collect()
    }

    fn rules(code: &str) -> Vec<&'static str> {
        rules_of("crates/a/src/b.rs", &format!("//! B.\n{code}\n"))
    }

    #[test]
    fn a_file_opens_with_its_comment() {
        assert_eq!(rules_of("a.rs", "fn a() {}\n"), ["module-comment"]);
        assert_eq!(rules_of("a.rs", ""), ["module-comment"]);
        assert_eq!(rules_of("a.rs", "// A.\n//! B.\n"), ["module-comment"]);
        assert!(rules("").is_empty());
    }

    /// Goal: both limits are exact, tests do not count. Method: one line below and above each.
    #[test]
    fn file_length() {
        let weights = |path: &str, code: usize, tests: usize| -> Vec<bool> {
            let text = format!(
                "//! B.\n{}#[cfg(test)]\nmod tests {{\n{}}}\n",
                "const A: u8 = 1;\n".repeat(code - 1),
                "const A: u8 = 1;\n".repeat(tests)
            );
            check(&SourceFile::of(path, &text)).iter().map(Violation::is_error).collect()
        };
        assert!(weights("crates/a/src/b.rs", WANTED_FILE, 900).is_empty());
        assert_eq!(weights("crates/a/src/b.rs", WANTED_FILE + 1, 0), [false]);
        assert_eq!(weights("crates/a/src/b.rs", LONGEST_FILE, 0), [false]);
        assert_eq!(weights("crates/a/src/b.rs", LONGEST_FILE + 1, 0), [true]);
        assert!(weights("crates/a/tests/b.rs", LONGEST_FILE + 1, 0).is_empty());
    }

    #[test]
    fn names_that_say_nothing() {
        assert_eq!(rules_of("crates/a/src/utils.rs", "//! B.\n"), ["file-name"]);
        assert!(rules_of("crates/a/src/common_names.rs", "//! B.\n").is_empty());
    }

    #[test]
    fn unsafe_needs_a_place() {
        assert_eq!(rules("fn a() { unsafe { b() } }"), ["unsafe-file"]);
        assert_eq!(rules("unsafe impl A for B {}"), ["unsafe-file"]);
        assert!(rules("#![forbid(unsafe_code)] // unsafe\nconst A: &str = \"unsafe\";").is_empty());
    }

    /// Goal: an exception that its file does not need fails. Method: two lists over one file that needs one.
    #[test]
    fn exceptions_do_not_outlive_their_reason() {
        let tree = SourceTree::of(&[("crates/a/src/b.rs", "//! B.\n// unsafe\nfn a() { unsafe { b() } }\n")]);
        let needs = |line: &SourceLine| !word_columns(&line.code, "unsafe").is_empty();
        let left = |path: &'static str| stale(&tree, &[(path, "why")], needs).count();
        assert_eq!((left("crates/a/src/b.rs"), left("crates/a/src/gone.rs")), (0, 1));
        assert_eq!(stale(&tree, &[("crates/a/src/b.rs", "why")], |line| uses_atomics(&line.code)).count(), 1);
    }

    #[test]
    fn atomics_need_a_place() {
        for code in ["use std::sync::atomic;", "a.load(Ordering::SeqCst);", "static A: AtomicU64 = b;"] {
            assert_eq!(rules(code), ["atomics-file"], "{code}");
            assert!(rules_of("crates/a/src/sync.rs", &format!("//! B.\n{code}\n")).is_empty());
        }
        assert!(rules("fn a() -> Ordering { Ordering::Less }\nfn write_atomically() {}").is_empty());
        assert!(rules("struct AtomicWrite;").is_empty());
    }

    #[test]
    fn leftovers() {
        for macro_name in LEFTOVER_MACROS {
            assert_eq!(rules(&format!("fn a() {{ {macro_name}() }}")), ["leftover"]);
        }
        for note in LEFTOVER_NOTES {
            assert_eq!(rules(&format!("// {note}: later")), ["leftover"]);
            assert!(rules(&format!("const A: &str = \"{note}\";")).is_empty());
        }
        assert!(rules("fn a() { not_todo!() } // todos").is_empty());
    }

    #[test]
    fn tests_run() {
        assert_eq!(rules("#[ignore]"), ["ignored-test"]);
        assert_eq!(rules("#[ignore = \"slow\"]"), ["ignored-test"]);
        assert!(rules("// #[ignore]").is_empty());
    }

    /// Goal: a silenced lint has a reason. Method: without, with `reason`, with a comment, over lines.
    #[test]
    fn silenced_lints_say_why() {
        for code in ["#[allow(dead_code)]", "#![allow(dead_code)]", "#[expect(dead_code)]"] {
            assert_eq!(rules(code), ["allow-reason"], "{code}");
        }
        assert_eq!(rules("#[allow(\n    dead_code,\n)]\nfn a() {} // reason = elsewhere"), ["allow-reason"]);
        assert!(rules("#[allow(dead_code, reason = \"C calls it\")]").is_empty());
        assert!(rules("#[allow(\n    dead_code,\n    reason = \"C calls it\"\n)]").is_empty());
        assert!(rules("#[allow(dead_code)] // C calls it").is_empty());
    }

    #[test]
    fn unwrap_is_for_tests() {
        assert_eq!(rules("fn a() { b().unwrap() }"), ["unwrap"]);
        assert!(rules("#[cfg(test)]\nmod tests {\n    fn a() { b().unwrap() }\n}").is_empty());
        assert!(rules_of("crates/a/tests/b.rs", "//! B.\nfn a() { b().unwrap() }\n").is_empty());
        assert!(rules("fn a() { b().unwrap_or(1) } // .unwrap()").is_empty());
    }

    /// Goal: the limit is exact; strings, tables and addresses are excused. Method: each one too long.
    #[test]
    fn line_width() {
        let comment = |width: usize| format!("// {}", "x".repeat(width - 3));
        assert!(rules(&comment(LONGEST_LINE)).is_empty());
        assert_eq!(rules(&comment(LONGEST_LINE + 1)), ["line-width"]);
        let long = "x".repeat(LONGEST_LINE);
        assert_eq!(rules(&format!("/// ```\n/// ```\n/// {long}")), ["line-width"]);
        for excused in [
            format!("const A: &str = \"{long}\";"),
            format!("// https://{long}"),
            format!("// | {long} |"),
            format!("/// ```\n/// {long}\n/// ```"),
            format!("///     {long}"),
        ] {
            assert!(rules(&excused).is_empty(), "{excused}");
        }
    }
}

//! Mutants of files, hostile input and terminals: what is written as root, what is opened of a tree from
//! elsewhere, what reaches a terminal, and what the C interface refuses.

use super::killer::Killer::Test;
use super::killer::Mutant;
use super::killer::Suite::{CPrograms, CommandUnits, ExplainUnits, Hostile, LiveUnits, TraceUnits};

const ATOMIC_FILE: &str = "crates/cli/src/atomic_file.rs";
const BELOW: &str = "crates/explain/src/host/below.rs";
const VISIBLE: &str = "crates/trace/src/visible.rs";
const EXPANSION: &str = "crates/trace/src/expansion.rs";
const OUTPUT: &str = "crates/cli/src/output.rs";

/// Files, hostile input, terminals, and misuse by C.
pub(super) const FILES: &[Mutant] = &[
    Mutant {
        name: "planted-link",
        rule: "a link of another user is not followed",
        file: ATOMIC_FILE,
        right: "FileType::Symlink if !is_own(&stat) => {",
        wrong: "FileType::Symlink if !is_own(&stat) && false => {",
        killers: &[Test(CommandUnits, "atomic_file::tests::a_link_of_another_user_is_not_followed")],
    },
    Mutant {
        name: "planted-file",
        rule: "a file that another user left in a shared folder is refused",
        file: ATOMIC_FILE,
        right: "if is_own(found) || folder.st_mode",
        wrong: "if true || folder.st_mode",
        killers: &[Test(
            CommandUnits,
            "atomic_file::tests::a_file_that_another_user_left_in_a_shared_folder_is_refused",
        )],
    },
    Mutant {
        name: "folder-looked-up-again",
        rule: "the folder of an output file is looked up once",
        file: ATOMIC_FILE,
        right: "rustix::fs::renameat(folder, temporary.as_str(), folder, name.as_os_str())?;",
        wrong: "rustix::fs::renameat(folder, temporary.as_str(), CWD, self.target.as_path())?;",
        killers: &[Test(CommandUnits, "atomic_file::tests::a_folder_that_is_swapped_changes_nothing")],
    },
    Mutant {
        name: "mode-forgotten",
        rule: "a replaced file keeps its mode",
        file: ATOMIC_FILE,
        right: "rustix::fs::fchmod(file, Mode::from_raw_mode(replaced.st_mode & PERMISSIONS))?;",
        wrong: "",
        killers: &[Test(CommandUnits, "atomic_file::tests::a_replaced_file_keeps_mode_and_owner")],
    },
    Mutant {
        name: "live-for-all",
        rule: "what was recorded live is for its owner alone",
        file: ATOMIC_FILE,
        right: "(None, OutputContent::Ordinary) => SHARED_MODE,",
        wrong: "(None, _) => SHARED_MODE,",
        killers: &[Test(CommandUnits, "atomic_file::tests::a_new_file_is_as_open_as_its_content")],
    },
    Mutant {
        name: "foreign-temporary",
        rule: "a temporary that is not ours does not keep us from writing",
        file: ATOMIC_FILE,
        right: "Err(Errno::EXIST) => {}",
        wrong: "Err(Errno::EXIST) => return Err(Errno::EXIST),",
        killers: &[Test(CommandUnits, "atomic_file::tests::a_foreign_temporary_stays")],
    },
    Mutant {
        name: "link-out-of-the-tree",
        rule: "a path that leads out of a copied host is refused",
        file: BELOW,
        right: "let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;",
        wrong: "let resolve = ResolveFlags::empty();",
        killers: &[Test(ExplainUnits, "host::files::tests::a_link_out_of_the_root_is_refused")],
    },
    Mutant {
        name: "link-out-of-the-tree-later",
        rule: "a file is below the root, also where the kernel does not see to that",
        file: BELOW,
        right: "if place_of(&found)?.starts_with(&self.path) {",
        wrong: "if place_of(&found)?.is_absolute() {",
        killers: &[Test(ExplainUnits, "host::files::tests::a_link_out_of_the_root_is_refused")],
    },
    Mutant {
        name: "device-opened",
        rule: "a device or a FIFO of a copied host is not opened",
        file: BELOW,
        right: "if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {",
        wrong: "if FileType::from_raw_mode(stat.st_mode) == FileType::Directory {",
        killers: &[Test(ExplainUnits, "host::files::tests::a_device_or_fifo_is_never_opened")],
    },
    Mutant {
        name: "text-turned-round",
        rule: "characters that turn the text round are not shown",
        file: VISIBLE,
        right: "|| matches!(letter, '\\u{2028}'..='\\u{202e}')",
        wrong: "",
        killers: &[
            Test(TraceUnits, "visible::tests::what_steers_is_not_shown"),
            Test(Hostile, "a_recording_cannot_steer_the_terminal"),
        ],
    },
    Mutant {
        name: "raw-words-said",
        rule: "what is said on standard error does not steer the terminal",
        file: OUTPUT,
        right: "write_all(guarded(text, Colours::Off).as_bytes());",
        wrong: "write_all(text.as_bytes());",
        killers: &[Test(Hostile, "a_name_cannot_steer_the_terminal")],
    },
    Mutant {
        name: "raw-json",
        rule: "JSON does not steer the terminal",
        file: OUTPUT,
        right: "if letter != '\\n' && is_steering(letter) {",
        wrong: "if letter != '\\n' && letter.is_ascii_control() {",
        killers: &[Test(CommandUnits, "output::tests::json_escapes_what_steers")],
    },
    Mutant {
        name: "remedy-unquoted",
        rule: "the name of a file cannot become a command of a remedy",
        file: "crates/trace/src/source.rs",
        right: "&shell_word(&path.to_string_lossy())",
        wrong: "&path.to_string_lossy()",
        killers: &[Test(TraceUnits, "source::tests::a_remedy_is_safe_to_type")],
    },
    Mutant {
        name: "endless-archive",
        rule: "a compressed input expands only so far",
        file: EXPANSION,
        right: "if self.expanded > ALWAYS_READ.max(",
        wrong: "if self.expanded == ALWAYS_READ.max(",
        killers: &[Test(TraceUnits, "expansion::tests::a_small_file_cannot_be_endless")],
    },
    Mutant {
        name: "endless-empty-lines",
        rule: "an input of empty lines is given up as garbage is",
        file: "crates/trace/src/reader.rs",
        right: "None => Err(ReadError::Empty),",
        wrong: "None => Ok(annotation),",
        killers: &[Test(TraceUnits, "reader::tests::garbage_is_refused_early")],
    },
    Mutant {
        name: "broken-in-silence",
        rule: "a machine whose helper died takes no arms",
        file: "crates/live/src/machine/helper.rs",
        right: ".is_none() && self.life.break_down()",
        wrong: ".is_none() && self.life.is_broken()",
        killers: &[Test(LiveUnits, "machine::tests::a_machine_whose_helper_died_says_so")],
    },
    Mutant {
        name: "init-over-a-pending-timer",
        rule: "a pending timer of C is not initialised",
        file: "crates/ffi/src/timer.rs",
        right: "if timer_at(timer).is_ok_and(|timer| timer.is_pending() && timer.machine().is_running()) {",
        wrong: "if timer_at(timer).is_ok_and(|timer| timer.is_pending() && !timer.machine().is_running()) {",
        killers: &[Test(CPrograms, "misuse_is_refused")],
    },
    Mutant {
        name: "released-lane-touched",
        rule: "a lane that was released is not found again",
        file: "crates/ffi/src/cpu.rs",
        right: "        CLAIMED.set(null_mut());\n",
        wrong: "",
        killers: &[Test(CPrograms, "misuse_is_refused")],
    },
];

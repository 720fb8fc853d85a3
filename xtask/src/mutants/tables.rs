//! Mutants of what the command and Python share: answers, sweeps, tables.

use super::killer::Killer::Test;
use super::killer::Mutant;
use super::killer::Suite::{AnswerUnits, SimUnits, TableFiles, TableUnits};

const SWEEP: &str = "crates/answers/src/sweep.rs";
const PARQUET_FILE: &str = "crates/tables/src/parquet_file.rs";
const SETTINGS: &str = "crates/sim/src/scenario/settings.rs";
const TIMERS: &str = "crates/tables/src/timers.rs";

pub(super) const TABLES: &[Mutant] = &[
    Mutant {
        name: "halves-forgotten",
        rule: "what halves of a recording differ by is no difference",
        file: "crates/answers/src/diff.rs",
        right: "halves.map_or(0.0, |difference| 2.0 * difference / seconds);",
        wrong: "halves.map_or(0.0, |difference| 0.0 * difference / seconds);",
        killers: &[Test(AnswerUnits, "diff::tests::a_difference_is_more_than_chance")],
    },
    Mutant {
        name: "unknown-is-zero",
        rule: "what is not known is null in a table, never 0",
        file: "crates/tables/src/rows.rs",
        right: "Self::Unsigned(column) => column.append_null(),",
        wrong: "Self::Unsigned(column) => column.append_value(0),",
        killers: &[Test(TableUnits, "rows::tests::what_is_not_known_is_null")],
    },
    Mutant {
        name: "rows-counted-twice",
        rule: "a batch has the rows since the last one, and no others",
        file: "crates/tables/src/rows.rs",
        right: "self.rows = 0;",
        wrong: "self.rows &= !0;",
        killers: &[Test(TableUnits, "rows::tests::a_batch_has_the_rows_since_the_last_one")],
    },
    Mutant {
        name: "null-is-there",
        rule: "a cell of a file is null where that of the table is",
        file: PARQUET_FILE,
        right: "i16::from(array.is_valid(row))",
        wrong: "i16::from(array.is_null(row))",
        killers: &[Test(TableUnits, "parquet_file::tests::what_is_read_is_what_was_written")],
    },
    Mutant {
        name: "group-past-its-end",
        rule: "a row group has no more rows than it may",
        file: PARQUET_FILE,
        right: ".min(GROUP_ROWS - self.rows)",
        wrong: ".min(GROUP_ROWS)",
        killers: &[Test(TableUnits, "parquet_file::tests::what_is_read_is_what_was_written")],
    },
    Mutant {
        name: "group-written-twice",
        rule: "a row is written once",
        file: PARQUET_FILE,
        right: "        self.waiting.clear();\n",
        wrong: "        self.waiting.truncate(1);\n",
        killers: &[Test(TableUnits, "parquet_file::tests::what_is_read_is_what_was_written")],
    },
    Mutant {
        name: "text-of-the-row-before",
        rule: "a text of a file is that of its row",
        file: PARQUET_FILE,
        right: "bytes.slice(start, texts.value(row).len())",
        wrong: "bytes.slice(start, texts.value(row / 2).len())",
        killers: &[Test(TableUnits, "parquet_file::tests::what_is_read_is_what_was_written")],
    },
    Mutant {
        name: "armed-before-the-loss",
        rule: "which CPU armed a timer is not known after events were lost",
        file: TIMERS,
        right: "filter(|armed| armed.line > self.lost)",
        wrong: "filter(|armed| armed.line > self.lost * 0)",
        killers: &[Test(TableFiles, "a_mark_of_lost_events_forgets_what_was_armed")],
    },
    Mutant {
        name: "pulled-by-its-own-base",
        rule: "a timer is pulled if another CPU than its base's runs it",
        file: TIMERS,
        right: "base.map(|base| base != cpu)",
        wrong: "base.map(|base| base == cpu)",
        killers: &[Test(TableFiles, "the_files_hold_what_the_explanation_counts")],
    },
    Mutant {
        name: "runs-as-they-end",
        rule: "the rows of a sweep are in the order of keys and seeds",
        file: SWEEP,
        right: "results.sort_by_key(|(number, _)| *number);",
        wrong: "results.sort_by_key(|(number, _)| std::cmp::Reverse(*number));",
        killers: &[Test(AnswerUnits, "sweep::tests::the_order_is_that_of_keys_and_seeds")],
    },
    Mutant {
        name: "one-seed-for-all",
        rule: "every seed of a sweep is run",
        file: SWEEP,
        right: "self.seeds.start() + (number % seeds) as u64",
        wrong: "self.seeds.start() + (number % seeds * 0) as u64",
        killers: &[Test(AnswerUnits, "sweep::tests::the_order_is_that_of_keys_and_seeds")],
    },
    Mutant {
        name: "stopped-sweep-goes-on",
        rule: "a sweep that is told to end hands no more runs on",
        file: SWEEP,
        right: "if results.len() < numbers.len() {",
        wrong: "if results.len() < numbers.len() * 0 {",
        killers: &[Test(AnswerUnits, "sweep::tests::a_watch_ends_the_sweep")],
    },
    Mutant {
        name: "value-escapes",
        rule: "a value that is set in a scenario is one value, whatever is in it",
        file: SETTINGS,
        right: "'\"' | '\\\\' => vec!['\\\\', char],",
        wrong: "'\\\\' => vec!['\\\\', char],",
        killers: &[Test(SimUnits, "scenario::settings::tests::what_cannot_be_set_is_refused")],
    },
    Mutant {
        name: "varied-key-is-set",
        rule: "a key that the scenario varies itself is not set without effect",
        file: SETTINGS,
        right: "if tables == [\"machine\"] &&",
        wrong: "if tables == [\"machines\"] &&",
        killers: &[Test(SimUnits, "scenario::settings::tests::what_cannot_be_set_is_refused")],
    },
];

//! Mutants of the relay of streams: what each toxic does to a way of a connection, and that a way loses
//! nothing.

use super::killer::Killer::{self, Test};
use super::killer::Mutant;
use super::killer::Suite::StreamUnits;

const LINK: &str = "crates/net/src/stream/link.rs";
const STAGE: &str = "crates/net/src/stream/stage.rs";

const LATENCY: &[Killer] = &[Test(StreamUnits, "stream::link::tests::latency_is_exact")];
const RATE: &[Killer] = &[Test(StreamUnits, "stream::link::tests::a_rate_is_exact")];
const SLICES: &[Killer] = &[Test(StreamUnits, "stream::link::tests::data_are_sliced")];
const TIMEOUT: &[Killer] = &[Test(StreamUnits, "stream::link::tests::a_timeout_drops_and_closes")];
const RESET: &[Killer] = &[Test(StreamUnits, "stream::link::tests::a_reset_comes_at_its_moment")];
const SLOW: &[Killer] = &[Test(StreamUnits, "stream::link::tests::a_close_is_slow")];
const LIMIT: &[Killer] = &[Test(StreamUnits, "stream::link::tests::data_are_limited")];
const LOSS: &[Killer] = &[Test(StreamUnits, "stream::link::tests::a_loss_is_a_stall")];
const MEMORY: &[Killer] = &[Test(StreamUnits, "stream::link::tests::memory_is_bounded")];
const BROKEN: &[Killer] = &[Test(StreamUnits, "stream::link::tests::what_cannot_be_written_is_dropped")];
const WHOLE: &[Killer] = &[Test(StreamUnits, "stream::link::tests::bytes_leave_as_they_came")];

pub(super) const STREAMS: &[Mutant] = &[
    Mutant {
        name: "jitter-only-delays",
        rule: "jitter makes the delay shorter, too",
        file: STAGE,
        right: "after(now, latency.saturating_add(drawn).saturating_sub(jitter))",
        wrong: "after(now, latency.saturating_add(drawn))",
        killers: LATENCY,
    },
    Mutant {
        name: "delays-do-not-add-up",
        rule: "what leaves a toxic comes into the next one at the moment at which it left",
        file: LINK,
        right: "Some(expiry) => self.clock = self.clock.max(expiry),",
        wrong: "Some(_) => self.clock = self.clock.max(now),",
        killers: LATENCY,
    },
    Mutant {
        name: "rate-after-a-pause",
        rule: "a link that was idle has saved no bytes",
        file: STAGE,
        right: "                if now > self.last {\n                    self.busy = (now, 0);\n                }\n",
        wrong: "",
        killers: RATE,
    },
    Mutant {
        name: "rate-rounds-each-piece",
        rule: "a rate is that of the whole busy time",
        file: STAGE,
        right: "                if now > self.last {\n                    self.busy",
        wrong: "                if now >= self.last {\n                    self.busy",
        killers: RATE,
    },
    Mutant {
        name: "pieces-without-pauses",
        rule: "a pause is between two pieces",
        file: STAGE,
        right: "if is_first { now } else",
        wrong: "if !is_first { now } else",
        killers: SLICES,
    },
    Mutant {
        name: "pieces-of-one-size",
        rule: "each piece has a size of its own",
        file: STAGE,
        right: "self.draws.up_to(average_size.saturating_add(size_variation) - least)",
        wrong: "(average_size - least)",
        killers: SLICES,
    },
    Mutant {
        name: "torn-and-ended",
        rule: "a stream that misses something has no proper end",
        file: STAGE,
        right: "self.is_torn |= length > 0;",
        wrong: "",
        killers: TIMEOUT,
    },
    Mutant {
        name: "a-timeout-from-now-on",
        rule: "a timeout counts from the moment at which its toxic began",
        file: STAGE,
        right: "after(self.began, millis(deadline))",
        wrong: "after(self.last, millis(deadline))",
        killers: RESET,
    },
    Mutant {
        name: "data-are-slow",
        rule: "a slow close delays no data",
        file: STAGE,
        right: "if matches!(item, StreamItem::End | StreamItem::Close) =>",
        wrong: "if !matches!(item, StreamItem::Reset) =>",
        killers: SLOW,
    },
    Mutant {
        name: "a-change-forgets-what-passed",
        rule: "a limit counts in all versions of its toxic",
        file: LINK,
        right: "self.stage(toxic, self.stages[at].stage.passed())",
        wrong: "self.stage(toxic, 0)",
        killers: LIMIT,
    },
    Mutant {
        name: "limited-a-byte-later",
        rule: "a connection is closed as soon as its limit has passed",
        file: STAGE,
        right: "if self.passed >= most {",
        wrong: "if self.passed > most {",
        killers: LIMIT,
    },
    Mutant {
        name: "losses-wait-alike",
        rule: "each loss in a row waits twice as long as the one before",
        file: STAGE,
        right: "let waits = (1_u64 << losses) - 1;",
        wrong: "let waits = losses as u64;",
        killers: LOSS,
    },
    Mutant {
        name: "small-pieces-cost-nothing",
        rule: "the memory of a piece counts besides its bytes",
        file: LINK,
        right: "let held = self.counts.held() + self.pieces * PIECE_COST;",
        wrong: "let held = self.counts.held();",
        killers: MEMORY,
    },
    Mutant {
        name: "a-slow-stage-takes-all",
        rule: "what waits for a slow stage is bounded",
        file: LINK,
        right: "if self.is_ended || waiting >= WAITING_MAX {",
        wrong: "if self.is_ended {",
        killers: MEMORY,
    },
    Mutant {
        name: "held-for-nobody",
        rule: "what is held when nothing can be written is counted as dropped",
        file: LINK,
        right: "        self.counts.dropped += self.counts.held();\n        (self.is_broken",
        wrong: "        (self.is_broken",
        killers: BROKEN,
    },
    Mutant {
        name: "removed-with-what-it-held",
        rule: "a toxic that is removed gives out what it held",
        file: LINK,
        right: "        self.buffers[at].extend(old.stage.give_up());\n        self.buffers[at].extend(waits);",
        wrong: "        self.buffers[at].extend(waits);",
        killers: WHOLE,
    },
    Mutant {
        name: "changed-with-what-it-held",
        rule: "a toxic that is changed gives out what it held",
        file: LINK,
        right: "        self.buffers[at + 1].extend(old.stage.give_up());",
        wrong: "        drop(old);",
        killers: WHOLE,
    },
];

//! Mutants of the packet schedulers and of the queues that run them.

use super::killer::{Killer, Mutant, Suite};

const NETEM: &str = "crates/qdisc/src/netem/mod.rs";
const LOSSES: &str = "crates/net/src/losses.rs";
const TX_QUEUE: &str = "crates/qdisc/src/tx_queue.rs";

/// Any test of a discipline.
const DISCIPLINES: &[Killer] = &[Killer::All(Suite::Disciplines)];

pub(super) const PACKETS: &[Mutant] = &[
    Mutant {
        name: "netem-limit-off-by-one",
        rule: "netem holds as many packets as its limit says",
        file: NETEM,
        right: "self.waiting.len() as u64 >= u64::from(settings.limit)",
        wrong: "self.waiting.len() as u64 > u64::from(settings.limit)",
        killers: DISCIPLINES,
    },
    Mutant {
        name: "netem-latency-twice",
        rule: "latency is paid once, behind a packet that pays it already only the link's time",
        file: NETEM,
        right: "delay = (delay - (i128::from(last.0) - i128::from(now.0))).max(0);",
        wrong: "delay = delay.max(0);",
        killers: DISCIPLINES,
    },
    Mutant {
        name: "netem-early",
        rule: "a packet leaves at its moment, not before",
        file: NETEM,
        right: "if first > now || open > now {",
        wrong: "if first.0 > now.0 + 1_000 || open > now {",
        killers: DISCIPLINES,
    },
    Mutant {
        name: "tbf-time-lost",
        rule: "a packet that does not pass changes nothing",
        file: "crates/qdisc/src/tbf/mod.rs",
        right: "if passes && let Err(wait) = self.take(now, bytes) {",
        wrong: "if passes && let Err(wait) = self.take(now, bytes).inspect_err(|_| self.checked = now) {",
        killers: DISCIPLINES,
    },
    Mutant {
        name: "htb-turn-not-passed",
        rule: "a class that had its turn goes behind the others",
        file: "crates/qdisc/src/htb/round_robin.rs",
        right: "self.next = u64::from(id.0) + 1;",
        wrong: "self.next = u64::from(id.0);",
        killers: DISCIPLINES,
    },
    Mutant {
        name: "fq-no-credit",
        rule: "a flow pays for what it sends",
        file: "crates/qdisc/src/fq/mod.rs",
        right: "flow.credit -= i64::from(bytes);",
        wrong: "flow.credit -= i64::from(bytes) / 2;",
        killers: DISCIPLINES,
    },
    Mutant {
        name: "tx-queue-wake-lost",
        rule: "a driver that has room again is asked at once, though it had none when it got the packets",
        file: TX_QUEUE,
        right: "if self.is_woken { self.end_again() }",
        wrong: "if self.is_scheduled { self.end_again() }",
        killers: DISCIPLINES,
    },
    Mutant {
        name: "tx-queue-weight-off-by-one",
        rule: "a run that has sent its weight lets others have the CPU",
        file: TX_QUEUE,
        right: "(self.run >= Some(DEVICE_WEIGHT))",
        wrong: "(self.run > Some(DEVICE_WEIGHT))",
        killers: DISCIPLINES,
    },
    Mutant {
        name: "watchdog-not-pinned",
        rule: "a pinned watchdog stays with the CPU that arms it",
        file: "crates/net/src/queue.rs",
        right: "options.pinned() } else { options }",
        wrong: "options } else { options }",
        killers: &[Killer::Test(Suite::Devices, "a_pinned_watchdog_is_not_pulled")],
    },
    Mutant {
        name: "losses-of-another-column",
        rule: "what an interface lost is what it did not send, not what it sent wrongly",
        file: LOSSES,
        right: "const BEFORE_UNSENT: usize = 11;",
        wrong: "const BEFORE_UNSENT: usize = 10;",
        killers: &[Killer::Test(Suite::DeviceUnits, "losses::tests::counts_are_found_in_their_lines")],
    },
    Mutant {
        name: "losses-of-another-socket",
        rule: "what a socket lost is its own",
        file: LOSSES,
        right: "is_own.then(|| dropped.parse().ok()).flatten()",
        wrong: "(is_own || inode > 0).then(|| dropped.parse().ok()).flatten()",
        killers: &[Killer::Test(Suite::DeviceUnits, "losses::tests::counts_are_found_in_their_lines")],
    },
    Mutant {
        name: "damaged-and-owed",
        rule: "a checksum that is owed is completed before a bit is flipped",
        file: "crates/qdisc/src/ip/mod.rs",
        right: "        self.complete_checksum();\n        self.bytes.corrupt(byte, bit);",
        wrong: "        self.bytes.corrupt(byte, bit);\n        self.complete_checksum();",
        killers: &[Killer::Test(Suite::Disciplines, "an_owed_checksum_is_completed_when_it_is_needed")],
    },
    Mutant {
        name: "owed-is-right",
        rule: "only TCP's own checksum, where it is owed, need not be right to be joined",
        file: "crates/net/src/tun/coalesce.rs",
        right: "owed == Some(OwedChecksum { start: tcp as u16, offset: TCP_CHECKSUM })",
        wrong: "owed.is_some()",
        killers: &[Killer::Test(Suite::DeviceUnits, "tun::coalesce::tests::owed_checksums_are_passed_on")],
    },
    Mutant {
        name: "whole-counts-as-one",
        rule: "a limit is of packets of the link",
        file: "crates/qdisc/src/fifo/mod.rs",
        right: "self.statistics.qlen + u64::from(size.packets) <= u64::from(limit)",
        wrong: "self.statistics.qlen + 1 <= u64::from(limit)",
        killers: &[Killer::Test(Suite::Disciplines, "limits_are_of_packets_of_the_link")],
    },
    Mutant {
        name: "whole-in-netem-counts-as-one",
        rule: "netem's limit is of packets of the link",
        file: "crates/qdisc/src/netem/mod.rs",
        right: "let waiting = self.waiting.len() as u64 + self.stood_for;",
        wrong: "let waiting = self.waiting.len() as u64;",
        killers: &[Killer::Test(Suite::Disciplines, "limits_are_of_packets_of_the_link")],
    },
    Mutant {
        name: "whole-with-jitter",
        rule: "netem that draws a delay draws one for each packet",
        file: "crates/qdisc/src/netem/mod.rs",
        right: "|| self.delay.jitter != Nanos(0)",
        wrong: "|| self.delay.jitter > self.delay.latency",
        killers: &[Killer::Test(Suite::Disciplines, "netem_keeps_them_whole_where_it_only_delays")],
    },
    Mutant {
        name: "whole-above-ceil",
        rule: "each bucket of htb holds what passes as one",
        file: "crates/qdisc/src/htb/node.rs",
        right: "self.settings.burst_bytes().min(self.settings.cburst_bytes())",
        wrong: "self.settings.burst_bytes().max(self.settings.cburst_bytes())",
        killers: &[Killer::Test(Suite::Disciplines, "shapers_keep_them_whole_where_bursts_are_long")],
    },
    Mutant {
        name: "whole-after-a-change",
        rule: "a device looks again at what may stay whole when its discipline is changed",
        file: "crates/net/src/queue.rs",
        right: "let answer = state.tx.change(change);\n        self.wholeness.store(",
        wrong: "let answer = state.tx.change(change);\n        AtomicU8::new(0).store(",
        killers: &[Killer::Test(Suite::Devices, "a_device_says_what_may_stay_whole")],
    },
];

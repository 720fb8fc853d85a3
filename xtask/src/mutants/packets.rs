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
];

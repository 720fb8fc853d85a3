//! From figures to findings: what is wrong, by which mechanism, and the command that changes it.
//!
//! One function per finding; each looks only at the [`Explanation`], so a finding can never know more
//! than the reader. Sources are named in the texts (kernel version ranges; stock kernels).
//! The measured effects quoted under `predicted` are from the recordings of this project.

use super::report::{CountByName, CountByNumber, Disturbance, Explanation};
use crate::finding::{Finding, Severity};
use quietcore_core::CpuSet;
use quietcore_trace::{KernelRelease, TimerModel};
use std::collections::{BTreeMap, BTreeSet};

const EVIDENCE_MAX: usize = 3;
/// Fewer than one watchdog in so many off its CPU is a stray, not a migration.
const STRAY_ONE_IN: u64 = 100;

pub(super) fn all(report: &Explanation) -> Vec<Finding> {
    let rules: [fn(&Explanation) -> Option<Finding>; 9] = [
        foreign_pulled,
        foreign_placed,
        sysctl_without_effect,
        between_isolated,
        remote_expiries,
        qdisc_watchdog,
        foreign_hrtimers,
        rt_behind_softirq,
        timer_softirq_empty,
    ];
    let mut findings: Vec<Finding> = rules.iter().filter_map(|rule| rule(report)).collect();
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    findings
}

fn model(report: &Explanation) -> Option<TimerModel> {
    report.kernel.as_deref().and_then(KernelRelease::parse).map(|kernel| kernel.timer_model())
}

/// `explain` on the running kernel with the same isolated set.
fn verify_live(report: &Explanation) -> String {
    format!("quietcore explain --live 30s --isolated {}", report.isolated)
}

/// The largest counts first: `27 on CPU 1, 6 on CPU 2`.
fn top<K: std::fmt::Display + Ord>(counts: &BTreeMap<K, u64>, most: usize, word: &str) -> String {
    let mut sorted: Vec<_> = counts.iter().collect();
    sorted.sort_by(|a, b| b.1.cmp(a.1).then(a.0.cmp(b.0)));
    let named = sorted.iter().take(most).map(|(key, count)| format!("{count} {word}{key}"));
    let mut text = named.collect::<Vec<_>>().join(", ");
    if sorted.len() > most {
        text.push_str(&format!(" and {} more", sorted.len() - most));
    }
    text
}

fn by_cpu(counts: &Option<CountByNumber>) -> String {
    counts.as_ref().map(|counts| top(counts, 4, "on CPU ")).unwrap_or_default()
}

fn by_name(counts: &CountByName) -> String {
    top(counts, 4, "")
}

/// The isolated CPUs that pulled, with how often.
fn pullers(report: &Explanation) -> CountByNumber {
    let rows = report.isolated_cpus.iter().filter(|row| row.pulled > 0);
    rows.map(|row| (row.cpu, row.pulled)).collect()
}

/// Isolated CPUs that 6.19 takes out of the hierarchy: it leaves those with `nohz_full` in.
fn excluded_from_6_19(report: &Explanation) -> CpuSet {
    let set = |list: &str| list.parse::<CpuSet>().unwrap_or_default();
    set(&report.isolated).difference(&set(&report.nohz_full))
}

fn with_examples(mut finding: Finding, side: &Disturbance, kind: &str) -> Finding {
    for example in side.examples.iter().filter(|example| example.kind == kind).take(EVIDENCE_MAX) {
        let (function, armed_line) = (&example.function, example.armed_line);
        finding = finding.line(
            example.line,
            format!(
                "{function} armed on CPU {} (line {armed_line}), base CPU {}, ran on CPU {}",
                example.armed_cpu, example.base_cpu, example.cpu
            ),
        );
    }
    finding
}

fn foreign_pulled(report: &Explanation) -> Option<Finding> {
    let pulled = report.foreign.pulled.filter(|&count| count > 0)?;
    let (why, change, predicted) = match model(report) {
        Some(TimerModel::PullExcludesIsolated) => (
            "From 6.19 on, domain-isolated CPUs (isolcpus=domain, isolated cpuset partitions) are outside \
             the migration hierarchy unless they are nohz_full; a CPU that only nohz_full or an affinity \
             keeps quiet is inside, and pulls while it is busy with the tick on.",
            "Isolate these CPUs by domain: boot with isolcpus=domain,LIST, or make their cpuset an isolated \
             partition. On nohz_full CPUs keep exactly one runnable task, so that the tick stays off."
                .to_owned(),
            format!("pulled: {pulled} -> 0 on domain-isolated CPUs."),
        ),
        Some(TimerModel::Push) => (
            "Stock kernels up to 6.8 do not pull timers; this one ran them on another CPU than their base \
             (timers of a CPU that went offline, or a vendor back-port of the pull model).",
            "If CPUs went offline meanwhile, nothing. Otherwise see the vendor's kernel notes for the timer \
             migration hierarchy."
                .to_owned(),
            "No change is asked for.".to_owned(),
        ),
        _ => (
            "Stock kernels 6.9 to 6.18 let busy CPUs expire the timers of idle ones (timer migration \
             hierarchy). Isolated CPUs take part: one that stays busy becomes its group's migrator, the \
             lowest first, and keeps that role. 6.19 excludes domain-isolated CPUs.",
            keep_awake(report),
            format!(
                "pulled: {pulled} -> 0 for groups with an awake housekeeping CPU (measured on 6.12: 74 -> \
                 0){}.",
                if excluded_from_6_19(report).is_empty() { "" } else { ", and for all groups with 6.19" }
            ),
        ),
    };
    let finding = Finding::new("foreign-timers-pulled", "001", Severity::Warning)
        .what(format!(
            "{pulled} timers armed on housekeeping CPUs were pulled by isolated CPUs ({}; {}).",
            top(&pullers(report), 4, "on CPU "),
            by_name(&report.foreign.pulled_by_function)
        ))
        .why(why)
        .change(change)
        .predicted(predicted)
        .verify(verify_live(report));
    Some(with_examples(finding, &report.foreign, "pulled"))
}

/// Per group that pulled: a housekeeping CPU to keep awake, or that there is none.
fn keep_awake(report: &Explanation) -> String {
    let isolated: CpuSet = report.isolated.parse().unwrap_or_default();
    let (mut commands, mut hopeless) = (Vec::new(), Vec::new());
    let pulling = report.isolated_cpus.iter().filter(|row| row.pulled > 0).map(|row| row.group);
    for group in pulling.collect::<BTreeSet<_>>() {
        let cpus: CpuSet =
            report.groups.cpus.get(&group).and_then(|list| list.parse().ok()).unwrap_or_default();
        match cpus.difference(&isolated).iter().next() {
            Some(cpu) => commands.push(format!(
                "$ taskset -c {cpu} nice -n 19 sh -c 'while :; do :; done' &   # group {group} (CPUs {cpus})"
            )),
            None => hopeless.push(format!("{group} (CPUs {cpus})")),
        }
    }
    let mut lines = Vec::new();
    if !commands.is_empty() {
        lines.push(
            "Keep one housekeeping CPU of each group awake, started before the isolated load (an awake \
             migrator is never replaced):"
                .to_owned(),
        );
        lines.append(&mut commands);
    }
    if report.groups.estimated {
        lines.push("(Groups of eight are assumed: the input does not show the hierarchy.)".to_owned());
    }
    if !hopeless.is_empty() {
        lines.push(format!(
            "Group {} has no housekeeping CPU: only a kernel from 6.19 on helps there.",
            hopeless.join(", ")
        ));
    }
    lines.push(if excluded_from_6_19(report).is_empty() {
        "A kernel from 6.19 on leaves these CPUs in the hierarchy, because they are nohz_full.".to_owned()
    } else {
        "Or boot a kernel from 6.19 on with isolcpus=domain,LIST.".to_owned()
    });
    lines.push("kernel.timer_migration=0 does not help.".to_owned());
    lines.join("\n")
}

fn foreign_placed(report: &Explanation) -> Option<Finding> {
    let placed = report.foreign.placed.filter(|&count| count > 0)?;
    let is_push = model(report) == Some(TimerModel::Push);
    let (why, change, predicted) = if is_push && report.timer_migration != Some(false) {
        (
            "Up to 6.8 an idle CPU that arms an unpinned timer puts it on a busy CPU of its scheduling \
             domains; work queued on a CPU from outside (add_timer_on) is placed there as well.",
            "$ sysctl -w kernel.timer_migration=0",
            format!("placed: {placed} -> those of add_timer_on() only."),
        )
    } else {
        (
            "The timer was put into the isolated CPU's own base from outside: add_timer_on() (delayed work \
             queued on that CPU, per-CPU housekeeping of drivers), or a timer re-armed elsewhere while \
             its callback still ran there. All kernel versions.",
            "Stop the sender: find it by the function and the arming CPU below. Unbound work:\n\
             $ echo HOUSEKEEPING_MASK > /sys/devices/virtual/workqueue/cpumask\n\
             Per-CPU work: its driver's own setting.",
            format!("placed: {placed} -> 0 once the sender is gone."),
        )
    };
    let finding = Finding::new("foreign-timers-placed", "001", Severity::Warning)
        .what(format!(
            "{placed} timers were put into isolated CPUs' bases by housekeeping CPUs ({}).",
            by_name(&report.foreign.placed_by_function)
        ))
        .why(why)
        .change(change)
        .predicted(predicted)
        .verify(verify_live(report));
    Some(with_examples(finding, &report.foreign, "placed"))
}

fn sysctl_without_effect(report: &Explanation) -> Option<Finding> {
    let migrates = matches!(model(report)?, TimerModel::Pull | TimerModel::PullExcludesIsolated);
    let pulled = report.foreign.pulled.filter(|&count| count > 0)?;
    (migrates && report.timer_migration == Some(false)).then(|| {
        Finding::new("timer-migration-sysctl-without-effect", "001", Severity::Warning)
            .what(format!("kernel.timer_migration is 0, and {pulled} timers were pulled all the same."))
            .why(TimerModel::Pull.sysctl_governs())
            .change("$ sysctl -w kernel.timer_migration=1\nIt only changes where hrtimers go. For wheel timers see foreign-timers-pulled.")
            .predicted("none for wheel timers: 74 pulled with 1, 90 with 0 on the same load (6.12).")
            .verify("sysctl kernel.timer_migration")
    })
}

const PIN_OR_UPGRADE: &str = "A kernel from 6.19 on, or pinned timers in the program that arms them.";

/// Whether a kernel from 6.19 on would change how timers are placed here.
fn may_upgrade(report: &Explanation) -> bool {
    !matches!(model(report), Some(TimerModel::PullExcludesIsolated | TimerModel::Push))
}

fn between_isolated(report: &Explanation) -> Option<Finding> {
    let side = &report.between_isolated;
    let total = side.total.filter(|&count| count > 0)?;
    let stays = excluded_from_6_19(report).is_empty() || !may_upgrade(report);
    let finding = Finding::new("isolated-timers-exchanged", "001", Severity::Warning)
        .what(format!(
            "{total} timers armed on one isolated CPU ran on another ({}; {}).",
            by_cpu(&side.by_cpu),
            side.by_function.as_ref().map(by_name).unwrap_or_default()
        ))
        .why("As foreign-timers-pulled, between isolated CPUs: an idle isolated CPU's timers are run by a busy one.")
        .change(if stays { "Pinned timers in the program that arms them." } else { PIN_OR_UPGRADE })
        .predicted(if stays {
            format!("between_isolated.total: {total} -> those of unpinned timers; 6.19 leaves nohz_full CPUs in.")
        } else {
            format!("between_isolated.total: {total} -> 0 on 6.19.")
        })
        .verify(verify_live(report));
    let kind = if side.pulled > side.placed { "pulled" } else { "placed" };
    Some(with_examples(finding, side, kind))
}

fn remote_expiries(report: &Explanation) -> Option<Finding> {
    let total = report.remote.total.filter(|&count| count > 0)?;
    let ping_pongs = report.ping_pong.count.unwrap_or(0);
    let rate = report.ping_pong.per_s.unwrap_or(0.0);
    let share = total as f64 * 100.0 / report.timers.expired.unwrap_or(total).max(1) as f64;
    Some(
        Finding::new("remote-expiries", "002", Severity::Note)
            .what(format!(
                "{total} expiries ({share:.0} %) ran on another CPU than the timer's base ({}); {ping_pongs} \
                 of these timers were armed on their old base again ({rate:.1}/s: ping-pong).",
                by_cpu(&report.remote.by_cpu)
            ))
            .why(
                "The pull model (6.9 on) trades these for cheaper arming and longer idle. A sleeper whose \
                 timeout runs elsewhere wakes its old CPU, arms there again and sleeps: one wasted wake-up each.",
            )
            .change("Nothing is wrong. To see who benefits: quietcore explain --live 30s, remote.by_cpu.")
            .predicted("No change is asked for.")
            .verify("quietcore explain --live 30s"),
    )
}

fn qdisc_watchdog(report: &Explanation) -> Option<Finding> {
    let watchdog = &report.hrtimers.qdisc_watchdog;
    let off = watchdog.off_arming_cpu.filter(|&count| count > 0)?;
    let expired = watchdog.expired.unwrap_or(off);
    // Pinned watchdogs show single ones: armed elsewhere while the expiry was already under way.
    let severity = if off * STRAY_ONE_IN >= expired { Severity::Warning } else { Severity::Note };
    Some(
        Finding::new("qdisc-watchdog-migrates", "000", severity)
            .what(format!(
                "{off} of {expired} packet-scheduler watchdogs expired off the CPU that armed them ({}).",
                by_cpu(&watchdog.by_cpu)
            ))
            .why(
                "An unpinned hrtimer started on an idle CPU is pushed to a busy one; the dequeue then runs \
                 there and fights for the queue's lock. Stock kernels pin these watchdogs (netem, fq, htb, \
                 tbf, hfsc) since 3.18; out-of-tree schedulers may not. Single ones are races: armed \
                 elsewhere while the expiry was already under way.",
            )
            .change("$ sysctl -w kernel.timer_migration=0")
            .predicted(format!("qdisc_watchdog.off_arming_cpu: {off} -> 0; dequeues follow the XPS map."))
            .verify("quietcore explain --live 30s --seeds 000"),
    )
}

fn foreign_hrtimers(report: &Explanation) -> Option<Finding> {
    let foreign = report.hrtimers.foreign.filter(|&count| count > 0)?;
    Some(
        Finding::new("foreign-hrtimers", "001", Severity::Warning)
            .what(format!("{foreign} hrtimers started on housekeeping CPUs expired on isolated CPUs."))
            .why(
                "An unpinned hrtimer started on an idle CPU is pushed to a busy CPU when it is started (all \
                 versions; kernel.timer_migration still governs this). Only nohz_full, not \
                 isolcpus=domain, keeps a CPU out of that choice. A task that was moved to an isolated CPU \
                 while it slept is woken there too.",
            )
            .change("$ sysctl -w kernel.timer_migration=0\nOr boot with the isolated CPUs in nohz_full=.")
            .predicted(format!("hrtimers.foreign: {foreign} -> 0."))
            .verify(verify_live(report)),
    )
}

fn rt_behind_softirq(report: &Explanation) -> Option<Finding> {
    let behind = report.rt_wakeups.behind_softirq.filter(|&count| count > 0)?;
    let count = report.rt_wakeups.count.unwrap_or(behind);
    let delay = |nanos: Option<u64>| {
        nanos.map_or_else(|| "unknown".to_owned(), |nanos| quietcore_core::Nanos(nanos).to_string())
    };
    let delays = report.rt_wakeups.delay_ns;
    Some(
        Finding::new("rt-wakeups-behind-softirq", "003", Severity::Warning)
            .what(format!(
                "{behind} of {count} real-time wake-ups went to a CPU inside a NET or BLOCK softirq; they \
                 waited p50 {}, p99 {}, at most {}.",
                delay(delays.p50),
                delay(delays.p99),
                delay(delays.max)
            ))
            .why(
                "Stock kernels (all versions without PREEMPT_RT) neither look at running softirqs when they \
                 place a real-time task nor interrupt a softirq for it.",
            )
            .change(
                "Move the device interrupts off the real-time CPUs, poll the network in threads, or give the \
                 task a CPU of its own:\n\
                 $ echo HOUSEKEEPING_LIST > /proc/irq/N/smp_affinity_list\n\
                 $ echo 1 > /sys/class/net/DEV/threaded\n\
                 $ taskset -pc CPU PID",
            )
            .predicted(format!("behind_softirq: {behind} -> 0 on CPUs that serve no device."))
            .verify("quietcore explain --live 30s --seeds 003"),
    )
}

fn timer_softirq_empty(report: &Explanation) -> Option<Finding> {
    let empty = report.softirq.timer_empty.filter(|&count| count > 0)?;
    let entries = report.softirq.timer_entries.unwrap_or(empty);
    let isolated: CpuSet = report.isolated.parse().unwrap_or_default();
    let is_isolated =
        |cpu: &u16| quietcore_core::CpuId::new(u64::from(*cpu)).is_ok_and(|cpu| isolated.contains(cpu));
    let by_cpu = report.softirq.by_cpu.as_ref()?;
    let on_isolated: u64 = by_cpu.iter().filter(|(cpu, _)| is_isolated(cpu)).map(|(_, count)| count).sum();
    let (severity, change, predicted) = if on_isolated > 0 {
        (
            Severity::Warning,
            "Stop the tick on CPUs that run one task: boot with nohz_full=LIST rcu_nocbs=LIST",
            format!("On isolated CPUs: {on_isolated} -> close to 0 while they run one task each."),
        )
    } else {
        let nothing = "Nothing is wrong while no isolated CPU is among them.";
        (Severity::Note, nothing, "No change is asked for.".to_owned())
    };
    Some(
        Finding::new("timer-softirq-empty", "004", severity)
            .what(format!(
                "{empty} of {entries} TIMER softirqs ran no timer ({}); {on_isolated} of them on isolated CPUs.",
                top(by_cpu, 4, "on CPU ")
            ))
            .why(
                "The tick raises TIMER when a base or the migration hierarchy looks due; a remote look that \
                 finds nothing, a cancelled timer, or a deferrable base raises it for nothing. On PREEMPT_RT \
                 each one wakes a thread.",
            )
            .change(change)
            .predicted(predicted)
            .verify("quietcore explain --live 30s --seeds 004"),
    )
}

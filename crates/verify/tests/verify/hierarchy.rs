//! The timer migration hierarchy of recordings: every line agrees, an altered one is found where it is, two
//! lines in the wrong order are recognised, and made up lines do no harm.

use crate::recordings::{names, text_of};
use crate::trace::{Random, verify};
use quietcore_verify::{Check, Verification};

/// Lines of the hierarchy at the end of a recording that decide nothing.
const LAST_LINES: usize = 40;

/// Goal: no line contradicts the tree or the hierarchy, and the order of few is open; the counts are those of
/// the table in docs/reference/verify.md. Method: all bundled recordings.
#[test]
fn every_recording_agrees_with_the_hierarchy() {
    let table = include_str!("../../../../docs/reference/verify.md");
    let mut compared = 0;
    for name in names() {
        let found = verify(&text_of(&name)).tmigr;
        assert_eq!(
            (found.tree_mismatches, found.unexplained),
            (0, 0),
            "{name}: {:?}",
            found.first_unexplained
        );
        assert!(found.order_open * 20 <= found.events, "{name}: {found:?}");
        let row = table.lines().find(|line| line.starts_with(&format!("| {name} | {} |", found.groups)));
        let Some(row) = row else {
            assert!(found.not_recorded.len() > 2 || found.events == 0, "{name} has no row: {found:?}");
            continue;
        };
        let written: Vec<&str> = row.split('|').map(str::trim).skip(3).take(5).collect();
        let counts = [found.events, found.exact, found.order_open, found.unexplained, found.waited_max];
        assert_eq!(written, counts.map(|count| count.to_string()), "{name}");
        assert!(found.not_recorded.is_empty(), "{name}: {found:?}");
        assert!(found.next_events_as_wheel as f64 >= 0.95 * found.next_events as f64, "{name}: {found:?}");
        compared += 1;
    }
    assert_eq!(compared, 12, "the bundled recordings that have the hierarchy from boot on");
}

/// Goal: a recording that begins later is compared as far as words go, and says what is missing.
#[test]
fn a_later_recording_is_compared_by_words() {
    let found = verify(&text_of("h618-c2-detail")).tmigr;
    assert_eq!((found.events, found.exact, found.groups), (1528, 1528, 1));
    let missing = ["tmigr_group_set", "walks", "event queues", "idle loop of CPU 1"];
    assert_eq!(found.not_recorded, missing);
    assert_eq!(verify(&text_of("g61-c16-iso")).tmigr.not_recorded, ["timer_migration"]);
}

/// A field in hexadecimal, and where it stands.
fn mask(line: &str, key: &str) -> Option<(usize, usize, u32)> {
    let begin = line.find(&format!(" {key}="))? + key.len() + 2;
    let end = begin + line[begin..].find(' ').unwrap_or(line.len() - begin);
    Some((begin, end, u32::from_str_radix(&line[begin..end], 16).ok()?))
}

/// `line` with one of its masks changed.
fn altered(line: &str, random: &mut Random, copy: usize) -> String {
    let keys: &[&str] =
        if line.contains(": tmigr_connect_") { &["groupmask"] } else { &["active", "migrator", "childmask"] };
    let key = keys[copy % keys.len()];
    let (begin, end, old) = mask(line, key).expect("the line has the mask");
    let bit = 1 << random.below(8);
    let new = match key {
        "active" => old ^ bit,
        _ if old == bit => 0xff & !bit,
        _ => bit,
    };
    format!("{}{new:x}{}", &line[..begin], &line[end..])
}

/// Goal: a wrong mask anywhere is reported where it is, as the first. Method: 6 copies of each of 7
/// recordings, with an active mask, a migrator or a child's mask of a random line changed.
#[test]
fn one_altered_mask_is_found_at_its_line() {
    for (seed, name) in [
        "g612-c4-levels",
        "g612-c12-nohzfull",
        "g612-c16-iso",
        "g612-c16n2-hotplug",
        "g619-c16-iso",
        "g72-c18n2-isol",
        "h618-c2-detail",
    ]
    .into_iter()
    .enumerate()
    {
        let text = text_of(name);
        let lines: Vec<&str> = text.lines().collect();
        let events = |line: &&usize| lines[**line].contains(": tmigr_") && !lines[**line].starts_with('#');
        let numbers: Vec<usize> = (0..lines.len()).collect();
        let all: Vec<usize> = numbers.iter().filter(events).copied().collect();
        let decided = &all[..all.len() - LAST_LINES];
        let kinds = [": tmigr_group_set_cpu_", ": tmigr_connect_"];
        let among: Vec<usize> = decided
            .iter()
            .copied()
            .filter(|&line| kinds.iter().any(|kind| lines[line].contains(kind)))
            .collect();
        let mut random = Random(0x9e37_79b9_7f4a_7c15 + seed as u64);
        for copy in 0..6 {
            let number = among[random.below(among.len())];
            let line = altered(lines[number], &mut random, copy);
            let mut copy = lines.clone();
            copy[number] = &line;
            let found = verify(&(copy.join("\n") + "\n"));
            let case = format!("{name} line {}: {line}", number + 1);
            let first = found.first_mismatch.unwrap_or_else(|| panic!("not found: {case}"));
            assert_eq!(first.line, number as u64 + 1, "{case}: {first:?}");
            assert!(matches!(first.kind, Check::Hierarchy | Check::Tree), "{case}: {first:?}");
            assert_eq!(found.tmigr.first_unexplained, Some(first), "{case}");
        }
    }
}

/// Goal: without timers the hierarchy is still followed where lines say everything. Method: a recording of
/// two levels without them, and one of a single level, in which some events are in no line.
#[test]
fn a_recording_without_timers_is_compared() {
    let without = |name: &str| {
        let text = text_of(name);
        let kept: Vec<&str> = text.lines().filter(|line| !line.contains(": timer_")).collect();
        verify(&kept.join("\n")).tmigr
    };
    let found = without("g612-c16-iso");
    assert_eq!((found.unexplained, found.events), (0, 19_131), "{:?}", found.first_unexplained);
    assert!(found.order_open < 100 && found.not_recorded.is_empty(), "{found:?}");
    let found = without("g612-c4-levels");
    assert_eq!(found.unexplained, 0, "{:?}", found.first_unexplained);
    assert!(found.not_recorded.contains(&"event queues, from some line on".to_owned()), "{found:?}");
}

/// Goal: a loss leaves the words. Method: a stretch of a recording is missing, with a mark in its place.
#[test]
fn words_go_on_after_a_loss() {
    let text = text_of("g612-c16-iso");
    let lines: Vec<&str> = text.lines().collect();
    let middle = lines.len() / 2;
    let left = [&lines[..middle], &["CPU:1 [LOST 300 EVENTS]"], &lines[middle + 300..]].concat().join("\n");
    let found = verify(&left).tmigr;
    assert_eq!((found.unexplained, found.groups), (0, 3), "{:?}", found.first_unexplained);
    assert_eq!(found.not_recorded.len(), 3, "{found:?}");
    assert!(found.events > 12_000, "{found:?}");
}

/// A machine with one group, line by line.
struct Small {
    text: String,
    micros: u64,
}

/// Jiffies at boot.
const FIRST_JIFFIES: u64 = (1 << 32) - 300 * 250;
const TOP: &str = "lvl=0 numa=0 active";
const NEVER: u64 = i64::MAX as u64;

impl Small {
    /// Three CPUs join, and are active.
    fn new() -> Self {
        let header = "# trace: x\n# kernel: Linux 6.12.1, x86-64, HZ=250\n\
                      # cpus: possible 0-2, online at the end 0-2; sockets 1; NUMA node0: CPUs 0-2\n";
        let mut small = Self { text: header.to_owned(), micros: 1_000_000 };
        small.line(0, "tmigr_group_set: group=0a lvl=0 numa=0");
        for cpu in 0..3 {
            let (mask, count) = (1 << cpu, cpu + 1);
            small.line(0, &format!(
                "tmigr_connect_cpu_parent: cpu={cpu} groupmask={mask:x} parent=0a lvl=0 numa=0 num_children={count}"
            ));
        }
        for (cpu, active) in [(0, 1), (1, 3), (2, 7)] {
            small.line(cpu, &format!("tmigr_cpu_online: cpu={cpu} parent=0a wakeup={NEVER}"));
            small.active(cpu, active, 1);
        }
        small
    }

    fn line(&mut self, cpu: u16, event: &str) -> &mut Self {
        self.line_in("d..1.", cpu, event)
    }

    fn line_in(&mut self, flags: &str, cpu: u16, event: &str) -> &mut Self {
        self.micros += 1;
        let (seconds, micros) = (self.micros / 1_000_000, self.micros % 1_000_000);
        self.text.push_str(&format!("  <idle>-0  [{cpu:03}] {flags} {seconds:>5}.{micros:06}: {event}\n"));
        self
    }

    /// CPU `cpu` starts a timer of the wheel's first level for `delay` ticks from now, in its own base.
    fn start(&mut self, cpu: u16, delay: u64, flags: &str) -> &mut Self {
        let jiffies = FIRST_JIFFIES + self.micros / 4_000;
        let (expires, due) = (jiffies + delay, jiffies + delay + 1);
        let bucket = due % 64;
        self.line(cpu, &format!(
            "timer_start: timer={cpu:x} function=f expires={expires} [timeout={delay}] bucket_expiry={due} \
             cpu={cpu} idx={bucket} flags={flags}"
        ))
    }

    /// CPU 1 expires the timer of CPU `of`, whose bucket was due at tick `due` since boot.
    fn expire(&mut self, of: u16, due: u64) -> &mut Self {
        let (now, due) = (FIRST_JIFFIES + self.micros / 4_000, FIRST_JIFFIES + due);
        self.line_in("d.s1.", 1, &format!("timer_cancel: timer={of:x}"));
        self.line_in(
            "..s..",
            1,
            &format!("timer_expire_entry: timer={of:x} function=f now={now} baseclk={due}"),
        )
    }

    fn active(&mut self, cpu: u16, active: u8, migrator: u8) -> &mut Self {
        self.line(cpu, &format!("tmigr_cpu_active: cpu={cpu} parent=0a wakeup={NEVER}"));
        let mask = 1 << cpu;
        self.line(cpu, &format!(
            "tmigr_group_set_cpu_active: group=0a {TOP}={active:x} migrator={migrator:x} parent=0 childmask={mask:x}"
        ))
    }

    fn inactive(&mut self, cpu: u16, active: u8, migrator: u8) -> &mut Self {
        let mask = 1 << cpu;
        self.line(cpu, &format!(
            "tmigr_group_set_cpu_inactive: group=0a {TOP}={active:x} migrator={migrator:x} parent=0 childmask={mask:x}"
        ))
    }

    fn update(&mut self, cpu: u16, active: u8, next: u64, next_expiry: u64) -> &mut Self {
        self.line(cpu, &format!(
            "tmigr_update_events: child=0 group=0a group_lvl=0 child_active=0 group_active={active:x} nextevt={next} \
             next_expiry={next_expiry} child_evt_expiry=0 child_evtcpu=0"
        ))
    }

    fn idle(&mut self, cpu: u16, next: u64, wakeup: u64) -> &mut Self {
        self.line(cpu, &format!("tmigr_cpu_idle: cpu={cpu} parent=0a nextevt={next} wakeup={wakeup}"))
    }

    /// More lines than an explanation is waited for: CPU 2, which is active, goes idle and comes back.
    fn rest(&mut self) -> &mut Self {
        for _ in 0..50 {
            self.inactive(2, 0, 0xff).update(2, 0, NEVER, 8_000_000_000).idle(2, NEVER, 8_000_000_000);
            self.line(2, "tmigr_cpu_active: cpu=2 parent=0a wakeup=8000000000");
            self.line(
                2,
                &format!("tmigr_group_set_cpu_active: group=0a {TOP}=4 migrator=4 parent=0 childmask=4"),
            );
        }
        self
    }

    fn verify(&self) -> Verification {
        verify(&self.text)
    }
}

/// CPUs 0 and 1 go idle one after the other, CPU 1 with an event.
fn in_order() -> Small {
    let mut small = Small::new();
    small.inactive(0, 6, 2).update(0, 6, NEVER, NEVER).idle(0, NEVER, NEVER);
    small.inactive(1, 4, 4).update(1, 4, 8_000_000_000, 8_000_000_000).idle(1, 8_000_000_000, NEVER);
    small.rest();
    small
}

/// Goal: a small machine is computed completely. Method: the trace that the tests below change.
#[test]
fn a_small_machine_agrees() {
    let found = in_order().verify();
    let counts = (found.tmigr.events, found.tmigr.exact, found.tmigr.groups);
    assert_eq!(counts, (265, 265, 1), "{:?}", found.first_mismatch);
    assert!(found.ok && found.tmigr.not_recorded.is_empty());
}

/// Goal: groups that were known before a loss are counted, those of which no line came since, too. Method:
/// the small machine, with a loss at its end.
#[test]
fn a_loss_forgets_no_group() {
    let mut small = in_order();
    small.text.push_str("CPU:1 [LOST 300 EVENTS]\n");
    let found = small.verify().tmigr;
    assert_eq!((found.events, found.exact, found.groups), (265, 265, 1), "{:?}", found.first_unexplained);
    let missing = ["tree, from some line on", "walks, from some line on", "event queues, from some line on"];
    assert_eq!(found.not_recorded, missing);
}

/// Goal: each field that the model computes is compared. Method: one number of one line changed each, and the
/// line and the field that are named.
#[test]
fn each_field_is_compared() {
    const WORD: &str = "active=4 migrator=4 parent=0 childmask=2";
    const EVENT: &str = "group_active=4 nextevt=8000000000 next_expiry=8000000000";
    const IDLE: &str = "nextevt=8000000000 wakeup=9223372036854775807";
    for (from, right, wrong, field) in [
        (WORD, "active=4", "active=6", "active=4"),
        (WORD, "migrator=4", "migrator=1", "migrator=4"),
        (WORD, "parent=0", "parent=0b", "parent="),
        (WORD, "childmask=2", "childmask=1", "childmask=2"),
        (EVENT, "group_active=4", "group_active=6", "group_active=4"),
        (EVENT, "next_expiry=8000000000", "next_expiry=4000000000", "next_expiry=8"),
        (IDLE, "wakeup=9223372036854775807", "wakeup=8000000000", "wakeup=never"),
        ("nextevt=9223372036854775807 wakeup=8000000000", "wakeup=8", "wakeup=4", "wakeup=8"),
        ("tmigr_cpu_active: cpu=2 parent=0a wakeup=8000000000", "wakeup=8000000000", "wakeup=1", "wakeup=8"),
    ] {
        let to = &from.replacen(right, wrong, 1);
        let text = in_order().text;
        assert!(text.contains(from), "{from}");
        let text = text.replacen(from, to, 1);
        let number = text.lines().position(|line| line.contains(to)).expect("changed") as u64 + 1;
        let found = verify(&text);
        let first = found.first_mismatch.unwrap_or_else(|| panic!("not found: {to}"));
        assert_eq!((first.line, first.kind), (number, Check::Hierarchy), "{to}: {first:?}");
        assert!(first.expected.contains(field), "{to}: {first:?}");
    }
}

/// Goal: two lines of one group in the wrong order are recognised, when the CPU of the later one had not
/// written anything in between, and only then.
#[test]
fn lines_in_the_wrong_order_are_recognised() {
    let swapped = |between: bool| {
        let mut small = Small::new();
        // CPU 1 was first: 7 -> 5; then CPU 0: 5 -> 4. Its line came first.
        small.inactive(0, 4, 4);
        if between {
            small.line(1, "timer_cancel: timer=01");
        }
        small.inactive(1, 5, 1);
        small.update(0, 4, NEVER, NEVER).idle(0, NEVER, NEVER);
        small.update(1, 4, 8_000_000_000, 8_000_000_000).idle(1, 8_000_000_000, NEVER);
        small.rest();
        (small.text.lines().position(|line| line.contains("active=4 migrator=4")), small.verify())
    };
    let (_, found) = swapped(false);
    assert_eq!((found.tmigr.unexplained, found.tmigr.order_open), (0, 1), "{:?}", found.first_mismatch);
    assert_eq!(found.tmigr.waited_max, 2, "the second line explains the first");
    let (line, found) = swapped(true);
    let first = found.tmigr.first_unexplained.expect("CPU 1 had not changed the group when it wrote");
    assert_eq!(Some(first.line), line.map(|line| line as u64 + 1), "{first:?}");
}

/// CPU 1 looks for due events when CPU 0's was due 8 ticks before, and finds none; then it finds it.
/// `between`: lines before that first look, when CPU 2 has shown the present jiffies.
fn stalled(between: &[(u16, &str)]) -> (Small, u64) {
    let mut small = Small::new();
    small.start(1, 0, "P");
    small.micros += 4_000;
    small.expire(1, 251).start(0, 6, "");
    let due = 258 * 4_000_000;
    small.inactive(0, 6, 2).update(0, 6, due, due).idle(0, due, NEVER);
    small.micros += 15 * 4_000;
    small.start(2, 30, "P");
    for (cpu, event) in between {
        small.line(*cpu, event);
    }
    let first_look = small.text.lines().count() as u64 + 1;
    small.line_in("..s1.", 1, "tmigr_handle_remote: group=0a lvl=0");
    small.line_in("..s1.", 1, "tmigr_handle_remote: group=0a lvl=0");
    small.line_in("d.s1.", 1, &format!("tmigr_handle_remote_cpu: cpu=0 parent=0a wakeup={NEVER}"));
    small.expire(0, 258).update(1, 6, NEVER, NEVER);
    for _ in 0..50 {
        small.inactive(2, 2, 2).update(2, 2, NEVER, NEVER).idle(2, NEVER, NEVER).active(2, 6, 2);
    }
    (small, first_look)
}

/// Goal: a CPU that stood still since its line before saw the jiffies of that time, however long ago, and not
/// older ones. Method: it writes a line, or CPU 2 does; then one number of an explained line is changed.
#[test]
fn a_cpu_that_stood_still_saw_old_jiffies() {
    const TICK_STOP: &str = "tick_stop: success=1 dependency=NONE";
    for (between, is_ok) in [(&[] as &[_], true), (&[(2, TICK_STOP)], true), (&[(1, TICK_STOP)], false)] {
        let (small, first_look) = stalled(between);
        let found = small.verify();
        let first = found.tmigr.first_unexplained.map(|first| first.line);
        assert_eq!(first, (!is_ok).then_some(first_look + 1), "{between:?}: {:?}", found.first_mismatch);
        assert_eq!((found.mismatches, found.expiries.mismatches), (0, 0), "{:?}", found.first_mismatch);
        assert_eq!(found.tmigr.order_open, u64::from(is_ok), "{between:?}");
    }
    for (from, to, lines_after) in [
        ("tmigr_handle_remote_cpu: cpu=0", "tmigr_handle_remote_cpu: cpu=2", 2),
        ("nextevt=9223372036854775807 next_expiry=9", "nextevt=9223372036854775807 next_expiry=8", 5),
    ] {
        let (mut small, first_look) = stalled(&[]);
        small.text = small.text.replacen(from, to, 1);
        let first = small.verify().tmigr.first_unexplained.map(|first| first.line);
        assert_eq!(first, Some(first_look + lines_after), "{to}");
    }
}

/// Goal: a line of which nothing can be said is not counted as compared, nor are those that waited with it.
/// Method: a recording without timers up to where that is known of line 452; 160 lines wait by then.
#[test]
fn lines_that_could_not_be_compared_are_not_counted() {
    let text = text_of("g612-c12-nohzfull");
    let kept: Vec<&str> = text.lines().filter(|line| !line.contains(": timer_")).collect();
    let is_step = |line: &&&str| {
        let builds = ["tmigr_group_set:", "tmigr_connect_"];
        line.contains(": tmigr_") && !line.starts_with('#') && !builds.iter().any(|it| line.contains(it))
    };
    let (before, after) = kept.split_at(451);
    let waiting: Vec<&str> = after.iter().copied().filter(|line| is_step(&line)).take(160).collect();
    let found = verify(&[before, &waiting].concat().join("\n")).tmigr;
    assert_eq!((found.unexplained, found.tree_mismatches), (0, 0), "{:?}", found.first_unexplained);
    assert!(found.not_recorded.contains(&"walks, from some line on".to_owned()), "{found:?}");
    assert_eq!(found.events, before.iter().filter(is_step).count() as u64, "{found:?}");
}

/// Goal: the tree is compared line by line. Method: one number of one line changed each.
#[test]
fn each_line_of_the_tree_is_compared() {
    for (from, to) in [
        ("tmigr_group_set: group=0a lvl=0", "tmigr_group_set: group=0a lvl=1"),
        ("cpu=1 groupmask=2 parent=0a", "cpu=1 groupmask=4 parent=0a"),
        ("cpu=1 groupmask=2 parent=0a", "cpu=1 groupmask=2 parent=0b"),
        ("num_children=3", "num_children=4"),
    ] {
        let text = in_order().text.replacen(from, to, 1);
        let number = text.lines().position(|line| line.contains(to)).expect("changed") as u64 + 1;
        let found = verify(&text);
        let first = found.tmigr.first_unexplained.unwrap_or_else(|| panic!("not found: {to}"));
        assert_eq!((first.line, first.kind), (number, Check::Tree), "{to}: {first:?}");
        assert_eq!((found.tmigr.tree_mismatches, found.tmigr.unexplained), (1, 0), "{to}");
    }
    let log =
        "# kernel log: [ 0.6] Timer migration: 2 hierarchy levels; 8 children per group; 1 crossnode level\n";
    let first = verify(&format!("{log}{}", in_order().text)).tmigr.first_unexplained.expect("one level");
    let told = (first.kind, first.expected.as_str(), first.recorded.as_str());
    let expected = "1 level, nodes meet at level 1";
    assert_eq!(told, (Check::Tree, expected, "2 levels, nodes meet at level 1"), "{first:?}");
}

/// Goal: made up lines do not panic, take memory or time, and the sums hold. Method: 60 traces of 2,000
/// random lines, with up to 8192 CPUs and 60,000 nodes.
#[test]
fn made_up_lines_do_no_harm() {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    for round in 0..60 {
        let cpus = [2, 9, 64, 8192][round % 4];
        let (groups, nodes) = ([2, 9, 300][round % 3], [1, 3, 60_000][round / 4 % 3]);
        let mut small = Small { text: format!("# cpus: possible 0-{}\n", cpus - 1), micros: 0 };
        small.line(0, "tmigr_group_set: group=0 lvl=0 numa=0");
        for number in 0..2_000 {
            let event = made_up(&mut random, [cpus, groups, nodes], if number < 200 { 4 } else { 14 });
            small.line(random.below(cpus) as u16, &event);
        }
        let found = small.verify();
        assert!(found.tmigr.groups <= 60_000, "round {round}: {:?}", found.tmigr);
    }
}

fn made_up(random: &mut Random, [cpus, groups, nodes]: [usize; 3], kinds: usize) -> String {
    let (group, parent, cpu) = (random.below(groups), random.below(groups), random.below(cpus));
    let (mask, active, level) = (1 << random.below(8), random.below(256), random.below(4));
    let migrator = [0xff, 1 << random.below(8)][random.below(2)];
    let at = [random.below(100) as u64 * 4_000_000, NEVER][random.below(2)];
    let of_cpu = format!("cpu={cpu} parent={parent:x}");
    let state = format!("active={active:x} migrator={migrator:x} parent={parent:x} childmask={mask:x}");
    match random.below(kinds) {
        0 => format!("tmigr_group_set: group={group:x} lvl={level} numa={}", random.below(nodes) as i64 - 1),
        1 | 2 => {
            format!("tmigr_connect_cpu_parent: cpu={cpu} groupmask={mask:x} parent={parent:x} lvl=0 numa=0")
        }
        3 => format!(
            "tmigr_connect_child_parent: group={group:x} groupmask={mask:x} parent={parent:x} lvl={level}"
        ),
        4 => format!("tmigr_cpu_active: {of_cpu} wakeup={at}"),
        5 => format!("tmigr_group_set_cpu_active: group={group:x} lvl={level} numa=0 {state}"),
        6 => format!("tmigr_group_set_cpu_inactive: group={group:x} lvl={level} numa=0 {state}"),
        7 => format!(
            "tmigr_update_events: child={parent:x} group={group:x} group_lvl=0 child_active=0 group_active={active:x} \
             nextevt={at} next_expiry={at} child_evt_expiry=0 child_evtcpu={cpu}"
        ),
        8 => format!("tmigr_cpu_idle: {of_cpu} nextevt={at} wakeup={at}"),
        9 => format!("tmigr_handle_remote: group={group:x} lvl={level}"),
        10 => format!("tmigr_handle_remote_cpu: {of_cpu} wakeup={at}"),
        11 => format!("tmigr_cpu_new_timer: {of_cpu} wakeup={at}"),
        12 => format!("tmigr_cpu_new_timer_idle: {of_cpu} nextevt={at} wakeup={at}"),
        _ => format!("tmigr_cpu_online: {of_cpu} wakeup={at}"),
    }
}

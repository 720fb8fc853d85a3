//! Mutants of the migration hierarchy: the kernel's bugs with our fix undone, steps left out or out of order,
//! and orderings too weak. The tables are in `crates/core/src/tmigr/README.md`, with the orderings whose
//! weakening changes nothing, and why.

use super::killer::Killer::{self, Test};
use super::killer::Mutant;
use super::killer::Suite::{Loom, Machine, Site, Tree};

const TOKENS: &str = "crates/core/src/machine/stall/tokens.rs";
const WATCH: &str = "crates/core/src/machine/stall/watch.rs";

const AVAILABLE: &str = "crates/core/src/tmigr/available.rs";
const EVENT: &str = "crates/core/src/tmigr/event.rs";
const GROWTH: &str = "crates/core/src/tmigr/growth.rs";
const PRESENCE: &str = "crates/core/src/tmigr/presence.rs";
const REMOTE: &str = "crates/core/src/tmigr/remote.rs";
const SHAPE: &str = "crates/core/src/tmigr/shape.rs";
const STATE: &str = "crates/core/src/tmigr/state.rs";
const WALK: &str = "crates/core/src/tmigr/walk.rs";

const LIST: Killer = Test(Tree, "random::the_tree_is_the_list");

/// Names begin with the bug's number in the table.
pub(super) const KERNEL_BUGS: &[Mutant] = &[
    Mutant {
        name: "1-top-only-forecast",
        rule: "a forecast takes the first expiry of every level, not of the top alone",
        file: REMOTE,
        right: "                return None;
            }
            first = earliest(first, group.next_expiry());",
        wrong: "                return None;
            }
            first = earliest(next.filter(|_| group.parent().is_none()), group.next_expiry());",
        killers: &[Test(Site, "kernel::quick_check_late_forecast")],
    },
    Mutant {
        name: "2-no-event-no-walk",
        rule: "a CPU without a timer updates its group: siblings may wait there",
        file: EVENT,
        right: "(TreeChild::Cpu { event, .. }, _) => *event,",
        wrong: "(TreeChild::Cpu { event: None, .. }, _) => return Ok(EventUpdate::ChildIsActive),
            (TreeChild::Cpu { event, .. }, _) => *event,",
        killers: &[Test(Site, "kernel::deactivate_ignored_own_event_hides_sibling"), LIST],
    },
    Mutant {
        name: "3-wakeup-stays",
        rule: "a CPU that was given an event and finds another CPU awake forgets the event",
        file: REMOTE,
        right: "Ok(Looked::NotMigrator) => break,",
        wrong: "Ok(Looked::NotMigrator) => return saw_all,",
        killers: &[Test(Site, "kernel::ghost_wakeup_storm")],
    },
    Mutant {
        name: "4-global-not-idle",
        rule: "an idle CPU's global base says so, too",
        file: "crates/core/src/machine/cpu_bases.rs",
        right: "for base in [&mut self.local, &mut self.global, &mut self.guest] {
            base.is_idle = is_idle;",
        wrong: "for base in [&mut self.local] {
            base.is_idle = is_idle;",
        killers: &[Test(Site, "machine::nohz_full_global_enqueue_no_self_kick")],
    },
    Mutant {
        name: "5-equal-expiry-equal-cpu",
        rule: "an event with the same expiry takes the new CPU",
        file: EVENT,
        right: "        self.cpus[slot] = event.cpu;\n",
        wrong: "        if event.expires.0 != before {\n            self.cpus[slot] = event.cpu;\n        }\n",
        killers: &[Test(Site, "kernel::stale_cpu_on_equal_expiry")],
    },
    Mutant {
        name: "7-parent-twice",
        rule: "a walk reads the parent once",
        file: WALK,
        right: "            link = group.parent();
            if link.is_none() {
                return Ok(first);
            }
            child = TreeChild::Group(group);
        }
        Ok(None)
    }

    /// Writes",
        wrong: "            link = group.parent();
            interleave!(BeforeParent);
            if group.parent().is_none() {
                return Ok(first);
            }
            child = TreeChild::Group(group);
        }
        Ok(None)
    }

    /// Writes",
        killers: &[Test(Site, "kernel::parent_pointer_read_twice")],
    },
    Mutant {
        name: "8-old-belief",
        rule: "growth asks the old root again whenever the new one's word changed",
        file: GROWTH,
        right: "        let child = TreeChild::Group(group);
        waited(self.walk_up(child, group.parent(), Walker::Other, AtBusyGroup::Waits));",
        wrong: "        let _ = (waited, AtBusyGroup::Waits, Walker::Other, TreeChild::Group(group));
        let was_active = group.word.load().is_active();
        if let Some((parent, mask)) = group.parent() {
            let _ = self.groups[parent].word.transition(mask, || was_active);
        }",
        killers: &[Test(Site, "kernel::root_growth_false_active")],
    },
    Mutant {
        name: "12-link-relaxed",
        rule: "a walker that sees a link sees what is behind it",
        file: EVENT,
        right: "self.link.store(pack_link(link), Ordering::Release);",
        wrong: "self.link.store(pack_link(link), Ordering::Relaxed);",
        killers: &[Test(Loom, "growth::group_init_visibility")],
    },
    Mutant {
        name: "14-old-root-uncounted",
        rule: "a new root counts the old one as its first child",
        file: SHAPE,
        right: "self.groups[top.index()].child_count += u8::from(old_root.is_some());",
        wrong: "self.groups[top.index()].child_count += 0;",
        killers: &[Test(Tree, "growth::root_off_by_one")],
    },
    Mutant {
        name: "15-no-unfolding",
        rule: "with another node the tree is unfolded up to the crossing level",
        file: SHAPE,
        right: "is_single && (level >= self.levels.crossing || !is_mismatch)",
        wrong: "is_single && (level >= self.levels.crossing || !is_mismatch || true)",
        killers: &[Test(Tree, "growth::numa_imbalance")],
    },
    Mutant {
        name: "16-isolated-joins-by-waking",
        rule: "a CPU that is unavailable stays out of the masks when it wakes up",
        file: PRESENCE,
        right: "if was == Presence::Awake || !record.is_available {",
        wrong: "if was == Presence::Awake {",
        killers: &[Test(Site, "kernel::isolated_cpu_becomes_permanent_migrator"), LIST],
    },
    Mutant {
        name: "17-growth-below-record",
        rule: "the lock of growth is not taken while a record is held",
        file: AVAILABLE,
        right: "        if !core::mem::replace(&mut record.is_available, false) {",
        wrong: "        let _tree = self.tree.lock_remote();
        if !core::mem::replace(&mut record.is_available, false) {",
        killers: &[Test(Site, "kernel::availability_lock_order")],
    },
    Mutant {
        name: "18-grown-means-active",
        rule: "growth does not take the old root for active because it is being grown",
        file: GROWTH,
        right: "        let child = TreeChild::Group(group);\n",
        wrong: "        let child = TreeChild::Cpu { is_active: true, event: None };\n",
        killers: &[Test(Site, "kernel::root_growth_activates_inactive_root")],
    },
    Mutant {
        name: "19-not-myself",
        rule: "a CPU that looks is asked to expire its own base, too",
        file: REMOTE,
        right: "if self.is_unavailable(cpu) { Pulled::Left } else { pull(target) }",
        wrong: "if self.is_unavailable(cpu) || target == cpu { Pulled::Left } else { pull(target) }",
        killers: &[Test(Site, "kernel::self_remote_livelock")],
    },
    Mutant {
        name: "19-again-for-ever",
        rule: "an event that a pull left as it was is not pulled again at once",
        file: REMOTE,
        right: "if last == Some(event) || pull(event.cpu) == Pulled::Left {",
        wrong: "if pull(event.cpu) == Pulled::Left {",
        killers: &[Test(Site, "kernel::self_remote_livelock")],
    },
    Mutant {
        name: "21-empty-is-far",
        rule: "an empty base is due never, not in 2^30 ticks",
        file: "crates/core/src/base/mod.rs",
        right: "        let mut next = self.queues.next_expiry();",
        wrong: "        let mut next = self.queues.next_expiry().min(self.queues.length.nanos().0 << 30);",
        killers: &[Test(Site, "machine::empty_base_sentinel_ages")],
    },
    Mutant {
        name: "21-base-not-read-again",
        rule: "a thread that has locked a timer's base looks whether it still is the timer's",
        file: "crates/core/src/base/arm.rs",
        right: "        if !word.is_at(from) {",
        wrong: "        if false && !word.is_at(from) {",
        killers: &[Test(Site, "machine::lock_timer_base_reload")],
    },
    Mutant {
        name: "22-ignored-for-ever",
        rule: "the event of a CPU that sleeps again counts again",
        file: EVENT,
        right: "self.ignored.fetch_and(!mask.bits(), Ordering::Relaxed);",
        wrong: "self.ignored.fetch_and(u8::MAX, Ordering::Relaxed);",
        killers: &[Test(Site, "kernel::ping_pong"), LIST],
    },
];

/// Steps left out or taken in another order.
pub(super) const STEPS: &[Mutant] = &[
    Mutant {
        name: "seq-stays",
        rule: "T7: every transition moves seq (race S)",
        file: STATE,
        right: "u64::from(migrator) << Self::MIGRATOR_SHIFT | seq << Self::SEQ_SHIFT)",
        wrong: "u64::from(migrator) << Self::MIGRATOR_SHIFT | (seq & 0) << Self::SEQ_SHIFT)",
        killers: &[
            Test(Site, "kernel::race_s_late_idle_cpu"),
            Test(Loom, "group_word::going_idle_against_waking_up"),
        ],
    },
    Mutant {
        name: "child-read-once",
        rule: "the child is read again whenever the compare-and-swap failed (race S)",
        file: STATE,
        right: "        loop {
            interleave!(BeforeChildRead);
            let after = if is_active()",
        wrong: "        interleave!(BeforeChildRead);
        let child_is_active = is_active();
        loop {
            let after = if child_is_active",
        killers: &[
            Test(Site, "kernel::race_s_late_idle_cpu"),
            Test(Loom, "group_word::going_idle_against_waking_up"),
        ],
    },
    Mutant {
        name: "word-before-lock",
        rule: "a group's state is read under its lock when an event is queued (race L)",
        file: EVENT,
        right: "        interleave!(BeforeGroupLock);
        let below = match child {",
        wrong: "        if let (TreeChild::Cpu { event, .. }, true) = (child, self.word.load().is_active()) {
            interleave!(BeforeGroupLock);
            let mut events = self.events.lock_remote();
            events.set(mask, *event);
            self.ignored.fetch_and(!mask.bits(), Ordering::Relaxed);
            self.refresh(&events);
            return Ok(EventUpdate::GroupIsActive);
        }
        interleave!(BeforeGroupLock);
        let below = match child {",
        killers: &[Test(Site, "kernel::race_l_last_idle_against_new_timer")],
    },
    Mutant {
        name: "late-writer-stops",
        rule: "a walker that writes an event into a group that went idle meanwhile carries it up",
        file: WALK,
        right: "EventUpdate::GroupIsIdle(event) => first = event.map(|event| event.expires),",
        wrong: "EventUpdate::GroupIsIdle(_) if transition.after.is_active() => return Ok(None),
                    EventUpdate::GroupIsIdle(event) => first = event.map(|event| event.expires),",
        killers: &[
            Test(Site, "walks::two_go_idle_in_one_group"),
            Test(Site, "walks::two_go_idle_in_one_group_of_two"),
            Test(Loom, "group_word::two_go_idle"),
        ],
    },
    Mutant {
        name: "told-over-told",
        rule: "a parked puller writes down what is left under its record's lock",
        file: REMOTE,
        right: "        interleave!(BeforeCpuLock);
        let record = this.record.lock_owner();
        if record.presence == Presence::Parked && record.is_available {",
        wrong: "        let left = self.first_of_idle_tree(this.leaf());
        interleave!(BeforeCpuLock);
        let record = this.record.lock_owner();
        if record.presence == Presence::Parked && record.is_available {
            this.set_wakeup(left);
            return saw_all;
        }
        if record.presence == Presence::Parked && record.is_available {",
        killers: &[Test(Site, "walks::a_timer_for_a_parked_puller")],
    },
    Mutant {
        name: "leaver-pulls-on",
        rule: "T4: a CPU that is made unavailable while it pulls begins no other pull",
        file: REMOTE,
        right: "if self.is_unavailable(cpu) { Pulled::Left } else { pull(target) }",
        wrong: "pull(target)",
        killers: &[Test(Site, "available::a_puller_that_leaves_pulls_no_more")],
    },
    Mutant {
        name: "publish-while-awake",
        rule: "what an awake CPU has is not published",
        file: PRESENCE,
        right: "if !record.is_available || record.presence == Presence::Awake || is_known {",
        wrong: "if !record.is_available || is_known {",
        killers: &[LIST],
    },
    Mutant {
        name: "told-and-unavailable",
        rule: "a CPU that leaves is not to wake up for the tree",
        file: AVAILABLE,
        right: "        this.set_wakeup(None);
        self.exclude",
        wrong: "        self.exclude",
        killers: &[LIST],
    },
    Mutant {
        name: "told-and-absent",
        rule: "an absent CPU is not to wake up for the tree",
        file: PRESENCE,
        right: "Leaving { to: Presence::Absent, next }, at_busy)?;
        self.cpu(cpu).set_wakeup(None);",
        wrong: "Leaving { to: Presence::Absent, next }, at_busy)?;",
        killers: &[LIST],
    },
    Mutant {
        name: "absent-stays-active",
        rule: "a mark takes the CPU out of the masks",
        file: PRESENCE,
        right: "        if record.presence != Presence::Awake {
            let first",
        wrong: "        if record.presence != Presence::Awake || leaving.to == Presence::Absent {
            let first",
        killers: &[LIST, Test(Loom, "absent::mark_against_return")],
    },
    Mutant {
        name: "return-without-walk",
        rule: "a return makes the CPU active in its group",
        file: PRESENCE,
        right: "        this.set_wakeup(None);
        self.set_active(this);",
        wrong: "        this.set_wakeup(None);",
        killers: &[LIST, Test(Loom, "absent::mark_against_return")],
    },
    Mutant {
        name: "links-from-below",
        rule: "links are published from above to below",
        file: GROWTH,
        right: "for &(group, parent) in &join.new_links {",
        wrong: "for &(group, parent) in join.new_links.iter().rev() {",
        killers: &[Test(Loom, "growth::group_init_visibility")],
    },
];

/// Rules of stalls left out.
pub(super) const STALLS: &[Mutant] = &[
    Mutant {
        name: "silent-and-idle-is-healthy",
        rule: "behind a CPU that does not turn the next is looked at, though the first has nothing overdue",
        file: WATCH,
        right: "            if !self.is_stalled(other, now) {\n",
        wrong: "            if !self.is_stalled(other, now) || !self.has_overdue(other, now) {\n",
        killers: &[Test(Site, "stall::one_freezes_anywhere")],
    },
    Mutant {
        name: "a-failed-try-unlocks",
        rule: "a try that failed gives no lock back",
        file: "crates/core/src/lock.rs",
        right: "        self.raw.try_lock_remote().then(|| LockedGuard { locked: self })\n",
        wrong: "        self.raw.try_lock_remote().then_some(LockedGuard { locked: self })\n",
        killers: &[Test(Machine, "absence::a_failed_try_leaves_the_lock_to_its_holder")],
    },
    Mutant {
        name: "taken-back-not-owed",
        rule: "what a revocation leaves unpublished is owed before the lock is given back",
        file: TOKENS,
        right: "            if must_tell && id.kind.is_pullable() && self.is_pulling() {\n",
        wrong: "            if false {\n",
        killers: &[Test(Site, "stall::two_freeze_anywhere")],
    },
    Mutant {
        name: "handed-over-not-owed",
        rule: "a mark of which only the duties were handed over is completed",
        file: TOKENS,
        right: "            if self.flags(cpu).is_mark_incomplete() {\n",
        wrong: "            if false {\n",
        killers: &[Test(Site, "stall::armed_while_it_runs")],
    },
    Mutant {
        name: "migrator-not-judged",
        rule: "a stalled migrator is marked for what its group has overdue",
        file: WATCH,
        right: "            || self.hierarchy.requires_handle_remote(cpu, now.since(tick))
",
        wrong: "",
        killers: &[Test(Site, "stall::three_lanes_turn")],
    },
    Mutant {
        name: "own-tokens-not-judged",
        rule: "a stalled CPU is marked for what it has collected of its own",
        file: WATCH,
        right: "self.base_ids().filter(|id| id.kind.is_pullable());",
        wrong: "self.base_ids().filter(|id| id.kind.is_pullable() && id.cpu != cpu);",
        killers: &[Test(Site, "stall::what_was_collected")],
    },
    Mutant {
        name: "marked-takes-tokens",
        rule: "a CPU that was marked takes no token",
        file: "crates/core/src/base/bases.rs",
        right: "!(id.kind.is_pullable() && hints.has(CpuHints::ABSENT))",
        wrong: "!(id.kind.is_pullable() && hints.has(CpuHints::ABSENT) && false)",
        killers: &[Test(Site, "stall::one_freezes_anywhere")],
    },
    Mutant {
        name: "marker-may-not-freeze",
        rule: "tokens that a marker did not take back are taken back by others",
        file: WATCH,
        right: "        self.finish_repairs(now, actions);
",
        wrong: "",
        killers: &[Test(Site, "stall::two_freeze_anywhere")],
    },
    Mutant {
        name: "mark-not-idle",
        rule: "a mark makes the bases idle, so that arms are published",
        file: "crates/core/src/machine/stall/mark.rs",
        right: "bases: &mut CpuBases<'_, L, T>) {
        bases.set_idle(true);
        let watch",
        wrong: "bases: &mut CpuBases<'_, L, T>) {
        let _ = &bases;
        let watch",
        killers: &[Test(Site, "stall::one_freezes_anywhere")],
    },
    Mutant {
        name: "concurrent-with-itself",
        rule: "a timer that runs is not handed out again",
        file: "crates/core/src/base/expire.rs",
        right: "            if !self.runs.is_running(due.address()) {
                break Some",
        wrong: "            if true || !self.runs.is_running(due.address()) {
                break Some",
        killers: &[Test(Site, "stall::armed_while_it_runs")],
    },
];

/// Orderings too weak, and reads that are not in the order of a word's transitions.
pub(super) const ORDERINGS: &[Mutant] = &[
    Mutant {
        name: "word-load-relaxed",
        rule: "a walk reads the child not earlier than the parent's word",
        file: STATE,
        right: "Snapshot(self.0.load(Ordering::Acquire))",
        wrong: "Snapshot(self.0.load(Ordering::Relaxed))",
        killers: &[Test(Loom, "group_word::going_idle_against_waking_up")],
    },
    Mutant {
        name: "retry-relaxed",
        rule: "the child is read again not earlier than the word that won",
        file: STATE,
        right: "after.0, Ordering::AcqRel, Ordering::Acquire) {",
        wrong: "after.0, Ordering::AcqRel, Ordering::Relaxed) {",
        killers: &[Test(Loom, "group_word::going_idle_against_waking_up")],
    },
    Mutant {
        name: "transition-without-release",
        rule: "a transition shows what was done before it",
        file: STATE,
        right: "after.0, Ordering::AcqRel, Ordering::Acquire) {",
        wrong: "after.0, Ordering::Acquire, Ordering::Acquire) {",
        killers: &[Test(Loom, "group_word::going_idle_against_waking_up")],
    },
    Mutant {
        name: "transition-without-acquire",
        rule: "a transition of a word that growth looked at sees the link",
        file: STATE,
        right: "after.0, Ordering::AcqRel, Ordering::Acquire) {",
        wrong: "after.0, Ordering::Release, Ordering::Acquire) {",
        killers: &[Test(Loom, "growth::waking_up_below_a_new_root")],
    },
    Mutant {
        name: "growth-plain-load",
        rule: "growth takes its place in the order of the old root's transitions",
        file: STATE,
        right: "Snapshot(self.0.fetch_add(0, Ordering::AcqRel))",
        wrong: "self.load()",
        killers: &[Test(Loom, "growth::waking_up_below_a_new_root")],
    },
    Mutant {
        name: "growth-without-release",
        rule: "a walker that changes the old root after growth looked at it sees the link",
        file: STATE,
        right: "Snapshot(self.0.fetch_add(0, Ordering::AcqRel))",
        wrong: "Snapshot(self.0.fetch_add(0, Ordering::Acquire))",
        killers: &[Test(Loom, "growth::waking_up_below_a_new_root")],
    },
    Mutant {
        name: "parent-relaxed",
        rule: "a walk that finds the parent finds it whole",
        file: EVENT,
        right: "unpack_link(self.link.load(Ordering::Acquire))",
        wrong: "unpack_link(self.link.load(Ordering::Relaxed))",
        killers: &[Test(Loom, "growth::group_init_visibility")],
    },
];

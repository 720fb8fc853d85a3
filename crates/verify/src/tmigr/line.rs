//! A line of `timer_migration:*` in the form in which it is compared: numbers only, "never" is a number.
//!
//! Decides nothing. What the model expects is written in the same form, so that comparing is `==`; which
//! field differs is found only for a line that is reported.

use quietcore_core::Nanos;
use quietcore_trace::{Event, Migration, MigrationStep, Record};

/// Stands for "no expiry".
pub(super) const NEVER: u64 = u64::MAX;
/// The kernel's mask of no migrator.
pub(super) const NO_MIGRATOR: u32 = 0xff;

/// A line that was taken from the input.
#[derive(Clone, Copy, Debug)]
pub(super) struct HierarchyLine {
    pub(super) number: u64,
    /// The CPU that wrote it.
    pub(super) cpu: u16,
    pub(super) what: LineContent,
    /// `tmigr_handle_remote`: the moment up to which events are due, in ns.
    pub(super) now: u64,
    /// That moment cannot be earlier than this: the CPU read jiffies after its line before.
    pub(super) earliest: u64,
    /// `tmigr_group_set_cpu_inactive`: our wheel says that the CPU has a global timer to publish.
    pub(super) publishes: bool,
}

/// What a line says, identities as in the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LineContent {
    Cpu(CpuLine),
    Word(WordLine),
    Update(UpdateLine),
    /// `tmigr_handle_remote`.
    Remote {
        group: u64,
        level: u64,
    },
}

/// A change of one CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CpuLine {
    pub(super) step: MigrationStep,
    pub(super) cpu: u16,
    pub(super) parent: u64,
    pub(super) wakeup: u64,
    pub(super) next: u64,
}

/// A change of a group's word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct WordLine {
    pub(super) is_active: bool,
    pub(super) group: u64,
    pub(super) level: u64,
    pub(super) node: i64,
    pub(super) active: u32,
    pub(super) migrator: u32,
    pub(super) parent: u64,
    pub(super) child_mask: u32,
}

/// A look at a child's event in a group's queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct UpdateLine {
    pub(super) child: u64,
    pub(super) group: u64,
    pub(super) level: u64,
    pub(super) child_active: u32,
    pub(super) group_active: u32,
    pub(super) next: u64,
    pub(super) next_expiry: u64,
    pub(super) child_expiry: u64,
    pub(super) child_cpu: u64,
}

fn word(moment: Option<Nanos>) -> u64 {
    moment.map_or(NEVER, |at| at.0)
}

impl HierarchyLine {
    /// `None` for the lines that build the tree, and for other events.
    pub(super) fn of(record: &Record<'_>) -> Option<Self> {
        let Event::Migration(migration) = record.event else { return None };
        let what = match migration {
            Migration::Cpu { step, cpu, parent, wakeup, next_event } => {
                let cpu = cpu.index() as u16;
                let (wakeup, next) = (word(wakeup), word(next_event));
                LineContent::Cpu(CpuLine { step, cpu, parent, wakeup, next })
            }
            Migration::GroupState {
                active,
                group,
                child_mask,
                active_mask,
                migrator,
                level,
                node,
                parent,
            } => LineContent::Word(WordLine {
                is_active: active,
                group,
                level,
                node,
                active: active_mask,
                migrator: migrator.unwrap_or(NO_MIGRATOR),
                parent,
                child_mask,
            }),
            Migration::UpdateEvents {
                group,
                level,
                child,
                child_active,
                group_active,
                next_event,
                next_expiry,
                child_expiry,
                child_cpu,
            } => LineContent::Update(UpdateLine {
                child,
                group,
                level,
                child_active,
                group_active,
                next: word(next_event),
                next_expiry: word(next_expiry),
                child_expiry: word(child_expiry),
                child_cpu,
            }),
            Migration::HandleRemote { group, level } => LineContent::Remote { group, level },
            _ => return None,
        };
        let cpu = record.cpu.index() as u16;
        Some(Self { number: record.line, cpu, what, now: 0, earliest: 0, publishes: false })
    }
}

impl LineContent {
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Cpu(line) => match line.step {
                MigrationStep::Active => "tmigr_cpu_active",
                MigrationStep::Idle => "tmigr_cpu_idle",
                MigrationStep::NewTimer => "tmigr_cpu_new_timer",
                MigrationStep::NewTimerIdle => "tmigr_cpu_new_timer_idle",
                MigrationStep::Online => "tmigr_cpu_online",
                MigrationStep::Offline => "tmigr_cpu_offline",
                MigrationStep::Available => "tmigr_cpu_available",
                MigrationStep::Unavailable => "tmigr_cpu_unavailable",
                MigrationStep::HandleRemote => "tmigr_handle_remote_cpu",
            },
            Self::Word(line) if line.is_active => "tmigr_group_set_cpu_active",
            Self::Word(_) => "tmigr_group_set_cpu_inactive",
            Self::Update(_) => "tmigr_update_events",
            Self::Remote { .. } => "tmigr_handle_remote",
        }
    }

    /// The fields, by the names in the text.
    fn fields(&self) -> Vec<(&'static str, String)> {
        let identity = |identity: u64| format!("{identity:016x}");
        let moment = |at: u64| if at == NEVER { "never".to_owned() } else { at.to_string() };
        let mask = |mask: u32| format!("{mask:x}");
        match *self {
            Self::Cpu(line) => vec![
                ("cpu", line.cpu.to_string()),
                ("parent", identity(line.parent)),
                ("nextevt", moment(line.next)),
                ("wakeup", moment(line.wakeup)),
            ],
            Self::Word(line) => vec![
                ("group", identity(line.group)),
                ("lvl", line.level.to_string()),
                ("numa", line.node.to_string()),
                ("active", mask(line.active)),
                ("migrator", mask(line.migrator)),
                ("parent", identity(line.parent)),
                ("childmask", mask(line.child_mask)),
            ],
            Self::Update(line) => vec![
                ("child", identity(line.child)),
                ("group", identity(line.group)),
                ("group_lvl", line.level.to_string()),
                ("child_active", mask(line.child_active)),
                ("group_active", mask(line.group_active)),
                ("nextevt", moment(line.next)),
                ("next_expiry", moment(line.next_expiry)),
                ("child_evt_expiry", moment(line.child_expiry)),
                ("child_evtcpu", line.child_cpu.to_string()),
            ],
            Self::Remote { group, level } => vec![("group", identity(group)), ("lvl", level.to_string())],
        }
    }

    /// In words: what was expected, what was recorded; of two lines of one kind only what differs.
    pub(super) fn difference(&self, recorded: &Self) -> (String, String) {
        if self.name() != recorded.name() {
            return (self.name().to_owned(), recorded.name().to_owned());
        }
        let pairs = self.fields().into_iter().zip(recorded.fields());
        let (expected, found): (Vec<_>, Vec<_>) = pairs
            .filter(|(one, other)| one.1 != other.1)
            .map(|((key, one), (_, other))| (format!("{key}={one}"), format!("{key}={other}")))
            .unzip();
        (expected.join(" "), found.join(" "))
    }
}

#[cfg(test)]
mod tests {
    use super::{CpuLine, HierarchyLine, LineContent, MigrationStep, NEVER, UpdateLine, WordLine};
    use quietcore_trace::parse_line;

    /// Goal: a difference names the fields that differ, and only these. Method: a real line and two others.
    #[test]
    fn a_difference_names_its_fields() {
        let text =
            b"  <idle>-0 [016] d..4. 32.586722: tmigr_group_set_cpu_inactive: group=07a3997f lvl=0 numa=1 \
            active=20 migrator=20 parent=0191001c childmask=1";
        let line = HierarchyLine::of(&parse_line(text).expect("an event")).expect("it is compared");
        let LineContent::Word(mut word) = line.what else { panic!("{line:?}") };
        (word.active, word.migrator) = (0, 0xff);
        let (expected, recorded) = LineContent::Word(word).difference(&line.what);
        assert_eq!((expected.as_str(), recorded.as_str()), ("active=0 migrator=ff", "active=20 migrator=20"));
        let step = MigrationStep::Idle;
        let other = LineContent::Cpu(CpuLine { step, cpu: 16, parent: 1, wakeup: NEVER, next: NEVER });
        assert_eq!(other.difference(&line.what).0, "tmigr_cpu_idle");
    }

    /// Goal: each field has the name that it has in the text, and its own value; masks and identities are
    /// hexadecimal. Method: of each kind two lines that have no field in common, all values different.
    #[test]
    fn each_field_has_its_name() {
        let cpu = |from: u64| {
            let step = MigrationStep::Idle;
            LineContent::Cpu(CpuLine {
                step,
                cpu: from as u16,
                parent: from + 1,
                wakeup: from + 2,
                next: from + 3,
            })
        };
        let word = |from: u32| {
            LineContent::Word(WordLine {
                is_active: true,
                group: u64::from(from),
                level: u64::from(from) + 1,
                node: i64::from(from) + 2,
                active: from + 3,
                migrator: from + 4,
                parent: u64::from(from) + 5,
                child_mask: from + 6,
            })
        };
        let update = |from: u32| {
            let at = u64::from(from);
            LineContent::Update(UpdateLine {
                child: at,
                group: at + 1,
                level: at + 2,
                child_active: from + 3,
                group_active: from + 4,
                next: at + 5,
                next_expiry: at + 6,
                child_expiry: at + 7,
                child_cpu: at + 8,
            })
        };
        let remote = |from: u64| LineContent::Remote { group: from, level: from + 1 };
        for (one, other, text) in [
            (cpu(10), cpu(20), "cpu=10 parent=000000000000000b nextevt=13 wakeup=12"),
            (
                word(10),
                word(20),
                "group=000000000000000a lvl=11 numa=12 active=d migrator=e parent=000000000000000f childmask=10",
            ),
            (
                update(10),
                update(20),
                "child=000000000000000a group=000000000000000b group_lvl=12 child_active=d group_active=e \
                 nextevt=15 next_expiry=16 child_evt_expiry=17 child_evtcpu=18",
            ),
            (remote(10), remote(20), "group=000000000000000a lvl=11"),
        ] {
            assert_eq!(one.difference(&other).0, text);
            assert_eq!(other.difference(&one).1, text);
        }
    }
}

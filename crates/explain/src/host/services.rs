//! Programs that move interrupts and change settings meanwhile: irqbalance and tuned.
//!
//! Decides whether irqbalance runs, and which CPUs it spares. Of the processes of a host only the first one
//! and irqbalance itself are kept in a copy. Invariant: that it does not run is said only where the processes
//! are shown; in a container they are not those of the host.
//! Source: irqbalance 1.9 (`setup_banned_cpus`): a mask or list of its settings counts alone; without one it
//! spares what `/sys/devices/system/cpu/{isolated,nohz_full}` say when it starts. An empty one counts as
//! none.

use super::files::{Fact, Reader};
use quietcore_core::CpuSet;
use std::str::FromStr;

/// Where distributions keep the environment of irqbalance: Debian, Fedora.
const SETTINGS: [&str; 2] = ["/etc/default/irqbalance", "/etc/sysconfig/irqbalance"];
/// The mask comes first, as irqbalance takes it.
const BANS: [&str; 2] = ["IRQBALANCE_BANNED_CPUS", "IRQBALANCE_BANNED_CPULIST"];

#[derive(Debug, Default)]
pub(crate) struct Services {
    /// Whether irqbalance runs; `None` where processes are not shown.
    pub(crate) irqbalance: Option<Fact<bool>>,
    pub(crate) banned: BannedCpus,
    /// What tuned applied last.
    pub(crate) tuned_profile: Option<Fact<String>>,
}

/// The CPUs that the settings of irqbalance keep interrupts off.
#[derive(Debug, Default)]
pub(crate) enum BannedCpus {
    /// None are named: it spares those that the kernel calls isolated or nohz_full.
    #[default]
    AsTheKernelSays,
    /// These alone.
    Named(Fact<CpuSet>),
    /// Some are named, and cannot be read.
    Unclear,
}

impl Services {
    pub(crate) fn read(reader: &mut Reader) -> Self {
        let profile = reader.word("/etc/tuned/active_profile");
        Self {
            irqbalance: reader.process("irqbalance"),
            banned: BannedCpus::read(reader),
            tuned_profile: profile.filter(|fact| !fact.value.is_empty()),
        }
    }
}

impl BannedCpus {
    fn read(reader: &mut Reader) -> Self {
        for path in SETTINGS {
            let is_ban = |line: &&str| BANS.iter().any(|name| value(line, name).is_some());
            let lines = |text: &str| text.lines().filter(is_ban).collect::<Vec<_>>().join("\n");
            let Some(text) = reader.part(path, lines) else { continue };
            for name in BANS {
                // The last assignment counts.
                let line = text.lines().rfind(|line| value(line, name).is_some());
                let Some((line, list)) = line.and_then(|line| Some((line, value(line, name)?))) else {
                    continue;
                };
                if list.is_empty() {
                    continue;
                }
                let cpus = if name == BANS[0] { CpuSet::from_mask(list) } else { CpuSet::from_str(list) };
                return match cpus {
                    Ok(cpus) => Self::Named(Fact::new(path, line, cpus)),
                    Err(error) => {
                        reader.refuse(path, format!("{name}: {error}"));
                        Self::Unclear
                    }
                };
            }
        }
        Self::AsTheKernelSays
    }
}

/// What a line of an environment file assigns to `name`, without quotes.
fn value<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    let value = line.trim().strip_prefix(name)?.strip_prefix('=')?.trim();
    Some(value.trim_matches(['"', '\'']))
}

#[cfg(test)]
mod tests {
    use super::{BannedCpus, Reader, Services, value};
    use crate::host::files::tests::scratch;
    use std::fs;

    /// Goal: an assignment is read as systemd reads it. Method: quotes, blanks, a comment, a longer name.
    #[test]
    fn an_assignment_is_read_without_quotes() {
        let list = |line| value(line, "IRQBALANCE_BANNED_CPUS");
        assert_eq!(list("IRQBALANCE_BANNED_CPUS=\"3c\""), Some("3c"));
        assert_eq!(list("  IRQBALANCE_BANNED_CPUS='' "), Some(""));
        assert_eq!(list("#IRQBALANCE_BANNED_CPUS=3c"), None);
        assert_eq!(list("IRQBALANCE_BANNED_CPUSET=3c"), None);
    }

    /// Goal: the CPUs are those that irqbalance would take. Method: settings of both places, in both forms.
    #[test]
    fn banned_cpus_are_those_of_the_settings() {
        for (debian, fedora, expected) in [
            (None, None, "the kernel's"),
            (Some("ENABLED=1\n#IRQBALANCE_BANNED_CPULIST=1\n"), None, "the kernel's"),
            (Some("IRQBALANCE_BANNED_CPULIST=\n"), None, "the kernel's"),
            (Some("IRQBALANCE_BANNED_CPULIST=2-3\nIRQBALANCE_BANNED_CPULIST=\"4-5\"\n"), None, "4-5"),
            (None, Some("IRQBALANCE_BANNED_CPULIST=2-3\nIRQBALANCE_BANNED_CPUS=c\n"), "2-3"),
            (Some("IRQBALANCE_BANNED_CPULIST=7\nIRQBALANCE_BANNED_CPUS=3\n"), None, "0-1"),
            (Some("IRQBALANCE_ARGS=x\n"), Some("IRQBALANCE_BANNED_CPULIST=6"), "6"),
            (Some("IRQBALANCE_BANNED_CPUS=nonsense\n"), None, "unclear"),
        ] {
            let root = scratch("banned");
            for (path, text) in [("etc/default", debian), ("etc/sysconfig", fedora)] {
                fs::create_dir_all(root.join(path)).unwrap();
                text.into_iter()
                    .for_each(|text| fs::write(root.join(path).join("irqbalance"), text).unwrap());
            }
            let mut reader = Reader::new(&root);
            let banned = match BannedCpus::read(&mut reader) {
                BannedCpus::AsTheKernelSays => "the kernel's".to_owned(),
                BannedCpus::Named(list) => list.value.to_string(),
                BannedCpus::Unclear => "unclear".to_owned(),
            };
            assert_eq!(banned, expected, "{debian:?} {fedora:?}");
            assert_eq!(reader.into_parts().0.len(), usize::from(expected == "unclear"));
            fs::remove_dir_all(root).unwrap();
        }
    }

    /// Goal: irqbalance is found among processes, and is said to be missing only where there are some.
    /// Method: no process, the first one, others before and behind it, a name that only begins like it.
    #[test]
    fn irqbalance_is_found_by_its_name() {
        for (processes, expected) in [
            (&[][..], None),
            (&[("700", "irqbalanced")], None),
            (&[("1", "systemd"), ("700", "irqbalance-ui")], Some((false, "/proc/1/comm"))),
            (
                &[("1", "systemd"), ("9", "sshd"), ("80", "irqbalance"), ("700", "cat")],
                Some((true, "/proc/80/comm")),
            ),
            (&[("80", "irqbalance")], Some((true, "/proc/80/comm"))),
        ] {
            let root = scratch("processes");
            fs::create_dir_all(root.join("proc/sys")).unwrap();
            for (process, name) in processes {
                fs::create_dir_all(root.join("proc").join(process)).unwrap();
                fs::write(root.join("proc").join(process).join("comm"), format!("{name}\n")).unwrap();
            }
            let found = Services::read(&mut Reader::new(&root)).irqbalance;
            let found = found.as_ref().map(|fact| (fact.value, fact.path.as_str()));
            assert_eq!(found, expected, "{processes:?}");
            fs::remove_dir_all(root).unwrap();
        }
    }
}

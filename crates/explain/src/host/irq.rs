//! Interrupts: who asks for them, where they may run and where they do.
//!
//! Decides which entries of `/proc/irq` are live (those with an action) and joins them with the
//! counts of `/proc/interrupts`. The *effective* affinity is where the interrupt is delivered; the
//! affinity is only where it may be, and stands in when the effective one is not shown.
//! Not here: which interrupts are managed by the kernel; that is shown to root only (debugfs).
//! Source: Linux v6.12 kernel/irq/proc.c, Documentation/core-api/irq/irq-affinity.rst.

use super::files::{Fact, Reader};
use quietcore_core::{CpuId, CpuSet};
use std::collections::BTreeMap;

/// `/proc/interrupts` has one column per CPU and one row per interrupt.
const INTERRUPTS_BYTES_MAX: u64 = 8 << 20;

#[derive(Debug, Default)]
pub(crate) struct Interrupts {
    /// Where interrupts requested from now on may go.
    pub(crate) default: Option<Fact<CpuSet>>,
    pub(crate) lines: Vec<Interrupt>,
    /// How many TIMER softirqs each CPU ran since boot; CPUs without any are left out.
    pub(crate) timer_softirqs: Option<Fact<Vec<(CpuId, u64)>>>,
}

#[derive(Debug)]
pub(crate) struct Interrupt {
    pub(crate) number: u32,
    /// Names of the drivers' actions, separated by commas; never empty.
    pub(crate) action: String,
    pub(crate) affinity: Option<Fact<CpuSet>>,
    pub(crate) effective: Option<Fact<CpuSet>>,
    /// Deliveries since boot; CPUs without any are left out.
    pub(crate) counts: Vec<(CpuId, u64)>,
}

impl Interrupt {
    /// Where it is delivered, as far as the kernel shows it.
    pub(crate) fn delivered(&self) -> Option<&Fact<CpuSet>> {
        self.effective.as_ref().filter(|fact| !fact.value.is_empty()).or(self.affinity.as_ref())
    }

    /// How often it was delivered to `cpus` since boot.
    pub(crate) fn count_on(&self, cpus: &CpuSet) -> u64 {
        let on = self.counts.iter().filter(|(cpu, _)| cpus.contains(*cpu));
        on.fold(0, |sum, (_, count)| sum.saturating_add(*count))
    }
}

impl Interrupts {
    pub(crate) fn read(reader: &mut Reader) -> Self {
        let mut rows = read_rows(reader);
        let mut lines = Vec::new();
        for name in reader.dirs("/proc/irq") {
            let Ok(number) = name.parse() else { continue };
            let dir = format!("/proc/irq/{number}");
            let (counts, described) = rows.remove(&number).unwrap_or_default();
            let mut action = reader.dirs(&dir).join(",");
            if action.is_empty() {
                action = described;
            }
            if !action.is_empty() {
                let affinity = reader.list(&format!("{dir}/smp_affinity_list"));
                let effective = reader.list(&format!("{dir}/effective_affinity_list"));
                lines.push(Interrupt { number, action, affinity, effective, counts });
            }
        }
        let default = reader.mask("/proc/irq/default_smp_affinity");
        Self { default, lines, timer_softirqs: read_timer_softirqs(reader) }
    }
}

/// The row TIMER of `/proc/softirqs`, whose first line names the CPUs.
fn read_timer_softirqs(reader: &mut Reader) -> Option<Fact<Vec<(CpuId, u64)>>> {
    let path = "/proc/softirqs";
    let is_row = |line: &str| line.trim_start().starts_with("TIMER:");
    let rows = |text: &str| {
        let row = text.lines().skip(1).filter(|line| is_row(line));
        text.lines().take(1).chain(row).collect::<Vec<_>>().join("\n")
    };
    let text = reader.part(path, rows)?;
    let (header, row) = text.split_once('\n')?;
    let counts = row.split_whitespace().skip(1).map(|count| count.parse().ok());
    let of_cpu = header.split_whitespace().map(column_cpu).zip(counts);
    let counts: Option<Vec<(CpuId, u64)>> = of_cpu.map(|(cpu, count)| cpu.zip(count)).collect();
    let Some(counts) = counts.filter(|counts| counts.len() == header.split_whitespace().count()) else {
        reader.refuse(path, "the row TIMER does not have a count for each CPU");
        return None;
    };
    let row = row.split_whitespace().collect::<Vec<_>>().join(" ");
    Some(Fact::new(path, &row, counts.into_iter().filter(|(_, count)| *count > 0).collect()))
}

type Row = (Vec<(CpuId, u64)>, String);

fn read_rows(reader: &mut Reader) -> BTreeMap<u32, Row> {
    let text = reader.text_up_to("/proc/interrupts", INTERRUPTS_BYTES_MAX).unwrap_or_default();
    let mut lines = text.lines();
    let header = lines.next().unwrap_or("");
    let cpus: Vec<Option<CpuId>> = header.split_whitespace().map(column_cpu).collect();
    lines.filter_map(|line| read_row(line, &cpus)).collect()
}

fn column_cpu(title: &str) -> Option<CpuId> {
    CpuId::new(title.strip_prefix("CPU")?.parse().ok()?).ok()
}

/// `NUMBER: COUNT... CHIP HWIRQ-TYPE ACTION, ACTION`; rows without a number are not interrupts.
fn read_row(line: &str, cpus: &[Option<CpuId>]) -> Option<(u32, Row)> {
    let (number, rest) = line.split_once(':')?;
    let number = number.trim().parse().ok()?;
    let mut words = rest.split_whitespace();
    let mut counts = Vec::new();
    for cpu in cpus {
        let count: u64 = words.next()?.parse().ok()?;
        counts.extend(cpu.filter(|_| count > 0).map(|cpu| (cpu, count)));
    }
    // The number of words in between differs by chip; the actions come last.
    let described: Vec<&str> = words.collect();
    let first = described.iter().rposition(|word| !word.ends_with(',')).map_or(0, |last| {
        described[..last].iter().rposition(|word| !word.ends_with(',')).map_or(0, |before| before + 1)
    });
    Some((number, (counts, if described.len() > 2 { described[first..].join(" ") } else { String::new() })))
}

#[cfg(test)]
mod tests {
    use super::{Reader, read_row, read_timer_softirqs};
    use crate::host::files::tests::scratch;
    use quietcore_core::CpuId;
    use std::fs;

    /// Goal: counts and actions of a row. Method: shared, single and idle interrupts, and junk.
    #[test]
    fn a_row_gives_counts_and_actions() {
        let cpu = |number| CpuId::new(number).unwrap();
        let cpus = [Some(cpu(0)), Some(cpu(3))];
        let row = read_row(" 16:   0   1  IO-APIC  16-fasteoi   ehci_hcd:usb1, i801_smbus", &cpus);
        assert_eq!(row, Some((16, (vec![(cpu(3), 1)], "ehci_hcd:usb1, i801_smbus".to_owned()))));
        let row = read_row(" 36:   5   0 PCI-MSIX-0000:00:02.0   1-edge   nvme0q1", &cpus);
        assert_eq!(row, Some((36, (vec![(cpu(0), 5)], "nvme0q1".to_owned()))));
        assert_eq!(read_row(" 9: 0 0 IO-APIC 9-edge", &cpus).map(|row| row.1.1), Some(String::new()));
        assert_eq!(read_row("NMI: 1 2 Non-maskable interrupts", &cpus), None);
        assert_eq!(read_row("7: 1", &cpus), None);
    }
    /// Goal: each count belongs to the CPU of its column. Method: CPUs with a gap, another row before, one
    /// with a name that is longer; rows that are none.
    #[test]
    fn timer_softirqs_are_counted_by_cpu() {
        let root = scratch("softirqs");
        fs::create_dir_all(root.join("proc")).unwrap();
        let header = "        CPU0  CPU2  CPU3\n";
        for (rows, expected, refused) in [
            ("   HI:  1 2 3\nTIMER:  40 0 7\nHRTIMER: 9 9 9\n", Some(vec![(0, 40), (3, 7)]), 0),
            ("HRTIMER: 9 9 9\n", None, 0),
            ("TIMER: 1 x 3\n", None, 1),
            ("TIMER: 1 2\n", None, 1),
            ("", None, 0),
        ] {
            fs::write(root.join("proc/softirqs"), format!("{header}{rows}")).unwrap();
            let mut reader = Reader::new(&root);
            let found = read_timer_softirqs(&mut reader).map(|fact| fact.value);
            let expected = expected.map(|counts: Vec<(u64, u64)>| {
                counts.into_iter().map(|(cpu, count)| (CpuId::new(cpu).unwrap(), count)).collect::<Vec<_>>()
            });
            assert_eq!(found, expected, "{rows:?}");
            assert_eq!(reader.into_parts().0.len(), refused, "{rows:?}");
        }
        fs::remove_dir_all(root).unwrap();
    }
}

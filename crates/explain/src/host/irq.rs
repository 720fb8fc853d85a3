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
        Self { default: reader.mask("/proc/irq/default_smp_affinity"), lines }
    }
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
    use super::read_row;
    use quietcore_core::CpuId;

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
}

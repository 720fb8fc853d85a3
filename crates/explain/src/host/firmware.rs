//! How often the firmware took the machine away: system management interrupts, which no kernel sees.
//!
//! Decides where the count is: register 0x34 of Intel processors since 2008, which counts since the machine
//! was reset. All CPUs enter system management mode together, so one is asked, and not an isolated one: the
//! question interrupts it. Only root may ask, and only if the module `msr` is loaded; else the count is not
//! known.
//! Source: Intel SDM volume 4 (MSR_SMI_COUNT), Linux v6.12 arch/x86/kernel/msr.c.

use super::files::{Fact, Reader};
use quietcore_core::CpuSet;

const SMI_COUNT: u32 = 0x34;
/// The count has so many bits; those above are reserved.
const COUNT_BITS: u64 = 0xffff_ffff;

pub(super) fn read_smi_count(
    reader: &mut Reader,
    is_intel: bool,
    housekeeping: &CpuSet,
) -> Option<Fact<u64>> {
    let cpu = housekeeping.first().filter(|_| is_intel)?;
    let register = reader.register(cpu, SMI_COUNT)?;
    let count = register.value & COUNT_BITS;
    Some(Fact::new(register.path, &format!("register 0x34: {count}"), count))
}

#[cfg(test)]
mod tests {
    use super::{Reader, read_smi_count};
    use crate::host::files::tests::scratch;
    use std::fs;

    /// Goal: the count is that of register 0x34 of a housekeeping CPU, of Intel's alone. Method: copies of a
    /// device, of which one ends too early.
    #[test]
    fn the_count_is_in_its_register() {
        let root = scratch("smi");
        for (cpu, bytes) in [(0, 59), (3, 60)] {
            let folder = root.join(format!("dev/cpu/{cpu}"));
            fs::create_dir_all(&folder).unwrap();
            let mut registers = vec![0xff; 0x34];
            registers.extend(0x7_0000_0102u64.to_le_bytes());
            fs::write(folder.join("msr"), &registers[..bytes]).unwrap();
        }
        let mut reader = Reader::copying(&root);
        let mut count = |is_intel, housekeeping: &str| {
            let fact = read_smi_count(&mut reader, is_intel, &housekeeping.parse().unwrap());
            fact.map(|fact| (fact.path, fact.text, fact.value))
        };
        let told = ("/dev/cpu/3/msr".to_owned(), "register 0x34: 258".to_owned(), 258);
        assert_eq!(count(true, "3-4"), Some(told));
        assert_eq!(count(false, "3"), None);
        assert_eq!(count(true, "0"), None);
        assert_eq!(count(true, "1"), None);
        assert_eq!(count(true, ""), None);
        let (unreadable, copy) = reader.into_parts();
        assert_eq!(unreadable, []);
        assert!(copy.holds("/dev/cpu/3/msr") && !copy.holds("/dev/cpu/0/msr") && !copy.is_public());
        fs::remove_dir_all(root).unwrap();
    }
}

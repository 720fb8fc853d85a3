//! Who chooses the frequency of each CPU, and to what end.
//!
//! Decides how `/sys/devices/system/cpu/cpu*/cpufreq` is read. With processors that choose by themselves
//! (HWP, CPPC) the governor `powersave` means just that, and the energy-performance preference says what
//! counts.
//! Source: Linux v6.12 Documentation/admin-guide/pm/{cpufreq,intel_pstate,amd-pstate}.rst.

use super::files::{Fact, Reader};
use quietcore_core::{CpuId, CpuSet};

/// What chooses one CPU's frequency.
#[derive(Debug)]
pub(crate) struct CpuFrequency {
    pub(crate) cpu: CpuId,
    pub(crate) governor: Fact<String>,
    /// Where the processor takes part in the choice.
    pub(crate) preference: Option<Fact<String>>,
}

impl CpuFrequency {
    pub(crate) fn read(reader: &mut Reader, online: &CpuSet) -> Vec<Self> {
        let mut all = Vec::new();
        for cpu in online.iter() {
            let dir = format!("/sys/devices/system/cpu/cpu{cpu}/cpufreq");
            let Some(governor) = reader.word(&format!("{dir}/scaling_governor")) else { continue };
            let preference = reader.word(&format!("{dir}/energy_performance_preference"));
            all.push(Self { cpu, governor, preference });
        }
        all
    }

    /// Whether nothing but speed counts.
    pub(crate) fn is_for_performance(&self) -> bool {
        let is_speed = |fact: &Fact<String>| fact.value == "performance";
        is_speed(&self.governor) && self.preference.as_ref().is_none_or(is_speed)
    }

    /// The governor, and the preference beside it: `powersave (balance_performance)`.
    pub(crate) fn choice(&self) -> String {
        match &self.preference {
            Some(preference) => format!("{} ({})", self.governor.value, preference.value),
            None => self.governor.value.clone(),
        }
    }
}

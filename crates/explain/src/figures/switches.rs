//! Whether the switches of each CPU follow one another: a switch begins with the task that the one before it
//! ended with. Where it does not, at least one is not in the input, though none was marked as lost: a filter
//! left it out, or the kernel has no event there.

use quietcore_core::CpuId;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct SwitchChain {
    /// By CPU, the task that it runs since its last switch, if it is known.
    running: Vec<Option<i32>>,
    missing: u64,
}

impl SwitchChain {
    /// `sched_switch` on `cpu`, from task `previous` to task `next`.
    pub(super) fn take(&mut self, cpu: CpuId, previous: i32, next: i32) {
        let running = self.of(cpu).replace(next);
        self.missing += u64::from(running.is_some_and(|running| running != previous));
    }

    /// Events were lost on this CPU.
    pub(super) fn forget(&mut self, cpu: CpuId) {
        *self.of(cpu) = None;
    }

    /// How often at least one switch was missing between two.
    pub(super) fn missing(&self) -> u64 {
        self.missing
    }

    fn of(&mut self, cpu: CpuId) -> &mut Option<i32> {
        let cpus = self.running.len().max(cpu.index() + 1);
        self.running.resize(cpus, None);
        &mut self.running[cpu.index()]
    }
}

#[cfg(test)]
mod tests {
    use super::SwitchChain;
    use quietcore_core::CpuId;

    /// Goal: a switch that is missing is told, once, and one that a mark of lost events explains is not.
    /// Method: two CPUs whose switches follow one another, then a CPU that leaves idle without a switch.
    #[test]
    fn a_missing_switch_is_told() {
        let mut chain = SwitchChain::default();
        let [first, second] = [1, 7].map(|cpu| CpuId::new(cpu).expect("a small number"));
        for (cpu, previous, next) in [(second, 3, 0), (first, 0, 9), (first, 9, 0), (second, 0, 4)] {
            chain.take(cpu, previous, next);
        }
        assert_eq!(chain.missing(), 0);
        chain.take(first, 9, 0);
        assert_eq!(chain.missing(), 1);
        chain.take(first, 0, 9);
        assert_eq!(chain.missing(), 1);
        chain.forget(second);
        chain.take(second, 5, 0);
        assert_eq!(chain.missing(), 1);
    }
}

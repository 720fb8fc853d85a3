//! What the program in the kernel and its reader share, as words of 64 bits; `bpf/layout.h` says the same in
//! C.

use core::fmt;
use quietcore_core::CpuId;
use quietcore_core::softirq::Vector;
use quietcore_trace::{DisturbanceSource, Initiation, SystemInterrupt};

/// Numbers of CPUs are smaller.
pub(crate) const CPUS_MAX: usize = 4_096;
/// So many CPUs are watched at most.
pub(crate) const WATCHED_MAX: usize = 512;
/// Kinds of things.
pub(crate) const SOURCES: usize = 8;
/// More rows of a half, for things that find no room: without their causes; and one for each source.
pub(crate) const PLAIN_ROWS: usize = 64;
pub(crate) const MORE_ROWS: usize = PLAIN_ROWS + SOURCES;
/// Durations are counted by powers of two: bucket `n` has those from 2^n ns on, the last one all longer ones.
pub const BUCKETS: usize = 32;
/// Names of tasks and handlers are that long at most, as the kernel keeps them.
pub(crate) const NAME: usize = 16;
/// Frames of a stack that are kept.
pub(crate) const STACK_FRAMES: usize = 32;

/// Words of a row.
pub(crate) const ROW_WORDS: usize = 31;
/// Words of the choice of a CPU, and of what went wrong on it.
pub(crate) const CHOICE_WORDS: usize = 1;
pub(crate) const LOSSES_WORDS: usize = 2;

/// Where the parts of a row are, in words.
pub(crate) mod word {
    pub(crate) const HASH: usize = 0;
    pub(crate) const KEY: usize = 1;
    pub(crate) const COUNT: usize = 11;
    pub(crate) const OWN: usize = 12;
    pub(crate) const LONGEST: usize = 13;
    /// `ready` in the low half, the stack in the high one.
    pub(crate) const READY: usize = 14;
    pub(crate) const BUCKETS: usize = 15;
}

/// Words of a key.
pub(crate) const KEY_WORDS: usize = word::COUNT - word::KEY;

/// A name as the kernel keeps it, filled with zeros.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct FixedName(pub(crate) [u8; NAME]);

impl FixedName {
    /// No name.
    pub(crate) const NONE: Self = Self([0; NAME]);

    pub(crate) fn text(self) -> String {
        let length = self.0.iter().position(|byte| *byte == 0).unwrap_or(NAME);
        String::from_utf8_lossy(&self.0[..length]).into_owned()
    }

    pub(crate) fn is_empty(self) -> bool {
        self.0[0] == 0
    }

    fn of(words: [u64; 2]) -> Self {
        let mut bytes = [0; NAME];
        bytes[..8].copy_from_slice(&words[0].to_ne_bytes());
        bytes[8..].copy_from_slice(&words[1].to_ne_bytes());
        Self(bytes)
    }
}

impl fmt::Debug for FixedName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.text().fmt(f)
    }
}

/// A thing that takes a CPU away.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Thing {
    pub(crate) source: DisturbanceSource,
    /// Of a device's interrupt, a processor's, a softirq; 1 for a thread of the kernel.
    pub(crate) number: u32,
    /// A callback's, a work item's, an NMI handler's.
    pub(crate) function: u64,
    pub(crate) name: FixedName,
}

/// Who started it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct RowCause {
    pub(crate) how: Initiation,
    pub(crate) cpu: CpuId,
    /// What that CPU was doing.
    pub(crate) source: DisturbanceSource,
    pub(crate) number: u32,
    pub(crate) function: u64,
    /// What an interrupt's receiver was to call, or what sent it; 0 for none.
    pub(crate) called: u64,
    /// The control group's number; 0 if it is not known.
    pub(crate) cgroup: u64,
    /// The task on whose behalf; empty if it is not known.
    pub(crate) task: FixedName,
}

/// What is counted by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct RowKey {
    pub(crate) thing: Thing,
    pub(crate) cause: Option<RowCause>,
}

impl RowKey {
    /// What finds no room of its own.
    pub(crate) const fn others(source: DisturbanceSource) -> Self {
        let thing = Thing { source, number: u32::MAX, function: 0, name: FixedName::NONE };
        Self { thing, cause: None }
    }

    /// From the words of a row; `None` if they make none, as when the program is another one.
    pub(crate) fn of(words: &[u64; KEY_WORDS]) -> Option<Self> {
        let thing = Thing {
            source: *DisturbanceSource::ALL.get(words[0] as u32 as usize)?,
            number: (words[0] >> 32) as u32,
            function: words[1],
            name: FixedName::of([words[2], words[3]]),
        };
        let [how, source, cpu_low, cpu_high, ..] = words[4].to_ne_bytes();
        let how = usize::from(how).checked_sub(1).and_then(|how| Initiation::ALL.get(how));
        let cause = match how {
            None => None,
            Some(&how) => Some(RowCause {
                how,
                source: *DisturbanceSource::ALL.get(usize::from(source))?,
                cpu: CpuId::new(u64::from(u16::from_ne_bytes([cpu_low, cpu_high]))).ok()?,
                number: (words[4] >> 32) as u32,
                function: words[5],
                called: words[6],
                cgroup: words[7],
                task: FixedName::of([words[8], words[9]]),
            }),
        };
        Some(Self { thing, cause })
    }
}

/// The name of a processor's interrupt by its number in the kernel's program.
pub(crate) fn processor_interrupt(number: u32) -> Option<&'static str> {
    let interrupts = [
        SystemInterrupt::LocalTimer,
        SystemInterrupt::Reschedule,
        SystemInterrupt::CallFunction,
        SystemInterrupt::CallFunctionSingle,
        SystemInterrupt::IrqWork,
        SystemInterrupt::ThermalApic,
    ];
    interrupts.get(number as usize).map(|interrupt| interrupt.name())
}

/// The name of a softirq by its vector.
pub(crate) fn softirq(number: u32) -> String {
    let vector = u8::try_from(number).ok().and_then(Vector::from_index);
    vector.map_or_else(|| format!("softirq {number}"), |vector| vector.to_string())
}

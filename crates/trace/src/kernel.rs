//! What a kernel version does with timers: the table both `explain` and `doctor` argue from.
//!
//! Source: Linux v6.8, v6.9, v6.12, v6.19 kernel/time/{timer,timer_migration,hrtimer}.c.
//! Not here: distribution back-ports. A vendor kernel may carry the change of a later version
//! under an older number, so a recording always beats this table, and texts say "stock kernels".

use std::fmt;

/// A kernel release: its version, and the string `uname -r` prints.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelRelease {
    /// First number.
    pub major: u32,
    /// Second number.
    pub minor: u32,
    /// The whole string, as given.
    pub text: String,
}

/// Which CPU a stock kernel lets an unpinned wheel timer run on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimerModel {
    /// Up to 6.8: an idle CPU hands a timer to a busy one when it is *armed*
    /// (`kernel.timer_migration=1`), or never (`=0`).
    Push,
    /// 6.9 to 6.18: armed locally, *pulled* at expiry by a busy CPU; isolated CPUs pull too.
    Pull,
    /// From 6.19: as 6.9, but domain-isolated CPUs neither pull nor are pulled.
    PullExcludesIsolated,
}

impl KernelRelease {
    /// Reads a release string; `None` unless it begins with two numbers.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let mut parts = text.split('.');
        let major = parts.next()?.parse().ok()?;
        let rest = parts.next()?;
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let minor = rest[..digits].parse().ok()?;
        Some(Self { major, minor, text: text.to_owned() })
    }

    /// Whether this release is at least `major.minor`.
    #[must_use]
    pub const fn at_least(&self, major: u32, minor: u32) -> bool {
        self.major > major || (self.major == major && self.minor >= minor)
    }

    /// Whether its name says that it has PREEMPT_RT: `6.12.48-rt-amd64`.
    #[must_use]
    pub fn is_preempt_rt(&self) -> bool {
        self.text.split('-').any(|part| {
            part.strip_prefix("rt").is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_digit()))
        })
    }

    /// How stock kernels of this release place unpinned wheel timers.
    #[must_use]
    pub const fn timer_model(&self) -> TimerModel {
        if self.at_least(6, 19) {
            TimerModel::PullExcludesIsolated
        } else if self.at_least(6, 9) {
            TimerModel::Pull
        } else {
            TimerModel::Push
        }
    }
}

impl TimerModel {
    /// What `kernel.timer_migration` still decides on such kernels, as a sentence.
    #[must_use]
    pub const fn sysctl_governs(self) -> &'static str {
        match self {
            Self::Push => "kernel.timer_migration governs wheel timers and hrtimers (up to 6.8).",
            Self::Pull | Self::PullExcludesIsolated => {
                "kernel.timer_migration governs hrtimers only since 6.9; wheel timers are pulled either way."
            }
        }
    }
}

/// The rule and the versions it holds for.
impl fmt::Display for TimerModel {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.pad(match self {
            Self::Push => "push when armed (up to 6.8)",
            Self::Pull => "pull at expiry, isolated CPUs included (6.9 to 6.18)",
            Self::PullExcludesIsolated => "pull at expiry, domain-isolated CPUs excluded (6.19 on)",
        })
    }
}

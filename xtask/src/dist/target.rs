//! The processors that binaries are made for.
//!
//! For this machine's processor Rust brings what links with musl, and musl's own wrapper compiles C. For
//! another one a compiler of a distribution does both: zstd needs nothing of the C library that differs.

use crate::workspace::Failure;

/// A processor that a binary is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DistTarget {
    pub(super) triple: &'static str,
    /// Names of the processor: its own, Debian's.
    pub(super) processor: &'static str,
    pub(super) debian: &'static str,
}

const TARGETS: [DistTarget; 2] = [
    DistTarget { triple: "x86_64-unknown-linux-musl", processor: "x86_64", debian: "amd64" },
    DistTarget { triple: "aarch64-unknown-linux-musl", processor: "aarch64", debian: "arm64" },
];

impl DistTarget {
    /// Whether it is this machine's.
    pub(super) fn is_own(self) -> bool {
        self.processor == std::env::consts::ARCH
    }

    /// Who compiles C for it, and links if it is not this machine's; and Debian's package of that.
    pub(super) fn compiler(self) -> (String, String) {
        if self.is_own() {
            return ("musl-gcc".to_owned(), "musl-tools".to_owned());
        }
        let system = format!("{}-linux-gnu", self.processor);
        (format!("{system}-gcc"), format!("gcc-{}", system.replace('_', "-")))
    }
}

/// The one of this name.
pub(super) fn of_processor(processor: &str) -> Result<DistTarget, Failure> {
    TARGETS.into_iter().find(|target| target.processor == processor).ok_or_else(|| {
        let names = TARGETS.map(|target| target.processor).join(", ");
        Failure::new(format!("no binary is made for {processor}"), format!("name one of {names}"))
    })
}

#[cfg(test)]
mod tests {
    use super::of_processor;

    /// Goal: a processor that no binary is made for is refused with those that there are.
    #[test]
    fn processors_have_names() {
        assert_eq!(of_processor("aarch64").map(|target| target.debian).ok(), Some("arm64"));
        let refused = of_processor("sparc").expect_err("there is none");
        assert_eq!(refused.remedy, "name one of x86_64, aarch64");
    }
}

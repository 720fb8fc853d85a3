//! The processors that binaries are made for.

use crate::workspace::Failure;

/// A processor that a binary is for, and who compiles C for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DistTarget {
    pub(super) triple: &'static str,
    /// Names of the processor: its own, Debian's.
    pub(super) processor: &'static str,
    pub(super) debian: &'static str,
    /// The compiler of C, which links, too, and Debian's package that has it.
    pub(super) compiler: &'static str,
    pub(super) compiler_package: &'static str,
}

const TARGETS: [DistTarget; 2] = [
    DistTarget {
        triple: "x86_64-unknown-linux-musl",
        processor: "x86_64",
        debian: "amd64",
        compiler: "musl-gcc",
        compiler_package: "musl-tools",
    },
    DistTarget {
        triple: "aarch64-unknown-linux-musl",
        processor: "aarch64",
        debian: "arm64",
        compiler: "aarch64-linux-gnu-gcc",
        compiler_package: "gcc-aarch64-linux-gnu",
    },
];

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

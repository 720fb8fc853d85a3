//! What the words behind `cargo xtask ci` ask for.

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct CiOptions {
    /// Every mutant, not only those that the last change asks for; and the steps that need a toolchain of
    /// their own.
    pub(super) all: bool,
    pub(super) skipped: Vec<String>,
}

impl CiOptions {
    pub(super) fn skips(&self, step: &str) -> bool {
        self.skipped.iter().any(|name| name == step)
    }
}

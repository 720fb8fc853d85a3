//! What commands do.

/// What is done to a discipline or to a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TcVerb {
    /// Made; nothing may be there.
    Add,
    /// Changed; it has to be there.
    Change,
    /// Made, in place of what is there.
    Replace,
    /// Removed.
    Delete,
}

impl TcVerb {
    /// As it is typed.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Add => "add",
            Self::Change => "change",
            Self::Replace => "replace",
            Self::Delete => "del",
        }
    }
}

//! What a command that ran to its end found; `main` makes an exit code of it.

/// See the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CommandOutcome {
    /// Nothing of severity warning or above, and no mismatch.
    Fine,
    /// At least one finding of severity warning or above, or a mismatch.
    Found,
    /// Ctrl-C or SIGTERM ended it; everything was cleaned up.
    Interrupted,
    /// A program that was asked for ended with this exit code.
    Exited(u8),
}

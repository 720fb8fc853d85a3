//! Why nothing is watched.

/// Why the kernel counts nothing.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WatchError {
    /// No CPU to watch.
    #[error("there is no CPU to watch: none is isolated, and none was named")]
    NoCpu,
    /// More CPUs than are watched at once, or with higher numbers.
    #[error("{0} CPUs are to be watched, and {max} can be, with numbers below 4096", max = crate::layout::WATCHED_MAX)]
    TooMany(usize),
    /// The kernel has no description of its types.
    #[error(
        "this kernel does not describe its types, which the program needs (CONFIG_DEBUG_INFO_BTF): {0}; `quietcore explain --live` \
         does without"
    )]
    NoTypes(String),
    /// The process may not load programs into the kernel.
    #[error(
        "the kernel takes no program from this process, which needs CAP_BPF and CAP_PERFMON, or root: {0}"
    )]
    NotAllowed(String),
    /// The kernel does not take the program.
    #[error("the kernel does not take the program that counts: {0}")]
    Load(String),
    /// Rights could not be given up.
    #[error("the rights that were needed to begin cannot be given up: {0}")]
    Rights(std::io::Error),
}

//! The recordings that are part of the binary, so that the check-up works from any directory.
//!
//! One load, three kernels, 16 CPUs, isolcpus=domain,1-7,9-15: what the pull model of 6.9 changed
//! for isolated CPUs, and what 6.19 changed back. `recordings/README.md` says how they were made.

/// A recording of a real kernel, compressed.
#[derive(Debug)]
pub struct Bundled {
    /// Its name in `recordings/`.
    pub name: &'static str,
    /// What the reader of a table needs to know of it.
    pub title: &'static str,
    /// Its content, compressed with zstd.
    pub bytes: &'static [u8],
}

macro_rules! recording {
    ($name:literal, $title:literal) => {
        Bundled {
            name: $name,
            title: $title,
            bytes: include_bytes!(concat!("../recordings/", $name, ".txt.zst")),
        }
    };
}

/// The isolation set.
pub const ISOLATION: [Bundled; 4] = [
    recording!("g61-c16-iso", "6.1"),
    recording!("g612-c16-iso", "6.12"),
    recording!("g612-c16-iso-tm0", "6.12, sysctl 0"),
    recording!("g619-c16-iso", "6.19"),
];

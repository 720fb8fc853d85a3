//! Whether a machine records where its timers are armed.

/// Whether timers keep where they were armed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum RecordLocations {
    Yes,
    #[default]
    No,
}

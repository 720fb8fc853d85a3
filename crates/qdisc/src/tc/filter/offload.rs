//! Who carries out a filter: `skip_hw` and `skip_sw`.

use core::fmt::{self, Formatter};

/// Who carries out a filter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FilterOffload {
    /// Hardware if it can, and software.
    #[default]
    Any,
    /// `skip_hw`: software only.
    SkipHardware,
    /// `skip_sw`: hardware only, of which there is none: no packet is for such a filter.
    SkipSoftware,
}

impl FilterOffload {
    pub(super) fn put(self, out: &mut Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Any => "",
            Self::SkipHardware => " skip_hw",
            Self::SkipSoftware => " skip_sw",
        })
    }
}

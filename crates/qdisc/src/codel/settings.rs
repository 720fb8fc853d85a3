//! What CoDel is told, in the words of `tc`.

use quietcore_core::Nanos;

/// What CoDel goes by, alone (`codel`) or for each flow (`fq_codel`). Times count in units of 1024 ns, as in
/// the kernel: what is less is cut off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodelLaw {
    /// A delay below it is fine.
    pub target: Nanos,
    /// For so long no packet's delay may have been fine before the first one is dropped: about a round trip.
    pub interval: Nanos,
    /// Whether packets that can be marked are marked, not dropped.
    pub ecn: bool,
    /// Packets that were delayed for longer are marked.
    pub ce_threshold: Option<Nanos>,
    /// Of which packets `ce_threshold` is.
    pub ce_selector: CeSelector,
    /// As long as no more bytes wait, none is dropped: one packet of the link.
    pub mtu: u32,
}

/// Which packets a threshold marks: those whose traffic class (DSCP and ECN) has `value` in the bits of
/// `mask`; all of them if that is 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CeSelector {
    /// What the bits have to be.
    pub value: u8,
    /// Which bits are looked at.
    pub mask: u8,
}

impl Default for CodelLaw {
    /// As RFC 8289, section 4, recommends, for packets of up to 1514 bytes.
    fn default() -> Self {
        Self {
            target: Nanos(5_000_000),
            interval: Nanos(100_000_000),
            ecn: false,
            ce_threshold: None,
            ce_selector: CeSelector::default(),
            mtu: 1_514,
        }
    }
}

/// What a [`Codel`](crate::Codel) is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodelSettings {
    /// Packets that it holds at most.
    pub limit: u32,
    /// What it goes by.
    pub law: CodelLaw,
}

impl Default for CodelSettings {
    fn default() -> Self {
        Self { limit: 1_000, law: CodelLaw::default() }
    }
}

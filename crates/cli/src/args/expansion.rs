//! How far what is read may expand.

use clap::Args;

/// How far a compressed trace may expand.
#[derive(Debug, Args)]
pub(crate) struct ExpansionArgs {
    /// Refuse a compressed trace that expands to more than this many times its size (16 MiB are always read)
    #[arg(long, value_name = "TIMES", default_value_t = quietcore_trace::EXPANSION_MAX, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_expansion: u32,
}

//! `quietcore netem`: real packets of real programs through quietcore's devices, disciplines and lanes.
//!
//! An instance has devices, each with its transmit queues, and a control socket at which `quietcore tc` says
//! what the disciplines are. Everything is user space: no discipline of the kernel is touched, and settings
//! are written only inside of network namespaces that the instance made.

pub(crate) mod control_socket;
mod executor;
mod figures;
pub(crate) mod instance;
mod joined;
mod namespace;
mod relay;
mod report_json;
pub(crate) mod script;
mod tun;
mod wire;
mod xps;

use crate::error::CliError;
use crate::outcome::Outcome;
use clap::{Args, Subcommand};

#[derive(Debug, Args)]
pub(crate) struct NetemArgs {
    #[command(subcommand)]
    verb: NetemVerb,
}

#[derive(Debug, Subcommand)]
enum NetemVerb {
    /// Two network namespaces with a wire between them that `quietcore tc` shapes (root)
    Tun(tun::TunArgs),
    /// Datagrams of two programs through devices that `quietcore tc` shapes (no privileges)
    Relay(relay::RelayArgs),
}

pub(crate) fn run(args: &NetemArgs) -> Result<Outcome, CliError> {
    match &args.verb {
        NetemVerb::Tun(args) => tun::run(args),
        NetemVerb::Relay(args) => relay::run(args),
    }
}

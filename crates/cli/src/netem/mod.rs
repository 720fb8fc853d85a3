//! `quietcore netem`: real packets of real programs through quietcore's devices, disciplines and lanes.
//!
//! An [instance](quietcore_net::instance) has devices, each with its transmit queues, and a control socket at
//! which `quietcore tc` says what the disciplines are. Everything is user space: no discipline of the kernel
//! is touched, and settings are written only inside of network namespaces that the instance made.

mod command;
mod figures;
mod privileges;
mod relay;
pub(crate) mod script;
mod tcp;
mod tun;
mod unprivileged;

use crate::error::CliError;
use crate::outcome::CommandOutcome;
use clap::{Args, Subcommand};
use quietcore_net::instance::InstanceError;
use quietcore_net::tun::TunError;

#[derive(Debug, Args)]
pub(crate) struct NetemArgs {
    #[command(subcommand)]
    verb: NetemVerb,
}

#[derive(Debug, Subcommand)]
enum NetemVerb {
    /// Two network namespaces with a wire between them that `quietcore tc` shapes (root, or --unprivileged)
    Tun(tun::TunArgs),
    /// Datagrams of two programs through devices that `quietcore tc` shapes, or TCP as toxiproxy (no
    /// privileges)
    Relay(relay::RelayArgs),
}

pub(crate) fn run(args: &NetemArgs) -> Result<CommandOutcome, CliError> {
    match &args.verb {
        NetemVerb::Tun(args) => tun::run(args),
        NetemVerb::Relay(args) => relay::run(args),
    }
}

/// The error, with what to type instead.
impl From<InstanceError> for CliError {
    fn from(error: InstanceError) -> Self {
        let remedy = match &error {
            InstanceError::NameTaken { .. } => "; end it, or give this one another --name".to_owned(),
            InstanceError::Tun(TunError::NamespaceTaken { name }) => {
                format!("; give this instance another --name, or remove it: ip netns del {name}")
            }
            _ => String::new(),
        };
        Self::Live(format!("{error}{remedy}"))
    }
}

#[cfg(test)]
mod tests {
    use crate::error::CliError;
    use quietcore_net::instance::InstanceError;
    use quietcore_net::tun::TunError;

    /// Goal: a name that is taken is told with what to type instead. Method: of an instance, of a network
    /// namespace, and an error without a remedy.
    #[test]
    fn an_error_has_its_remedy() {
        let name = || "lab".to_owned();
        for (error, told) in [
            (
                InstanceError::NameTaken { name: name(), pid: Some(7) },
                "an instance lab runs already (process 7); end it, or give this one another --name",
            ),
            (
                InstanceError::Tun(TunError::NamespaceTaken { name: name() }),
                "the network namespace lab is there already and is not ours; give this instance another \
                 --name, or remove it: ip netns del lab",
            ),
            (
                InstanceError::FolderNotOwn("/f".into()),
                "/f is not a folder of this user: remove it, or set XDG_RUNTIME_DIR",
            ),
        ] {
            assert_eq!(CliError::from(error).to_string(), told);
        }
    }
}

//! `cargo xtask packets [PART]...`: our packet schedulers on network devices, beside the kernel's own.
//!
//! Needs root, /dev/net/tun and iproute2; parts that need more say so. Everything happens in network
//! namespaces that are made for it and removed again. Each part prints what it measured and ends with
//! `ok` or with what is wrong; a part that cannot be run here is an error, not a pass.
//!
//! `link.rs` is a pair of namespaces with a link between, the kernel's (veth) or ours (TUN); `load.rs` sends
//! and receives; `chance.rs` says within which limits a random figure has to be.

mod chance;
mod link;
pub(crate) mod load;
mod ping;
mod seed;
mod shape;
mod throughput;
mod tools;

use crate::workspace::{Failure, exit_code};
use std::process::ExitCode;
use tools::Tools;

/// A part: its name, what it is about, what runs it.
struct Part {
    name: &'static str,
    what: &'static str,
    run: fn(&Tools) -> Result<(), Failure>,
}

const PARTS: [Part; 4] = [
    Part { name: "seed", what: "seed 000's script, eight senders, pinned and movable", run: seed::check },
    Part { name: "ping", what: "delay, jitter and loss that ping sees", run: ping::check },
    Part { name: "shape", what: "tbf and htb, the kernel's and ours under the same load", run: shape::check },
    Part { name: "throughput", what: "one TCP stream through each device", run: throughput::check },
];

/// Runs the parts that `names` names, or all.
pub(crate) fn command(names: &[&str]) -> ExitCode {
    if let Some(unknown) = names.iter().find(|name| !PARTS.iter().any(|part| part.name == **name)) {
        let known = PARTS.iter().map(|part| part.name).collect::<Vec<_>>().join(", ");
        eprintln!("packets: there is no part `{unknown}`; there are {known}");
        return ExitCode::from(2);
    }
    exit_code("packets", run_parts(names))
}

fn run_parts(names: &[&str]) -> Result<(), Failure> {
    let tools = Tools::find()?;
    for part in PARTS.iter().filter(|part| names.is_empty() || names.contains(&part.name)) {
        println!("\n== {}: {}", part.name, part.what);
        (part.run)(&tools)?;
        println!("{}: ok", part.name);
    }
    Ok(())
}

//! Two network namespaces and a link between them, of which one end, `eth1`, is shaped.

use super::tools::Tools;
use crate::workspace::{Failure, capture, run};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// How long a link may take to come up.
const PATIENCE: Duration = Duration::from_secs(20);

/// Whose link it is.
enum Kind<'a> {
    /// A pair of veth devices, shaped by the kernel.
    Kernel,
    /// `quietcore netem tun`.
    Ours { tools: &'a Tools, process: Child },
}

/// A link; dropped, nothing of it is left.
pub(super) struct PacketLink<'a> {
    kind: Kind<'a>,
    name: &'static str,
    /// Of the receiving end.
    pub(super) address: &'static str,
    /// Of the sending end.
    pub(super) from: &'static str,
}

impl<'a> PacketLink<'a> {
    /// Two veth devices.
    pub(super) fn kernel() -> Result<Self, Failure> {
        let link = Self { kind: Kind::Kernel, name: "qck", address: "10.78.0.2", from: "10.78.0.1" };
        link.remove_namespaces();
        for side in ["a", "b"] {
            ip(&format!("netns add {}-{side}", link.name))?;
        }
        ip("-n qck-a link add eth1 type veth peer name eth2 netns qck-b")?;
        for (side, device, address) in [("a", "eth1", link.from), ("b", "eth2", link.address)] {
            let namespace = link.namespace(side);
            ip(&format!("-n {namespace} addr add {address}/24 dev {device}"))?;
            ip(&format!("-n {namespace} link set {device} up"))?;
            ip(&format!("-n {namespace} link set lo up"))?;
        }
        Ok(link)
    }

    /// `quietcore netem tun` with these options.
    pub(super) fn ours(tools: &'a Tools, options: &[&str]) -> Result<Self, Failure> {
        let mut command = Command::new(&tools.quietcore);
        command.args(["netem", "tun", "--name", "qcx"]).args(options);
        let process = command.stdin(Stdio::null()).stdout(Stdio::null()).spawn();
        let remedy = "run this command by hand";
        let process = process
            .map_err(|error| Failure::new(format!("quietcore netem tun does not start: {error}"), remedy))?;
        let kind = Kind::Ours { tools, process };
        let mut link = Self { kind, name: "qcx", address: "10.77.0.2", from: "10.77.0.1" };
        let began = Instant::now();
        while link.tc("qdisc show dev eth1").is_err() {
            let Kind::Ours { process, .. } = &mut link.kind else { break };
            let ended = process.try_wait().ok().flatten();
            if ended.is_some() || began.elapsed() > PATIENCE {
                return Err(Failure::new("quietcore netem tun did not come up", remedy));
            }
            thread::sleep(Duration::from_millis(50));
        }
        Ok(link)
    }

    /// The process that carries the packets, where there is one.
    pub(super) fn process(&self) -> Option<u32> {
        match &self.kind {
            Kind::Kernel => None,
            Kind::Ours { process, .. } => Some(process.id()),
        }
    }

    pub(super) fn namespace(&self, side: &str) -> String {
        format!("{}-{side}", self.name)
    }

    /// A program in the namespace of `side`, not started yet.
    pub(super) fn inside(&self, side: &str, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.namespace(side)]).arg(program);
        command
    }

    /// A line of `tc`, without the name of the program.
    pub(super) fn tc(&self, line: &str) -> Result<String, Failure> {
        let mut command = match &self.kind {
            Kind::Kernel => self.inside("a", "tc"),
            Kind::Ours { tools, .. } => {
                let mut command = Command::new(&tools.quietcore);
                command.arg("tc");
                command
            }
        };
        capture(command.args(line.split_whitespace()))
    }

    pub(super) fn script(&self, lines: &str) -> Result<(), Failure> {
        let mut lines = lines.lines().map(str::trim).filter(|line| !line.is_empty());
        lines.try_for_each(|line| self.tc(line).map(drop))
    }

    fn remove_namespaces(&self) {
        for side in ["a", "b"] {
            let mut command = Command::new("ip");
            command.args(["netns", "del", &self.namespace(side)]);
            // It is not there, as a rule.
            let _ = command.stderr(Stdio::null()).status();
        }
    }
}

impl Drop for PacketLink<'_> {
    fn drop(&mut self) {
        match &mut self.kind {
            Kind::Kernel => self.remove_namespaces(),
            Kind::Ours { process, .. } => {
                let _ = Command::new("kill").arg(process.id().to_string()).status();
                let _ = process.wait();
            }
        }
    }
}

fn ip(words: &str) -> Result<(), Failure> {
    run(Command::new("ip").args(words.split_whitespace()), "run as root, with iproute2 installed")
}

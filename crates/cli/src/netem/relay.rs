//! `quietcore netem relay`: two programs' datagrams through our devices, without privileges.
//!
//! Order of the way up: the name, the machine, the relay, the control socket, the scripts. A failure
//! anywhere, and the end, take it down in the other order and leave nothing.

use super::control_socket::Server;
use super::executor::Executor;
use super::figures::{DeviceFigures, Figures, QueueFigures};
use super::instance::{self, Instance, Record};
use super::script::Script;
use crate::error::CliError;
use crate::outcome::Outcome;
use crate::output;
use crate::signals::Interrupt;
use crate::text::Page;
use clap::Args;
use quietcore::net::{Network, Relay, RelayEnd, RelayOptions, RelaySide, RelayStatistics};
use quietcore::{LaneThreads, Machine};
use quietcore_core::CpuSet;
use serde::Serialize;
use std::path::PathBuf;
use std::sync::Arc;

/// How often a signal is looked for; one that comes while we wait ends the wait at once.
const LOOK: rustix::time::Timespec = rustix::time::Timespec { tv_sec: 0, tv_nsec: 200_000_000 };
const SIDES: [RelaySide; 2] = [RelaySide::A, RelaySide::B];

const MORE: &str = "\
A program at PEER of --a sends to LISTEN of --a and is heard by PEER of --b, as coming from LISTEN of --b; and
back. What comes from anybody else is counted and thrown away, and nothing is sent to anybody else.
Exit codes: 130 after Ctrl-C or SIGTERM; 2 an error, and nothing is left.";

#[derive(Debug, Args)]
#[command(after_help = MORE)]
pub(crate) struct RelayArgs {
    /// Where to listen, and to whom: 127.0.0.1:7000,127.0.0.1:7001; port 0 of LISTEN is any free one
    #[arg(long, value_name = "LISTEN,PEER", value_parser = end)]
    a: RelayEnd,
    /// The other end
    #[arg(long, value_name = "LISTEN,PEER", value_parser = end)]
    b: RelayEnd,
    /// What `quietcore tc` calls the ways from a to b and from b to a
    #[arg(long, value_name = "NAME,NAME", default_value = "a,b", value_parser = devices)]
    dev: [String; 2],
    /// The instance's name
    #[arg(long, value_name = "NAME", default_value = "relay", value_parser = instance::name)]
    name: String,
    /// The CPUs that lanes play [default: those that this process may run on]
    #[arg(long, value_name = "LIST")]
    cpus: Option<CpuSet>,
    /// Where everything random begins: the same seed, the same losses for the same packets
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,
    /// Lines of tc to begin with; `-` is standard input; may be given several times
    #[arg(long, value_name = "FILE")]
    script: Vec<PathBuf>,
    /// Let addresses be of other machines. Anybody who can write a peer's address into a datagram is then
    /// carried to the other peer: between networks of your own only
    #[arg(long)]
    beyond_loopback: bool,
    /// Print the figures as JSON instead of text
    #[arg(long)]
    json: bool,
}

fn end(text: &str) -> Result<RelayEnd, String> {
    let (listen, peer) = text.split_once(',').ok_or("two addresses, as 127.0.0.1:7000,127.0.0.1:7001")?;
    let address = |text: &str| text.trim().parse().map_err(|_| format!("{text:?} is no ADDRESS:PORT"));
    Ok(RelayEnd { listen: address(listen)?, peer: address(peer)? })
}

fn devices(text: &str) -> Result<[String; 2], String> {
    let (one, other) = text.split_once(',').ok_or("two names, as a,b")?;
    if one == other {
        return Err(format!("tc could not tell two devices {one:?} apart"));
    }
    Ok([instance::name(one)?, instance::name(other)?])
}

/// What is printed at the end, schema 1.
#[derive(Debug, Serialize)]
struct RelayFigures {
    #[serde(flatten)]
    figures: Figures,
    ends: [EndFigures; 2],
}

/// Of an end; bytes are the datagrams' own, without headers.
#[derive(Debug, Serialize)]
struct EndFigures {
    listen: String,
    peer: String,
    received: u64,
    received_bytes: u64,
    strangers: u64,
    sent: u64,
    sent_bytes: u64,
    refused: u64,
    unsent: u64,
}

impl EndFigures {
    fn new(end: RelayEnd, statistics: RelayStatistics) -> Self {
        Self {
            listen: end.listen.to_string(),
            peer: end.peer.to_string(),
            received: statistics.received,
            received_bytes: statistics.received_bytes,
            strangers: statistics.strangers,
            sent: statistics.sent,
            sent_bytes: statistics.sent_bytes,
            refused: statistics.refused,
            unsent: statistics.unsent,
        }
    }

    fn sentence(&self) -> String {
        let Self { peer, received, strangers, sent, refused, unsent, .. } = self;
        format!(
            "{peer}: {received} datagrams received, {sent} sent, {refused} refused, {unsent} not sent; \
             {strangers} of strangers thrown away"
        )
    }
}

impl RelayFigures {
    fn text(&self, mut page: Page) -> String {
        page.heading(&format!("ends of {}", self.figures.name));
        for end in &self.ends {
            page.line(&format!("  {}", end.sentence()));
        }
        self.figures.show(&mut page);
        page.into_text()
    }
}

pub(crate) fn run(args: &RelayArgs) -> Result<Outcome, CliError> {
    let cpus = crate::host::lane_cpus(args.cpus.as_ref())?;
    let scripts = args.script.iter().map(|path| Script::read(path)).collect::<Result<Vec<_>, _>>()?;
    let interrupt = Interrupt::install()?;
    let running = Running::start(args, &cpus)?;
    for script in scripts {
        let printed = script.run(|_, line| Ok(running.executor.execute(line)))?;
        output::print(&printed)?;
    }
    // Who reads JSON is not told what to type.
    if !args.json {
        output::print(&running.introduction())?;
    }
    while !interrupt.arrived() {
        let _ = rustix::event::poll(&mut [], Some(&LOOK));
    }
    let figures = running.figures();
    if args.json {
        output::print_json(&figures)?;
    } else {
        output::print(&figures.text(Page::for_stdout()))?;
    }
    Ok(Outcome::Interrupted)
}

/// What has to be taken down, in this order.
struct Running<'a> {
    args: &'a RelayArgs,
    server: Option<Server>,
    executor: Arc<Executor>,
    relay: Option<Relay>,
    machine: &'static Machine,
    instance: Instance,
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.server = None;
        self.args.dev.iter().for_each(|device| self.executor.remove_device(device));
        self.relay = None;
        self.machine.shutdown();
    }
}

impl<'a> Running<'a> {
    fn start(args: &'a RelayArgs, cpus: &CpuSet) -> Result<Self, CliError> {
        let (mut instance, _) = Instance::take(&args.name)?;
        let devices = args.dev.each_ref().map(String::as_str);
        instance.write(&Record::of_this_process(&args.name, &devices, &[]))?;
        let (network, builder) = Network::new(Machine::builder().lanes(cpus.clone()));
        let machine = builder.lane_threads(LaneThreads::new()).start();
        let machine = machine.map_err(|error| CliError::Live(error.to_string()))?;
        let executor = Arc::new(Executor::new(machine, args.seed));
        // From here on a drop takes everything down.
        let mut running = Self { args, server: None, executor, relay: None, machine, instance };
        let options = RelayOptions::new(args.a, args.b);
        let options = if args.beyond_loopback { options.beyond_loopback() } else { options };
        let relay = Relay::start(&network, machine, options);
        let relay = relay.map_err(|error| CliError::Live(error.to_string()))?;
        for (side, name) in SIDES.into_iter().zip(&args.dev) {
            running.executor.add_device(name, relay.device(side)).map_err(CliError::Live)?;
        }
        running.relay = Some(relay);
        let (path, executor) = (running.instance.socket(), Arc::clone(&running.executor));
        let server = Server::start(&path, move |line| executor.execute(line));
        running.server = Some(server.map_err(|error| CliError::Write(path, error))?);
        Ok(running)
    }

    /// An end with the port that it has.
    fn end(&self, side: RelaySide) -> RelayEnd {
        let end = if side == RelaySide::A { self.args.a } else { self.args.b };
        let listen = self.relay.as_ref().map_or(end.listen, |relay| relay.address(side));
        RelayEnd { listen, ..end }
    }

    /// What is there, and what to do with it.
    fn introduction(&self) -> String {
        let [a, b] = SIDES.map(|side| self.end(side));
        let (name, [first, second]) = (&self.args.name, &self.args.dev);
        format!(
            "{name}: on CPUs {lanes}
  {first}  {} to {}, from {} to {}
  {second}  {} to {}, from {} to {}
shape a to b:    quietcore tc qdisc replace dev {first} root netem delay 10ms
look:            quietcore tc -s qdisc show dev {first}
end:             Ctrl-C\n",
            a.peer,
            a.listen,
            b.listen,
            b.peer,
            b.peer,
            b.listen,
            a.listen,
            a.peer,
            lanes = self.machine.lanes()
        )
    }

    fn figures(&self) -> RelayFigures {
        let statistics = |side| self.relay.as_ref().map(|relay| relay.statistics(side)).unwrap_or_default();
        let [a, b] = SIDES.map(statistics);
        // What a device lets go is sent by the other end.
        let unsent = [b.unsent, a.unsent];
        let device = |at: usize| {
            let relay = self.relay.as_ref()?;
            let device = relay.device(SIDES[at]);
            let home = [device.home(0)].into_iter().collect();
            let queue = QueueFigures::new(0, &home, unsent[at], &device.statistics(0));
            Some(DeviceFigures { device: self.args.dev[at].clone(), queues: vec![queue] })
        };
        let devices = [0, 1].into_iter().filter_map(device).collect();
        let figures = Figures { schema: 1, name: self.args.name.clone(), devices };
        let ends = [EndFigures::new(self.end(RelaySide::A), a), EndFigures::new(self.end(RelaySide::B), b)];
        RelayFigures { figures, ends }
    }
}

#[cfg(test)]
mod tests {
    use super::{EndFigures, devices, end};
    use quietcore::net::RelayStatistics;

    /// Goal: ends and names are read as they are told. Method: good ones and bad ones.
    #[test]
    fn ends_and_names() {
        let good = end("127.0.0.1:7000,[::1]:7001").unwrap();
        assert_eq!((good.listen.port(), good.peer.port(), good.peer.is_ipv6()), (7000, 7001, true));
        for bad in ["127.0.0.1:7000", "127.0.0.1,127.0.0.1:7001", "localhost:1,localhost:2", ""] {
            assert!(end(bad).is_err(), "{bad:?}");
        }
        assert_eq!(devices("up,down"), Ok(["up".to_owned(), "down".to_owned()]));
        for bad in ["a", "a,a", "a,", "a,b c"] {
            assert!(devices(bad).is_err(), "{bad:?}");
        }
    }

    /// Goal: an end's figures are a sentence. Method: one of them.
    #[test]
    fn an_end_is_a_sentence() {
        let mut statistics = RelayStatistics::default();
        (statistics.received, statistics.sent, statistics.strangers) = (12, 11, 3);
        let end = EndFigures::new(end("127.0.0.1:7000,127.0.0.1:7001").unwrap(), statistics);
        let sentence = "127.0.0.1:7001: 12 datagrams received, 11 sent, 0 refused, 0 not sent; 3 of strangers \
                        thrown away";
        assert_eq!(end.sentence(), sentence);
    }
}

//! `quietcore netem relay`: two programs' datagrams through our devices, or their streams, without
//! privileges.

use super::figures::{DeviceFigures, Figures, QueueFigures};
use super::privileges;
use super::script::Script;
use super::tcp::{self, TcpArgs, TcpSettings};
use crate::error::CliError;
use crate::outcome::CommandOutcome;
use crate::output;
use crate::signals::SignalFlag;
use crate::text::Page;
use clap::Args;
use quietcore_core::CpuSet;
use quietcore_net::instance::{InstanceName, RelayInstance, RelayInstanceOptions};
use quietcore_net::{RelayEnd, RelayOptions, RelaySide, RelayStatistics};
use serde::Serialize;
use std::path::PathBuf;

/// How often a signal is looked for; one that comes while we wait ends the wait at once.
const LOOK: rustix::time::Timespec = rustix::time::Timespec { tv_sec: 0, tv_nsec: 200_000_000 };
/// In MiB.
const USUAL_MEMORY: u32 = 64;
const SIDES: [RelaySide; 2] = [RelaySide::A, RelaySide::B];

const MORE: &str = "\
A program at PEER of --a sends to LISTEN of --a and is heard by PEER of --b, as coming from LISTEN of --b; and \
back. What comes from any other program is counted and thrown away, and nothing is sent to others.

With --tcp it relays connections instead; what is done to them is typed as toxics (--toxic), or asked of --api \
by the client libraries of toxiproxy, whose words these are. Times are in ms, on the way to the client \
(stream=downstream) unless stream=upstream:
  latency,latency=100,jitter=20       bandwidth,rate=50 (kB/s; 0 cuts)    slow_close,delay=1000
  timeout,timeout=500 (0: for ever)   reset_peer,timeout=500              limit_data,bytes=1000
  slicer,average_size=100,size_variation=50,delay=10 (us)                 loss,percent=1,rto=200
toxicity=0.1 has a tenth of the connections, proxy=NAME those of that --tcp only, name=NAME a name of its own. \
A loss is a stall of rto ms, as a retransmission is for programs. The same seed gives the same delays.

Exit codes: 130 after Ctrl-C or SIGTERM; 2 an error, and nothing is left.";

#[derive(Debug, Args)]
#[command(after_help = MORE)]
pub(crate) struct RelayArgs {
    /// Where to listen, and to whom: 127.0.0.1:7000,127.0.0.1:7001; port 0 of LISTEN is any free one
    #[arg(long, value_name = "LISTEN,PEER", value_parser = end, requires = "b")]
    #[arg(required_unless_present_any = ["tcp", "api"])]
    a: Option<RelayEnd>,
    /// The other end
    #[arg(long, value_name = "LISTEN,PEER", value_parser = end, requires = "a")]
    b: Option<RelayEnd>,
    #[command(flatten)]
    streams: TcpArgs,
    /// What `quietcore tc` calls the ways from a to b and from b to a
    #[arg(long, value_name = "NAME,NAME", default_value = "a,b", value_parser = devices)]
    dev: [String; 2],
    /// The instance's name
    #[arg(long, value_name = "NAME", default_value = "relay")]
    name: InstanceName,
    /// The CPUs that lanes drive [default: those that this process may run on]
    #[arg(long, value_name = "LIST")]
    cpus: Option<CpuSet>,
    /// Where everything random begins: the same seed, the same losses for the same packets
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,
    /// Lines of tc to begin with; `-` is standard input; may be given several times
    #[arg(long, value_name = "FILE")]
    script: Vec<PathBuf>,
    /// Most that the datagrams of one way take, in MiB; more are dropped and counted [default: 64]. With
    /// --tcp what each way of a connection takes; its sender has to wait then [default: 4]
    #[arg(long, value_name = "MIB", value_parser = clap::value_parser!(u32).range(1..))]
    memory: Option<u32>,
    /// Let addresses be of other machines. Any program that can write a peer's address into a datagram, or
    /// connect to a LISTEN, then reaches the other side: between networks of your own only
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
    let name = |text: &str| text.parse::<InstanceName>().map_err(|error| error.to_string());
    Ok([name(one)?.to_string(), name(other)?.to_string()])
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

pub(crate) fn run(args: &RelayArgs) -> Result<CommandOutcome, CliError> {
    let cpus = crate::host::lane_cpus(args.cpus.as_ref())?;
    let scripts = args.script.iter().map(|path| Script::read(path)).collect::<Result<Vec<_>, _>>()?;
    let interrupt = SignalFlag::install()?;
    privileges::give_up_for_relay()?;
    let (Some(a), Some(b), false) = (args.a, args.b, args.streams.is_asked_for()) else {
        let RelayArgs { streams, seed, memory, beyond_loopback, json, .. } = args;
        let (seed, memory, beyond_loopback, json) = (*seed, *memory, *beyond_loopback, *json);
        return tcp::run(streams, &TcpSettings { cpus, seed, memory, beyond_loopback, json }, &interrupt);
    };
    let running =
        Running { args, ends: [a, b], instance: RelayInstance::start(options(args, [a, b], cpus))? };
    for script in scripts {
        let printed = script.run(|_, line| Ok(running.instance.execute(line)))?;
        output::print(&printed)?;
    }
    // A program that reads JSON needs no instructions.
    if !args.json {
        output::print(&running.introduction())?;
    }
    while !interrupt.arrived() {
        let _ = rustix::event::poll(&mut [], Some(&LOOK));
    }
    let figures = running.figures();
    if args.json {
        figures.figures.warn();
        output::print_json(&figures)?;
    } else {
        output::print(&figures.text(Page::for_stdout()))?;
    }
    Ok(CommandOutcome::Interrupted)
}

fn options(args: &RelayArgs, [a, b]: [RelayEnd; 2], cpus: CpuSet) -> RelayInstanceOptions {
    let memory = u64::from(args.memory.unwrap_or(USUAL_MEMORY)) << 20;
    let relay = RelayOptions::new(a, b).memory_max(memory);
    let relay = if args.beyond_loopback { relay.beyond_loopback() } else { relay };
    let mut options = RelayInstanceOptions::new(args.name.clone(), cpus, relay);
    (options.devices, options.seed) = (args.dev.clone(), args.seed);
    options
}

struct Running<'a> {
    args: &'a RelayArgs,
    ends: [RelayEnd; 2],
    instance: RelayInstance,
}

impl Running<'_> {
    /// An end with the port that it has.
    fn end(&self, side: RelaySide) -> RelayEnd {
        let end = self.ends[side as usize];
        RelayEnd { listen: self.instance.relay().address(side), ..end }
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
            lanes = self.instance.lanes()
        )
    }

    fn figures(&self) -> RelayFigures {
        let relay = self.instance.relay();
        let [a, b] = SIDES.map(|side| relay.statistics(side));
        let unsent = unsent_of_devices([a, b]);
        let device = |at: usize| {
            let device = relay.device(SIDES[at]);
            let home = [device.home(0)].into_iter().collect();
            let queue = QueueFigures::new(0, &home, unsent[at], &device.statistics(0));
            DeviceFigures {
                device: self.args.dev[at].clone(),
                lost_ahead: device.lost_ahead(),
                filtered: device.filtered(),
                queues: vec![queue],
            }
        };
        let name = self.args.name.to_string();
        let figures = Figures { schema: 1, name, devices: [0, 1].map(device).into() };
        let ends = [EndFigures::new(self.end(RelaySide::A), a), EndFigures::new(self.end(RelaySide::B), b)];
        RelayFigures { figures, ends }
    }
}

/// What was not sent of that which each device let go: the other end sends it.
const fn unsent_of_devices([a, b]: [RelayStatistics; 2]) -> [u64; 2] {
    [b.unsent, a.unsent]
}

#[cfg(test)]
mod tests {
    use super::{EndFigures, RelayArgs, devices, end, options, unsent_of_devices};
    use clap::{Args, FromArgMatches};
    use quietcore_net::{RelayOptions, RelayStatistics};

    /// Goal: what is typed is what the instance has. Method: no more than must be, and each option with a
    /// value that no other has.
    #[test]
    fn an_instance_is_as_it_is_typed() {
        let [a, b] = ["127.0.0.1:7000,127.0.0.1:7001", "127.0.0.1:7002,127.0.0.1:7003"];
        let usual = RelayOptions::new(end(a).unwrap(), end(b).unwrap());
        let asked = |words: &[&str]| {
            let command = RelayArgs::augment_args(clap::Command::new("relay"));
            let words = [&["relay", "--a", a, "--b", b], words].concat();
            let matches = command.try_get_matches_from(words).expect("options of relay");
            let args = RelayArgs::from_arg_matches(&matches).expect("options of relay");
            let ends = [args.a.expect("an end"), args.b.expect("an end")];
            let options = options(&args, ends, "2-3".parse().expect("a list"));
            assert_eq!(options.lanes.to_string(), "2-3");
            (options.name.to_string(), options.devices, options.seed, format!("{:?}", options.relay))
        };
        let names = |of: [&str; 2]| of.map(str::to_owned);
        let relay = |options: RelayOptions| format!("{options:?}");
        let on_loopback = ("relay".to_owned(), names(["a", "b"]), 1, relay(usual.memory_max(64 << 20)));
        assert_eq!(asked(&[]), on_loopback);
        assert_eq!(asked(&["--json"]), on_loopback);
        let other = asked(&["--name=lab", "--dev=up,down", "--seed=7", "--memory=3", "--beyond-loopback"]);
        let beyond = relay(usual.memory_max(3 << 20).beyond_loopback());
        assert_eq!(other, ("lab".to_owned(), names(["up", "down"]), 7, beyond));
    }

    /// Goal: ends and names are read as they are typed. Method: good ones and bad ones.
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

    /// Goal: an end's figures stand under their names, and as a sentence. Method: no two are the same.
    #[test]
    fn an_end_is_a_sentence() {
        let mut statistics = RelayStatistics::default();
        (statistics.received, statistics.received_bytes, statistics.strangers) = (12, 1_200, 3);
        (statistics.sent, statistics.sent_bytes) = (11, 1_100);
        (statistics.refused, statistics.unsent) = (4, 5);
        let end = EndFigures::new(end("127.0.0.1:7000,127.0.0.1:7001").unwrap(), statistics);
        let sentence = "127.0.0.1:7001: 12 datagrams received, 11 sent, 4 refused, 5 not sent; 3 of strangers \
                        thrown away";
        assert_eq!(end.sentence(), sentence);
        let json = serde_json::json!({
            "listen": "127.0.0.1:7000", "peer": "127.0.0.1:7001", "received": 12, "received_bytes": 1200,
            "strangers": 3, "sent": 11, "sent_bytes": 1100, "refused": 4, "unsent": 5
        });
        assert_eq!(serde_json::to_value(&end).unwrap(), json);
    }

    /// Goal: what was not sent is told of the device that let it go. Method: no two ends are the same.
    #[test]
    fn what_a_device_let_go_is_sent_by_the_other_end() {
        let [mut a, mut b] = [RelayStatistics::default(); 2];
        (a.unsent, a.refused, b.unsent, b.refused) = (3, 5, 8, 13);
        assert_eq!(unsent_of_devices([a, b]), [8, 3]);
    }
}

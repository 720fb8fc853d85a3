//! `quietcore netem relay --tcp`: two programs' TCP connections through what a bad network would do to them.

use crate::error::CliError;
use crate::outcome::CommandOutcome;
use crate::output;
use crate::signals::SignalFlag;
use crate::text::Page;
use clap::Args;
use quietcore_core::CpuSet;
use quietcore_net::stream::{
    ProxyConfig, ProxyCounts, ProxyError, StreamRelay, StreamRelayError, StreamRelayOptions, StreamWay,
    StreamWayCounts, Toxic, ToxicKind,
};
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::str::FromStr;

/// How often a signal is looked for; one that comes while we wait ends the wait at once.
const LOOK: rustix::time::Timespec = rustix::time::Timespec { tv_sec: 0, tv_nsec: 200_000_000 };
/// In MiB.
const USUAL_MEMORY: u32 = 4;

/// Options of a relay of TCP connections.
#[derive(Debug, Args)]
pub(super) struct TcpArgs {
    /// Relay TCP: connections are accepted at LISTEN and made to TARGET; may be given several times
    #[arg(long, value_name = "[NAME=]LISTEN=TARGET", conflicts_with_all = ["a", "b", "dev", "name", "script"])]
    pub(super) tcp: Vec<TcpPair>,
    /// What is done to the connections of --tcp from the beginning; may be given several times
    #[arg(long, value_name = "TYPE[,KEY=VALUE...]", requires = "tcp")]
    pub(super) toxic: Vec<TypedToxic>,
    /// Take toxiproxy's HTTP requests there, which change the relay while it runs; its clients ask
    /// 127.0.0.1:8474. Every program that reaches it may
    #[arg(long, value_name = "HOST:PORT", conflicts_with_all = ["a", "b", "dev", "name", "script"])]
    pub(super) api: Option<String>,
}

impl TcpArgs {
    pub(super) fn is_asked_for(&self) -> bool {
        !self.tcp.is_empty() || self.api.is_some()
    }
}

/// A pair of --tcp.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TcpPair {
    name: Option<String>,
    listen: String,
    target: String,
}

impl FromStr for TcpPair {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts: Vec<&str> = text.split('=').map(str::trim).collect();
        let (name, listen, target) = match *parts {
            [listen, target] => (None, listen, target),
            [name, listen, target] => (Some(name.to_owned()), listen, target),
            _ => return Err("two addresses, as 127.0.0.1:7000=127.0.0.1:5432, or a name before them".into()),
        };
        if [listen, target].iter().any(|address| !address.contains(':')) {
            return Err(format!("{text:?}: an address is HOST:PORT"));
        }
        Ok(Self { name, listen: listen.to_owned(), target: target.to_owned() })
    }
}

/// A toxic of --toxic, and the proxy that it is for, if not for all.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct TypedToxic {
    toxic: Toxic,
    proxy: Option<String>,
}

/// A toxic of this name with these attributes, of which it has all.
fn kind_of(name: &str, attributes: Map<String, Value>) -> Result<ToxicKind, String> {
    if !ToxicKind::NAMES.contains(&name) {
        return Err(format!("{name:?} is none of {}", ToxicKind::NAMES.join(", ")));
    }
    let typed = json!({ "type": name, "attributes": attributes });
    let kind: ToxicKind = serde_json::from_value(typed).map_err(|error| format!("{name}: {error}"))?;
    let known = serde_json::to_value(kind).unwrap_or_default();
    let known = known["attributes"].as_object().cloned().unwrap_or_default();
    match attributes.keys().find(|key| !known.contains_key(*key)) {
        Some(key) => {
            let known: Vec<&str> = known.keys().map(String::as_str).collect();
            Err(format!("{name} has no {key:?}; it has {}, stream, toxicity, name, proxy", known.join(", ")))
        }
        None => Ok(kind),
    }
}

impl FromStr for TypedToxic {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut parts = text.split(',').map(str::trim);
        let kind = parts.next().unwrap_or_default();
        let (mut attributes, mut stream) = (Map::new(), StreamWay::Downstream);
        let (mut name, mut proxy, mut toxicity) = (None, None, 1.0);
        for part in parts {
            let (key, value) = part.split_once('=').ok_or_else(|| format!("{part:?} is no KEY=VALUE"))?;
            match key {
                "stream" => {
                    let way = StreamWay::of(value);
                    stream = way.ok_or_else(|| format!("{value:?} is neither upstream nor downstream"))?;
                }
                "name" => name = Some(value.to_owned()),
                "proxy" => proxy = Some(value.to_owned()),
                "toxicity" => toxicity = value.parse().map_err(|_| format!("{value:?} is no number"))?,
                _ => {
                    let number = serde_json::from_str(value).ok().filter(Value::is_number);
                    let number = number.ok_or_else(|| format!("{key}: {value:?} is no number"))?;
                    attributes.insert(key.to_owned(), number);
                }
            }
        }
        let usual = Toxic::on(stream, kind_of(kind, attributes)?);
        Ok(Self { toxic: Toxic { name: name.unwrap_or(usual.name), toxicity, ..usual }, proxy })
    }
}

impl From<StreamRelayError> for CliError {
    fn from(error: StreamRelayError) -> Self {
        match error {
            StreamRelayError::Interface(error) => Self::Live(format!("--api: {}", told(&error))),
            error => Self::Live(error.to_string()),
        }
    }
}

/// The error, with what to type instead.
fn told(error: &ProxyError) -> String {
    let remedy = match error {
        ProxyError::NotLoopback { .. } => "; if it is to be, add --beyond-loopback",
        _ => "",
    };
    format!("{error}{remedy}")
}

/// What is printed at the end, schema 1.
#[derive(Debug, Serialize)]
struct TcpFigures {
    schema: u32,
    seed: u64,
    proxies: Vec<ProxyFigures>,
}

/// Of the proxies of one name.
#[derive(Debug, Serialize)]
struct ProxyFigures {
    proxy: String,
    connections: u64,
    unreached: u64,
    resets: u64,
    upstream: WayFigures,
    downstream: WayFigures,
}

/// Of one way of all its connections: what came in has gone out or was dropped.
#[derive(Debug, Serialize)]
struct WayFigures {
    bytes_in: u64,
    bytes_out: u64,
    bytes_dropped: u64,
    bytes_held: u64,
    stalls: u64,
}

impl WayFigures {
    const fn new(counts: StreamWayCounts) -> Self {
        Self {
            bytes_in: counts.came,
            bytes_out: counts.went,
            bytes_dropped: counts.dropped,
            bytes_held: counts.held,
            stalls: counts.stalls,
        }
    }

    fn sentence(&self) -> String {
        let Self { bytes_in, bytes_out, bytes_dropped, stalls, .. } = self;
        format!("{bytes_in} bytes in, {bytes_out} out, {bytes_dropped} dropped; {stalls} stalls")
    }
}

impl TcpFigures {
    fn new(seed: u64, counts: Vec<(String, ProxyCounts)>) -> Self {
        let of_proxy = |(proxy, counts): (String, ProxyCounts)| ProxyFigures {
            proxy,
            connections: counts.connections,
            unreached: counts.unreached,
            resets: counts.resets,
            upstream: WayFigures::new(counts.upstream),
            downstream: WayFigures::new(counts.downstream),
        };
        Self { schema: 1, seed, proxies: counts.into_iter().map(of_proxy).collect() }
    }

    fn text(&self, mut page: Page) -> String {
        page.heading("connections of the relay");
        for ProxyFigures { proxy, connections, unreached, resets, upstream, downstream } in &self.proxies {
            let proxy = quietcore_trace::visible(proxy);
            page.line(&format!(
                "  {proxy}: {connections} connections, {resets} reset, {unreached} whose target was not reached"
            ));
            page.line(&format!("    upstream    {}", upstream.sentence()));
            page.line(&format!("    downstream  {}", downstream.sentence()));
        }
        page.into_text()
    }
}

/// What is typed for relays of both kinds.
#[derive(Clone, Debug)]
pub(super) struct TcpSettings {
    pub(super) cpus: CpuSet,
    pub(super) seed: u64,
    /// In MiB.
    pub(super) memory: Option<u32>,
    pub(super) beyond_loopback: bool,
    pub(super) json: bool,
}

fn options(args: &TcpArgs, settings: &TcpSettings) -> StreamRelayOptions {
    let memory = u64::from(settings.memory.unwrap_or(USUAL_MEMORY)) << 20;
    let options = StreamRelayOptions::new(settings.cpus.clone()).seed(settings.seed).memory_max(memory);
    let options = if settings.beyond_loopback { options.beyond_loopback() } else { options };
    match &args.api {
        Some(address) => options.interface(address),
        None => options,
    }
}

/// The proxies that are typed, with their names.
fn proxies(pairs: &[TcpPair]) -> Vec<ProxyConfig> {
    let config = |(number, pair): (usize, &TcpPair)| {
        let name = pair.name.clone().unwrap_or_else(|| format!("tcp{number}"));
        ProxyConfig::new(name, &pair.listen, &pair.target)
    };
    (1..).zip(pairs).map(config).collect()
}

/// Lets this process have as many descriptors as it may: each connection takes two.
fn raise_descriptors() {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    let raised = rustix::process::Rlimit { current: limit.maximum, ..limit };
    // Fewer connections then.
    let _ = rustix::process::setrlimit(rustix::process::Resource::Nofile, raised);
}

/// A relay as it is typed, and what is said of it.
fn started(args: &TcpArgs, settings: &TcpSettings) -> Result<(StreamRelay, String), CliError> {
    let failed = |what: &str, error: &ProxyError| CliError::Live(format!("{what}: {}", told(error)));
    let relay = StreamRelay::start(options(args, settings))?;
    let mut lines = format!("relay: on CPUs {}, seed {}\n", settings.cpus, settings.seed);
    let typed = proxies(&args.tcp);
    for config in &typed {
        let shown = relay.create(config.clone()).map_err(|error| failed("--tcp", &error))?.config;
        lines += &format!("  {}  {} to {}\n", shown.name, shown.listen, shown.upstream);
    }
    for TypedToxic { toxic, proxy } in &args.toxic {
        let names = typed.iter().map(|config| &config.name);
        let names = proxy.as_ref().map_or_else(|| names.collect(), |proxy| vec![proxy]);
        for name in names {
            relay.add_toxic(name, toxic.clone()).map_err(|error| failed("--toxic", &error))?;
        }
    }
    if let Some(address) = relay.interface_address() {
        lines += &format!("look:            curl http://{address}/proxies\n");
    }
    Ok((relay, lines + "end:             Ctrl-C\n"))
}

/// Runs until a signal comes. Privileges are given up already.
pub(super) fn run(
    args: &TcpArgs,
    settings: &TcpSettings,
    interrupt: &SignalFlag,
) -> Result<CommandOutcome, CliError> {
    raise_descriptors();
    let (relay, introduction) = started(args, settings)?;
    // A program that reads JSON needs no instructions.
    if !settings.json {
        output::print(&introduction)?;
    }
    while !interrupt.arrived() {
        let _ = rustix::event::poll(&mut [], Some(&LOOK));
    }
    let figures = TcpFigures::new(settings.seed, relay.end());
    if settings.json {
        output::print_json(&figures)?;
    } else {
        output::print(&figures.text(Page::for_stdout()))?;
    }
    Ok(CommandOutcome::Interrupted)
}

#[cfg(test)]
mod tests {
    use super::{TcpFigures, TcpPair, TypedToxic, proxies};
    use crate::text::Page;
    use quietcore_net::stream::{ProxyCounts, StreamWay, Toxic, ToxicKind};

    /// Goal: pairs are read as they are typed, and have names. Method: with a name and without, and bad ones.
    #[test]
    fn pairs_are_read() {
        let pairs = ["127.0.0.1:1=[::1]:2", "db=localhost:3=localhost:4"];
        let pairs = pairs.map(|text| text.parse::<TcpPair>().expect("a pair"));
        let shown = proxies(&pairs).into_iter().map(|it| [it.name, it.listen, it.upstream].join(" "));
        let expected = ["tcp1 127.0.0.1:1 [::1]:2", "db localhost:3 localhost:4"];
        assert_eq!(shown.collect::<Vec<_>>(), expected);
        for bad in ["", "127.0.0.1:1", "127.0.0.1:1=2", "a=b=c=d"] {
            assert!(bad.parse::<TcpPair>().is_err(), "{bad:?}");
        }
    }

    /// Goal: toxics are read as they are typed; what is unknown is refused with what is known.
    #[test]
    fn toxics_are_read() {
        let read = |text: &str| text.parse::<TypedToxic>();
        let kind = ToxicKind::Latency { latency: 20, jitter: 5 };
        let plain = TypedToxic { toxic: Toxic::new(kind), proxy: None };
        assert_eq!(read("latency,latency=20,jitter=5"), Ok(plain));
        let toxic = Toxic { name: "x".into(), kind, stream: StreamWay::Upstream, toxicity: 0.5 };
        let all = TypedToxic { toxic, proxy: Some("db".into()) };
        let text = "latency, latency=20, jitter=5, stream=upstream, toxicity=0.5, name=x, proxy=db";
        assert_eq!(read(text), Ok(all));
        let loss = Toxic::new(ToxicKind::Loss { percent: 0.5, rto: 200 });
        assert_eq!(read("loss,percent=0.5").map(|typed| typed.toxic), Ok(loss));
        for (bad, why) in [
            ("", "none of latency, "),
            ("down", "none of latency, "),
            ("latency,delay=1", "it has jitter, latency, stream"),
            ("latency,latency=-1", "invalid value"),
            ("latency,latency=x", "no number"),
            ("latency,latency", "no KEY=VALUE"),
            ("latency,stream=x", "neither upstream nor downstream"),
        ] {
            let refused = read(bad).expect_err(bad);
            assert!(refused.contains(why), "{bad:?}: {refused}");
        }
    }

    /// Goal: figures stand under their names, and as sentences. Method: no two are the same.
    #[test]
    fn figures_can_be_read() {
        let mut counts = ProxyCounts::default();
        (counts.connections, counts.unreached, counts.resets) = (7, 1, 2);
        (counts.upstream.came, counts.upstream.went, counts.upstream.dropped) = (100, 60, 40);
        (counts.downstream.came, counts.downstream.went, counts.downstream.stalls) = (3, 3, 5);
        let figures = TcpFigures::new(9, vec![("db".to_owned(), counts)]);
        let text = figures.text(Page::plain());
        let expected = "\
  db: 7 connections, 2 reset, 1 whose target was not reached
    upstream    100 bytes in, 60 out, 40 dropped; 0 stalls
    downstream  3 bytes in, 3 out, 0 dropped; 5 stalls
";
        assert!(text.ends_with(expected), "{text}");
        let json = serde_json::json!({ "schema": 1, "seed": 9, "proxies": [{
            "proxy": "db", "connections": 7, "unreached": 1, "resets": 2,
            "upstream": {
                "bytes_in": 100, "bytes_out": 60, "bytes_dropped": 40, "bytes_held": 0, "stalls": 0
            },
            "downstream": {
                "bytes_in": 3, "bytes_out": 3, "bytes_dropped": 0, "bytes_held": 0, "stalls": 5
            },
        }] });
        assert_eq!(serde_json::to_value(&figures).expect("JSON"), json);
    }
}

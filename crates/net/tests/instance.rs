//! An instance from beginning to end, and what one has that is told nothing.

mod common;

use common::set;
use quietcore_net::instance::{
    InstanceName, InstanceRecord, RelayInstance, RelayInstanceOptions, TunInstanceOptions, ask, running,
};
use quietcore_net::tun::Offload;
use quietcore_net::{RelayEnd, RelayOptions, Watchdog};
use std::net::UdpSocket;

fn name() -> InstanceName {
    format!("test-{}", std::process::id()).parse().expect("a name")
}

fn relay() -> RelayOptions {
    let end = || {
        let peer = UdpSocket::bind("127.0.0.1:0").expect("loopback has ports").local_addr().expect("bound");
        RelayEnd { listen: ([127, 0, 0, 1], 0).into(), peer }
    };
    RelayOptions::new(end(), end())
}

/// Goal: what an instance has that is told nothing is what its documentation says. Method: field by field.
#[test]
fn an_instance_that_is_told_nothing() {
    let options = RelayInstanceOptions::new(name(), set("0"), relay());
    assert_eq!((options.devices, options.seed), (["a".to_owned(), "b".to_owned()], 1));
    let options = TunInstanceOptions::new(name(), set("0"), vec![set("0")]);
    assert_eq!(options.devices, ["eth1".to_owned(), "eth2".to_owned()]);
    assert_eq!((options.mtu, options.link_header, options.memory_max), (1500, 14, 67_108_864));
    assert_eq!((options.watchdog, options.offload, options.seed), (Watchdog::Pinned, Offload::On, 1));
    assert_eq!(format!("{:?}", options.policy), "Pull");
}

/// Goal: an instance takes lines of `tc` while it runs, in its process and from others, and is gone after
/// that. Method: both ways of asking, text and JSON, a second one of its name, and a look at those that run.
#[test]
fn an_instance_runs_until_it_is_dropped() {
    let start = || RelayInstance::start(RelayInstanceOptions::new(name(), set("0"), relay()));
    let found = || running().into_iter().find(|(record, _)| record.name == name().as_str());
    let instance = start().expect("the name is free");
    let (record, mut stream) = found().expect("it runs");
    let InstanceRecord { pid, devices, namespaces, .. } = record;
    assert_eq!((pid, devices, namespaces), (std::process::id(), vec!["a".into(), "b".into()], vec![]));
    let taken = start().expect_err("the name is taken").to_string();
    assert_eq!(taken, format!("an instance {} runs already (process {pid})", name()));
    assert_eq!(instance.execute("tc qdisc add dev b root handle 7: pfifo limit 5"), Ok(String::new()));
    let shown = ask(&mut stream, "tc qdisc show dev b").expect("it answers");
    assert_eq!(shown.as_deref(), Ok("qdisc pfifo 7: root refcnt 2 limit 5p\n"));
    let json = instance.execute("tc -j qdisc show dev b").expect("it can be shown");
    let expected = r#"[{"kind":"pfifo","handle":"7:","root":true,"refcnt":2,"options":{"limit":5}}]"#;
    assert_eq!(json.trim_end(), expected);
    drop(instance);
    assert!(found().is_none(), "it is gone");
    assert!(ask(&mut stream, "tc qdisc show dev b").is_err(), "nobody answers");
    drop(start().expect("the name is free again"));
}

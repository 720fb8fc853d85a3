//! What no line can show: when estimates are told next, and where handles begin again.

use super::state::FIRST_HANDLE;
use super::{Control, estimates};
use crate::{Device, DeviceOptions, Network};
use quietcore_live::{LaneThreads, Machine, Nanos};
use std::sync::Arc;
use std::vec::Vec;

/// Devices `eth0` and `eth1` of a machine of one lane; what a test says of them, and the end of the machine.
fn with_devices(test: impl FnOnce(&Control<Vec<u8>>, &'static Machine)) {
    let (network, builder) = Network::new(Machine::builder().lanes("0".parse().expect("a list")));
    let machine = builder.lane_threads(LaneThreads::new()).start().expect("starts");
    let control = Control::new(machine, 1);
    for name in ["eth0", "eth1"] {
        let device = Device::new(&network, machine, DeviceOptions::new(1), |_, _: Vec<u8>| Ok(()));
        control.add_device(name, Arc::new(device.expect("it has a lane"))).expect("the first");
    }
    test(&control, machine);
    drop(control);
    machine.shutdown();
}

/// Goal: the timer of all estimates is for the one that is due first. Method: one of 250 ms among others of
/// 8 s: of mq, of a discipline, of either class, of another device.
#[test]
fn the_first_estimate_is_next() {
    for fast in 0..5 {
        with_devices(|control, machine| {
            let est = |number| if number == fast { "est 250ms 1sec" } else { "est 8sec 80sec" };
            for line in [
                format!("tc qd add dev eth0 root handle 1: {} mq", est(0)),
                format!("tc qd add dev eth0 parent 1:1 handle 2: {} htb", est(1)),
                format!("tc class add dev eth0 parent 2: classid 2:10 {} htb rate 1gbit", est(2)),
                format!("tc class add dev eth0 parent 2: classid 2:20 {} htb rate 1gbit", est(3)),
                format!("tc qd add dev eth1 root handle 3: {} pfifo", est(4)),
            ] {
                control.execute_line(&line).expect(&line);
            }
            let mut next = None;
            estimates::sample(&control.shared, |at| next = Some(at));
            let latest = Nanos(machine.now().0 + 250_000_000);
            assert!(next.is_some_and(|next| next <= latest), "the estimate {fast}: {next:?} of {latest:?}");
        });
    }
}

/// Goal: behind the last handle they begin again, and none is given twice. Method: the last one, and a
/// discipline that has the first.
#[test]
fn handles_begin_again() {
    with_devices(|control, _| {
        control.shared.state().next_handle = u16::MAX - 1;
        for line in [
            "tc qd add dev eth1 root handle 8001: prio",
            "tc qd add dev eth1 parent 8001:1 pfifo limit 5",
            "tc qd add dev eth1 parent 8001:2 pfifo limit 6",
        ] {
            control.execute_line(line).expect(line);
        }
        assert_eq!(FIRST_HANDLE, 0x8001);
        let shown = control.execute_line("tc qd show dev eth1 parent 8001:1").expect("shown").to_string();
        assert_eq!(shown, "qdisc pfifo fffe: parent 8001:1 limit 5p\n");
        let shown = control.execute_line("tc qd show dev eth1 parent 8001:2").expect("shown").to_string();
        assert_eq!(shown, "qdisc pfifo 8002: parent 8001:2 limit 6p\n");
    });
}

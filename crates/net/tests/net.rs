//! Devices: packets come out once, in order and in time, on the CPU that they belong to.

mod common;

use common::{PATIENCE, cpu, delayed, lanes, set, start, telling};
use quietcore::net::{Device, DeviceOptions, Driver, Network, Watchdog};
use quietcore::qdisc::{Enqueued, Fifo, FifoLimit};
use quietcore::{Cpu, CpuId, Machine, Nanos, Precision, TimerOptions};
use std::collections::HashMap;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// A packet: its queue and its number.
type Sent = (usize, Vec<u8>, Option<CpuId>, Nanos);

/// A driver that tells what it sends, on which CPU and when.
fn driver(machine: &'static Machine) -> (impl Driver<Vec<u8>>, Receiver<Sent>) {
    let (tell, sent) = telling();
    let driver = move |queue, packet| {
        tell((queue, packet, machine.cpu_here(), machine.now()));
        Ok(())
    };
    (driver, sent)
}

fn next(receiver: &Receiver<Sent>) -> Sent {
    receiver.recv_timeout(PATIENCE).expect("it is sent")
}

/// Goal: what is delayed leaves in order, never early, all of it on the CPU of its queue, and is counted.
/// Method: two queues with netem, packets from lanes and from a thread that is none.
#[test]
fn delayed_packets_leave_at_home() {
    const EACH: u64 = 200;
    let (network, machine) = start(lanes("0-1"));
    let (driver, sent) = driver(machine);
    let options = DeviceOptions::new(2).transmit_map(vec![set("0"), set("1")]);
    let device = Arc::new(Device::new(&network, machine, options, driver).expect("it has lanes"));
    for queue in 0..2 {
        device.graft(queue, delayed(machine, 5));
    }
    let mut tasks = Vec::new();
    for lane in 0..2 {
        let device = Arc::clone(&device);
        let task = machine.spawn_on(cpu(lane), async move {
            for number in 0..EACH {
                let at = machine.now().0.to_le_bytes();
                let packet = [&at[..], &number.to_le_bytes(), &[lane as u8]].concat();
                assert_eq!(device.send(packet), Enqueued::Queued);
            }
        });
        tasks.push(task.expect("it runs"));
    }
    for task in tasks {
        quietcore::time::block_on(task).expect("it ends");
    }
    let mut expected = [0, 0];
    for _ in 0..2 * EACH {
        let (queue, packet, on, at) = next(&sent);
        let word = |from: usize| u64::from_le_bytes(packet[from..from + 8].try_into().expect("8 bytes"));
        assert_eq!((usize::from(packet[16]), word(8)), (queue, expected[queue]), "its queue, and in order");
        assert!(at.0 >= word(0) + 5_000_000, "never early");
        // Or by the ksoftirqd of that CPU, which plays none.
        assert!(on.is_none_or(|on| on == cpu(queue as u64)), "at home, not on {on:?}");
        expected[queue] += 1;
    }
    for queue in 0..2 {
        let statistics = device.statistics(queue);
        assert_eq!((statistics.qdisc.sent_packets, statistics.qdisc.qlen), (EACH, 0));
        assert_eq!((statistics.dequeued_at_home, statistics.dequeued_elsewhere), (EACH, 0));
        assert_eq!(statistics.watchdogs_elsewhere, 0);
        assert!(statistics.watchdogs > 0);
    }
    machine.shutdown();
}

/// Goal: a pinned watchdog stays with the CPU that armed it, a movable one is pulled. Method: CPU 1 sends
/// into a queue with delay, arms a movable timer for a later moment, and blocks. When CPU 0 has run that
/// timer, it has run every timer of CPU 1 that it may pull and that was due before: the watchdog, or not.
#[test]
fn a_pinned_watchdog_is_not_pulled() {
    for (watchdog, pulled) in [(Watchdog::Pinned, 0), (Watchdog::Movable, 1)] {
        let (network, builder) = Network::new(lanes("0-1"));
        // The lanes are the test's own threads, and a stall is never declared.
        let machine = builder.stall_after(Duration::MAX).start().expect("starts");
        let (driver, sent) = driver(machine);
        let options = DeviceOptions::new(1).transmit_map(vec![set("1")]).watchdog(watchdog);
        let device = Arc::new(Device::new(&network, machine, options, driver).expect("it has lanes"));
        device.graft(0, delayed(machine, 5));
        let (blocks, blocked) = channel();
        let (returns, returned) = channel::<()>();
        let queue = Arc::clone(&device);
        let lane = thread::spawn(move || {
            let mut lane = Cpu::claim(machine, cpu(1)).expect("a free lane");
            assert_eq!(queue.send(vec![1]), Enqueued::Queued);
            let (later, ran) = channel();
            let exact = TimerOptions::new().precision(Precision::Exact);
            let timer = machine.timer(exact, move |run| later.send(run.cpu()).expect("the test waits"));
            timer.arm_after(Duration::from_millis(10)).expect("it runs");
            lane.block_in_place(|| {
                blocks.send((timer, ran)).expect("the test waits");
                returned.recv().expect("the test says when");
            });
            let until = machine.now().0 + PATIENCE.as_nanos() as u64;
            while queue.statistics(0).qdisc.sent_packets == 0 && machine.now().0 < until {
                lane.turn();
            }
        });
        let mut other = Cpu::claim(machine, cpu(0)).expect("a free lane");
        let (timer, ran) = blocked.recv_timeout(PATIENCE).expect("CPU 1 blocks");
        let until = machine.now().0 + PATIENCE.as_nanos() as u64;
        while timer.is_pending() && machine.now().0 < until {
            other.turn();
        }
        assert_eq!(ran.recv_timeout(PATIENCE).expect("it has run"), cpu(0));
        let statistics = device.statistics(0);
        assert_eq!((statistics.watchdogs, statistics.watchdogs_elsewhere), (pulled, pulled), "{watchdog:?}");
        // A pulled watchdog has the queue run by the CPU that ran it.
        drop(other);
        returns.send(()).expect("CPU 1 waits");
        let (_, packet, on, _) = next(&sent);
        assert_eq!((packet, on), (vec![1], Some(cpu(1 - pulled))), "{watchdog:?}");
        lane.join().expect("no panic");
        machine.shutdown();
    }
}

/// Goal: nothing is lost, doubled or out of order in its queue when many threads send through few queues.
/// Method: four threads, two queues, no delay; the driver refuses now and then.
#[test]
fn senders_race() {
    const EACH: u64 = 5_000;
    let (network, machine) = start(lanes("0-1"));
    let (sender, sent) = channel();
    let state = Mutex::new((sender, 0_u32));
    let driver = move |queue: usize, packet: Vec<u8>| {
        let mut state = state.lock().expect("no panic");
        state.1 += 1;
        if state.1.is_multiple_of(97) {
            return Err(packet);
        }
        state.0.send((queue, packet)).expect("the test waits");
        Ok(())
    };
    let device = Device::new(&network, machine, DeviceOptions::new(2), driver).expect("it has lanes");
    for queue in 0..2 {
        device.graft(queue, Fifo::new(FifoLimit::Packets(u32::MAX)));
    }
    thread::scope(|scope| {
        for thread in 0..4_u64 {
            let device = &device;
            scope.spawn(move || {
                for number in 0..EACH {
                    let packet = [thread.to_le_bytes(), number.to_le_bytes()].concat();
                    assert_eq!(device.send_through((thread % 2) as usize, packet), Enqueued::Queued);
                }
            });
        }
    });
    let mut expected: HashMap<u64, u64> = HashMap::new();
    for _ in 0..4 * EACH {
        let (queue, packet) = sent.recv_timeout(PATIENCE).expect("it is sent");
        let word = |from: usize| u64::from_le_bytes(packet[from..from + 8].try_into().expect("8 bytes"));
        let next = expected.entry(word(0)).or_default();
        assert_eq!((queue as u64, word(8)), (word(0) % 2, *next), "of thread {}", word(0));
        *next += 1;
    }
    let statistics = [device.statistics(0), device.statistics(1)];
    assert_eq!(statistics.map(|it| it.qdisc.sent_packets), [2 * EACH; 2]);
    assert!(statistics.iter().all(|it| it.qdisc.requeues > 0 && it.qdisc.qlen == 0), "{statistics:?}");
    assert!(sent.try_recv().is_err(), "none came twice");
    machine.shutdown();
}

/// Goal: a device that is dropped sends nothing any more, and another discipline begins empty.
#[test]
fn what_is_dropped_is_not_sent() {
    let (network, machine) = start(lanes("0-1"));
    let (driver, sent) = driver(machine);
    let options = DeviceOptions::new(1).watchdog(Watchdog::Movable);
    let device = Device::new(&network, machine, options, driver).expect("it has lanes");
    device.graft(0, delayed(machine, 3));
    assert_eq!(device.send(vec![1]), Enqueued::Queued);
    device.graft(0, delayed(machine, 1));
    assert_eq!(device.statistics(0).qdisc.qlen, 0);
    assert_eq!(device.send(vec![2]), Enqueued::Queued);
    assert_eq!(next(&sent).1, [2]);
    device.graft(0, delayed(machine, 3_600_000));
    assert_eq!(device.send(vec![3]), Enqueued::Queued);
    drop(device);
    // The driver went with the device, and with it the other end.
    assert!(sent.recv_timeout(PATIENCE).is_err());
    machine.shutdown();
}

/// Goal: packets that are sent together take the lock once, those beyond the limit are dropped, and who took
/// them out is counted. Method: a queue of three packets, from its own CPU, which is the first of its two,
/// and from the second.
#[test]
fn packets_sent_together_are_counted() {
    let (network, builder) = Network::new(lanes("0-1"));
    let machine = builder.start().expect("starts");
    let (driver, sent) = driver(machine);
    let options = DeviceOptions::new(2).transmit_map(vec![set("1"), set("0-1")]);
    let device = Device::new(&network, machine, options, driver).expect("it has lanes");
    assert_eq!((device.home(0), device.home(1)), (cpu(1), cpu(0)));
    device.graft(1, Fifo::new(FifoLimit::Packets(3)));
    let locked = device.statistics(1).locked;
    device.send_all_on(cpu(0), 1, (1..=5).map(|number| vec![number]));
    device.send_all_on(cpu(1), 1, [vec![6], vec![7]]);
    device.send_all_on(cpu(1), 1, []);
    for number in [1, 2, 3, 6, 7] {
        let (queue, packet, ..) = next(&sent);
        assert_eq!((queue, packet), (1, vec![number]));
    }
    let counted = device.statistics(1);
    assert_eq!((counted.qdisc.sent_packets, counted.qdisc.dropped, counted.qdisc.qlen), (5, 2, 0));
    assert_eq!((counted.dequeued_at_home, counted.dequeued_elsewhere), (3, 2));
    // To enqueue, and after the driver; for nothing, once.
    assert_eq!((counted.locked - locked, counted.contended, counted.waited), (5, 0, Duration::ZERO));
    device.graft_root(Fifo::new(FifoLimit::Packets(3)));
    device.send_all_on(cpu(1), 1, [vec![8]]);
    let (queue, packet, ..) = next(&sent);
    assert_eq!((queue, packet), (0, vec![8]), "one discipline for all is the first queue's");
    assert_eq!((device.statistics(0).dequeued_at_home, device.statistics(1).qdisc.sent_packets), (1, 0));
    machine.shutdown();
}

/// Goal: a lock that was not free counts as one that was waited for, and for how long. Method: packets are
/// asked for under the lock; meanwhile another thread puts a discipline there, which takes the lock once,
/// until one has come too early.
#[test]
fn waiting_for_the_lock_is_counted() {
    let (network, machine) = start(lanes("0"));
    let device = Device::new(&network, machine, DeviceOptions::new(1), |_, _: Vec<u8>| Ok(()));
    let device = device.expect("it has lanes");
    let (before, mut rounds, began) = (device.statistics(0), 0, machine.now());
    let until = began.0 + PATIENCE.as_nanos() as u64;
    while device.statistics(0).contended == 0 && machine.now().0 < until {
        rounds += 1;
        let ((begins, begun), device) = (channel(), &device);
        thread::scope(|scope| {
            scope.spawn(move || {
                begun.recv().expect("it is locked");
                device.graft(0, Fifo::new(FifoLimit::Packets(3)));
            });
            let none = std::iter::from_fn(|| {
                begins.send(()).expect("the thread waits");
                thread::sleep(Duration::from_millis(5));
                None
            });
            device.send_all_on(cpu(0), 0, none);
        });
    }
    let after = device.statistics(0);
    assert_eq!((after.locked - before.locked, after.contended), (2 * rounds, 1));
    let most = Duration::from_nanos(machine.now().since(began).0);
    assert!(Duration::ZERO < after.waited && after.waited < most, "{:?} of {most:?}", after.waited);
    machine.shutdown();
}

/// Goal: what cannot be is said, with what it is.
#[test]
fn what_cannot_be() {
    let (network, machine) = start(lanes("0-1"));
    let error = |options| {
        let device = Device::new(&network, machine, options, |_, _: Vec<u8>| Ok(()));
        device.err().map(|error| error.to_string())
    };
    assert_eq!(error(DeviceOptions::new(0)).as_deref(), Some("a device has one queue at least"));
    let map = DeviceOptions::new(2).transmit_map(vec![set("0")]);
    assert_eq!(error(map).as_deref(), Some("a transmit map of 1 entries for 2 queues"));
    let map = DeviceOptions::new(2).transmit_map(vec![set("1"), set("77")]);
    assert_eq!(error(map).as_deref(), Some("none of the CPUs 77 of queue 1 is a lane of the machine"));
    machine.shutdown();
    let (network, builder) = Network::new(Machine::builder());
    let machine = builder.start().expect("starts");
    let device = Device::new(&network, machine, DeviceOptions::new(1), |_, _: Vec<u8>| Ok(()));
    let why = "the machine has no lanes: `MachineBuilder::lanes`";
    assert_eq!(device.err().map(|error| error.to_string()).as_deref(), Some(why));
    machine.shutdown();
}

/// Goal: a CPU of several queues sends through the one that a packet's flow picks, one of none through any.
/// Method: three queues, each CPU has two of them; flows that tell a remainder from a quotient.
#[test]
fn flows_pick_a_queue() {
    let (network, machine) = start(lanes("0-1"));
    let options = DeviceOptions::new(3).transmit_map(vec![set("0"), set("0-1"), set("1")]);
    let device = Device::new(&network, machine, options, |_, _: Vec<u8>| Ok(())).expect("it has lanes");
    let queues = |cpu| [4, 5, 6, 7].map(|flow| device.queue_of(cpu, flow));
    assert_eq!(queues(Some(cpu(0))), [0, 1, 0, 1]);
    assert_eq!(queues(Some(cpu(1))), [1, 2, 1, 2]);
    assert_eq!(queues(None), [1, 2, 0, 1]);
    assert_eq!(queues(Some(cpu(9))), [1, 2, 0, 1], "no lane");
    machine.shutdown();
}

/// Goal: a device says at once whether a queue takes pieces of streams whole, whatever its discipline became.
/// Method: as made; another discipline in one queue; one that is changed where it is; one for all queues; and
/// as made again.
#[test]
fn a_device_says_what_may_stay_whole() {
    let (network, machine) = start(lanes("0-1"));
    let (driver, _sent) = driver(machine);
    let device = Device::new(&network, machine, DeviceOptions::new(2), driver).expect("it has lanes");
    let keeps = |device: &Device<Vec<u8>>| [0, 1].map(|queue| device.keeps_whole(queue));
    assert_eq!(keeps(&device), [true, true]);
    device.graft(1, Fifo::new(FifoLimit::Packets(10)));
    assert_eq!(keeps(&device), [true, false]);
    device.with_qdisc(1, |qdisc| {
        let qdisc: &mut dyn std::any::Any = qdisc;
        let fifo = qdisc.downcast_mut::<Fifo<Vec<u8>>>().expect("it was put there");
        fifo.set_limit(FifoLimit::Packets(1_000));
    });
    assert_eq!(keeps(&device), [true, true]);
    device.graft_root(Fifo::new(FifoLimit::Packets(10)));
    assert_eq!(keeps(&device), [false, false], "all go through the first one");
    device.graft_each();
    assert_eq!(keeps(&device), [true, true]);
}

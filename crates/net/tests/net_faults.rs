//! What others do wrong, a driver, a receiver, a program that ends, stays theirs.

mod common;

use common::{PATIENCE, cpu, delayed, lanes, telling};
use quietcore::net::{Device, DeviceOptions, Driver, Network, Received, Receiver};
use quietcore::qdisc::{Fifo, FifoLimit};
use quietcore::{CpuId, Machine, machine::OnPanic};
use std::collections::VecDeque;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, PoisonError};

type Shared = Arc<Device<Vec<u8>>>;

/// A machine with one lane that survives panics.
fn start() -> (Network, &'static Machine) {
    common::start(lanes("0").on_panic(OnPanic::Continue))
}

fn panics(machine: &Machine) -> u64 {
    machine.metrics().sum(|cpu| cpu.panics)
}

/// Goal: a receiver that panics is run again, as its interrupts are off. Method: it panics once, before
/// it turns its interrupts on.
#[test]
fn a_receiver_that_panics_is_run_again() {
    let (network, machine) = start();
    let (told, runs) = channel();
    let told = Mutex::new((told, 0));
    let receive = move |_: CpuId, _: usize| {
        let mut told = told.lock().unwrap_or_else(PoisonError::into_inner);
        told.1 += 1;
        told.0.send(told.1).expect("the test waits");
        assert!(told.1 > 1, "on purpose");
        Received::Done
    };
    let receiver = Receiver::new(&network, machine, cpu(0), receive).expect("it is a lane");
    receiver.schedule();
    assert_eq!(runs.recv_timeout(PATIENCE), Ok(1));
    assert_eq!(runs.recv_timeout(PATIENCE), Ok(2), "again");
    assert_eq!(panics(machine), 1);
    machine.shutdown();
}

/// Goal: who waits behind a receiver that panics is run. Method: the first of three schedules the others on
/// the same list, where they are before its panic.
#[test]
fn who_waits_behind_a_panic_is_run() {
    let (network, machine) = start();
    let (tell, runs) = telling();
    let well = move |_: CpuId, _: usize| {
        tell(());
        Received::Done
    };
    let well = Arc::new(Receiver::new(&network, machine, cpu(0), well).expect("it is a lane"));
    let bad = move |_: CpuId, _: usize| panic!("on purpose");
    let bad = Arc::new(Receiver::new(&network, machine, cpu(0), bad).expect("it is a lane"));
    let (one, other) = (Arc::clone(&bad), Arc::clone(&well));
    // In one run of the softirq both are put on the list of the next.
    let first = move |_: CpuId, _: usize| {
        one.schedule();
        other.schedule();
        Received::Done
    };
    let first = Receiver::new(&network, machine, cpu(0), first).expect("it is a lane");
    first.schedule();
    assert_eq!(runs.recv_timeout(PATIENCE), Ok(()));
    drop((first, bad));
    machine.shutdown();
}

/// Goal: a queue whose driver panicked sends what it still has, and what comes later. Method: a packet that
/// makes it panic, on a lane, in the middle of a batch.
#[test]
fn a_driver_that_panics_is_asked_again() {
    let (network, machine) = start();
    let (tell, sent) = telling();
    let driver = move |_: usize, packet: Vec<u8>| {
        assert!(packet != [1], "on purpose");
        tell(packet[0]);
        Ok(())
    };
    let device = Device::new(&network, machine, DeviceOptions::new(1), driver).expect("it has lanes");
    device.graft(0, delayed(machine, 20));
    for packet in 0..4 {
        assert!(device.send(vec![packet]).is_accepted());
    }
    let came: Vec<u8> = (0..3).map(|_| sent.recv_timeout(PATIENCE).expect("it is sent")).collect();
    assert_eq!(came, [0, 2, 3]);
    assert_eq!(panics(machine), 1);
    device.graft(0, Fifo::new(FifoLimit::Packets(10)));
    assert!(device.send(vec![9]).is_accepted());
    assert_eq!(sent.recv_timeout(PATIENCE), Ok(9));
    machine.shutdown();
}

/// Goal: after its machine's end, a change lets a queue go on without a softirq. Method: a driver that has no
/// room until then.
#[test]
fn a_change_after_the_end_runs_the_queue() {
    let (network, machine) = start();
    let (device, sent) = full_device(&network, machine);
    for _ in 0..7 {
        assert!(device.send(Vec::new()).is_accepted());
    }
    machine.shutdown();
    *sent.lock().expect("no panic") = Some(0);
    device.with_qdisc(0, |_| ());
    assert_eq!(*sent.lock().expect("no panic"), Some(7));
}

/// Says that it has room while the run of the queue does not know yet that it had none.
struct Hasty {
    device: Mutex<Option<Shared>>,
    calls: Mutex<u32>,
}

impl Driver<Vec<u8>> for &'static Hasty {
    fn transmit(&self, _: usize, _: Vec<u8>) -> Result<(), Vec<u8>> {
        unreachable!("batches only")
    }

    fn transmit_batch(&self, queue: usize, batch: &mut VecDeque<Vec<u8>>) {
        let mut calls = self.calls.lock().expect("no panic");
        *calls += 1;
        if *calls > 1 {
            batch.clear();
        }
        let is_full = *calls == 1;
        drop(calls);
        if is_full && let Some(device) = &*self.device.lock().expect("no panic") {
            device.wake_queue(queue);
        }
    }
}

/// Goal: a driver that has room again is asked at once, also if it said so before the queue knew that it had
/// none. Method: it says so before it gives the packets back; the queue's timer is not what ends the wait.
#[test]
fn a_wake_up_during_a_run_is_not_missed() {
    let (network, machine) = common::start(lanes("0"));
    let hasty: &'static Hasty =
        Box::leak(Box::new(Hasty { device: Mutex::default(), calls: Mutex::default() }));
    let device = Device::new(&network, machine, DeviceOptions::new(1), hasty).expect("it has lanes");
    let device = Arc::new(device);
    *hasty.device.lock().expect("no panic") = Some(Arc::clone(&device));
    assert!(device.send(vec![1]).is_accepted());
    while device.statistics(0).qdisc.qlen > 0 || *hasty.calls.lock().expect("no panic") < 2 {
        std::thread::yield_now();
    }
    assert_eq!(device.statistics(0).watchdogs, 0, "no timer was needed");
    *hasty.device.lock().expect("no panic") = None;
    machine.shutdown();
}

/// A device whose driver has no room until a count is put where the second part is; then it counts packets.
fn full_device(network: &Network, machine: &'static Machine) -> (Device<Vec<u8>>, Arc<Mutex<Option<u64>>>) {
    let sent = Arc::new(Mutex::new(None));
    let own = Arc::clone(&sent);
    let driver = move |_: usize, packet: Vec<u8>| match &mut *own.lock().expect("no panic") {
        None => Err(packet),
        Some(count) => {
            *count += 1;
            Ok(())
        }
    };
    let device = Device::new(network, machine, DeviceOptions::new(1), driver).expect("it has lanes");
    device.graft(0, Fifo::new(FifoLimit::Packets(u32::MAX)));
    (device, sent)
}

/// Goal: after a machine's end a device with much to send neither overflows a stack nor is kept alive.
/// Method: a driver that has no room until then, many packets, a small stack.
#[test]
fn a_full_device_outlives_its_machine() {
    const COUNT: u64 = 50_000;
    let (network, machine) = start();
    let (device, sent) = full_device(&network, machine);
    for _ in 0..COUNT {
        assert!(device.send(Vec::new()).is_accepted());
    }
    machine.shutdown();
    *sent.lock().expect("no panic") = Some(0);
    std::thread::scope(|scope| {
        let small = std::thread::Builder::new().stack_size(64 << 10);
        small.spawn_scoped(scope, || device.wake_queue(0)).expect("it starts");
    });
    assert_eq!(*sent.lock().expect("no panic"), Some(COUNT));
    drop(device);
    assert_eq!(Arc::strong_count(&sent), 1, "the driver is gone");
}

/// Goal: a queue that stays on a softirq's list when its machine ends is run to its end by the next wake-up.
/// Method: a task has the queue put on its lane's list and holds the lane until the machine has ended.
#[test]
fn a_queue_on_a_list_outlives_its_machine() {
    const COUNT: u64 = 200;
    let (network, machine) = start();
    let (device, sent) = full_device(&network, machine);
    let device = Arc::new(device);
    let (on_list, goes_on) = (Arc::clone(&device), channel());
    let (told, is_listed) = channel();
    let task = machine.spawn_on(cpu(0), async move {
        for _ in 0..COUNT {
            assert!(on_list.send(Vec::new()).is_accepted());
        }
        on_list.with_qdisc(0, |_| ());
        told.send(()).expect("the test waits");
        goes_on.1.recv_timeout(PATIENCE).expect("the test goes on");
    });
    let task = task.expect("it runs");
    is_listed.recv_timeout(PATIENCE).expect("it is listed");
    std::thread::scope(|scope| {
        scope.spawn(|| machine.shutdown());
        while machine.is_running() {
            std::thread::yield_now();
        }
        goes_on.0.send(()).expect("the task waits");
    });
    drop(task);
    *sent.lock().expect("no panic") = Some(0);
    device.wake_queue(0);
    assert_eq!(*sent.lock().expect("no panic"), Some(COUNT));
}

/// Goal: a dropped device sends nothing, also if its queue waits for its softirq. Method: a task has the
/// queue put on its lane's list, and drops the device before the lane comes to that.
#[test]
fn a_dropped_device_is_silent() {
    let (network, machine) = start();
    let calls = Arc::new(Mutex::new(0));
    let own = Arc::clone(&calls);
    let driver = move |_: usize, packet: Vec<u8>| {
        *own.lock().expect("no panic") += 1;
        Err(packet)
    };
    let device = Device::new(&network, machine, DeviceOptions::new(1), driver).expect("it has lanes");
    let task = machine.spawn_on(cpu(0), async move {
        assert!(device.send(vec![0]).is_accepted());
        device.with_qdisc(0, |_| ());
        drop(device);
    });
    quietcore::time::block_on(task.expect("it runs")).expect("it ends");
    machine.shutdown();
    assert_eq!(*calls.lock().expect("no panic"), 1, "by the sender");
    assert_eq!(Arc::strong_count(&calls), 1, "the driver is gone");
}

/// Goal: what a driver gives back after its queue got another discipline is dropped with the old one's.
/// Method: the discipline is changed while the driver has the packet, which it then refuses.
#[test]
fn what_was_grafted_away_does_not_come_back() {
    let (network, machine) = start();
    let itself: Arc<Mutex<Option<Shared>>> = Arc::default();
    let own = Arc::clone(&itself);
    let driver = move |queue: usize, packet: Vec<u8>| {
        if let Some(device) = own.lock().expect("no panic").take() {
            device.graft(queue, Fifo::new(FifoLimit::Packets(10)));
        }
        Err(packet)
    };
    let device = Device::new(&network, machine, DeviceOptions::new(1), driver).expect("it has lanes");
    let device = Arc::new(device);
    *itself.lock().expect("no panic") = Some(Arc::clone(&device));
    assert!(device.send(vec![0]).is_accepted());
    assert_eq!(device.statistics(0).qdisc, Default::default(), "the new one had nothing");
    machine.shutdown();
}

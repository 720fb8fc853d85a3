//! Receivers: what comes in is taken in once, in order, by the softirq of the CPU that it belongs to.

mod common;

use common::{PATIENCE, cpu, lanes, start, telling};
use quietcore::CpuId;
use quietcore::net::{Device, DeviceError, DeviceOptions, Received, Receiver};
use std::collections::VecDeque;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::thread;

/// Hardware that tells only once that it has packets, until it is emptied.
#[derive(Default)]
struct Ring {
    packets: VecDeque<Vec<u8>>,
    /// The next packet is told.
    is_armed: bool,
}

/// Goal: nothing is lost, doubled or out of order between an interrupt that comes once and the receiver that
/// is emptying the ring; everything is taken in for its CPU, and leaves at home. Method: two rings, a thread
/// each that fills them in bursts, budgets that are used up and that are not.
#[test]
fn what_comes_in_is_taken_in_once() {
    const EACH: u32 = 20_000;
    let (network, machine) = start(lanes("0-1"));
    let (tell, sent) = telling();
    let driver = move |queue: usize, packet: Vec<u8>| {
        tell((queue, packet));
        Ok(())
    };
    let device = Device::new(&network, machine, DeviceOptions::new(2), driver).expect("it has lanes");
    let device = Arc::new(device);
    let mut threads = Vec::new();
    for queue in 0..2 {
        let ring = Arc::new(Mutex::new(Ring { is_armed: true, ..Ring::default() }));
        let (own, device, home) = (Arc::clone(&ring), Arc::clone(&device), device.home(queue));
        let receive = move |on: CpuId, budget: usize| {
            assert_eq!(on, home, "its CPU");
            for _ in 0..budget {
                let mut ring = own.lock().expect("no panic");
                let Some(packet) = ring.packets.pop_front() else {
                    ring.is_armed = true;
                    return Received::Done;
                };
                drop(ring);
                // The fifo is short, and empty: the sender runs it.
                assert!(device.send_on(on, queue, packet).is_accepted());
            }
            Received::More
        };
        let receiver = Receiver::new(&network, machine, home, receive).expect("it is a lane");
        threads.push(thread::spawn(move || {
            for number in 0..EACH {
                let mut ring = ring.lock().expect("no panic");
                ring.packets.push_back(number.to_le_bytes().to_vec());
                let interrupts = std::mem::take(&mut ring.is_armed);
                drop(ring);
                if interrupts {
                    receiver.schedule();
                }
                if number % 1000 == 0 {
                    thread::yield_now();
                }
            }
            receiver
        }));
    }
    let mut expected = [0_u32; 2];
    for _ in 0..2 * EACH {
        let (queue, packet) = sent.recv_timeout(PATIENCE).expect("it is taken in");
        assert_eq!(packet, expected[queue].to_le_bytes(), "queue {queue}: in order");
        expected[queue] += 1;
    }
    for (queue, thread) in threads.into_iter().enumerate() {
        drop(thread.join().expect("no panic"));
        let statistics = device.statistics(queue);
        assert_eq!((statistics.dequeued_at_home, statistics.dequeued_elsewhere), (u64::from(EACH), 0));
        assert_eq!(statistics.dequeued_by_strangers, 0, "also where ksoftirqd runs it");
    }
    machine.shutdown();
}

/// Goal: who was asked while it ran runs again, although it found nothing more. Method: the receiver asks for
/// itself while it runs, which is what an interrupt does that comes at the last moment.
#[test]
fn a_call_during_a_run_is_not_missed() {
    let (network, machine) = start(lanes("0-1"));
    let (told, runs) = channel();
    let told = Mutex::new((told, 0_u32));
    let itself: Arc<Mutex<Option<Arc<Receiver>>>> = Arc::default();
    let own = Arc::clone(&itself);
    let receive = move |_: CpuId, _: usize| {
        let mut told = told.lock().expect("no panic");
        told.1 += 1;
        told.0.send(told.1).expect("the test waits");
        if told.1 < 3 {
            own.lock().expect("no panic").as_ref().expect("it was put there").schedule();
        }
        Received::Done
    };
    let receiver = Arc::new(Receiver::new(&network, machine, cpu(1), receive).expect("it is a lane"));
    *itself.lock().expect("no panic") = Some(Arc::clone(&receiver));
    receiver.schedule();
    for run in 1..=3 {
        assert_eq!(runs.recv_timeout(PATIENCE), Ok(run));
    }
    *itself.lock().expect("no panic") = None;
    machine.shutdown();
    assert!(runs.try_recv().is_err(), "three runs and no more");
}

/// Goal: a receiver has a CPU that is a lane.
#[test]
fn a_receiver_needs_a_lane() {
    let (network, machine) = start(lanes("0-1"));
    let nothing = |_: CpuId, _: usize| Received::Done;
    let refused = Receiver::new(&network, machine, cpu(2), nothing);
    assert_eq!(refused.err(), Some(DeviceError::NoLanes));
    machine.shutdown();
}

//! A QUIC-like sender that paces: it gives its window at once, each datagram with the moment at which it may
//! leave, and `fq` on a device with a pinned watchdog lets one after the other go. Beside it one that sleeps.
//!
//! Asked for is the same from both: one datagram every 600 us. The second one can wait in whole milliseconds
//! only, as a program with a timer wheel or a tick does, and sends what has become due when it wakes; so its
//! datagrams come in bursts. Measured is what a receiver on loopback sees between two datagrams, with all
//! that the host adds to it: that its own thread wakes up late, too, and that CPUs are taken away.
//!
//! ```sh
//! cargo run --release -p quietcore --features net --example pacing
//! ```

use quietcore::net::{Device, DeviceOptions, Network, Watchdog};
use quietcore::qdisc::{Fq, FqSettings, Packet};
use quietcore::{LaneThreads, Machine, Nanos};
use std::error::Error;
use std::net::UdpSocket;
use std::thread;
use std::time::Duration;

type Outcome<T> = Result<T, Box<dyn Error>>;

/// Of one run; 2 MB/s are 1,200 bytes every 600 us.
const DATAGRAMS: u64 = 2_000;
const BYTES: usize = 1_200;
const SPACING: Nanos = Nanos(600_000);
/// Datagrams that a sender has leave to send at once.
const WINDOW: u64 = 10;
/// What the second sender can wait for.
const GRANULE: Nanos = Nanos(1_000_000);
/// Less between two datagrams than this is a burst: a switch would have to keep the second one.
const BURST: Nanos = Nanos(SPACING.0 / 4);
/// A receiver that hears nothing for so long gives up.
const SILENCE: Duration = Duration::from_secs(2);

/// A datagram of a connection, and when it may leave.
#[derive(Debug)]
struct Datagram {
    number: u64,
    departure: Nanos,
}

impl Packet for Datagram {
    fn len(&self) -> u32 {
        BYTES as u32
    }

    fn flow(&self) -> u64 {
        7 // the one connection that there is
    }

    fn departure(&self) -> Option<Nanos> {
        Some(self.departure)
    }
}

fn payload(number: u64) -> [u8; BYTES] {
    let mut payload = [0; BYTES];
    payload[..8].copy_from_slice(&number.to_le_bytes());
    payload
}

/// Two sockets that know each other.
fn pair() -> Outcome<[UdpSocket; 2]> {
    let [one, other] = [UdpSocket::bind("127.0.0.1:0")?, UdpSocket::bind("127.0.0.1:0")?];
    one.connect(other.local_addr()?)?;
    other.connect(one.local_addr()?)?;
    other.set_read_timeout(Some(SILENCE))?;
    Ok([one, other])
}

fn wait_until(machine: &Machine, moment: Nanos) {
    thread::sleep(Duration::from_nanos(moment.since(machine.now()).0));
}

/// Gives each window to the device ahead of its time, and sleeps until the next one.
fn paced(machine: &'static Machine, network: &Network, socket: UdpSocket) -> Outcome<()> {
    let driver = move |_queue: usize, datagram: Datagram| {
        // Loopback refuses only when the receiver is gone.
        let _ = socket.send(&payload(datagram.number));
        Ok(())
    };
    let device = Device::new(network, machine, DeviceOptions::new(1).watchdog(Watchdog::Pinned), driver)?;
    device.graft(0, Fq::new(FqSettings { timer_slack: Nanos(0), ..FqSettings::default() })?);
    let window_lasts = WINDOW * SPACING.0;
    let begin = machine.now().0 + 2 * window_lasts;
    for window in 0..DATAGRAMS / WINDOW {
        let opens = begin + window * window_lasts;
        wait_until(machine, Nanos(opens - window_lasts));
        for place in 0..WINDOW {
            let (number, departure) = (window * WINDOW + place, Nanos(opens + place * SPACING.0));
            if !device.send(Datagram { number, departure }).is_accepted() {
                return Err("the device dropped a datagram".into());
            }
        }
    }
    wait_until(machine, Nanos(begin + DATAGRAMS * SPACING.0));
    // A host that is late is waited for.
    while device.statistics(0).qdisc.qlen > 0 {
        thread::sleep(Duration::from_millis(1));
    }
    Ok(())
}

/// Sleeps a whole number of milliseconds, and sends what is due then.
fn slept(machine: &Machine, socket: &UdpSocket) -> Outcome<()> {
    let begin = machine.now().0 + GRANULE.0;
    let (mut number, mut wake) = (0, begin);
    while number < DATAGRAMS {
        wait_until(machine, Nanos(wake));
        let now = machine.now().0;
        while number < DATAGRAMS && begin + number * SPACING.0 <= now {
            socket.send(&payload(number))?;
            number += 1;
        }
        wake += GRANULE.0;
    }
    Ok(())
}

/// What was between two datagrams, each time.
fn received(machine: &Machine, socket: &UdpSocket) -> Vec<Nanos> {
    let (mut buffer, mut last, mut gaps) = ([0; BYTES], None::<Nanos>, Vec::new());
    while gaps.len() as u64 + 1 < DATAGRAMS && socket.recv(&mut buffer).is_ok() {
        let now = machine.now();
        gaps.extend(last.map(|last| now.since(last)));
        last = Some(now);
    }
    gaps
}

fn measured(
    machine: &'static Machine,
    socket: UdpSocket,
    send: impl FnOnce() -> Outcome<()>,
) -> Outcome<Vec<Nanos>> {
    let receiver = thread::spawn(move || received(machine, &socket));
    send()?;
    receiver.join().map_err(|_| "the receiver panicked".into())
}

fn show(name: &str, mut gaps: Vec<Nanos>) -> Outcome<()> {
    if gaps.is_empty() {
        return Err(format!("{name}: nothing arrived").into());
    }
    gaps.sort_unstable();
    let micros = |gap: Nanos| gap.0 as f64 / 1e3;
    let at = |percent: usize| micros(gaps[(gaps.len() - 1) * percent / 100]);
    let mut off: Vec<u64> = gaps.iter().map(|gap| gap.0.abs_diff(SPACING.0)).collect();
    off.sort_unstable();
    let off = micros(Nanos(off[(off.len() - 1) * 99 / 100]));
    let bursts = gaps.iter().filter(|gap| **gap < BURST).count() * 100 / gaps.len();
    let (median, most) = (at(50), at(99));
    println!("{name:<22}{median:>10.1}{most:>10.1}{off:>16.1}{bursts:>9} %{:>10}", gaps.len() + 1);
    Ok(())
}

fn main() -> Outcome<()> {
    let (network, builder) = Network::new(Machine::builder().lanes("0".parse()?));
    let machine = builder.lane_threads(LaneThreads::new()).start()?;
    println!("asked for: {BYTES} bytes every {} us; measured at the receiver, in us:", SPACING.0 / 1_000);
    let heads = ["between: p50", "p99", "off by: p99", "bursts", "arrived"];
    println!(
        "{:<18}{:>14}{:>10}{:>16}{:>11}{:>10}",
        "sender", heads[0], heads[1], heads[2], heads[3], heads[4]
    );
    let [socket, other] = pair()?;
    show("fq, departure times", measured(machine, other, || paced(machine, &network, socket))?)?;
    let [socket, other] = pair()?;
    show("sleeps in 1 ms steps", measured(machine, other, || slept(machine, &socket))?)?;
    machine.shutdown();
    Ok(())
}

//! The sender and the receiver: scripted UDP packets, told apart by source port.
//!
//! `xtask packets-load send SCRIPT FROM TO` and `xtask packets-load receive AT COUNT` run inside of
//! namespaces. A *class* is a range of source ports; each has several sockets, since the kernel charges
//! what waits in its own queues to the socket that sent it.

use std::fmt::Write as _;
use std::io::ErrorKind;
use std::net::UdpSocket;
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

/// Where everything is sent to.
pub(super) const PORT: u16 = 7000;
/// The first source port; each class has so many from there.
pub(super) const FIRST_PORT: u16 = 0x4000;
/// Source ports, and sockets, of a class.
pub(super) const PORTS: u16 = 0x40;
/// After so long without a packet the receiver ends.
const SILENCE: Duration = Duration::from_secs(3);
/// Packets of the script `order`.
pub(super) const ORDERED: usize = 10_000;

/// What is sent at a time: after a rest, of which class, how many bytes of payload.
#[derive(Clone, Copy, Debug)]
struct Step {
    rest: Duration,
    class: u16,
    bytes: usize,
}

/// Numbers that look random, the same in every run (a linear congruential generator).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

/// Four classes: one packet each, so that no class has tokens of its own left; then a heap of the first,
/// behind which all others meet in the queue; then all the others, mixed.
fn ordered() -> Vec<Step> {
    let mut numbers = Numbers(7);
    let alone = (0..4).map(|class| Step { rest: Duration::from_millis(100), class, bytes: 1_400 });
    let mut steps: Vec<Step> = alone.collect();
    steps.extend((0..900).map(|_| Step { rest: Duration::ZERO, class: 0, bytes: 1_000 }));
    while steps.len() < ORDERED {
        let (class, bytes) = (1 + numbers.below(3) as u16, 200 + numbers.below(800) as usize);
        steps.push(Step { rest: Duration::ZERO, class, bytes });
    }
    steps
}

/// Two classes that both want more than there is, for so many seconds.
fn steady(seconds: u64) -> Vec<Step> {
    // A packet of each class every 500 us: 16 Mbit/s each.
    let pairs = (0..seconds * 2_000).flat_map(|_| {
        let rest = Duration::from_micros(500);
        [Step { rest, class: 0, bytes: 1_000 }, Step { rest: Duration::ZERO, class: 1, bytes: 1_000 }]
    });
    pairs.collect()
}

/// Runs the program that `words` ask for.
pub(crate) fn command(words: &[&str]) -> ExitCode {
    let done = match words {
        ["send", script, from, to] => send(script, from, to),
        ["receive", at, count] => receive(at, count),
        _ => Err("packets-load send SCRIPT FROM TO | receive AT COUNT".to_owned()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("packets-load: {problem}");
            ExitCode::FAILURE
        }
    }
}

fn send(script: &str, from: &str, to: &str) -> Result<(), String> {
    let steps = match script.split_once(':') {
        None if script == "order" => ordered(),
        Some(("steady", seconds)) => steady(seconds.parse().map_err(|_| "seconds".to_owned())?),
        _ => return Err(format!("no script `{script}`")),
    };
    let classes = steps.iter().map(|step| step.class + 1).max().unwrap_or(0);
    let socket = |port: u16| -> Result<UdpSocket, String> {
        let told = |error| format!("{from}:{port}: {error}");
        let socket = UdpSocket::bind((from, port)).map_err(told)?;
        socket.connect((to, PORT)).map_err(told)?;
        socket.set_nonblocking(true).map_err(told)?;
        Ok(socket)
    };
    let sockets =
        (FIRST_PORT..FIRST_PORT + classes * PORTS).map(socket).collect::<Result<Vec<_>, String>>()?;
    let (mut refused, mut next, mut turn) = (0, Instant::now(), vec![0; usize::from(classes)]);
    for (number, step) in (0_u32..).zip(&steps) {
        next += step.rest;
        if !step.rest.is_zero() {
            thread::sleep(next.saturating_duration_since(Instant::now()));
        }
        let mut payload = vec![0; step.bytes];
        payload[..2].copy_from_slice(&step.class.to_be_bytes());
        payload[2..6].copy_from_slice(&number.to_be_bytes());
        let class = usize::from(step.class);
        let socket = &sockets[class * usize::from(PORTS) + turn[class]];
        turn[class] = (turn[class] + 1) % usize::from(PORTS);
        match socket.send(&payload) {
            Ok(_) => {}
            // Its own queue, or a socket's buffer, is full: a loss like any other.
            Err(error)
                if matches!(error.kind(), ErrorKind::WouldBlock) || error.raw_os_error() == Some(105) =>
            {
                refused += 1;
            }
            Err(error) => return Err(format!("send: {error}")),
        }
    }
    println!("sent {} refused {refused}", steps.len() - refused);
    Ok(())
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PacketArrival {
    pub(super) class: u16,
    pub(super) number: u32,
    pub(super) bytes: usize,
    /// Microseconds since the receiver began.
    pub(super) at: u64,
}

fn receive(at: &str, count: &str) -> Result<(), String> {
    let count: usize = count.parse().map_err(|_| format!("a number of packets, not {count}"))?;
    let told = |error| format!("{at}:{PORT}: {error}");
    let socket = UdpSocket::bind((at, PORT)).map_err(told)?;
    println!("ready");
    let (began, mut buffer, mut text) = (Instant::now(), [0; 2_048], String::new());
    for _ in 0..count {
        socket.set_read_timeout(Some(if text.is_empty() { 4 * SILENCE } else { SILENCE })).map_err(told)?;
        let Ok(bytes) = socket.recv(&mut buffer) else { break };
        let class = u16::from_be_bytes([buffer[0], buffer[1]]);
        let number = u32::from_be_bytes([buffer[2], buffer[3], buffer[4], buffer[5]]);
        let _ = writeln!(text, "{class} {number} {bytes} {}", began.elapsed().as_micros());
    }
    print!("{text}");
    Ok(())
}

/// What the receiver printed.
pub(super) fn arrivals(text: &str) -> Vec<PacketArrival> {
    let arrival = |line: &str| {
        let mut words = line.split(' ').map(str::parse::<u64>);
        let mut word = || words.next()?.ok();
        let (class, number, bytes, at) = (word()?, word()?, word()?, word()?);
        let (class, number) = (u16::try_from(class).ok()?, u32::try_from(number).ok()?);
        Some(PacketArrival { class, number, bytes: usize::try_from(bytes).ok()?, at })
    };
    text.lines().filter_map(arrival).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: both get the same packets. Method: the scripts, twice; what a receiver prints is read back.
    #[test]
    fn scripts_are_the_same_every_time() {
        let bytes = |steps: &[Step]| steps.iter().map(|step| step.bytes).sum::<usize>();
        assert_eq!(ordered().len(), ORDERED);
        assert_eq!(bytes(&ordered()), bytes(&ordered()));
        assert!((0..4).all(|class| ordered().iter().filter(|step| step.class == class).count() > 800));
        assert_eq!(steady(2).len(), 8_000);
        let arrival = PacketArrival { class: 1, number: 7, bytes: 200, at: 12_345 };
        assert_eq!(arrivals("ready\n1 7 200 12345\n"), [arrival]);
    }
}

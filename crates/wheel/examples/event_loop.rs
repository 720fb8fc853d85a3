//! An epoll loop with a million idle timeouts.
//!
//! `cargo run --release -p quietcore-wheel --example event_loop [CONNECTIONS]`
//!
//! A thread plays the peers: for two seconds it writes the numbers of random connections into a socket.
//! The loop reads them; each one re-arms the idle timeout of that connection. A connection that was quiet
//! for its whole timeout is closed. The loop sleeps exactly until the wheel's next expiry, or until there
//! is something to read. At the end it prints what it did and how late the timeouts were.
//!
//! One thread, one wheel, no lock. The peers' numbers are the only thing that crosses threads.

use quietcore_wheel::{Slot, SlotKey, Tick, Timers};
use rustix::event::epoll;
use rustix::fd::OwnedFd;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use std::error::Error;
use std::time::{Duration, Instant};

/// How long a connection may be quiet: 1 to 3 s, so that not all end together.
fn idle_ticks(connection: u32) -> u64 {
    1000 + u64::from(connection % 2000)
}

/// Milliseconds since the loop began. A timer for this tick runs at the next one or later: never early.
fn present(begin: Instant) -> Tick {
    Tick(begin.elapsed().as_millis() as u64)
}

/// What the loop did.
#[derive(Debug, Default)]
struct Tally {
    wake_ups: u64,
    re_arms: u64,
    closed: u64,
    late_total: u64,
    late_max: u64,
}

fn main() -> Result<(), Box<dyn Error>> {
    let count: u32 = std::env::args().nth(1).map_or(Ok(1_000_000), |text| text.parse())?;
    let (ours, theirs) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::NONBLOCK, None)?;
    let peers = std::thread::spawn(move || play_peers(&theirs, count));
    let begin = Instant::now();
    let tally = run_loop(&ours, count, begin)?;
    peers.join().map_err(|_| "the peers' thread panicked")??;
    println!("{count} connections, {:.1} s", begin.elapsed().as_secs_f64());
    println!(
        "  {} messages re-armed a timeout, {} timeouts closed a connection",
        tally.re_arms, tally.closed
    );
    println!("  {} wake-ups of the loop", tally.wake_ups);
    let mean = tally.late_total as f64 / tally.closed.max(1) as f64;
    println!("  late by {mean:.1} ms on average, {} ms at most; never early", tally.late_max);
    println!("  (coarse timers of 1 to 3 s share buckets of 64 ms; tick precision would be 1 ms late)");
    Ok(())
}

fn run_loop(socket: &OwnedFd, count: u32, begin: Instant) -> Result<Tally, Box<dyn Error>> {
    let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    epoll::add(&epoll, socket, epoll::EventData::new_u64(0), epoll::EventFlags::IN)?;
    let mut timers = Timers::new(present(begin), Vec::<Slot<u32>>::new());
    let arm = |connection: u32| timers.arm_growing(Tick(idle_ticks(connection)), connection);
    let keys: Vec<SlotKey> = (0..count).map(arm).collect();

    let mut tally = Tally::default();
    let mut events = Vec::with_capacity(16);
    while !timers.is_empty() {
        let timeout = timers.next_expiry().map(|due| until(due, begin));
        events.clear();
        epoll::wait(&epoll, rustix::buffer::spare_capacity(&mut events), timeout.as_ref())?;
        tally.wake_ups += 1;

        timers.forward(present(begin));
        if !events.is_empty()
            && !read_messages(socket, |connection| {
                let expires = present(begin).plus(idle_ticks(connection));
                // A connection that is closed already has a stale key, which is no error here.
                tally.re_arms += u64::from(timers.re_arm(keys[connection as usize], expires).is_ok());
            })
        {
            epoll::delete(&epoll, socket)?; // the peers are gone; from here on there are only timeouts
        }

        let now = present(begin);
        while let Some(expired) = timers.next_expired(now) {
            let late = now.since(expired.expires);
            assert!(late > 0, "connection {} was closed early", expired.value);
            tally.closed += 1;
            tally.late_total += late.unsigned_abs();
            tally.late_max = tally.late_max.max(late.unsigned_abs());
        }
    }
    Ok(tally)
}

/// Reads all messages that are there, and returns whether there may be more later.
fn read_messages(socket: &OwnedFd, mut each: impl FnMut(u32)) -> bool {
    let mut message = [0; 4096];
    while let Ok((bytes, _)) = rustix::net::recv(socket, &mut message, rustix::net::RecvFlags::empty()) {
        for number in message[..bytes].chunks_exact(4) {
            each(u32::from_le_bytes([number[0], number[1], number[2], number[3]]));
        }
        if bytes == 0 {
            return false;
        }
    }
    true
}

/// The time from now to `due`, for epoll.
fn until(due: Tick, begin: Instant) -> rustix::event::Timespec {
    let left = Duration::from_millis(due.0).saturating_sub(begin.elapsed());
    rustix::event::Timespec { tv_sec: left.as_secs().cast_signed(), tv_nsec: i64::from(left.subsec_nanos()) }
}

/// Writes numbers of random connections for two seconds, 256 to a message.
fn play_peers(socket: &OwnedFd, count: u32) -> rustix::io::Result<()> {
    let begin = Instant::now();
    let mut random: u64 = 0x9e37_79b9_7f4a_7c15;
    while begin.elapsed() < Duration::from_secs(2) && count > 0 {
        let mut message = Vec::with_capacity(1024);
        for _ in 0..256 {
            // xorshift64: any cheap sequence does.
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            message.extend_from_slice(&((random % u64::from(count)) as u32).to_le_bytes());
        }
        // A full socket only means that the loop is busy.
        let _ = rustix::net::send(socket, &message, rustix::net::SendFlags::empty());
        std::thread::sleep(Duration::from_micros(300));
    }
    Ok(())
}

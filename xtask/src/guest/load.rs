//! The load inside of a guest: threads that sleep on timers of the kernel's wheel, or one that never sleeps.

use std::io;
use std::os::unix::net::UnixDatagram;
use std::process::ExitCode;
use std::time::Duration;

const THREADS: u64 = 2;

/// `sleep LEAST_MS MOST_MS SEED`: until the program is ended; `burn`: the same, busy.
pub(crate) fn command(words: &[&str]) -> ExitCode {
    match words {
        ["burn"] => {
            let mut turns = 0_u64;
            loop {
                // No pause: an emulator leaves its loop at each.
                turns = std::hint::black_box(turns.wrapping_add(1));
            }
        }
        ["sleep", numbers @ ..] => {
            let numbers: Vec<u64> = numbers.iter().filter_map(|number| number.parse().ok()).collect();
            let &[least, most, seed] = numbers.as_slice() else { return ExitCode::from(2) };
            let threads = (1..THREADS)
                .map(|thread| std::thread::spawn(move || sleep(least, most, seed * THREADS + thread)));
            let threads: Vec<_> = threads.collect();
            let failed = sleep(least, most, seed * THREADS);
            eprintln!("guest-load: {failed:?}");
            drop(threads);
            ExitCode::FAILURE
        }
        _ => ExitCode::from(2),
    }
}

/// Waits for what never comes, for spans between the two that grow evenly in their logarithm.
fn sleep(least: u64, most: u64, seed: u64) -> io::Result<()> {
    let (socket, _other) = UnixDatagram::pair()?;
    let mut random = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    loop {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let drawn = (random >> 40) as f64 / (1_u64 << 24) as f64;
        let millis = least as f64 * (most as f64 / least as f64).powf(drawn);
        socket.set_read_timeout(Some(Duration::from_secs_f64(millis / 1e3)))?;
        match socket.recv(&mut [0]) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            other => drop(other?),
        }
    }
}

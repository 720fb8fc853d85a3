//! What the guide from-tokio.md says of crates that keep tokio's clock.

use quietcore::time::{Duration, Instant, sleep};

/// Goal: paused time leaves tokio's own timers alone, and does not wait for them. Method: a sleep of tokio's
/// takes real time and none of ours; a timeout of tokio's does not end a sleep of ours, which takes no time.
#[quietcore::test(start_paused = true)]
async fn tokio_keeps_its_clock() {
    let (ours, real) = (Instant::now(), std::time::Instant::now());
    let nap = Duration::from_millis(20);
    tokio::time::sleep(nap).await;
    assert!(real.elapsed() >= nap, "{:?} of real time", real.elapsed());
    assert_eq!(ours.elapsed(), Duration::ZERO);
    let hour = Duration::from_secs(3600);
    let result = tokio::time::timeout(Duration::from_secs(60), sleep(hour)).await;
    assert_eq!((result, ours.elapsed()), (Ok(()), hour));
}

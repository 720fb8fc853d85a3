//! Futures of embassy's, on a driver that this program registers.
//!
//! A driver stays with the machine that it met first, so all of it is one test.
#![allow(unsafe_code, reason = "embassy finds its driver by the name of a function")]

use embassy_time::{Duration, Instant, Ticker, TimeoutError, Timer, with_timeout};
use quietcore::{Machine, embassy::EmbassyDriver, time};
use std::future::{pending, poll_fn};
use std::pin::pin;
use std::task::Poll;

embassy_time_driver::time_driver_impl!(static DRIVER: EmbassyDriver = EmbassyDriver::new());

/// Goal: embassy's futures end in time, on a clock that can be paused; a driver keeps one moment per waker.
/// Method: paused time. A sleep; two sleeps of one task, in both orders; a timeout; a ticker; three tasks at
/// once; before all that, a clock without a machine.
#[test]
fn embassy_waits_on_a_machine() {
    let before = Instant::now();
    let machine = Machine::builder().virtual_time().start().expect("it starts");
    let entered = machine.enter();
    machine.pause().expect("it was made for that");
    let started = Instant::now();
    assert!(started >= before, "{started} is before {before}");
    let since = || started.elapsed();

    time::block_on(async {
        Timer::after_secs(3600).await;
        assert_eq!(since(), Duration::from_secs(3600));

        // One waker has one moment, the earliest, whichever of its sleeps is polled first.
        for (first, second) in [(20, 10), (10, 20)] {
            let begin = since();
            let (mut first, mut second) = (pin!(Timer::after_secs(first)), pin!(Timer::after_secs(second)));
            let one = poll_fn(|context| {
                let ready = [first.as_mut().poll(context), second.as_mut().poll(context)];
                if ready.iter().any(Poll::is_ready) { Poll::Ready(()) } else { Poll::Pending }
            });
            one.await;
            assert_eq!(since() - begin, Duration::from_secs(10));
        }

        let begin = since();
        let result = with_timeout(Duration::from_secs(5), pending::<()>()).await;
        assert_eq!((result, since() - begin), (Err(TimeoutError), Duration::from_secs(5)));

        let begin = since();
        let mut ticker = Ticker::every(Duration::from_millis(1500));
        for tick in 1..=4 {
            ticker.next().await;
            assert_eq!(since() - begin, Duration::from_millis(1500) * tick);
        }
    });
    let mut builder = quietcore::tokio::runtime::Builder::new_current_thread();
    let runtime = builder.enable_all().machine(machine).build().expect("built");
    runtime.block_on(async {
        let begin = since();
        let sleeper = |seconds| async move {
            Timer::after_secs(seconds).await;
            Instant::now() - started - begin
        };
        for (seconds, task) in [9, 4, 6].map(|seconds| (seconds, tokio::spawn(sleeper(seconds)))) {
            assert_eq!(task.await.expect("no panic"), Duration::from_secs(seconds));
        }
    });
    drop(runtime);
    drop(entered);
    machine.shutdown();
}

//! Paused time on runtimes of tokio: it moves when no task has anything to do, and I/O is done first.

use quietcore::time::{self, Duration, Instant, sleep, timeout};
use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixDatagram, UnixStream};

const fn ms(count: u64) -> Duration {
    Duration::from_millis(count)
}

/// Goal: a year passes at once, exactly. Method: one sleep.
#[quietcore::test(start_paused = true)]
async fn a_year_passes_at_once() {
    let started = Instant::now();
    sleep(Duration::from_secs(365 * 86_400)).await;
    assert_eq!(started.elapsed(), Duration::from_secs(365 * 86_400));
}

/// A hundred tasks that sleep in turn; each checks each of its sleeps. Returns how long all of it took.
async fn many_sleepers() -> Duration {
    let started = Instant::now();
    let task = |number: u64| async move {
        for round in 0..50 {
            let before = Instant::now();
            sleep(ms(number + round)).await;
            assert_eq!(before.elapsed(), ms(number + round));
        }
    };
    let tasks: Vec<_> = (0..100).map(|number| tokio::spawn(task(number))).collect();
    for task in tasks {
        task.await.expect("it does not panic");
    }
    started.elapsed()
}

/// Goal: no sleep of many tasks takes longer than it should. Method: each measures its own.
#[quietcore::test(start_paused = true)]
async fn tasks_sleep_exactly() {
    assert_eq!(many_sleepers().await, ms(50 * 99 + 49 * 25));
}

/// Goal: the same when several threads run the tasks. Method: the same tasks.
#[quietcore::test(start_paused = true, flavor = "multi_thread", worker_threads = 4)]
async fn tasks_sleep_exactly_on_several_threads() {
    assert_eq!(many_sleepers().await, ms(50 * 99 + 49 * 25));
}

/// Goal: one thread does the same every time. Method: tasks that sleep by a fixed rule write a log; twice.
#[test]
fn one_thread_is_deterministic() {
    let run = || {
        let mut builder = quietcore::tokio::runtime::Builder::new_current_thread();
        let runtime = builder.enable_all().start_paused(true).build().expect("built");
        let log: Arc<Mutex<Vec<(u128, u64)>>> = Arc::default();
        runtime.block_on(async {
            let started = Instant::now();
            let task = |number: u64| {
                let log = Arc::clone(&log);
                async move {
                    for round in 0..20 {
                        sleep(Duration::from_nanos(number * 7_919_113 % 5_000_000 + round * 331_000)).await;
                        log.lock().expect("no panic").push((started.elapsed().as_nanos(), number));
                    }
                }
            };
            let tasks: Vec<_> = (0..50).map(|number| tokio::spawn(task(number))).collect();
            for task in tasks {
                task.await.expect("it does not panic");
            }
        });
        drop(runtime);
        Arc::into_inner(log).expect("all tasks are done").into_inner().expect("no panic")
    };
    let first = run();
    assert_eq!(first.len(), 1000);
    assert!(first.is_sorted_by_key(|(at, _)| *at));
    assert_eq!(first, run());
}

/// Goal: time stands still as long as I/O makes a task go on, however long the chain. Method: two spawned
/// tasks send each other bytes under a timeout that a jump would fire.
#[quietcore::test(start_paused = true)]
async fn io_is_done_before_time_moves() {
    let (near, far) = UnixStream::pair().expect("a pair");
    let play = |mut stream: UnixStream, mut serves: bool| async move {
        let mut byte = [0];
        for _ in 0..500 {
            if serves {
                stream.write_all(&byte).await.expect("it is open");
            } else {
                stream.read_exact(&mut byte).await.expect("it is open");
            }
            serves = !serves;
        }
    };
    let started = Instant::now();
    let near = tokio::spawn(timeout(ms(1), play(near, true)));
    let far = tokio::spawn(timeout(ms(1), play(far, false)));
    assert!(near.await.expect("no panic").is_ok() && far.await.expect("no panic").is_ok());
    assert_eq!(started.elapsed(), Duration::ZERO);
}

/// Goal: the same when the root future and a task talk. Method: datagrams, a sleep in between.
#[quietcore::test(start_paused = true)]
async fn the_root_does_io_before_time_moves() {
    let (near, far) = UnixDatagram::pair().expect("a pair");
    let echo = tokio::spawn(async move {
        let mut byte = [0];
        for _ in 0..20 {
            far.recv(&mut byte).await.expect("it is open");
            sleep(ms(10)).await;
            far.send(&byte).await.expect("it is open");
        }
    });
    let (started, mut byte) = (Instant::now(), [0]);
    for round in 1..=20 {
        near.send(&[7]).await.expect("it is open");
        timeout(ms(11), near.recv(&mut byte)).await.expect("in time").expect("it is open");
        assert_eq!(started.elapsed(), ms(10 * round));
    }
    echo.await.expect("no panic");
}

/// Goal: a timer that wakes no task here does not end time. Method: a sleep polled with a waker that does
/// nothing, due before the one that is waited for; on both flavors.
#[test]
fn a_timer_that_wakes_nobody_is_passed() {
    for mut builder in [
        quietcore::tokio::runtime::Builder::new_current_thread(),
        quietcore::tokio::runtime::Builder::new_multi_thread(),
    ] {
        let runtime = builder.enable_all().start_paused(true).build().expect("built");
        let task = async {
            let mut nobody = pin!(sleep(ms(3)));
            assert!(nobody.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
            sleep(ms(100)).await;
            assert!(nobody.poll(&mut Context::from_waker(Waker::noop())).is_ready());
        };
        runtime.block_on(task);
        runtime.block_on(async { tokio::spawn(sleep(ms(5))).await.expect("no panic") });
    }
}

/// Goal: blocking work holds time, and its end does not let it slip. Method: work that takes real time, under
/// a timeout; a panic; on both flavors.
#[test]
fn blocking_work_holds_time() {
    for mut builder in [
        quietcore::tokio::runtime::Builder::new_current_thread(),
        quietcore::tokio::runtime::Builder::new_multi_thread(),
    ] {
        let runtime = builder.enable_all().start_paused(true).build().expect("built");
        runtime.block_on(async {
            let started = Instant::now();
            for _ in 0..20 {
                let work = quietcore::tokio::spawn_blocking(|| std::thread::sleep(ms(1)));
                assert!(timeout(ms(1), work).await.is_ok_and(|result| result.is_ok()));
            }
            assert_eq!(started.elapsed(), Duration::ZERO);
            let panics = quietcore::tokio::spawn_blocking(|| panic!("as it should"));
            assert!(panics.await.is_err_and(|error| error.is_panic()));
            sleep(ms(1)).await;
            assert_eq!(started.elapsed(), ms(1));
        });
    }
}

/// Goal: two runtimes share a machine's time. Method: each on its own thread, talking over a channel of
/// tokio.
#[test]
fn runtimes_share_time() {
    let machine = quietcore::Machine::builder().virtual_time().start().expect("starts");
    machine.pause().expect("it can be paused");
    let build = || {
        let mut builder = quietcore::tokio::runtime::Builder::new_current_thread();
        builder.enable_all().machine(machine).build().expect("built")
    };
    let (to_far, mut from_near) = tokio::sync::mpsc::channel::<Instant>(1);
    let (to_near, mut from_far) = tokio::sync::mpsc::channel::<Instant>(1);
    let hold = machine.hold();
    let far = std::thread::spawn(move || {
        build().block_on(async {
            drop(hold);
            while let Some(sent) = from_near.recv().await {
                assert_eq!(sent.elapsed(), Duration::ZERO);
                sleep(ms(7)).await;
                to_near.send(Instant::now()).await.expect("it is open");
            }
        });
    });
    build().block_on(async move {
        let started = Instant::now();
        for _ in 0..100 {
            to_far.send(Instant::now()).await.expect("it is open");
            let answered = timeout(ms(8), from_far.recv()).await.expect("in time").expect("it is open");
            assert_eq!(answered.elapsed(), Duration::ZERO);
        }
        assert_eq!(started.elapsed(), ms(700));
    });
    far.join().expect("no panic");
    machine.shutdown();
}

/// Goal: a worker that blocks in place neither hangs time nor is lost. Method: it does, then sleeps.
#[quietcore::test(start_paused = true, flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_that_blocks_in_place_comes_back() {
    let task = tokio::spawn(async {
        let hold = time::hold();
        tokio::task::block_in_place(|| std::thread::sleep(ms(5)));
        drop(hold);
        let before = Instant::now();
        sleep(ms(20)).await;
        before.elapsed()
    });
    assert_eq!(task.await.expect("no panic"), ms(20));
}

/// Goal: time goes on by itself after `resume`, and stops again. Method: a sleep in each.
#[quietcore::test]
async fn time_resumes_and_pauses() {
    for _ in 0..3 {
        time::pause();
        let started = Instant::now();
        sleep(Duration::from_secs(1000)).await;
        assert_eq!(started.elapsed(), Duration::from_secs(1000));
        time::resume();
        let started = Instant::now();
        sleep(ms(2)).await;
        assert!(started.elapsed() >= ms(2));
    }
}

/// Goal: `advance` lets woken tasks run before it returns. Method: a task notes that it ran.
#[quietcore::test(start_paused = true)]
async fn advance_lets_others_run() {
    let ran = Arc::new(Mutex::new(false));
    let task = tokio::spawn({
        let ran = Arc::clone(&ran);
        async move {
            sleep(ms(10)).await;
            *ran.lock().expect("no panic") = true;
        }
    });
    tokio::task::yield_now().await;
    time::advance(ms(10)).await;
    assert!(*ran.lock().expect("no panic"));
    assert!(core::future::poll_fn(|_| Poll::Ready(task.is_finished())).await);
}

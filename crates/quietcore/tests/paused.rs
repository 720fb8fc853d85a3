//! scratch
use quietcore::time::{self, Duration, Instant, sleep};

#[quietcore::test(start_paused = true)]
async fn a_year() {
    let started = Instant::now();
    sleep(Duration::from_secs(365 * 86400)).await;
    assert_eq!(started.elapsed(), Duration::from_secs(365 * 86400));
}

#[quietcore::test(start_paused = true, flavor = "multi_thread", worker_threads = 4)]
async fn many() {
    let started = Instant::now();
    let mut tasks = Vec::new();
    for n in 0..100u64 {
        tasks.push(tokio::spawn(async move {
            for m in 0..100 {
                let before = Instant::now();
                sleep(Duration::from_millis(n + m)).await;
                assert_eq!(before.elapsed(), Duration::from_millis(n + m));
            }
        }));
    }
    for task in tasks {
        task.await.expect("ok");
    }
    assert_eq!(started.elapsed(), Duration::from_millis(100 * 99 + 99 * 50));
    time::resume();
}

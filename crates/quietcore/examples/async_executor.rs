//! Sleeps on an executor that has no timers of its own: that of smol, without async-io's reactor.
//!
//! ```sh
//! cargo run --release -p quietcore --example async_executor
//! ```

use async_executor::Executor;
use quietcore::time::{self, Duration, Instant, interval, sleep, timeout};
use quietcore::{Machine, StartError};

fn main() -> Result<(), StartError> {
    // Timers are the machine's, on a thread of its own; tasks are the executor's, on this one.
    let machine = Machine::start()?;
    let _entered = machine.enter();
    let executor = Executor::new();

    let workers: Vec<_> = (1..=3)
        .map(|number| {
            executor.spawn(async move {
                sleep(Duration::from_millis(10 * number)).await;
                println!("worker {number} is done");
            })
        })
        .collect();

    let started = Instant::now();
    time::block_on(executor.run(async {
        let mut every = interval(Duration::from_millis(5));
        for _ in 0..3 {
            every.tick().await;
            println!("{:.1?}", started.elapsed());
        }
        for worker in workers {
            worker.await;
        }
        let late = timeout(Duration::from_millis(5), core::future::pending::<()>()).await;
        println!("{}", late.expect_err("nothing comes"));
    }));
    machine.shutdown();
    Ok(())
}

//! Which machine a runtime has, and how long.

use quietcore::Machine;
use quietcore::time::{Duration, sleep};
use quietcore::tokio::runtime::Builder;

/// Goal: a runtime has the machine it is given, else the current one, else its own; without time none.
/// Method: all four, seen from the root, a task and a blocking thread.
#[test]
fn a_runtime_has_a_machine() {
    let given = Machine::start().expect("starts");
    let current = Machine::start().expect("starts");
    let entered = current.enter();
    let seen = |builder: &mut Builder| {
        let runtime = builder.build().expect("built");
        let root = runtime.block_on(async { Machine::try_current().expect("there is one") });
        let task = runtime.block_on(async {
            let task = async {
                let blocking = || Machine::try_current().expect("there is one");
                (Machine::current(), tokio::task::spawn_blocking(blocking).await.expect("no panic"))
            };
            tokio::spawn(task).await.expect("no panic")
        });
        assert!([task.0, task.1].iter().all(|machine| core::ptr::eq(*machine, root)));
        assert!(runtime.machine().is_some_and(|machine| core::ptr::eq(machine, root)));
        root
    };
    assert!(core::ptr::eq(seen(Builder::new_multi_thread().enable_all().machine(given)), given));
    assert!(core::ptr::eq(seen(Builder::new_current_thread().enable_time().machine(given)), given));
    assert!(core::ptr::eq(seen(Builder::new_multi_thread().enable_all()), current));
    let virtual_one = seen(Builder::new_multi_thread().enable_all().virtual_time());
    assert!(virtual_one.has_virtual_time() && !core::ptr::eq(virtual_one, current));
    assert!(!virtual_one.is_running(), "it was the runtime's own, and ended with it");
    drop(entered);
    let own = seen(Builder::new_multi_thread().enable_all());
    assert!(!own.is_running() && given.is_running() && current.is_running());
    let without = Builder::new_current_thread().build().expect("built");
    assert!(without.block_on(async { Machine::try_current() }).is_none());
    assert!(without.machine().is_none());
    given.shutdown();
    current.shutdown();
}

/// Goal: tasks that are dropped with the runtime let go of their timers while their machine still runs.
/// Method: shut down in each way with sleeping tasks.
#[test]
fn tasks_are_dropped_before_their_machine() {
    for way in 0..3 {
        for mut builder in [Builder::new_current_thread(), Builder::new_multi_thread()] {
            let runtime = builder.enable_all().start_paused(way == 0).build().expect("built");
            let machine = runtime.machine().expect("there is one");
            runtime.block_on(async {
                for _ in 0..20 {
                    drop(tokio::spawn(sleep(Duration::from_secs(3600))));
                }
                sleep(Duration::from_millis(1)).await;
            });
            match way {
                0 => drop(runtime),
                1 => runtime.shutdown_background(),
                _ => runtime.shutdown_timeout(Duration::from_secs(10)),
            }
            assert!(!machine.is_running());
        }
    }
}

/// Goal: time cannot start paused on a machine that does not allow it. Method: give one.
#[test]
fn a_plain_machine_does_not_start_paused() {
    let machine = Machine::start().expect("starts");
    let result = Builder::new_current_thread().enable_all().machine(machine).start_paused(true).build();
    assert!(result.is_err_and(|error| error.to_string().contains("virtual_time")));
    machine.shutdown();
}

/// Goal: a thread that enters a runtime can make futures for it. Method: a sleep, made outside, waited for
/// inside.
#[test]
fn entering_makes_the_machine_current() {
    let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("built");
    let entered = runtime.enter();
    let sleep = sleep(Duration::from_millis(1));
    assert!(tokio::runtime::Handle::try_current().is_ok());
    drop(entered);
    assert!(Machine::try_current().is_none());
    runtime.block_on(sleep);
    let task = runtime.spawn(async { Machine::current().is_running() });
    assert!(runtime.block_on(task).expect("no panic"));
}

#[quietcore::main]
async fn several_threads() -> usize {
    tokio::runtime::Handle::current().metrics().num_workers()
}

#[quietcore::main(flavor = "current_thread", start_paused = true)]
async fn paused_main() -> Duration {
    let started = quietcore::time::Instant::now();
    sleep(Duration::from_secs(60)).await;
    started.elapsed()
}

mod renamed {
    //! The attribute finds the crate under another name.

    use quietcore as timers;

    /// Goal: `crate` names the crate. Method: another name for it.
    #[quietcore::test(crate = "timers", worker_threads = 1, flavor = "multi_thread")]
    async fn the_crate_can_have_another_name() {
        assert!(timers::Machine::current().has_virtual_time());
        assert_eq!(tokio::runtime::Handle::current().metrics().num_workers(), 1);
    }
}

/// Goal: the attribute of a main function means what tokio's does. Method: both flavors.
#[test]
fn main_functions_have_machines() {
    assert!(several_threads() > 0);
    assert_eq!(paused_main(), Duration::from_secs(60));
}

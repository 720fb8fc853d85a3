//! The end of a machine is the end of its tasks.

use crate::scene::{builder, cpu, lanes, wait_for};
use futures_executor::block_on;
use quietcore_live::{Cpu, task::WorkOptions};
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

struct Tell(Sender<()>);

impl Drop for Tell {
    fn drop(&mut self) {
        let _ = self.0.send(());
    }
}

/// Goal: after a shutdown every task has ended, its future was dropped, and its handle says so. Method: tasks
/// that wait for ever, for a timer, for each other, in queues of lanes that no thread drives, and one that
/// spawns without end.
#[test]
fn a_shutdown_drops_all_futures() {
    for round in 0..20 {
        let machine = lanes().start().expect("starts");
        let (sender, dropped) = channel();
        let tasks: Vec<_> = (0..60)
            .map(|number| {
                let tell = Tell(sender.clone());
                let task = async move {
                    let _tell = tell;
                    match number % 3 {
                        0 => core::future::pending().await,
                        1 => quietcore_live::time::sleep(Duration::from_secs(100)).await,
                        _ => loop {
                            let more = machine.spawn(async {});
                            let Ok(more) = more else { core::future::pending().await };
                            let _ = more.await;
                        },
                    }
                };
                machine.spawn(task).expect("it runs")
            })
            .collect();
        if round % 2 == 1 {
            std::thread::sleep(Duration::from_millis(2));
        }
        machine.shutdown();
        for task in tasks {
            // One that was just being polled may have panicked: its time will not come.
            assert!(block_on(task).is_err());
        }
        for _ in 0..60 {
            wait_for(&dropped);
        }
    }
}

/// Goal: the same for lanes that others drive, and what no thread came to. Method: a claimed lane that never
/// turned.
#[test]
fn what_nobody_came_to() {
    let machine = builder().start().expect("starts");
    let cpu_held = Cpu::claim(machine, cpu(0)).expect("a free lane");
    let local = cpu_held.spawn_local(async {}).expect("it runs");
    let bound = machine.spawn_on(cpu(0), async {}).expect("it runs");
    let free = machine.spawn(async {}).expect("it runs");
    let work = machine.work(WorkOptions::new(), || ()).expect("a lane");
    assert!(work.queue().expect("it runs"));
    machine.shutdown();
    assert!(block_on(bound).is_err() && block_on(free).is_err());
    drop(cpu_held);
    assert!(block_on(local).is_err(), "with its thread's hold on the CPU");
    work.flush().expect("nothing to wait for");
}

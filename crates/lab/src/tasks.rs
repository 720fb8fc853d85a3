//! LaneTasks on a lane, as few lines as they can be: futures that a lane polls between turns.
//!
//! The lab measures timeouts around futures, and an executor that takes as little time as possible. A lane
//! polls [`BATCH`] tasks, turns, and waits when no task is ready. There is no fairness, stealing or priority,
//! and no task ends.
//!
//! A future with a timeout must not be polled once the machine was shut down. So a lane is stopped first
//! ([`stop`]): when that returns no lane polls any more.

use crate::error::LabError;
use crate::harness::{LaneBody, LaneHarness, LaneMode};
use crate::plan::TrialContext;
use crate::sync::{StopFlag, lock};
use quietcore_live::{Machine, lane::Unparker};
use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::{Arc, Mutex, OnceLock};
use std::task::{Context, Poll, Wake, Waker};

/// Polls between two turns.
const BATCH: usize = 8;

pub(crate) type LaneTask = Pin<Box<dyn Future<Output = ()>>>;

/// Makes the tasks of a lane, on its thread.
pub(crate) type LaneTasks = Box<dyn FnOnce(&'static Machine) -> Vec<LaneTask> + Send>;

/// The tasks of a lane that are to be polled, and how to wake the lane.
#[derive(Debug, Default)]
struct Ready {
    tasks: Mutex<VecDeque<usize>>,
    lane: OnceLock<Unparker>,
}

impl Ready {
    fn pop(&self) -> Option<usize> {
        lock(&self.tasks).pop_front()
    }

    fn is_empty(&self) -> bool {
        lock(&self.tasks).is_empty()
    }
}

struct Woken {
    ready: Arc<Ready>,
    task: usize,
}

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        lock(&self.ready.tasks).push_back(self.task);
        if let Some(lane) = self.ready.lane.get() {
            lane.unpark();
        }
    }
}

/// Ends the polling on all lanes of `harness`, which were given `stop`.
pub(crate) fn stop(harness: &LaneHarness, context: &TrialContext, stop: &StopFlag) -> Result<(), LabError> {
    stop.set();
    // A lane looks at the sign between a turn and the next poll, so one that has turned since has seen it.
    context.cpus.into_iter().try_for_each(|cpu| harness.on_lane(cpu, || {}))
}

/// A lane that polls `tasks` until it is stopped, and turns until the machine is shut down.
pub(crate) fn play(tasks: LaneTasks, stop: StopFlag) -> LaneBody {
    Box::new(move |machine, mut cpu| {
        let ready = Arc::new(Ready::default());
        let _ = ready.lane.set(cpu.unparker());
        let mut tasks = tasks(machine);
        let wakers: Vec<Waker> = (0..tasks.len())
            .map(|task| Waker::from(Arc::new(Woken { ready: Arc::clone(&ready), task })))
            .collect();
        wakers.iter().for_each(Waker::wake_by_ref);
        while machine.is_running() && !stop.is_set() {
            for task in (0..BATCH).map_while(|_| ready.pop()) {
                // None of them ends before the machine does.
                let _ = tasks[task].as_mut().poll(&mut Context::from_waker(&wakers[task]));
            }
            if !cpu.turn().has_more && ready.is_empty() {
                cpu.park_unless(|| !ready.is_empty());
            }
        }
        LaneMode::Parks.turns(machine, &mut cpu);
    })
}

/// Room for one message from one task to another.
#[derive(Debug)]
pub(crate) struct Mailbox<T>(Mutex<(Option<T>, Option<Waker>)>);

impl<T> Mailbox<T> {
    pub(crate) fn new() -> Self {
        Self(Mutex::new((None, None)))
    }

    /// Replaces a message that was not received.
    pub(crate) fn send(&self, message: T) {
        let mut held = lock(&self.0);
        held.0 = Some(message);
        let waker = held.1.take();
        drop(held);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    pub(crate) async fn receive(&self) -> T {
        poll_fn(|context| {
            let mut held = lock(&self.0);
            match held.0.take() {
                Some(message) => Poll::Ready(message),
                None => {
                    held.1 = Some(context.waker().clone());
                    Poll::Pending
                }
            }
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use super::{LaneTask, LaneTasks, Mailbox, play, stop};
    use crate::cpus::{allowed_cpus, two_cpus};
    use crate::harness::LaneHarness;
    use crate::plan::TrialContext;
    use crate::sync::{SharedCount, StopFlag};
    use quietcore_live::Machine;
    use quietcore_testing::left_out;
    use std::sync::Arc;
    use std::sync::mpsc::{Sender, channel};
    use std::time::Duration;

    const LAST: u64 = 2_000;

    /// Sends one more than it receives, and reports [`LAST`].
    async fn echo([from, to]: [Arc<Mailbox<u64>>; 2], count: Arc<SharedCount>, done: Sender<u64>) {
        loop {
            let number = from.receive().await;
            count.add_one();
            if number == LAST {
                let _ = done.send(number);
            }
            to.send(number + 1);
        }
    }

    /// Goal: a message wakes the task that waits for it, on whichever lane, in order; and nothing is polled
    /// any more once the lanes were stopped. Method: two tasks on two lanes that send a number to and fro, up
    /// to 2000; then turns of both lanes, in which the count of messages must not grow.
    #[test]
    fn messages_go_to_and_fro_until_the_stop() {
        let found = two_cpus(None, &allowed_cpus().expect("it can be read"));
        let Ok(cpus) = found.inspect_err(|error| left_out("messages_go_to_and_fro_until_the_stop", error))
        else {
            return;
        };
        let context = TrialContext::new(Duration::from_secs(1), cpus, StopFlag::default());
        let (over, count) = (StopFlag::default(), Arc::new(SharedCount::default()));
        let [there, back] = [(); 2].map(|()| Arc::new(Mailbox::new()));
        let (sender, done) = channel();
        let ends = [(&there, &back), (&back, &there)].map(|(from, to)| [from, to].map(Arc::clone));
        let lanes = cpus.into_iter().zip(ends).map(|(cpu, ends)| {
            let (count, sender) = (Arc::clone(&count), sender.clone());
            let make: LaneTasks = Box::new(move |_| vec![Box::pin(echo(ends, count, sender)) as LaneTask]);
            (cpu, play(make, over.clone()))
        });
        let lanes = lanes.collect();
        let harness = LaneHarness::start_with(Machine::builder(), &context, lanes).expect("two lanes");
        there.send(1);
        assert_eq!(done.recv_timeout(Duration::from_secs(60)), Ok(LAST));
        stop(&harness, &context, &over).expect("lanes turn");
        let stopped = count.get();
        assert!(stopped >= LAST, "{stopped}");
        for cpu in [cpus, cpus].concat() {
            harness.on_lane(cpu, || {}).expect("lanes turn");
        }
        assert_eq!(count.get(), stopped);
    }
}

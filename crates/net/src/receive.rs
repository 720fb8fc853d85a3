//! Receiving: packets come in in the NET_RX softirq of the CPU that they belong to.
//!
//! An interrupt, or a thread that stands for one, only says that there is something
//! ([`Receiver::schedule`]), and is off from then on. The softirq takes packets in, a budget at a time; the
//! run that finds nothing more turns interrupts on again.
//!
//! Invariant: a receiver is on one list at most and run by one thread at a time; a `schedule` that comes
//! while it runs makes it run again, and so does a panic: interrupts are off then.
//! Source: Linux net/core/dev.c (NAPI), by behaviour.

use super::network::{Network, Scheduled};
use super::options::DeviceError;
use core::fmt;
use quietcore_live::{CpuId, Machine, softirq::Vector};
use quietcore_qdisc::DEVICE_WEIGHT;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// What a receiver found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Received {
    /// The budget was used up, and there may be more.
    More,
    /// Nothing is left, and interrupts are on again.
    Done,
}

/// What takes packets in.
pub trait Receive: Send + Sync + 'static {
    /// Takes up to `budget` packets in, in the NET_RX softirq of `cpu`; never by two threads at a time.
    /// Before it returns [`Received::Done`] it sees to it that [`Receiver::schedule`] is called when there is
    /// something. After a panic it is called again.
    fn receive(&self, cpu: CpuId, budget: usize) -> Received;
}

impl<F: Fn(CpuId, usize) -> Received + Send + Sync + 'static> Receive for F {
    fn receive(&self, cpu: CpuId, budget: usize) -> Received {
        self(cpu, budget)
    }
}

/// A place where packets come in, with the CPU that takes them. Dropped, it is not run any more, except for a
/// run that is under way.
///
/// ```
/// use quietcore::net::{Network, Received, Receiver};
/// use quietcore::{CpuId, LaneThreads, Machine};
/// use std::sync::{Mutex, mpsc};
///
/// let (network, builder) = Network::new(Machine::builder().lanes("0".parse()?));
/// let machine = builder.lane_threads(LaneThreads::new()).start()?;
/// let (sender, asked) = mpsc::channel();
/// let sender = Mutex::new(sender);
/// let receive = move |cpu: CpuId, budget: usize| {
///     sender.lock().expect("no panic").send((cpu.index(), budget)).expect("it is received");
///     Received::Done
/// };
/// let receiver = Receiver::new(&network, machine, CpuId::new(0)?, receive)?;
/// receiver.schedule();
/// assert_eq!(asked.recv()?, (0, 64));
/// # machine.shutdown();
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Receiver(Arc<Line>);

impl fmt::Debug for Receiver {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Receiver").field("cpu", &self.0.cpu).finish_non_exhaustive()
    }
}

struct Line {
    machine: &'static Machine,
    network: Network,
    cpu: CpuId,
    receive: Box<dyn Receive>,
    state: Mutex<ReceiverState>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ReceiverState {
    Idle,
    /// On the list.
    Scheduled,
    Running,
    /// It runs, and was scheduled meanwhile.
    Missed,
    /// Dropped.
    Ended,
}

impl Receiver {
    /// A receiver that the NET_RX softirq of `cpu` runs.
    ///
    /// # Errors
    /// [`DeviceError::NoLanes`] if `cpu` is not one of the machine's lanes.
    pub fn new(
        network: &Network,
        machine: &'static Machine,
        cpu: CpuId,
        receive: impl Receive,
    ) -> Result<Self, DeviceError> {
        if !machine.lanes().contains(cpu) {
            return Err(DeviceError::NoLanes);
        }
        network.serve(machine);
        let (network, state) = (network.clone(), Mutex::new(ReceiverState::Idle));
        Ok(Self(Arc::new(Line { machine, network, cpu, receive: Box::new(receive), state })))
    }

    /// There is something to take in. From any thread; also while it is being run.
    pub fn schedule(&self) {
        self.0.schedule();
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        *self.0.state.lock().unwrap_or_else(PoisonError::into_inner) = ReceiverState::Ended;
    }
}

impl Line {
    fn schedule(self: &Arc<Self>) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        match *state {
            ReceiverState::Idle => *state = ReceiverState::Scheduled,
            ReceiverState::Running => {
                *state = ReceiverState::Missed;
                return;
            }
            ReceiverState::Scheduled | ReceiverState::Missed | ReceiverState::Ended => return,
        }
        drop(state);
        self.enlist();
    }

    fn enlist(self: &Arc<Self>) {
        // Refused when the machine has ended: nothing is received any more.
        let item = Arc::downgrade(self) as Weak<dyn Scheduled>;
        let _ = self.network.schedule(self.machine, self.cpu, Vector::NET_RX, &item);
    }

    fn ran(self: &Arc<Self>, received: Received) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let again = match (*state, received) {
            (ReceiverState::Ended, _) => return,
            (ReceiverState::Running, Received::Done) => false,
            _ => true,
        };
        *state = if again { ReceiverState::Scheduled } else { ReceiverState::Idle };
        drop(state);
        if again {
            self.enlist();
        }
    }
}

/// A run that is under way: one that panics has not said that nothing is left.
struct Run<'a> {
    line: &'a Arc<Line>,
    received: Received,
}

impl Drop for Run<'_> {
    fn drop(&mut self) {
        self.line.ran(self.received);
    }
}

impl Scheduled for Line {
    fn run_on(self: Arc<Self>, cpu: CpuId) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if *state == ReceiverState::Ended {
            return;
        }
        *state = ReceiverState::Running;
        drop(state);
        let mut run = Run { line: &self, received: Received::More };
        run.received = self.receive.receive(cpu, DEVICE_WEIGHT);
    }
}

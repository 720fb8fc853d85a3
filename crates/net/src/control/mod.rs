//! `tc` for devices: what its lines do to the disciplines of a [`Device`].
//!
//! [`Control`] knows devices by name. A line is read by [`tc`](quietcore_qdisc::tc), carried out under the
//! lock of the queue that it is about, and answered as `tc` would. `change` keeps what is queued, and the
//! queue is run again with the new settings.
//!
//! A device begins as the kernel's do: `mq 0:` with a `pfifo` of 1000 packets per queue. `root handle 1: mq`
//! names it, so that `parent 1:k` is queue `k - 1`. Any other discipline at the root is one for all queues:
//! all packets go through queue 0 and its lock, as the kernel has one root lock then. What is not named gets
//! handles from 8001: on, as from the kernel.
//!
//! What a kind's options mean, and how they are shown, is the kind's own (`quietcore_qdisc`). `node` is one
//! discipline of any kind with its classes, filters and estimates; `qdiscs`, `classes` and `filters` are the
//! commands, `estimates` the timer behind `est`, `show`, `report` and `print` what is answered, in the
//! kernel's `order`, as a `graph` with `-g`.
//!
//! Random numbers of netem: those of `seed N` if the line says so, else of a seed that is drawn from the
//! control's own by the order of commands: the same lines to the same `Control` give the same network again.
//! `-q` shows that seed.
//!
//! `ingress` and `clsact` are beside all that: what their filters say of a packet is asked before it is
//! queued, and where it comes in (`clsact`); what filters do besides is in `action`.
//!
//! Deliberately absent: chains and blocks of filters. Source: Linux
//! net/sched/sch_api.c, cls_api.c and iproute2's `tc`, by behaviour. Deviations: a discipline that is deleted
//! below `mq`, tbf or netem is replaced by the default one, not by one that drops everything; a handle that
//! is taken is refused, where the kernel would put that discipline to a second place; one queue is enough for
//! `mq`; a class has to be named when it is added;
//! what a line is given twice is refused, where `tc` takes the last.

mod action;
mod classes;
mod clsact;
mod distributions;
mod error;
mod estimates;
mod filter;
mod filters;
mod graph;
mod known;
mod node;
mod order;
mod print;
mod qdiscs;
mod report;
mod show;
mod state;
#[cfg(test)]
mod tests;
mod tree;

pub use error::TcControlError;
pub use filter::TcFilterError;
pub use report::{Answer, ClassReport, FilterReport, QdiscReport, QueueReport, RateReport, ShowOptions};

use super::device::Device;
use action::ActionTable;
use core::fmt::{self, Debug};
use quietcore_live::Machine;
use quietcore_qdisc::tc::{self, Command};
use quietcore_qdisc::{Distribution, Packet};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng as _;
use state::{ControlShared, ControlState, FIRST_HANDLE};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock};
use tree::{DeviceEntry, DeviceRoot};

/// Carries out lines of `tc`. From any thread; one command at a time.
///
/// ```
/// use quietcore::net::{Control, Device, DeviceOptions, Network};
/// use quietcore::{LaneThreads, Machine};
/// use std::sync::Arc;
///
/// let (network, builder) = Network::new(Machine::builder().lanes("0".parse()?));
/// let machine = builder.lane_threads(LaneThreads::new()).start()?;
/// let device = Device::new(&network, machine, DeviceOptions::new(2), |_, _: Vec<u8>| Ok(()))?;
/// let control = Control::new(machine, 1);
/// control.add_device("eth1", Arc::new(device))?;
///
/// for line in [
///     "tc qd add dev eth1 root handle 1: mq",
///     "tc qd add dev eth1 parent 1:1 est 1sec 4sec netem limit 70000 delay 6ms",
///     "tc qd add dev eth1 parent 1:2 est 1sec 4sec netem limit 70000 delay 8ms",
/// ] {
///     control.execute_line(line)?;
/// }
/// let shown = control.execute_line("tc qd show dev eth1")?.to_string();
/// let lines: Vec<&str> = shown.lines().map(str::trim_end).collect();
/// assert_eq!(lines, [
///     "qdisc mq 1: root",
///     "qdisc netem 8001: parent 1:1 limit 70000 delay 6ms",
///     "qdisc netem 8002: parent 1:2 limit 70000 delay 8ms",
/// ]);
/// # machine.shutdown();
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Control<P> {
    shared: Arc<ControlShared<P>>,
}

impl<P> Debug for Control<P> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Control").finish_non_exhaustive()
    }
}

impl<P: Packet + Debug + Send> Control<P> {
    /// One without devices. The seeds of netem's that name none are drawn from `seed`.
    #[must_use]
    pub fn new(machine: &'static Machine, seed: u64) -> Self {
        let seeds = ChaCha8Rng::seed_from_u64(seed);
        let state = ControlState {
            machine,
            devices: BTreeMap::new(),
            next_handle: FIRST_HANDLE,
            made: 0,
            seeds,
            actions: ActionTable::default(),
            find_distribution: distributions::distribution,
        };
        let (state, sampler) = (Mutex::new(state), OnceLock::new());
        Self { shared: Arc::new(ControlShared { machine, state, sampler }) }
    }

    /// From now on a word behind netem's `distribution` that is none of its own names what `find` finds,
    /// which says why if it finds nothing. To begin with that are the files `*.dist` that `tc` reads: in the
    /// folder that `TC_LIB_DIR` names, or else in the system's.
    pub fn find_distributions(&self, find: fn(&str) -> Result<Distribution, String>) {
        self.shared.state().find_distribution = find;
    }

    /// From now on lines can name `device`, as `name`: it begins with `mq 0:` and fifos; what it held is
    /// dropped.
    /// What comes in at it is asked by filters if the program says so ([`Device::receive`],
    /// [`Device::link_to`]).
    ///
    /// # Errors
    /// [`TcControlError::DeviceExists`], by that name, or this one by another.
    pub fn add_device(&self, name: &str, device: Arc<Device<P>>) -> Result<(), TcControlError> {
        let mut state = self.shared.state();
        let is_there = |(known, entry): &(&String, &DeviceEntry<P>)| {
            *known == name || Arc::ptr_eq(&entry.device, &device)
        };
        if let Some((known, _)) = state.devices.iter().find(is_there) {
            return Err(TcControlError::DeviceExists(known.clone()));
        }
        device.graft_each();
        device.ingress().set(None);
        device.egress().set(None);
        let root = DeviceRoot::Mq { handle: 0, estimate: None };
        state.devices.insert(name.into(), DeviceEntry { device, root, clsact: None });
        Ok(())
    }

    /// Forgets a device; it goes on as it is. Nothing happens if there is none of that name.
    pub fn remove_device(&self, name: &str) {
        let removed = self.shared.state().devices.remove(name);
        // Without the lock: the device may end, and its packets with it.
        drop(removed);
    }

    /// Carries out a command.
    ///
    /// # Errors
    /// [`TcControlError`] says what is wrong and what to do instead; nothing has changed then.
    pub fn execute(&self, command: &Command) -> Result<Answer, TcControlError> {
        let mut state = self.shared.state();
        let now = self.shared.machine.now();
        let done = match command {
            Command::Show(show) => return state.show(show, now),
            Command::Qdisc(command) => state.qdisc(command, now),
            Command::Class(command) => state.class(command, now),
            Command::Filter(command) => state.filter(command, now),
            other => {
                let what = format!("`{other}` is not known here");
                Err(TcControlError::not_possible(what, "use qdisc, class or filter"))
            }
        };
        drop(state);
        done?;
        estimates::watch(&self.shared);
        Ok(Answer::Done)
    }

    /// Reads a line, as it is typed, and carries it out.
    ///
    /// # Errors
    /// [`TcControlError::Line`] marks the word that cannot be; else as [`execute`](Self::execute).
    pub fn execute_line(&self, line: &str) -> Result<Answer, TcControlError> {
        self.execute(&tc::parse(line)?)
    }
}

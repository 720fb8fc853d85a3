//! An instance with two network namespaces, a TUN interface in each, and devices between them.
//!
//! Order of the way up: the name, what a dead instance left, the namespaces, the interfaces, the machine, the
//! wire, the control socket. A failure anywhere, and the end, take it down in the other order and leave
//! nothing. All threads are begun by the calling one, with the privileges that it has then.

use super::base::InstanceBase;
use super::conversation::Reply;
use super::error::InstanceError;
use super::name::InstanceName;
use super::record::{InstanceRecord, NamespaceRecord, TakenName};
use crate::network::Network;
use crate::options::Watchdog;
use crate::tun::{
    Direction, Namespace, Offload, SEGMENTS_MAX, TunError, TunInterface, UnnamedNamespace, Wire, WireOptions,
    check_free,
};
use quietcore_live::{
    CpuSet, LaneThreads, Machine,
    timer::{ExactPolicy, Policy},
};

/// Packets that the kernel keeps for us between two looks; more are dropped by the kernel.
const KERNEL_RING: u32 = 16_384;

/// What a [`TunInstance`] has.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TunInstanceOptions {
    /// Its name; its network namespaces are NAME-a and NAME-b.
    pub name: InstanceName,
    /// The interfaces in NAME-a and NAME-b; lines of `tc` call the ways from a to b and back by these names.
    pub devices: [String; 2],
    /// The CPUs of lanes.
    pub lanes: CpuSet,
    /// The CPUs of each transmit queue.
    pub transmit_map: Vec<CpuSet>,
    /// Where timers go that may move.
    pub policy: Policy,
    /// Whether watchdogs stay with the CPU that arms them.
    pub watchdog: Watchdog,
    /// Longest packet of the interfaces, in bytes.
    pub mtu: u16,
    /// Where streams are cut into packets.
    pub offload: Offload,
    /// Bytes that disciplines count for each packet besides its own.
    pub link_header: u16,
    /// Bytes that the packets of a queue may take; 64 MiB unless told otherwise.
    pub memory_max: u64,
    /// Where everything random begins.
    pub seed: u64,
}

impl TunInstanceOptions {
    /// Devices `eth1` and `eth2` with the queues of `transmit_map`; packets of 1500 bytes, 14 of a header.
    #[must_use]
    pub fn new(name: InstanceName, lanes: CpuSet, transmit_map: Vec<CpuSet>) -> Self {
        Self {
            name,
            devices: ["eth1".to_owned(), "eth2".to_owned()],
            lanes,
            transmit_map,
            policy: Policy::Pull,
            watchdog: Watchdog::Pinned,
            mtu: 1500,
            offload: Offload::On,
            link_header: 14,
            memory_max: 64 << 20,
            seed: 1,
        }
    }
}

/// Two network namespaces with a wire between them that lines of `tc` shape. Needs root, or `CAP_NET_ADMIN`
/// and
/// `CAP_SYS_ADMIN` and the right to write to /run/netns.
///
/// A drop takes it down; [`end`](Self::end) says whether that worked.
///
/// ```no_run
/// use quietcore_net::instance::{TunInstance, TunInstanceOptions};
/// use quietcore_net::tun::TransmitMap;
///
/// let lanes = "0-1".parse()?;
/// let map = TransmitMap::default().cpus_of_queues(8, &lanes)?;
/// let instance = TunInstance::start(TunInstanceOptions::new("lab".parse()?, lanes, map))?;
/// instance.execute("tc qdisc replace dev eth1 root netem delay 10ms")?;
/// // `ip netns exec lab-a ping 10.77.0.2` now takes 10 ms longer.
/// instance.end()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct TunInstance {
    transmit_map: Vec<CpuSet>,
    removed: Vec<String>,
    wire: Option<Wire>,
    /// The two, until they are removed.
    namespaces: Vec<Namespace>,
    base: InstanceBase,
}

impl Drop for TunInstance {
    fn drop(&mut self) {
        self.take_down();
    }
}

impl TunInstance {
    /// Starts one. What a killed instance of that name left is removed.
    ///
    /// # Errors
    /// See [`InstanceError`].
    pub fn start(options: TunInstanceOptions) -> Result<Self, InstanceError> {
        let names = ["a", "b"].map(|end| format!("{}-{end}", options.name));
        let (mut name, left) = TakenName::take(options.name.as_str())?;
        let removed = remove_left(left)?;
        names.iter().try_for_each(|name| check_free(name))?;
        let unnamed = [UnnamedNamespace::new()?, UnnamedNamespace::new()?];
        let record = |at: usize| NamespaceRecord { name: names[at].clone(), id: unnamed[at].id() };
        let record = [0, 1].map(record);
        // Before they have names: what a kill in between leaves is found by the next start, and known.
        name.write(&InstanceRecord::of_this_process(options.name.as_str(), &options.devices, &record))?;
        let [a, b] = unnamed;
        let namespaces = vec![a.named(&names[0])?, b.named(&names[1])?];
        let side = |at: usize| interface(&namespaces[at], at, &options);
        let sides = [(options.devices[0].clone(), side(0)?), (options.devices[1].clone(), side(1)?)];
        let (network, builder) = Network::new(Machine::builder().lanes(options.lanes.clone()));
        let builder = builder.policy(options.policy).lane_threads(LaneThreads::new());
        let builder = match options.policy {
            Policy::Push => builder.exact_policy(ExactPolicy::Kernel),
            _ => builder,
        };
        let machine = builder.start()?;
        let base = InstanceBase::new(name, machine, options.devices.clone(), options.seed);
        let transmit_map = options.transmit_map.clone();
        // From here on a drop takes everything down.
        let mut instance = Self { transmit_map, removed, wire: None, namespaces, base };
        let TunInstanceOptions { transmit_map, watchdog, memory_max, .. } = options;
        let wire = WireOptions { sides, transmit_map, watchdog, memory_max };
        let wire = instance.wire.insert(Wire::start(&network, machine, &wire)?);
        instance.base.open(wire.directions().each_ref().map(Direction::device))?;
        Ok(instance)
    }

    /// Carries out a line of `tc`, as if it came through the control socket.
    ///
    /// # Errors
    /// Why it was refused, in words.
    pub fn execute(&self, line: &str) -> Reply {
        self.base.execute(line)
    }

    /// Network namespaces of a killed instance that [`start`](Self::start) removed.
    #[must_use]
    pub fn removed(&self) -> &[String] {
        &self.removed
    }

    /// NAME-a and NAME-b.
    #[must_use]
    pub fn namespaces(&self) -> &[Namespace] {
        &self.namespaces
    }

    /// The ways from a to b and back.
    #[must_use]
    pub fn directions(&self) -> &[Direction] {
        self.wire.as_ref().map_or(&[], |wire| wire.directions())
    }

    /// The CPUs of each transmit queue.
    #[must_use]
    pub fn transmit_map(&self) -> &[CpuSet] {
        &self.transmit_map
    }

    /// The CPUs of lanes.
    #[must_use]
    pub fn lanes(&self) -> &CpuSet {
        self.base.machine.lanes()
    }

    /// Takes it down.
    ///
    /// # Errors
    /// If a network namespace cannot be removed; everything else is gone all the same.
    pub fn end(mut self) -> Result<(), TunError> {
        self.take_down();
        core::mem::take(&mut self.namespaces).into_iter().map(Namespace::remove).fold(Ok(()), Result::and)
    }

    fn take_down(&mut self) {
        self.base.close();
        self.wire = None;
        self.base.machine.shutdown();
    }
}

/// Removes what a dead instance left; the names of what was there. What has such a name and is not the dead
/// instance's stays.
fn remove_left(left: Option<InstanceRecord>) -> Result<Vec<String>, TunError> {
    let mut removed = Vec::new();
    for NamespaceRecord { name, id } in left.map(|record| record.namespaces).unwrap_or_default() {
        match id.remove(&name) {
            Ok(true) => removed.push(name),
            // The new instance needs the same names, so a name that is taken is told right after this.
            Ok(false) | Err(TunError::NamespaceReplaced { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(removed)
}

/// Makes the interface of side `side`, and gives it its addresses.
fn interface(
    namespace: &Namespace,
    side: usize,
    options: &TunInstanceOptions,
) -> Result<TunInterface, TunError> {
    let TunInstanceOptions { devices, transmit_map, mtu, offload, link_header, .. } = options;
    let name = &devices[side];
    let tun = namespace.inside(|| TunInterface::open(name, transmit_map.len(), *offload))?;
    let tun = tun.map_err(|error| {
        let (name, namespace) = (name.clone(), namespace.name().to_owned());
        TunError::Interface { name, namespace, error }
    })?;
    let host = side + 1;
    namespace.configure(&format!(
        "link set lo up
link set dev {name} mtu {mtu} txqueuelen {KERNEL_RING} gso_max_segs {SEGMENTS_MAX}
link set dev {name} up
addr add 10.77.0.{host}/24 dev {name}
addr add fd77:7163::{host}/64 dev {name} nodad\n"
    ))?;
    Ok(tun.with_link_header(*link_header))
}

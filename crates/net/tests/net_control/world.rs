//! A machine with two lanes, a device, its control, and a driver that can be closed.

use quietcore::net::{Answer, ClassReport, Control, Device, DeviceOptions, Driver, Network, QdiscReport};
use quietcore::qdisc::{Enqueued, Packet};
use quietcore::{CpuSet, LaneThreads, Machine};
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

/// Longer than any test takes on a machine that works.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// The port of packets that are not of IPv4.
pub(crate) const NOT_IP: u16 = u16::MAX;

/// A packet that filters can know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Parcel {
    pub(crate) bytes: u32,
    pub(crate) port: u16,
    pub(crate) number: u64,
    /// Of IPv4 and UDP, up to the port.
    pub(crate) header: [u8; 24],
}

impl Packet for Parcel {
    fn len(&self) -> u32 {
        self.bytes
    }

    fn flow(&self) -> u64 {
        u64::from(self.port)
    }

    fn duplicate(&self) -> Option<Self> {
        Some(self.clone())
    }

    fn network_bytes(&self) -> &[u8] {
        &self.header
    }

    /// The same as its port, so that filters of both find it.
    fn mark(&self) -> u32 {
        self.port.into()
    }
}

pub(crate) fn parcel(port: u16, bytes: u32) -> Parcel {
    let mut header = [0; 24];
    header[0] = if port == NOT_IP { 0x60 } else { 0x45 };
    // A datagram, as long as its headers.
    (header[3], header[9]) = (28, 17);
    header[22..].copy_from_slice(&port.to_be_bytes());
    Parcel { bytes, port, number: 0, header }
}

#[derive(Debug, Default)]
struct Road {
    is_closed: bool,
    refused: u64,
    sent: VecDeque<(usize, Parcel)>,
}

/// Where packets go; while it is closed there is no room for any.
#[derive(Clone, Debug, Default)]
pub(crate) struct Gate(Arc<(Mutex<Road>, Condvar)>);

impl Driver<Parcel> for Gate {
    fn transmit(&self, queue: usize, packet: Parcel) -> Result<(), Parcel> {
        let mut road = self.0.0.lock().expect("no panic");
        if road.is_closed {
            road.refused += 1;
            return Err(packet);
        }
        road.sent.push_back((queue, packet));
        self.0.1.notify_all();
        Ok(())
    }
}

impl Gate {
    pub(crate) fn close(&self) {
        self.0.0.lock().expect("no panic").is_closed = true;
    }

    pub(crate) fn open(&self) {
        self.0.0.lock().expect("no panic").is_closed = false;
    }

    /// How often a packet found no room.
    pub(crate) fn refused(&self) -> u64 {
        self.0.0.lock().expect("no panic").refused
    }

    /// What has left and was not asked for yet.
    pub(crate) fn sent_so_far(&self) -> Vec<(usize, Parcel)> {
        self.0.0.lock().expect("no panic").sent.drain(..).collect()
    }

    /// So many packets leave.
    pub(crate) fn pass(&self, count: usize) {
        (0..count).for_each(|_| _ = self.next());
    }

    /// The next packet that leaves, and its queue.
    pub(crate) fn next(&self) -> (usize, Parcel) {
        let road = self.0.0.lock().expect("no panic");
        let waited = self.0.1.wait_timeout_while(road, PATIENCE, |road| road.sent.is_empty());
        let (mut road, _) = waited.expect("no panic");
        road.sent.pop_front().expect("it leaves in time")
    }
}

pub(crate) struct World {
    pub(crate) machine: &'static Machine,
    pub(crate) device: Arc<Device<Parcel>>,
    pub(crate) control: Control<Parcel>,
    pub(crate) gate: Gate,
    network: Network,
}

impl Drop for World {
    fn drop(&mut self) {
        self.machine.shutdown();
    }
}

impl World {
    /// With a device `eth1` of so many queues.
    pub(crate) fn new(queues: usize) -> Self {
        let lanes: CpuSet = "0-1".parse().expect("a list");
        let (network, builder) = Network::new(Machine::builder().lanes(lanes));
        let machine = builder.lane_threads(LaneThreads::new()).start().expect("starts");
        let gate = Gate::default();
        let device = Device::new(&network, machine, DeviceOptions::new(queues), gate.clone());
        let device = Arc::new(device.expect("it has lanes"));
        let control = Control::new(machine, 1);
        control.add_device("eth1", Arc::clone(&device)).expect("the first");
        Self { machine, device, control, gate, network }
    }

    /// One more device of one queue, and where its packets go.
    pub(crate) fn add_device(&self, name: &str) -> (Arc<Device<Parcel>>, Gate) {
        let gate = Gate::default();
        let device = Device::new(&self.network, self.machine, DeviceOptions::new(1), gate.clone());
        let device = Arc::new(device.expect("it has lanes"));
        self.control.add_device(name, Arc::clone(&device)).expect("another name");
        (device, gate)
    }

    /// Carries out lines, all of which can be.
    pub(crate) fn tc(&self, lines: &str) {
        for line in lines.lines().map(str::trim).filter(|line| !line.is_empty()) {
            if let Err(error) = self.control.execute_line(line) {
                panic!("{line}: {error}");
            }
        }
    }

    /// What a line shows, without the blanks at ends of lines, which `tests/tc_recorded` compares.
    pub(crate) fn show(&self, line: &str) -> String {
        let shown = self.control.execute_line(line).expect("it can be shown").to_string();
        shown.lines().map(|line| format!("{}\n", line.trim_end())).collect()
    }

    /// What a line is refused with.
    pub(crate) fn refused(&self, line: &str) -> String {
        self.control.execute_line(line).expect_err(line).to_string()
    }

    /// The disciplines that a line shows.
    pub(crate) fn qdiscs(&self, line: &str) -> Vec<QdiscReport> {
        let Ok(Answer::Qdiscs(reports)) = self.control.execute_line(line) else { panic!("reports") };
        reports
    }

    /// The classes that a line shows.
    pub(crate) fn classes(&self, line: &str) -> Vec<ClassReport> {
        let Ok(Answer::Classes(reports)) = self.control.execute_line(line) else { panic!("reports") };
        reports
    }

    /// The discipline of a handle.
    pub(crate) fn qdisc(&self, handle: &str) -> QdiscReport {
        let reports = self.qdiscs(&format!("tc -s qdisc show dev eth1 handle {handle}"));
        reports.into_iter().next().unwrap_or_else(|| panic!("no {handle}"))
    }

    /// Sends through queue 0; it is taken.
    pub(crate) fn send(&self, packet: Parcel) {
        assert_ne!(self.device.send_through(0, packet), Enqueued::Dropped);
    }

    /// Sends so many packets like this one.
    pub(crate) fn send_all(&self, count: usize, packet: &Parcel) {
        (0..count).for_each(|_| self.send(packet.clone()));
    }

    /// Sends packets that fill what is taken out ahead while the driver has no room, so that what follows
    /// stays in the discipline.
    pub(crate) fn fill_ahead(&self) {
        self.gate.close();
        self.send_all(16, &parcel(9, 60));
    }

    /// Opens the driver, and passes over what [`fill_ahead`](Self::fill_ahead) sent.
    pub(crate) fn drain_ahead(&self) {
        self.gate.open();
        self.device.wake_queue(0);
        for _ in 0..16 {
            assert_eq!(self.gate.next().1.port, 9);
        }
    }
}

//! A relay of streams as programs start and end it: a machine, its lanes, the registry, the interface.

use super::address::HostPort;
use super::api::{self, SharedRegistry};
use super::counts::ProxyCounts;
use super::error::{ProxyError, StreamRelayError};
use super::registry::{ProxyConfig, Registry, RegistryPlan, ShownProxy};
use super::toxic::Toxic;
use crate::relay::Reach;
use core::fmt;
use quietcore_live::{CpuSet, Machine};
use quietcore_tokio::lanes::{LaneJoinHandle, Lanes};
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use tokio::sync::{Mutex, mpsc, watch};

/// What each way of a connection may hold, in bytes.
const MEMORY_MAX: u64 = 4 << 20;

/// What a [`StreamRelay`] has.
#[derive(Clone, Debug)]
pub struct StreamRelayOptions {
    lanes: CpuSet,
    seed: u64,
    memory_max: u64,
    reach: Reach,
    interface: Option<String>,
}

impl StreamRelayOptions {
    /// A relay whose lanes are on these CPUs, on loopback only, with seed 1 and without an interface.
    #[must_use]
    pub const fn new(lanes: CpuSet) -> Self {
        Self { lanes, seed: 1, memory_max: MEMORY_MAX, reach: Reach::Loopback, interface: None }
    }

    /// Where everything random begins: the same seed, the same delays of the same connections, as far as
    /// their data come in the same pieces.
    #[must_use]
    pub const fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// How many bytes each way of a connection may hold: what is delayed. Default 4 MiB.
    #[must_use]
    pub const fn memory_max(mut self, bytes: u64) -> Self {
        self.memory_max = bytes;
        self
    }

    /// Lets proxies listen, and lead, beyond loopback. Then other machines reach what this one does.
    #[must_use]
    pub const fn beyond_loopback(mut self) -> Self {
        self.reach = Reach::Beyond;
        self
    }

    /// Has an interface over HTTP at `HOST:PORT`. Every program that reaches it changes the relay.
    #[must_use]
    pub fn interface(mut self, address: impl Into<String>) -> Self {
        self.interface = Some(address.into());
        self
    }
}

struct Interface {
    address: SocketAddr,
    stop: watch::Sender<bool>,
    task: LaneJoinHandle<()>,
}

/// A relay of TCP connections that runs; dropped, it ends.
///
/// ```
/// use quietcore_net::stream::{ProxyConfig, StreamRelay, StreamRelayOptions, Toxic, ToxicKind};
/// use std::io::{Read, Write};
/// use std::net::{TcpListener, TcpStream};
///
/// let server = TcpListener::bind("127.0.0.1:0")?;
/// let relay = StreamRelay::start(StreamRelayOptions::new("0".parse()?))?;
/// let upstream = server.local_addr()?.to_string();
/// let proxy = relay.create(ProxyConfig::new("db", "127.0.0.1:0", upstream))?;
/// relay.add_toxic("db", Toxic::new(ToxicKind::Latency { latency: 20, jitter: 5 }))?;
/// let mut client = TcpStream::connect(proxy.config.listen)?;
/// let (mut accepted, _) = server.accept()?;
/// accepted.write_all(b"hello")?;
/// let started = std::time::Instant::now();
/// let mut buffer = [0; 5];
/// client.read_exact(&mut buffer)?;
/// assert_eq!(&buffer, b"hello");
/// # drop(accepted);
/// let counts = relay.end();
/// assert_eq!((counts[0].0.as_str(), counts[0].1.downstream.went), ("db", 5));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct StreamRelay {
    registry: SharedRegistry,
    interface: Option<Interface>,
    /// Says when the last connection is closed.
    pulses: Option<mpsc::Receiver<()>>,
    lanes: Option<Lanes>,
    machine: &'static Machine,
}

impl fmt::Debug for StreamRelay {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("StreamRelay").field("interface", &self.interface_address()).finish_non_exhaustive()
    }
}

impl StreamRelay {
    /// Starts one, without proxies.
    ///
    /// # Errors
    /// See [`StreamRelayError`]; then nothing is left of it.
    pub fn start(options: StreamRelayOptions) -> Result<Self, StreamRelayError> {
        let StreamRelayOptions { lanes, seed, memory_max, reach, interface } = options;
        let listener = interface.map(|address| listen(&address, reach)).transpose();
        let listener = listener.map_err(StreamRelayError::Interface)?;
        let machine = Machine::builder().lanes(lanes).start()?;
        let lanes = match Lanes::start(machine) {
            Ok(lanes) => lanes,
            Err(error) => {
                machine.shutdown();
                return Err(error.into());
            }
        };
        let (pulse, pulses) = mpsc::channel(1);
        let plan = RegistryPlan { machine, lanes: lanes.handle().clone(), reach, seed, memory_max, pulse };
        let registry = Arc::new(Mutex::new(Some(Registry::new(plan))));
        let mut relay = Self { registry, interface: None, pulses: Some(pulses), lanes: Some(lanes), machine };
        if let Some(listener) = listener {
            relay.interface = Some(relay.serve(listener).map_err(StreamRelayError::Interface)?);
        }
        Ok(relay)
    }

    fn serve(&self, listener: TcpListener) -> Result<Interface, ProxyError> {
        let address = listener.local_addr();
        let address =
            address.map_err(|error| ProxyError::Listen { address: "the interface".to_owned(), error })?;
        let (stop, stops) = watch::channel(false);
        let registry = Arc::clone(&self.registry);
        let task = self.lanes()?.spawn(move || api::serve(listener, registry, stops))?;
        Ok(Interface { address, stop, task })
    }

    fn lanes(&self) -> Result<&Lanes, ProxyError> {
        self.lanes.as_ref().ok_or(ProxyError::Ending)
    }

    /// Where the interface listens, if there is one.
    #[must_use]
    pub fn interface_address(&self) -> Option<SocketAddr> {
        self.interface.as_ref().map(|interface| interface.address)
    }

    /// The CPUs of lanes.
    #[must_use]
    pub const fn lanes_cpus(&self) -> &CpuSet {
        self.machine.lanes()
    }

    /// Changes the registry on a lane, where its listeners and tasks are made.
    fn change<T: Send + 'static>(
        &self,
        change: impl FnOnce(&mut Registry) -> Result<T, ProxyError> + Send + 'static,
    ) -> Result<T, ProxyError> {
        let registry = Arc::clone(&self.registry);
        self.lanes()?.run(move || async move {
            let mut registry = registry.lock().await;
            change(registry.as_mut().ok_or(ProxyError::Ending)?)
        })?
    }

    /// Creates a proxy; it listens when this returns, unless it is disabled.
    ///
    /// # Errors
    /// See [`ProxyError`].
    pub fn create(&self, config: ProxyConfig) -> Result<ShownProxy, ProxyError> {
        self.change(move |registry| registry.create(config))
    }

    /// Adds a toxic to a proxy's connections, those that are there and those to come.
    ///
    /// # Errors
    /// See [`ProxyError`].
    pub fn add_toxic(&self, proxy: &str, toxic: Toxic) -> Result<(), ProxyError> {
        let proxy = proxy.to_owned();
        self.change(move |registry| registry.add_toxic(&proxy, toxic).map(drop))
    }

    /// What the proxies of each name have done, in the order of their names; also those that are gone.
    #[must_use]
    pub fn counts(&self) -> Vec<(String, ProxyCounts)> {
        self.change(|registry| Ok(registry.counts())).unwrap_or_default()
    }

    /// Ends it: closes all connections, and says what was done.
    #[must_use = "to end it without its counts, drop it"]
    pub fn end(mut self) -> Vec<(String, ProxyCounts)> {
        self.take_down()
    }

    fn take_down(&mut self) -> Vec<(String, ProxyCounts)> {
        let (Some(lanes), Some(mut pulses)) = (self.lanes.take(), self.pulses.take()) else { return vec![] };
        let (registry, interface) = (Arc::clone(&self.registry), self.interface.take());
        let counts = lanes.run(move || async move {
            if let Some(Interface { stop, task, .. }) = interface {
                stop.send_replace(true);
                let _ = task.await;
            }
            let Some(registry) = registry.lock().await.take() else { return vec![] };
            let counts = registry.end().await;
            // Ready when the last connection, and with it the last pulse, is gone.
            let _ = pulses.recv().await;
            counts.into_iter().map(|(name, counts)| (name, counts.get())).collect()
        });
        lanes.shutdown();
        self.machine.shutdown();
        counts.unwrap_or_default()
    }
}

impl Drop for StreamRelay {
    fn drop(&mut self) {
        self.take_down();
    }
}

fn listen(address: &str, reach: Reach) -> Result<TcpListener, ProxyError> {
    let failed = |error| ProxyError::Listen { address: address.to_owned(), error };
    let addresses = HostPort::parse(address, reach)?.to_listen(reach).map_err(failed)?;
    let listener = TcpListener::bind(&*addresses).map_err(failed)?;
    listener.set_nonblocking(true).map_err(failed)?;
    Ok(listener)
}

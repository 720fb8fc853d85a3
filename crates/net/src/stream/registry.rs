//! The proxies of a relay and their toxics: what the interface shows and changes.
//!
//! Invariants: no two proxies have one name; a change that is refused changes nothing, but where a proxy
//! cannot listen again: it is then there and disabled; a proxy that is disabled has no port and no
//! connection.

use super::address::HostPort;
use super::connection::{ConnectionPlan, WayToxics};
use super::counts::{ProxyCounts, SharedCounts};
use super::draws::DrawKey;
use super::error::ProxyError;
use super::link::AppliedToxic;
use super::proxy::{Listening, Pulse};
use super::toxic::{StreamWay, Toxic, ToxicKind};
use crate::relay::Reach;
use quietcore_live::Machine;
use quietcore_tokio::lanes::LanesHandle;
use serde::Serialize;
use std::collections::BTreeMap;
use std::net::TcpListener;
use std::sync::Arc;
use tokio::sync::watch;

const PROXIES_MAX: usize = 1000;
const TOXICS_MAX: usize = 100;
const NAME_MAX: usize = 200;
/// Counts of proxies whose names are one too many.
const OTHERS: &str = "(others)";

/// What a proxy is, as the interface shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ProxyConfig {
    /// Of this proxy alone.
    pub name: String,
    /// Where it listens, `HOST:PORT`; port 0 becomes the port that it has.
    pub listen: String,
    /// Where its connections lead, `HOST:PORT`.
    pub upstream: String,
    /// Whether it listens.
    pub enabled: bool,
}

impl ProxyConfig {
    /// Enabled.
    #[must_use]
    pub fn new(name: impl Into<String>, listen: impl Into<String>, upstream: impl Into<String>) -> Self {
        Self { name: name.into(), listen: listen.into(), upstream: upstream.into(), enabled: true }
    }
}

/// A proxy with its toxics, as the interface shows it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ShownProxy {
    /// What it is.
    #[serde(flatten)]
    pub config: ProxyConfig,
    /// In the order in which they were added.
    pub toxics: Vec<Toxic>,
}

/// What proxies have in common.
#[derive(Debug)]
pub(super) struct RegistryPlan {
    pub(super) machine: &'static Machine,
    pub(super) lanes: LanesHandle,
    pub(super) reach: Reach,
    pub(super) seed: u64,
    /// Of each way of a connection, in bytes.
    pub(super) memory_max: u64,
    pub(super) pulse: Pulse,
}

#[derive(Debug)]
struct NumberedToxic {
    id: u64,
    revision: u64,
    toxic: Toxic,
}

#[derive(Debug)]
struct RunningProxy {
    config: ProxyConfig,
    toxics: Vec<NumberedToxic>,
    told: watch::Sender<WayToxics>,
    listening: Option<Listening>,
    counts: SharedCounts,
}

#[derive(Debug)]
pub(super) struct Registry {
    plan: RegistryPlan,
    proxies: BTreeMap<String, RunningProxy>,
    /// By name; of proxies that are gone, too.
    counts: BTreeMap<String, SharedCounts>,
    numbers: u64,
}

impl RunningProxy {
    fn shown(&self) -> ShownProxy {
        let toxics = self.toxics.iter().map(|it| it.toxic.clone()).collect();
        ShownProxy { config: self.config.clone(), toxics }
    }

    /// Tells all connections, those that are there and those to come.
    fn tell(&self) {
        let of_way = |way: StreamWay| {
            let toxics = self.toxics.iter().filter(|it| it.toxic.stream == way);
            let applied = |NumberedToxic { id, revision, toxic }: &NumberedToxic| AppliedToxic {
                id: *id,
                revision: *revision,
                kind: toxic.kind,
                toxicity: toxic.toxicity,
                name: toxic.name.clone(),
            };
            toxics.map(applied).collect()
        };
        self.told.send_replace(Arc::new(StreamWay::BOTH.map(of_way)));
    }

    fn position(&self, toxic: &str) -> Result<usize, ProxyError> {
        self.toxics.iter().position(|it| it.toxic.name == toxic).ok_or(ProxyError::ToxicNotFound)
    }
}

/// What is out of its range, if anything is.
fn check_toxic(toxic: &Toxic) -> Result<(), ProxyError> {
    let what = match toxic.kind {
        _ if !(0.0..=1.0).contains(&toxic.toxicity) => "toxicity, 0 to 1",
        _ if toxic.name.is_empty() || toxic.name.len() > NAME_MAX => "name, 1 to 200 bytes",
        ToxicKind::Loss { percent, .. } if !(0.0..=100.0).contains(&percent) => "percent, 0 to 100",
        _ => return Ok(()),
    };
    Err(ProxyError::OutOfRange { what })
}

impl Registry {
    pub(super) const fn new(plan: RegistryPlan) -> Self {
        Self { plan, proxies: BTreeMap::new(), counts: BTreeMap::new(), numbers: 0 }
    }

    fn proxy(&self, name: &str) -> Result<&RunningProxy, ProxyError> {
        self.proxies.get(name).ok_or(ProxyError::ProxyNotFound)
    }

    fn proxy_mut(&mut self, name: &str) -> Result<&mut RunningProxy, ProxyError> {
        self.proxies.get_mut(name).ok_or(ProxyError::ProxyNotFound)
    }

    const fn number(&mut self) -> u64 {
        self.numbers += 1;
        self.numbers
    }

    pub(super) fn shown(&self, name: &str) -> Result<ShownProxy, ProxyError> {
        self.proxy(name).map(RunningProxy::shown)
    }

    pub(super) fn all_shown(&self) -> BTreeMap<String, ShownProxy> {
        self.proxies.iter().map(|(name, proxy)| (name.clone(), proxy.shown())).collect()
    }

    /// The proxies that are there, and what they did.
    pub(super) fn metered(&self) -> Vec<(ProxyConfig, ProxyCounts)> {
        self.proxies.values().map(|proxy| (proxy.config.clone(), proxy.counts.get())).collect()
    }

    pub(super) fn counts(&self) -> Vec<(String, ProxyCounts)> {
        self.counts.iter().map(|(name, counts)| (name.clone(), counts.get())).collect()
    }

    /// The counts of that name.
    fn counts_of(&mut self, name: &str) -> SharedCounts {
        let is_full = self.counts.len() >= PROXIES_MAX && !self.counts.contains_key(name);
        let name = if is_full { OTHERS } else { name };
        self.counts.entry(name.to_owned()).or_default().clone()
    }

    fn check(&self, config: &ProxyConfig) -> Result<(), ProxyError> {
        if config.name.is_empty() || config.name.len() > NAME_MAX {
            return Err(ProxyError::OutOfRange { what: "name, 1 to 200 bytes" });
        }
        let _ = HostPort::parse(&config.listen, self.plan.reach)?;
        HostPort::parse(&config.upstream, self.plan.reach).map(drop)
    }

    pub(super) fn create(&mut self, config: ProxyConfig) -> Result<ShownProxy, ProxyError> {
        self.check(&config)?;
        if self.proxies.contains_key(&config.name) {
            return Err(ProxyError::ProxyExists);
        }
        if self.proxies.len() >= PROXIES_MAX {
            return Err(ProxyError::OutOfRange { what: "proxies, up to 1000" });
        }
        let counts = self.counts_of(&config.name);
        let (told, _) = watch::channel(WayToxics::default());
        let mut proxy = RunningProxy { config, toxics: vec![], told, listening: None, counts };
        if proxy.config.enabled {
            self.listen(&mut proxy)?;
        }
        let shown = proxy.shown();
        self.proxies.insert(shown.config.name.clone(), proxy);
        Ok(shown)
    }

    fn listen(&self, proxy: &mut RunningProxy) -> Result<(), ProxyError> {
        let RegistryPlan { machine, lanes, reach, seed, memory_max, pulse } = &self.plan;
        let config = &mut proxy.config;
        let failed = |error| ProxyError::Listen { address: config.listen.clone(), error };
        let addresses = HostPort::parse(&config.listen, *reach)?.to_listen(*reach).map_err(failed)?;
        let listener = TcpListener::bind(&*addresses).map_err(failed)?;
        let plan = ConnectionPlan {
            machine,
            upstream: HostPort::parse(&config.upstream, *reach)?,
            reach: *reach,
            memory_max: *memory_max,
            key: DrawKey::new(*seed).and(config.name.as_bytes()),
            toxics: proxy.told.subscribe(),
            // Another one, once it listens.
            stop: watch::channel(false).1,
            counts: proxy.counts.clone(),
        };
        let listening = Listening::start(listener, lanes, plan, pulse.clone()).map_err(failed)?;
        config.listen = listening.address.to_string();
        (proxy.listening, config.enabled) = (Some(listening), true);
        Ok(())
    }

    /// Has a proxy be as it is told; another address, and it is begun anew.
    pub(super) async fn update(&mut self, new: ProxyConfig) -> Result<ShownProxy, ProxyError> {
        self.check(&new)?;
        let mut proxy = self.proxies.remove(&new.name).ok_or(ProxyError::ProxyNotFound)?;
        let is_other = !self.listens_at(&proxy, &new.listen) || proxy.config.upstream != new.upstream;
        if is_other || !new.enabled {
            if let Some(listening) = proxy.listening.take() {
                listening.stop().await;
            }
            proxy.config.enabled = false;
        }
        if is_other {
            (proxy.config.listen, proxy.config.upstream) = (new.listen, new.upstream);
        }
        let started = if new.enabled && proxy.listening.is_none() { self.listen(&mut proxy) } else { Ok(()) };
        let shown = proxy.shown();
        self.proxies.insert(new.name, proxy);
        started.map(|()| shown)
    }

    /// Whether this is another way to write where it listens.
    fn listens_at(&self, proxy: &RunningProxy, listen: &str) -> bool {
        let reach = self.plan.reach;
        let resolved = || HostPort::parse(listen, reach).ok()?.to_listen(reach).ok();
        let is_at = |address: &std::net::SocketAddr| address.to_string() == proxy.config.listen;
        proxy.config.listen == listen || resolved().is_some_and(|found| found.iter().any(is_at))
    }

    pub(super) async fn remove(&mut self, name: &str) -> Result<(), ProxyError> {
        let proxy = self.proxies.remove(name).ok_or(ProxyError::ProxyNotFound)?;
        if let Some(listening) = proxy.listening {
            listening.stop().await;
        }
        Ok(())
    }

    /// Creates or replaces each; those that are there already as they are told stay. What was done before an
    /// error stays, and is shown.
    pub(super) async fn populate(
        &mut self,
        configs: Vec<ProxyConfig>,
    ) -> (Vec<ShownProxy>, Result<(), ProxyError>) {
        let mut shown = Vec::new();
        for config in configs {
            let name = config.name.clone();
            let done = match self.proxies.get(&name) {
                Some(there)
                    if self.listens_at(there, &config.listen) && there.config.upstream == config.upstream =>
                {
                    Ok(there.shown())
                }
                Some(_) => match self.check(&config) {
                    Ok(()) => {
                        let _ = self.remove(&name).await;
                        self.create(config)
                    }
                    Err(error) => Err(error),
                },
                None => self.create(config),
            };
            match done {
                Ok(proxy) => shown.push(proxy),
                Err(error) => return (shown, Err(error)),
            }
        }
        (shown, Ok(()))
    }

    /// Enables all proxies and removes all toxics.
    pub(super) fn reset(&mut self) -> Result<(), ProxyError> {
        let mut proxies = core::mem::take(&mut self.proxies);
        let mut result = Ok(());
        for proxy in proxies.values_mut() {
            proxy.toxics.clear();
            proxy.tell();
            if proxy.listening.is_none() {
                result = self.listen(proxy).and(result);
            }
        }
        self.proxies = proxies;
        result
    }

    pub(super) fn toxics(&self, proxy: &str) -> Result<Vec<Toxic>, ProxyError> {
        self.shown(proxy).map(|shown| shown.toxics)
    }

    pub(super) fn toxic(&self, proxy: &str, toxic: &str) -> Result<Toxic, ProxyError> {
        let proxy = self.proxy(proxy)?;
        Ok(proxy.toxics[proxy.position(toxic)?].toxic.clone())
    }

    pub(super) fn add_toxic(&mut self, proxy: &str, toxic: Toxic) -> Result<Toxic, ProxyError> {
        let id = self.number();
        let proxy = self.proxy_mut(proxy)?;
        check_toxic(&toxic)?;
        if proxy.position(&toxic.name).is_ok() {
            return Err(ProxyError::ToxicExists);
        }
        if proxy.toxics.len() >= TOXICS_MAX {
            return Err(ProxyError::OutOfRange { what: "toxics of a proxy, up to 100" });
        }
        proxy.toxics.push(NumberedToxic { id, revision: 0, toxic: toxic.clone() });
        proxy.tell();
        Ok(toxic)
    }

    /// Changes what a toxic does, and to how many connections.
    pub(super) fn change_toxic(&mut self, proxy: &str, toxic: Toxic) -> Result<Toxic, ProxyError> {
        let revision = self.number();
        let proxy = self.proxy_mut(proxy)?;
        let at = proxy.position(&toxic.name)?;
        check_toxic(&toxic)?;
        (proxy.toxics[at].revision, proxy.toxics[at].toxic) = (revision, toxic.clone());
        proxy.tell();
        Ok(toxic)
    }

    pub(super) fn remove_toxic(&mut self, proxy: &str, toxic: &str) -> Result<(), ProxyError> {
        let proxy = self.proxy_mut(proxy)?;
        proxy.toxics.remove(proxy.position(toxic)?);
        proxy.tell();
        Ok(())
    }

    /// Takes all proxies down. Nothing has their pulse any more once their connections are closed; then the
    /// counts are final.
    pub(super) async fn end(self) -> BTreeMap<String, SharedCounts> {
        for proxy in self.proxies.into_values() {
            if let Some(listening) = proxy.listening {
                listening.stop().await;
            }
        }
        self.counts
    }
}

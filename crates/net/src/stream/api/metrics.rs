//! What proxies have done, as OpenMetrics text: toxiproxy's two metrics by their names, and what it does not
//! count.
//!
//! A proxy that is removed has no series any more; one that is made anew under its name goes on counting.
//!
//! Source: toxiproxy's page on metrics (proxy metrics); OpenMetrics 1.0, "Text format". Deviations: bytes
//! count as they pass, not only once a connection has ended; metrics of Go's runtime are absent.

use super::super::counts::{ProxyCounts, StreamWayCounts};
use super::super::registry::{ProxyConfig, Registry};
use super::super::toxic::StreamWay;
use core::fmt;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet, text};
use prometheus_client::metrics::MetricType;

pub(super) const METRICS_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Name, help, type and value of a metric of each way of a proxy's connections.
type OfWay = (&'static str, &'static str, MetricType, fn(&StreamWayCounts) -> u64);
/// The same of a proxy.
type OfProxy = (&'static str, &'static str, MetricType, fn(&ProxyCounts) -> u64);

const OF_WAYS: [OfWay; 5] = [
    ("toxiproxy_proxy_received_bytes", "Bytes that came in", MetricType::Counter, |way| way.came),
    ("toxiproxy_proxy_sent_bytes", "Bytes that went out", MetricType::Counter, |way| way.went),
    (
        "quietcore_proxy_dropped_bytes",
        "Bytes that a toxic threw away, or that were held when their connection was closed",
        MetricType::Counter,
        |way| way.dropped,
    ),
    ("quietcore_proxy_held_bytes", "Bytes that are held now", MetricType::Gauge, |way| way.held),
    ("quietcore_proxy_stalls", "Times that a lost segment was waited for", MetricType::Counter, |way| {
        way.stalls
    }),
];

const OF_PROXIES: [OfProxy; 4] = [
    ("quietcore_proxy_connections", "Connections that were accepted", MetricType::Counter, |of| {
        of.connections
    }),
    ("quietcore_proxy_open_connections", "Connections that are there now", MetricType::Gauge, |of| of.open),
    (
        "quietcore_proxy_unreached",
        "Connections whose server could not be reached",
        MetricType::Counter,
        |of| of.unreached,
    ),
    (
        "quietcore_proxy_resets",
        "Connections that ended with a reset, for whatever other reason",
        MetricType::Counter,
        |of| of.resets,
    ),
];

/// Of the proxies that are there.
pub(super) fn metrics(registry: &Registry) -> Result<String, fmt::Error> {
    let mut metrics = prometheus_client::registry::Registry::default();
    metrics.register_collector(Box::new(Metered(registry.metered())));
    let mut written = String::new();
    text::encode(&mut written, &metrics)?;
    Ok(written)
}

#[derive(Debug)]
struct Metered(Vec<(ProxyConfig, ProxyCounts)>);

impl Collector for Metered {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        for (name, help, kind, value) in OF_WAYS {
            let mut family = encoder.encode_descriptor(name, help, None, kind)?;
            for (proxy, counts) in &self.0 {
                for (way, of_way) in StreamWay::BOTH.into_iter().zip([&counts.upstream, &counts.downstream]) {
                    let [listener, name, upstream] = labels(proxy);
                    let labels = [("direction", way.as_str()), listener, name, upstream];
                    sample(&mut family.encode_family(&labels)?, kind, value(of_way))?;
                }
            }
        }
        for (name, help, kind, value) in OF_PROXIES {
            let mut family = encoder.encode_descriptor(name, help, None, kind)?;
            for (proxy, counts) in &self.0 {
                sample(&mut family.encode_family(&labels(proxy))?, kind, value(counts))?;
            }
        }
        Ok(())
    }
}

fn labels(proxy: &ProxyConfig) -> [(&'static str, &str); 3] {
    [("listener", &proxy.listen), ("proxy", &proxy.name), ("upstream", &proxy.upstream)]
}

fn sample(encoder: &mut MetricEncoder<'_>, kind: MetricType, value: u64) -> fmt::Result {
    match kind {
        MetricType::Counter => encoder.encode_counter::<NoLabelSet, _, u64>(&value, None),
        _ => encoder.encode_gauge(&value),
    }
}

//! What can be done to a stream, by the names of toxiproxy's published interface, and one name more: `loss`.
//!
//! A toxic is a description; [`stage`](super::stage) does it. Times are in ms, but where it is said. Absent:
//! `down`, which is no toxic: a proxy is disabled.
//!
//! Source: toxiproxy's README (toxics, fields). Deviations: `loss` is ours; the end of a stream is delayed by
//! `latency`, too, as on a link; a half-closed connection stays half-open.

use serde::{Deserialize, Serialize};

/// A way of a connection, as clients of the interface name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StreamWay {
    /// From the client to the server.
    Upstream,
    /// From the server to the client.
    Downstream,
}

impl StreamWay {
    /// Both.
    pub const BOTH: [Self; 2] = [Self::Upstream, Self::Downstream];

    /// As it is written.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Upstream => "upstream",
            Self::Downstream => "downstream",
        }
    }

    /// From its name, in any case.
    #[must_use]
    pub fn of(name: &str) -> Option<Self> {
        Self::BOTH.into_iter().find(|way| way.as_str().eq_ignore_ascii_case(name))
    }
}

/// What a toxic does; attributes that are not named are 0.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", content = "attributes", rename_all = "snake_case")]
#[non_exhaustive]
pub enum ToxicKind {
    /// Everything is `latency` ms late, plus or minus up to `jitter` ms; nothing overtakes.
    Latency {
        /// In ms.
        #[serde(default)]
        latency: u64,
        /// In ms.
        #[serde(default)]
        jitter: u64,
    },
    /// So many bytes pass in a second; with 0 nothing does, as long as it is there.
    Bandwidth {
        /// In kB/s: 1000 bytes a second.
        #[serde(default)]
        rate: u64,
    },
    /// The end of the stream is `delay` ms late.
    SlowClose {
        /// In ms.
        #[serde(default)]
        delay: u64,
    },
    /// No data passes: they are thrown away. The connection is closed `timeout` ms after the toxic began;
    /// with 0 it stays, until the toxic is removed.
    Timeout {
        /// In ms.
        #[serde(default)]
        timeout: u64,
    },
    /// The connection is reset, on both sides, `timeout` ms after the toxic began.
    ResetPeer {
        /// In ms.
        #[serde(default)]
        timeout: u64,
    },
    /// Data are cut into pieces, which are written one by one. With an `average_size` of 0 none is cut.
    Slicer {
        /// In bytes.
        #[serde(default)]
        average_size: u64,
        /// How much smaller or larger a piece may be, in bytes.
        #[serde(default)]
        size_variation: u64,
        /// Between two pieces, in µs.
        #[serde(default)]
        delay: u64,
    },
    /// The connection is closed once so many bytes have passed.
    LimitData {
        /// In bytes.
        #[serde(default)]
        bytes: u64,
    },
    /// Of a segment's worth of data `percent` are lost. To a program that is a stall: what was lost comes a
    /// retransmission timeout later, everything behind it waits, and a second loss in a row takes twice as
    /// long.
    Loss {
        /// 0 to 100.
        #[serde(default)]
        percent: f64,
        /// In ms; 200 unless it is said.
        #[serde(default = "usual_rto")]
        rto: u64,
    },
}

const fn usual_rto() -> u64 {
    200
}

impl ToxicKind {
    /// The names of all kinds.
    pub const NAMES: [&str; 8] =
        ["latency", "bandwidth", "slow_close", "timeout", "reset_peer", "slicer", "limit_data", "loss"];

    /// Its name.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        Self::NAMES[match self {
            Self::Latency { .. } => 0,
            Self::Bandwidth { .. } => 1,
            Self::SlowClose { .. } => 2,
            Self::Timeout { .. } => 3,
            Self::ResetPeer { .. } => 4,
            Self::Slicer { .. } => 5,
            Self::LimitData { .. } => 6,
            Self::Loss { .. } => 7,
        }]
    }
}

/// A toxic of a proxy.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Toxic {
    /// Of this proxy alone.
    pub name: String,
    /// What it does.
    #[serde(flatten)]
    pub kind: ToxicKind,
    /// To which way of a connection.
    pub stream: StreamWay,
    /// To how many of a hundred connections, as a number from 0 to 1.
    pub toxicity: f64,
}

impl Toxic {
    /// On the way to the client, of all connections, with the usual name.
    #[must_use]
    pub fn new(kind: ToxicKind) -> Self {
        Self::on(StreamWay::Downstream, kind)
    }

    /// The same on that way.
    #[must_use]
    pub fn on(stream: StreamWay, kind: ToxicKind) -> Self {
        Self { name: Self::usual_name(kind.name(), stream), kind, stream, toxicity: 1.0 }
    }

    /// The name of a toxic that was given none.
    pub(super) fn usual_name(kind: &str, stream: StreamWay) -> String {
        format!("{kind}_{}", stream.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::{StreamWay, Toxic, ToxicKind};

    /// Goal: toxics have the fields of the interface. Method: one of each kind, there and back.
    #[test]
    fn toxics_have_the_fields_of_the_interface() {
        let kinds = [
            ToxicKind::Latency { latency: 1, jitter: 2 },
            ToxicKind::Bandwidth { rate: 3 },
            ToxicKind::SlowClose { delay: 4 },
            ToxicKind::Timeout { timeout: 5 },
            ToxicKind::ResetPeer { timeout: 6 },
            ToxicKind::Slicer { average_size: 7, size_variation: 8, delay: 9 },
            ToxicKind::LimitData { bytes: 10 },
            ToxicKind::Loss { percent: 11.5, rto: 12 },
        ];
        let attributes = [
            r#"{"latency":1,"jitter":2}"#,
            r#"{"rate":3}"#,
            r#"{"delay":4}"#,
            r#"{"timeout":5}"#,
            r#"{"timeout":6}"#,
            r#"{"average_size":7,"size_variation":8,"delay":9}"#,
            r#"{"bytes":10}"#,
            r#"{"percent":11.5,"rto":12}"#,
        ];
        for ((kind, attributes), name) in kinds.into_iter().zip(attributes).zip(ToxicKind::NAMES) {
            let text = format!(
                r#"{{"name":"{name}_downstream","type":"{name}","attributes":{attributes},"stream":"downstream","toxicity":1.0}}"#
            );
            assert_eq!(serde_json::to_string(&Toxic::new(kind)).unwrap(), text);
            assert_eq!(serde_json::from_str::<ToxicKind>(&text).unwrap(), kind);
        }
        let loss: ToxicKind = serde_json::from_str(r#"{"type":"loss","attributes":{}}"#).unwrap();
        assert_eq!(loss, ToxicKind::Loss { percent: 0.0, rto: 200 });
        assert_eq!(StreamWay::of("UpStream"), Some(StreamWay::Upstream));
        assert_eq!(StreamWay::of("up"), None);
    }
}

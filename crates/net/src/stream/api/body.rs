//! What requests say, read by the rules of the interface: which fields must be there, and what the others
//! are.

use super::super::error::ProxyError;
use super::super::registry::ProxyConfig;
use super::super::toxic::{StreamWay, Toxic, ToxicKind};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

/// Where a proxy listens that was not told.
const ANY_PORT: &str = "127.0.0.1:0";

pub(super) fn read<T: DeserializeOwned>(body: &[u8]) -> Result<T, ProxyError> {
    serde_json::from_slice(body).map_err(|error| ProxyError::Body { error: error.to_string() })
}

/// Fields of a proxy; other fields mean nothing.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ProxyBody {
    name: Option<String>,
    listen: Option<String>,
    upstream: Option<String>,
    enabled: Option<bool>,
}

fn given(field: Option<String>) -> Option<String> {
    field.filter(|text| !text.is_empty())
}

impl ProxyBody {
    pub(super) fn created(self) -> Result<ProxyConfig, ProxyError> {
        let name = given(self.name).ok_or(ProxyError::MissingField { field: "name" })?;
        let upstream = given(self.upstream).ok_or(ProxyError::MissingField { field: "upstream" })?;
        let listen = given(self.listen).unwrap_or_else(|| ANY_PORT.to_owned());
        Ok(ProxyConfig { enabled: self.enabled.unwrap_or(true), ..ProxyConfig::new(name, listen, upstream) })
    }

    /// A proxy with the changes that this is.
    pub(super) fn changed(self, old: ProxyConfig) -> ProxyConfig {
        ProxyConfig {
            listen: given(self.listen).unwrap_or(old.listen),
            upstream: given(self.upstream).unwrap_or(old.upstream),
            enabled: self.enabled.unwrap_or(old.enabled),
            name: old.name,
        }
    }
}

/// Fields of a toxic; other fields mean nothing.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ToxicBody {
    name: Option<String>,
    #[serde(rename = "type")]
    kind: Option<String>,
    stream: Option<String>,
    toxicity: Option<f64>,
    attributes: Option<Map<String, Value>>,
}

fn kind_of(name: &str, attributes: Map<String, Value>) -> Result<ToxicKind, ProxyError> {
    let kind = serde_json::from_value(json!({ "type": name, "attributes": attributes }));
    kind.map_err(|error| ProxyError::Body { error: error.to_string() })
}

impl ToxicBody {
    pub(super) fn created(self) -> Result<Toxic, ProxyError> {
        let stream = given(self.stream).map_or(Some(StreamWay::Downstream), |name| StreamWay::of(&name));
        let stream = stream.ok_or(ProxyError::StreamName)?;
        let kind = self.kind.filter(|name| ToxicKind::NAMES.contains(&name.as_str()));
        let kind = kind.ok_or(ProxyError::ToxicType)?;
        let toxic = Toxic::on(stream, kind_of(&kind, self.attributes.unwrap_or_default())?);
        let name = given(self.name).unwrap_or_else(|| Toxic::usual_name(&kind, stream));
        Ok(Toxic { name, toxicity: self.toxicity.unwrap_or(1.0), ..toxic })
    }

    /// A toxic with the changes that this is: attributes that are not named stay as they are.
    pub(super) fn changed(self, old: Toxic) -> Result<Toxic, ProxyError> {
        let was = serde_json::to_value(old.kind).unwrap_or_default();
        let mut attributes = was["attributes"].as_object().cloned().unwrap_or_default();
        attributes.extend(self.attributes.unwrap_or_default());
        let kind = kind_of(old.kind.name(), attributes)?;
        Ok(Toxic { kind, toxicity: self.toxicity.unwrap_or(old.toxicity), ..old })
    }
}

/// A part of a path with its `%` signs read; `None` where they are no text.
pub(super) fn decoded(part: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(part.len());
    let mut rest = part.as_bytes();
    while let Some((&first, behind)) = rest.split_first() {
        rest = behind;
        if first != b'%' {
            bytes.push(first);
            continue;
        }
        let (digits, behind) = rest.split_at_checked(2)?;
        let digits = std::str::from_utf8(digits).ok()?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        rest = behind;
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::{ProxyBody, ToxicBody, decoded, read};
    use crate::stream::registry::ProxyConfig;
    use crate::stream::toxic::{StreamWay, Toxic, ToxicKind};

    /// Goal: a proxy has what it is told, the usual where it is not, and no proxy is without what it needs.
    #[test]
    fn proxies_are_read() {
        let created = |text: &str| {
            let body = read::<ProxyBody>(text.as_bytes()).and_then(ProxyBody::created);
            body.map_err(|error| error.to_string())
        };
        let usual = ProxyConfig::new("a", "127.0.0.1:0", "localhost:1");
        assert_eq!(created(r#"{"name":"a","upstream":"localhost:1","toxics":[]}"#), Ok(usual.clone()));
        let all = r#"{"name":"a","listen":"[::1]:3","upstream":"localhost:1","enabled":false}"#;
        let told = ProxyConfig { enabled: false, ..ProxyConfig::new("a", "[::1]:3", "localhost:1") };
        assert_eq!(created(all), Ok(told.clone()));
        let missing = |field: &str| Err(format!("missing required field: {field}"));
        assert_eq!(created(r#"{"upstream":"localhost:1"}"#), missing("name"));
        assert_eq!(created(r#"{"name":"a","upstream":""}"#), missing("upstream"));
        for bad in ["", "[", r#"{"name":7}"#] {
            assert!(created(bad).is_err_and(|error| error.starts_with("bad request body")), "{bad}");
        }
        let changed = |text: &str| read::<ProxyBody>(text.as_bytes()).unwrap().changed(usual.clone());
        assert_eq!(changed(r#"{"enabled":false}"#), ProxyConfig { enabled: false, ..usual.clone() });
        assert_eq!(changed(all), told);
    }

    /// Goal: a toxic has what it is told, a change leaves what it does not name. Method: with and without
    /// each.
    #[test]
    fn toxics_are_read() {
        let created = |text: &str| {
            let body = read::<ToxicBody>(text.as_bytes()).and_then(ToxicBody::created);
            body.map_err(|error| error.to_string())
        };
        let latency = Toxic::new(ToxicKind::Latency { latency: 5, jitter: 0 });
        assert_eq!(created(r#"{"type":"latency","attributes":{"latency":5}}"#), Ok(latency.clone()));
        let named = r#"{"name":"x","type":"latency","stream":"Upstream","toxicity":0.5,"attributes":null}"#;
        let kind = ToxicKind::Latency { latency: 0, jitter: 0 };
        let told = Toxic { name: "x".into(), kind, stream: StreamWay::Upstream, toxicity: 0.5 };
        assert_eq!(created(named), Ok(told));
        assert_eq!(created(r#"{"type":"x"}"#), Err("invalid toxic type".into()));
        assert_eq!(created("{}"), Err("invalid toxic type".into()));
        let stream = "stream was invalid, can be either upstream or downstream";
        assert_eq!(created(r#"{"type":"latency","stream":"x"}"#), Err(stream.into()));
        let negative = created(r#"{"type":"latency","attributes":{"latency":-1}}"#);
        assert!(negative.is_err_and(|error| error.starts_with("bad request body")));
        let changed = |text: &str| read::<ToxicBody>(text.as_bytes()).unwrap().changed(latency.clone());
        let kind = ToxicKind::Latency { latency: 5, jitter: 3 };
        let told = Toxic { kind, toxicity: 0.25, ..latency.clone() };
        let text = r#"{"name":"y","type":"z","toxicity":0.25,"attributes":{"jitter":3}}"#;
        assert_eq!(changed(text).unwrap(), told);
        assert_eq!(changed("{}").unwrap(), latency);
    }

    /// Goal: names in paths are read as they were written.
    #[test]
    fn paths_are_decoded() {
        assert_eq!(decoded("a%20b%2Fc"), Some("a b/c".into()));
        assert_eq!(decoded("%C3%A9"), Some("é".into()));
        for bad in ["%", "%1", "%zz", "%ff"] {
            assert_eq!(decoded(bad), None, "{bad}");
        }
    }
}

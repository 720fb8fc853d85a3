//! The interface over HTTP by which programs and toxiproxy's client libraries change proxies and toxics.
//!
//! Paths, fields and numbers are those of toxiproxy's published interface; an error is
//! `{"error": ..., "status": ...}`. A change has taken effect when it is answered: a port is free or is
//! listened on, and what is sent from then on meets the toxics that there are then.
//!
//! A page in a browser must not change anything: what comes from one (`Origin`, `Mozilla/`) is refused.
//! `/metrics` has OpenMetrics text.
//!
//! Source: toxiproxy's README (HTTP API) and changelog up to 2.6.

mod body;
mod metrics;

use super::error::ProxyError;
use super::registry::Registry;
use body::{ProxyBody, ToxicBody, decoded, read};
use core::convert::Infallible;
use core::time::Duration;
use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderMap, HeaderValue, ORIGIN, USER_AGENT};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use serde::Serialize;
use serde_json::{Value, json};
use std::sync::Arc;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Mutex, Semaphore, watch};

/// The version of the interface, which some clients ask for.
pub const API_VERSION: &str = "2.6.0";

const CONNECTIONS_MAX: usize = 64;
const BODY_MAX: usize = 1 << 20;
/// A request that is not complete by then is none.
const PATIENCE: Duration = Duration::from_secs(10);

/// Empty once the relay ends.
pub(super) type SharedRegistry = Arc<Mutex<Option<Registry>>>;

/// A status, and what is said.
type Said = Result<(StatusCode, Option<Value>), ProxyError>;

/// Answers until it is told to stop.
pub(super) async fn serve(
    listener: std::net::TcpListener,
    registry: SharedRegistry,
    mut stop: watch::Receiver<bool>,
) {
    let Ok(listener) = TcpListener::from_std(listener) else { return };
    let room = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        let Ok(place) = Arc::clone(&room).acquire_owned().await else { return };
        let stream = tokio::select! {
            biased;
            _ = stop.wait_for(|is_ending| *is_ending) => return,
            accepted = listener.accept() => accepted,
        };
        let Ok((stream, _)) = stream else {
            // There may be no descriptors left.
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        let registry = Arc::clone(&registry);
        tokio::task::spawn_local(async move {
            converse(stream, registry).await;
            drop(place);
        });
    }
}

async fn converse(stream: TcpStream, registry: SharedRegistry) {
    let answer = service_fn(move |request: Request<Incoming>| {
        let registry = Arc::clone(&registry);
        async move { Ok::<_, Infallible>(answer(request, registry).await) }
    });
    let mut connection = http1::Builder::new();
    connection.timer(TokioTimer::new()).header_read_timeout(PATIENCE);
    // One that breaks off has its own reasons.
    let _ = connection.serve_connection(TokioIo::new(stream), answer).await;
}

async fn answer(request: Request<Incoming>, registry: SharedRegistry) -> Response<String> {
    if is_of_browser(request.headers()) {
        return respond(StatusCode::FORBIDDEN, Some(error(403, "browsers are not allowed")));
    }
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    if method == Method::GET && path == "/metrics" {
        return metered(&registry).await;
    }
    let body = tokio::time::timeout(PATIENCE, Limited::new(request.into_body(), BODY_MAX).collect()).await;
    let Ok(Ok(body)) = body else {
        return respond(
            StatusCode::BAD_REQUEST,
            Some(error(400, "bad request body: incomplete or too long")),
        );
    };
    let body = body.to_bytes();
    // A task of its own: a client that goes away does not leave a change half done.
    let said = tokio::task::spawn_local(async move {
        let mut registry = registry.lock().await;
        let registry = registry.as_mut().ok_or(ProxyError::Ending)?;
        route(registry, &method, &path, &body).await
    });
    match said.await.unwrap_or(Err(ProxyError::Ending)) {
        Ok((status, said)) => respond(status, said),
        Err(refused) => {
            let status = StatusCode::from_u16(refused.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
            respond(status, Some(error(refused.status(), &refused.to_string())))
        }
    }
}

async fn metered(registry: &SharedRegistry) -> Response<String> {
    let written = registry.lock().await.as_ref().map(metrics::metrics);
    let Some(Ok(written)) = written else {
        let ending = ProxyError::Ending;
        return respond(StatusCode::SERVICE_UNAVAILABLE, Some(error(503, &ending.to_string())));
    };
    let mut response = Response::new(written);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(metrics::METRICS_TYPE));
    response
}

fn is_of_browser(headers: &HeaderMap) -> bool {
    let agent = headers.get(USER_AGENT).map(HeaderValue::as_bytes);
    headers.contains_key(ORIGIN) || agent.is_some_and(|agent| agent.starts_with(b"Mozilla/"))
}

fn error(status: u16, sentence: &str) -> Value {
    json!({ "error": sentence, "status": status })
}

fn respond(status: StatusCode, said: Option<Value>) -> Response<String> {
    let mut response = Response::new(said.map(|said| said.to_string() + "\n").unwrap_or_default());
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

fn shown(status: StatusCode, what: impl Serialize) -> Said {
    let value = serde_json::to_value(what).map_err(|error| ProxyError::Body { error: error.to_string() })?;
    Ok((status, Some(value)))
}

const DONE: (StatusCode, Option<Value>) = (StatusCode::NO_CONTENT, None);

async fn route(registry: &mut Registry, method: &Method, path: &str, body: &[u8]) -> Said {
    let parts: Option<Vec<String>> = path.trim_matches('/').split('/').map(decoded).collect();
    let parts = parts.unwrap_or_default();
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    match (method, &*parts) {
        (&Method::GET, ["version"]) => {
            shown(StatusCode::OK, json!({ "version": API_VERSION, "server": "quietcore" }))
        }
        (&Method::POST, ["reset"]) => registry.reset().map(|()| DONE),
        (&Method::POST, ["populate"]) => populate(registry, body).await,
        (&Method::GET, ["proxies"]) => shown(StatusCode::OK, registry.all_shown()),
        (&Method::POST, ["proxies"]) => {
            let config = read::<ProxyBody>(body)?.created()?;
            shown(StatusCode::CREATED, registry.create(config)?)
        }
        (_, ["proxies", proxy]) => of_proxy(registry, method, proxy, body).await,
        (_, ["proxies", proxy, "toxics"]) => of_toxics(registry, method, proxy, body),
        (_, ["proxies", proxy, "toxics", toxic]) => of_toxic(registry, method, [proxy, toxic], body),
        (_, ["version" | "reset" | "populate" | "proxies" | "metrics"]) => no_method(),
        _ => Ok((StatusCode::NOT_FOUND, Some(error(404, "there is no such path")))),
    }
}

fn no_method() -> Said {
    Ok((StatusCode::METHOD_NOT_ALLOWED, Some(error(405, "this path has no such method"))))
}

async fn of_proxy(registry: &mut Registry, method: &Method, proxy: &str, body: &[u8]) -> Said {
    match *method {
        Method::GET => shown(StatusCode::OK, registry.shown(proxy)?),
        Method::POST | Method::PATCH => {
            let old = registry.shown(proxy)?.config;
            let new = read::<ProxyBody>(body)?.changed(old);
            shown(StatusCode::OK, registry.update(new).await?)
        }
        Method::DELETE => registry.remove(proxy).await.map(|()| DONE),
        _ => no_method(),
    }
}

fn of_toxics(registry: &mut Registry, method: &Method, proxy: &str, body: &[u8]) -> Said {
    match *method {
        Method::GET => shown(StatusCode::OK, registry.toxics(proxy)?),
        Method::POST => {
            // Of a proxy that is not there nothing else is said.
            registry.toxics(proxy)?;
            shown(StatusCode::OK, registry.add_toxic(proxy, read::<ToxicBody>(body)?.created()?)?)
        }
        _ => no_method(),
    }
}

fn of_toxic(registry: &mut Registry, method: &Method, [proxy, toxic]: [&str; 2], body: &[u8]) -> Said {
    let old = registry.toxic(proxy, toxic)?;
    match *method {
        Method::GET => shown(StatusCode::OK, old),
        Method::POST | Method::PATCH => {
            let new = read::<ToxicBody>(body)?.changed(old)?;
            shown(StatusCode::OK, registry.change_toxic(proxy, new)?)
        }
        Method::DELETE => registry.remove_toxic(proxy, toxic).map(|()| DONE),
        _ => no_method(),
    }
}

async fn populate(registry: &mut Registry, body: &[u8]) -> Said {
    let configs = read::<Vec<ProxyBody>>(body)?.into_iter().map(ProxyBody::created);
    let (proxies, result) = registry.populate(configs.collect::<Result<_, _>>()?).await;
    let Err(refused) = result else {
        return shown(StatusCode::CREATED, json!({ "proxies": proxies }));
    };
    let status = StatusCode::from_u16(refused.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let said = json!({ "error": refused.to_string(), "status": refused.status(), "proxies": proxies });
    shown(status, said)
}

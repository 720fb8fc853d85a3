//! Metrics over HTTP: the text of the last interval, and whether there is one.

use crate::error::CliError;
use hyper::body::Incoming;
use hyper::header::{ALLOW, CONTENT_TYPE};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};
use tokio::runtime;
use tokio::sync::Semaphore;

/// What asks for metrics keeps a connection or two.
const CONNECTIONS_MAX: usize = 32;
/// A request that is not complete by then is none.
const PATIENCE: Duration = Duration::from_secs(10);
/// So many intervals may pass without a new text.
const MISSED_MAX: u32 = 3;

/// The type of the text: OpenMetrics 1.0.
const METRICS_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
const PLAIN_TYPE: &str = "text/plain; charset=utf-8";

/// The last text, and when it was made.
#[derive(Debug, Default)]
struct Published {
    text: Arc<str>,
    at: Option<Instant>,
}

/// A port that is listened on; a thread answers once it is started, until the process ends.
#[derive(Debug)]
pub(crate) struct MetricsServer {
    listener: Option<TcpListener>,
    published: Arc<Mutex<Published>>,
}

impl MetricsServer {
    /// Takes the port.
    pub(crate) fn bind(address: SocketAddr) -> Result<Self, CliError> {
        let failed = |error: io::Error| {
            CliError::Usage(format!(
                "cannot listen on {address} for --openmetrics: {error}; choose another port"
            ))
        };
        let listener = TcpListener::bind(address).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        Ok(Self { listener: Some(listener), published: Arc::default() })
    }

    /// Where it listens.
    #[cfg(test)]
    fn address(&self) -> Option<SocketAddr> {
        self.listener.as_ref()?.local_addr().ok()
    }

    /// Answers from now on. A text that is older than some intervals is no good health.
    pub(crate) fn start(&mut self, interval: Duration) -> Result<(), CliError> {
        let Some(listener) = self.listener.take() else { return Ok(()) };
        let failed = |error: io::Error| CliError::Live(format!("cannot answer for metrics: {error}"));
        let runtime = runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
        let published = Arc::clone(&self.published);
        let stale = interval * MISSED_MAX;
        let serve = move || runtime.block_on(serve(listener, published, stale));
        thread::Builder::new().name("metrics".to_owned()).spawn(serve).map_err(failed)?;
        Ok(())
    }

    /// What is answered from now on.
    pub(crate) fn publish(&self, text: String) {
        let mut published = self.published.lock().unwrap_or_else(PoisonError::into_inner);
        *published = Published { text: text.into(), at: Some(Instant::now()) };
    }
}

async fn serve(listener: TcpListener, published: Arc<Mutex<Published>>, stale: Duration) {
    let Ok(listener) = tokio::net::TcpListener::from_std(listener) else { return };
    let room = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        let Ok(room) = Arc::clone(&room).acquire_owned().await else { return };
        // One that cannot be accepted is tried again a little later: there may be no descriptors left.
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        let published = Arc::clone(&published);
        tokio::spawn(async move {
            let answer = service_fn(|request: Request<Incoming>| {
                let answer = answer(request.method(), request.uri().path(), &published, stale);
                async { Ok::<_, Infallible>(answer) }
            });
            let mut connection = http1::Builder::new();
            connection.timer(TokioTimer::new()).header_read_timeout(PATIENCE);
            // One that breaks off has its own reasons.
            let _ = connection.serve_connection(TokioIo::new(stream), answer).await;
            drop(room);
        });
    }
}

fn answer(method: &Method, path: &str, published: &Mutex<Published>, stale: Duration) -> Response<String> {
    let published = published.lock().unwrap_or_else(PoisonError::into_inner);
    let is_fresh = published.at.is_some_and(|at| at.elapsed() <= stale);
    let (status, kind, text) = match (method, path) {
        (&Method::GET | &Method::HEAD, "/metrics") => (StatusCode::OK, METRICS_TYPE, &*published.text),
        (&Method::GET | &Method::HEAD, "/healthz") if is_fresh => (StatusCode::OK, PLAIN_TYPE, "ok\n"),
        (&Method::GET | &Method::HEAD, "/healthz") => {
            (StatusCode::SERVICE_UNAVAILABLE, PLAIN_TYPE, "nothing was counted for three intervals\n")
        }
        (&Method::GET | &Method::HEAD, _) => {
            (StatusCode::NOT_FOUND, PLAIN_TYPE, "there are /metrics and /healthz\n")
        }
        _ => (StatusCode::METHOD_NOT_ALLOWED, PLAIN_TYPE, "only GET and HEAD\n"),
    };
    let mut response = Response::new(text.to_owned());
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, hyper::header::HeaderValue::from_static(kind));
    if status == StatusCode::METHOD_NOT_ALLOWED {
        response.headers_mut().insert(ALLOW, hyper::header::HeaderValue::from_static("GET, HEAD"));
    }
    response
}

#[cfg(test)]
mod tests {
    use super::MetricsServer;
    use std::io::{Read, Write};
    use std::net::{SocketAddr, TcpStream};
    use std::time::Duration;

    fn ask(address: SocketAddr, request: &str) -> String {
        let mut stream = TcpStream::connect(address).expect("it listens");
        stream
            .write_all(format!("{request} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n").as_bytes())
            .expect("it reads");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("it answers");
        answer
    }

    /// Goal: metrics and health are answered, nothing else is; health is bad before the first text and when
    /// the last one is old; a port that is taken is an error. Method: over a real connection, with a short
    /// interval and a long one.
    #[test]
    fn metrics_and_health_are_answered() {
        let loopback = SocketAddr::from(([127, 0, 0, 1], 0));
        let mut server = MetricsServer::bind(loopback).expect("there is a port");
        let address = server.address().expect("it has one");
        let taken = MetricsServer::bind(address).expect_err("it is taken").to_string();
        assert!(taken.contains("--openmetrics") && taken.contains(&address.to_string()), "{taken}");
        server.start(Duration::from_secs(1_000)).expect("it starts");
        assert!(ask(address, "GET /healthz").starts_with("HTTP/1.1 503"));
        server.publish("# EOF\n".to_owned());
        let metrics = ask(address, "GET /metrics");
        assert!(metrics.starts_with("HTTP/1.1 200") && metrics.ends_with("\r\n\r\n# EOF\n"), "{metrics}");
        assert!(metrics.contains("application/openmetrics-text; version=1.0.0"), "{metrics}");
        assert!(ask(address, "GET /healthz").ends_with("\r\n\r\nok\n"));
        assert!(ask(address, "GET /").starts_with("HTTP/1.1 404"));
        let refused = ask(address, "POST /metrics");
        assert!(refused.starts_with("HTTP/1.1 405") && refused.contains("allow: GET, HEAD"), "{refused}");
        let mut short = MetricsServer::bind(loopback).expect("there is a port");
        let address = short.address().expect("it has one");
        short.start(Duration::ZERO).expect("it starts");
        short.publish("# EOF\n".to_owned());
        assert!(ask(address, "GET /healthz").starts_with("HTTP/1.1 503"));
    }
}

//! hyper's timeouts and keep-alives.

use http_body_util::Empty;
use hyper::body::{Bytes, Incoming};
use hyper::rt::Timer as _;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use quietcore::hyper::HyperTimer;
use quietcore::time::{Duration, Instant, sleep};
use std::convert::Infallible;
use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

async fn answer(_: Request<Incoming>) -> Result<Response<Empty<Bytes>>, Infallible> {
    Ok(Response::new(Empty::new()))
}

/// Goal: a header that does not come ends a connection in time, counted anew after each answer. Method:
/// paused time; a client that sends two requests 20 s apart, and then half of a third.
#[quietcore::test(start_paused = true)]
async fn a_header_that_does_not_come_ends_the_connection() {
    let (mut client, server) = duplex(1024);
    let started = Instant::now();
    let mut builder = http1::Builder::new();
    builder.timer(HyperTimer::new()).header_read_timeout(Duration::from_secs(30));
    let connection = builder.serve_connection(TokioIo::new(server), service_fn(answer));
    let server = tokio::spawn(async move { (connection.await, Instant::now()) });
    for _ in 0..2 {
        sleep(Duration::from_secs(20)).await;
        client.write_all(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n").await.expect("the server reads");
        let mut answer = [0; 512];
        let length = client.read(&mut answer).await.expect("it answers");
        assert!(answer[..length].starts_with(b"HTTP/1.1 200 OK\r\n"), "{:?}", &answer[..length]);
    }
    client.write_all(b"GET / HT").await.expect("the server reads");
    let (result, ended) = server.await.expect("no panic");
    assert!(result.as_ref().is_err_and(hyper::Error::is_timeout), "{result:?}");
    assert_eq!(ended - started, Duration::from_secs(20 + 20 + 30));
}

/// Goal: a peer of HTTP/2 that is gone is noticed by its missing answer to a ping. Method: paused time; a
/// client that says hello and nothing more.
#[quietcore::test(start_paused = true)]
async fn a_ping_that_is_not_answered_ends_the_connection() {
    let (mut client, server) = duplex(4096);
    let started = Instant::now();
    let mut builder = http2::Builder::new(TokioExecutor::new());
    builder.timer(HyperTimer::new());
    builder.keep_alive_interval(Duration::from_secs(60)).keep_alive_timeout(Duration::from_secs(7));
    let connection = builder.serve_connection(TokioIo::new(server), service_fn(answer));
    let server = tokio::spawn(async move { (connection.await, Instant::now()) });
    let settings = [0, 0, 0, 4, 0, 0, 0, 0, 0];
    client.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await.expect("the server reads");
    client.write_all(&settings).await.expect("the server reads");
    let (result, ended) = server.await.expect("no panic");
    assert!(result.as_ref().is_err_and(hyper::Error::is_timeout), "{result:?}");
    assert_eq!(ended - started, Duration::from_secs(60 + 7));
}

/// Goal: a sleep is moved where it is. Method: its address before and after, and when it ends.
#[quietcore::test(start_paused = true)]
async fn a_sleep_is_moved_without_an_allocation() {
    let timer = HyperTimer::new();
    let started = Instant::now();
    let mut waits = timer.sleep(Duration::from_secs(3));
    let address = &raw const *waits;
    timer.reset(&mut waits, timer.now() + Duration::from_secs(5));
    assert!(core::ptr::addr_eq(address, &raw const *waits), "it was made anew");
    waits.as_mut().await;
    assert_eq!(started.elapsed(), Duration::from_secs(5));
}

/// A sleep that no timer of ours has made.
struct Foreign;

impl Future for Foreign {
    type Output = ();

    fn poll(self: core::pin::Pin<&mut Self>, _: &mut core::task::Context<'_>) -> core::task::Poll<()> {
        core::task::Poll::Pending
    }
}

impl hyper::rt::Sleep for Foreign {}

/// Goal: a sleep of another timer that is moved ends in time. Method: one that would never end.
#[quietcore::test(start_paused = true)]
async fn a_sleep_of_another_timer_is_replaced() {
    let (timer, started) = (HyperTimer::new(), Instant::now());
    let mut waits: core::pin::Pin<Box<dyn hyper::rt::Sleep>> = Box::pin(Foreign);
    timer.reset(&mut waits, timer.now() + Duration::from_secs(5));
    waits.as_mut().await;
    assert_eq!(started.elapsed(), Duration::from_secs(5));
}

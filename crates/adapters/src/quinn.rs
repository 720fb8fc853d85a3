//! A runtime for quinn: its timers are quietcore's, its sockets and tasks tokio's.
//!
//! quinn asks for one timer per connection and moves it with nearly every packet. Not here: sockets, which
//! quinn's own runtime for tokio has.

use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};
use pin_project_lite::pin_project;
use quietcore_live::time::{self, Instant};
use quinn::{AsyncTimer, AsyncUdpSocket, TokioRuntime};
use std::io;
use std::net::UdpSocket;
use std::sync::Arc;
use std::time::Instant as StdInstant;

/// What an endpoint runs on: `quinn::Endpoint::new(config, server, socket, Arc::new(QuinnRuntime))`. The
/// constructors `client` and `server` of quinn's endpoint choose a runtime themselves, and not this one.
///
/// Timers are those of the machine that is current where a connection begins, with the precision of a tick,
/// and follow paused time. Tasks are spawned on the current runtime of tokio, whose threads need that machine
/// to be current, too: `quietcore::tokio::runtime`, or an installed default.
///
/// Panics: a new timer when there is no current machine; tasks and sockets outside of a runtime of tokio.
/// Cost: an allocation per connection, none to move its timer.
///
/// ```
/// use quietcore::quinn::QuinnRuntime;
/// use quinn::Runtime as _;
/// use std::net::UdpSocket;
///
/// let tokio = quietcore::tokio::runtime::Builder::new_current_thread().enable_all().build()?;
/// let _entered = tokio.enter();
/// let socket = QuinnRuntime.wrap_udp_socket(UdpSocket::bind("127.0.0.1:0")?)?;
/// assert!(socket.local_addr()?.ip().is_loopback());
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QuinnRuntime;

pin_project! {
    /// What a connection waits with.
    #[derive(Debug)]
    struct Timer {
        #[pin]
        sleep: time::Sleep,
    }
}

impl AsyncTimer for Timer {
    fn reset(self: Pin<&mut Self>, deadline: StdInstant) {
        self.project().sleep.reset(Instant::from_std(deadline));
    }

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        self.project().sleep.poll(context)
    }
}

impl quinn::Runtime for QuinnRuntime {
    fn new_timer(&self, deadline: StdInstant) -> Pin<Box<dyn AsyncTimer>> {
        Box::pin(Timer { sleep: time::sleep_until(Instant::from_std(deadline)) })
    }

    fn spawn(&self, future: Pin<Box<dyn Future<Output = ()> + Send>>) {
        TokioRuntime.spawn(future);
    }

    fn wrap_udp_socket(&self, socket: UdpSocket) -> io::Result<Arc<dyn AsyncUdpSocket>> {
        TokioRuntime.wrap_udp_socket(socket)
    }

    /// The present on the clock of the current machine.
    fn now(&self) -> StdInstant {
        Instant::now().into_std()
    }
}

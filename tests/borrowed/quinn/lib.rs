//! What stands for quinn in its own tests: the published quinn, whose endpoints have our runtime.
//!
//! Decides nothing but that: constructors of quinn's that choose a runtime themselves choose ours here.

pub use original::*;
pub use std::time::{Duration, Instant};
use std::net::{SocketAddr, UdpSocket};
use std::ops::{Deref, DerefMut};
use std::{io, sync::Arc};

pub mod runtime {
    //! Where quinn's tests look for a runtime.
    pub use quietcore::quinn::QuinnRuntime as TokioRuntime;
}

/// quinn's endpoint, on our runtime.
#[derive(Clone, Debug)]
pub struct Endpoint(original::Endpoint);

impl Endpoint {
    /// As quinn's, on our runtime.
    pub fn client(address: SocketAddr) -> io::Result<Self> {
        let socket = UdpSocket::bind(address)?;
        Self::new(EndpointConfig::default(), None, socket, Arc::new(quietcore::quinn::QuinnRuntime))
    }

    /// As quinn's, on our runtime.
    pub fn server(config: ServerConfig, address: SocketAddr) -> io::Result<Self> {
        let socket = UdpSocket::bind(address)?;
        Self::new(EndpointConfig::default(), Some(config), socket, Arc::new(quietcore::quinn::QuinnRuntime))
    }

    /// quinn's.
    pub fn new(
        config: EndpointConfig,
        server: Option<ServerConfig>,
        socket: UdpSocket,
        runtime: Arc<dyn original::Runtime>,
    ) -> io::Result<Self> {
        original::Endpoint::new(config, server, socket, runtime).map(Self)
    }
}

impl Deref for Endpoint {
    type Target = original::Endpoint;

    fn deref(&self) -> &original::Endpoint {
        &self.0
    }
}

impl DerefMut for Endpoint {
    fn deref_mut(&mut self) -> &mut original::Endpoint {
        &mut self.0
    }
}

#[cfg(test)]
mod tests;

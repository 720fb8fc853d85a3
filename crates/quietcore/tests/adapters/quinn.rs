//! QUIC connections over the loopback device.

use quietcore::quinn::QuinnRuntime;
use quietcore::time::{Duration, Instant, timeout};
use quinn::rustls::RootCertStore;
use quinn::rustls::pki_types::PrivatePkcs8KeyDer;
use quinn::{
    ClientConfig, Connection, ConnectionError, Endpoint, EndpointConfig, ServerConfig, TransportConfig,
};
use std::net::{Ipv4Addr, UdpSocket};
use std::sync::Arc;

/// After this long without a packet a connection is given up.
const IDLE: Duration = Duration::from_secs(30);

fn endpoint(server: Option<ServerConfig>) -> Endpoint {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("there is a loopback device");
    let runtime = Arc::new(QuinnRuntime);
    Endpoint::new(EndpointConfig::default(), server, socket, runtime).expect("tokio takes the socket")
}

/// A server and a client that trusts it.
fn endpoints() -> (Endpoint, Endpoint) {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
    let (certificate, key) = (made.cert.der().clone(), made.signing_key.serialize_der());
    let mut transport = TransportConfig::default();
    transport.max_idle_timeout(Some(IDLE.try_into().expect("it fits")));
    let transport = Arc::new(transport);
    let mut server =
        ServerConfig::with_single_cert(vec![certificate.clone()], PrivatePkcs8KeyDer::from(key).into())
            .expect("the key is that of the certificate");
    server.transport_config(Arc::clone(&transport));
    let mut roots = RootCertStore::empty();
    roots.add(certificate).expect("it is well-formed");
    let mut client = ClientConfig::with_root_certificates(Arc::new(roots)).expect("it has a root");
    client.transport_config(transport);
    let (server, mut connecting) = (endpoint(Some(server)), endpoint(None));
    connecting.set_default_client_config(client);
    (server, connecting)
}

async fn connected(server: &Endpoint, client: &Endpoint) -> (Connection, Connection) {
    let address = server.local_addr().expect("it is bound");
    let accept = async { server.accept().await.expect("a client comes").await };
    let connect = client.connect(address, "localhost").expect("the address is valid");
    let (accepted, connected) = tokio::join!(accept, connect);
    (accepted.expect("the handshake ends"), connected.expect("the handshake ends"))
}

/// Goal: data goes both ways. Method: 1 MiB to a server that sends it back, in real time.
#[quietcore::test]
async fn data_is_sent_back() {
    let (server, client) = endpoints();
    let (accepted, connected) = connected(&server, &client).await;
    let echo = tokio::spawn(async move {
        let (mut send, mut receive) = accepted.accept_bi().await.expect("a stream");
        let data = receive.read_to_end(1 << 20).await.expect("all of it");
        send.write_all(&data).await.expect("the client reads");
        send.finish().expect("it is open");
        accepted.closed().await
    });
    let data: Vec<u8> = (0..1 << 20).map(|number: u32| (number % 251) as u8).collect();
    let (mut send, mut receive) = connected.open_bi().await.expect("a stream");
    send.write_all(&data).await.expect("the server reads");
    send.finish().expect("it is open");
    let back = receive.read_to_end(1 << 20).await.expect("all of it");
    assert!(back == data, "{} bytes came back, not what was sent", back.len());
    connected.close(0u32.into(), b"done");
    let ended = timeout(Duration::from_secs(10), echo).await.expect("in time").expect("no panic");
    assert!(matches!(ended, ConnectionError::ApplicationClosed(_)), "{ended}");
}

/// Goal: both ends give a silent connection up, by the paused clock. Method: a handshake, and nothing more;
/// packets take no time there, so silence begins within the time of an acknowledgement.
#[quietcore::test(start_paused = true)]
async fn a_silent_connection_is_given_up() {
    let (server, client) = endpoints();
    let (began, real) = (Instant::now(), std::time::Instant::now());
    let (accepted, connected) = connected(&server, &client).await;
    let (here, there) = tokio::join!(connected.closed(), accepted.closed());
    let took = began.elapsed();
    assert!(matches!(here, ConnectionError::TimedOut), "{here}");
    assert!(matches!(there, ConnectionError::TimedOut), "{there}");
    assert!(took >= IDLE && took < IDLE + Duration::from_secs(5), "{took:?}");
    assert!(real.elapsed() < IDLE, "{:?} of real time", real.elapsed());
}

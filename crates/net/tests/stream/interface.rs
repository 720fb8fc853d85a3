//! The interface over HTTP: each path with each answer that it has.

use super::world::{World, read_exactly};
use serde_json::{Value, json};
use std::io::Write;
use std::net::{TcpListener, TcpStream};

/// Status and JSON.
fn ask(world: &World, method: &str, path: &str, body: &Value) -> (u16, Value) {
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let (status, said) = world.ask(method, path, &body);
    (status, if said.is_empty() { Value::Null } else { serde_json::from_str(&said).expect("JSON") })
}

fn refused(status: u16, error: &str) -> (u16, Value) {
    (status, json!({ "error": error, "status": status }))
}

/// Goal: proxies are listed, created, shown, changed and deleted as the interface says, and refused as it
/// says.
#[test]
fn proxies_are_changed() {
    let world = World::new([]);
    let upstream = world.server.local_addr().expect("an address").to_string();
    let db = json!({
        "name": "db", "listen": world.listen, "upstream": upstream, "enabled": true, "toxics": []
    });
    assert_eq!(ask(&world, "GET", "/proxies", &Value::Null), (200, json!({ "db": db })));
    let (status, made) = ask(&world, "POST", "/proxies", &json!({ "name": "web one", "upstream": upstream }));
    assert_eq!((status, &made["enabled"], &made["toxics"]), (201, &json!(true), &json!([])));
    let listen = made["listen"].as_str().expect("text").to_owned();
    TcpStream::connect(&listen).expect("it listens");
    assert_eq!(ask(&world, "GET", "/proxies/web%20one", &Value::Null), (200, made.clone()));
    let exists = refused(409, "proxy already exists");
    assert_eq!(ask(&world, "POST", "/proxies", &json!({ "name": "db", "upstream": upstream })), exists);
    let missing = refused(400, "missing required field: upstream");
    assert_eq!(ask(&world, "POST", "/proxies", &json!({ "name": "x" })), missing);
    let taken = json!({ "name": "x", "upstream": upstream, "listen": world.listen });
    let (status, said) = ask(&world, "POST", "/proxies", &taken);
    assert!(status == 500 && said["error"].as_str().expect("text").contains("cannot listen"), "{said}");
    assert_eq!(ask(&world, "GET", "/proxies/x", &Value::Null), refused(404, "proxy not found"));
    assert_eq!(ask(&world, "DELETE", "/proxies/x", &Value::Null), refused(404, "proxy not found"));
    assert_eq!(ask(&world, "POST", "/proxies/x", &json!({})), refused(404, "proxy not found"));
    let outside = json!({ "name": "x", "upstream": "192.0.2.1:5" });
    assert_eq!(ask(&world, "POST", "/proxies", &outside).0, 403);
    assert_eq!(ask(&world, "DELETE", "/proxies/web%20one", &Value::Null), (204, Value::Null));
    TcpStream::connect(&listen).expect_err("it is free");
    drop(TcpListener::bind(&listen).expect("it is free"));
    world.end();
}

/// Goal: a proxy that is disabled has no port and no connections, and comes back at its port; with another
/// address its connections are closed. Method: by both methods.
#[test]
fn proxies_are_disabled_and_moved() {
    let world = World::new([]);
    let [mut client, _server] = world.connect();
    let off = ask(&world, "POST", "/proxies/db", &json!({ "enabled": false }));
    assert_eq!((off.0, &off.1["enabled"]), (200, &json!(false)));
    assert_eq!(super::world::read_all(&mut client), b"");
    TcpStream::connect(&world.listen).expect_err("it is down");
    let on = ask(&world, "PATCH", "/proxies/db", &json!({ "enabled": true }));
    assert_eq!((on.0, &on.1["listen"]), (200, &json!(world.listen)));
    let [mut client, _server] = world.connect();
    // The same address in other words is no change.
    let port = world.listen.rsplit_once(':').expect("a port").1;
    let same = json!({ "listen": format!("localhost:{port}") });
    assert_eq!(ask(&world, "POST", "/proxies/db", &same).1["listen"], json!(world.listen));
    let other = TcpListener::bind("127.0.0.1:0").expect("a port");
    let upstream = other.local_addr().expect("an address").to_string();
    let moved = ask(&world, "POST", "/proxies/db", &json!({ "upstream": upstream }));
    assert_eq!((moved.0, &moved.1["upstream"]), (200, &json!(upstream)));
    assert_eq!(super::world::read_all(&mut client), b"");
    let _client = TcpStream::connect(&world.listen).expect("it listens");
    other.accept().expect("it leads there");
    world.end();
}

/// Goal: toxics are listed, created, shown, changed and deleted as the interface says, and refused as it
/// says.
#[test]
fn toxics_are_changed() {
    let world = World::new([]);
    let latency = |latency: u64| {
        json!({
            "name": "latency_downstream", "type": "latency", "stream": "downstream", "toxicity": 1.0,
            "attributes": { "latency": latency, "jitter": 0 }
        })
    };
    let new = json!({ "type": "latency", "attributes": { "latency": 5 } });
    let (toxics, one) = ("/proxies/db/toxics", "/proxies/db/toxics/latency_downstream");
    assert_eq!(ask(&world, "POST", toxics, &new), (200, latency(5)));
    assert_eq!(ask(&world, "POST", toxics, &new), refused(409, "toxic already exists"));
    assert_eq!(ask(&world, "POST", "/proxies/x/toxics", &new), refused(404, "proxy not found"));
    assert_eq!(ask(&world, "POST", toxics, &json!({ "type": "x" })), refused(400, "invalid toxic type"));
    let way = refused(400, "stream was invalid, can be either upstream or downstream");
    assert_eq!(ask(&world, "POST", toxics, &json!({ "type": "latency", "stream": "x" })), way);
    let often = json!({ "type": "timeout", "toxicity": 2 });
    assert_eq!(ask(&world, "POST", toxics, &often), refused(400, "out of range: toxicity, 0 to 1"));
    assert_eq!(ask(&world, "GET", one, &Value::Null), (200, latency(5)));
    assert_eq!(ask(&world, "POST", one, &json!({ "attributes": { "latency": 9 } })), (200, latency(9)));
    assert_eq!(ask(&world, "PATCH", one, &json!({ "attributes": { "latency": 7 } })), (200, latency(7)));
    assert_eq!(ask(&world, "GET", toxics, &Value::Null), (200, json!([latency(7)])));
    assert_eq!(ask(&world, "GET", "/proxies/db", &Value::Null).1["toxics"], json!([latency(7)]));
    assert_eq!(ask(&world, "DELETE", one, &Value::Null), (204, Value::Null));
    assert_eq!(ask(&world, "DELETE", one, &Value::Null), refused(404, "toxic not found"));
    world.end();
}

/// Goal: populating creates what is not there, replaces what is other, leaves what is the same; a reset
/// enables all and takes all toxics. Method: a list of each, and one that goes wrong in the middle.
#[test]
fn proxies_are_populated_and_reset() {
    let world = World::new([]);
    let upstream = world.server.local_addr().expect("an address").to_string();
    let _connected = world.connect();
    let new = json!([
        { "name": "db", "listen": world.listen, "upstream": upstream },
        { "name": "web", "listen": "127.0.0.1:0", "upstream": "127.0.0.1:9", "enabled": false },
    ]);
    let (status, said) = ask(&world, "POST", "/populate", &new);
    assert_eq!((status, said["proxies"].as_array().map(Vec::len)), (201, Some(2)), "{said}");
    assert_eq!(world.relay.counts()[0].1.open, 1, "what is the same was left alone");
    assert_eq!(said["proxies"][1]["enabled"], json!(false));
    let other = json!([
        { "name": "web", "listen": "127.0.0.1:0", "upstream": "127.0.0.1:8" },
        { "name": "bad", "listen": "192.0.2.1:0", "upstream": "127.0.0.1:8" },
    ]);
    let (status, said) = ask(&world, "POST", "/populate", &other);
    assert_eq!((status, said["proxies"][0]["upstream"].as_str()), (403, Some("127.0.0.1:8")), "{said}");
    let nameless = json!([{ "upstream": "127.0.0.1:8" }]);
    assert_eq!(ask(&world, "POST", "/populate", &nameless), refused(400, "missing required field: name"));
    ask(&world, "POST", "/proxies/web", &json!({ "enabled": false }));
    ask(&world, "POST", "/proxies/db/toxics", &json!({ "type": "timeout" }));
    assert_eq!(ask(&world, "POST", "/reset", &Value::Null), (204, Value::Null));
    let (_, all) = ask(&world, "GET", "/proxies", &Value::Null);
    assert_eq!((&all["web"]["enabled"], &all["db"]["toxics"]), (&json!(true), &json!([])));
    drop(world);
}

/// Goal: metrics have toxiproxy's names and labels, and count what passed. Method: three bytes there, two
/// back.
#[test]
fn proxies_are_metered() {
    let world = World::new([]);
    let [mut client, mut server] = world.connect();
    client.write_all(b"abc").expect("a relay");
    assert_eq!(read_exactly(&mut server, 3), b"abc");
    server.write_all(b"de").expect("a relay");
    assert_eq!(read_exactly(&mut client, 2), b"de");
    let (_, db) = ask(&world, "GET", "/proxies/db", &Value::Null);
    let listener = db["listen"].as_str().expect("an address");
    let labels = format!("listener=\"{listener}\",proxy=\"db\",upstream={}", db["upstream"]);
    let (status, metrics) = world.ask("GET", "/metrics", "");
    assert_eq!(status, 200);
    for (name, value) in [
        ("toxiproxy_proxy_received_bytes_total{direction=\"upstream\",", 3),
        ("toxiproxy_proxy_sent_bytes_total{direction=\"upstream\",", 3),
        ("toxiproxy_proxy_received_bytes_total{direction=\"downstream\",", 2),
        ("quietcore_proxy_dropped_bytes_total{direction=\"downstream\",", 0),
        ("quietcore_proxy_held_bytes{direction=\"upstream\",", 0),
        ("quietcore_proxy_connections_total{", 1),
        ("quietcore_proxy_open_connections{", 1),
        ("quietcore_proxy_resets_total{", 0),
    ] {
        let line = format!("{name}{labels}}} {value}\n");
        assert!(metrics.contains(&line), "{line}{metrics}");
    }
    assert!(metrics.ends_with("# EOF"), "{metrics}");
    assert_eq!(world.ask("POST", "/metrics", "").0, 405);
    drop([client, server]);
    world.end();
}

/// Goal: what is no request of the interface is said to be none, and browsers are refused.
#[test]
fn other_requests_are_refused() {
    let world = World::new([]);
    let (status, version) = ask(&world, "GET", "/version", &Value::Null);
    assert_eq!((status, &version["version"]), (200, &json!("2.6.0")));
    assert_eq!(ask(&world, "GET", "/", &Value::Null).0, 404);
    assert_eq!(ask(&world, "GET", "/proxies/db/x", &Value::Null).0, 404);
    for (method, path) in [("PUT", "/proxies"), ("GET", "/reset"), ("PUT", "/proxies/db")] {
        assert_eq!(ask(&world, method, path, &Value::Null).0, 405, "{method} {path}");
    }
    let (status, said) = world.ask("POST", "/proxies", "{");
    assert!(status == 400 && said.contains("bad request body"), "{said}");
    assert_eq!(world.ask("POST", "/proxies", &" ".repeat((1 << 20) + 1)).0, 400);
    assert_eq!(world.ask_as("Mozilla/5.0", "POST", "/reset", "").0, 403);
    assert_eq!(world.ask_as("x\r\norigin: http://a", "POST", "/reset", "").0, 403);
    world.end();
}

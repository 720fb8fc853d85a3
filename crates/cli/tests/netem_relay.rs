//! `quietcore netem relay` and `quietcore tc`, as two programs use them.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(20);

fn quietcore(words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_quietcore"));
    command.args(words).env_remove("XDG_RUNTIME_DIR").stdin(Stdio::null());
    command
}

fn output(words: &[&str]) -> Output {
    quietcore(words).output().expect("it runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A relay that runs, and what it prints.
struct Running {
    child: Child,
    printed: BufReader<ChildStdout>,
}

impl Running {
    fn start(words: &[&str]) -> Self {
        let mut child = quietcore(words).stdout(Stdio::piped()).spawn().expect("it runs");
        let printed = BufReader::new(child.stdout.take().expect("piped"));
        Self { child, printed }
    }

    /// Its introduction.
    fn introduction(&mut self) -> String {
        let mut text = String::new();
        while !text.contains("end:") {
            assert!(self.printed.read_line(&mut text).expect("text") > 0, "it ended: {text}");
        }
        text
    }

    /// As Ctrl-C does; what it says in the end, and its exit code.
    fn end(mut self) -> (String, Option<i32>) {
        let child = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(child, rustix::process::Signal::INT).expect("it is ours");
        let mut text = String::new();
        self.printed.read_to_string(&mut text).expect("text");
        (text, self.child.wait().expect("it ends").code())
    }
}

/// A test that fails leaves nothing running.
impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn socket() -> (UdpSocket, String) {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("loopback has ports");
    socket.set_read_timeout(Some(PATIENCE)).expect("not zero");
    let address = socket.local_addr().expect("bound").to_string();
    (socket, address)
}

/// The address behind `word` in the first line that has `peer`.
fn listens(introduction: &str, peer: &str) -> String {
    let (_, rest) = introduction.split_once(&format!("{peer} to ")).expect("the peer's line");
    rest.split(',').next().expect("an address").to_owned()
}

/// One datagram each way, one that the first device's discipline dropped, one of a stranger at the first end.
/// Figures of the discipline that delayed went with it; packets that were taken out are counted throughout.
fn assert_last_words(figures: &str, name: &str, [first, second]: [&str; 2], devices: &[String; 2]) {
    let ends = format!(
        "\nends of {name}\n\
         \x20 {first}: 2 datagrams received, 1 sent, 0 refused, 0 not sent; 1 of strangers thrown away\n\
         \x20 {second}: 1 datagrams received, 1 sent, 0 refused, 0 not sent; 0 of strangers thrown away\n"
    );
    assert!(figures.starts_with(&ends), "{figures}");
    for (device, [sent, dropped, refused, taken_out]) in devices.iter().zip([[0, 1, 0, 1], [1, 0, 0, 1]]) {
        let (_, table) = figures.split_once(&format!("\n{device} of {name}\n")).expect("its table");
        let words: Vec<&str> = table.lines().nth(1).expect("its queue").split_whitespace().collect();
        let number = |at: usize| words[at].parse::<u64>().expect("a count");
        assert_eq!((words[0], number(2), number(3), number(4)), ("0", sent, dropped, refused), "{figures}");
        assert_eq!(number(5) + number(6), taken_out, "{figures}");
    }
}

/// What a relay on all CPUs says in the beginning.
fn assert_introduction(introduction: &str, name: &str, [up, down]: &[String; 2], addresses: [[&str; 2]; 2]) {
    let [[first, to_a], [second, to_b]] = addresses;
    let cpus = quietcore_lab::allowed_cpus().expect("the kernel says so");
    let expected = format!(
        "{name}: on CPUs {cpus}\n\
         \x20 {up}  {first} to {to_a}, from {to_b} to {second}\n\
         \x20 {down}  {second} to {to_b}, from {to_a} to {first}\n\
         shape a to b:    quietcore tc qdisc replace dev {up} root netem delay 10ms\n\
         look:            quietcore tc -s qdisc show dev {up}\n\
         end:             Ctrl-C\n"
    );
    assert_eq!(introduction, expected);
}

/// Lines of tc for a running relay: by its name, whose words are not those of a file, and from a file.
fn assert_tc_finds(name: &str, device: &str, file: &str) {
    let said = |words: &[&str]| {
        let output = output(&[&["tc"], words].concat());
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    };
    let show = ["qdisc", "show", "dev", device];
    let shown = said(&show);
    assert!(shown.0 == Some(0) && shown.1.contains("netem"), "{shown:?}");
    assert_eq!(said(&[&["-n", name], &show[..]].concat()), shown);
    std::fs::write(file, format!("tc qdisc show dev {device}\n")).expect("a file");
    assert_eq!(said(&["-b", file]), shown);
    assert_eq!(said(&["-n", name, "-b", file]), shown);
    let nobody = format!("quietcore: no instance not-{name} runs; there are ");
    for words in [&show[..], &["-b", file]] {
        let (code, printed, why) = said(&[&["-n", &format!("not-{name}")], words].concat());
        assert_eq!((code, &*printed), (Some(2), ""), "{words:?}: {why}");
        assert!(why.starts_with(&nobody), "{words:?}: {why}");
    }
}

/// What comes next. A machine that was stopped meanwhile interrupts a wait that has a time limit.
fn receive(socket: &UdpSocket, buffer: &mut [u8]) -> (usize, SocketAddr) {
    loop {
        match socket.recv_from(buffer) {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            received => return received.expect("it comes"),
        }
    }
}

/// Goal: two programs talk through the relay, tc shapes it, and the figures tell. Method: the whole of it: a
/// script, datagrams, lines of tc, Ctrl-C.
#[test]
fn two_programs_talk_and_tc_shapes_it() {
    let ((one, first), (other, second)) = (socket(), socket());
    let pid = std::process::id();
    let (name, devices) = (format!("relay-test-{pid}"), [format!("up{pid}"), format!("down{pid}")]);
    let script = std::env::temp_dir().join(format!("{name}.tc"));
    std::fs::write(&script, format!("tc qdisc add dev {} root netem delay 30ms\n", devices[0]))
        .expect("a file");
    let mut running = Running::start(&[
        "netem",
        "relay",
        "--a",
        &format!("127.0.0.1:0,{first}"),
        "--b",
        &format!("127.0.0.1:0,{second}"),
        "--dev",
        &devices.join(","),
        "--name",
        &name,
        "--script",
        script.to_str().expect("text"),
    ]);
    let introduction = running.introduction();
    let (to_a, to_b) = (listens(&introduction, &first), listens(&introduction, &second));
    assert_introduction(&introduction, &name, &devices, [[&first, &to_a], [&second, &to_b]]);
    let mut buffer = [0; 100];

    let began = Instant::now();
    one.send_to(b"there", &to_a).expect("loopback takes it");
    let (length, from) = receive(&other, &mut buffer);
    assert_eq!((&buffer[..length], from.to_string()), (&b"there"[..], to_b.clone()));
    assert!(began.elapsed() >= Duration::from_millis(30), "the script delays it");
    other.send_to(b"back", &to_b).expect("loopback takes it");
    let (length, from) = receive(&one, &mut buffer);
    assert_eq!((&buffer[..length], from.to_string()), (&b"back"[..], to_a.clone()));

    let shown = output(&["tc", "-s", "qdisc", "show", "dev", &devices[0]]);
    assert!(shown.status.success(), "{shown:?}");
    let shown = text(&shown.stdout);
    assert!(shown.contains("netem") && shown.contains("Sent 33 bytes 1 pkt"), "{shown}");
    assert_tc_finds(&name, &devices[0], script.to_str().expect("text"));
    let changed = output(&["tc", "qdisc", "replace", "dev", &devices[0], "root", "pfifo", "limit", "0"]);
    assert!(changed.status.success(), "{}", text(&changed.stderr));
    let (stranger, _) = socket();
    stranger.send_to(b"let me in", &to_a).expect("loopback takes it");
    one.send_to(b"lost", &to_a).expect("loopback takes it");
    let end = Instant::now() + PATIENCE;
    let drops = || output(&["tc", "-s", "qdisc", "show", "dev", &devices[0]]).stdout;
    while !text(&drops()).contains("dropped 1") {
        assert!(Instant::now() < end, "nothing is dropped: {}", text(&drops()));
    }
    let refused = output(&["tc", "qdisc", "add", "dev", "nowhere", "root", "fq"]);
    assert_eq!(refused.status.code(), Some(2), "{}", text(&refused.stderr));

    let (figures, code) = running.end();
    assert_eq!(code, Some(130), "{figures}");
    assert_last_words(&figures, &name, [&first, &second], &devices);
    std::fs::remove_file(script).expect("it was made");
    let _free = UdpSocket::bind(to_a).expect("it is free again");
}

/// Goal: what must not be is refused with a sentence, and JSON is JSON. Method: an address of another
/// machine, an end without a peer; then a relay that does nothing.
#[test]
fn refusals_and_json() {
    let name = format!("relay-json-{}", std::process::id());
    let refused = |a: &str, b: &str| {
        let refused = output(&["netem", "relay", "--a", a, "--b", b, "--name", &name]);
        assert_eq!(refused.status.code(), Some(2));
        text(&refused.stderr)
    };
    let far = refused("127.0.0.1:0,192.0.2.1:53", "127.0.0.1:0,127.0.0.1:9");
    assert!(far.contains("192.0.2.1:53 is not on loopback"), "{far}");
    let word = refused("127.0.0.1:0", "127.0.0.1:0,127.0.0.1:9");
    assert!(word.contains("two addresses"), "{word}");
    let ((_one, first), (_other, second)) = (socket(), socket());
    let ends = [first, second].map(|peer| format!("127.0.0.1:0,{peer}"));
    let devices = format!("x{0},y{0}", std::process::id());
    let words =
        ["netem", "relay", "--a", &ends[0], "--b", &ends[1], "--dev", &devices, "--name", &name, "--json"];
    let running = Running::start(&words);
    let end = Instant::now() + PATIENCE;
    let device = devices.split(',').next().expect("a name");
    while !output(&["tc", "qdisc", "show", "dev", device]).status.success() {
        assert!(Instant::now() < end, "it does not answer");
    }
    let (figures, code) = running.end();
    let figures: serde_json::Value = serde_json::from_str(&figures).expect("JSON");
    assert_eq!(
        (code, figures["schema"].as_u64(), figures["name"].as_str()),
        (Some(130), Some(1), Some(&*name))
    );
    assert_eq!(figures["ends"][1]["strangers"].as_u64(), Some(0), "{figures}");
    assert_eq!(figures["devices"][0]["device"].as_str(), Some(device), "{figures}");
}

/// The address behind `name` in the lines of a relay of TCP.
fn listens_as(introduction: &str, name: &str) -> String {
    let (_, rest) = introduction.split_once(&format!("  {name}  ")).expect("the proxy's line");
    rest.split(' ').next().expect("an address").to_owned()
}

/// Goal: connections are relayed with the toxics that are typed and those that are asked for, and counted.
/// Method: the whole of it: two proxies, a question and an answer, a request over HTTP, Ctrl-C.
#[test]
fn connections_are_relayed_and_counted() {
    let server = TcpListener::bind("127.0.0.1:0").expect("loopback has ports");
    let target = server.local_addr().expect("bound").to_string();
    let [plain, named] = ["", "db="].map(|name| format!("{name}127.0.0.1:0={target}"));
    let latency = "latency,latency=30,stream=upstream,proxy=db";
    let words = ["--tcp", &plain, "--tcp", &named, "--toxic", latency, "--api", "127.0.0.1:0", "--seed", "5"];
    let mut running = Running::start(&[&["netem", "relay"], &words[..]].concat());
    let introduction = running.introduction();
    assert!(introduction.contains(", seed 5\n") && introduction.contains(" to 127.0.0.1:"), "{introduction}");
    let mut client = TcpStream::connect(listens_as(&introduction, "db")).expect("it listens");
    let began = Instant::now();
    client.write_all(b"question").expect("it is taken");
    client.shutdown(Shutdown::Write).expect("it is open");
    let (mut accepted, _) = server.accept().expect("it connects");
    let mut heard = String::new();
    accepted.read_to_string(&mut heard).expect("text");
    assert!(heard == "question" && began.elapsed() >= Duration::from_millis(30), "{heard:?}");
    accepted.write_all(b"yes").expect("it is taken");
    drop(accepted);
    let mut heard = String::new();
    client.read_to_string(&mut heard).expect("text");
    assert_eq!(heard, "yes");

    let (_, rest) = introduction.split_once("http://").expect("the interface");
    let mut asked = TcpStream::connect(rest.split('/').next().expect("an address")).expect("it listens");
    asked
        .write_all(b"GET /proxies/tcp1 HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n")
        .expect("it is taken");
    let mut said = String::new();
    asked.read_to_string(&mut said).expect("text");
    assert!(said.starts_with("HTTP/1.1 200") && said.contains(&target), "{said}");
    let (figures, code) = running.end();
    let expected = "  db: 1 connections, 0 reset, 0 whose target was not reached\n    upstream    8 bytes in, 8 out, \
                    0 dropped; 0 stalls\n    downstream  3 bytes in, 3 out, 0 dropped; 0 stalls\n";
    assert!(code == Some(130) && figures.contains(expected), "{code:?}: {figures}");
}

/// Goal: what cannot be relayed is refused with a sentence. Method: addresses that are not on loopback, a
/// toxic of no proxy, options of the other kind of relay, none at all.
#[test]
fn what_cannot_be_relayed_is_refused() {
    for (words, why) in [
        (&["--tcp", "127.0.0.1:0=192.0.2.1:5"][..], "add --beyond-loopback"),
        (&["--api", "0.0.0.0:0"], "--api: 0.0.0.0:0 is not on loopback"),
        (&["--tcp", "127.0.0.1:0=127.0.0.1:5", "--toxic", "timeout,proxy=x"], "--toxic: proxy not found"),
        (&["--tcp", "127.0.0.1:0=127.0.0.1:5", "--name", "x"], "cannot be used with"),
        (&["--toxic", "timeout"], "required"),
        (&[], "--a <LISTEN,PEER>"),
    ] {
        let refused = output(&[&["netem", "relay"], words].concat());
        let said = text(&refused.stderr);
        assert!(refused.status.code() == Some(2) && said.contains(why), "{words:?}: {said}");
    }
}

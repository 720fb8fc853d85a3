//! A server of hyper on lanes: every lane that is not isolated accepts and serves, and an isolated one has
//! its CPU to itself. With `--tokio` the same server is on a runtime of tokio, for comparison.
//!
//! ```sh
//! cargo run --release -p quietcore --features tokio --example hyper_server -- --port 8080
//! ```

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use quietcore::time::{Duration, Instant};
use quietcore::tokio::lanes::{LaneJoinHandle, Lanes};
use quietcore::{CpuId, CpuSet, Machine, lane::Pinning};
use std::convert::Infallible;
use std::error::Error;
use std::fmt::Display;
use std::net::{Ipv4Addr, SocketAddr};
use std::process::ExitCode;
use std::str::FromStr;
use std::sync::Arc;
use std::thread;
use tokio::net::{TcpListener, TcpSocket};

const HELP: &str = "\
A server of hyper on lanes. Every answer waits for a timer of quietcore first if asked to.

usage: hyper_server [OPTIONS]

  --port PORT        where it listens on 127.0.0.1 [8080]
  --isolated LIST    these CPUs serve nobody; the first of them measures gaps instead
  --pin              the lanes' threads stay on their CPUs
  --wait US          each answer waits so long first, as a timer of quietcore [0: no timer]
  --seconds COUNT    ends by itself; otherwise Ctrl-C ends it
  --tokio            the same on a multi_thread runtime of tokio, with as many workers as there are lanes
  --each             the same on a current_thread runtime of tokio per thread, without lanes
  --workers COUNT    of those runtimes; and as many lanes at most
  -h, --help         says this
";

/// A gap in a loop that does nothing is counted from this length on.
const GAP: Duration = Duration::from_micros(5);

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

#[derive(Clone, Debug)]
struct Options {
    port: u16,
    isolated: CpuSet,
    pinning: Pinning,
    wait: Duration,
    seconds: Option<u64>,
    world: World,
    workers: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum World {
    Lanes,
    Tokio,
    Each,
}

impl Options {
    /// `None` when help was asked for.
    fn parse(mut words: impl Iterator<Item = String>) -> Outcome<Option<Self>> {
        let mut options = Self {
            port: 8080,
            isolated: CpuSet::new(),
            pinning: Pinning::Never,
            wait: Duration::ZERO,
            seconds: None,
            world: World::Lanes,
            workers: usize::MAX,
        };
        while let Some(word) = words.next() {
            let mut value = || words.next().ok_or_else(|| format!("{word} needs a value"));
            let option = word.as_str();
            match option {
                "--port" => options.port = parsed(option, &value()?)?,
                "--isolated" => options.isolated = parsed(option, &value()?)?,
                "--pin" => options.pinning = Pinning::Always,
                "--wait" => options.wait = Duration::from_micros(parsed(option, &value()?)?),
                "--seconds" => options.seconds = Some(parsed(option, &value()?)?),
                "--tokio" => options.world = World::Tokio,
                "--each" => options.world = World::Each,
                "--workers" => options.workers = parsed::<usize>(option, &value()?)?.max(1),
                "-h" | "--help" => return Ok(None),
                _ => return Err(format!("{word} is no option; --help lists them").into()),
            }
        }
        Ok(Some(options))
    }
}

fn parsed<T: FromStr<Err: Display>>(option: &str, value: &str) -> Outcome<T> {
    value.parse().map_err(|error| format!("{option} {value}: {error}").into())
}

/// The service: what it is on, it does not know.
async fn answer(_: Request<Incoming>, wait: Duration) -> Result<Response<Full<Bytes>>, Infallible> {
    if wait > Duration::ZERO {
        quietcore::time::sleep(wait).await;
    }
    Ok(Response::new(Full::new(Bytes::from_static(b"hello\n"))))
}

/// A listener that shares its port with those of other lanes: the kernel deals connections out to them.
fn listen(port: u16) -> std::io::Result<TcpListener> {
    let socket = TcpSocket::new_v4()?;
    socket.set_reuseport(true)?;
    socket.set_reuseaddr(true)?;
    socket.bind(SocketAddr::from((Ipv4Addr::LOCALHOST, port)))?;
    socket.listen(1024)
}

/// Serves until it is dropped. The code is the same with and without lanes: `tokio::spawn`.
async fn serve(listener: TcpListener, wait: Duration) {
    loop {
        let (stream, _) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                eprintln!("not accepted: {error}");
                // Out of descriptors, perhaps: some are given back soon.
                tokio::time::sleep(Duration::from_millis(10)).await;
                continue;
            }
        };
        // What one small answer should not wait for; where it is refused answers are slower.
        let _ = stream.set_nodelay(true);
        let service = service_fn(move |request| answer(request, wait));
        // A client that leaves in the middle is its own affair.
        drop(tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service)));
    }
}

/// Ends at Ctrl-C, or by itself.
async fn end(seconds: Option<u64>) -> std::io::Result<()> {
    match seconds {
        Some(seconds) => tokio::time::sleep(Duration::from_secs(seconds)).await,
        None => tokio::signal::ctrl_c().await?,
    }
    Ok(())
}

/// What a loop saw that did nothing but look at the clock.
#[derive(Debug, Default)]
struct Gaps {
    count: u64,
    longest: Duration,
    total: Duration,
    watched: Duration,
}

/// Looks at the clock until `is_over`: on a lane this is one poll, so it has the thread for itself.
fn measure(is_over: impl Fn() -> bool) -> Gaps {
    let mut gaps = Gaps::default();
    let begin = std::time::Instant::now();
    let mut last = begin;
    while !is_over() {
        let now = std::time::Instant::now();
        let gap = now - last;
        if gap >= GAP {
            gaps.count += 1;
            gaps.longest = gaps.longest.max(gap);
            gaps.total += gap;
        }
        last = now;
    }
    gaps.watched = last - begin;
    gaps
}

/// The isolated lane's part of the program.
struct Watcher {
    cpu: CpuId,
    is_over: Arc<()>,
    task: LaneJoinHandle<Gaps>,
}

impl Watcher {
    fn start(lanes: &Lanes, cpu: CpuId) -> Outcome<Self> {
        let is_over = Arc::new(());
        // Over when the other end was dropped: nothing is written to where the loop looks, until then.
        let other_end = Arc::downgrade(&is_over);
        let task = lanes.spawn_on(cpu, move || async move { measure(|| other_end.strong_count() == 0) })?;
        Ok(Self { cpu, is_over, task })
    }

    fn finish(self, machine: &Machine, before: u64) -> Outcome<()> {
        let Self { cpu, is_over, task } = self;
        drop(is_over);
        let gaps = quietcore::time::block_on(task)?;
        let foreign = foreign_runs(machine, cpu) - before;
        println!(
            "lane {cpu}, isolated: {} gaps of {GAP:?} or more in {:.1?}, the longest {:.1?}, {:.3} % of the time",
            gaps.count,
            gaps.watched,
            gaps.longest,
            100.0 * gaps.total.as_secs_f64() / gaps.watched.as_secs_f64(),
        );
        println!("lane {cpu}, isolated: ran {foreign} callbacks and wakers of others");
        Ok(())
    }
}

/// How many timers `cpu` ran that were on others' bases.
fn foreign_runs(machine: &Machine, cpu: CpuId) -> u64 {
    let metrics = machine.metrics();
    metrics.cpus.iter().filter(|of| of.cpu == cpu).map(|of| of.ran_for_others).sum()
}

fn on_lanes(options: &Options) -> Outcome<()> {
    let machine = Machine::builder().automatic_lanes().isolated(CpuSet::new()).start()?;
    let isolated = options.isolated.intersection(machine.lanes());
    let serving = machine.lanes().difference(&isolated).iter().take(options.workers).collect::<CpuSet>();
    let lanes = Lanes::builder(machine).cpus(serving.union(&isolated)).pinning(options.pinning).start()?;
    machine.set_isolated(&isolated)?;
    let (wait, port) = (options.wait, options.port);
    for cpu in serving.iter() {
        let task = lanes.spawn_on(cpu, move || async move {
            let listener = listen(port)?;
            drop(tokio::task::spawn_local(serve(listener, wait)));
            std::io::Result::Ok(())
        })?;
        quietcore::time::block_on(task)??;
    }
    println!("listening on 127.0.0.1:{port}, lanes {serving}, isolated {isolated}");
    let before = isolated.first().map_or(0, |cpu| foreign_runs(machine, cpu));
    let watcher = isolated.first().map(|cpu| Watcher::start(&lanes, cpu)).transpose()?;
    let begin = Instant::now();
    let seconds = options.seconds;
    lanes.run(move || end(seconds))??;
    println!("served for {:.1?}", begin.elapsed());
    let metrics = machine.metrics();
    let (own, others) = (metrics.sum(|cpu| cpu.ran_own), metrics.sum(|cpu| cpu.ran_for_others));
    println!(
        "timers: {own} run where they were, {others} by another lane; kicks: {}",
        metrics.sum(|cpu| cpu.kicks)
    );
    if let Some(watcher) = watcher {
        watcher.finish(machine, before)?;
    }
    lanes.shutdown();
    machine.shutdown();
    Ok(())
}

fn workers(options: &Options) -> Outcome<usize> {
    Ok(thread::available_parallelism()?.get().min(options.workers))
}

fn on_tokio(options: &Options) -> Outcome<()> {
    let count = workers(options)?;
    let mut builder = quietcore::tokio::runtime::Builder::new_multi_thread();
    let runtime = builder.worker_threads(count).enable_all().build()?;
    let (wait, port, seconds) = (options.wait, options.port, options.seconds);
    runtime.block_on(async move {
        let listener = listen(port)?;
        println!("listening on 127.0.0.1:{port}, {count} workers of tokio");
        drop(tokio::spawn(serve(listener, wait)));
        end(seconds).await
    })?;
    Ok(())
}

/// As the lanes do it, without them.
fn on_each(options: &Options) -> Outcome<()> {
    let count = workers(options)?;
    let (wait, port, seconds) = (options.wait, options.port, options.seconds);
    let serve_one = move || -> Outcome<()> {
        let mut builder = quietcore::tokio::runtime::Builder::new_current_thread();
        builder.enable_all().build()?.block_on(async move {
            let server = tokio::spawn(serve(listen(port)?, wait));
            end(seconds).await?;
            server.abort();
            Ok(())
        })
    };
    let threads: Vec<_> = (0..count).map(|_| thread::spawn(serve_one)).collect();
    println!("listening on 127.0.0.1:{port}, {count} threads with a runtime of tokio each");
    for thread in threads {
        thread.join().map_err(|_| "a thread panicked")??;
    }
    Ok(())
}

fn run() -> Outcome<()> {
    let Some(options) = Options::parse(std::env::args().skip(1))? else {
        print!("{HELP}");
        return Ok(());
    };
    match options.world {
        World::Lanes => on_lanes(&options),
        World::Tokio => on_tokio(&options),
        World::Each => on_each(&options),
    }
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("hyper_server: {error}");
            ExitCode::FAILURE
        }
    }
}

//! A program that has the packages and nothing else. It says at its end that they work; one that does not
//! ends it before.

use quietcore::net::{Control, Device, DeviceOptions, Network};
use quietcore::sim::{Scenario, SimOptions};
use quietcore::time::{self, Duration, Instant};
use quietcore::{LaneThreads, Machine, TimerOptions};
use quietcore_wheel::{Tick, Timers};
use std::error::Error;
use std::sync::mpsc;

const PATIENCE: Duration = Duration::from_secs(60);

const SCENARIO: &str = r#"
duration = "20ms"
[machine]
cpus = 2
[[load.periodic]]
cpus = "0"
period = "10ms"
[expect]
every = ["lost = 0"]
"#;

#[quietcore::main]
async fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    let started = Instant::now();
    time::sleep(Duration::from_millis(2)).await;
    assert!(started.elapsed() >= Duration::from_millis(2));
    packets_and_callbacks()?;
    let scenario = Scenario::parse("own.toml".as_ref(), SCENARIO, &|_| unreachable!("it names no file"))?;
    let run = scenario.run(SimOptions::default(), &mut |_| true, &mut |_| Ok(None));
    assert!(run?.is_some_and(|run| run.holds));
    let mut timers = Timers::new(Tick(0), Vec::new());
    timers.arm_growing(Tick(5), "a word");
    let due = timers.next_expiry().ok_or("a pending timer is due sometime")?;
    assert_eq!(timers.next_expired(due).map(|expired| expired.value), Some("a word"));
    println!("quietcore works from its packages");
    Ok(())
}

fn packets_and_callbacks() -> Result<(), Box<dyn Error + Send + Sync>> {
    let (network, builder) = Network::new(Machine::builder().lanes("0".parse()?));
    let machine = builder.lane_threads(LaneThreads::new()).start()?;
    let (told, heard) = mpsc::channel();
    let callback = told.clone();
    let timer = machine.timer(TimerOptions::default(), move |_| callback.send(0).expect("a listener"));
    timer.arm_after(Duration::from_millis(1))?;
    assert_eq!(heard.recv_timeout(PATIENCE)?, 0);
    let driver = move |_queue: usize, packet: Vec<u8>| {
        told.send(packet.len()).expect("a listener");
        Ok(())
    };
    let control = Control::new(machine, 1);
    let device = std::sync::Arc::new(Device::new(&network, machine, DeviceOptions::new(1), driver)?);
    control.add_device("eth1", device.clone())?;
    control.execute_line("tc qdisc replace dev eth1 root netem delay 10ms")?;
    assert!(device.send(vec![0; 60]).is_accepted());
    assert_eq!(heard.recv_timeout(PATIENCE)?, 60);
    Ok(())
}

//! Lines of `tc`, and what iproute2 6.1 and Linux 6.12 make of them (`recorded.txt`, by `record.py`): they
//! are carried out here, and compared byte by byte: whether a line is taken, its exit code, and what all six
//! forms of `show` say of disciplines, classes and filters then.

mod exceptions;
mod recording;

use exceptions::{ABSENT, DIFFERENT, FORMS};
use quietcore_live::Machine;
use quietcore_net::{Control, Device, DeviceOptions, Network};
use quietcore_qdisc::tc::{Command, JsonLayout, parse};
use quietcore_qdisc::{Distribution, IpPacket};
use recording::{OBJECTS, Recorded, STYLES, recordings};
use std::collections::BTreeSet;
use std::sync::Arc;

/// As many as the recorded devices had.
const QUEUES: usize = 4;

/// The files that iproute2 installed where the recordings were made; what is in them does not show.
fn tables(name: &str) -> Result<Distribution, String> {
    let table = Distribution::from_table(&[-8_192, 8_192]).map_err(|error| error.to_string());
    if name == "experimental" { table } else { Err(format!("there is no file {name}.dist")) }
}

/// A device without a line, named as in the recordings.
fn control(network: &Network, machine: &'static Machine, names: &[&str]) -> Control<IpPacket> {
    let control = Control::new(machine, 1);
    control.find_distributions(tables);
    for name in names {
        let driver = |_: usize, _: IpPacket| Ok(());
        let device = Device::new(network, machine, DeviceOptions::new(QUEUES), driver).expect("a device");
        control.add_device(name, Arc::new(device)).expect("it is new");
    }
    control
}

/// Carries out a line as the command does: its exit code, and what it prints.
fn carried_out(control: &Control<IpPacket>, line: &str) -> (u8, String) {
    let command = match parse(line) {
        Ok(command) => command,
        Err(error) => return (error.exit_code(), error.to_string()),
    };
    match control.execute(&command) {
        Ok(answer) => {
            let is_json = matches!(&command, Command::Show(show) if show.json);
            let is_spread = matches!(&command, Command::Show(show) if show.style.pretty);
            let layout = if is_spread { JsonLayout::Spread } else { JsonLayout::Line };
            (0, if is_json { answer.json(layout) } else { answer.to_string() })
        }
        Err(error) => (error.exit_code(), error.to_string()),
    }
}

/// What differs from a recording, in words; nothing if nothing does.
fn differences(network: &Network, machine: &'static Machine, recorded: &Recorded) -> Vec<String> {
    let with_ifb = recorded.title.contains("ifb0");
    let names: &[&str] = if with_ifb { &["eth0", "ifb0"] } else { &["eth0"] };
    let control = control(network, machine, names);
    let mut found = Vec::new();
    for line in &recorded.setup {
        let (code, _) = carried_out(&control, line);
        if code != 0 {
            return vec![format!("setup `{line}` exits with {code}")];
        }
    }
    let (code, printed) = carried_out(&control, &recorded.line);
    if code != recorded.exit {
        found.push(format!("exit {code}, recorded {}", recorded.exit));
        return found;
    }
    if code == 0 && printed != recorded.stdout {
        found.push(format!("prints\n{printed}--- recorded\n{}", recorded.stdout));
    }
    for object in OBJECTS {
        for style in STYLES {
            let Some(said) = recorded.shown(object, style) else { continue };
            if FORMS.iter().any(|form| form.excuses(object, style, said)) {
                continue;
            }
            let line = format!("{style} {object} show dev eth0");
            let (_, printed) = carried_out(&control, line.trim());
            if printed != said {
                found.push(format!("{line}\n{printed}--- recorded\n{said}"));
            }
        }
    }
    found
}

/// Goal: every line does what it does in the kernel, and is shown as `tc` shows it. Method: all recorded
/// lines, each on a new device; those that the lists except have to differ, so that no exception outlives its
/// reason.
#[test]
fn lines_are_as_recorded() {
    let (network, builder) = Network::new(Machine::builder().lanes("0".parse().expect("a CPU")));
    let machine = builder.start().expect("a machine");
    let (mut same, mut absent, mut wrong) = (0, 0, Vec::new());
    let mut used = BTreeSet::new();
    for recorded in recordings() {
        if ABSENT.iter().any(|absent| recorded.title.contains(absent)) {
            absent += 1;
            continue;
        }
        let found = differences(&network, machine, &recorded);
        let exception = DIFFERENT.iter().find(|exception| exception.is_of(&recorded.title));
        match (found.is_empty(), exception) {
            (true, None) => same += 1,
            (false, Some(exception)) => {
                used.insert(exception.line);
            }
            (true, Some(exception)) => {
                wrong.push(format!("=> {}\nno longer differs: {}", recorded.title, exception.why));
            }
            (false, None) => wrong.push(format!("=> {}\n{}", recorded.title, found.join("\n"))),
        }
    }
    machine.shutdown();
    let unused: Vec<&str> =
        DIFFERENT.iter().map(|exception| exception.line).filter(|line| !used.contains(line)).collect();
    println!("{same} lines are the same, {} differ as listed, {absent} are of what is absent", used.len());
    assert!(unused.is_empty(), "exceptions of no line: {unused:?}");
    assert!(wrong.is_empty(), "{} lines differ\n{}", wrong.len(), wrong.join("\n\n"));
}

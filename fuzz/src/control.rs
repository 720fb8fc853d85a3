//! What must hold for anything that a client sends to the control socket of an instance.
//!
//! The bytes are requests as they come through a connection: whole ones, cut ones, lengths that no line has.
//! They meet a device with two queues and a small tree of disciplines, and what they change stays for the
//! requests behind them; the next input begins with the small tree again.

use quietcore_live::Machine;
use quietcore_net::instance::{Conversation, execute};
use quietcore_net::{Control, Device, DeviceOptions, Network};
use quietcore_qdisc::IpPacket;
use quietcore_qdisc::tc::parse;
use std::sync::{Arc, OnceLock};

/// Longest line of the protocol.
const REQUEST_MAX: usize = 65_536;
const LENGTH_BYTES: usize = 4;

/// What is there before a client speaks.
const TREE: [&str; 6] = [
    "qdisc add dev eth1 root handle 1: htb default 2",
    "class add dev eth1 parent 1: classid 1:1 htb rate 10mbit",
    "class add dev eth1 parent 1:1 classid 1:2 htb rate 1mbit ceil 10mbit",
    "class add dev eth1 parent 1:1 classid 1:3 htb rate 2mbit",
    "qdisc add dev eth1 parent 1:3 handle 3: netem delay 1ms loss 1%",
    "filter add dev eth1 parent 1: protocol ip prio 1 u32 match ip dport 53 0xffff flowid 1:3",
];

/// A device called `eth1`, on a machine whose lane no thread drives.
fn control() -> &'static Control<IpPacket> {
    static CONTROL: OnceLock<Control<IpPacket>> = OnceLock::new();
    CONTROL.get_or_init(|| {
        let (network, builder) = Network::new(Machine::builder().lanes("0".parse().expect("a list")));
        let machine = builder.start().expect("a machine starts");
        let control = Control::new(machine, 1);
        let driver = |_: usize, _: IpPacket| Ok(());
        let device = Device::new(&network, machine, DeviceOptions::new(2), driver).expect("a device");
        control.add_device("eth1", Arc::new(device)).expect("its name is free");
        control
    })
}

/// Sends `bytes` through a connection, and reads what is answered.
pub fn check(bytes: &[u8]) {
    let control = control();
    // Refused if the last input has left nothing to delete.
    let _ = execute(control, "qdisc del dev eth1 root");
    for line in TREE {
        assert_eq!(execute(control, line), Ok(String::new()), "{line}");
    }
    let (mut conversation, mut rest) = (Conversation::default(), bytes);
    let mut answers = 0;
    while !rest.is_empty() {
        let wanted = conversation.wanted();
        assert!(wanted > 0 && wanted <= REQUEST_MAX, "{wanted} bytes are wanted");
        let (now, later) = rest.split_at(wanted.min(rest.len()));
        if conversation.hear(now).is_err() {
            break;
        }
        conversation.answer(&|line| {
            let reply = execute(control, line);
            check_reply(line, &reply);
            reply
        });
        answers += check_message(conversation.unread());
        conversation.was_read(conversation.unread().len());
        rest = later;
    }
    assert_eq!(answers, requests(bytes), "every whole request is answered once");
}

/// A line that is no command is refused; what is refused is told in words that a terminal can show.
fn check_reply(line: &str, reply: &Result<String, String>) {
    if parse(line).is_err() {
        assert!(reply.is_err(), "{line:?} is no command: {reply:?}");
    }
    if let Err(why) = reply {
        let plain = |c: char| !c.is_control() || c == '\n' || c == '\t';
        assert!(!why.is_empty() && why.chars().all(plain), "{line:?}: {why:?}");
    }
}

/// How many messages these bytes are: none or one, with a status and text.
fn check_message(bytes: &[u8]) -> usize {
    let Some((length, message)) = bytes.split_first_chunk::<LENGTH_BYTES>() else {
        assert!(bytes.is_empty(), "{bytes:?}");
        return 0;
    };
    assert_eq!(u32::from_le_bytes(*length) as usize, message.len());
    assert!(message.first().is_some_and(|status| *status < 2), "{message:?}");
    assert!(std::str::from_utf8(&message[1..]).is_ok());
    1
}

/// A second count: whole requests before the first that is longer than a line may be.
fn requests(mut bytes: &[u8]) -> usize {
    let mut count = 0;
    while let Some((length, rest)) = bytes.split_first_chunk::<LENGTH_BYTES>() {
        let length = u32::from_le_bytes(*length) as usize;
        if length > REQUEST_MAX || length > rest.len() {
            break;
        }
        (bytes, count) = (&rest[length..], count + 1);
    }
    count
}

#[cfg(test)]
mod tests {
    use super::check;

    fn request(line: &str) -> Vec<u8> {
        [&(line.len() as u32).to_le_bytes(), line.as_bytes()].concat()
    }

    /// Goal: the checks accept the bundled script as requests. Method: each line, then all of them through
    /// one connection, cut at every byte of the first ones.
    #[test]
    fn the_checks_accept_the_bundled_script() {
        let script = include_str!("../tc_lines.txt");
        let lines: Vec<Vec<u8>> = script.lines().map(request).collect();
        lines.iter().for_each(|line| check(line));
        let all = lines.concat();
        check(&all);
        for end in 0..all.len().min(400) {
            check(&all[..end]);
        }
        check(&request("qdisc show dev \u{1b}[2J"));
        check(&[&request("qdisc show"), &u32::MAX.to_le_bytes()[..], &request("qdisc show")].concat());
    }
}

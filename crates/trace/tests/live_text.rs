//! The text that is made of the kernel's pages, held against the kernel's own.

use quietcore_core::{CpuId, CpuSet};
use quietcore_testing::left_out;
use quietcore_trace::Question;
use quietcore_trace::live::{LiveText, Recording, Tracefs, tracepoints};
use std::collections::HashMap;
use std::io::{ErrorKind, Read};
use std::path::PathBuf;
use std::time::Duration;
use std::{fs, thread};

/// The instance of this process: it makes one.
fn instance() -> PathBuf {
    let of_ours = format!("quietcore-{}-", std::process::id());
    let instances = fs::read_dir("/sys/kernel/tracing/instances").expect("tracefs is mounted");
    let names = instances.map(|entry| entry.expect("an instance").path());
    let mut ours = names
        .filter(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(&of_ours)));
    ours.next().expect("a recording is going on")
}

/// All that is in the buffers.
fn read(mut text: LiveText) -> String {
    text.recording_stopped();
    let (mut read, mut buffer) = (Vec::new(), [0; 4096]);
    loop {
        match text.read(&mut buffer) {
            Ok(count) => read.extend_from_slice(&buffer[..count]),
            Err(error) if error.kind() == ErrorKind::WouldBlock => break,
            Err(error) => panic!("{error}"),
        }
    }
    String::from_utf8_lossy(&read).into_owned()
}

/// A line with what both texts must have: objects by the order in which they appear, times in us.
struct Comparable {
    comm: String,
    rest: String,
}

fn comparable(line: &str, objects: &mut HashMap<String, usize>) -> Comparable {
    let (comm, rest) = line.split_at(16);
    let (before, after) = rest.split_once(": ").expect("a time");
    let (columns, at) = before.rsplit_once(' ').expect("columns before it");
    let (seconds, fraction) = at.split_once('.').expect("a fraction");
    let nanos: u64 = format!("{fraction:0<9}").parse().expect("digits");
    let micros = seconds.parse::<u64>().expect("seconds") * 1_000_000 + (nanos + 500) / 1000;
    let mut fields = String::new();
    for word in after.split_inclusive([' ', '=', ':', ',']) {
        let digits = word.trim_end_matches([' ', '=', ':', ',']);
        let is_object = digits.len() == 16 && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        if is_object && digits.bytes().any(|byte| byte != b'0') {
            let count = objects.len();
            let number = objects.entry(digits.to_owned()).or_insert(count);
            fields.push_str(&format!("object {number}{}", &word[digits.len()..]));
        } else {
            fields.push_str(word);
        }
    }
    Comparable { comm: comm.trim().to_owned(), rest: format!("{} {micros} {fields}", columns.trim()) }
}

/// Goal: what is made of the pages is what the kernel prints: columns, names of functions, flags, order.
/// Method: this machine at work, recorded; both texts are of the same buffers, as `trace` leaves them full.
#[test]
fn the_text_is_the_kernels() {
    let what = "the text of pages against the kernel's";
    let tracefs = match Tracefs::find() {
        Ok(tracefs) => tracefs,
        Err(error) => return left_out(what, error),
    };
    let cpus: CpuSet = (0..1024).map(|cpu| CpuId::new(cpu).expect("fewer than all")).collect();
    let chosen = tracepoints(&Question::ALL, &cpus);
    let mut recording = Recording::start(&tracefs, &chosen, 65_536).expect("tracefs can be written");
    let text = recording.text().expect("it is the first call");
    if text.is_the_kernels() {
        return left_out(what, "the kernel tells no names of functions");
    }
    let sleepers: Vec<_> = (0..4)
        .map(|thread| {
            thread::Builder::new()
                .name(format!("a b:{thread} [x]"))
                .spawn(move || (0..50).for_each(|_| thread::sleep(Duration::from_millis(1 + thread))))
                .expect("a thread")
        })
        .collect();
    sleepers.into_iter().for_each(|sleeper| sleeper.join().expect("it only sleeps"));
    recording.stop().expect("it is ours");
    let kernels = fs::read(instance().join("trace")).expect("it is ours");
    let kernels = String::from_utf8_lossy(&kernels);
    let ours = read(text);
    recording.remove().expect("nothing reads it");

    let mut lines = ours.lines();
    let (mut objects, mut kernels_objects) = (HashMap::new(), HashMap::new());
    let (mut compared, mut named) = (0, 0);
    for line in kernels.lines().filter(|line| !line.starts_with('#')) {
        let own_line = lines.next().expect("as many lines");
        let theirs = comparable(line, &mut kernels_objects);
        let own = comparable(own_line, &mut objects);
        assert_eq!(own.rest, theirs.rest, "\n{own_line}\n{line}");
        // Others rename themselves meanwhile; ours have the name of their maker, or none, until one is seen.
        let is_early = ["the_text_is_the", "<...>"].contains(&&*own.comm);
        if (theirs.comm.starts_with("a b:") || theirs.comm == "<idle>") && !is_early {
            assert_eq!(own.comm, theirs.comm, "\n{own_line}\n{line}");
            named += 1;
        }
        compared += 1;
    }
    assert_eq!(lines.next(), None);
    assert!(
        compared > 500 && named > 50,
        "{compared} events, {named} names, of threads that slept 200 times"
    );
}

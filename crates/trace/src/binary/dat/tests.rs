//! Files of trace-cmd, made here: what they hold, what is refused, what is damaged.

use super::contents::DatContents;
use super::read;
use crate::binary::made::{HEADER_PAGE, entry, format, page};
use std::io::Read;

const NUMBER: &str = "\tfield:int n;\toffset:8;\tsize:4;\tsigned:1;\n\
    \tfield:unsigned long f;\toffset:16;\tsize:8;\tsigned:0;\n";
const SYMBOLS: &str = "ffff0010 T first\nffff0020 T second\n";
const TASKS: &str = "42 a task\n";
const UNAME: &str = "Linux host 6.12.107 x86_64\0";

fn event(delta: u32, n: u8) -> Vec<u8> {
    entry(6, delta, &[7, 0, 1, 0, 42, 0, 0, 0, n, 0, 0, 0, 0, 0, 0, 0, 0x10, 0, 0xff, 0xff, 0, 0, 0, 0])
}

fn full_page(at: u64, data: &[u8]) -> Vec<u8> {
    let mut page = page(at, 0, data);
    page.resize(4096, 0);
    page
}

/// Pages of two CPUs: events 1, 3, 4 of CPU 0, event 2 of CPU 1.
fn cpus() -> [Vec<u8>; 2] {
    let first = [event(0, 1), event(20, 3)].concat();
    [[full_page(100, &first), full_page(200, &event(0, 4))].concat(), full_page(110, &event(0, 2))]
}

/// A length of so many bytes, and the text.
fn sized(length_bytes: usize, text: &str) -> Vec<u8> {
    [&text.len().to_le_bytes()[..length_bytes], text.as_bytes()].concat()
}

fn header_info() -> Vec<u8> {
    [b"header_page\0", &*sized(8, HEADER_PAGE), b"header_event\0", &sized(8, "# compressed\n")].concat()
}

fn event_formats() -> Vec<u8> {
    let count = format("count", 7, NUMBER, r#""n=%d f=%ps", REC->n, REC->f"#);
    [&1u32.to_le_bytes()[..], b"system\0", &2u32.to_le_bytes(), &sized(8, &count), &sized(8, "no format")]
        .concat()
}

fn option(id: u16, data: &[u8]) -> Vec<u8> {
    [&id.to_le_bytes()[..], &(data.len() as u32).to_le_bytes(), data].concat()
}

/// Options that both versions have.
fn options(clock: &str) -> Vec<u8> {
    let clock = format!("local [{clock}] boot\n\0");
    let stats = "CPU: 0\nentries: 3\noverrun: 5\ncommit overrun: 0\ndropped events: 2\n\0";
    [option(4, clock.as_bytes()), option(5, UNAME.as_bytes()), option(2, stats.as_bytes())].concat()
}

fn initial(version: &str) -> Vec<u8> {
    [b"\x17\x08\x44tracing", version.as_bytes(), b"\0\0\x08", &4096u32.to_le_bytes()].concat()
}

/// A file of version 6 with these options.
fn v6(options: &[u8]) -> Vec<u8> {
    let mut file = [
        initial("6"),
        header_info(),
        0u32.to_le_bytes().to_vec(),
        event_formats(),
        sized(4, SYMBOLS),
        sized(4, "printk"),
        sized(8, TASKS),
        2u32.to_le_bytes().to_vec(),
        b"options  \0".to_vec(),
        options.to_vec(),
        0u16.to_le_bytes().to_vec(),
        b"flyrecord\0".to_vec(),
    ]
    .concat();
    let data_at = (file.len() as u64 + 32).next_multiple_of(4096);
    let [first, second] = cpus();
    for word in [data_at, first.len() as u64, data_at + first.len() as u64, second.len() as u64] {
        file.extend_from_slice(&word.to_le_bytes());
    }
    file.resize(data_at as usize, 0);
    [file, first, second].concat()
}

fn compressed(compression: &str, bytes: &[u8]) -> Vec<u8> {
    match compression {
        "zstd" => zstd::encode_all(bytes, 1).expect("memory"),
        _ => {
            let mut expanded = Vec::new();
            let level = flate2::Compression::fast();
            flate2::read::ZlibEncoder::new(bytes, level).read_to_end(&mut expanded).expect("memory");
            expanded
        }
    }
}

/// Lengths before and after, and the bytes.
fn chunk(compression: &str, bytes: &[u8]) -> Vec<u8> {
    let packed = compressed(compression, bytes);
    [&(packed.len() as u32).to_le_bytes()[..], &(bytes.len() as u32).to_le_bytes(), &packed].concat()
}

fn section(compression: &str, id: u16, bytes: &[u8]) -> Vec<u8> {
    let body = if compression == "none" { bytes.to_vec() } else { chunk(compression, bytes) };
    let flags = u16::from(compression != "none");
    let length = (body.len() as u64).to_le_bytes();
    [&id.to_le_bytes()[..], &flags.to_le_bytes(), &[0; 4], &length, &body].concat()
}

/// A file of version 7 whose buffers have these names.
fn v7(compression: &str, clock: &str, buffers: &[&str]) -> Vec<u8> {
    let mut file = [initial("7"), format!("{compression}\01.0\0").into_bytes()].concat();
    let first_options = file.len();
    file.extend_from_slice(&[0; 8]);
    let mut all = options(clock);
    let parts = [
        (16, header_info()),
        (18, event_formats()),
        (19, sized(4, SYMBOLS)),
        (20, sized(4, "printk")),
        (21, sized(8, TASKS)),
    ];
    for (id, part) in parts {
        all.extend(option(id, &(file.len() as u64).to_le_bytes()));
        file.extend(section(compression, id, &part));
    }
    all.extend(option(8, &2u32.to_le_bytes()));
    let places = cpus().map(|pages| {
        let data = match compression {
            "none" => pages,
            _ => {
                let chunks = pages.chunks(4096).map(|page| chunk(compression, page));
                [((pages.len() / 4096) as u32).to_le_bytes().to_vec(), chunks.collect::<Vec<_>>().concat()]
                    .concat()
            }
        };
        let place = (file.len() as u64, data.len() as u64);
        file.extend(data);
        place
    });
    let mut more = Vec::new();
    for name in buffers {
        let names = format!("{name}\0{clock}\0");
        let mut data = [&[0; 8], names.as_bytes(), &4096u32.to_le_bytes(), &2u32.to_le_bytes()].concat();
        for (cpu, (at, length)) in places.iter().enumerate() {
            let at_and_length = [at.to_le_bytes(), length.to_le_bytes()].concat();
            data.extend([&(3 * cpu as u32).to_le_bytes()[..], &at_and_length].concat());
        }
        more.extend(option(3, &data));
    }
    // The options are in two sections that follow each other.
    let second = file.len() as u64;
    more.extend(option(0, &0u64.to_le_bytes()));
    file.extend(section(compression, 0, &more));
    let at = file.len() as u64;
    all.extend(option(0, &second.to_le_bytes()));
    file.extend(section(compression, 0, &all));
    file[first_options..first_options + 8].copy_from_slice(&at.to_le_bytes());
    file
}

fn text(file: Vec<u8>) -> Result<String, String> {
    let file: &'static [u8] = Box::leak(file.into_boxed_slice());
    let mut text = String::new();
    let mut reader = read(file, 250).map_err(|error| error.to_string())?;
    reader.read_to_string(&mut text).map_err(|error| error.to_string())?;
    Ok(text)
}

/// Goal: both versions, and every compression, give the same text: columns, names, the order of time,
/// what the file says of its machine.
#[test]
fn every_version_gives_the_same_text() {
    let line = |cpu: u32, at: u32, n: u32| {
        format!("          a task-42      [{cpu:03}] d.... {:>5}.{at:09}: count: n={n} f=first\n", 0)
    };
    let expected = |second: u32| {
        let lines = [line(0, 100, 1), line(second, 110, 2), line(0, 120, 3), line(0, 200, 4)];
        format!("cpus=2; uname: Linux host 6.12.107 x86_64; lost events: 7\n{}", lines.concat())
    };
    assert_eq!(text(v6(&options("mono"))).as_deref(), Ok(&*expected(1)));
    for compression in ["none", "zstd", "zlib"] {
        assert_eq!(text(v7(compression, "mono", &[""])).as_deref(), Ok(&*expected(3)), "{compression}");
    }
}

/// Goal: the events of an instance are read, and of several the user has to choose. Method: both
/// versions.
#[test]
fn an_instance_is_read() {
    assert!(text(v7("none", "mono", &["mine"])).expect("one buffer").contains("n=4"));
    let several = "it has the events of several buffers (the main one, \"mine\"); choose one: \
                   trace-cmd report -i FILE -B NAME";
    assert_eq!(text(v7("none", "mono", &["", "mine"])), Err(several.to_owned()));
    assert_eq!(text(v7("none", "mono", &[])), Err("no event is in it".to_owned()));
    let file = v6(&options("mono"));
    let at = file.windows(10).position(|bytes| bytes == b"flyrecord\0").expect("it is there") as u64;
    // The instance's pages are the others', which is a place as good as any.
    let instance = option(3, &[&at.to_le_bytes()[..], b"mine\0"].concat());
    let shifted = at + instance.len() as u64;
    let instance = option(3, &[&shifted.to_le_bytes()[..], b"mine\0"].concat());
    let file = v6(&[options("mono"), instance].concat());
    let mut contents = DatContents::read(&&*file).expect("a file");
    let buffers: Vec<_> = contents.buffers.drain(..).map(|buffer| (buffer.name, buffer.cpus)).collect();
    assert_eq!(buffers[0].1, buffers[1].1);
    assert_eq!((&*buffers[0].0, &*buffers[1].0), ("mine", ""));
}

/// Goal: times of a clock that has no unit are printed without one.
#[test]
fn a_clock_without_a_unit_is_told() {
    for file in [v6(&options("x86-tsc")), v7("none", "x86-tsc", &[""])] {
        let text = text(file).expect("a file");
        assert!(text.contains("] d....          110: count: n=2"), "{text}");
    }
}

/// Goal: what cannot be read says why. Method: a change for each reason.
#[test]
fn what_cannot_be_read_says_why() {
    let changed = |from: &[u8], to: &[u8]| {
        let mut file = v6(&options("mono"));
        let at = file.windows(from.len()).position(|bytes| bytes == from).expect("it is there");
        file.splice(at..at + from.len(), to.iter().copied());
        text(file).expect_err("it is changed")
    };
    for (from, to, why) in [
        (
            &b"tracing6\0\0"[..],
            &b"tracing6\0\x01"[..],
            "it is of a big-endian machine, which is not read: trace-cmd report -i FILE",
        ),
        (b"tracing6", b"tracing8", "its format has version 8; 6 and 7 are read"),
        (b"header_page", b"header_pagX", "no \"header_page\" at byte 18, where it should be"),
        (
            b"flyrecord",
            b"latency  ",
            "it holds the text of a latency tracer and no events: trace-cmd report -i FILE",
        ),
        (b"options  ", b"flyrecorx", "\"flyrecorx\" where its pages should begin"),
        (
            b"local_t commit;\toffset:8;\tsize:8",
            b"local_t commit;\toffset:8;\tsize:4",
            "its pages are not those of a little-endian machine of 64 bits: trace-cmd report -i FILE",
        ),
        (b"common_pid", b"common_pit", "it describes no events"),
    ] {
        assert_eq!(changed(from, to), why);
    }
    let lzo = v7("none", "mono", &[""]);
    let at = lzo.windows(5).position(|bytes| bytes == b"none\0").expect("it is there");
    let mut lzo = lzo;
    lzo[at..at + 4].copy_from_slice(b"lzo4");
    let why = "its parts are compressed with lzo4, which is not read: trace-cmd report -i FILE";
    assert_eq!(text(lzo), Err(why.to_owned()));
}

/// Goal: a file that is cut or damaged is an error or a shorter text, never a panic, and never needs much
/// memory. Method: every cut; every byte of what is not a page set to all ones.
#[test]
fn a_damaged_file_is_an_error() {
    for whole in [v6(&options("mono")), v7("zstd", "mono", &[""]), v7("none", "mono", &[""])] {
        let end = whole.len().min(3000);
        for at in 0..end {
            let _ = text(whole[..at].to_vec());
            let mut damaged = whole.clone();
            damaged[at] = 0xff;
            let _ = text(damaged);
        }
        assert!(text(whole[..200].to_vec()).is_err());
    }
}

/// Goal: a small file cannot keep its reader busy for ever. Method: options that lead back to themselves;
/// chunks that expand 4000 times.
#[test]
fn a_small_file_is_soon_read() {
    let mut file = [initial("7"), b"none\0\0".to_vec()].concat();
    let at = file.len() as u64 + 8;
    file.extend_from_slice(&at.to_le_bytes());
    file.extend(section("none", 0, &option(0, &at.to_le_bytes())));
    assert_eq!(text(file), Err("it has more than 4096 options".to_owned()));
}

//! Writes small recordings, reads them and bundled ones, and asks.

use quietcore_core::CpuSet;
use quietcore_core::place::Policy;
use quietcore_explain::{Explain, ExplainOptions, Explanation};
use quietcore_trace::{Header, KernelRelease, TraceReader};
use quietcore_verify::whatif::{
    Excluded, LoadError, LoadFacts, LoadReader, RecordedLoad, WhatifAnswer, WhatifQuestion, answer,
};
use std::io::Read;
use std::path::PathBuf;

pub(crate) fn cpus(list: &str) -> CpuSet {
    if list.is_empty() { CpuSet::new() } else { list.parse().expect("a CPU list") }
}

fn facts(header: &Header) -> LoadFacts {
    LoadFacts {
        cpu_count: header.cpu_count,
        hz: header.hz,
        model: header.kernel.as_ref().map(KernelRelease::timer_model),
        timer_migration: header.timer_migration,
        isolated: header.isolated.clone().unwrap_or_default(),
        nohz_full: header.nohz_full.clone().unwrap_or_default(),
    }
}

pub(crate) fn load(text: &[u8]) -> Result<(RecordedLoad, Explanation), LoadError> {
    let mut reader = TraceReader::new(text);
    reader.read_header().expect("a header");
    let facts = facts(reader.header());
    let mut explain =
        Explain::new(ExplainOptions { isolated: facts.isolated.clone(), ..ExplainOptions::default() });
    let mut load = LoadReader::new();
    let take = &mut |record: &quietcore_trace::Record<'_>| {
        explain.take(record);
        load.take(record);
    };
    reader.read(u64::MAX, take).expect("a trace");
    Ok((load.finish(facts)?, explain.finish(reader.tally())))
}

pub(crate) fn recording(name: &str) -> Vec<u8> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("../../recordings/{name}.txt.zst"));
    let mut text = Vec::new();
    quietcore_trace::open(&path).expect("a bundled recording").read_to_end(&mut text).expect("zstd");
    text
}

/// A trace of a 6.12 machine with HZ=250, from lines `CPU PID MS EVENT`, beginning at jiffy 1000 and 0 ms.
pub(crate) fn trace(kernel: &str, cpu_count: u16, isolated: &str, lines: &[String]) -> Vec<u8> {
    let isolated = if isolated.is_empty() { "-" } else { isolated };
    let mut text = format!(
        "# kernel: Linux {kernel}, x86-64, HZ=250\n# cpus: possible 0-{}, online\n\
         # isolated: {isolated}; nohz_full: -\n",
        cpu_count - 1
    );
    for line in lines {
        let mut parts = line.splitn(4, ' ');
        let mut next = || parts.next().expect("CPU PID MS EVENT");
        let (cpu, pid, ms, event) = (next(), next(), next(), next());
        let us = ms.parse::<f64>().expect("milliseconds") * 1000.0;
        let (s, us) = ((us / 1e6) as u64, us as u64 % 1_000_000);
        text += &format!("  task-{pid} [{cpu}] d..2. {s}.{us:06}: {event}\n");
    }
    text.into_bytes()
}

/// `timer_start` of a timer in jiffies.
pub(crate) fn start(timer: u32, base: u32, expires: u64, now: u64, flags: &str) -> String {
    let timeout = expires as i64 - now as i64;
    format!(
        "timer_start: timer={timer:08x} function=f{timer} expires={expires} [timeout={timeout}] cpu={base} \
         idx=1 flags={flags}"
    )
}

pub(crate) fn ask(text: &[u8], question: &WhatifQuestion) -> WhatifAnswer {
    let (load, _) = load(text).expect("a load");
    answer(&load, question).expect("an answer")
}

pub(crate) fn excluding(list: &str) -> WhatifQuestion {
    WhatifQuestion { excluded: Excluded::These(cpus(list)), ..WhatifQuestion::default() }
}

pub(crate) fn under(policy: Policy) -> WhatifQuestion {
    WhatifQuestion { policy, ..WhatifQuestion::default() }
}

pub(crate) fn keeping_awake(list: &str) -> WhatifQuestion {
    WhatifQuestion { kept_awake: cpus(list), ..WhatifQuestion::default() }
}

//! What ran where in the last round of each variant, as a Perfetto trace.
//!
//! The file is made by the writer that shows recordings of the kernel, so a callback that ran on another
//! lane than the one that armed it is a pull there, too. Tasks are on the track of the timers of their CPU,
//! where a lane runs one or the other. The variants come one after the other on one time axis, as they ran.

use crate::slice::{SLICES_MAX, Slice, SliceKind, VariantSlices};
use quietcore_core::{CpuId, Nanos};
use quietcore_trace::{Event, PerfettoWriter, Record, SoftirqStep, Task, TimerStart};
use std::io;

/// Writes `all` to `out`, and returns it.
///
/// # Errors
///
/// Those of `out`.
pub fn perfetto<W: io::Write>(out: W, all: &[VariantSlices]) -> io::Result<W> {
    let mut writer = PerfettoWriter::new(out);
    for (number, shown) in all.iter().enumerate() {
        let mut steps: Vec<(Nanos, bool, &Slice)> = Vec::new();
        for ran in shown.slices.iter().take(SLICES_MAX) {
            steps.push((ran.began, true, ran));
            steps.push((ran.ended, false, ran));
        }
        // What a lane runs ends before the next thing begins; at equal times the end is first.
        steps.sort_by_key(|(at, is_begin, ran)| (*at, *is_begin && ran.began != ran.ended));
        for (line, (at, is_begin, ran)) in (1..).zip(steps) {
            let mut take = |event| {
                let task = Task { comm: b"lane", pid: ran.tid };
                writer.take(&Record { line, task, cpu: ran.cpu, context: None, at, event })
            };
            // What has the same number in two variants is not the same.
            let variant = (number as u64 + 1) << 32;
            let (timer, armed, which) = match ran.kind {
                SliceKind::Timer { number, armed } => (variant | number, armed, String::new()),
                SliceKind::Task { number } => {
                    let which = number.map(|number| format!(" {number}")).unwrap_or_default();
                    (variant | 1 << 31 | number.unwrap_or_default(), None, which)
                }
                SliceKind::Softirq { vector } => {
                    let step = if is_begin { SoftirqStep::Entry } else { SoftirqStep::Exit };
                    take(Event::Softirq { step, vector })?;
                    continue;
                }
            };
            if !is_begin {
                take(Event::TimerExpireExit { timer })?;
                continue;
            }
            let name = format!("{}{which} ({} {}, tid {})", ran.name, shown.row, shown.variant, ran.tid);
            if let Some(armed) = armed {
                take(Event::TimerStart(start(timer, armed, name.as_bytes())))?;
            }
            take(Event::TimerExpireEntry { timer, function: name.as_bytes(), now: 0, baseclk: None })?;
        }
    }
    writer.finish()
}

/// Where a timer was armed; when it was due is not shown.
fn start(timer: u64, base: CpuId, function: &[u8]) -> TimerStart<'_> {
    TimerStart {
        timer,
        function,
        expires: 0,
        timeout: 0,
        bucket_expiry: None,
        base,
        bucket: None,
        deferrable: false,
        pinned: false,
        irq_safe: false,
    }
}

#[cfg(test)]
mod tests {
    use super::perfetto;
    use crate::slice::{Slice, SliceKind, VariantSlices};
    use quietcore_core::{CpuId, Nanos};

    fn cpu(number: u64) -> CpuId {
        CpuId::new(number).expect("a CPU")
    }

    fn ran(kind: SliceKind, on: u64, at: u64) -> Slice {
        let (began, ended) = (Nanos(at), Nanos(at + 500));
        Slice { kind, name: "work", cpu: cpu(on), tid: 4000 + on as i32, began, ended }
    }

    /// Goal: a callback that ran elsewhere is a pull, with its thread in its name; variants are told apart.
    /// Method: one at home and one away, of two variants.
    #[test]
    fn a_callback_that_ran_elsewhere_is_a_pull() {
        let timer = SliceKind::Timer { number: 1, armed: Some(cpu(0)) };
        let all = [
            VariantSlices { row: "oslat", variant: "off", slices: vec![ran(timer, 1, 1_000)] },
            VariantSlices { row: "oslat", variant: "on", slices: vec![ran(timer, 0, 9_000)] },
        ];
        let file = perfetto(Vec::new(), &all).expect("memory takes all");
        let has = |text: &str| file.windows(text.len()).any(|bytes| bytes == text.as_bytes());
        assert!(has("pull work (oslat off, tid 4001) from CPU 0"));
        assert!(has("work (oslat on, tid 4000)") && !has("pull work (oslat on"));
        assert!(perfetto(Vec::new(), &[]).is_ok());
    }

    /// Goal: tasks and softirqs are slices, too. Method: one of each.
    #[test]
    fn tasks_and_handlers_are_shown() {
        let kinds = [
            SliceKind::Task { number: Some(3) },
            SliceKind::Task { number: None },
            SliceKind::Softirq { vector: 3 },
        ];
        let slices = (1..).zip(kinds).map(|(at, kind)| ran(kind, 0, at * 1_000)).collect();
        let all = [VariantSlices { row: "cyclictest", variant: "both", slices }];
        let file = perfetto(Vec::new(), &all).expect("memory takes all");
        for text in ["work 3 (cyclictest both, tid 4000)", "work (cyclictest both, tid 4000)", "NET_RX"] {
            assert!(file.windows(text.len()).any(|bytes| bytes == text.as_bytes()), "{text}");
        }
    }
}

//! Traces of what ran where, as a viewer shows them.

use crate::decoder::decode;
use quietcore_core::{CpuId, Nanos};
use quietcore_lab::{Slice, SliceKind, VariantSlices, perfetto};

fn cpu(number: u64) -> CpuId {
    CpuId::new(number).expect("a CPU")
}

/// On CPU `on`, from `began` to `ended`.
fn ran(kind: SliceKind, name: &'static str, on: u64, [began, ended]: [u64; 2]) -> Slice {
    Slice { kind, name, cpu: cpu(on), tid: 4_000 + on as i32, began: Nanos(began), ended: Nanos(ended) }
}

/// `TRACK MOMENT KIND NAME` of each event.
fn shown(all: &[VariantSlices]) -> Vec<String> {
    let file = perfetto(Vec::new(), all).expect("memory takes all");
    let line =
        |event: crate::decoder::Shown| format!("{} {} {} {}", event.track, event.at, event.kind, event.name);
    decode(&file).into_iter().map(line).collect()
}

/// Goal: each slice is on its CPU's track from when it began to when it ended, whatever the order in which
/// slices were taken down; what begins when another one ends is a slice of its own, and so is one that took
/// no time. Method: two CPUs, taken down neither in the order in which they ended nor in that in which they
/// began.
#[test]
fn slices_are_where_and_when_they_ran() {
    let timer = |number| SliceKind::Timer { number, armed: Some(cpu(0)) };
    let slices = vec![
        ran(timer(2), "second", 0, [1_400, 1_700]),
        ran(timer(1), "first", 0, [1_000, 1_400]),
        ran(SliceKind::Softirq { vector: 3 }, "NET_RX", 1, [1_100, 1_800]),
        ran(timer(3), "short", 0, [1_750, 1_750]),
        ran(timer(4), "long", 1, [1_050, 1_900]),
        ran(SliceKind::Task { number: Some(5) }, "task", 0, [2_000, 2_600]),
        ran(SliceKind::Task { number: None }, "sender", 0, [2_700, 2_900]),
    ];
    insta::assert_snapshot!(
        "trace",
        shown(&[VariantSlices { row: "cyclictest", variant: "both", slices }]).join("\n")
    );
}

/// Goal: a pull is a timer that ran elsewhere than where this variant armed it; a task of the same number, or
/// the next variant's timer, is another one. Method: a timer that was armed on CPU 0 and ran on CPU 1; there,
/// a task of its number and another timer, and in the next variant a timer of its number, neither of which
/// says where it was armed.
#[test]
fn numbers_are_of_one_variant() {
    let timer = |armed| SliceKind::Timer { number: 7, armed };
    let first = vec![
        ran(timer(Some(cpu(0))), "work", 1, [1_000, 1_100]),
        ran(SliceKind::Task { number: Some(7) }, "task", 1, [1_200, 1_300]),
        ran(SliceKind::Timer { number: 8, armed: None }, "other", 1, [1_400, 1_500]),
    ];
    let second = vec![ran(timer(None), "work", 1, [2_000, 2_100])];
    let found = shown(&[
        VariantSlices { row: "oslat", variant: "off", slices: first },
        VariantSlices { row: "oslat", variant: "on", slices: second },
    ]);
    insta::assert_snapshot!("trace-pulls", found.join("\n"));
}

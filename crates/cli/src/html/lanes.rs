//! When CPUs were taken away: a lane per CPU, with the share of each piece of the recording.

use super::source::{SOURCES, legend};
use crate::text::when;
use quietcore_core::Nanos;
use quietcore_explain::{Explanation, Interruption, TimelineReport};
use quietcore_page::{Anchor, AxisScale, Svg, figure, point};
use std::collections::BTreeMap;

/// So many CPUs are drawn, those that were taken away longest.
const CPUS_MAX: usize = 32;
const LEFT: f64 = 96.0;
const WIDTH: f64 = 900.0;
const TOP: f64 = 34.0;
const LANE: f64 = 40.0;
const GAP: f64 = 12.0;
/// Things that are named where the mouse is.
const NAMED_MAX: usize = 4;

/// The picture, if anything has a time.
pub(super) fn picture(report: &Explanation, rows: &[&Interruption]) -> Option<String> {
    let timeline = report.timeline.as_ref()?;
    let mut by_cpu: BTreeMap<u16, Vec<&Interruption>> = BTreeMap::new();
    for row in rows.iter().filter(|row| row.taken_ns.iter().any(|&taken| taken > 0)) {
        by_cpu.entry(row.cpu).or_default().push(row);
    }
    if by_cpu.is_empty() {
        return None;
    }
    let total = |rows: &[&Interruption]| rows.iter().filter_map(|row| row.total_ns).sum::<u64>();
    let mut cpus: Vec<u16> = by_cpu.keys().copied().collect();
    cpus.sort_by_key(|cpu| std::cmp::Reverse(total(&by_cpu[cpu])));
    let left_out = cpus.len().saturating_sub(CPUS_MAX);
    cpus.truncate(CPUS_MAX);
    cpus.sort_unstable();

    let height = TOP + cpus.len() as f64 * (LANE + GAP) + 34.0;
    let svg = Svg::new(LEFT + WIDTH + 20.0, height, "When CPUs were taken away from their tasks");
    let mut plot = LanePlot { report, timeline, svg };
    legend(&mut plot.svg, LEFT, 16.0, |source| rows.iter().any(|row| row.source == source));
    for (number, cpu) in cpus.iter().enumerate() {
        plot.lane(TOP + number as f64 * (LANE + GAP), *cpu, &by_cpu[cpu]);
    }
    plot.axis(height - 28.0);
    let piece = Nanos(timeline.piece_ns);
    let mut below = format!(
        "The share of every {piece} that was taken; the largest of a CPU is as high as its lane, and beside it. \
         What was interrupted is spread evenly over its time."
    );
    if !timeline.lost_by_cpu.is_empty() {
        below.push_str(" Below a lane: events were lost there.");
    }
    if left_out > 0 {
        below.push_str(&format!(" {left_out} more CPUs, from which less was taken, are not shown."));
    }
    Some(figure("long", "When", &below, &plot.svg.finish()))
}

/// The picture, and what it shows.
struct LanePlot<'a> {
    report: &'a Explanation,
    timeline: &'a TimelineReport,
    svg: Svg,
}

impl LanePlot<'_> {
    fn piece_width(&self) -> f64 {
        WIDTH / self.timeline.pieces.max(1) as f64
    }

    fn lane(&mut self, top: f64, cpu: u16, rows: &[&Interruption]) {
        let pieces = self.timeline.pieces;
        let all = |piece: usize| rows.iter().map(|row| taken(row, piece)).sum::<u64>();
        let most = (0..pieces).map(all).max().unwrap_or(0).max(1) as f64;
        let (width, bottom) = (self.piece_width(), top + LANE);
        self.svg.text("value", point(LEFT - 10.0, top + 17.0), Anchor::End, &format!("CPU {cpu}"));
        let share = 100.0 * most / self.timeline.piece_ns.max(1) as f64;
        self.svg.text("tick", point(LEFT - 10.0, top + 33.0), Anchor::End, &percent(share));
        self.svg.line("axis", point(LEFT, bottom), point(LEFT + WIDTH, bottom));
        for piece in (0..pieces).filter(|&piece| all(piece) > 0) {
            let x = LEFT + piece as f64 * width;
            let mut y = bottom;
            for source in SOURCES {
                let of_source = rows.iter().filter(|row| row.source == source);
                let height = LANE * of_source.map(|row| taken(row, piece)).sum::<u64>() as f64 / most;
                if height > 0.0 {
                    y -= height;
                    self.svg.rect(source, point(x, y), width, height);
                }
            }
            let hint = self.hint(piece, rows);
            self.svg.rect_with_hint("hint", point(x, top), point(width, LANE), &hint);
        }
        let lost = self.timeline.lost_by_cpu.get(&cpu).into_iter().flatten().enumerate();
        for (piece, _) in lost.filter(|(_, marks)| **marks > 0) {
            let corner = point(LEFT + piece as f64 * width, bottom + 2.0);
            self.svg.rect("lost", corner, width.max(2.0), 5.0);
        }
    }

    /// What took most in a piece.
    fn hint(&self, piece: usize, rows: &[&Interruption]) -> String {
        let mut named: Vec<&&Interruption> = rows.iter().filter(|row| taken(row, piece) > 0).collect();
        named.sort_by_key(|row| std::cmp::Reverse(taken(row, piece)));
        let TimelineReport { from_ns, piece_ns, .. } = self.timeline;
        let mut text = when(self.report, from_ns.saturating_add(piece_ns.saturating_mul(piece as u64)));
        for row in named.iter().take(NAMED_MAX) {
            text.push_str(&format!("\n{} {}: {}", row.source, row.name, Nanos(taken(row, piece))));
        }
        if let Some(more) = named.len().checked_sub(NAMED_MAX).filter(|&more| more > 0) {
            text.push_str(&format!("\nand {more} more"));
        }
        text
    }

    /// Seconds since the begin, below the lanes.
    fn axis(&mut self, y: f64) {
        let nanos = self.timeline.piece_ns.saturating_mul(self.timeline.pieces as u64);
        let seconds = Nanos(nanos).as_secs_f64();
        let ticks = AxisScale::holding([seconds].into_iter(), 0.0, 1.0).ticks();
        for tick in ticks.into_iter().filter(|tick| *tick <= seconds) {
            let place = point(LEFT + WIDTH * tick / seconds, y + 14.0);
            self.svg.text("tick", place, Anchor::Middle, &format!("{}", (tick * 1e6).round() / 1e6));
        }
        self.svg.text("unit", point(LEFT - 10.0, y + 14.0), Anchor::End, "s since begin");
    }
}

fn taken(row: &Interruption, piece: usize) -> u64 {
    row.taken_ns.get(piece).copied().unwrap_or(0)
}

fn percent(share: f64) -> String {
    match share {
        share if share >= 10.0 => format!("{share:.0} %"),
        share if share >= 0.1 => format!("{share:.1} %"),
        share => format!("{share:.3} %"),
    }
}

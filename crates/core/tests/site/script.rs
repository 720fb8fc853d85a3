//! A policy that is written down: CPU 0 until a mark, CPU 1 to its end, and so on.

use crate::stage::{self, Point, Policy};
use quietcore_core::script::Site;
use std::collections::VecDeque;

/// How far a virtual CPU goes.
#[derive(Clone, Copy, Debug)]
enum Until {
    /// To the n-th time that it is at the mark, from here.
    Site(Site, usize),
    End,
}

/// One line of a script.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Line {
    cpu: usize,
    until: Until,
}

/// Virtual CPU `cpu` of the test: the one that plays its part number `cpu`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mover(pub(crate) usize);

impl Mover {
    /// Goes on until it is at `site`.
    pub(crate) const fn until(self, site: Site) -> Line {
        self.until_nth(site, 1)
    }

    /// Goes on until it is at `site` for the n-th time from here.
    pub(crate) const fn until_nth(self, site: Site, times: usize) -> Line {
        Line { cpu: self.0, until: Until::Site(site, times) }
    }

    /// Goes on until it is done.
    pub(crate) const fn to_end(self) -> Line {
        Line { cpu: self.0, until: Until::End }
    }
}

/// Plays its lines; then every thread to the end, lowest number first.
pub(crate) struct Script {
    lines: VecDeque<Line>,
    current: Option<Line>,
    seen: usize,
}

impl Script {
    pub(crate) fn new(lines: &[Line]) -> Self {
        let mut lines: VecDeque<Line> = lines.iter().copied().collect();
        let current = lines.pop_front();
        Self { lines, current, seen: 0 }
    }

    /// Whether the current line is played, now that its CPU stands at `point`.
    fn is_played(&mut self, line: Line, point: Point) -> Result<bool, String> {
        match (line.until, point) {
            (Until::End, Point::Done) => Ok(true),
            (Until::Site(wanted, times), Point::At(site)) if site == wanted => {
                self.seen += 1;
                Ok(self.seen == times)
            }
            (_, Point::Done | Point::Blocked(_)) => {
                Err(format!("{line:?} cannot be played: it stands at {point:?}"))
            }
            _ => Ok(false),
        }
    }
}

impl Policy for Script {
    fn next(&mut self, points: &mut [Point], mover: stage::Mover) -> Result<Option<usize>, String> {
        while let Some(line) = self.current {
            if line.cpu == mover.cpu && self.is_played(line, points[mover.cpu])? {
                self.current = self.lines.pop_front();
                self.seen = 0;
                // The next line is a new one even for the same CPU.
                if let Some(next) = self.current {
                    return Ok(Some(next.cpu));
                }
                continue;
            }
            if matches!(points[line.cpu], Point::Blocked(_) | Point::Done) {
                return Err(format!("{line:?} cannot be played: it stands at {:?}", points[line.cpu]));
            }
            return Ok(Some(line.cpu));
        }
        let next = stage::ready(points).next();
        Ok(next)
    }
}

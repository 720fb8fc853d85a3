//! Tasks: small programs that run, arm timers, sleep and wake each other.
//!
//! A task runs a span, then decides what comes next. Three classes: real-time, normal, and fillers (busy,
//! measuring and enqueueing loops).

use quietcore_core::realtime::Priority;
use std::collections::VecDeque;

/// `due` of a task that no timer has woken.
pub(crate) const NOT_DUE: u64 = u64::MAX;

/// What a task does. Numbers are those of timers and tasks; times are in its load.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Program {
    /// Arms a periodic timer once.
    Starter {
        timer: u32,
    },
    /// Handles a device's interrupts.
    Driver {
        period: u64,
        jitter: u64,
        delay: u64,
        timer: u32,
    },
    Timeout {
        delay: u64,
        run: u64,
        sleep: u64,
        guard: u32,
        timer: u32,
    },
    Sleeper {
        run: u64,
        sleep: u64,
        jitter: u64,
        is_rt: bool,
        timer: u32,
    },
    Busy {
        chunk: u64,
        normal: bool,
    },
    Measure,
    Client {
        request: u64,
        timeout: u64,
        server: u32,
        guard: u32,
    },
    Server {
        service: u64,
        client: u32,
    },
    Enqueue {
        delay: u64,
        timer: u32,
    },
    Worker,
    /// One of the real-time threads.
    Realtime {
        thread: u32,
    },
    /// Runs softirqs that their CPU left.
    Ksoftirqd,
    /// Arms a timer on another CPU.
    Remote {
        target: u16,
        period: u64,
        slow: u64,
        timer: u32,
    },
    /// Sends packets through this transmit queue.
    Sender {
        queue: u16,
    },
    /// Does the steps of a script.
    Script,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SimTaskState {
    Blocked,
    /// In a queue, or current.
    Runnable,
    Ended,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct SimTask {
    pub(crate) program: Program,
    pub(crate) state: SimTaskState,
    pub(crate) cpu: u16,
    /// Where it belongs; it returns there when that CPU comes back.
    pub(crate) home: u16,
    /// Of a real-time task.
    pub(crate) priority: Option<Priority>,
    /// Whether it may be placed, pushed and pulled.
    pub(crate) may_move: bool,
    /// When it was last put behind its equals: a number that counts up.
    pub(crate) stamp: u64,
    /// Which part of its program comes next.
    pub(crate) part: u8,
    pub(crate) left: u64,
    /// When the timer was due that woke it.
    pub(crate) due: u64,
    /// A measuring loop: since when it is away, and how much longer it takes to come back.
    pub(crate) away_since: Option<u64>,
    pub(crate) return_cost: u64,
    /// An enqueueing loop: when its round began.
    pub(crate) round_at: u64,
}

pub(crate) enum NextPart {
    Run(u64),
    /// Behind its equals.
    Yield(u64),
    Block,
    End,
}

/// Work that waits for a CPU's worker.
#[derive(Debug, Default)]
pub(crate) struct CpuWorker {
    pub(crate) task: Option<u32>,
    pub(crate) backlog: VecDeque<u64>,
}

impl SimTask {
    pub(crate) fn new(program: Program, cpu: u16) -> Self {
        Self {
            program,
            state: SimTaskState::Blocked,
            cpu,
            home: cpu,
            // Sleepers have no priorities among themselves.
            priority: matches!(program, Program::Sleeper { is_rt: true, .. }).then_some(Priority::LOWEST),
            may_move: false,
            stamp: 0,
            part: 0,
            left: 0,
            due: NOT_DUE,
            away_since: None,
            return_cost: 0,
            round_at: 0,
        }
    }

    /// Which queue of its CPU it waits in, if it is no real-time task.
    pub(crate) fn class(&self) -> usize {
        usize::from(self.is_filler())
    }

    pub(crate) fn is_filler(&self) -> bool {
        match self.program {
            Program::Busy { normal, .. } => !normal,
            Program::Measure | Program::Enqueue { .. } => true,
            _ => false,
        }
    }

    /// Whether it never sleeps.
    pub(crate) fn is_loop(&self) -> bool {
        self.is_filler() || matches!(self.program, Program::Busy { .. })
    }

    /// Whether it runs in the place of `other` as soon as it can.
    pub(crate) fn outranks(&self, other: &Self) -> bool {
        match (self.priority, other.priority) {
            (None, None) => self.class() < other.class(),
            (own, others) => own > others,
        }
    }
}

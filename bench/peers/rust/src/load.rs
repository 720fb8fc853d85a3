//! Which measure is asked for and how large it is: `PROGRAM MEASURE key=value...`.
//!
//! The benchmark decides all sizes and passes them, so that they are the same in every language. Random
//! delays are the same, too: SplitMix64 from the number of the thread.
//!
//! Source of the generator: Guy L. Steele Jr., Doug Lea, Christine H. Flood, "Fast splittable pseudorandom
//! number generators" (OOPSLA 2014), figure 17.

use std::time::Duration;

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// Arm a timer that is far away and cancel it.
    ArmCancel,
    /// Cancel what another thread armed.
    RemoteCancel,
    /// Move a random one of many.
    Rearm,
    /// Let many expire.
    Expire,
    /// Many timers with the same period.
    Periodic,
    /// One task that sleeps again and again.
    Sleep,
    /// Tasks that sleep, first alone, then beside one that blocks its worker.
    Blocked,
    /// Nothing at all.
    Idle,
}

/// Where the threads of a measure come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// The runtime's own workers.
    Home,
    /// Threads that the runtime did not start.
    Foreign,
}

/// How an expiry is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// So long from now: the program or the runtime must read a clock.
    After,
    /// A moment that is known beforehand.
    At,
}

/// A measure and its sizes. What a measure does not use is whatever it is.
#[derive(Clone, Debug)]
pub struct Load {
    /// What to measure.
    pub measure: Measure,
    /// Whose threads arm and cancel.
    pub place: Place,
    /// How they say when.
    pub form: Form,
    /// How many threads at once.
    pub threads: usize,
    /// Timers that are pending all the time.
    pub others: usize,
    /// Timers, tasks or repetitions.
    pub count: usize,
    /// How long to repeat.
    pub time: Duration,
    /// From the start to the first expiry.
    pub lead: Duration,
    /// From the first expiry to the last.
    pub spread: Duration,
    /// Length of a sleep, or of a period.
    pub period: Duration,
    /// What the program itself understands: a mode of its runtime.
    pub mode: String,
}

impl Load {
    /// Of the command line.
    ///
    /// # Errors
    /// The argument that is not understood.
    pub fn from_arguments() -> Result<Self, String> {
        let mut arguments = std::env::args().skip(1);
        let measure = measure(&arguments.next().unwrap_or_default())?;
        let mut load = Self {
            measure,
            place: Place::Home,
            form: Form::After,
            threads: 1,
            others: 0,
            count: 0,
            time: Duration::ZERO,
            lead: Duration::ZERO,
            spread: Duration::ZERO,
            period: Duration::ZERO,
            mode: String::new(),
        };
        for argument in arguments {
            load.set(&argument).ok_or_else(|| format!("`{argument}` is not understood"))?;
        }
        Ok(load)
    }

    fn set(&mut self, argument: &str) -> Option<()> {
        let (key, value) = argument.split_once('=')?;
        let millis = || value.parse().ok().map(Duration::from_millis);
        match (key, value) {
            ("place", "home") => self.place = Place::Home,
            ("place", "foreign") => self.place = Place::Foreign,
            ("form", "after") => self.form = Form::After,
            ("form", "at") => self.form = Form::At,
            ("mode", _) => value.clone_into(&mut self.mode),
            ("threads", _) => self.threads = value.parse().ok()?,
            ("others", _) => self.others = value.parse().ok()?,
            ("count", _) => self.count = value.parse().ok()?,
            ("time_ms", _) => self.time = millis()?,
            ("lead_ms", _) => self.lead = millis()?,
            ("spread_ms", _) => self.spread = millis()?,
            ("period_ms", _) => self.period = millis()?,
            _ => return None,
        }
        Some(())
    }
}

fn measure(name: &str) -> Result<Measure, String> {
    Ok(match name {
        "arm-cancel" => Measure::ArmCancel,
        "remote-cancel" => Measure::RemoteCancel,
        "rearm" => Measure::Rearm,
        "expire" => Measure::Expire,
        "periodic" => Measure::Periodic,
        "sleep" => Measure::Sleep,
        "blocked" => Measure::Blocked,
        "idle" => Measure::Idle,
        _ => return Err(format!("there is no measure `{name}`")),
    })
}

/// Random delays.
#[derive(Clone, Debug)]
pub struct Delays(u64);

impl Delays {
    /// The sequence of thread `thread`.
    #[must_use]
    pub fn of(thread: usize) -> Self {
        Self(thread as u64 + 1)
    }

    fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`, which is not 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(bound)) >> 64) as u64
    }

    /// So far away that it never expires while something is measured: 60 s to an hour.
    pub fn far(&mut self) -> Duration {
        Duration::from_millis(60_000 + self.below(3_540_000))
    }

    /// From nothing to `bound`, which is not zero.
    pub fn within(&mut self, bound: Duration) -> Duration {
        Duration::from_nanos(self.below(bound.as_nanos() as u64))
    }
}

//! World 2 of quietcore: the core that real programs run, on any machine, with a virtual clock.
//!
//! A [`Scenario`] (a TOML file) says which machine, which loads and faults, which variants of it, and what to
//! expect. Running it takes no real time, starts no thread and reads no clock: the same file and seed give
//! the same run, event for event, on every platform, and a 64-bit hash of it to compare.
//!
//! Invariants: all randomness comes from the seed; what happens at equal times is shuffled by it; costs come
//! from measurements or citations, never from the figure to be shown. Deliberately absent: real time,
//! threads, memory ordering (the models of the core see to that), and any opinion about real kernels.

mod engine;
mod figures;
mod play;
mod run;
mod runtime;
mod scenario;
mod script;
mod world;

pub use engine::{EventQueue, SimRandom, TraceHash};
pub use figures::{
    CpuResidency, CyclicThread, IdleStateFigures, PacketFigures, RaiseFigures, RealtimeFigures, RunFigures,
    SoftirqFigures, SpanQuantiles, run_figure_names,
};
pub use run::{
    CostRange, ExpectVerdict, PerfettoSink, ShownValue, SimOptions, SimOutcome, SimProgress, VariantOutcome,
};
pub use runtime::{
    RuntimeCounts, RuntimeFaults, RuntimePlan, RuntimeRun, RuntimesOutcome, run_runtime, run_runtimes,
    smallest_failure, tell_runtime,
};
pub use scenario::{
    Cost, CostTable, CostValue, MeasuredOn, Scenario, ScenarioError, ScenarioSetting, SettingError,
    with_settings,
};
pub use script::{ScriptEvent, ScriptOccurrence, ScriptStep, ScriptVerb};

/// The example of the README compiles.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

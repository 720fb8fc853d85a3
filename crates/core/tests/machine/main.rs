//! The machine as a world sees it: random machines and scripts, `check` after every step, and the contract of
//! a timer (never early, never twice, never lost, late by no more than it may be) against a list.

mod absence;
mod budgets;
mod busy;
mod contract;
mod counters;
mod exact;
mod hotplug;
mod isolation;
mod lanes;
mod lock;
mod missed_wakeup;
mod policies;
mod refusals;
mod scene;
mod sentinel;
mod turns;
mod world;

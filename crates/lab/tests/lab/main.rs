//! The lab through its public interface: what it reports of fixed rounds, and its rows.

#[path = "../../../explain/tests/figures/decoder.rs"]
mod decoder;
mod fixture;
mod plots;
mod predictions;
mod reports;
mod rows;
mod traces;

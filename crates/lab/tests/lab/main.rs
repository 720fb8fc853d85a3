//! The lab through its public interface: what it reports of fixed rounds, and its rows.

mod fixture;
mod predictions;
mod reports;
mod rows;

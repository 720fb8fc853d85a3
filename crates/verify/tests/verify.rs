//! Verification through the public API: bundled recordings of real kernels, the same with a number changed,
//! each class and each kind of mismatch on a trace of a few lines, and hostile input.

#[path = "verify/altered.rs"]
mod altered;
#[path = "verify/between.rs"]
mod between;
#[path = "verify/classes.rs"]
mod classes;
#[path = "verify/hierarchy.rs"]
mod hierarchy;
#[path = "verify/hostile.rs"]
mod hostile;
#[path = "verify/mismatches.rs"]
mod mismatches;
#[path = "verify/recordings.rs"]
mod recordings;
#[path = "verify/trace.rs"]
mod trace;
#[path = "verify/tree.rs"]
mod tree;

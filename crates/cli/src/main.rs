//! The `quietcore` command.
fn main() {}

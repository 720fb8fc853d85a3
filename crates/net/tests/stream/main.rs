//! Relays of streams over real sockets: what a client and a server see, and what is asked over HTTP.
//!
//! Nothing here is timed but from below: a delay is at least what it was told.

mod interface;
mod toxics;
mod world;

//! The timers of quietcore behind the traits that other projects ask for.
//!
//! Programs use it as modules of `quietcore`, one feature each; none of them is on by default, and each
//! brings one dependency.
//!
//! | feature | gives |
//! | --- | --- |
//! | `hyper` | `hyper::HyperTimer`: timeouts and keep-alives of hyper and hyper-util |
//! | `quinn` | `quinn::QuinnRuntime`: timers of QUIC connections; sockets and tasks are tokio's |
//! | `embassy` | `embassy::EmbassyDriver`: what `embassy_time` waits with |
//!
//! All of them use the machine that is current where a timer is made, and follow its time: where that is
//! paused, so are they. tower has no trait for time: the guide from-tokio.md says what to do there. Not here:
//! what a sleep is (`quietcore-live`).

#[cfg(feature = "embassy")]
pub mod embassy;
#[cfg(feature = "hyper")]
pub mod hyper;
#[cfg(feature = "quinn")]
pub mod quinn;

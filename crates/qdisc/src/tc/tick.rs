//! Buckets in the units in which `tc` and the kernel tell each other of them: ticks of 64 ns, of which `tc`
//! knows whole microseconds.
//!
//! Source: `tc` 6.1 by behaviour: what it typed and what it shows differ by what is cut off.

use crate::Rate;
use quietcore_core::Nanos;

const TICK_NANOS: u64 = 64;

/// So many whole ticks.
pub(crate) const fn ticks(span: Nanos) -> u64 {
    span.0 / TICK_NANOS
}

/// The whole microseconds of so many ticks.
pub(crate) const fn micros(ticks: u64) -> u64 {
    ticks.saturating_mul(TICK_NANOS) / 1_000
}

/// How long `bytes` take, as `tc` tells the kernel: whole microseconds, in whole ticks.
pub(crate) const fn told(rate: Rate, bytes: u64) -> Nanos {
    let micros = rate.time_of(bytes).0 / 1_000;
    Nanos(ticks(Nanos(micros.saturating_mul(1_000))) * TICK_NANOS)
}

/// What `tc` says of a time that it told the kernel: whole microseconds, in whole ticks, and back.
pub(crate) const fn shown_time(span: Nanos) -> Nanos {
    let told = ticks(Nanos(span.0 / 1_000 * 1_000));
    Nanos(micros(told) * 1_000)
}

/// How long the kernel says that so many bytes take: it multiplies by a reciprocal of 32 bits.
pub(crate) const fn kernel_time(rate: Rate, bytes: u64) -> Nanos {
    const SECOND: u128 = 1_000_000_000;
    let rate = rate.get() as u128;
    let mut shift = 0;
    while (SECOND << shift) / rate < 1 << 31 && SECOND << shift < 1 << 63 {
        shift += 1;
    }
    let time = (bytes as u128 * ((SECOND << shift) / rate)) >> shift;
    Nanos(if time > u64::MAX as u128 { u64::MAX } else { time as u64 })
}

/// How many bytes `tc` says of a bucket that takes so long to fill.
pub(crate) fn shown_size(rate: Rate, bucket: Nanos) -> u64 {
    let micros = micros(ticks(bucket));
    rate.bytes_in(Nanos(micros.saturating_mul(1_000)))
}

//! Counters before and after a span: what a rate is made of.
//!
//! A rate is of the time that went by, which is more than the span where the host is busy, and less after
//! Ctrl-C.

use crate::error::LabError;
use crate::plan::TrialContext;
use std::time::{Duration, Instant};

/// What was read before and after, and the time between.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Observed<T> {
    pub(crate) before: T,
    pub(crate) after: T,
    pub(crate) took: Duration,
}

/// Reads, waits for `span` or until the stop flag of `context` is set, and reads again.
pub(crate) fn observe<T>(
    context: &TrialContext,
    span: Duration,
    mut read: impl FnMut() -> Result<T, LabError>,
) -> Result<Observed<T>, LabError> {
    let (before, began) = (read()?, Instant::now());
    context.wait_for(span);
    let (took, after) = (began.elapsed(), read()?);
    Ok(Observed { before, after, took })
}

#[cfg(test)]
mod tests {
    use super::observe;
    use crate::plan::TrialContext;
    use crate::sync::StopFlag;
    use quietcore_core::CpuId;
    use std::time::Duration;

    /// Goal: the time is what went by, whatever was asked for, and what was read first is `before`. Method: a
    /// span that comes to its end, and an hour that is interrupted at once.
    #[test]
    fn the_time_is_what_went_by() {
        let cpus = [0, 1].map(|number| CpuId::new(number).expect("a CPU"));
        let context = TrialContext::new(Duration::from_secs(7_200), cpus, StopFlag::default());
        let mut reads = 0;
        let mut read = || {
            reads += 1;
            Ok(reads)
        };
        let span = Duration::from_millis(20);
        let whole = observe(&context, span, &mut read).expect("it can be read");
        assert!(whole.took >= span, "{whole:?}");
        context.stop.set();
        let hour = Duration::from_secs(3_600);
        let cut = observe(&context, hour, &mut read).expect("it can be read");
        assert!(cut.took < hour, "{cut:?}");
        assert_eq!([whole.before, whole.after, cut.before, cut.after], [1, 2, 3, 4]);
    }
}

//! What must hold for any discipline, whatever it is told and given.
//!
//! - What was offered has come out, was dropped and counted, was thrown away by a reset, or is queued.
//! - A packet comes out at most once (twice if it may be duplicated), and is one that was offered.
//! - What the classes hold is all that is held, of those that hold nothing beside them.
//! - The moment of a watchdog is not past, and at that moment there is a packet or a later moment.
//!
//! Not here: what comes out when; the models in the tests of the crate know that.

mod numbers;
mod parcel;
mod queues;
mod subject;

use arbitrary::{Result, Unstructured};
use parcel::Parcel;
use quietcore_core::Nanos;
use quietcore_qdisc::{Dequeued, InnerQdisc};
use subject::Subject;

/// Steps of one run, so that an input is done in a moment.
const STEPS_MAX: usize = 600;
/// Where clocks stop, about 36 years: far above what a machine is up for.
const END: u64 = 1 << 60;

/// What happened so far.
#[derive(Debug, Default)]
struct Accounts {
    offered: u64,
    left: u64,
    left_bytes: u64,
    /// Thrown away by resets, which is not counted.
    discarded: u64,
    /// How often each came out, by name.
    seen: Vec<u8>,
}

/// Makes a discipline of `bytes`, and drives it by the rest of them.
pub fn check_operations(bytes: &[u8]) {
    // An input that ends early is a shorter run.
    let _ = run(&mut Unstructured::new(bytes));
}

fn run(u: &mut Unstructured<'_>) -> Result<()> {
    let mut now = Nanos(u.int_in_range(0..=1 << 50)?);
    let Some(mut subject) = Subject::arbitrary(now, u)? else { return Ok(()) };
    let most = if subject.duplicates() { 2 } else { 1 };
    let mut accounts = Accounts::default();
    for _ in 0..STEPS_MAX {
        if u.is_empty() {
            break;
        }
        match u.int_in_range(0..=19_u8)? {
            0..=7 => {
                let parcel = Parcel::arbitrary(accounts.seen.len(), now, u)?;
                accounts.offered += 1;
                accounts.seen.push(0);
                // As a filter would.
                let class = u.ratio(1, 4)?.then(|| numbers::class_id(u)).transpose()?;
                let _ = match class {
                    Some(class) => subject.qdisc().enqueue_filtered(now, class, parcel),
                    None => subject.qdisc().enqueue(now, parcel),
                };
            }
            8..=13 => _ = dequeue(&mut subject, now, most, &mut accounts),
            14..=15 => {
                let span = u.arbitrary::<u64>()? >> u.int_in_range(20..=63_u8)?;
                now = Nanos((now.0 + span).min(END));
            }
            16 => now = wait(&mut subject, now, most, &mut accounts),
            17..=18 => subject.change(now, u)?,
            _ => {
                accounts.discarded += subject.qdisc().statistics().qlen;
                subject.qdisc().reset(now);
                assert_eq!(subject.qdisc().statistics().qlen, 0, "{subject:?}");
            }
        }
        check_accounts(&mut subject, &accounts, most);
    }
    Ok(())
}

/// Takes what there is; the watchdog's moment if there is one.
fn dequeue(subject: &mut Subject, now: Nanos, most: u8, accounts: &mut Accounts) -> Option<Nanos> {
    let before = subject.qdisc().statistics();
    let head = subject.qdisc().head();
    match subject.qdisc().dequeue(now) {
        Dequeued::Packet(parcel) => {
            let bytes = quietcore_qdisc::Packet::len(&parcel);
            assert!(head.is_none_or(|head| head == bytes), "{head:?} was to come first, not {bytes}");
            let seen = accounts.seen.get_mut(parcel.name).expect("it was offered");
            *seen += 1;
            assert!(*seen <= most, "{parcel:?} came out {seen} times of {subject:?}");
            accounts.left += 1;
            accounts.left_bytes += u64::from(bytes);
            None
        }
        Dequeued::Throttled(until) => {
            assert!(until > now, "at {now:?} throttled until {until:?}: {subject:?}");
            assert!(
                subject.qdisc().statistics().qlen > 0,
                "{before:?}, throttled until {until:?}: {subject:?}"
            );
            Some(until)
        }
        Dequeued::Empty => {
            assert_eq!(subject.qdisc().statistics().qlen, 0, "{before:?}, and empty at {now:?}: {subject:?}");
            None
        }
    }
}

/// Lets time pass to the moments of the watchdog until a packet comes, as a device does; gives up where
/// clocks end, or after many moments.
fn wait(subject: &mut Subject, mut now: Nanos, most: u8, accounts: &mut Accounts) -> Nanos {
    for _ in 0..20 {
        match dequeue(subject, now, most, accounts) {
            Some(until) if until.0 < END => now = until,
            _ => break,
        }
    }
    now
}

fn check_accounts(subject: &mut Subject, accounts: &Accounts, most: u8) {
    let counted = subject.qdisc().statistics();
    assert_eq!(
        (counted.sent_packets, counted.sent_bytes),
        (accounts.left, accounts.left_bytes),
        "{subject:?}"
    );
    let known = accounts.left + counted.dropped + counted.qlen + accounts.discarded;
    let fits = if most == 1 {
        known == accounts.offered
    } else {
        (accounts.offered..=2 * accounts.offered).contains(&known)
    };
    assert!(fits, "{accounts:?} and {counted:?} of {subject:?}");
    assert!(counted.qlen > 0 || counted.backlog == 0, "{counted:?} of {subject:?}");
    assert_eq!(subject.qdisc().is_empty(), counted.qlen == 0, "{counted:?} of {subject:?}");
    if subject.holds_by_class() {
        let queue = subject.qdisc();
        let held =
            queue.slots().into_iter().filter_map(|class| queue.inner(class)).map(InnerQdisc::statistics);
        let held = held.fold((0, 0), |(packets, bytes), held| (packets + held.qlen, bytes + held.backlog));
        assert_eq!(held, (counted.qlen, counted.backlog), "{subject:?}");
    }
}

#[cfg(test)]
mod tests {
    use super::check_operations;
    use super::numbers::numbers;

    /// Goal: the checks accept every discipline. Method: many inputs of bytes from a fixed generator.
    #[test]
    fn the_checks_accept_random_operations() {
        let runs = std::env::var("QC_FUZZ_RUNS").ok().and_then(|runs| runs.parse().ok()).unwrap_or(2_000_u64);
        let mut failed = Vec::new();
        for seed in 1..=runs {
            let mut random = numbers(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
            let bytes: Vec<u8> = (0..2_500).map(|_| random() as u8).collect();
            let outcome = std::panic::catch_unwind(|| check_operations(&bytes));
            failed.extend(outcome.is_err().then_some(seed));
        }
        assert!(failed.is_empty(), "seeds {failed:?} of {runs}");
    }
}

//! The rule for exact timers: exhaustive over a small machine, and random.

use crate::machines::{cpu, machine, set};
use proptest::prelude::*;
use quietcore_core::place::{
    Arming, Caller, ExactMode, ExactOrigin, ExactPolicy, ExactStart, Housekeeping, Isolation, exact_target,
    push_target,
};
use quietcore_core::{CpuId, Nanos};

const CPUS: usize = 3;
const MOMENTS: u64 = 3;

fn starts() -> impl Iterator<Item = ExactStart> {
    let cpus = || (0..CPUS).map(cpu);
    let queued = cpus().flat_map(|cpu| [true, false].map(|first| ExactOrigin::Queued { cpu, first }));
    let origins: Vec<ExactOrigin> = [ExactOrigin::Inactive]
        .into_iter()
        .chain(queued)
        .chain(cpus().map(|cpu| ExactOrigin::Running { cpu }))
        .collect();
    let callers = [Caller::Online, Caller::Offline { stand_in: cpu(2) }];
    let modes = [ExactMode::Pinned, ExactMode::Floating];
    cpus().flat_map(move |own| {
        let origins = origins.clone();
        callers.into_iter().flat_map(move |caller| {
            let origins = origins.clone();
            modes.into_iter().flat_map(move |mode| {
                origins.clone().into_iter().flat_map(move |origin| {
                    (0..MOMENTS).map(move |at| ExactStart {
                        cpu: own,
                        caller,
                        mode,
                        expires: Nanos(at),
                        origin,
                    })
                })
            })
        })
    })
}

/// The invariants of the module, for one start and its outcome.
fn check(policy: ExactPolicy, start: &ExactStart, first: [Option<Nanos>; CPUS], target: CpuId) {
    let told = format!("{policy:?}, {start:?}, first events {first:?}: queued on CPU {target}");
    if let ExactOrigin::Running { cpu } = start.origin {
        assert_eq!(target, cpu, "a running callback's timer moved: {told}");
        return;
    }
    if let Caller::Offline { stand_in } = start.caller {
        assert_eq!(target, stand_in, "an offline CPU kept its timer: {told}");
        return;
    }
    if target != start.cpu {
        assert_eq!(policy, ExactPolicy::Kernel, "pushed: {told}");
        assert_eq!(start.mode, ExactMode::Floating, "a pinned timer moved: {told}");
        assert!(start.origin != ExactOrigin::Queued { cpu: start.cpu, first: true }, "device twice: {told}");
        let earlier = first[target.index()].is_none_or(|first| start.expires < first);
        assert!(!earlier, "became a remote CPU's first event: {told}");
    }
}

/// Goal: the invariants hold at every start there is on three CPUs, and every outcome is reached. Method:
/// all starts, push targets and first events with three moments.
#[test]
fn every_start_on_three_cpus() {
    let events = [None, Some(Nanos(0)), Some(Nanos(1)), Some(Nanos(2))];
    let (mut stayed, mut pushed, mut refused) = (0, 0, 0);
    for start in starts() {
        for (policy, push) in
            ExactPolicy::ALL.into_iter().flat_map(|one| (0..CPUS).map(move |to| (one, cpu(to))))
        {
            for event in events {
                let first = [event; CPUS];
                let mut looked = false;
                let look = |at: CpuId| {
                    looked = true;
                    first[at.index()]
                };
                let target = exact_target(policy, &start, || push, look);
                check(policy, &start, first, target);
                match (looked, target == start.cpu) {
                    (true, true) => refused += 1,
                    (true, false) => pushed += 1,
                    (false, _) => stayed += 1,
                }
            }
        }
    }
    assert!(stayed > 0 && pushed > 0 && refused > 0, "stayed {stayed}, pushed {pushed}, refused {refused}");
}

proptest! {
    /// Goal: with the real push, H2 of the kernel notes: an unpinned timer never becomes the first event of
    /// a remote CPU, and is pushed whenever that is allowed. Method: random first events.
    #[test]
    fn never_a_remote_cpus_first_event(
        machine in machine(),
        busy in set(80),
        firsts in prop::collection::vec(prop::option::of(0_u64..50), 80),
        expires in 0_u64..50,
    ) {
        let masks = Housekeeping::new(machine.possible(), &Isolation::default()).expect("nobody is isolated");
        for own in machine.possible().iter() {
            let arming = Arming { cpu: own, is_idle: !busy.contains(own) };
            let wanted = push_target(arming, &masks, machine.domains(own), |other| !busy.contains(other));
            let start = ExactStart {
                cpu: own,
                caller: Caller::Online,
                mode: ExactMode::Floating,
                expires: Nanos(expires),
                origin: ExactOrigin::Inactive,
            };
            let first = |at: CpuId| firsts[at.index()].map(Nanos);
            let target = exact_target(ExactPolicy::Kernel, &start, || wanted, first);
            let allowed = wanted == own || first(wanted).is_some_and(|first| first <= Nanos(expires));
            prop_assert_eq!(target, if allowed { wanted } else { own }, "CPU {}", own);
        }
    }
}

//! The names of rules on command lines and in reports.

use quietcore_core::place::{ExactPolicy, Exclusion, Policy};
use quietcore_core::realtime::Awareness;
use quietcore_core::softirq::TimerRaise;

/// Goal: a rule that is asked for by name is the one that is played, and the one that a report names.
/// Method: every rule beside its name, written down.
#[test]
fn each_rule_has_its_own_name() {
    assert_eq!(Policy::ALL.map(Policy::name), ["pull", "push", "stay"]);
    assert_eq!(ExactPolicy::ALL.map(ExactPolicy::name), ["kernel", "pull"]);
    assert_eq!(Exclusion::ALL.map(Exclusion::name), ["off", "v2", "merged"]);
    assert_eq!(Awareness::ALL.map(Awareness::name), ["none", "place", "defer", "both"]);
    assert_eq!(TimerRaise::ALL.map(TimerRaise::name), ["unconditional", "bitmap", "next_expiry"]);
}

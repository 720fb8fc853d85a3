//! How much any class sends in any window.

use crate::busy::{Departure, class, keep_busy};
use crate::common::{Parcel, id, rate};
use proptest::prelude::*;
use quietcore_core::Nanos;
use quietcore_qdisc::{ClassId, Htb, HtbClass, HtbSettings, Rate};

/// What a class may send in any window, above `rate * window`.
#[derive(Clone, Copy, Debug)]
struct Bound {
    rate: Rate,
    slack: u64,
}

/// Checks all windows that begin and end with a departure, both ends included.
fn check(departures: &[Departure], bound: Bound, what: &str) {
    // Bytes above what the rate gives since the first departure, at the least since: a window that begins
    // there is the worst that ends here.
    for (from, first) in departures.iter().enumerate() {
        let mut bytes = 0;
        for last in &departures[from..] {
            bytes += u64::from(last.bytes);
            let window = last.at.since(first.at);
            // A byte for what is rounded down.
            let most = bound.slack + bound.rate.bytes_in(window) + 1;
            assert!(bytes <= most, "{what}: {bytes} bytes in {window} from {:?}, at most {most}", first.at);
        }
    }
}

fn only(departures: &[Departure], wanted: impl Fn(ClassId) -> bool) -> Vec<Departure> {
    departures.iter().filter(|departure| wanted(departure.class)).copied().collect()
}

const ROOT: u16 = 1;

/// A root, two classes below it with two leaves each; `shares` of 1,000,000 bytes per second, in thousandths
/// below 250, so that they fit.
fn tree(shares: [u64; 4], bursts: [u64; 4], times: u64) -> (Htb<Parcel>, [HtbClass; 4]) {
    let mut htb = Htb::new(HtbSettings::default());
    htb.add_class(None, id(ROOT), class(1_000_000, 1_000_000)).expect("new");
    for half in [2, 3] {
        htb.add_class(Some(id(ROOT)), id(half), class(500_000, 1_000_000)).expect("new");
    }
    let leaves = core::array::from_fn(|leaf| {
        let own = shares[leaf] * 1_000;
        let told = HtbClass {
            ceil: rate((own * times).min(1_000_000)),
            burst: Some(bursts[leaf]),
            cburst: Some(bursts[3 - leaf]),
            prio: leaf as u8 % 2,
            ..HtbClass::new(rate(own))
        };
        htb.add_class(Some(id(2 + leaf as u16 / 2)), id(leaf_name(leaf)), told).expect("new");
        told
    });
    (htb, leaves)
}

fn leaf_name(leaf: usize) -> u16 {
    10 + leaf as u16
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 2 } else { 60 }))]

    /// Goal: no leaf exceeds its ceil in any window, nor the root its own where its leaves' rates fit into
    /// it. Method: leaves that come and go, every window of what left.
    #[test]
    fn nobody_exceeds_its_ceil(
        shares in prop::array::uniform4(5..250_u64),
        bursts in prop::array::uniform4(0..10_000_u64),
        times in 1..6_u64,
        phases in prop::collection::vec((0..16_u8, 0..60_000_000_u64, 60..1_600_u32), 1..6),
    ) {
        let (mut htb, leaves) = tree(shares, bursts, times);
        let (mut departures, mut now) = (vec![], Nanos(0));
        for (mask, span, bytes) in phases {
            let busy: Vec<_> = (0..4)
                .filter(|leaf| mask & (1 << leaf) != 0)
                .map(|leaf| (id(leaf_name(leaf)), bytes))
                .collect();
            let end = Nanos(now.0 + span);
            if !busy.is_empty() {
                departures.extend(keep_busy(&mut htb, &busy, now, end));
            }
            now = departures.last().map_or(end, |last: &Departure| end.max(last.at));
        }
        let longest = 1_600;
        for (leaf, told) in leaves.iter().enumerate() {
            let name = id(leaf_name(leaf));
            let bound = Bound { rate: told.ceil, slack: told.cburst_bytes() + longest };
            check(&only(&departures, |class| class == name), bound, &format!("leaf {name}"));
        }
        // Every class below may be as far above its rate as its burst, and end with a packet.
        let below = bursts.iter().sum::<u64>() + 2 * 1_600 + 6 * longest;
        let bound = Bound { rate: rate(1_000_000), slack: 1_600 + longest + below };
        check(&departures, bound, "root");
    }
}

/// Goal: a root that lends everything keeps its ceil to a packet per class. Method: leaves with next to no
/// rate and no burst of their own, always busy.
#[test]
fn a_root_that_lends_keeps_its_ceil() {
    let mut htb = Htb::new(HtbSettings::default());
    htb.add_class(None, id(ROOT), class(1_000_000, 1_000_000)).expect("new");
    let mut busy = vec![];
    for leaf in 10..14 {
        let told = HtbClass { burst: Some(0), cburst: Some(5_000), ..class(1_000, 1_000_000) };
        htb.add_class(Some(id(ROOT)), id(leaf), told).expect("new");
        busy.push((id(leaf), 1_000 + 50 * u32::from(leaf - 10)));
    }
    let departures = keep_busy(&mut htb, &busy, Nanos(0), Nanos(300_000_000));
    // The four may each send a packet on their own, and owe it for more than the test takes.
    let slack = 1_600 + 5 * 1_150;
    check(&departures, Bound { rate: rate(1_000_000), slack }, "root");
    let sent: u64 = departures.iter().map(|departure| u64::from(departure.bytes)).sum();
    assert!((300_000..300_000 + slack).contains(&sent), "the link is used: {sent} bytes in 300 ms");
}

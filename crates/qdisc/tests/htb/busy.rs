//! A queue that is watched while it is kept busy.

use crate::common::{Parcel, rate};
use quietcore_core::Nanos;
use quietcore_qdisc::{ClassId, Dequeued, Htb, HtbClass, Qdisc};

/// A class of `bytes` per second that may have `ceil`.
pub(crate) fn class(bytes: u64, ceil: u64) -> HtbClass {
    HtbClass { ceil: rate(ceil), ..HtbClass::new(rate(bytes)) }
}

/// One packet that left.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Departure {
    pub(crate) at: Nanos,
    pub(crate) class: ClassId,
    pub(crate) bytes: u32,
}

/// Drives `htb` from `from` until `until` with a timer that is never late, keeping two packets of `bytes`
/// in each class of `busy`.
pub(crate) fn keep_busy(
    htb: &mut Htb<Parcel>,
    busy: &[(ClassId, u32)],
    from: Nanos,
    until: Nanos,
) -> Vec<Departure> {
    let mut now = from;
    let mut departures = vec![];
    while now < until {
        for &(class, bytes) in busy {
            while htb.class(class).expect("a busy class exists").queue.qlen < 2 {
                let parcel = Parcel { number: 0, class, bytes };
                assert!(htb.enqueue(now, parcel).is_accepted(), "{class} has room");
            }
        }
        match htb.dequeue(now) {
            Dequeued::Packet(parcel) => {
                departures.push(Departure { at: now, class: parcel.class, bytes: parcel.bytes });
            }
            Dequeued::Throttled(moment) => {
                assert!(moment > now, "throttled at {now:?} until {moment:?}: a busy loop");
                now = moment;
            }
            Dequeued::Empty => panic!("packets are queued"),
        }
    }
    departures
}

/// Bytes of `class` among `departures`.
pub(crate) fn bytes_of(departures: &[Departure], class: ClassId) -> u64 {
    departures.iter().filter(|departure| departure.class == class).map(|one| u64::from(one.bytes)).sum()
}

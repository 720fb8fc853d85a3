//! `std`: `BTreeMap` from expiry and order of arming to timer, the exact structure everyone has at hand.

use crate::peers::peer::{Answer, Peer};
use std::collections::BTreeMap;

/// Adapter of `std::collections::BTreeMap`.
#[derive(Debug)]
pub struct OrderedMap {
    map: BTreeMap<(u64, u64), u32>,
    armed: u64,
}

impl Peer for OrderedMap {
    const NAME: &'static str = "std BTreeMap";
    const NOTE: &'static str = "key: expiry and a running number; re-arm is remove and insert";
    const ANSWER: Answer = Answer::Exact;

    type When = u64;
    type Now = u64;
    /// The key.
    type Handle = (u64, u64);

    fn new(_capacity: usize) -> Self {
        Self { map: BTreeMap::new(), armed: 0 }
    }

    fn when(&self, now: u64, delay: u64) -> u64 {
        now + delay
    }

    fn now(&self, tick: u64) -> u64 {
        tick
    }

    fn tick(&self, now: u64) -> u64 {
        now
    }

    #[inline]
    fn arm(&mut self, id: u32, when: u64) -> (u64, u64) {
        self.armed += 1;
        self.map.insert((when, self.armed), id);
        (when, self.armed)
    }

    #[inline]
    fn cancel(&mut self, _id: u32, handle: &mut (u64, u64)) -> bool {
        self.map.remove(handle).is_some()
    }

    #[inline]
    fn advance(&mut self, now: u64, expired: &mut Vec<u32>) {
        while let Some(first) = self.map.first_entry()
            && first.key().0 <= now
        {
            expired.push(first.remove());
        }
    }

    #[inline]
    fn next_expiry(&mut self) -> Option<u64> {
        self.map.first_key_value().map(|(&(expires, _), _)| expires)
    }

    fn pending(&self) -> usize {
        self.map.len()
    }
}

//! Packets by the moment at which they may leave; at the same moment in the order in which they came.
//!
//! Most come in order: those are a list, and only what overtakes is in a tree. Source: Linux
//! net/sched/sch_netem.c (`tfifo`), by behaviour.

use alloc::collections::{BTreeMap, VecDeque};
use quietcore_core::Nanos;

/// When, and the how many-th.
type DueKey = (Nanos, u64);

#[derive(Debug)]
pub(super) struct TimeQueue<P> {
    /// Keys do not fall.
    list: VecDeque<(DueKey, P)>,
    tree: BTreeMap<DueKey, P>,
    arrived: u64,
}

impl<P> TimeQueue<P> {
    pub(super) const fn new() -> Self {
        Self { list: VecDeque::new(), tree: BTreeMap::new(), arrived: 0 }
    }

    pub(super) fn len(&self) -> usize {
        self.list.len() + self.tree.len()
    }

    pub(super) fn clear(&mut self) {
        self.list.clear();
        self.tree.clear();
    }

    pub(super) fn push(&mut self, at: Nanos, packet: P) {
        let key = (at, self.arrived);
        self.arrived += 1;
        if self.list.back().is_none_or(|(last, _)| *last < key) {
            self.list.push_back((key, packet));
        } else {
            self.tree.insert(key, packet);
        }
    }

    /// When the first may leave.
    pub(super) fn first(&self) -> Option<Nanos> {
        let list = self.list.front().map(|(key, _)| *key);
        let tree = self.tree.first_key_value().map(|(key, _)| *key);
        list.into_iter().chain(tree).min().map(|key| key.0)
    }

    /// When the last may leave.
    pub(super) fn last(&self) -> Option<Nanos> {
        let list = self.list.back().map(|(key, _)| key.0);
        let tree = self.tree.last_key_value().map(|(key, _)| key.0);
        list.into_iter().chain(tree).max()
    }

    pub(super) fn pop(&mut self) -> Option<P> {
        let list = self.list.front().map(|(key, _)| *key);
        let tree = self.tree.first_key_value().map(|(key, _)| *key);
        match (list, tree) {
            (Some(list), Some(tree)) if tree < list => self.tree.pop_first().map(|(_, packet)| packet),
            (None, Some(_)) => self.tree.pop_first().map(|(_, packet)| packet),
            _ => self.list.pop_front().map(|(_, packet)| packet),
        }
    }
}

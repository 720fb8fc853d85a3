//! Looking at what is pending, without changing it.

use super::Wheel;
use crate::node::WheelNodes;

impl<N: WheelNodes, const LEVELS: usize, const BUCKETS: usize> Wheel<N, LEVELS, BUCKETS> {
    /// Calls `each` with every pending timer: those that were collected first, then level by level, in no
    /// order that means anything. For debugging and counts. Cost: a step per timer, and one per level.
    pub fn for_each_pending(&self, mut each: impl FnMut(N::Ref)) {
        self.walk(self.expired.first, &mut each);
        for (buckets, &occupied) in self.buckets.iter().zip(&self.occupied) {
            let mut left = occupied;
            while left != 0 {
                self.walk(buckets[left.trailing_zeros() as usize].first, &mut each);
                left &= left - 1;
            }
        }
    }

    fn walk(&self, first: Option<N::Ref>, each: &mut impl FnMut(N::Ref)) {
        let mut next = first;
        while let Some(node) = next {
            next = self.nodes.links(node).next.get();
            each(node);
        }
    }
}

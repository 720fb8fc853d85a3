//! Deficit round robin as its paper has it (Shreedhar and Varghese, SIGCOMM 1995, section 3.2): a class gets
//! its quantum when its turn begins, sends while that lasts, and loses what is left when it has no packets.

use super::Parcel;
use std::collections::VecDeque;

#[derive(Default)]
pub(crate) struct Sharer {
    pub(crate) quantum: u64,
    pub(crate) packets: VecDeque<Parcel>,
    deficit: u64,
}

/// Sharers by number.
#[derive(Default)]
pub(crate) struct PaperRound {
    pub(crate) sharers: Vec<Sharer>,
    active: VecDeque<usize>,
    /// The first of them has begun its turn.
    has_begun: bool,
}

impl PaperRound {
    pub(crate) fn arrive(&mut self, sharer: usize, packet: Parcel) {
        self.sharers[sharer].packets.push_back(packet);
        self.look(sharer);
    }

    /// Notices a sharer whose packets are others than they were.
    pub(crate) fn look(&mut self, sharer: usize) {
        let is_empty = self.sharers[sharer].packets.is_empty();
        let place = self.active.iter().position(|other| *other == sharer);
        match (is_empty, place) {
            (false, None) => self.active.push_back(sharer),
            (true, Some(place)) => {
                self.active.remove(place);
                self.has_begun &= place > 0;
                self.sharers[sharer].deficit = 0;
            }
            _ => {}
        }
    }

    pub(crate) fn is_active(&self, sharer: usize) -> bool {
        self.active.contains(&sharer)
    }

    pub(crate) fn leave(&mut self) -> Option<Parcel> {
        loop {
            let first = *self.active.front()?;
            let sharer = &mut self.sharers[first];
            if !self.has_begun {
                sharer.deficit += sharer.quantum;
                self.has_begun = true;
            }
            let bytes = u64::from(sharer.packets.front().expect("it is active").bytes);
            if bytes <= sharer.deficit {
                sharer.deficit -= bytes;
                let packet = sharer.packets.pop_front();
                self.look(first);
                return packet;
            }
            self.active.rotate_left(1);
            self.has_begun = false;
        }
    }
}

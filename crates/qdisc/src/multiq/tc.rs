//! `multiq` in `tc`: it has no options; what is shown.
//!
//! Source: tc-multiq(8), and `tc` by behaviour. 6.1 prints `{bands 4/4 }` with `-j`, which is no JSON; here
//! both numbers are members, as newer ones have them.

use super::Multiq;
use crate::Packet;
use crate::classful::TcDescription;
use crate::kind::{QdiscContext, QdiscKind};
use crate::refusal::TcRefusal;
use crate::tc::TcProperties;
use crate::tc::table::{Complete, options};
use core::fmt::Debug;
use core::num::NonZeroU16;

options! {
    /// What was typed behind `multiq`: nothing.
    pub struct MultiqOptions of "multiq" {}
}

impl Complete for MultiqOptions {}

impl<P: Packet + Debug + Send> QdiscKind<P> for MultiqOptions {
    type Made = Multiq<P>;

    fn make(&self, context: &QdiscContext) -> Result<Multiq<P>, TcRefusal> {
        match NonZeroU16::new(context.queues).filter(|queues| queues.get() > 1) {
            Some(queues) => Ok(Multiq::new(context.handle, queues)),
            None => {
                let what = "Operation not supported: multiq on a device of one transmit queue".into();
                Err(TcRefusal::NotPossible {
                    what,
                    remedy: "use another kind, or a device of several queues",
                })
            }
        }
    }

    /// There is nothing to change: a device has as many queues as before.
    fn change(self, _: &mut Multiq<P>, _: &Self, _: &QdiscContext) -> Result<Self, TcRefusal> {
        Ok(self)
    }

    fn describe(&self, queue: &Multiq<P>) -> TcDescription {
        let mut options = TcProperties::default();
        options.add("bands", "bands {}", queue.bands() as u64);
        options.add("max_bands", "/{} ", queue.bands() as u64);
        TcDescription { options, ..TcDescription::default() }
    }
}

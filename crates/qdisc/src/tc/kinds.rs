//! All kinds of disciplines, and of classes, by name: the list that a new kind is added to.

use super::clsact::{ClsactOptions, IngressOptions};
use super::error::{TcError, TcProblem};
use super::mq::MqOptions;
use super::table::{Demand, OptionTable, take};
use super::words::LineWords;
use crate::cake::tc::CakeOptions;
use crate::cbq::tc::{CbqClassOptions, CbqOptions};
use crate::classful::{Classful, TcDescription};
use crate::codel::tc::CodelOptions;
use crate::drr::tc::{DrrClassOptions, DrrOptions};
use crate::ets::tc::{EtsClassOptions, EtsOptions};
use crate::fifo::tc::{BfifoOptions, PfifoOptions};
use crate::fq::tc::FqOptions;
use crate::fq_codel::tc::FqCodelOptions;
use crate::hfsc::tc::{HfscClassOptions, HfscOptions};
use crate::htb::tc::{HtbClassOptions, HtbOptions};
use crate::kind::{ClassKind, QdiscContext, QdiscKind, SeedUse, known, known_mut};
use crate::multiq::tc::MultiqOptions;
use crate::netem::options::NetemOptions;
use crate::noqueue::tc::NoqueueOptions;
use crate::pfifo_fast::tc::PfifoFastOptions;
use crate::prio::tc::PrioOptions;
use crate::red::tc::RedOptions;
use crate::refusal::TcRefusal;
use crate::sfq::tc::SfqOptions;
use crate::tbf::tc::TbfOptions;
use crate::{ClassId, Packet};
use alloc::boxed::Box;
use core::fmt::{self, Debug, Formatter};
use quietcore_core::Nanos;

kinds! {
    qdiscs {
        /// First in, first out, counted in packets.
        Pfifo(PfifoOptions),
        /// First in, first out, counted in bytes.
        Bfifo(BfifoOptions),
        /// One discipline per queue of the device.
        Mq(MqOptions),
        /// An emulated network.
        Netem(NetemOptions),
        /// A token bucket.
        Tbf(TbfOptions),
        /// Fair queueing, paced.
        Fq(FqOptions),
        /// A hierarchy of token buckets.
        Htb(HtbOptions),
        /// Fair service curves in a hierarchy.
        Hfsc(HfscOptions),
        /// Classes by estimated idle time.
        Cbq(CbqOptions),
        /// Strict priorities.
        Prio(PrioOptions),
        /// One queue with controlled delay.
        Codel(CodelOptions),
        /// Fair queues with controlled delay.
        FqCodel(FqCodelOptions),
        /// A shaper with fair queues, controlled delay and priorities.
        Cake(CakeOptions),
        /// Flows that are spread over buckets.
        Sfq(SfqOptions),
        /// Random early detection.
        Red(RedOptions),
        /// Three bands by priority.
        PfifoFast(PfifoFastOptions),
        /// Nothing between sender and device.
        Noqueue(NoqueueOptions),
        /// A band per queue of the device, in turns.
        Multiq(MultiqOptions),
        /// Classes by deficit round robin.
        Drr(DrrOptions),
        /// Strict bands, and bands that share.
        Ets(EtsOptions),
        /// Filters of packets that come in.
        Ingress(IngressOptions),
        /// Filters of packets that come in, and of those that are sent.
        Clsact(ClsactOptions),
    }
    classes {
        /// Of a hierarchy of token buckets.
        Htb(HtbClassOptions),
        /// Of fair service curves.
        Hfsc(HfscClassOptions),
        /// By estimated idle time.
        Cbq(CbqClassOptions),
        /// By deficit round robin.
        Drr(DrrClassOptions),
        /// A band of enhanced transmission selection.
        Ets(EtsClassOptions),
    }
}

macro_rules! kinds {
    (
        qdiscs { $($(#[$about:meta])* $name:ident($options:ty),)* }
        classes { $($(#[$class_about:meta])* $class:ident($class_options:ty),)* }
    ) => {
        /// A kind of discipline, and what was typed behind it.
        #[derive(Clone, Debug, PartialEq, Eq)]
        #[non_exhaustive]
        pub enum QdiscOptions {
            $($(#[$about])* $name(Box<$options>),)*
        }

        /// The names of all kinds.
        pub(super) const QDISC_KINDS: &[&str] = &[$(<$options>::KIND),*];
        /// The kinds whose classes a line can add.
        pub(super) const CLASS_KINDS: &[&str] = &[$(<$class_options>::KIND),*];

        impl QdiscOptions {
            /// Takes what stands behind `kind`, if that is one.
            pub(super) fn take(
                kind: &str,
                words: &mut LineWords<'_>,
                demand: Demand,
            ) -> Option<Result<Self, TcError>> {
                $(if kind == <$options>::KIND {
                    return Some(take(words, demand).map(|options| Self::$name(Box::new(options))));
                })*
                None
            }

            /// The name of its kind.
            #[must_use]
            pub const fn kind(&self) -> &'static str {
                match self {
                    $(Self::$name(_) => <$options>::KIND,)*
                }
            }

            /// A discipline that is told this.
            ///
            /// # Errors
            /// [`TcRefusal`], where options do not go together, or where a device makes it (`mq`).
            pub fn make<P: Packet + Debug + Send>(
                &self,
                context: &QdiscContext,
            ) -> Result<Box<dyn Classful<P>>, TcRefusal> {
                match self {
                    $(Self::$name(options) => Ok(Box::new(options.make(context)?)),)*
                }
            }

            /// Tells a discipline, which was told `before`, this; what it holds stays. Gives what it has
            /// been told in all then.
            ///
            /// # Errors
            /// [`TcRefusal`], where it cannot be so, or is of another kind.
            pub fn change<P: Packet + Debug + Send>(
                self,
                before: &Self,
                queue: &mut dyn Classful<P>,
                context: &QdiscContext,
            ) -> Result<Self, TcRefusal> {
                match (self, before) {
                    $((Self::$name(options), Self::$name(before)) => {
                        let queue = known_mut(queue, <$options>::KIND)?;
                        Ok(Self::$name(Box::new((*options).change(queue, before, context)?)))
                    })*
                    (options, before) => {
                        Err(TcRefusal::OtherKind { found: before.kind(), named: options.kind() })
                    }
                }
            }

            /// What `tc` shows of a discipline that was told this; nothing of one of another kind.
            #[must_use]
            pub fn describe<P: Packet + Debug + Send>(&self, queue: &dyn Classful<P>) -> TcDescription {
                match self {
                    $(Self::$name(options) => {
                        known(queue).map_or_else(TcDescription::default, |queue| options.describe(queue))
                    })*
                }
            }

            /// Where its random numbers come from.
            #[must_use]
            pub fn seed(&self) -> SeedUse {
                match self {
                    Self::Netem(netem) => netem.seed.map_or(SeedUse::Drawn, SeedUse::Named),
                    Self::Cake(_) | Self::Sfq(_) | Self::Red(_) => SeedUse::Drawn,
                    _ => SeedUse::None,
                }
            }
        }

        /// Its kind, and what was typed behind it.
        impl fmt::Display for QdiscOptions {
            fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
                match self {
                    $(Self::$name(options) => fmt::Display::fmt(&**options, out),)*
                }
            }
        }

        /// A kind of class, and what was typed behind it.
        #[derive(Clone, Debug, PartialEq, Eq)]
        #[non_exhaustive]
        pub enum ClassOptions {
            $($(#[$class_about])* $class(Box<$class_options>),)*
        }

        impl ClassOptions {
            /// Takes what stands behind `kind`, if lines can add classes to that.
            pub(super) fn take(
                kind: &str,
                words: &mut LineWords<'_>,
                demand: Demand,
            ) -> Option<Result<Self, TcError>> {
                $(if kind == <$class_options>::KIND {
                    return Some(take(words, demand).map(|options| Self::$class(Box::new(options))));
                })*
                QDISC_KINDS.contains(&kind).then(|| {
                    Err(words.here(TcProblem::NotSupported("it has no classes"), CLASS_KINDS))
                })
            }

            /// The name of its kind.
            #[must_use]
            pub const fn kind(&self) -> &'static str {
                match self {
                    $(Self::$class(_) => <$class_options>::KIND,)*
                }
            }

            /// Whether lines can add classes to disciplines of a kind.
            #[must_use]
            pub fn has_kind(kind: &str) -> bool {
                CLASS_KINDS.contains(&kind)
            }

            /// Adds a class that is told this below `parent`, or below none.
            ///
            /// # Errors
            /// [`TcRefusal`], where it cannot be so, or the discipline is of another kind.
            pub fn add<P: Packet + Debug + Send>(
                &self,
                queue: &mut dyn Classful<P>,
                parent: Option<ClassId>,
                id: ClassId,
            ) -> Result<(), TcRefusal> {
                match self {
                    $(Self::$class(options) => {
                        options.add(known_mut(queue, <$class_options>::KIND)?, parent, id)
                    })*
                }
            }

            /// Tells a class, which was told `before`, this; gives what it has been told in all then.
            ///
            /// # Errors
            /// [`TcRefusal`], where it cannot be so, or is of another kind.
            pub fn change<P: Packet + Debug + Send>(
                self,
                before: &Self,
                queue: &mut dyn Classful<P>,
                id: ClassId,
                now: Nanos,
            ) -> Result<Self, TcRefusal> {
                match (self, before) {
                    $((Self::$class(options), Self::$class(before)) => {
                        let queue = known_mut(queue, <$class_options>::KIND)?;
                        Ok(Self::$class(Box::new((*options).change(queue, id, before, now)?)))
                    })*
                    (options, before) => {
                        Err(TcRefusal::OtherKind { found: before.kind(), named: options.kind() })
                    }
                }
            }

            /// What `tc` shows of a class that was told this; nothing of one of another kind.
            #[must_use]
            pub fn describe<P: Packet + Debug + Send>(
                &self,
                queue: &dyn Classful<P>,
                id: ClassId,
            ) -> TcDescription {
                match self {
                    $(Self::$class(options) => {
                        let queue = known(queue);
                        queue.map_or_else(TcDescription::default, |queue| options.describe(queue, id))
                    })*
                }
            }
        }

        /// Its kind, and what was typed behind it.
        impl fmt::Display for ClassOptions {
            fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
                match self {
                    $(Self::$class(options) => fmt::Display::fmt(&**options, out),)*
                }
            }
        }
    };
}

use kinds;

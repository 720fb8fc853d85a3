//! `codel` in `tc`: the options, their defaults, what is shown.
//!
//! Source: tc-codel(8), and `tc` by behaviour. Like there, a `limit`, `target` or `interval` of 0 says
//! nothing, and what is not typed in a change stays.

use super::control::CodelTime;
use super::{Codel, CodelLaw, CodelSettings, CodelStatistics};
use crate::Packet;
use crate::classful::{Classful, TcDescription};
use crate::kind::{QdiscContext, QdiscKind};
use crate::refusal::TcRefusal;
use crate::tc::table::{Complete, options, switch};
use crate::tc::text::time_text;
use crate::tc::{TcJson, TcProperties, TcValue};
use core::fmt::Debug;
use quietcore_core::Nanos;

options! {
    /// What was typed behind `codel`.
    pub struct CodelOptions of "codel" {
        /// Packets that it holds at most.
        limit: u32 = "limit",
        /// The delay that is fine.
        target: Nanos = "target",
        /// How long no delay was fine when it begins to drop.
        interval: Nanos = "interval",
        /// Whether it marks instead.
        ecn: CodelEcn = "ecn" | "noecn",
        /// From which delay on packets are marked.
        ce_threshold: Nanos = "ce_threshold",
    }
}

impl Complete for CodelOptions {}

switch! {
    /// Whether CoDel marks packets that it would drop.
    pub enum CodelEcn {
        /// `ecn`.
        On = "ecn",
        /// `noecn`.
        Off = "noecn",
    }
}

/// What of the law was typed, behind `codel` or `fq_codel`.
pub(crate) struct TypedLaw {
    pub(crate) target: Option<Nanos>,
    pub(crate) interval: Option<Nanos>,
    pub(crate) ecn: Option<CodelEcn>,
    pub(crate) ce_threshold: Option<Nanos>,
}

impl TypedLaw {
    /// The law, which was `before` for what was not typed.
    pub(crate) fn told(&self, before: CodelLaw) -> CodelLaw {
        let positive = |span: Option<Nanos>| span.map(whole_micros).filter(|span| span.0 > 0);
        CodelLaw {
            target: positive(self.target).unwrap_or(before.target),
            interval: positive(self.interval).unwrap_or(before.interval),
            ecn: self.ecn.map_or(before.ecn, |ecn| ecn == CodelEcn::On),
            ce_threshold: self.ce_threshold.map(whole_micros).or(before.ce_threshold),
            ..before
        }
    }
}

/// `tc` tells times in whole microseconds, of 32 bits.
fn whole_micros(span: Nanos) -> Nanos {
    Nanos((span.0 / 1_000).min(u64::from(u32::MAX)) * 1_000)
}

/// A time as it comes back from the kernel: in units of 1024 ns, shown in whole microseconds.
pub(crate) fn shown_time(span: Nanos) -> TcValue {
    shown_micros(CodelTime::of(span).nanos())
}

/// A time in whole microseconds; none is `0us`.
pub(crate) fn shown_micros(span: Nanos) -> TcValue {
    let micros = span.0 / 1_000;
    let text = if micros == 0 { "0us".into() } else { time_text(Nanos(micros * 1_000)) };
    TcValue::new(text, TcJson::Unsigned(micros))
}

/// When the next drop is, which may be over.
pub(crate) fn add_drop_next(shown: &mut TcProperties, nanos: i64) {
    let micros = nanos / 1_000;
    let span = shown_micros(Nanos(nanos.unsigned_abs()));
    if micros < 0 {
        shown.add_text(" drop_next -{}", span);
        shown.add_json("drop_next", micros);
    } else {
        shown.add("drop_next", " drop_next {}", span);
    }
}

impl CodelOptions {
    fn told(&self, before: CodelSettings) -> CodelSettings {
        let Self { limit, target, interval, ecn, ce_threshold } = *self;
        CodelSettings {
            limit: limit.filter(|limit| *limit > 0).unwrap_or(before.limit),
            law: TypedLaw { target, interval, ecn, ce_threshold }.told(before.law),
        }
    }
}

impl<P: Packet + Debug + Send> Classful<P> for Codel<P> {}

impl<P: Packet + Debug + Send> QdiscKind<P> for CodelOptions {
    type Made = Codel<P>;

    fn make(&self, _: &QdiscContext) -> Result<Codel<P>, TcRefusal> {
        Ok(Codel::new(self.told(CodelSettings::default())))
    }

    fn change(self, queue: &mut Codel<P>, before: &Self, _: &QdiscContext) -> Result<Self, TcRefusal> {
        queue.change(self.told(*queue.settings()));
        Ok(crate::tc::table::OptionTable::merged(self, before.clone()))
    }

    fn describe(&self, queue: &Codel<P>) -> TcDescription {
        TcDescription { options: shown(queue.settings()), figures: figures(&queue.codel_statistics()) }
    }
}

fn shown(told: &CodelSettings) -> TcProperties {
    let (mut shown, law) = (TcProperties::default(), told.law);
    shown.add("limit", "limit {}p ", told.limit);
    shown.add("target", "target {} ", shown_time(law.target));
    if let Some(threshold) = law.ce_threshold {
        shown.add("ce_threshold", "ce_threshold {} ", shown_time(threshold));
    }
    shown.add("interval", "interval {} ", shown_time(law.interval));
    if law.ecn {
        shown.mark("ecn", "ecn ");
    }
    shown
}

fn figures(counted: &CodelStatistics) -> TcProperties {
    let mut figures = TcProperties::default();
    figures.add("count", "  count {}", counted.count);
    figures.add("lastcount", " lastcount {}", counted.last_count);
    figures.add("ldelay", " ldelay {}", shown_micros(counted.delay));
    if counted.drop_next.is_some() {
        figures.mark("dropping", " dropping");
    }
    add_drop_next(&mut figures, counted.drop_next.unwrap_or_default());
    figures.add("maxpacket", "\n  maxpacket {}", counted.longest_packet);
    figures.add("ecn_mark", " ecn_mark {}", counted.ecn_marks);
    figures.add("drop_overlimit", " drop_overlimit {}", counted.limit_drops);
    if counted.ce_marks > 0 {
        figures.add("ce_mark", " ce_mark {}", counted.ce_marks);
    }
    figures
}

#[cfg(test)]
mod tests {
    use super::figures;
    use crate::CodelStatistics;
    use crate::tc::TcStyle;
    use quietcore_core::Nanos;

    /// Goal: counts are shown as `tc` showed them under a load on Linux 6.12. Method: two recorded texts, and
    /// the JSON of one: a queue that drops, and one that has marked.
    #[test]
    fn counts_are_shown_as_recorded() {
        let dropping = CodelStatistics {
            count: 26,
            last_count: 1,
            delay: Nanos(204_925_952),
            drop_next: Some(4_884_480),
            longest_packet: 1_042,
            ..CodelStatistics::default()
        };
        assert_eq!(
            figures(&dropping).text(TcStyle::default()),
            "  count 26 lastcount 1 ldelay 205ms dropping drop_next 4.88ms\n  \
             maxpacket 1042 ecn_mark 0 drop_overlimit 0"
        );
        assert_eq!(
            figures(&dropping).json(TcStyle::default()),
            "{\"count\":26,\"lastcount\":1,\"ldelay\":204925,\"dropping\":true,\"drop_next\":4884,\
             \"maxpacket\":1042,\"ecn_mark\":0,\"drop_overlimit\":0}"
        );
        let marked = CodelStatistics {
            count: 20,
            drop_next: None,
            ecn_marks: 21,
            limit_drops: 171,
            ce_marks: 734,
            ..dropping
        };
        assert_eq!(
            figures(&marked).text(TcStyle::default()),
            "  count 20 lastcount 1 ldelay 205ms drop_next 0us\n  \
             maxpacket 1042 ecn_mark 21 drop_overlimit 171 ce_mark 734"
        );
    }
}

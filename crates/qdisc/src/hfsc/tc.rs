//! `hfsc` and its classes in `tc`: the options, their defaults, what is shown.
//!
//! Source: tc-hfsc(8), and `tc` by behaviour.

use super::{CurveError, Hfsc, HfscClass, HfscError, HfscStatistics, ServiceCurve};
use crate::classful::TcDescription;
use crate::kind::{ClassKind, QdiscContext, QdiscKind};
use crate::refusal::TcRefusal;
use crate::tc::error::{TcError, TcProblem};
use crate::tc::scalar::Show;
use crate::tc::table::{Complete, first_missing, options};
use crate::tc::text::time_text;
use crate::tc::units::{BitRate, Bytes, Minor};
use crate::tc::value::OptionValue;
use crate::tc::words::LineWords;
use crate::tc::{TcJson, TcProperties, TcValue};
use crate::{ClassId, Packet};
use alloc::format;
use core::fmt::{self, Debug, Formatter};
use quietcore_core::Nanos;

options! {
    /// What was typed behind `hfsc`.
    pub struct HfscOptions of "hfsc" {
        /// The class of what no filter knows.
        default: Minor = "default",
    }
}

options! {
    /// What was typed behind `hfsc`, for a class.
    pub struct HfscClassOptions of "hfsc" {
        /// What it gets in any case.
        rt: Curve = "rt",
        /// Its share of what is left.
        ls: Curve = "ls",
        /// Both at once.
        sc: Curve = "sc",
        /// The most that it gets.
        ul: Curve = "ul",
    }
}

impl Complete for HfscOptions {}

impl Complete for HfscClassOptions {
    fn lacks(&self) -> Option<TcProblem> {
        let Self { rt, ls, sc, ul } = self;
        match () {
            () if sc.is_some() && rt.is_some() => Some(TcProblem::Excludes { option: "rt", other: "sc" }),
            () if sc.is_some() && ls.is_some() => Some(TcProblem::Excludes { option: "ls", other: "sc" }),
            () if ul.is_some() && sc.is_none() && ls.is_none() => {
                Some(TcProblem::Needs { option: "ul", needs: "`ls` or `sc`" })
            }
            () => {
                let curve = rt.is_some() || ls.is_some() || sc.is_some();
                first_missing("hfsc", &[(curve, "a curve: `rt`, `ls` or `sc`")])
            }
        }
    }
}

/// A service curve of two pieces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Curve {
    /// `[[m1 RATE] d TIME] m2 RATE`: the first slope for so long, then the second.
    Slopes {
        /// The first slope; only with `d`.
        m1: Option<BitRate>,
        /// How long it lasts.
        d: Option<Nanos>,
        /// The second slope.
        m2: BitRate,
    },
    /// `[[umax BYTES] dmax TIME] rate RATE`: so much within so long, then the rate.
    Work {
        /// How much; only with `dmax`.
        umax: Option<Bytes>,
        /// How long it may take.
        dmax: Option<Nanos>,
        /// What follows.
        rate: BitRate,
    },
}

/// Takes `name VALUE`, if that is what comes.
fn take_named<T: OptionValue>(words: &mut LineWords<'_>, name: &'static str) -> Result<Option<T>, TcError> {
    if words.take_if(name) { T::take(words, name).map(Some) } else { Ok(None) }
}

/// Takes `name VALUE`, which has to come.
fn take_last(words: &mut LineWords<'_>, name: &'static str, of: &'static str) -> Result<BitRate, TcError> {
    if let Some(rate) = take_named(words, name)? {
        return Ok(rate);
    }
    if words.is_empty() {
        return Err(words.at_end(TcProblem::MissingValue(of), &[name]));
    }
    Err(words.ahead(TcProblem::Unknown("part of a curve"), &[name]))
}

impl OptionValue for Curve {
    fn take(words: &mut LineWords<'_>, name: &'static str) -> Result<Self, TcError> {
        let allowed = ["m1", "d", "m2", "umax", "dmax", "rate"];
        match words.peek() {
            Some("m1" | "d" | "m2") => {
                let m1 = take_named(words, "m1")?;
                let d = take_named(words, "d")?;
                if m1.is_some() && d.is_none() {
                    return Err(
                        words.ahead(TcProblem::Needs { option: "m1", needs: "`d` behind it" }, &["d"])
                    );
                }
                Ok(Self::Slopes { m1, d, m2: take_last(words, "m2", name)? })
            }
            Some("umax" | "dmax" | "rate") => {
                let umax = take_named(words, "umax")?;
                let dmax = take_named(words, "dmax")?;
                if umax.is_some() && dmax.is_none() {
                    let problem = TcProblem::Needs { option: "umax", needs: "`dmax` behind it" };
                    return Err(words.ahead(problem, &["dmax"]));
                }
                Ok(Self::Work { umax, dmax, rate: take_last(words, "rate", name)? })
            }
            Some(_) => Err(words.ahead(TcProblem::Unknown("part of a curve"), &allowed)),
            None => Err(words.at_end(TcProblem::MissingValue(name), &allowed)),
        }
    }

    fn put(&self, name: &'static str, out: &mut Formatter<'_>) -> fmt::Result {
        fn some(value: Option<&impl Show>, name: &str, out: &mut Formatter<'_>) -> fmt::Result {
            value.map_or(Ok(()), |value| {
                write!(out, " {name}")?;
                value.show(out)
            })
        }
        write!(out, " {name}")?;
        match self {
            Self::Slopes { m1, d, m2 } => {
                some(m1.as_ref(), "m1", out)?;
                some(d.as_ref(), "d", out)?;
                m2.put("m2", out)
            }
            Self::Work { umax, dmax, rate } => {
                some(umax.as_ref(), "umax", out)?;
                some(dmax.as_ref(), "dmax", out)?;
                rate.put("rate", out)
            }
        }
    }
}

impl Curve {
    fn told(self, option: &'static str) -> Result<ServiceCurve, TcRefusal> {
        match self {
            Self::Slopes { m1, d, m2 } => {
                let (m1, m2) = (m1.map_or(0, BitRate::bytes_per_second), m2.bytes_per_second());
                match d {
                    None | Some(Nanos(0)) => Ok(ServiceCurve::linear(m2)),
                    Some(d) => Ok(ServiceCurve::two_piece(m1, d, m2)),
                }
            }
            Self::Work { dmax: None, rate, .. } => Ok(ServiceCurve::linear(rate.bytes_per_second())),
            Self::Work { umax, dmax: Some(dmax), rate } => {
                let umax = umax.map_or(0, |umax| umax.0);
                ServiceCurve::from_delay(umax, dmax, rate.bytes_per_second()).map_err(|error| {
                    let value = format!("umax {umax}b dmax {} rate {rate}", time_text(dmax));
                    TcRefusal::setting("hfsc", option, value, format!("{error}"))
                })
            }
        }
    }

    /// Its slopes and the length of the first, as they were typed.
    fn slopes(self) -> (u64, Nanos, u64) {
        match self {
            Self::Slopes { m1, d, m2 } => {
                (m1.map_or(0, BitRate::bytes_per_second), d.unwrap_or_default(), m2.bytes_per_second())
            }
            Self::Work { umax, dmax, rate } => {
                let rate = rate.bytes_per_second();
                let curve: Result<ServiceCurve, CurveError> = dmax.map_or(Err(CurveError::NoTime), |dmax| {
                    ServiceCurve::from_delay(umax.map_or(0, |umax| umax.0), dmax, rate)
                });
                curve.map_or((0, Nanos(0), rate), |curve| (curve.m1, curve.d, curve.m2))
            }
        }
    }
}

impl HfscClassOptions {
    fn told(&self) -> Result<HfscClass, TcRefusal> {
        let of = |option, typed: Option<Curve>| typed.map(|typed| typed.told(option)).transpose();
        let both = of("sc", self.sc)?;
        Ok(HfscClass {
            realtime: of("rt", self.rt)?.or(both),
            link_share: of("ls", self.ls)?.or(both),
            upper_limit: of("ul", self.ul)?,
        })
    }

    /// What is typed now, and for the rest what was typed before: a change of a class is of the curves that
    /// it names.
    fn merged(&self, before: &Self) -> Self {
        // `sc` is `rt` and `ls`, which may be changed apart.
        let (rt, ls) = (self.rt.or(self.sc), self.ls.or(self.sc));
        let (rt, ls) = (rt.or(before.rt).or(before.sc), ls.or(before.ls).or(before.sc));
        let ul = self.ul.or(before.ul);
        if rt == ls {
            return Self { sc: rt, ul, ..Self::default() };
        }
        Self { rt, ls, sc: None, ul }
    }
}

impl<P: Packet + Debug + Send> QdiscKind<P> for HfscOptions {
    type Made = Hfsc<P>;

    fn make(&self, context: &QdiscContext) -> Result<Hfsc<P>, TcRefusal> {
        let mut queue = Hfsc::new();
        queue.set_default_class(self.default.map(|minor| ClassId::new(context.handle, minor.0)));
        Ok(queue)
    }

    fn change(self, queue: &mut Hfsc<P>, _: &Self, context: &QdiscContext) -> Result<Self, TcRefusal> {
        queue.set_default_class(self.default.map(|minor| ClassId::new(context.handle, minor.0)));
        Ok(self)
    }

    fn describe(&self, _: &Hfsc<P>) -> TcDescription {
        let mut options = TcProperties::default();
        if let Some(minor) = self.default {
            options.add("default", "default {} ", format!("{:x}", minor.0));
        }
        TcDescription { options, ..TcDescription::default() }
    }
}

impl<P: Packet + Debug + Send> ClassKind<P> for HfscClassOptions {
    type Of = Hfsc<P>;

    fn add(&self, queue: &mut Hfsc<P>, parent: Option<ClassId>, id: ClassId) -> Result<(), TcRefusal> {
        Ok(queue.add_class(parent, id, self.told()?)?)
    }

    fn change(self, queue: &mut Hfsc<P>, id: ClassId, before: &Self, now: Nanos) -> Result<Self, TcRefusal> {
        let merged = self.merged(before);
        queue.change_class(now, id, merged.told()?)?;
        Ok(merged)
    }

    fn describe(&self, queue: &Hfsc<P>, id: ClassId) -> TcDescription {
        let mut options = TcProperties::default();
        for (name, typed) in [("rt", self.rt), ("ls", self.ls), ("sc", self.sc), ("ul", self.ul)] {
            let Some((m1, d, m2)) = typed.map(Curve::slopes) else { continue };
            // A part of no length is shown in microseconds.
            let length = if d.0 == 0 { "0us".into() } else { time_text(d) };
            options.text_only(format!("{name} "));
            options.object(name, |curve| {
                curve.add("m1", "m1 {}", TcValue::byte_rate(m1));
                curve.add("d", " d {}", TcValue::new(length, TcJson::Unsigned(d.0 / 1_000)));
                curve.add("m2", " m2 {} ", TcValue::byte_rate(m2));
            });
        }
        TcDescription { options, figures: figures(&queue.class_statistics(id).unwrap_or_default()) }
    }
}

pub(super) fn figures(counted: &HfscStatistics) -> TcProperties {
    let mut figures = TcProperties::default();
    figures.add("period", " period {} ", counted.periods);
    if counted.queue.sent_bytes > 0 {
        figures.add("work", "work {} bytes ", counted.queue.sent_bytes);
    }
    if counted.realtime_bytes > 0 {
        figures.add("rtwork", "rtwork {} bytes ", counted.realtime_bytes);
    }
    figures.add("level", "level {} \n", counted.level);
    figures
}

impl From<HfscError> for TcRefusal {
    fn from(error: HfscError) -> Self {
        match error {
            HfscError::Unknown(class) => Self::UnknownClass(class),
            HfscError::Exists(class) => Self::ClassExists(class),
            HfscError::HasChildren(class) => Self::ClassInUse { class, by: "classes below it" },
            HfscError::TooDeep(_) => {
                Self::NotPossible { what: format!("{error}"), remedy: "put it further up" }
            }
            other => {
                let remedy = "give `ls` or `sc` a rate; only `rt` and `ul` may do without";
                Self::NotPossible { what: format!("{other}"), remedy }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{
        BitRate, Bytes, Curve, CurveError, Hfsc, HfscClass, HfscClassOptions, HfscError, HfscOptions, Minor,
        ServiceCurve, TcRefusal,
    };
    use crate::kind::{ClassKind as _, QdiscContext, QdiscKind as _};
    use crate::tc::TcStyle;
    use crate::{ClassId, Dequeued, Qdisc as _};
    use quietcore_core::Nanos;
    use std::string::ToString as _;
    use std::vec;
    use std::vec::Vec;

    const MS: u64 = 1_000_000;

    fn slopes(m1: u64, d: u64, m2: u64) -> Option<Curve> {
        Some(Curve::Slopes { m1: Some(BitRate(m1)), d: Some(Nanos(d)), m2: BitRate(m2) })
    }

    /// Goal: each curve is what was typed, in bytes per second. Method: three that differ; one for both.
    #[test]
    fn every_curve_is_told() {
        let (rt, ls) = (slopes(8_000, 2, 16_000), slopes(24_000, 3, 32_000));
        let typed = HfscClassOptions { rt, ls, sc: None, ul: slopes(40_000, 4, 48_000) };
        let told = HfscClass {
            realtime: Some(ServiceCurve::two_piece(1_000, Nanos(2), 2_000)),
            link_share: Some(ServiceCurve::two_piece(3_000, Nanos(3), 4_000)),
            upper_limit: Some(ServiceCurve::two_piece(5_000, Nanos(4), 6_000)),
        };
        assert_eq!(typed.told(), Ok(told));
        // Nothing is sent before the second slope begins if the first is not told.
        let late = Some(Curve::Slopes { m1: None, d: Some(Nanos(5)), m2: BitRate(56_000) });
        let told = HfscClassOptions { ls: late, ..HfscClassOptions::default() }.told();
        let link_share = Some(ServiceCurve::two_piece(0, Nanos(5), 7_000));
        assert_eq!(told, Ok(HfscClass { link_share, ..HfscClass::default() }));
        // A first slope of no length is none.
        let both = HfscClassOptions { sc: slopes(8_000, 0, 16_000), ..HfscClassOptions::default() };
        let linear = Some(ServiceCurve::linear(2_000));
        assert_eq!(both.told(), Ok(HfscClass { realtime: linear, link_share: linear, upper_limit: None }));
    }

    /// Goal: curves are shown by their slopes. Method: each way to type one; 1500 bytes in 10 ms are 150
    /// kB/s, which is above the rate, so it is the first slope; in 20 ms they are 75 kB/s, which is below 100
    /// kB/s: the rate begins 5 ms late, as 1500 bytes take 15 ms at it.
    #[test]
    fn curves_are_shown() {
        let work = |umax, dmax, rate| Some(Curve::Work { umax, dmax, rate: BitRate(rate) });
        let typed = HfscClassOptions {
            rt: work(Some(Bytes(1_500)), Some(Nanos(10 * MS)), 800_000),
            ls: work(Some(Bytes(1_500)), Some(Nanos(20 * MS)), 800_000),
            sc: work(None, None, 16_000),
            ul: Some(Curve::Slopes { m1: None, d: None, m2: BitRate(24_000) }),
        };
        let shown = typed.describe(&Hfsc::<Vec<u8>>::new(), ClassId::new(1, 1));
        assert_eq!(
            shown.options.text(TcStyle::default()),
            "rt m1 1200Kbit d 10ms m2 800Kbit ls m1 0bit d 5ms m2 800Kbit sc m1 0bit d 0us m2 16Kbit \
             ul m1 0bit d 0us m2 24Kbit "
        );
        let late =
            HfscClassOptions { sc: work(None, Some(Nanos(3 * MS)), 16_000), ..HfscClassOptions::default() };
        let shown = late.describe(&Hfsc::<Vec<u8>>::new(), ClassId::new(1, 1));
        let text = shown.options.text(TcStyle::default());
        assert_eq!(text, "sc m1 0bit d 3ms m2 16Kbit ", "nothing is promised for the first 3 ms");
    }

    /// Goal: what no filter knows is the default class's, the one of the last line; a change of a class
    /// reaches it, and its counts are shown. Method: packets of 100, 70 and 50 bytes before and after a
    /// change of the default; a class that was told its share alone, and both kinds after a change.
    #[test]
    fn defaults_changes_and_counts() {
        let (context, at) = (QdiscContext::default(), Nanos(0));
        let default = |minor| HfscOptions { default: Some(Minor(minor)) };
        let mut queue: Hfsc<Vec<u8>> = default(3).make(&context).expect("made");
        let share = HfscClassOptions { ls: slopes(0, 0, 80_000), ..HfscClassOptions::default() };
        let (first, second) = (ClassId::new(1, 3), ClassId::new(1, 2));
        for class in [first, second] {
            share.add(&mut queue, None, class).expect("added");
        }
        assert!(queue.enqueue(at, vec![0; 100]).is_accepted());
        default(2).change(&mut queue, &default(3), &context).expect("changed");
        for bytes in [70, 50] {
            assert!(queue.enqueue(at, vec![0; bytes]).is_accepted());
        }
        while matches!(queue.dequeue(at), Dequeued::Packet(_)) {}
        let figures =
            |queue: &Hfsc<Vec<u8>>, class| share.describe(queue, class).figures.text(TcStyle::default());
        assert_eq!(figures(&queue, first), " period 1 work 100 bytes level 0 \n");
        assert_eq!(figures(&queue, second), " period 1 work 120 bytes level 0 \n");
        let sure = HfscClassOptions { rt: slopes(0, 0, 80_000), ..HfscClassOptions::default() };
        let after = sure.change(&mut queue, second, &share, at).expect("changed");
        assert_eq!(after, HfscClassOptions { sc: slopes(0, 0, 80_000), ..HfscClassOptions::default() });
        assert!(queue.enqueue(at, vec![0; 30]).is_accepted());
        assert!(matches!(queue.dequeue(at), Dequeued::Packet(_)));
        assert_eq!(figures(&queue, second), " period 2 work 150 bytes rtwork 30 bytes level 0 \n");
        let below = ClassId::new(1, 4);
        share.add(&mut queue, Some(first), below).expect("added");
        assert_eq!(figures(&queue, first), " period 1 work 100 bytes level 1 \n");
    }

    /// Goal: an error says what is wrong, and a refusal what to do. Method: each error of a class in both
    /// forms.
    #[test]
    fn every_error_has_its_text() {
        let class = ClassId::new(1, 0x1f);
        let shares = "; give `ls` or `sc` a rate; only `rt` and `ul` may do without";
        for (error, wrong, behind) in [
            (HfscError::TooDeep(class), "class 1:1f would be below 64 others", "; put it further up"),
            (HfscError::NoCurve(class), "class 1:1f has neither a guarantee nor a share", shares),
            (HfscError::ZeroCurve(class), "class 1:1f has a curve that gives nothing", shares),
            (HfscError::NoShare(class), "class 1:1f has an upper limit of no share", shares),
            (HfscError::ParentWithoutShare(class), "class 1:1f has no share to give to children", shares),
        ] {
            assert_eq!(error.to_string(), wrong);
            assert_eq!(TcRefusal::from(error).to_string(), [wrong, behind].concat());
        }
        for (error, wrong, refused) in [
            (
                HfscError::Exists(class),
                "there is a class 1:1f",
                "File exists: there is a class 1:1f already; use `change` or `replace`",
            ),
            (HfscError::Unknown(class), "there is no class 1:1f", "Specified class 1:1f not found"),
            (
                HfscError::HasChildren(class),
                "class 1:1f has children",
                "Device or resource busy: class 1:1f is held by classes below it; remove that first",
            ),
        ] {
            assert_eq!(
                (error.to_string().as_str(), TcRefusal::from(error).to_string().as_str()),
                (wrong, refused)
            );
        }
        assert_eq!(CurveError::TooSteep.to_string(), "more bytes per second than can be counted");
    }

    /// Goal: a curve that cannot be is named by its option and as it was typed. Method: no rate and no time,
    /// in each of the four.
    #[test]
    fn curves_that_cannot_be() {
        let work =
            |umax, dmax, rate| Some(Curve::Work { umax, dmax: Some(Nanos(dmax)), rate: BitRate(rate) });
        let none = HfscClassOptions::default();
        for (typed, refused) in [
            (
                HfscClassOptions { rt: work(None, 3 * MS, 7), ..none.clone() },
                "hfsc: `rt umax 0b dmax 3ms rate 7bit` cannot be: no rate",
            ),
            (
                HfscClassOptions { ls: work(Some(Bytes(1_500)), 0, 16_000), ..none.clone() },
                "hfsc: `ls umax 1500b dmax 0ns rate 16kbit` cannot be: no time for the longest unit of work",
            ),
            (
                HfscClassOptions { sc: work(Some(Bytes(1_600)), 4 * MS, 0), ..none.clone() },
                "hfsc: `sc umax 1600b dmax 4ms rate 0bit` cannot be: no rate",
            ),
            (
                HfscClassOptions { ul: work(Some(Bytes(1_700)), 5 * MS, 6), ..none },
                "hfsc: `ul umax 1700b dmax 5ms rate 6bit` cannot be: no rate",
            ),
        ] {
            assert_eq!(typed.told().map_err(|refusal| refusal.to_string()), Err(refused.into()));
        }
    }

    /// Goal: a change is of the curves that it names, and `sc` is two of them. Method: one curve at a time.
    #[test]
    fn changes_are_merged() {
        let [sc, ls, ul] = [8_000, 16_000, 24_000].map(|rate| slopes(0, 0, rate));
        let both = HfscClassOptions { sc, ..HfscClassOptions::default() };
        let limited = HfscClassOptions { ul, ..HfscClassOptions::default() }.merged(&both);
        assert_eq!(limited, HfscClassOptions { sc, ul, ..HfscClassOptions::default() });
        let apart = HfscClassOptions { ls, ..HfscClassOptions::default() }.merged(&limited);
        assert_eq!(apart, HfscClassOptions { rt: sc, ls, sc: None, ul });
        let other = HfscClassOptions { sc: slopes(0, 0, 32_000), ..HfscClassOptions::default() };
        assert_eq!(other.merged(&apart), HfscClassOptions { ul, ..other }, "the limit stays");
    }
}

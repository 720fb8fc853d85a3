//! From the words of a line to a command: flags, object, verb, what it is done to, kind, options.
//!
//! Names of objects and verbs may be shortened as long as they fit one only; kinds, `dev`, `root`, `parent`,
//! `handle` and `classid` not. Deviation: flags that only matter to `show` are taken and forgotten elsewhere;
//! `link`, of which `tc` has an `l`, does not exist.

use super::clsact::{CLSACT, CLSACT_EGRESS, CLSACT_INGRESS};
use super::command::{ClassCommand, Command, Estimation, QdiscCommand, ShowCommand, TcObject};
use super::error::{TcError, TcProblem};
use super::filter::{CLASSIFIERS, Classifier, FilterCommand, FilterHandle, Protocol};
use super::kinds::{CLASS_KINDS, ClassOptions, QDISC_KINDS, QdiscOptions};
use super::parent::TcParent;
use super::property::TcStyle;
use super::scalar::Scalar as _;
use super::table::{Demand, first_missing};
use super::value::QdiscHandle;
use super::verb::TcVerb;
use super::words::{LineWords, OptionName};
use crate::ClassId;
use alloc::string::String;
use alloc::vec::Vec;
use quietcore_core::Nanos;

const OBJECTS: &[OptionName] = &[("qdisc", "qdisc"), ("class", "class"), ("filter", "filter")];
const FLAGS: &[OptionName] = &[
    ("-statistics", "-s"),
    ("-stats", "-s"),
    ("-details", "-d"),
    ("-json", "-j"),
    ("-pretty", "-p"),
    ("-graph", "-g"),
    ("-iec", "-iec"),
    ("-Numeric", "-N"),
    ("-quietcore", "-q"),
];
const VERBS: &[OptionName] = &[
    ("add", "add"),
    ("change", "change"),
    ("replace", "replace"),
    ("delete", "delete"),
    ("show", "show"),
    ("list", "show"),
    ("ls", "show"),
];
/// LineWords before the kind, besides `dev`; the shortened ones are behind their full forms.
const QDISC_HEAD: &[OptionName] =
    &[("root", "root"), ("parent", "parent"), ("handle", "handle"), ("est", "est")];
const CLASS_HEAD: &[OptionName] = &[("parent", "parent"), ("classid", "classid"), ("est", "est")];
const FILTER_HEAD: &[OptionName] = &[
    ("root", "root"),
    ("parent", "parent"),
    ("protocol", "protocol"),
    ("prio", "prio"),
    ("priority", "prio"),
    ("pref", "prio"),
    ("preference", "prio"),
    ("handle", "filter handle"),
    ("chain", "chain"),
    ("ingress", "ingress"),
    ("egress", "egress"),
];
/// The same for `show`.
const QDISC_SHOW: &[OptionName] = &[
    ("root", "root"),
    ("parent", "parent"),
    ("handle", "handle"),
    ("ingress", "clsact"),
    ("clsact", "clsact"),
];
const CLASS_SHOW: &[OptionName] = &[("root", "root"), ("parent", "parent"), ("classid", "classid")];
/// A handle says nothing there, as to `tc`.
const FILTER_SHOW: &[OptionName] = FILTER_HEAD;

/// Reads one line, with or without `tc` or `quietcore tc` before it.
///
/// # Errors
/// [`TcError`] with the first word that cannot stand where it is, or with what is missing at the end.
pub fn parse(line: &str) -> Result<Command, TcError> {
    let mut words = LineWords::new(line);
    let flags = take_flags(&mut words)?;
    let Some(_) = words.take() else {
        let problem = TcProblem::Missing { of: "tc", what: "an object" };
        return Err(words.at_end(problem, &["qdisc", "class", "filter"]));
    };
    match words.full_name(OBJECTS, "object")? {
        "qdisc" => parse_qdisc(&mut words, flags),
        "class" => parse_class(&mut words, flags),
        _ => parse_filter(&mut words, flags),
    }
}

/// What stands before the object.
#[derive(Clone, Copy, Debug, Default)]
struct Flags {
    style: TcStyle,
    json: bool,
    graph: bool,
}

fn take_flags(words: &mut LineWords<'_>) -> Result<Flags, TcError> {
    let mut flags = Flags::default();
    while words.peek().is_some_and(|word| word.starts_with('-')) {
        words.take();
        match words.full_name(FLAGS, "flag")? {
            "-s" => flags.style.statistics = true,
            "-d" => flags.style.details = true,
            "-p" => flags.style.pretty = true,
            "-iec" => flags.style.binary = true,
            "-q" => flags.style.ours = true,
            "-j" => flags.json = true,
            "-g" => flags.graph = true,
            _ => flags.style.numeric = true,
        }
    }
    Ok(flags)
}

/// What is missing where nothing stands behind the head.
const A_KIND: &str = "a kind";

/// What stands before the kind.
#[derive(Debug, Default)]
struct Head {
    device: Option<String>,
    place: Option<TcParent>,
    id: Option<ClassId>,
    est: Option<Estimation>,
    protocol: Option<Protocol>,
    prio: Option<u16>,
    /// Where the handle of a filter stands, which its kind reads.
    filter_handle: Option<usize>,
    /// What may stand behind it.
    kinds: &'static [&'static str],
}

impl Head {
    /// Takes what belongs to the word that was just taken, if that is one of `names`.
    fn take(&mut self, word: &str, words: &mut LineWords<'_>, names: &[OptionName]) -> Result<bool, TcError> {
        let abbreviated = |full: &str, least: &str| word.starts_with(least) && full.starts_with(word);
        let name = match word {
            "dev" => "dev",
            _ if abbreviated("estimator", "e") => "est",
            _ if abbreviated("protocol", "prot") => "protocol",
            _ => names.iter().find(|(name, _)| *name == word).map_or("", |(_, full)| *full),
        };
        if name != "dev" && !names.iter().any(|(_, full)| *full == name) {
            return Ok(false);
        }
        match name {
            "dev" => {
                words.first_time(self.device.as_ref(), "dev")?;
                self.device = Some(take_device(words)?);
            }
            "root" | "parent" => self.take_place(name == "root", words)?,
            "ingress" => self.take_named_place("ingress", CLSACT_INGRESS, words)?,
            "egress" => self.take_named_place("egress", CLSACT_EGRESS, words)?,
            "clsact" => self.take_named_place("clsact", CLSACT, words)?,
            "handle" => {
                words.first_time(self.id.as_ref(), "handle")?;
                self.id = Some(words.scalar::<QdiscHandle>("handle")?.0);
            }
            "classid" => {
                words.first_time(self.id.as_ref(), "classid")?;
                self.id = Some(words.scalar("classid")?);
            }
            "chain" => {
                let chain: u32 = words.scalar("chain")?;
                if chain != 0 {
                    let why = "there is one chain of filters, 0";
                    return Err(words.here(TcProblem::NotSupported(why), &[]));
                }
            }
            "filter handle" => {
                words.first_time(self.filter_handle.as_ref(), "handle")?;
                words.value("handle", &["the name of a filter"])?;
                self.filter_handle = Some(words.taken());
            }
            "est" => {
                words.first_time(self.est.as_ref(), "est")?;
                self.est = Some(take_estimation(words)?);
            }
            "protocol" => {
                words.first_time(self.protocol.as_ref(), "protocol")?;
                self.protocol = Some(words.scalar("protocol")?);
            }
            _ => {
                words.first_time(self.prio.as_ref(), "prio")?;
                words.value("prio", &["a number"])?;
                let form = TcProblem::Malformed("a priority, from 0 to 65535");
                self.prio = Some(words.at(words.taken(), |word| u16::read(word).map_err(|_| form))?);
            }
        }
        Ok(true)
    }

    fn take_place(&mut self, root: bool, words: &mut LineWords<'_>) -> Result<(), TcError> {
        let root = root || words.take_if("root");
        let (option, other) = if root { ("root", "parent") } else { ("parent", "root") };
        match self.place {
            Some(TcParent::Root) if !root => {
                return Err(words.here(TcProblem::Excludes { option, other }, &[]));
            }
            Some(TcParent::Parent(_)) if root => {
                return Err(words.here(TcProblem::Excludes { option, other }, &[]));
            }
            Some(_) => return Err(words.here(TcProblem::Twice(option), &[])),
            None => {}
        }
        self.place = Some(if root { TcParent::Root } else { TcParent::Parent(words.scalar("parent")?) });
        Ok(())
    }

    /// A place that has a word of its own, which was just taken.
    fn take_named_place(
        &mut self,
        option: &'static str,
        place: ClassId,
        words: &LineWords<'_>,
    ) -> Result<(), TcError> {
        let other = match self.place {
            None => {
                self.place = Some(TcParent::Parent(place));
                return Ok(());
            }
            Some(TcParent::Root) => "root",
            Some(TcParent::Parent(_)) => "parent",
        };
        Err(words.here(TcProblem::Excludes { option, other }, &[]))
    }

    /// Complains unless these are there.
    fn demand(
        &self,
        of: &'static str,
        needed: &[(bool, &'static str)],
        words: &LineWords<'_>,
    ) -> Result<(), TcError> {
        let all = [&[(self.device.is_some(), "`dev`")], needed].concat();
        let Some(problem) = first_missing(of, &all) else { return Ok(()) };
        let kind = matches!(problem, TcProblem::Missing { what: A_KIND, .. });
        Err(words.at_end(problem, if kind { self.kinds } else { &[] }))
    }
}

/// Interface names of Linux: at most 15 bytes, no `/` or `:`, not `.` or `..`.
pub(super) fn take_device(words: &mut LineWords<'_>) -> Result<String, TcError> {
    let name = words.value("dev", &["the name of a device"])?;
    if name.len() > 15 || name.contains(['/', ':']) || matches!(name, "." | "..") {
        let form = "the name of a device: at most 15 bytes, without / and :";
        return Err(words.here(TcProblem::Malformed(form), &[]));
    }
    Ok(name.into())
}

fn take_estimation(words: &mut LineWords<'_>) -> Result<Estimation, TcError> {
    let mut positive = || {
        let time: Nanos = words.scalar("est")?;
        if time.0 > 0 {
            return Ok(time);
        }
        let problem = TcProblem::OutOfRange { low: "1ns".into(), high: alloc::format!("{}ns", i64::MAX) };
        Err(words.here(problem, &[]))
    };
    Ok(Estimation { interval: positive()?, time_constant: positive()? })
}

/// Takes words before the kind until `kind` takes the rest of the line.
fn take_body<T>(
    words: &mut LineWords<'_>,
    names: &[OptionName],
    role: &'static str,
    mut kind: impl FnMut(&str, &Head, &mut LineWords<'_>) -> Option<Result<T, TcError>>,
    kinds: &'static [&'static str],
) -> Result<(Head, Option<T>), TcError> {
    let mut head = Head { kinds, ..Head::default() };
    while let Some(word) = words.take() {
        if head.take(word, words, names)? {
            continue;
        }
        if let Some(options) = kind(word, &head, words) {
            return Ok((head, Some(options?)));
        }
        let others: Vec<&'static str> = names.iter().map(|(name, _)| *name).collect();
        return Err(words.here(TcProblem::Unknown(role), &[kinds, &["dev"], &others].concat()));
    }
    Ok((head, None))
}

/// The verb, if there is one: without one, `tc` shows.
fn take_verb(words: &mut LineWords<'_>, verbs: &[OptionName]) -> Result<&'static str, TcError> {
    if words.take().is_some() { words.full_name(verbs, "command") } else { Ok("show") }
}

const fn demand_of(verb: TcVerb) -> Demand {
    match verb {
        TcVerb::Add | TcVerb::Change | TcVerb::Replace => Demand::Enough,
        TcVerb::Delete => Demand::Any,
    }
}

fn verb_named(name: &str) -> Option<TcVerb> {
    match name {
        "add" => Some(TcVerb::Add),
        "change" => Some(TcVerb::Change),
        "replace" => Some(TcVerb::Replace),
        "delete" => Some(TcVerb::Delete),
        _ => None,
    }
}

/// Sees to it that `ingress` and `clsact` name their place alone; a handle behind the first says nothing.
fn take_beside(word: &str, head: &Head, words: &mut LineWords<'_>) -> Result<Option<QdiscOptions>, TcError> {
    let option = match word {
        "ingress" => "ingress",
        "clsact" => "clsact",
        _ => return Ok(None),
    };
    if let Some(place) = head.place {
        let other = if place == TcParent::Root { "root" } else { "parent" };
        return Err(words.here(TcProblem::Excludes { option, other }, &[]));
    }
    while word == "ingress" && words.take_if("handle") {
        words.value("handle", &["a handle, which is ffff:"])?;
    }
    Ok(None)
}

fn parse_qdisc(words: &mut LineWords<'_>, flags: Flags) -> Result<Command, TcError> {
    let Some(verb) = verb_named(take_verb(words, VERBS)?) else {
        return parse_show(words, flags, TcObject::Qdisc);
    };
    let demand = demand_of(verb);
    let kind = |word: &str, head: &Head, words: &mut LineWords<'_>| {
        let is_beside = take_beside(word, head, words);
        is_beside.transpose().or_else(|| QdiscOptions::take(word, words, demand))
    };
    let (mut head, options) = take_body(words, QDISC_HEAD, "kind of qdisc", kind, QDISC_KINDS)?;
    if matches!(options, Some(QdiscOptions::Ingress(_) | QdiscOptions::Clsact(_))) {
        head.place = Some(TcParent::Parent(CLSACT));
        head.id = Some(ClassId::new(CLSACT.major(), 0));
    }
    let placed = (head.place.is_some(), "`root` or `parent`");
    let named = (head.place.is_some() || head.id.is_some(), "`root`, `parent` or `handle`");
    let kind = (options.is_some(), A_KIND);
    match verb {
        TcVerb::Add => head.demand("qdisc add", &[placed, kind], words)?,
        TcVerb::Replace => head.demand("qdisc replace", &[placed, kind], words)?,
        TcVerb::Change => head.demand("qdisc change", &[named, kind], words)?,
        TcVerb::Delete => head.demand("qdisc del", &[named], words)?,
    }
    let Head { device, place, id: handle, est, .. } = head;
    let device = device.unwrap_or_default();
    Ok(Command::Qdisc(QdiscCommand { verb, device, place, handle, est, options }))
}

fn parse_class(words: &mut LineWords<'_>, flags: Flags) -> Result<Command, TcError> {
    let Some(verb) = verb_named(take_verb(words, VERBS)?) else {
        return parse_show(words, flags, TcObject::Class);
    };
    let demand = demand_of(verb);
    let kind = |word: &str, _: &Head, words: &mut LineWords<'_>| ClassOptions::take(word, words, demand);
    let (head, options) = take_body(words, CLASS_HEAD, "kind of class", kind, CLASS_KINDS)?;
    let parent = match head.place {
        Some(TcParent::Parent(id)) => Some(id),
        _ => None,
    };
    let placed = (head.place.is_some(), "`parent`");
    let either = (head.place.is_some() || head.id.is_some(), "`parent` or `classid`");
    let named = (head.id.is_some(), "`classid`");
    let kind = (options.is_some(), A_KIND);
    match verb {
        TcVerb::Add => head.demand("class add", &[placed, kind], words)?,
        TcVerb::Replace => head.demand("class replace", &[either, kind], words)?,
        TcVerb::Change => head.demand("class change", &[named, kind], words)?,
        TcVerb::Delete => head.demand("class del", &[named], words)?,
    }
    let Head { device, id, est, .. } = head;
    let device = device.unwrap_or_default();
    Ok(Command::Class(ClassCommand { verb, device, parent, id, est, options }))
}

fn parse_filter(words: &mut LineWords<'_>, flags: Flags) -> Result<Command, TcError> {
    let Some(verb) = verb_named(take_verb(words, VERBS)?) else {
        return parse_show(words, flags, TcObject::Filter);
    };
    let kind =
        |word: &str, head: &Head, words: &mut LineWords<'_>| Classifier::take(word, head.protocol, words);
    let (head, classifier) = take_body(words, FILTER_HEAD, "kind of filter", kind, CLASSIFIERS)?;
    let a_kind = (classifier.is_some(), A_KIND);
    match verb {
        TcVerb::Add => head.demand("filter add", &[a_kind], words)?,
        TcVerb::Change => head.demand("filter change", &[a_kind], words)?,
        TcVerb::Replace => head.demand("filter replace", &[a_kind], words)?,
        TcVerb::Delete => head.demand("filter del", &[], words)?,
    }
    if head.filter_handle.is_some() && classifier.is_none() {
        let problem = TcProblem::Needs { option: "handle", needs: "the kind of the filter" };
        return Err(words.at_end(problem, CLASSIFIERS));
    }
    let handle = match (&classifier, head.filter_handle) {
        (Some(classifier), Some(at)) => {
            Some(words.at(at, |word| FilterHandle::read(classifier.kind(), word))?)
        }
        _ => None,
    };
    let Head { device, place, protocol, prio, .. } = head;
    let device = device.unwrap_or_default();
    Ok(Command::Filter(FilterCommand { verb, device, place, protocol, prio, handle, classifier }))
}

fn parse_show(words: &mut LineWords<'_>, flags: Flags, object: TcObject) -> Result<Command, TcError> {
    let names = match object {
        TcObject::Qdisc => QDISC_SHOW,
        TcObject::Class => CLASS_SHOW,
        TcObject::Filter => FILTER_SHOW,
    };
    let role = if object == TcObject::Filter { "word for filter show" } else { "word for show" };
    let none = |_: &str, _: &Head, _: &mut LineWords<'_>| None::<Result<(), TcError>>;
    let (head, _) = take_body(words, names, role, none, &[])?;
    match object {
        TcObject::Qdisc => {}
        TcObject::Class => head.demand("class show", &[], words)?,
        TcObject::Filter => head.demand("filter show", &[], words)?,
    }
    let Flags { style, json, graph } = flags;
    let Head { device, place, id, protocol, prio, .. } = head;
    Ok(Command::Show(ShowCommand { object, device, place, id, protocol, prio, style, json, graph }))
}

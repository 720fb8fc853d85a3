//! Whatever is written is read back as it was, and whatever is read ends in a command or in an error.
//!
//! Three sources of lines: commands made from types, such commands' lines with damage, and any text.

use super::filters::filter;
use super::random::Random;
use crate::tc::{
    CbqClassOptions, CbqOptions, ClassCommand, ClassOptions, Command, Estimation, EtsOptions,
    HfscClassOptions, HtbClassOptions, NetemOptions, Protocol, QdiscCommand, QdiscOptions, ShowCommand,
    TbfOptions, TcObject, TcParent, TcStyle, TcVerb, parse, parse_script,
};
use alloc::boxed::Box;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::strategy::BoxedStrategy;
use quietcore_core::Nanos;

/// Without what needs an option that is not there.
fn netem() -> BoxedStrategy<NetemOptions> {
    let mend = |mut netem: NetemOptions| {
        let delay = netem.delay;
        netem.reorder = netem.reorder.filter(|_| delay.is_some());
        netem.gap = netem.gap.filter(|_| delay.is_some());
        netem.ecn = netem.ecn.filter(|_| netem.loss.is_some());
        netem.distribution = netem.distribution.filter(|_| delay.is_some_and(|delay| delay.jitter.is_some()));
        netem
    };
    NetemOptions::random().prop_map(mend).boxed()
}

fn tbf() -> BoxedStrategy<TbfOptions> {
    let needed = (Random::random(), Random::random(), Random::random(), Random::random(), any::<bool>());
    let mend = |(tbf, rate, burst, limit, latency, by_time): (TbfOptions, _, _, _, _, bool)| TbfOptions {
        rate: Some(rate),
        burst: Some(burst),
        limit: (!by_time).then_some(limit),
        latency: by_time.then_some(latency),
        peakrate: tbf.peakrate.filter(|_| tbf.mtu.is_some()),
        ..tbf
    };
    (TbfOptions::random(), needed)
        .prop_map(move |(tbf, (rate, burst, limit, latency, by_time))| {
            mend((tbf, rate, burst, limit, latency, by_time))
        })
        .boxed()
}

fn htb_class() -> BoxedStrategy<HtbClassOptions> {
    let needed = (HtbClassOptions::random(), Random::random());
    needed.prop_map(|(htb, rate)| HtbClassOptions { rate: Some(rate), ..htb }).boxed()
}

fn hfsc_class() -> BoxedStrategy<HfscClassOptions> {
    let mend = |(mut hfsc, curve): (HfscClassOptions, _)| {
        if hfsc.sc.is_some() {
            (hfsc.rt, hfsc.ls) = (None, None);
        } else if hfsc.ls.is_none() {
            hfsc.ul = None;
            hfsc.rt = Some(curve);
        }
        hfsc
    };
    (HfscClassOptions::random(), Random::random()).prop_map(mend).boxed()
}

fn cbq() -> BoxedStrategy<CbqOptions> {
    (CbqOptions::random(), Random::random(), Random::random())
        .prop_map(|(cbq, bandwidth, avpkt)| CbqOptions {
            bandwidth: Some(bandwidth),
            avpkt: Some(avpkt),
            ..cbq
        })
        .boxed()
}

fn cbq_class() -> BoxedStrategy<CbqClassOptions> {
    (CbqClassOptions::random(), Random::random(), Random::random(), Random::random(), Random::random())
        .prop_map(|(cbq, bandwidth, rate, allot, avpkt)| CbqClassOptions {
            bandwidth: cbq.bandwidth.or_else(|| cbq.maxburst.or(cbq.minburst).map(|_| bandwidth)),
            rate: Some(rate),
            allot: Some(allot),
            avpkt: Some(avpkt),
            ..cbq
        })
        .boxed()
}

/// As many bands as there may be, or as are strict and have a quantum.
fn ets() -> BoxedStrategy<EtsOptions> {
    let mend = |(mut ets, most): (EtsOptions, bool)| {
        ets.strict = ets.strict.map(|strict| strict % 9);
        ets.quanta.iter_mut().for_each(|quanta| quanta.0.truncate(8));
        if most || (ets.quanta.is_none() && ets.strict.unwrap_or(0) == 0) {
            ets.bands = Some(16);
        } else {
            (ets.bands, ets.priomap) = (None, None);
        }
        ets
    };
    (EtsOptions::random(), any::<bool>()).prop_map(mend).boxed()
}

fn qdisc_options() -> BoxedStrategy<QdiscOptions> {
    prop_oneof![
        1 => Random::random().prop_map(|typed| QdiscOptions::Pfifo(Box::new(typed))),
        1 => Random::random().prop_map(|typed| QdiscOptions::Bfifo(Box::new(typed))),
        1 => Random::random().prop_map(|typed| QdiscOptions::Mq(Box::new(typed))),
        6 => netem().prop_map(|netem| QdiscOptions::Netem(Box::new(netem))),
        2 => tbf().prop_map(|tbf| QdiscOptions::Tbf(Box::new(tbf))),
        3 => Random::random().prop_map(|fq| QdiscOptions::Fq(Box::new(fq))),
        1 => Random::random().prop_map(|typed| QdiscOptions::Htb(Box::new(typed))),
        1 => Random::random().prop_map(|typed| QdiscOptions::Hfsc(Box::new(typed))),
        1 => cbq().prop_map(|cbq| QdiscOptions::Cbq(Box::new(cbq))),
        1 => Random::random().prop_map(|typed| QdiscOptions::Prio(Box::new(typed))),
        1 => ets().prop_map(|ets| QdiscOptions::Ets(Box::new(ets))),
        1 => Random::random().prop_map(|typed| QdiscOptions::Drr(Box::new(typed))),
        1 => Random::random().prop_map(|typed| QdiscOptions::Multiq(Box::new(typed))),
        1 => Random::random().prop_map(|typed| QdiscOptions::PfifoFast(Box::new(typed))),
        1 => Random::random().prop_map(|typed| QdiscOptions::Noqueue(Box::new(typed))),
    ]
    .boxed()
}

fn class_options() -> BoxedStrategy<ClassOptions> {
    prop_oneof![
        htb_class().prop_map(|htb| ClassOptions::Htb(Box::new(htb))),
        hfsc_class().prop_map(|hfsc| ClassOptions::Hfsc(Box::new(hfsc))),
        cbq_class().prop_map(|cbq| ClassOptions::Cbq(Box::new(cbq))),
        Random::random().prop_map(|drr| ClassOptions::Drr(Box::new(drr))),
        Random::random().prop_map(|ets| ClassOptions::Ets(Box::new(ets))),
    ]
    .boxed()
}

/// Names that a device can have; words of the grammar among them.
pub(super) fn device() -> BoxedStrategy<String> {
    let any_name = "[a-zA-Z0-9$@_ä-][a-zA-Z0-9#.@_-]{0,12}";
    prop_oneof![4 => any_name, 1 => select(&["dev", "root", "netem", "tc", "-s"][..]).prop_map(String::from)]
        .boxed()
}

pub(super) fn place() -> BoxedStrategy<TcParent> {
    prop_oneof![Just(TcParent::Root), Random::random().prop_map(TcParent::Parent)].boxed()
}

fn handle() -> BoxedStrategy<crate::ClassId> {
    (1..=u16::MAX).prop_map(|major| crate::ClassId::new(major, 0)).boxed()
}

fn estimation() -> BoxedStrategy<Estimation> {
    let time = || Nanos::random().prop_map(|time| Nanos(time.0.max(1)));
    (time(), time()).prop_map(|(interval, time_constant)| Estimation { interval, time_constant }).boxed()
}

pub(super) fn verb() -> BoxedStrategy<TcVerb> {
    select(&[TcVerb::Add, TcVerb::Change, TcVerb::Replace, TcVerb::Delete][..]).boxed()
}

fn qdisc() -> BoxedStrategy<Command> {
    let options = (qdisc_options(), any::<bool>());
    (verb(), device(), place(), option::of(handle()), option::of(estimation()), options)
        .prop_map(|(verb, device, place, handle, est, (options, named))| {
            let by_handle = handle.is_some() && matches!(verb, TcVerb::Change | TcVerb::Delete);
            let place = if by_handle { Some(place).filter(|_| named) } else { Some(place) };
            let options =
                if verb == TcVerb::Delete { Some(options).filter(|_| named) } else { Some(options) };
            Command::Qdisc(QdiscCommand { verb, device, place, handle, est, options })
        })
        .boxed()
}

fn class() -> BoxedStrategy<Command> {
    let options = (class_options(), any::<bool>());
    (verb(), device(), Random::random(), Random::random(), option::of(estimation()), options)
        .prop_map(|(verb, device, parent, id, est, (options, named))| {
            let known = matches!(verb, TcVerb::Change | TcVerb::Delete);
            let parent = Some(parent).filter(|_| named || !known);
            let id = Some(id).filter(|_| named || known);
            let options =
                if verb == TcVerb::Delete { Some(options).filter(|_| named) } else { Some(options) };
            Command::Class(ClassCommand { verb, device, parent, id, est, options })
        })
        .boxed()
}

fn show() -> BoxedStrategy<Command> {
    let object = select(&[TcObject::Qdisc, TcObject::Class, TcObject::Filter][..]);
    (object, option::of(device()), option::of(place()), option::of(handle()), any::<[bool; 8]>())
        .prop_map(|(object, device, place, id, flags)| {
            let device =
                if object == TcObject::Qdisc { device } else { device.or_else(|| Some("lo".into())) };
            let id = id.filter(|_| object != TcObject::Filter);
            let [statistics, details, binary, pretty, numeric, ours, json, graph] = flags;
            let style = TcStyle { statistics, details, binary, pretty, numeric, ours };
            let is_filter = object == TcObject::Filter;
            let protocol = (is_filter && json).then_some(Protocol::IP);
            let prio = (is_filter && graph).then_some(7);
            Command::Show(ShowCommand { object, device, place, id, protocol, prio, style, json, graph })
        })
        .boxed()
}

fn command() -> BoxedStrategy<Command> {
    prop_oneof![4 => qdisc(), 2 => class(), 1 => filter(), 1 => show()].boxed()
}

/// Every word of the grammar, and values of each kind, right and wrong.
fn word() -> BoxedStrategy<String> {
    let words = "qdisc class filter q c f add change replace del show ls dev root parent handle classid est \
        protocol prio fw flower basic ip_proto tcp dst_port ip6 nexthdr+4 at and not cmp(u8 layer eq 6) hashkey \
        pfifo bfifo pfifo_fast noqueue multiq drr ets strict quanta mq netem tbf fq htb hfsc cbq u32 matchall \
        ingress clsact egress action police gact mirred redirect mirror drop pass pipe continue reclassify \
        conform-exceed drop/pass index netrand determ -s -d -j limit delay loss \
        random state gemodel ecn corrupt duplicate reorder gap rate slot packets bytes distribution normal seed \
        burst buffer latency mpu peakrate mtu overhead linklayer atm flow_limit pacing nopacing horizon \
        horizon_drop horizon_ weights priomap bands default r2q ceil quantum rt ls sc ul m1 d m2 umax dmax \
        bandwidth avpkt allot weight bounded isolated match ip dport src flowid p d 1: 1:10 ffff: 1:1 0 1 10 \
        1.5mbit 10ms 5kb 6000/16 25% 0.1% -14 0xffff 10.0.0.0/8 # tc quietcore 2>/dev/null";
    let words: Vec<&'static str> = words.split_whitespace().collect();
    prop_oneof![9 => select(words).prop_map(String::from), 1 => "\\PC{0,6}"].boxed()
}

/// What must hold for any line.
fn check(line: &str) -> Result<(), TestCaseError> {
    match parse(line) {
        Ok(command) => {
            let text = command.to_string();
            prop_assert_eq!(parse(&text), Ok(command), "`{}` from `{}`", text, line);
        }
        Err(error) => {
            prop_assert_eq!(error.line(), line);
            prop_assert!(line.get(error.position()).is_some(), "{:?} of {:?}", error.position(), line);
            let shown = error.to_string();
            prop_assert_eq!(shown.lines().count(), 3, "{}", shown);
            prop_assert!(shown.chars().all(|c| !c.is_control() || c == '\n' || c == '\t'), "{:?}", shown);
        }
    }
    Ok(())
}

/// Goal: a class below the root is written so. Method: lines with the root, with and without a name.
#[test]
fn classes_below_the_root_are_written_so() {
    for line in [
        "class add dev a parent root drr",
        "class add dev a parent root classid 1:1 htb rate 1mbit",
        "class replace dev a parent root drr",
        "class replace dev a classid 1:1 drr",
    ] {
        assert!(parse(line).is_ok(), "{line}");
        check(line).expect(line);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(2000) })]

    /// Goal: the text of a command is that command. Method: random ones of every sort.
    #[test]
    fn what_is_written_is_read_back(command in command()) {
        let text = command.to_string();
        prop_assert_eq!(parse(&text), Ok(command), "{}", text);
    }

    /// Goal: a line that is almost right does no harm. Method: a word replaced, removed, doubled, or cut.
    #[test]
    fn damaged_lines(command in command(), at in any::<prop::sample::Index>(), other in word(), how in 0..5) {
        let text = command.to_string();
        let mut words: Vec<&str> = text.split(' ').collect();
        let at = at.index(words.len());
        match how {
            0 => words[at] = &other,
            1 => drop(words.remove(at)),
            2 => words.insert(at, words[at]),
            3 => words.insert(at, &other),
            _ => words.truncate(at),
        }
        check(&words.join(" "))?;
    }

    /// Goal: words in any order do no harm. Method: those of the grammar, behind a plausible beginning.
    #[test]
    fn any_words(
        begin in select(&["", "qd add dev e root ", "cl add dev e parent 1: ", "f add dev e "][..]),
        kind in select(&["", "netem ", "tbf ", "fq ", "htb ", "hfsc ", "cbq ", "ets ", "drr ", "u32 "][..]),
        words in prop::collection::vec(word(), 0..12),
    ) {
        check(&(String::from(begin) + kind + &words.join(" ")))?;
    }

    /// Goal: no text does harm. Method: any characters, as a line and as a script.
    #[test]
    fn any_text(text in any::<String>()) {
        if !text.trim_end().contains(['\n', '\r']) {
            check(&text)?;
        }
        if let Err(error) = parse_script(&text) {
            prop_assert!(error.line() >= 1 && error.line() <= text.lines().count());
        }
    }

    /// Goal: a script is its lines. Method: random commands, comments and blanks between them.
    #[test]
    fn scripts(
        commands in prop::collection::vec((command(), 0..3_usize), 0..8),
        program in select(&["tc ", "quietcore tc ", ""][..]),
    ) {
        let (mut text, mut expected) = (String::new(), Vec::new());
        for (command, blanks) in commands {
            text += &"  # a comment\n\n".repeat(blanks);
            // A flag, or `tc`, in the place of the program is not what was meant.
            text += &alloc::format!("\t{program}{command} 2>/dev/null # done\n");
            expected.push((text.lines().count(), command));
        }
        prop_assert_eq!(parse_script(&text), Ok(expected));
    }
}

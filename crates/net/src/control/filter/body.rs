//! What filters of one priority decide by.

use super::super::action::{ActionChain, Asked};
use super::basic::Basics;
use super::error::TcFilterError;
use super::flower::Flowers;
use super::marks::Marks;
use super::outcome::{Outcome, ShownFilter, number};
use quietcore_live::Nanos;
use quietcore_qdisc::filter::{U32Decision, U32Rule, U32Tables};
use quietcore_qdisc::tc::{
    Classifier, FilterHandle, FilterOffload, MatchAllOptions, Protocol, U32Options, describe_match_all,
};
use quietcore_qdisc::{ClassId, Packet};

/// Filters of one priority.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::control) enum FilterBody {
    /// Its rules are in the tables of the discipline.
    U32,
    /// Every packet.
    MatchAll(Option<MatchAll>),
    Fw(Marks),
    Flower(Flowers),
    Basic(Basics),
}

/// `matchall`, of which a priority has one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::control) struct MatchAll {
    handle: u32,
    flow: Option<ClassId>,
    offload: FilterOffload,
    actions: ActionChain,
    /// Packets that it saw.
    asked: u64,
}

/// What a line says of a filter: what it looks at, and what its actions are.
#[derive(Clone, Copy)]
pub(super) struct ToldFilter<'a> {
    pub(super) classifier: &'a Classifier,
    pub(super) actions: &'a ActionChain,
}

impl FilterBody {
    pub(in crate::control) const fn kind(&self) -> &'static str {
        match self {
            Self::U32 => "u32",
            Self::MatchAll(_) => "matchall",
            Self::Fw(_) => "fw",
            Self::Flower(_) => "flower",
            Self::Basic(_) => "basic",
        }
    }

    /// What it says of a packet of its protocol.
    pub(super) fn ask(
        &mut self,
        packet: &impl Packet,
        asked: &mut Asked,
        prio: u16,
        tables: &mut U32Tables<ActionChain>,
    ) -> Outcome {
        match self {
            Self::U32 => {
                let said = tables.search_with(prio, packet, |flow, actions| decision(flow, actions, asked));
                said.unwrap_or(Outcome::Next)
            }
            Self::MatchAll(None) => Outcome::Next,
            Self::MatchAll(Some(all)) if all.offload == FilterOffload::SkipSoftware => Outcome::Next,
            Self::MatchAll(Some(all)) => {
                all.asked += 1;
                Outcome::of(all.flow, &all.actions, asked)
            }
            Self::Fw(marks) => marks.ask(packet, asked),
            Self::Flower(flowers) => flowers.ask(packet, asked),
            Self::Basic(basics) => basics.ask(packet, asked),
        }
    }

    /// Whether it sends packets to `class`; the tables of `u32` know of their own.
    pub(super) fn sends_to(&self, class: ClassId) -> bool {
        match self {
            Self::U32 => false,
            Self::MatchAll(all) => all.as_ref().is_some_and(|all| all.flow == Some(class)),
            Self::Fw(marks) => marks.sends_to(class),
            Self::Flower(flowers) => flowers.sends_to(class),
            Self::Basic(basics) => basics.sends_to(class),
        }
    }

    /// One of that kind without filters.
    pub(super) fn empty(
        classifier: &Classifier,
        prio: u16,
        tables: &mut U32Tables<ActionChain>,
    ) -> Result<Self, TcFilterError> {
        Ok(match classifier {
            Classifier::U32(_) => {
                tables.add_root(prio)?;
                Self::U32
            }
            Classifier::MatchAll(_) => Self::MatchAll(None),
            Classifier::Fw(_) => Self::Fw(Marks::default()),
            Classifier::Flower(_) => Self::Flower(Flowers::default()),
            Classifier::Basic(_) => Self::Basic(Basics::default()),
            other => return Err(TcFilterError::UnknownKind(other.kind())),
        })
    }

    /// Puts one more filter into the priority; its kind is right.
    pub(super) fn add(
        &mut self,
        ToldFilter { classifier, actions }: ToldFilter<'_>,
        handle: Option<FilterHandle>,
        prio: u16,
        tables: &mut U32Tables<ActionChain>,
    ) -> Result<(), TcFilterError> {
        match (self, classifier) {
            (Self::U32, Classifier::U32(options)) => add_u32(options, actions, handle, prio, tables),
            (Self::Fw(marks), Classifier::Fw(options)) => marks.add(options, actions, handle),
            (Self::Flower(flowers), Classifier::Flower(options)) => flowers.add(options, actions, handle),
            (Self::Basic(basics), Classifier::Basic(options)) => basics.add(options, actions, handle),
            (Self::MatchAll(all @ None), Classifier::MatchAll(options)) => {
                let MatchAllOptions { flow, offload, .. } = *options;
                let handle = number(handle).filter(|handle| *handle != 0).unwrap_or(1);
                if flow.is_none() && actions.is_empty() {
                    return Err(TcFilterError::NoClass);
                }
                *all = Some(MatchAll { handle, flow, offload, actions: actions.clone(), asked: 0 });
                Ok(())
            }
            (body, _) => Err(TcFilterError::OnlyOne(body.kind())),
        }
    }

    /// Whether it has a filter of that handle.
    pub(super) fn holds(&self, handle: FilterHandle, prio: u16, tables: &U32Tables<ActionChain>) -> bool {
        match (self, handle) {
            (Self::U32, FilterHandle::Rule(address)) => tables.holds(prio, address),
            (Self::MatchAll(Some(all)), FilterHandle::Number(number)) => all.handle == number,
            (Self::Fw(marks), handle) => marks.holds(handle),
            (Self::Flower(flowers), handle) => flowers.holds(handle),
            (Self::Basic(basics), handle) => basics.holds(handle),
            _ => false,
        }
    }

    /// Changes the filter of that handle, which is there.
    pub(super) fn change(
        &mut self,
        ToldFilter { classifier, actions }: ToldFilter<'_>,
        handle: FilterHandle,
        prio: u16,
        tables: &mut U32Tables<ActionChain>,
    ) -> Result<(), TcFilterError> {
        match (self, classifier, handle) {
            (Self::U32, Classifier::U32(options), FilterHandle::Rule(address)) => {
                if address.rule == 0 && address.bucket == 0 {
                    return Err(TcFilterError::TableIsNoRule(address));
                }
                let link = options.link.map(|link| link.table);
                tables.change_rule(prio, address, link, options.flow)?;
                Ok(tables.change_actions(prio, address, actions.clone())?)
            }
            (Self::Fw(marks), Classifier::Fw(options), handle) => {
                marks.change(options, actions, handle);
                Ok(())
            }
            (Self::Flower(flowers), Classifier::Flower(options), handle) => {
                flowers.change(options, actions, handle)
            }
            (Self::Basic(basics), Classifier::Basic(options), handle) => {
                basics.change(options, actions, handle);
                Ok(())
            }
            (body, ..) => Err(TcFilterError::OnlyOne(body.kind())),
        }
    }

    /// Removes the filter of that handle; says whether it was the last one.
    pub(super) fn remove(
        &mut self,
        handle: FilterHandle,
        prio: u16,
        tables: &mut U32Tables<ActionChain>,
    ) -> Result<bool, TcFilterError> {
        match (self, handle) {
            (Self::U32, FilterHandle::Rule(address)) if tables.holds(prio, address) => {
                tables.remove(prio, address)?;
                Ok(tables.is_useless(prio))
            }
            (Self::MatchAll(Some(all)), FilterHandle::Number(number)) if all.handle == number => Ok(true),
            (Self::Fw(marks), handle) => marks.remove(handle),
            (Self::Flower(flowers), handle) => flowers.remove(handle),
            (Self::Basic(basics), handle) => basics.remove(handle),
            _ => Err(TcFilterError::UnknownFilter(handle)),
        }
    }

    /// What `filter show` says, line by line.
    pub(in crate::control) fn shown(
        &self,
        protocol: Protocol,
        prio: u16,
        tables: &U32Tables<ActionChain>,
        now: Nanos,
    ) -> Vec<ShownFilter> {
        match self {
            Self::U32 => shown_tables(protocol, prio, tables, now),
            Self::Fw(marks) => marks.shown(now),
            Self::Flower(flowers) => flowers.shown(protocol, now),
            Self::Basic(basics) => basics.shown(now),
            Self::MatchAll(None) => Vec::new(),
            Self::MatchAll(Some(MatchAll { handle, flow, offload, actions, asked })) => {
                let mut options = describe_match_all(*handle, *flow, *offload, *asked);
                actions.describe(now, &mut options);
                vec![ShownFilter { handle: Some(FilterHandle::Number(*handle)), flow: *flow, options }]
            }
        }
    }
}

/// What a rule of which all is true says of a packet.
fn decision(flow: Option<ClassId>, actions: &ActionChain, asked: &mut Asked) -> U32Decision<Outcome> {
    if flow.is_none() && actions.is_empty() {
        return U32Decision::NoEnd;
    }
    Outcome::or_next(flow, actions, asked).map_or(U32Decision::GoOn, U32Decision::End)
}

fn shown_tables(
    protocol: Protocol,
    prio: u16,
    tables: &U32Tables<ActionChain>,
    now: Nanos,
) -> Vec<ShownFilter> {
    let mut shown = Vec::new();
    for table in tables.of(prio) {
        shown.push(ShownFilter { handle: None, flow: None, options: table.describe() });
        for (bucket, rules) in table.buckets.iter().enumerate() {
            for rule in rules {
                let mut options = table.describe_rule(bucket, rule, !rule.actions.is_empty(), protocol);
                rule.actions.describe(now, &mut options);
                let handle = table.address(bucket, rule).map(FilterHandle::Rule);
                shown.push(ShownFilter { handle, flow: rule.flow, options });
            }
        }
    }
    shown
}

/// Makes a table or a rule; neither if the line says nothing.
fn add_u32(
    options: &U32Options,
    actions: &ActionChain,
    handle: Option<FilterHandle>,
    prio: u16,
    tables: &mut U32Tables<ActionChain>,
) -> Result<(), TcFilterError> {
    let mut address = match handle {
        Some(FilterHandle::Rule(address)) => Some(address),
        _ => None,
    };
    if let Some(order) = options.order {
        address.get_or_insert_default().rule = order;
    }
    if let Some(divisor) = options.divisor {
        if let Some(address) = address.filter(|address| address.rule != 0 || address.bucket != 0) {
            return Err(TcFilterError::NoTable(address));
        }
        tables.add_table(address.map(|address| address.table), prio, divisor)?;
        return Ok(());
    }
    let Some(selector) = &options.selector else {
        let says_nothing = U32Options { offload: options.offload, ..U32Options::default() } == *options;
        return if says_nothing && handle.is_none() { Ok(()) } else { Err(TcFilterError::NoSelector) };
    };
    if let Some(link) = options.link.filter(|link| link.bucket != 0) {
        return Err(TcFilterError::NoLink(link));
    }
    let link = options.link.map(|link| link.table);
    let mut rule = U32Rule::new(selector.clone(), link, options.flow);
    rule.offload = options.offload;
    tables.add_rule(prio, options.table, address, rule.with_actions(actions.clone()))?;
    Ok(())
}

//! What filters of one priority decide by.

use super::basic::Basics;
use super::error::TcFilterError;
use super::flower::Flowers;
use super::marks::Marks;
use super::outcome::{Outcome, ShownFilter, number};
use quietcore_qdisc::filter::{U32Rule, U32Tables};
use quietcore_qdisc::tc::{
    Classifier, FilterHandle, FilterOffload, Protocol, U32Options, describe_match_all,
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
    /// Packets that it saw.
    asked: u64,
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
    pub(super) fn ask(&mut self, packet: &impl Packet, prio: u16, tables: &mut U32Tables) -> Outcome {
        match self {
            Self::U32 => tables.search(prio, packet.network_bytes(), packet.mark()).into(),
            Self::MatchAll(None) => Outcome::Next,
            Self::MatchAll(Some(all)) if all.offload == FilterOffload::SkipSoftware => Outcome::Next,
            Self::MatchAll(Some(all)) => {
                all.asked += 1;
                Outcome::For(all.flow.unwrap_or(ClassId(0)))
            }
            Self::Fw(marks) => marks.ask(packet),
            Self::Flower(flowers) => flowers.ask(packet),
            Self::Basic(basics) => basics.ask(packet),
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
        tables: &mut U32Tables,
    ) -> Result<Self, TcFilterError> {
        Ok(match classifier {
            Classifier::U32(_) => {
                tables.add_root(prio)?;
                Self::U32
            }
            Classifier::MatchAll { .. } => Self::MatchAll(None),
            Classifier::Fw(_) => Self::Fw(Marks::default()),
            Classifier::Flower(_) => Self::Flower(Flowers::default()),
            Classifier::Basic(_) => Self::Basic(Basics::default()),
            other => return Err(TcFilterError::UnknownKind(other.kind())),
        })
    }

    /// Puts one more filter into the priority; its kind is right.
    pub(super) fn add(
        &mut self,
        classifier: &Classifier,
        handle: Option<FilterHandle>,
        prio: u16,
        tables: &mut U32Tables,
    ) -> Result<(), TcFilterError> {
        match (self, classifier) {
            (Self::U32, Classifier::U32(options)) => add_u32(options, handle, prio, tables),
            (Self::Fw(marks), Classifier::Fw(options)) => marks.add(options, handle),
            (Self::Flower(flowers), Classifier::Flower(options)) => flowers.add(options, handle),
            (Self::Basic(basics), Classifier::Basic(options)) => basics.add(options, handle),
            (Self::MatchAll(all @ None), Classifier::MatchAll { flow, offload }) => {
                let handle = number(handle).filter(|handle| *handle != 0).unwrap_or(1);
                let flow = Some(flow.ok_or(TcFilterError::NoClass)?);
                *all = Some(MatchAll { handle, flow, offload: *offload, asked: 0 });
                Ok(())
            }
            (body, _) => Err(TcFilterError::OnlyOne(body.kind())),
        }
    }

    /// Whether it has a filter of that handle.
    pub(super) fn holds(&self, handle: FilterHandle, prio: u16, tables: &U32Tables) -> bool {
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
        classifier: &Classifier,
        handle: FilterHandle,
        prio: u16,
        tables: &mut U32Tables,
    ) -> Result<(), TcFilterError> {
        match (self, classifier, handle) {
            (Self::U32, Classifier::U32(options), FilterHandle::Rule(address)) => {
                if address.rule == 0 && address.bucket == 0 {
                    return Err(TcFilterError::TableIsNoRule(address));
                }
                let link = options.link.map(|link| link.table);
                Ok(tables.change_rule(prio, address, link, options.flow)?)
            }
            (Self::Fw(marks), Classifier::Fw(options), handle) => {
                marks.change(options, handle);
                Ok(())
            }
            (Self::Flower(flowers), Classifier::Flower(options), handle) => flowers.change(options, handle),
            (Self::Basic(basics), Classifier::Basic(options), handle) => {
                basics.change(options, handle);
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
        tables: &mut U32Tables,
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
        tables: &U32Tables,
    ) -> Vec<ShownFilter> {
        match self {
            Self::U32 => shown_tables(protocol, prio, tables),
            Self::Fw(marks) => marks.shown(),
            Self::Flower(flowers) => flowers.shown(protocol),
            Self::Basic(basics) => basics.shown(),
            Self::MatchAll(None) => Vec::new(),
            Self::MatchAll(Some(MatchAll { handle, flow, offload, asked })) => vec![ShownFilter {
                handle: Some(FilterHandle::Number(*handle)),
                flow: *flow,
                options: describe_match_all(*handle, *flow, *offload, *asked),
            }],
        }
    }
}

fn shown_tables(protocol: Protocol, prio: u16, tables: &U32Tables) -> Vec<ShownFilter> {
    let mut shown = Vec::new();
    for table in tables.of(prio) {
        shown.push(ShownFilter { handle: None, flow: None, options: table.describe() });
        for (bucket, rules) in table.buckets.iter().enumerate() {
            for rule in rules {
                shown.push(ShownFilter {
                    handle: table.address(bucket, rule).map(FilterHandle::Rule),
                    flow: rule.flow,
                    options: table.describe_rule(bucket, rule, protocol),
                });
            }
        }
    }
    shown
}

/// Makes a table or a rule; neither if the line says nothing.
fn add_u32(
    options: &U32Options,
    handle: Option<FilterHandle>,
    prio: u16,
    tables: &mut U32Tables,
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
    tables.add_rule(prio, options.table, address, rule)?;
    Ok(())
}

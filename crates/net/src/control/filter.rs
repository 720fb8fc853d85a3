//! Filters of one discipline: which class a packet is for.
//!
//! They belong to the discipline or to one of its classes; a class without a queue hands packets on by its
//! own. Lower priorities are asked first, equal ones in the order in which they were added; of a `u32` all
//! matches have to be true. They are under the lock of the queue, as the discipline is.
//!
//! Source: Linux net/sched/cls_api.c, cls_u32.c, cls_matchall.c, by behaviour. Deviation: what no rule of
//! ours can tell (protocols other than IPv4) is refused, not ignored.

use super::TcControlError;
use quietcore_qdisc::tc::{Classifier, FieldMatch, Protocol};
use quietcore_qdisc::{ClassId, Packet};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;

/// `all` and `ip`.
const ALL: Protocol = Protocol(3);
const IP: Protocol = Protocol(0x0800);
/// What a filter without a priority gets, if it is the first.
const AUTO_PRIO: u16 = 0xc000;
/// Where the kernel's numbers of hash tables, and of rules in one, begin.
const FIRST_NUMBER: u16 = 0x800;

/// One filter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Filter {
    pub(super) prio: u16,
    pub(super) protocol: Protocol,
    pub(super) kind: FilterKind,
    pub(super) flow: ClassId,
    /// The kernel's `800:` and `800`: of its priority, and in it.
    pub(super) table: u16,
    pub(super) number: u16,
    /// Packets that were held against it, and for how many all was true.
    pub(super) asked: u64,
    pub(super) met: u64,
    /// For how many each rule of a `u32` was.
    pub(super) rules_met: Vec<u64>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum FilterKind {
    U32(Vec<FieldMatch>),
    MatchAll,
}

impl FilterKind {
    pub(super) const fn name(&self) -> &'static str {
        match self {
            Self::U32(_) => "u32",
            Self::MatchAll => "matchall",
        }
    }
}

impl Filter {
    /// Whether it is for a packet; counts that it was asked.
    fn ask(&mut self, packet: &impl Packet) -> bool {
        let any = FieldMatch::Source { address: Ipv4Addr::UNSPECIFIED, mask: Ipv4Addr::UNSPECIFIED };
        self.asked += 1;
        let is_met = match &self.kind {
            FilterKind::U32(rules) => rules.iter().zip(&mut self.rules_met).all(|(rule, met)| {
                let is_met = packet.matches(rule);
                *met += u64::from(is_met);
                is_met
            }),
            // An address that may be any is one of IPv4.
            FilterKind::MatchAll => self.protocol == ALL || packet.matches(&any),
        };
        self.met += u64::from(is_met);
        is_met
    }
}

/// All filters of a discipline.
#[derive(Debug, Default)]
pub(super) struct Filters {
    /// By whose they are: the discipline's own with the minor number 0.
    of: BTreeMap<ClassId, Vec<Filter>>,
}

/// What is to be added.
pub(super) struct NewFilter {
    pub(super) protocol: Protocol,
    pub(super) prio: Option<u16>,
    pub(super) kind: FilterKind,
    pub(super) flow: ClassId,
}

impl NewFilter {
    /// What a line says, if it can be.
    pub(super) fn new(
        protocol: Option<Protocol>,
        prio: Option<u16>,
        classifier: &Classifier,
    ) -> Result<Self, TcControlError> {
        let (kind, flow) = match classifier {
            Classifier::U32 { matches, flow } => (FilterKind::U32(matches.clone()), *flow),
            Classifier::MatchAll { flow } => (FilterKind::MatchAll, *flow),
            other => {
                let what = format!("a filter of the kind of `{other}` is not known here");
                return Err(TcControlError::not_possible(what, "use u32 or matchall"));
            }
        };
        let of = kind.name();
        let Some(flow) = flow else {
            return Err(TcControlError::setting(of, "flowid", "", "name the class that it is for"));
        };
        let protocol = protocol.unwrap_or(ALL);
        if protocol != ALL && protocol != IP {
            let remedy = "only `ip` and `all` can be told apart here";
            return Err(TcControlError::setting(of, "protocol", protocol, remedy));
        }
        if prio == Some(0) {
            return Err(TcControlError::setting(of, "prio", 0, "priorities begin at 1"));
        }
        Ok(Self { protocol, prio, kind, flow })
    }
}

impl Filters {
    /// Where the first filter of `parent` that is for a packet sends it.
    pub(super) fn first(&mut self, parent: ClassId, packet: &impl Packet) -> Option<ClassId> {
        let mut filters = self.of.get_mut(&parent)?.iter_mut();
        filters.find_map(|filter| filter.ask(packet).then_some(filter.flow))
    }

    /// Those of `parent`, as they are asked.
    pub(super) fn of(&self, parent: ClassId) -> &[Filter] {
        self.of.get(&parent).map_or(&[], Vec::as_slice)
    }

    /// Whether a filter names a class, or is of one.
    pub(super) fn hold(&self, class: ClassId) -> bool {
        !self.of(class).is_empty() || self.of.values().flatten().any(|filter| filter.flow == class)
    }

    pub(super) fn add(&mut self, parent: ClassId, wanted: NewFilter) -> Result<(), TcControlError> {
        let filters = self.of.entry(parent).or_default();
        let NewFilter { protocol, prio, kind, flow } = wanted;
        // As the kernel: before all others.
        let auto = filters.first().map_or(AUTO_PRIO, |first| first.prio - 1);
        let prio = prio.unwrap_or(auto);
        if prio == 0 {
            let what = format!("no priority is left before the first filter of {parent}");
            return Err(TcControlError::not_possible(what, "name one with `prio`"));
        }
        let like = filters.iter().filter(|filter| filter.prio == prio);
        let (mut table, mut number) = (None, FIRST_NUMBER);
        for other in like {
            let remedy = "one priority has one kind and one protocol: name another `prio`";
            if other.kind.name() != kind.name() || other.protocol != protocol {
                let what =
                    format!("priority {prio} of {parent} is {} of {}", other.kind.name(), other.protocol);
                return Err(TcControlError::not_possible(what, remedy));
            }
            if kind == FilterKind::MatchAll {
                let what = format!("File exists: priority {prio} of {parent} has its matchall");
                return Err(TcControlError::not_possible(what, "`del` it first, or name another `prio`"));
            }
            (table, number) = (Some(other.table), number.max(other.number.saturating_add(1)));
        }
        let next = filters.iter().map(|filter| filter.table.saturating_add(1)).max().unwrap_or(FIRST_NUMBER);
        let table = table.unwrap_or(next);
        let behind = filters.partition_point(|filter| filter.prio <= prio);
        let rules_met = if let FilterKind::U32(rules) = &kind { vec![0; rules.len()] } else { Vec::new() };
        let (asked, met) = (0, 0);
        filters.insert(behind, Filter { prio, protocol, kind, flow, table, number, asked, met, rules_met });
        Ok(())
    }

    /// Removes those of a priority, or all of `parent`; of one kind if that is told.
    pub(super) fn remove(
        &mut self,
        parent: ClassId,
        prio: Option<u16>,
        kind: Option<&'static str>,
    ) -> Result<(), TcControlError> {
        let mut known: Vec<u16> = self.of(parent).iter().map(|filter| filter.prio).collect();
        known.dedup();
        let is_meant = |filter: &Filter| {
            prio.is_none_or(|prio| filter.prio == prio) && kind.is_none_or(|kind| filter.kind.name() == kind)
        };
        let Some(filters) = self.of.get_mut(&parent).filter(|filters| filters.iter().any(is_meant)) else {
            return Err(TcControlError::UnknownFilter { parent, known });
        };
        filters.retain(|filter| !is_meant(filter));
        if filters.is_empty() {
            self.of.remove(&parent);
        }
        Ok(())
    }
}

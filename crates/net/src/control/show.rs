//! `qdisc show`, `class show`, `filter show`: reports of what there is.

use super::body::Body;
use super::node::{Estimate, Node, node};
use super::qdiscs::root_handle;
use super::report::{Answer, ClassReport, FilterReport, QdiscReport, QueueReport, RateReport, Shown};
use super::tree::{Entry, Root};
use super::{ControlError, State, class_settings, filter, text};
use core::any::Any;
use core::fmt::Debug;
use quietcore_qdisc::tc::{ClassOptions, Object, Place, QdiscOptions, ShowCommand};
use quietcore_qdisc::{ClassId, Fifo, Limit, Packet, Qdisc};

fn rate(estimate: Option<&Estimate>) -> Option<RateReport> {
    estimate.map(|estimate| RateReport {
        bits_per_second: estimate.estimator.bits_per_second(),
        packets_per_second: estimate.estimator.packets_per_second(),
    })
}

fn limit_text(limit: Limit) -> String {
    match limit {
        Limit::Packets(packets) => format!("limit {packets}p"),
        Limit::Bytes(bytes) => format!("limit {}", text::size(bytes)),
    }
}

/// Whether something below `parent` is asked for.
fn is_below(asked: Option<Place>, parent: Option<ClassId>) -> bool {
    match asked {
        None => true,
        Some(Place::Root) => parent.is_none(),
        Some(Place::Parent(asked)) => parent == Some(asked),
    }
}

impl<P: Packet + Debug + Send> State<P> {
    pub(super) fn show(&mut self, command: &ShowCommand) -> Result<Answer, ControlError> {
        let (statistics, details) = (command.statistics, command.details);
        let shown = Shown { statistics, details, device: command.device.is_none() };
        if let Some(device) = &command.device {
            self.entry(device)?;
        }
        let is_named = |name: &str| command.device.as_ref().is_none_or(|device| device == name);
        let devices = self.devices.iter().filter(|(name, _)| is_named(name));
        match command.object {
            Object::Qdisc => {
                let mut reports = Vec::new();
                devices.for_each(|(name, entry)| entry.show_qdiscs(name, shown, &mut reports));
                reports.retain(|report| {
                    is_below(command.place, report.parent) && command.id.is_none_or(|id| id == report.handle)
                });
                Ok(Answer::Qdiscs(reports))
            }
            Object::Class => {
                let mut reports = Vec::new();
                devices.for_each(|(name, entry)| entry.show_classes(name, shown, &mut reports));
                reports.retain(|report| {
                    let own = command.place == Some(Place::Parent(ClassId::new(report.id.major(), 0)));
                    let below = is_below(command.place, report.parent) || (own && report.parent.is_none());
                    below && command.id.is_none_or(|id| id == report.id)
                });
                Ok(Answer::Classes(reports))
            }
            Object::Filter => {
                let mut reports = Vec::new();
                for (name, entry) in devices {
                    entry.show_filters(name, (command.place, shown), &mut reports)?;
                }
                Ok(Answer::Filters(reports))
            }
        }
    }
}

impl<P: Packet + Debug + Send> Entry<P> {
    fn show_qdiscs(&self, device: &str, shown: Shown, reports: &mut Vec<QdiscReport>) {
        let queues = match &self.root {
            Root::Mq { handle, estimate } => {
                reports.push(QdiscReport {
                    kind: "mq",
                    handle: ClassId::new(*handle, 0),
                    parent: None,
                    device: device.into(),
                    options: String::new(),
                    details: String::new(),
                    statistics: self.queues_statistics(),
                    rate: rate(estimate.as_ref()),
                    notes: Vec::new(),
                    queue: None,
                    shown,
                });
                self.device.queues()
            }
            Root::One => 1,
        };
        for number in 0..queues {
            let from = reports.len();
            let top = self.top(number);
            self.device.look(number, |qdisc| match node(qdisc) {
                Some(node) => node.walk(top, &mut |place, node| {
                    reports.push(node.report(place, device, shown));
                }),
                None => reports.push(plain(qdisc, (top, device), shown)),
            });
            let statistics = self.device.statistics(number);
            if let Some(root) = reports.get_mut(from) {
                root.statistics = statistics.qdisc;
                root.queue = Some(QueueReport { number, statistics });
            }
        }
    }

    fn show_classes(&self, device: &str, shown: Shown, reports: &mut Vec<ClassReport>) {
        if let Some(handle) = self.mq() {
            for number in 0..self.device.queues() {
                let leaf = self.device.look(number, |qdisc| node(qdisc).map(Node::id));
                reports.push(ClassReport {
                    kind: "mq",
                    id: self.top(number).unwrap_or(ClassId::new(handle, 0)),
                    parent: None,
                    device: device.into(),
                    leaf,
                    options: String::new(),
                    details: String::new(),
                    statistics: self.device.statistics(number).qdisc,
                    rate: None,
                    notes: Vec::new(),
                    shown,
                });
            }
        }
        self.each(|_, _, node| node.report_classes(device, shown, reports));
    }

    fn show_filters(
        &self,
        device: &str,
        (place, shown): (Option<Place>, Shown),
        reports: &mut Vec<FilterReport>,
    ) -> Result<(), ControlError> {
        let Some(parent) = root_handle(self, place).filter(|parent| self.mq() != Some(parent.major())) else {
            return Ok(());
        };
        self.look(parent.major(), |node| {
            let report = |filter: &filter::Filter| FilterReport {
                parent,
                device: device.into(),
                protocol: filter.protocol,
                prio: filter.prio,
                kind: filter.kind.name(),
                flow: filter.flow,
                rules: match &filter.kind {
                    filter::Kind::U32(rules) => rules.clone(),
                    filter::Kind::MatchAll => Vec::new(),
                },
                table: filter.table,
                number: filter.number,
                shown,
            };
            reports.extend(node.filters.of(parent).iter().map(report));
        })
    }
}

/// A discipline that `Control` did not make.
fn plain<P: Packet + Debug + Send>(
    qdisc: &dyn Qdisc<P>,
    (parent, device): (Option<ClassId>, &str),
    shown: Shown,
) -> QdiscReport {
    let fifo = (qdisc as &dyn Any).downcast_ref::<Fifo<P>>();
    QdiscReport {
        kind: qdisc.kind(),
        handle: ClassId::new(0, 0),
        parent,
        device: device.into(),
        options: fifo.map_or_else(String::new, |fifo| limit_text(fifo.limit())),
        details: String::new(),
        statistics: qdisc.statistics(),
        rate: None,
        notes: Vec::new(),
        queue: None,
        shown,
    }
}

impl<P: Packet + Debug + Send> Node<P> {
    fn report(&self, parent: Option<ClassId>, device: &str, shown: Shown) -> QdiscReport {
        let (options, notes) = self.describe();
        QdiscReport {
            kind: self.options.kind(),
            handle: self.id(),
            parent,
            device: device.into(),
            options,
            details: self.details(),
            statistics: self.statistics(),
            rate: rate(self.estimate.as_ref()),
            notes,
            queue: None,
            shown,
        }
    }

    /// What `-d` adds.
    fn details(&self) -> String {
        match &self.options {
            QdiscOptions::Netem(typed) if typed.seed.is_none() => format!("seed {}", self.seed),
            _ => String::new(),
        }
    }

    /// What it was told, and what it has counted besides what all do.
    fn describe(&self) -> (String, Vec<String>) {
        let typed = &self.options;
        match (&self.body, typed) {
            (Body::Fifo(fifo), _) => (limit_text(fifo.limit()), Vec::new()),
            (Body::Netem(netem), QdiscOptions::Netem(typed)) => {
                let marked = netem.marked();
                let notes = if typed.ecn.is_some() { vec![format!("ecn_mark {marked}")] } else { Vec::new() };
                (text::netem(typed), notes)
            }
            (Body::Tbf(tbf), _) => (text::tbf(tbf.settings()), Vec::new()),
            (Body::Fq(fq), _) => {
                let told = fq.fq_statistics();
                let flows = format!(
                    "flows {} (inactive {} throttled {})",
                    told.flows, told.inactive_flows, told.throttled_flows
                );
                let counts = format!(
                    "gc {} fastpath {} throttled {} latency {} ce_mark {} flows_plimit {} horizon_drops {} \
                     horizon_caps {}",
                    told.collected_flows,
                    told.fast_path_packets,
                    told.throttled,
                    text::time(told.unthrottle_latency),
                    told.ce_marks,
                    told.flow_limit_drops,
                    told.horizon_drops,
                    told.horizon_caps
                );
                (text::fq(fq.settings()), vec![flows, counts])
            }
            (Body::Htb(htb), _) => {
                let told = htb.settings();
                let default = match told.default_class {
                    0 => "0".into(),
                    minor => format!("{minor:#x}"),
                };
                let options = format!(
                    "r2q {} default {default} direct_packets_stat {} direct_qlen {}",
                    told.r2q,
                    htb.direct_packets(),
                    told.direct_qlen
                );
                (options, Vec::new())
            }
            (Body::Hfsc(_), QdiscOptions::Hfsc(typed)) => {
                let default = typed.default.map(|minor| format!("default {minor}"));
                (default.unwrap_or_default(), Vec::new())
            }
            (Body::Cbq(cbq), _) => (text::cbq(cbq.settings().bandwidth.get()), Vec::new()),
            _ => (String::new(), Vec::new()),
        }
    }

    fn report_classes(&self, device: &str, shown: Shown, reports: &mut Vec<ClassReport>) {
        let mut names = self.class_names();
        match &self.body {
            // Those that nobody made.
            Body::Cbq(_) => names.insert(0, self.id()),
            Body::Netem(_) | Body::Tbf(_) => names = self.slots(),
            _ => {}
        }
        for id in names {
            let class = self.classes.get(&id);
            let (options, details, notes) = self.describe_class(id);
            reports.push(ClassReport {
                kind: self.options.kind(),
                id,
                parent: self.shown_parent(id),
                device: device.into(),
                leaf: self.child(id).map(Self::id),
                options,
                details,
                statistics: self.class_statistics(id).unwrap_or_default(),
                rate: rate(class.and_then(|class| class.estimate.as_ref())),
                notes,
                shown,
            });
        }
    }

    /// What `tc` says a class is in: htb's first ones are in the root, other kinds' in the discipline.
    fn shown_parent(&self, id: ClassId) -> Option<ClassId> {
        let above = self.classes.get(&id).and_then(|class| class.parent);
        let is_top = matches!(self.body, Body::Htb(_)) || id == self.id();
        above.or((!is_top).then_some(self.id()))
    }

    /// What a class was told, what `-d` adds, and what it has counted besides what all do.
    fn describe_class(&self, id: ClassId) -> (String, String, Vec<String>) {
        let nothing = (String::new(), String::new(), Vec::new());
        let options = self.classes.get(&id).map(|class| &class.options);
        match (&self.body, options) {
            (Body::Htb(htb), Some(ClassOptions::Htb(typed))) => {
                let (Ok(told), Some(counted)) = (class_settings::htb_class(typed), htb.class(id)) else {
                    return nothing;
                };
                let leaf = htb.is_leaf(id).then_some(counted.quantum);
                let (text, mut details) = text::htb_class(typed, &told, leaf);
                details += &format!(" level {}", counted.level);
                let mut notes = vec![
                    format!(
                        "lended: {} borrowed: {} giants: {}",
                        counted.lends, counted.borrows, counted.giants
                    ),
                    format!("tokens: {} ctokens: {}", ticks(counted.tokens), ticks(counted.ctokens)),
                ];
                notes.extend(counted.quantum_warning.map(|warning| format!("[quietcore] {warning}")));
                (text, details.trim_start().into(), notes)
            }
            (Body::Hfsc(hfsc), Some(ClassOptions::Hfsc(typed))) => {
                let counted = hfsc.class_statistics(id).unwrap_or_default();
                let work = format!(
                    "period {} work {} bytes rtwork {} bytes level {}",
                    counted.periods, counted.queue.sent_bytes, counted.realtime_bytes, counted.level
                );
                (text::hfsc_class(typed), String::new(), vec![work])
            }
            (Body::Cbq(cbq), options) => {
                let text = match options {
                    Some(ClassOptions::Cbq(typed)) => text::cbq_class(typed),
                    _ => text::cbq(cbq.settings().bandwidth.get()),
                };
                let counted = cbq.class(id).unwrap_or_default();
                let note = format!(
                    "borrowed {} overactions {} avgidle {}",
                    counted.borrows, counted.overactions, counted.average_idle
                );
                (text, String::new(), vec![note])
            }
            _ => nothing,
        }
    }
}

/// The kernel's ticks, of 64 ns.
const fn ticks(nanos: i64) -> i64 {
    nanos / 64
}

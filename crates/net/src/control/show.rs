//! `qdisc show`, `class show`, `filter show`: reports of what there is.

use super::TcControlError;
use super::clsact::{ClsactEntry, ClsactKind};
use super::filter::{FilterBlock, FilterPriority, ShownFilter};
use super::filters::filter_parent;
use super::node::{Estimate, QdiscNode, node};
use super::order::qdisc_bucket;
use super::report::{Answer, ClassReport, FilterReport, QdiscReport, QueueReport, RateReport, ShowOptions};
use super::state::ControlState;
use super::tree::{DeviceEntry, DeviceRoot};
use core::any::Any;
use core::cmp::Reverse;
use core::fmt::Debug;
use quietcore_live::Nanos;
use quietcore_qdisc::tc::{CLSACT, SeedUse, ShowCommand, TcDescription, TcObject, TcParent, TcProperties};
use quietcore_qdisc::{ClassId, ClassListing, Fifo, Packet, Qdisc};

fn rate(estimate: Option<&Estimate>) -> Option<RateReport> {
    estimate.map(|estimate| RateReport {
        bits_per_second: estimate.estimator.bits_per_second(),
        packets_per_second: estimate.estimator.packets_per_second(),
    })
}

/// Whether something below `parent` is asked for.
fn is_below(asked: Option<TcParent>, parent: Option<ClassId>) -> bool {
    match asked {
        None => true,
        Some(TcParent::Root) => parent.is_none(),
        Some(TcParent::Parent(asked)) => parent == Some(asked),
    }
}

impl<P: Packet + Debug + Send> ControlState<P> {
    pub(super) fn show(&mut self, command: &ShowCommand, now: Nanos) -> Result<Answer, TcControlError> {
        let shown = ShowOptions {
            style: command.style,
            device: command.device.is_none(),
            parent: command.place.is_none(),
            protocol: command.protocol.is_none(),
            prio: command.prio.is_none_or(|prio| prio == 0),
        };
        if let Some(device) = &command.device {
            self.entry(device)?;
        }
        let is_named = |name: &str| command.device.as_ref().is_none_or(|device| device == name);
        let devices = self.devices.iter().filter(|(name, _)| is_named(name));
        match command.object {
            TcObject::Qdisc => {
                let mut reports = Vec::new();
                devices.for_each(|(name, entry)| entry.show_qdiscs(name, shown, &mut reports));
                reports.retain(|report| {
                    is_below(command.place, report.parent) && command.id.is_none_or(|id| id == report.handle)
                });
                Ok(Answer::Qdiscs(reports))
            }
            TcObject::Class => {
                let mut reports = Vec::new();
                devices.for_each(|(name, entry)| entry.show_classes(name, shown, &mut reports));
                // A parent stands for its discipline; nothing is below the device itself.
                reports.retain(|report| {
                    let below = match command.place {
                        None => true,
                        Some(TcParent::Root) => false,
                        Some(TcParent::Parent(asked)) => asked.major() == report.id.major(),
                    };
                    below && command.id.is_none_or(|id| id == report.id)
                });
                if command.graph {
                    return Ok(Answer::Graph(reports));
                }
                Ok(Answer::Classes(reports))
            }
            TcObject::Filter => {
                let mut reports = Vec::new();
                for (name, entry) in devices {
                    let asked = FilterShow { device: name, now, shown };
                    entry.show_filters(&asked, command.place, &mut reports);
                }
                reports.retain(|report| {
                    let of_prio = command.prio.is_none_or(|prio| prio == 0 || prio == report.prio);
                    of_prio && command.protocol.is_none_or(|protocol| protocol == report.protocol)
                });
                Ok(Answer::Filters(reports))
            }
        }
    }
}

/// What is asked for of the filters of a device.
#[derive(Clone, Copy)]
struct FilterShow<'a> {
    device: &'a str,
    now: Nanos,
    shown: ShowOptions,
}

/// What `-s` says where packets never reached the discipline.
fn add_overload(figures: &mut TcProperties, lost: u64) {
    if !figures.is_empty() {
        figures.text_only("\n");
    }
    figures.add("lost_ahead", " overload {} pkt lost ahead of the queues, and not counted above", lost);
}

impl<P: Packet + Debug + Send> DeviceEntry<P> {
    fn show_qdiscs(&self, device: &str, shown: ShowOptions, reports: &mut Vec<QdiscReport>) {
        let first = reports.len();
        let queues = match &self.root {
            DeviceRoot::Mq { handle, estimate } => {
                reports.push(QdiscReport {
                    kind: "mq",
                    handle: ClassId::new(*handle, 0),
                    parent: None,
                    device: device.into(),
                    references: 1,
                    birth: 0,
                    options: TcProperties::default(),
                    statistics: self.queues_statistics(),
                    rate: rate(estimate.as_ref()),
                    figures: TcProperties::default(),
                    queue: None,
                    shown,
                });
                self.device.queues()
            }
            DeviceRoot::One => 1,
        };
        for number in 0..queues {
            let from = reports.len();
            let top = self.top(number);
            self.device.look(number, |qdisc| match node(qdisc) {
                Some(node) => node.walk(top, &mut |place, node| {
                    reports.push(node.report(place, device, shown));
                }),
                None => reports.push(plain(qdisc, top, device, shown)),
            });
            let statistics = self.device.statistics(number);
            if let Some(root) = reports.get_mut(from) {
                root.statistics = statistics.qdisc;
                root.queue = Some(QueueReport { number, statistics });
            }
        }
        // The root, then the others as the kernel holds them.
        if let Some((root, others)) = reports[first..].split_first_mut() {
            if root.kind != "mq" {
                root.references = self.device.queues() + 1;
            }
            others.sort_by_key(|report| {
                let queue = report.queue.map_or(0, |queue| queue.number);
                (qdisc_bucket(report.handle.major()), Reverse((report.birth, queue)))
            });
            if let Some(lost) = self.device.lost_ahead().filter(|lost| *lost > 0) {
                add_overload(&mut root.figures, lost);
            }
        }
        reports.extend(self.clsact.as_ref().map(|clsact| clsact.report(device, shown)));
    }

    fn show_classes(&self, device: &str, shown: ShowOptions, reports: &mut Vec<ClassReport>) {
        if let DeviceRoot::Mq { handle, .. } = self.root {
            for number in 0..self.device.queues() {
                let leaf = self.device.look(number, |qdisc| node(qdisc).map(QdiscNode::id));
                reports.push(ClassReport {
                    kind: "mq",
                    id: self.top(number).unwrap_or(ClassId::new(handle, 0)),
                    parent: None,
                    device: device.into(),
                    leaf,
                    options: TcProperties::default(),
                    statistics: Some(self.device.statistics(number).qdisc),
                    counts_sent: true,
                    rate: None,
                    figures: TcProperties::default(),
                    shown,
                });
            }
        }
        self.each(|_, _, node| node.report_classes(device, shown, reports));
    }

    fn show_filters(&self, asked: &FilterShow<'_>, place: Option<TcParent>, reports: &mut Vec<FilterReport>) {
        let Some(parent) = filter_parent(self, place) else { return };
        // What is not there has no filters, as in the kernel.
        if let Some(clsact) = self.clsact_of(parent) {
            let Ok(side) = clsact.kind.side(parent) else { return };
            clsact.filters.look(side, |block| {
                // Its name may not be the one that was asked for.
                let is_shown = asked.shown.parent || block.parent != parent;
                let shown = ShowOptions { parent: is_shown, ..asked.shown };
                show_block(&block.filters, block.parent, &FilterShow { shown, ..*asked }, reports);
            });
            return;
        }
        let _ = self.look(parent.major(), |node| {
            if let Some(block) = node.filters.of(parent) {
                show_block(block, parent, asked, reports);
            }
        });
    }
}

fn show_block(
    block: &FilterBlock,
    parent: ClassId,
    &FilterShow { device, now, shown }: &FilterShow<'_>,
    reports: &mut Vec<FilterReport>,
) {
    for FilterPriority { prio, protocol, body } in &block.priorities {
        let (prio, protocol) = (*prio, *protocol);
        let lines = core::iter::once(ShownFilter::default());
        let lines = lines.chain(body.shown(protocol, prio, &block.tables, now));
        reports.extend(lines.map(|ShownFilter { handle, flow, options }| FilterReport {
            parent,
            device: device.into(),
            protocol,
            prio,
            kind: body.kind(),
            handle,
            flow,
            options,
            shown,
        }));
    }
}

impl<P: Packet + Debug + Send> ClsactEntry<P> {
    fn report(&self, device: &str, shown: ShowOptions) -> QdiscReport {
        let mut options = TcProperties::default();
        if self.kind == ClsactKind::Ingress {
            options.text_only("---------------- ");
        }
        QdiscReport {
            kind: self.kind.name(),
            handle: ClassId::new(CLSACT.major(), 0),
            parent: Some(CLSACT),
            device: device.into(),
            references: 1,
            birth: 0,
            options,
            statistics: self.filters.statistics(),
            rate: rate(self.estimate.as_ref()),
            figures: TcProperties::default(),
            queue: None,
            shown,
        }
    }
}

/// A discipline that `Control` did not make.
fn plain<P: Packet + Debug + Send>(
    qdisc: &dyn Qdisc<P>,
    parent: Option<ClassId>,
    device: &str,
    shown: ShowOptions,
) -> QdiscReport {
    let fifo = (qdisc as &dyn Any).downcast_ref::<Fifo<P>>();
    QdiscReport {
        kind: qdisc.kind(),
        handle: ClassId::new(0, 0),
        parent,
        device: device.into(),
        references: 1,
        birth: 0,
        options: fifo.map_or_else(TcProperties::default, |fifo| fifo.limit().describe().options),
        statistics: qdisc.statistics(),
        rate: None,
        figures: TcProperties::default(),
        queue: None,
        shown,
    }
}

impl<P: Packet + Debug + Send> QdiscNode<P> {
    fn report(&self, parent: Option<ClassId>, device: &str, shown: ShowOptions) -> QdiscReport {
        let TcDescription { mut options, figures } = self.describe();
        if self.options.seed() == SeedUse::Drawn {
            options.ours(|options| options.add("seed", " seed {}", self.seed));
        }
        QdiscReport {
            kind: self.options.kind(),
            handle: self.id(),
            parent: self.named_parent.or(parent),
            device: device.into(),
            references: 1,
            birth: self.birth,
            options,
            statistics: self.statistics(),
            rate: rate(self.estimate.as_ref()),
            figures,
            queue: None,
            shown,
        }
    }

    fn report_classes(&self, device: &str, shown: ShowOptions, reports: &mut Vec<ClassReport>) {
        let listing = self.body.listing();
        if listing == ClassListing::Hidden {
            return;
        }
        for id in self.listed_classes() {
            let class = self.classes.get(&id);
            let root = self.body.describe_root_class().filter(|_| id == self.id());
            let TcDescription { options, figures } = root.unwrap_or_else(|| self.describe_class(id));
            let statistics = self.body.class_statistics(id).unwrap_or_default();
            reports.push(ClassReport {
                kind: self.options.kind(),
                id,
                parent: self.shown_parent(id),
                device: device.into(),
                leaf: self.child(id).map(Self::id),
                options,
                statistics: (listing != ClassListing::Named).then_some(statistics),
                counts_sent: listing == ClassListing::Counted,
                rate: rate(class.and_then(|class| class.estimate.as_ref())),
                figures,
                shown,
            });
        }
    }

    /// What `tc` says a class is in: htb's first ones are in the root, other kinds' in the discipline.
    fn shown_parent(&self, id: ClassId) -> Option<ClassId> {
        let above = self.classes.get(&id).and_then(|class| class.parent);
        let is_top = self.body.top_is_root() || id == self.id();
        above.or((!is_top).then_some(self.id()))
    }
}

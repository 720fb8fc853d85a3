//! `qdisc add`, `change`, `replace`, `del`.
//!
//! What happens depends on what is at the place, on the handle that is named, and on the verb, as in the
//! kernel's `tc_modify_qdisc`: `add` wants the place empty; `replace` changes what is there if it is of the
//! same kind and of the same handle, or of none, and puts another in its place else; `change` only changes.

use super::TcControlError;
use super::clsact::{ClsactEntry, ClsactKind};
use super::filter::Filters;
use super::node::{Estimate, QdiscNode};
use super::order::ClassTable;
use super::state::{ControlState, FIRST_HANDLE};
use super::tree::{Attachment, DeviceEntry, DeviceRoot, Occupant, place_text};
use core::fmt::Debug;
use quietcore_live::Nanos;
use quietcore_qdisc::tc::{
    CLSACT, Estimation, QdiscCommand, QdiscContext, QdiscOptions, RandomWords, SeedUse, TcParent, TcVerb,
    time_text,
};
use quietcore_qdisc::{ClassId, Fifo, FifoLimit, Packet, Qdisc};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng as _, SeedableRng as _};
use std::collections::BTreeMap;

/// Disciplines inside of each other: as deep as the kernel lets them be (`check_loop`).
const DEPTH_MAX: usize = 8;

/// What `est` asks for.
pub(super) fn estimate(asked: Option<Estimation>, now: Nanos) -> Result<Option<Estimate>, TcControlError> {
    let Some(asked) = asked else { return Ok(None) };
    let estimate = Estimate::new(asked, now).map_err(|error| {
        let value = format!("{} {}", time_text(asked.interval), time_text(asked.time_constant));
        TcControlError::setting("est", "est", value, error.to_string())
    })?;
    Ok(Some(estimate))
}

/// What a new discipline has from its line, and its number among all.
struct Origin {
    estimate: Option<Estimate>,
    birth: u64,
    named_parent: Option<ClassId>,
}

/// Whether a command is about `ingress` or `clsact`, which are beside the root and its like.
fn is_of_clsact(command: &QdiscCommand) -> bool {
    let is_kind = command.options.as_ref().is_some_and(|options| ClsactKind::named(options.kind()).is_some());
    is_kind || matches!(command.place, Some(TcParent::Parent(parent)) if parent.major() == CLSACT.major())
}

/// What is to be done to whom.
enum Operation {
    Create,
    Change(Occupant),
}

impl<P: Packet + Debug + Send> ControlState<P> {
    pub(super) fn qdisc(&mut self, command: &QdiscCommand, now: Nanos) -> Result<(), TcControlError> {
        let distribution = self.find_distribution;
        self.entry(&command.device)?;
        if is_of_clsact(command) {
            return self.clsact(command, now);
        }
        if command.verb == TcVerb::Delete {
            return self.delete_qdisc(command, now);
        }
        let Some(options) = &command.options else {
            let what = format!("`{command}` names no kind");
            return Err(TcControlError::not_possible(what, "name what it is to be: mq, netem, ..."));
        };
        let entry = self.entry(&command.device)?;
        let (spot, operation) = entry.operation(command, options)?;
        let estimate = estimate(command.est, now)?;
        let (queues, origin) = (entry.device.queues(), entry.device.origin());
        let queues = u16::try_from(queues).unwrap_or(u16::MAX);
        let context = QdiscContext { handle: 0, now, seed: 0, random, distribution, queues, origin };
        match operation {
            Operation::Change(occupant) => entry.change_qdisc(occupant, options, estimate, &context),
            Operation::Create => {
                let before = (self.next_handle, self.seeds.clone());
                let handle = match handle_of(command) {
                    Some(handle) => handle,
                    None => self.free_handle(&command.device)?,
                };
                let seed = self.seeds.next_u64();
                self.made += 1;
                let birth = self.made;
                let named_parent = match command.place {
                    Some(TcParent::Parent(parent)) => Some(parent),
                    _ => None,
                };
                let origin = Origin { estimate, birth, named_parent };
                let entry = self.entry(&command.device)?;
                let context = QdiscContext { handle, seed, ..context };
                let made = entry.create(spot, options, origin, &context);
                if made.is_err() {
                    (self.next_handle, self.seeds) = before;
                }
                made
            }
        }
    }

    /// The same for `ingress` and `clsact`.
    fn clsact(&mut self, command: &QdiscCommand, now: Nanos) -> Result<(), TcControlError> {
        let machine = self.machine;
        let estimate = estimate(command.est, now)?;
        let entry = self.entry(&command.device)?;
        let place = TcParent::Parent(CLSACT).to_string();
        let known = entry.clsact.as_ref().map(|clsact| clsact.kind);
        let asked = match &command.options {
            None => None,
            Some(options) => match (ClsactKind::named(options.kind()), known) {
                (Some(kind), _) => Some(kind),
                (None, None) => return Err(entry.unknown(CLSACT.major())),
                (None, Some(known)) => {
                    let what = format!("Operation not supported: {} has no classes", known.name());
                    return Err(TcControlError::not_possible(what, "only classes have disciplines inside"));
                }
            },
        };
        match (known, command.verb) {
            (Some(known), TcVerb::Add) => {
                let handle = ClassId::new(CLSACT.major(), 0);
                let (device, kind) = (command.device.clone(), known.name());
                return Err(TcControlError::QdiscExists { device, place, kind, handle });
            }
            (Some(known), _) if asked.is_some_and(|asked| asked != known) => {
                let asked = asked.map_or("", ClsactKind::name);
                return Err(TcControlError::other_kind(known.name(), asked));
            }
            (Some(_), TcVerb::Delete) => {
                entry.device.ingress().set(None);
                entry.device.egress().set(None);
                entry.clsact = None;
            }
            (Some(_), _) => {
                if let Some(clsact) = &mut entry.clsact {
                    clsact.estimate = estimate.or(clsact.estimate.take());
                }
            }
            (None, TcVerb::Add | TcVerb::Replace) => {
                if let Some(place) = entry.place_of(CLSACT.major()) {
                    let handle = ClassId::new(CLSACT.major(), 0);
                    return Err(TcControlError::HandleInUse { handle, place });
                }
                // Without a kind nothing is added.
                entry.clsact = asked.map(|kind| ClsactEntry::new(machine, kind, estimate));
            }
            (None, _) => {
                let what = format!("Cannot find specified qdisc on specified device: {}", command.device);
                return Err(TcControlError::not_possible(
                    what,
                    "it has neither ingress nor clsact; `add` one",
                ));
            }
        }
        Ok(())
    }

    /// The next handle that is free.
    fn free_handle(&mut self, device: &str) -> Result<u16, TcControlError> {
        let taken = self.entry(device)?.handles();
        for _ in FIRST_HANDLE..u16::MAX {
            let handle = self.next_handle;
            self.next_handle = if handle == u16::MAX - 1 { FIRST_HANDLE } else { handle + 1 };
            if !taken.contains(&ClassId::new(handle, 0)) {
                return Ok(handle);
            }
        }
        let what = "all handles from 8001: on are taken";
        Err(TcControlError::not_possible(what, "name one with `handle`"))
    }

    fn delete_qdisc(&mut self, command: &QdiscCommand, now: Nanos) -> Result<(), TcControlError> {
        let entry = self.entry(&command.device)?;
        let handle = handle_of(command);
        let Some(place) = command.place else {
            if let Some(handle) = handle.filter(|handle| entry.place_of(*handle).is_none()) {
                return Err(entry.unknown(handle));
            }
            let what = "Classid cannot be zero: a discipline is deleted where it is";
            return Err(TcControlError::not_possible(what, "name its place: `root` or `parent`"));
        };
        let spot = entry.resolve(place)?;
        let Some(occupant) = entry.occupant(spot) else {
            let place = place.to_string();
            return Err(TcControlError::DefaultQdisc { device: command.device.clone(), place });
        };
        if let Some(handle) = handle.filter(|handle| *handle != occupant.handle) {
            let (found, named) = (ClassId::new(occupant.handle, 0), ClassId::new(handle, 0));
            return Err(TcControlError::OtherHandle { found, named });
        }
        if let Some(options) = command.options.as_ref().filter(|options| options.kind() != occupant.kind) {
            return Err(TcControlError::other_kind(occupant.kind, options.kind()));
        }
        match spot {
            Attachment::Root => {
                entry.device.graft_each();
                entry.root = DeviceRoot::Mq { handle: 0, estimate: None };
                Ok(())
            }
            Attachment::Queue(queue) => {
                entry.device.graft(queue, Fifo::new(FifoLimit::Packets(1000)));
                Ok(())
            }
            Attachment::Slot { owner, class } => entry.put(owner, class, None, now),
        }
    }
}

/// The numbers of a seed: ChaCha8's.
pub(super) fn random(seed: u64) -> RandomWords {
    let mut generator = ChaCha8Rng::seed_from_u64(seed);
    Box::new(move || generator.next_u32())
}

/// The handle that a command names, if any.
fn handle_of(command: &QdiscCommand) -> Option<u16> {
    command.handle.map(ClassId::major).filter(|handle| *handle != 0)
}

impl<P: Packet + Debug + Send> DeviceEntry<P> {
    /// What a command is to do, and where.
    fn operation(
        &self,
        command: &QdiscCommand,
        options: &QdiscOptions,
    ) -> Result<(Attachment, Operation), TcControlError> {
        let handle = handle_of(command);
        let Some(place) = command.place else {
            let handle = handle.ok_or_else(|| self.unknown(0))?;
            return self.with_handle(handle).map(|occupant| (Attachment::Root, Operation::Change(occupant)));
        };
        let spot = self.resolve(place)?;
        // As the kernel: a root that is `noqueue` is nothing that would have to be replaced.
        let is_none = |occupant: &Occupant| {
            command.verb == TcVerb::Add && spot == Attachment::Root && occupant.kind == "noqueue"
        };
        let occupant = self.occupant(spot).filter(|occupant| !is_none(occupant));
        let is_new = |asked: u16| match self.place_of(asked) {
            None => Ok(()),
            Some(place) => Err(TcControlError::HandleInUse { handle: ClassId::new(asked, 0), place }),
        };
        let exists = |occupant: Occupant| TcControlError::QdiscExists {
            device: command.device.clone(),
            place: place.to_string(),
            kind: occupant.kind,
            handle: ClassId::new(occupant.handle, 0),
        };
        let operation = match (occupant, command.verb) {
            (Some(occupant), TcVerb::Add) => return Err(exists(occupant)),
            (Some(occupant), TcVerb::Change | TcVerb::Delete) => match handle {
                Some(named) if named != occupant.handle => {
                    let (found, named) = (ClassId::new(occupant.handle, 0), ClassId::new(named, 0));
                    return Err(TcControlError::OtherHandle { found, named });
                }
                // As the kernel: of another kind it is another one.
                None if command.verb == TcVerb::Change && options.kind() != occupant.kind => {
                    Operation::Create
                }
                _ => Operation::Change(occupant),
            },
            (Some(occupant), TcVerb::Replace) => match handle {
                Some(named) if named != occupant.handle => {
                    is_new(named)?;
                    Operation::Create
                }
                None if options.kind() != occupant.kind => Operation::Create,
                _ => Operation::Change(occupant),
            },
            (None, TcVerb::Change | TcVerb::Delete) => {
                let what = format!("Qdisc not found: {} {place} has its default", command.device);
                return Err(TcControlError::not_possible(what, "use `add` or `replace`"));
            }
            (None, TcVerb::Add | TcVerb::Replace) => {
                handle.map_or(Ok(()), is_new)?;
                Operation::Create
            }
        };
        if matches!(operation, Operation::Create) {
            self.can_be_there(command, options, spot)?;
        }
        Ok((spot, operation))
    }

    /// Whether a discipline can be at a place.
    fn can_be_there(
        &self,
        command: &QdiscCommand,
        options: &QdiscOptions,
        spot: Attachment,
    ) -> Result<(), TcControlError> {
        let place = command.place.map_or_else(String::new, |place| place.to_string());
        match (options, spot) {
            (_, Attachment::Root) => Ok(()),
            (QdiscOptions::Mq(_), _) => {
                let what = "mq can only be a device's root";
                Err(TcControlError::not_possible(what, "use `root`"))
            }
            (QdiscOptions::Noqueue(_), _) => {
                let what = format!("Cannot assign noqueue to a class: {place}");
                Err(TcControlError::not_possible(what, "use `root`, or another kind"))
            }
            (_, Attachment::Slot { owner, .. }) if self.depth(owner) >= DEPTH_MAX => {
                let what = format!("{} {place} is inside of {DEPTH_MAX} others already", command.device);
                Err(TcControlError::not_possible(what, "put it further up"))
            }
            _ => Ok(()),
        }
    }

    fn with_handle(&self, handle: u16) -> Result<Occupant, TcControlError> {
        if self.mq() == Some(handle) {
            return Ok(Occupant { handle, kind: "mq" });
        }
        self.look(handle, |node| Occupant { handle, kind: node.options.kind() })
    }

    fn change_qdisc(
        &mut self,
        occupant: Occupant,
        options: &QdiscOptions,
        estimate: Option<Estimate>,
        context: &QdiscContext,
    ) -> Result<(), TcControlError> {
        if options.kind() != occupant.kind {
            return Err(TcControlError::other_kind(occupant.kind, options.kind()));
        }
        if let DeviceRoot::Mq { handle, estimate: before } = &mut self.root
            && *handle == occupant.handle
        {
            *before = estimate.or(before.take());
            return Ok(());
        }
        self.change(occupant.handle, context.now, |node| {
            let context = QdiscContext { handle: node.handle, seed: node.seed, ..*context };
            let changed = options.clone().change(&node.options, &mut *node.body, &context);
            node.options = changed.map_err(|refusal| node.refused(refusal))?;
            if let SeedUse::Named(seed) = options.seed() {
                node.seed = seed;
            }
            node.estimate = estimate.or(node.estimate.take());
            Ok(())
        })
    }

    fn create(
        &mut self,
        spot: Attachment,
        options: &QdiscOptions,
        origin: Origin,
        context: &QdiscContext,
    ) -> Result<(), TcControlError> {
        let Origin { estimate, birth, named_parent } = origin;
        if matches!(options, QdiscOptions::Mq(_)) {
            self.device.graft_each();
            self.root = DeviceRoot::Mq { handle: context.handle, estimate };
            return Ok(());
        }
        let QdiscContext { handle, now, seed, .. } = *context;
        let made = options.make(context);
        let body = made.map_err(|refusal| TcControlError::refused(refusal, Vec::new()))?;
        let (classes, filters) = (BTreeMap::new(), Filters::default());
        let seed = if let SeedUse::Named(named) = options.seed() { named } else { seed };
        let options = options.clone();
        let mut table = ClassTable::default();
        if body.describe_root_class().is_some() {
            table.insert(ClassId::new(handle, 0));
        }
        let node = QdiscNode {
            handle,
            options,
            seed,
            body,
            estimate,
            classes,
            table,
            birth,
            named_parent,
            filters,
            filtered: 0,
        };
        match spot {
            Attachment::Root => {
                self.device.graft_root(node);
                self.root = DeviceRoot::One;
                Ok(())
            }
            Attachment::Queue(queue) => {
                self.device.graft(queue, node);
                Ok(())
            }
            Attachment::Slot { owner, class } => self.put(owner, class, Some(Box::new(node)), now),
        }
    }

    /// Puts a discipline into a class, or the default one.
    fn put(
        &self,
        owner: u16,
        class: ClassId,
        inner: Option<Box<dyn Qdisc<P>>>,
        now: Nanos,
    ) -> Result<(), TcControlError> {
        self.change(owner, now, |node| {
            if node.body.graft_inner(now, class, inner) {
                return Ok(());
            }
            let what = format!("{} has no room for a discipline", place_text(Some(class)));
            Err(TcControlError::not_possible(what, "name a class without classes below it"))
        })
    }
}

/// The place that a command about filters or classes means, as a discipline.
pub(super) fn root_handle<P: Packet + Debug + Send>(
    entry: &DeviceEntry<P>,
    place: Option<TcParent>,
) -> Option<ClassId> {
    match place {
        Some(TcParent::Parent(named)) => Some(named),
        _ => entry.occupant(Attachment::Root).map(|root| ClassId::new(root.handle, 0)),
    }
}

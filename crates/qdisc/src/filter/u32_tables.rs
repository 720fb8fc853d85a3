//! The rules of all `u32` filters of one discipline: tables of buckets of rules, and the way of a packet
//! through them.
//!
//! A packet goes through the bucket's rules in order of their numbers. A rule of which all is true and that
//! links to a table sends it through one bucket of that table first; where nothing there is for it, or there
//! is no link, a rule that has a class ends the search. Each priority begins in its root table of one bucket;
//! all priorities of one discipline can link to all tables.
//!
//! A packet that ends before a word that a rule looks at is for no rule of that priority. Invariants: rules
//! of a bucket are in order of their numbers, no two have the same; no rule links to a root table.
//!
//! Source: Linux 6.12 net/sched/cls_u32.c, by behaviour (`crates/net/tests/tc_recorded`).

use super::u32_key::{U32Offset, U32Selector};
use crate::tc::FilterOffload;
use crate::{ClassId, Packet};
use alloc::vec::Vec;
use core::fmt;

/// Tables through which a packet may be linked, one from the other.
const DEPTH_MAX: usize = 8;
/// The first number that is given to a table, and to a rule of a bucket.
const FIRST: u16 = 0x800;
/// Numbers of tables and rules have 12 bits.
const NUMBER_MAX: u16 = 0xfff;
/// The name of the root table of whatever priority is asked.
const ROOT: u16 = 0xfff;

/// Which table, which bucket, which rule: `800:7b:801`, in hexadecimal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct U32Address {
    /// The table; 0 stands for the root of the priority.
    pub table: u16,
    /// Its bucket.
    pub bucket: u8,
    /// The rule; 0 stands for the table itself.
    pub rule: u16,
}

/// A rule of a bucket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct U32Rule<A = ()> {
    /// Its number in its bucket.
    pub number: u16,
    /// What it looks at.
    pub selector: U32Selector,
    /// The table through which packets go first.
    pub link: Option<u16>,
    /// Where packets go of which all is true: the search ends there. Without one it goes on, unless there
    /// are actions.
    pub flow: Option<ClassId>,
    /// What is done with them: of a type of the caller's.
    pub actions: A,
    /// Who carries it out.
    pub offload: FilterOffload,
    /// Packets that were held against it.
    pub asked: u64,
    /// Packets for which it ended the search, unless an action said otherwise.
    pub met: u64,
    /// For how many each key was as told; a key is only asked if those before it were.
    pub keys_met: Vec<u64>,
    /// For how many the mark was as told.
    pub marks_met: u64,
}

impl U32Rule {
    /// One that has seen no packet, and has no number and no actions yet.
    #[must_use]
    pub fn new(selector: U32Selector, link: Option<u16>, flow: Option<ClassId>) -> Self {
        let keys_met = alloc::vec![0; selector.keys.len()];
        let (offload, actions) = (FilterOffload::default(), ());
        Self { number: 0, selector, link, flow, actions, offload, asked: 0, met: 0, keys_met, marks_met: 0 }
    }

    /// The same with actions.
    #[must_use]
    pub fn with_actions<A>(self, actions: A) -> U32Rule<A> {
        let Self { number, selector, link, flow, offload, asked, met, keys_met, marks_met, .. } = self;
        U32Rule { number, selector, link, flow, actions, offload, asked, met, keys_met, marks_met }
    }
}

impl<A> U32Rule<A> {
    /// Whether all is as told, and counts it; `None` if the packet ends too early.
    fn ask(&mut self, search: &Search<'_>, from: u32) -> Option<bool> {
        self.asked += 1;
        if self.offload == FilterOffload::SkipSoftware {
            return Some(false);
        }
        if let Some((value, mask)) = self.selector.mark {
            if search.mark & mask != value {
                return Some(false);
            }
            self.marks_met += 1;
        }
        for (key, met) in self.selector.keys.iter().zip(&mut self.keys_met) {
            if !key.is_met(search.network, from, search.next)? {
                return Some(false);
            }
            *met += 1;
        }
        Some(true)
    }
}

/// What becomes of the search at a rule of which all is true.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum U32Decision<R> {
    /// The rule has no class and no actions: it goes on.
    NoEnd,
    /// It would end here, and an action says that it goes on.
    GoOn,
    /// It ends.
    End(R),
}

/// A table of rules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct U32Table<A = ()> {
    /// Its number.
    pub id: u16,
    /// The priority whose filters are shown with it.
    pub prio: u16,
    /// Whether it is the one in which that priority begins.
    pub is_root: bool,
    /// As many as its divisor says, a power of two.
    pub buckets: Vec<Vec<U32Rule<A>>>,
}

impl<A> U32Table<A> {
    /// Whether it has no rule.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.buckets.iter().all(Vec::is_empty)
    }

    /// The name of a rule of one of its buckets.
    #[must_use]
    pub fn address(&self, bucket: usize, rule: &U32Rule<A>) -> Option<U32Address> {
        let bucket = u8::try_from(bucket).ok()?;
        Some(U32Address { table: self.id, bucket, rule: rule.number })
    }

    /// The first rule of a bucket, from there on, of which all is as told; `None` if the packet ends too
    /// early.
    fn first_met(
        &mut self,
        bucket: usize,
        begin: usize,
        search: &Search<'_>,
        from: u32,
    ) -> Option<Option<usize>> {
        for (behind, rule) in self.buckets[bucket][begin..].iter_mut().enumerate() {
            if rule.ask(search, from)? {
                return Some(Some(begin + behind));
            }
        }
        Some(None)
    }

    fn rules(&self) -> impl Iterator<Item = &U32Rule<A>> {
        self.buckets.iter().flatten()
    }
}

/// Why rules or tables are not changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum U32Error {
    /// There is no such table.
    UnknownTable(u16),
    /// The table has fewer buckets.
    UnknownBucket(U32Address),
    /// There is no such rule.
    UnknownRule(U32Address),
    /// The rule's handle names another table than `ht`.
    OtherTable(U32Address),
    /// The number is that of another rule of the bucket, or no number is left.
    NumberInUse(u16),
    /// The number is that of another table, or no number is left.
    TableInUse(u16),
    /// A rule links to the table.
    Linked(u16),
    /// A root table cannot be linked to, or removed.
    Root(u16),
}

impl fmt::Display for U32Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownTable(table) => {
                write!(
                    out,
                    "Specified hash table not found: there is no table {table:x}:; make it with `divisor`"
                )
            }
            Self::UnknownBucket(U32Address { table, bucket, .. }) => write!(
                out,
                "Specified hash table buckets exceed configured value: table {table:x}: has no bucket \
                 {bucket:x}; make it with a larger `divisor`"
            ),
            Self::UnknownRule(address) => write!(out, "there is no rule {address}; `filter show` lists them"),
            Self::OtherTable(U32Address { table, .. }) => write!(
                out,
                "Handle specified hash table address mismatch: `handle` names table {table:x}:, `ht` another \
                 one; name one of them"
            ),
            Self::NumberInUse(number) => {
                write!(out, "No space left: number {number:x} is a rule's already; name another, or none")
            }
            Self::TableInUse(table) => {
                write!(out, "No space left: number {table:x} is a table's already; name another, or none")
            }
            Self::Linked(table) => {
                write!(
                    out,
                    "Can not delete in-use filter: a rule links to table {table:x}:; `del` that first"
                )
            }
            Self::Root(table) => write!(
                out,
                "table {table:x}: is the one in which its priority begins, which cannot be linked to or \
                 deleted; name another"
            ),
        }
    }
}

impl core::error::Error for U32Error {}

impl fmt::Display for U32Address {
    /// As `tc` shows it: `800::801`, with a bucket if that is not 0, without a rule `800:`.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { table, bucket, rule } = self;
        if *table != 0 {
            write!(out, "{table:x}")?;
        }
        out.write_str(":")?;
        if *bucket != 0 {
            write!(out, "{bucket:x}")?;
        }
        if *rule != 0 {
            write!(out, ":{rule:x}")?;
        }
        Ok(())
    }
}

/// A packet on its way.
struct Search<'a> {
    network: &'a [u8],
    mark: u32,
    /// How far behind the current begin the next header is; it stays what the last link made of it.
    next: u32,
}

/// Where in the tables a packet is, and where offsets begin there.
#[derive(Clone, Copy)]
struct Spot {
    table: usize,
    bucket: usize,
    from: u32,
}

/// All tables of one discipline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct U32Tables<A = ()> {
    /// The newest in front.
    tables: Vec<U32Table<A>>,
    /// The number that was last given to a table.
    given: u16,
}

impl<A> Default for U32Tables<A> {
    fn default() -> Self {
        Self { tables: Vec::new(), given: 0 }
    }
}

impl<A> U32Tables<A> {
    /// The tables of a priority, as they are listed: the newest first.
    pub fn of(&self, prio: u16) -> impl Iterator<Item = &U32Table<A>> {
        self.tables.iter().filter(move |table| table.prio == prio)
    }

    fn find(&self, id: u16) -> Result<usize, U32Error> {
        self.tables.iter().position(|table| table.id == id).ok_or(U32Error::UnknownTable(id))
    }

    /// The next number for a table: those behind the last one that was given, and then from the first.
    fn free_id(&self) -> Result<u16, U32Error> {
        let behind = (self.given + 1..FIRST).chain(1..=self.given);
        let mut free = behind.filter(|low| self.find(FIRST | *low).is_err());
        free.next().map(|low| FIRST | low).ok_or(U32Error::TableInUse(NUMBER_MAX))
    }

    fn insert(&mut self, id: u16, prio: u16, is_root: bool, divisor: u16) {
        let buckets = (0..divisor).map(|_| Vec::new()).collect();
        self.tables.insert(0, U32Table { id, prio, is_root, buckets });
    }

    /// Makes the root table of a priority.
    ///
    /// # Errors
    /// [`U32Error::TableInUse`] if no number is left.
    pub fn add_root(&mut self, prio: u16) -> Result<u16, U32Error> {
        let id = if self.tables.is_empty() { FIRST } else { self.free_id()? };
        self.given = id & !FIRST;
        self.insert(id, prio, true, 1);
        Ok(id)
    }

    /// Makes a table of `divisor` buckets, with that number or the next one.
    ///
    /// # Errors
    /// [`U32Error::TableInUse`] if the number is, or none is left.
    pub fn add_table(&mut self, id: Option<u16>, prio: u16, divisor: u16) -> Result<u16, U32Error> {
        let id = match id {
            Some(id) if self.find(id).is_ok() => return Err(U32Error::TableInUse(id)),
            Some(id) => id,
            None => {
                let id = self.free_id()?;
                self.given = id & !FIRST;
                id
            }
        };
        self.insert(id, prio, false, divisor);
        Ok(id)
    }

    /// The root table of a priority.
    fn root(&self, prio: u16) -> Option<u16> {
        self.of(prio).find(|table| table.is_root).map(|table| table.id)
    }

    /// What an address means for a priority: its root table where it names none.
    fn resolved(&self, prio: u16, table: u16) -> u16 {
        if table == 0 || table == ROOT { self.root(prio).unwrap_or(FIRST) } else { table }
    }

    /// Whether there is a table or rule of that name.
    #[must_use]
    pub fn holds(&self, prio: u16, address: U32Address) -> bool {
        let Ok(at) = self.find(self.resolved(prio, address.table)) else { return false };
        if address.rule == 0 && address.bucket == 0 {
            return true;
        }
        let bucket = self.tables[at].buckets.get(usize::from(address.bucket));
        bucket.is_some_and(|rules| rules.iter().any(|rule| rule.number == address.rule))
    }

    /// Puts a rule into the bucket of `place`, or of the root of its priority, by the number of `handle`,
    /// or the next one.
    ///
    /// # Errors
    /// [`U32Error`], if the place, the number or the table that it links to cannot be.
    pub fn add_rule(
        &mut self,
        prio: u16,
        place: Option<U32Address>,
        handle: Option<U32Address>,
        mut rule: U32Rule<A>,
    ) -> Result<U32Address, U32Error> {
        let root = U32Address { table: ROOT, ..U32Address::default() };
        let place = place.unwrap_or(root);
        let table = if place.table == ROOT { self.root(prio).unwrap_or(FIRST) } else { place.table };
        let at = self.find(table)?;
        let place = U32Address { table, bucket: place.bucket, rule: 0 };
        if usize::from(place.bucket) >= self.tables[at].buckets.len() {
            return Err(U32Error::UnknownBucket(place));
        }
        self.may_link(rule.link)?;
        let bucket = &self.tables[at].buckets[usize::from(place.bucket)];
        let is_taken = |number: u16| bucket.iter().any(|rule| rule.number == number);
        rule.number = match handle {
            Some(handle) if handle.table != 0 && handle.table != table => {
                return Err(U32Error::OtherTable(handle));
            }
            Some(handle) if is_taken(handle.rule) => return Err(U32Error::NumberInUse(handle.rule)),
            Some(handle) if handle.rule != 0 => handle.rule,
            _ => {
                let mut free = (FIRST..=NUMBER_MAX).chain(1..FIRST).filter(|number| !is_taken(*number));
                free.next().ok_or(U32Error::NumberInUse(NUMBER_MAX))?
            }
        };
        let number = rule.number;
        let bucket = &mut self.tables[at].buckets[usize::from(place.bucket)];
        let behind = bucket.partition_point(|other| other.number < number);
        bucket.insert(behind, rule);
        Ok(U32Address { rule: number, ..place })
    }

    fn may_link(&self, link: Option<u16>) -> Result<(), U32Error> {
        let Some(link) = link else { return Ok(()) };
        match &self.tables[self.find(link)?] {
            table if table.is_root => Err(U32Error::Root(link)),
            _ => Ok(()),
        }
    }

    /// Changes where a rule sends packets; what it looks at stays, as in the kernel.
    ///
    /// # Errors
    /// [`U32Error`], if there is no such rule, or no table that it could link to.
    pub fn change_rule(
        &mut self,
        prio: u16,
        address: U32Address,
        link: Option<u16>,
        flow: Option<ClassId>,
    ) -> Result<(), U32Error> {
        self.may_link(link)?;
        let rule = self.rule_mut(prio, address)?;
        rule.link = link.or(rule.link);
        rule.flow = flow.or(rule.flow);
        Ok(())
    }

    /// Changes what a rule does with packets.
    ///
    /// # Errors
    /// [`U32Error`], if there is no such rule.
    pub fn change_actions(&mut self, prio: u16, address: U32Address, actions: A) -> Result<(), U32Error> {
        self.rule_mut(prio, address)?.actions = actions;
        Ok(())
    }

    fn rule_mut(&mut self, prio: u16, address: U32Address) -> Result<&mut U32Rule<A>, U32Error> {
        let at = self.find(self.resolved(prio, address.table))?;
        let bucket = self.tables[at].buckets.get_mut(usize::from(address.bucket));
        let rule = bucket.and_then(|rules| rules.iter_mut().find(|rule| rule.number == address.rule));
        rule.ok_or(U32Error::UnknownRule(address))
    }

    /// Removes a rule, or a table with its rules.
    ///
    /// # Errors
    /// [`U32Error`], if it is not there, linked to, or a root table.
    pub fn remove(&mut self, prio: u16, address: U32Address) -> Result<(), U32Error> {
        let at = self.find(self.resolved(prio, address.table))?;
        if address.rule != 0 || address.bucket != 0 {
            self.rule_mut(prio, address)?;
            let bucket = &mut self.tables[at].buckets[usize::from(address.bucket)];
            bucket.retain(|rule| rule.number != address.rule);
            return Ok(());
        }
        let table = &self.tables[at];
        if table.is_root {
            return Err(U32Error::Root(table.id));
        }
        if self.tables.iter().flat_map(U32Table::rules).any(|rule| rule.link == Some(table.id)) {
            return Err(U32Error::Linked(table.id));
        }
        self.tables.remove(at);
        Ok(())
    }

    /// Removes the root of a priority with its rules; with the last priority all tables go, and numbers begin
    /// anew.
    pub fn remove_root(&mut self, prio: u16) {
        self.tables.retain(|table| !(table.is_root && table.prio == prio));
        if !self.tables.iter().any(|table| table.is_root) {
            *self = Self::default();
        }
    }

    /// Whether nothing is left for which a priority would be kept: no rule of its own, no other priority, no
    /// rule in any table.
    #[must_use]
    pub fn is_useless(&self, prio: u16) -> bool {
        let others = self.tables.iter().any(|table| table.is_root && table.prio != prio);
        let root_is_empty = self.of(prio).filter(|table| table.is_root).all(U32Table::is_empty);
        root_is_empty && !others && self.tables.iter().all(U32Table::is_empty)
    }

    /// Whether a rule sends packets to `class`.
    #[must_use]
    pub fn send_to(&self, class: ClassId) -> bool {
        self.tables.iter().flat_map(U32Table::rules).any(|rule| rule.flow == Some(class))
    }

    /// Sends a packet through the rules of a priority. Of each of which all is true, `decide` is asked with
    /// its class and its actions; the answer is that of the first one that ends the search.
    ///
    /// Cost: each rule once that the packet meets, each of its words checked; at most 8 tables deep.
    pub fn search_with<R>(
        &mut self,
        prio: u16,
        packet: &impl Packet,
        decide: impl FnMut(Option<ClassId>, &A) -> U32Decision<R>,
    ) -> Option<R> {
        self.begin(prio, Search { network: packet.network_bytes(), mark: packet.mark(), next: 0 }, decide)
    }

    fn begin<R>(
        &mut self,
        prio: u16,
        mut search: Search<'_>,
        mut decide: impl FnMut(Option<ClassId>, &A) -> U32Decision<R>,
    ) -> Option<R> {
        let root = self.tables.iter().position(|table| table.is_root && table.prio == prio)?;
        let spot = Spot { table: root, bucket: 0, from: 0 };
        self.pass(spot, &mut search, 0, &mut decide)?
    }

    /// Sends a packet through a bucket. `None`: it ended too early, and is for no rule.
    fn pass<R>(
        &mut self,
        spot: Spot,
        search: &mut Search<'_>,
        depth: usize,
        decide: &mut impl FnMut(Option<ClassId>, &A) -> U32Decision<R>,
    ) -> Option<Option<R>> {
        let Spot { table, bucket, from } = spot;
        let mut begin = 0;
        while let Some(at) = self.tables[table].first_met(bucket, begin, search, from)? {
            begin = at + 1;
            let rule = &self.tables[table].buckets[bucket][at];
            if let Some(link) = rule.link {
                let (hash, offset) = (rule.selector.hash, rule.selector.offset);
                if depth == DEPTH_MAX {
                    return None;
                }
                let below = self.find(link).ok()?;
                let buckets = self.tables[below].buckets.len();
                let chosen = match hash {
                    _ if buckets == 1 => 0,
                    hash => hash.unwrap_or_default().of(search.network, from)? as usize & (buckets - 1),
                };
                let below = Spot { table: below, bucket: chosen, from: search.stride(offset, from)? };
                if (below.from as usize) < search.network.len()
                    && let Some(answer) = self.pass(below, search, depth + 1, decide)?
                {
                    return Some(Some(answer));
                }
            }
            let rule = &mut self.tables[table].buckets[bucket][at];
            let decision = decide(rule.flow, &rule.actions);
            rule.met += u64::from(!matches!(decision, U32Decision::NoEnd));
            if let U32Decision::End(answer) = decision {
                return Some(Some(answer));
            }
        }
        Some(None)
    }
}

impl U32Tables {
    /// Where the rules of a priority send a packet, if they know it: the first that has a class does. Cost:
    /// as [`search_with`](Self::search_with).
    pub fn search(&mut self, prio: u16, network: &[u8], mark: u32) -> Option<ClassId> {
        self.begin(prio, Search { network, mark, next: 0 }, |flow, ()| {
            flow.map_or(U32Decision::NoEnd, U32Decision::End)
        })
    }
}

impl Search<'_> {
    /// Finds the next header as a rule says; where offsets of the table that it links to begin.
    fn stride(&mut self, offset: Option<U32Offset>, from: u32) -> Option<u32> {
        let Some(offset) = offset else { return Some(from) };
        self.next = offset.of(self.network, from)?;
        if !offset.eat {
            return Some(from);
        }
        Some(from.saturating_add(core::mem::take(&mut self.next)))
    }
}

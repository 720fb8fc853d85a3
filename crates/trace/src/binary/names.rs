//! What a kernel calls its functions and tasks: the names that the bytes of events lack.

use super::expression::push_hexadecimal;
use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};

/// So many tasks have names at most; what is beyond is printed as the kernel prints what it forgot.
const TASKS_MAX: usize = 65_536;
/// No function is longer: what is farther from the last name is in a module that was loaded later.
const FUNCTION_BYTES_MAX: u64 = 256 * 1024;
/// A name's bytes and its zero.
const COMM_BYTES: usize = 16;

/// Says what a task is called; `None` when there is no such task.
type AskForTask = fn(i32) -> Option<Vec<u8>>;

/// Names of functions by address, of tasks by number.
#[derive(Debug, Default)]
pub(crate) struct KernelNames {
    symbols: Symbols,
    tasks: HashMap<i32, TaskName>,
    /// Hides addresses: what identifies an object is made of its address, and not the address.
    hidden_by: Option<RandomState>,
    /// Asks the running kernel for the name of a task.
    ask: Option<AskForTask>,
}

/// What a task is called.
#[derive(Clone, Copy, Debug)]
struct TaskName {
    comm: [u8; COMM_BYTES],
    /// No event changes it.
    is_final: bool,
}

/// Functions by address.
#[derive(Debug, Default)]
struct Symbols {
    /// In order; a name begins at the place in `text` and is so long.
    places: Vec<Place>,
    text: String,
}

#[derive(Clone, Copy, Debug)]
struct Place {
    address: u64,
    at: u32,
    length: u16,
}

impl Symbols {
    /// Reads lines as `/proc/kallsyms` has them: `ffffffff81000000 T name [module]`.
    fn parse(text: &str) -> Self {
        let mut symbols = Self { places: Vec::new(), text: String::with_capacity(text.len() / 2) };
        for line in text.lines() {
            let mut words = line.split_ascii_whitespace();
            let (Some(address), Some(_kind), Some(name)) = (words.next(), words.next(), words.next()) else {
                continue;
            };
            let (Ok(address), Ok(at)) = (u64::from_str_radix(address, 16), u32::try_from(symbols.text.len()))
            else {
                continue;
            };
            symbols.text.push_str(name);
            if let Some(module) = words.next() {
                symbols.text.push(' ');
                symbols.text.push_str(module);
            }
            let Ok(length) = u16::try_from(symbols.text.len() - at as usize) else { continue };
            symbols.places.push(Place { address, at, length });
        }
        symbols.places.sort_by_key(|place| place.address);
        symbols
    }

    fn address(&self, name: &str) -> Option<u64> {
        let is_named = |place: &&Place| {
            self.text[place.at as usize..].starts_with(name) && usize::from(place.length) == name.len()
        };
        self.places.iter().find(is_named).map(|place| place.address)
    }

    /// The function that `address` lies in, how far it is from its beginning, and from there to the next one.
    fn find(&self, address: u64) -> Option<(&str, u64, u64)> {
        let after = self.places.partition_point(|place| place.address <= address);
        let last = self.places.get(after.checked_sub(1)?)?;
        // Of several names for one address the kernel says the first of its table.
        let first =
            self.places[..after].iter().rev().take_while(|place| place.address == last.address).last();
        let (place, next) = (first?, self.places.get(after)?);
        let name = self.text.get(place.at as usize..place.at as usize + usize::from(place.length))?;
        let offset = address - place.address;
        (offset < FUNCTION_BYTES_MAX).then_some((name, offset, next.address - place.address))
    }
}

impl KernelNames {
    /// Takes functions' names from what `/proc/kallsyms` says. False when it tells no addresses.
    pub(crate) fn set_symbols(&mut self, kallsyms: &str) -> bool {
        self.symbols = Symbols::parse(kallsyms);
        self.symbols.places.iter().any(|place| place.address != 0)
    }

    /// The address of the function with this name.
    pub(crate) fn address(&self, name: &str) -> Option<u64> {
        self.symbols.address(name)
    }

    /// Keeps addresses out of what is printed.
    #[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "for what is recorded here"))]
    pub(crate) fn hide_addresses(&mut self) {
        self.hidden_by = Some(RandomState::new());
    }

    /// Asks `ask` for the names of tasks that no event has named.
    #[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "for what is recorded here"))]
    pub(crate) fn ask_for_tasks(&mut self, ask: AskForTask) {
        self.ask = Some(ask);
    }

    /// Writes a name for the object at `address`: equal for equal addresses.
    pub(crate) fn write_identity(&self, address: u64, out: &mut Vec<u8>) {
        let identity = match &self.hidden_by {
            Some(hidden_by) if address != 0 => hidden_by.hash_one(address),
            _ => address,
        };
        push_hexadecimal(identity, 16, out);
    }

    /// Writes the name of the function at `address`.
    pub(crate) fn write_symbol(&self, address: u64, out: &mut Vec<u8>) {
        match self.symbols.find(address) {
            Some((name, ..)) => out.extend_from_slice(name.as_bytes()),
            None => self.write_unnamed(address, out),
        }
    }

    /// The same with the place in the function: `name+0x1a/0x90`.
    pub(crate) fn write_symbol_and_offset(&self, address: u64, out: &mut Vec<u8>) {
        let Some((name, offset, size)) = self.symbols.find(address) else {
            return self.write_unnamed(address, out);
        };
        // The name of a module comes behind the place.
        let (name, module) = name.split_once(' ').map_or((name, None), |(name, module)| (name, Some(module)));
        out.extend_from_slice(name.as_bytes());
        out.extend_from_slice(b"+0x");
        push_hexadecimal(offset, 1, out);
        out.extend_from_slice(b"/0x");
        push_hexadecimal(size, 1, out);
        if let Some(module) = module {
            out.push(b' ');
            out.extend_from_slice(module.as_bytes());
        }
    }

    fn write_unnamed(&self, address: u64, out: &mut Vec<u8>) {
        out.extend_from_slice(b"0x");
        match &self.hidden_by {
            Some(hidden_by) if address != 0 => push_hexadecimal(hidden_by.hash_one(address), 1, out),
            _ => push_hexadecimal(address, 1, out),
        }
    }

    /// A task is called `comm` from now on, unless it has a name for good.
    pub(crate) fn learn_task(&mut self, pid: i32, comm: &[u8]) {
        if !self.tasks.get(&pid).is_some_and(|name| name.is_final) {
            self.set_task(pid, comm, false);
        }
    }

    /// Task `pid` was made by task `parent`, whose name it has at first.
    pub(crate) fn inherit_task(&mut self, pid: i32, parent: i32) {
        if let Some(TaskName { comm, .. }) = self.tasks.get(&parent).copied() {
            self.learn_task(pid, &comm);
        }
    }

    /// A task has this name in the whole recording.
    pub(crate) fn name_task(&mut self, pid: i32, comm: &[u8]) {
        self.set_task(pid, comm, true);
    }

    fn set_task(&mut self, pid: i32, comm: &[u8], is_final: bool) {
        if pid == 0 || (self.tasks.len() >= TASKS_MAX && !self.tasks.contains_key(&pid)) {
            return;
        }
        let mut name = TaskName { comm: [0; COMM_BYTES], is_final };
        let length = comm.len().min(COMM_BYTES - 1);
        name.comm[..length].copy_from_slice(&comm[..length]);
        self.tasks.insert(pid, name);
    }

    /// What task `pid` is called.
    pub(crate) fn task(&mut self, pid: i32) -> &[u8] {
        if pid == 0 {
            return b"<idle>";
        }
        if !self.tasks.contains_key(&pid)
            && let Some(ask) = self.ask
        {
            // One that has ended is not asked for again.
            let name = ask(pid).unwrap_or_default();
            self.set_task(pid, &name, false);
        }
        match self.tasks.get(&pid) {
            Some(TaskName { comm, .. }) if comm[0] != 0 => {
                &comm[..memchr::memchr(0, comm).unwrap_or(COMM_BYTES)]
            }
            _ => b"<...>",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{KernelNames, TASKS_MAX};

    fn text(write: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        write(&mut out);
        String::from_utf8(out).expect("letters")
    }

    /// Goal: a function is called as the kernel calls it. Method: addresses at, in and beyond functions, of
    /// which one has two names and one is a module's; a table without addresses.
    #[test]
    fn functions_have_the_kernels_names() {
        let mut names = KernelNames::default();
        let table = "ffff0100 t later\nffff0010 T first\nffff0010 t alias\nffff0080 t inner [mod]\n\
                     ffff0200 T last\nno line\n";
        assert!(names.set_symbols(table));
        let symbol = |address| text(|out| names.write_symbol(address, out));
        let place = |address| text(|out| names.write_symbol_and_offset(address, out));
        assert_eq!((symbol(0xffff_0010), symbol(0xffff_0105)), ("first".into(), "later".into()));
        assert_eq!(
            (symbol(0xffff_0090), place(0xffff_0090)),
            ("inner [mod]".into(), "inner+0x10/0x80 [mod]".into())
        );
        assert_eq!((symbol(0xffff_000f), place(0xffff_0200)), ("0xffff000f".into(), "0xffff0200".into()));
        assert_eq!(place(0xffff_0010), "first+0x0/0x70");
        assert_eq!((names.address("alias"), names.address("ali")), (Some(0xffff_0010), None));
        assert_eq!(symbol(0x1_ffff_0010), "0x1ffff0010", "the last one has an end that is not known");
        assert!(!names.set_symbols("0000000000000000 T first\n0000000000000000 T second\n"));
    }

    /// Goal: an address far behind every function is none of the one before it: it is in a module that came
    /// later.
    #[test]
    fn a_hole_between_functions_has_no_name() {
        let mut names = KernelNames::default();
        names.set_symbols("ffff0000 t kernel\nffffffff0000 t module\n");
        let symbol = |address| text(|out| names.write_symbol(address, out));
        assert_eq!(symbol(0xffff_0000 + super::FUNCTION_BYTES_MAX - 1), "kernel");
        assert_eq!(symbol(0xffff_0000 + super::FUNCTION_BYTES_MAX), "0x100030000");
    }

    /// Goal: hidden, an address is not told, and equal objects are still equal. Method: two of them, zero.
    #[test]
    fn a_hidden_address_is_not_told() {
        let mut names = KernelNames::default();
        names.hide_addresses();
        let [first, again, other, none] =
            [0xffff_8880_1234_5678, 0xffff_8880_1234_5678, 0xffff_8880_1234_5679, 0]
                .map(|address| text(|out| names.write_identity(address, out)));
        assert!(first == again && first != other && first.len() == 16, "{first} {again} {other}");
        assert!(!first.contains("12345678") && none == "0000000000000000", "{first} {none}");
        let unnamed = text(|out| names.write_symbol(0xffff_8880_1234_5678, out));
        assert!(unnamed.starts_with("0x") && !unnamed.contains("12345678"), "{unnamed}");
    }

    /// Goal: a task has the name that it was seen with last; one that was not seen is asked for once, and
    /// memory is bounded.
    #[test]
    fn tasks_have_the_names_that_were_seen() {
        let mut names = KernelNames::default();
        assert_eq!(names.task(7), b"<...>");
        names.ask_for_tasks(|pid| (pid == 9).then(|| b"asked".to_vec()));
        names.learn_task(7, b"first");
        names.learn_task(7, b"a name of more than fifteen bytes");
        names.learn_task(0, b"swapper/0");
        assert_eq!(names.task(7), b"a name of more ");
        assert_eq!((names.task(0).to_vec(), names.task(9).to_vec()), (b"<idle>".to_vec(), b"asked".to_vec()));
        assert_eq!(names.task(8), b"<...>");
        names.ask_for_tasks(|_| Some(b"later".to_vec()));
        assert_eq!(names.task(8), b"<...>", "it has ended");
        names.inherit_task(11, 7);
        names.inherit_task(12, 13);
        assert_eq!(
            (names.task(11).to_vec(), names.task(12).to_vec()),
            (b"a name of more ".to_vec(), b"later".to_vec())
        );
        names.name_task(7, b"for good");
        names.learn_task(7, b"other");
        assert_eq!(names.task(7), b"for good");
        names.name_task(7, b"first");
        for pid in 1..=TASKS_MAX as i32 + 5 {
            names.learn_task(pid, b"x");
        }
        assert_eq!(names.tasks.len(), TASKS_MAX);
        names.learn_task(70, b"y");
        assert_eq!(names.task(70), b"y", "it has a place");
    }
}

//! Names of the kernel's functions, from `/proc/kallsyms`.
//!
//! The file is opened once, while the process may read addresses, and read anew when an address is asked for
//! whose name is not known yet: a module may have been loaded meanwhile. Only names that were asked for are
//! kept.

use std::collections::{BTreeSet, HashMap};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Seek, SeekFrom};

/// See the module.
#[derive(Debug)]
pub(crate) struct Symbols {
    file: Option<File>,
    known: HashMap<u64, String>,
    asked: BTreeSet<u64>,
}

impl Symbols {
    /// Opens the running kernel's.
    pub(crate) fn open() -> Self {
        Self { file: File::open("/proc/kallsyms").ok(), known: HashMap::new(), asked: BTreeSet::new() }
    }

    /// The address of a function; `None` if it has none, or it may not be known.
    pub(crate) fn address(&mut self, function: &str) -> Option<u64> {
        let mut found = None;
        self.read(|address, name| {
            if name == function {
                found = Some(address);
            }
        })
        .ok()?;
        found.filter(|address| *address != 0)
    }

    /// Asks for the name of an address, which [`Symbols::look_up`] finds.
    pub(crate) fn ask(&mut self, address: u64) {
        if address != 0 && !self.known.contains_key(&address) {
            self.asked.insert(address);
        }
    }

    /// Finds all that were asked for. Cost: nothing if there are none; otherwise the file is read twice, some
    /// hundred thousand lines.
    pub(crate) fn look_up(&mut self) {
        let asked: Vec<u64> = std::mem::take(&mut self.asked).into_iter().collect();
        if asked.is_empty() {
            return;
        }
        // The nearest begin at or below each; then what begins there.
        let mut begins = vec![0; asked.len()];
        let first_read = self.read(|begin, _| {
            let first = asked.partition_point(|address| *address < begin);
            begins[first..].iter_mut().for_each(|best| *best = begin.max(*best));
        });
        let mut names: HashMap<u64, String> = HashMap::new();
        let wanted: BTreeSet<u64> = begins.iter().copied().filter(|begin| *begin != 0).collect();
        let second_read = self.read(|begin, name| {
            if wanted.contains(&begin) {
                names.entry(begin).or_insert_with(|| name.to_owned());
            }
        });
        let is_read = first_read.and(second_read).is_ok();
        for (address, begin) in asked.into_iter().zip(begins) {
            let text = match names.get(&begin).filter(|_| is_read) {
                None => format!("{address:#x}"),
                Some(name) if address == begin => name.clone(),
                Some(name) => format!("{name}+{:#x}", address - begin),
            };
            self.known.insert(address, text);
        }
    }

    /// The name of an address that was looked up, with the distance from its begin; the number otherwise.
    pub(crate) fn name(&self, address: u64) -> String {
        self.known.get(&address).cloned().unwrap_or_else(|| format!("{address:#x}"))
    }

    /// The function that an address lies in.
    pub(crate) fn function(&self, address: u64) -> String {
        let name = self.name(address);
        match name.split_once('+') {
            Some((function, _)) => function.to_owned(),
            None => name,
        }
    }

    /// Calls `take` with each address and name.
    fn read(&mut self, mut take: impl FnMut(u64, &str)) -> io::Result<()> {
        let Some(file) = &mut self.file else { return Ok(()) };
        file.seek(SeekFrom::Start(0))?;
        let mut reader = BufReader::with_capacity(1 << 16, file);
        let mut line = String::new();
        while reader.read_line(&mut line)? > 0 {
            let mut words = line.split_ascii_whitespace();
            let (address, kind, name) = (words.next(), words.next(), words.next());
            let address = address.and_then(|address| u64::from_str_radix(address, 16).ok());
            // Functions; the file has variables, too.
            if let (Some(address), Some("t" | "T" | "w" | "W"), Some(name)) = (address, kind, name) {
                take(address, name);
            }
            line.clear();
        }
        Ok(())
    }
}

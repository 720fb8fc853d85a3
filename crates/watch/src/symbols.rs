//! Names of the kernel's functions, from `/proc/kallsyms`.
//!
//! The file is opened once, while the process may read addresses, and read at the begin; and anew, though
//! seldom, when there is an address far from all that are known: a module may have been loaded meanwhile.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};
use std::time::{Duration, Instant};

/// Functions are shorter: what is farther from a begin is in none that is known.
const LENGTH_MAX: u64 = 1 << 20;
/// Reading takes some hundredths of a second.
const READ_EVERY: Duration = Duration::from_secs(60);

/// See the module.
#[derive(Debug)]
pub(crate) struct Symbols {
    file: Option<File>,
    read_at: Instant,
    is_unknown: bool,
    functions: FunctionTable,
}

impl Symbols {
    /// Reads the running kernel's.
    pub(crate) fn open() -> Self {
        let file = File::open("/proc/kallsyms").ok();
        let functions = FunctionTable::default();
        let mut symbols = Self { file, read_at: Instant::now(), is_unknown: false, functions };
        symbols.read();
        symbols
    }

    /// The address of a function; `None` if it has none, or it may not be known.
    pub(crate) fn address(&self, function: &str) -> Option<u64> {
        self.functions.address(function)
    }

    /// Asks for the name of an address, which [`Symbols::look_up`] finds if it can.
    pub(crate) fn ask(&mut self, address: u64) {
        self.is_unknown |= address != 0 && self.functions.find(address).is_none();
    }

    /// Finds what was asked for. Cost: nothing but once in a minute at most, and only where there is
    /// something new.
    pub(crate) fn look_up(&mut self) {
        if self.is_unknown && self.read_at.elapsed() >= READ_EVERY {
            self.read();
        }
        self.is_unknown = false;
    }

    /// The function that an address lies in; the number if it is not known.
    pub(crate) fn function(&self, address: u64) -> String {
        self.functions.find(address).map_or_else(|| format!("{address:#x}"), str::to_owned)
    }

    fn read(&mut self) {
        self.read_at = Instant::now();
        let Some(file) = &mut self.file else { return };
        if file.seek(SeekFrom::Start(0)).is_ok() {
            self.functions = FunctionTable::read(file);
        }
    }
}

/// Begins of functions, in order, with their names in one text.
#[derive(Debug, Default)]
struct FunctionTable {
    begins: Vec<(u64, u32)>,
    names: String,
}

impl FunctionTable {
    /// From lines of an address, a kind, a name, and perhaps a module. What cannot be read is left out.
    fn read(lines: impl Read) -> Self {
        let mut table = Self::default();
        for line in BufReader::with_capacity(1 << 16, lines).lines().map_while(Result::ok) {
            let mut words = line.split_ascii_whitespace();
            let (address, kind, name) = (words.next(), words.next(), words.next());
            let address = address.and_then(|address| u64::from_str_radix(address, 16).ok());
            let offset = u32::try_from(table.names.len());
            // Functions; the file has variables, too. Without the right to know them all addresses are 0.
            if let (Some(1..), Some("t" | "T" | "w" | "W"), Some(name), Ok(offset)) =
                (address, kind, name, offset)
            {
                table.begins.push((address.unwrap_or_default(), offset));
                table.names.push_str(name);
                table.names.push('\n');
            }
        }
        // Of several at one address the first is taken; modules come in any order.
        table.begins.sort_by_key(|(begin, _)| *begin);
        table.begins.dedup_by_key(|(begin, _)| *begin);
        table.begins.shrink_to_fit();
        table.names.shrink_to_fit();
        table
    }

    fn name(&self, offset: u32) -> &str {
        self.names[offset as usize..].split('\n').next().unwrap_or_default()
    }

    fn find(&self, address: u64) -> Option<&str> {
        let after = self.begins.partition_point(|(begin, _)| *begin <= address);
        let (begin, offset) = *self.begins.get(after.checked_sub(1)?)?;
        (address - begin < LENGTH_MAX).then(|| self.name(offset))
    }

    fn address(&self, function: &str) -> Option<u64> {
        self.begins.iter().find(|(_, offset)| self.name(*offset) == function).map(|(begin, _)| *begin)
    }
}

#[cfg(test)]
mod tests {
    use super::FunctionTable;

    /// Goal: an address has the name of the function it lies in, modules in any order; variables are none,
    /// and what is far from all is not known. Method: lines as the kernel has them, and as it has them for
    /// those who may not know.
    #[test]
    fn an_address_has_a_function() {
        let lines = "ffffffff81000000 T _stext\nffffffff81000000 T startup_64\nffffffff81000040 t second\n\
                     ffffffff81000050 d variable\nffffffffc0001000 t of_module\t[ext4]\n\
                     ffffffffa0001000 t of_another\t[xfs]\nnonsense\n";
        let table = FunctionTable::read(lines.as_bytes());
        for (address, name) in [
            (0xffff_ffff_8100_0000, Some("_stext")),
            (0xffff_ffff_8100_003f, Some("_stext")),
            (0xffff_ffff_8100_0040, Some("second")),
            (0xffff_ffff_8100_0051, Some("second")),
            (0xffff_ffff_a000_1008, Some("of_another")),
            (0xffff_ffff_c000_1000, Some("of_module")),
            (0xffff_ffff_c010_1000, None),
            (0x1000, None),
        ] {
            assert_eq!(table.find(address), name, "{address:#x}");
        }
        assert_eq!(table.address("of_module"), Some(0xffff_ffff_c000_1000));
        assert_eq!((table.address("variable"), table.address("second2")), (None, None));
        let hidden = FunctionTable::read(&b"0000000000000000 T _stext\n"[..]);
        assert_eq!((hidden.find(0), hidden.address("_stext")), (None, None));
    }
}

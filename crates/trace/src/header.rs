//! What a trace says about itself before its first event.
//!
//! Three sources: the `# key: value` lines of a quietcore recording, tracefs' own `# tracer:`
//! block (`#P:N`, entries written), and the `cpus=N` line of `trace-cmd report`.

use crate::field::unsigned;
use crate::kernel::KernelRelease;
use crate::wall_clock::{Seconds, WallClock, seconds};
use quietcore_core::{CpuSet, Nanos};
use std::fmt;

/// Nodes of a machine; the kernel's own limit.
const NODES_MAX: usize = 1_024;

/// Ticks per second that are believed: kernels have 24 to 1200. A tick is a whole number of nanoseconds then.
const HZ_MAX: u32 = 100_000;

/// See the module. Everything is optional: a plain trace says little.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Header {
    /// What a recording of ours calls itself.
    pub name: Option<String>,
    /// The kernel that wrote the trace.
    pub kernel: Option<KernelRelease>,
    /// Ticks per second of that kernel (`HZ`).
    pub hz: Option<u32>,
    /// One more than the highest possible CPU.
    pub cpu_count: Option<u16>,
    /// The CPUs of each NUMA node, in the order of the nodes.
    pub nodes: Vec<CpuSet>,
    /// Levels of the timer migration hierarchy, and the first that crosses nodes, from the kernel's log.
    pub hierarchy_levels: Option<(u64, u64)>,
    /// Domain-isolated CPUs, as that kernel listed them.
    pub isolated: Option<CpuSet>,
    /// The CPUs of which no event was left out, if the recorder left out those of others.
    pub whole_on: Option<CpuSet>,
    /// From when on every event is on, if the recorder switched them on one after another.
    pub whole_from: Option<Nanos>,
    /// CPUs with `nohz_full`, as that kernel listed them.
    pub nohz_full: Option<CpuSet>,
    /// The sysctl `kernel.timer_migration`.
    pub timer_migration: Option<bool>,
    /// The wall clock at one time of the recording.
    pub wall_clock: Option<WallClock>,
    /// The load that ran, in the recorder's words.
    pub load: Option<String>,
    /// Events that the recorder says were lost, or that the kernel overwrote before reading.
    pub lost_events: u64,
    /// How many events the text says that it has.
    pub entries: Option<u64>,
    /// Whether functions are known by their addresses alone.
    pub functions_unnamed: bool,
    /// The recording's list of isolated CPUs, if it is there and is no CPU list.
    pub isolated_unreadable: Option<String>,
    /// Whether this is a quietcore recording, which lists what the machine isolates.
    pub is_recording: bool,
}

impl Header {
    /// The header of a recording of ours with this name, which says nothing else yet.
    #[must_use]
    pub fn of_recording(name: &str) -> Self {
        Self { name: Some(name.to_owned()), is_recording: true, ..Self::default() }
    }

    /// Takes one line that is no event: true when it was a header line.
    pub(crate) fn take(&mut self, line: &[u8]) -> bool {
        if let Some(rest) = line.strip_prefix(b"cpus=") {
            self.take_report(&String::from_utf8_lossy(rest));
            return true;
        }
        let Some(text) = line.strip_prefix(b"#") else {
            return line.starts_with(b"version = ");
        };
        let text = String::from_utf8_lossy(text);
        let text = text.trim();
        if let Some((key, value)) = text.split_once(": ") {
            self.take_pair(key, value.trim());
        }
        if let Some((_, count)) = text.split_once("#P:") {
            let count = count.trim().parse().ok();
            self.cpu_count = self.cpu_count.or(count);
        }
        true
    }

    /// `2`, the first line of `trace-cmd report` behind `cpus=`; of a binary file also
    /// `2; uname: Linux host 6.12.107 x86_64; lost events: 3; functions have no names`.
    fn take_report(&mut self, text: &str) {
        let mut parts = text.split("; ");
        self.cpu_count = parts.next().and_then(number).and_then(|count| u16::try_from(count).ok());
        for part in parts {
            match part.split_once(": ") {
                // The system, its name, the kernel's release.
                Some(("uname", uname)) => {
                    self.kernel = uname.split(' ').nth(2).and_then(KernelRelease::parse);
                }
                Some(("lost events", count)) => self.add_lost(Some(count)),
                None => self.functions_unnamed |= part == "functions have no names",
                _ => {}
            }
        }
    }

    fn take_pair(&mut self, key: &str, value: &str) {
        match key {
            "trace" => (self.name, self.is_recording) = (Some(value.to_owned()), true),
            "kernel" => {
                let release = value.strip_prefix("Linux ").unwrap_or(value);
                let release = release.split([',', ' ']).next().unwrap_or_default();
                self.kernel = KernelRelease::parse(release);
                let hz = value.split_once("HZ=").and_then(|(_, rest)| first_number(rest));
                self.hz = hz.filter(|&hz| hz <= HZ_MAX);
                self.is_recording = true;
            }
            "cpus" => {
                let possible = value.strip_prefix("possible ").and_then(first_list);
                let count = possible.and_then(|cpus| cpus.iter().last()).map(|cpu| cpu.index() as u16 + 1);
                self.cpu_count = count.or(self.cpu_count);
                let nodes = value.split("node").skip(1).map_while(|node| node.split_once(": CPUs "));
                self.nodes = nodes.filter_map(|(_, cpus)| first_list(cpus)).take(NODES_MAX).collect();
            }
            "kernel log" => {
                if let Some((_, text)) = value.split_once("Timer migration: ") {
                    self.hierarchy_levels = levels(text);
                }
            }
            "isolated" => {
                self.isolated = first_list(value);
                self.isolated_unreadable = self.isolated.is_none().then(|| value.to_owned());
                self.nohz_full = value.split_once("nohz_full: ").and_then(|(_, list)| first_list(list));
            }
            "whole on" => self.whole_on = first_list(value),
            "whole from" => self.whole_from = seconds(value),
            "wall clock" => self.wall_clock = WallClock::parse(value),
            "load" => self.load = Some(value.to_owned()),
            "sysctl kernel timer_migration" => self.timer_migration = Some(value != "0"),
            "entries" => self.entries = number(value),
            "lost events" => self.add_lost(value.split(' ').next()),
            "entries-in-buffer/entries-written" => {
                let counts = value.split([' ', '\t']).next().and_then(|pair| pair.split_once('/'));
                let counts = counts.and_then(|(kept, written)| Some((number(kept)?, number(written)?)));
                if let Some((kept, written)) = counts {
                    self.lost_events = self.lost_events.max(written.saturating_sub(kept));
                    self.entries = Some(kept);
                }
            }
            _ => {}
        }
    }

    fn add_lost(&mut self, count: Option<&str>) {
        self.lost_events = self.lost_events.max(count.and_then(number).unwrap_or(0));
    }
}

/// The lines that say the same, but for what only a kernel's log or a reader knows.
impl fmt::Display for Header {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(name) = &self.name {
            writeln!(out, "# trace: {name}")?;
        }
        if let Some(kernel) = &self.kernel {
            let hz = self.hz.map(|hz| format!(", HZ={hz}")).unwrap_or_default();
            writeln!(out, "# kernel: Linux {}{hz}", kernel.text)?;
        }
        if let Some(count) = self.cpu_count.filter(|&count| count > 0) {
            write!(out, "# cpus: possible 0-{}", count - 1)?;
            for (number, node) in self.nodes.iter().enumerate() {
                let numa = if number == 0 { "NUMA " } else { "" };
                write!(out, "; {numa}node{number}: CPUs {node}")?;
            }
            writeln!(out)?;
        }
        if let Some(isolated) = &self.isolated {
            let nohz_full = self.nohz_full.as_ref();
            writeln!(out, "# isolated: {}; nohz_full: {}", list(Some(isolated)), list(nohz_full))?;
        }
        if let Some(whole_on) = &self.whole_on {
            writeln!(out, "# whole on: {whole_on}")?;
        }
        if let Some(whole_from) = self.whole_from {
            writeln!(out, "# whole from: {}", Seconds(whole_from))?;
        }
        if let Some(is_on) = self.timer_migration {
            writeln!(out, "# sysctl kernel timer_migration: {}", u8::from(is_on))?;
        }
        if let Some(clock) = &self.wall_clock {
            writeln!(out, "# wall clock: {clock}")?;
        }
        if let Some(load) = &self.load {
            writeln!(out, "# load: {load}")?;
        }
        if self.lost_events > 0 {
            writeln!(out, "# lost events: {}", self.lost_events)?;
        }
        Ok(())
    }
}

/// As the kernel lists them; `-` for none.
fn list(cpus: Option<&CpuSet>) -> String {
    cpus.filter(|cpus| !cpus.is_empty()).map_or_else(|| "-".to_owned(), CpuSet::to_string)
}

/// `2 hierarchy levels; 8 children per group; 1 crossnode level`.
fn levels(text: &str) -> Option<(u64, u64)> {
    let mut parts = text.split("; ").map(|part| part.split(' ').next().and_then(number));
    Some((parts.next()??, parts.nth(1)??))
}

fn number(text: &str) -> Option<u64> {
    unsigned(text.as_bytes())
}

/// The digits at the front of `text`, unless they are 0.
fn first_number(text: &str) -> Option<u32> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    text[..digits].parse().ok().filter(|&number| number > 0)
}

/// The CPU list at the front of `text`; `-` is the empty one.
fn first_list(text: &str) -> Option<CpuSet> {
    let list = text.split([';', ' ']).next()?.trim_end_matches(',');
    if list == "-" { Some(CpuSet::new()) } else { list.parse().ok() }
}

#[cfg(test)]
mod tests {
    use super::{Header, WallClock};
    use quietcore_core::{CpuSet, Nanos};

    fn read(lines: &[&str]) -> Header {
        let mut header = Header::default();
        for line in lines {
            assert!(header.take(line.as_bytes()), "{line:?} is a header line");
        }
        header
    }

    /// Goal: a recording's header gives every fact the figures depend on.
    #[test]
    fn a_recording_says_what_it_was_recorded_on() {
        let header = read(&[
            "# trace: g612-c16-iso",
            "# kernel: Linux 6.12.107, x86-64, HZ=250 (distribution kernel 6.12.107+deb13-cloud-amd64)",
            "# cpus: possible 0-15, online at the end 0-15; sockets 1; NUMA node0: CPUs 0-7; node1: CPUs 8-15",
            "# kernel log: [    0.682153] Timer migration: 2 hierarchy levels; 8 children per group; 1 crossnode level",
            "# isolated: 1-7,9-15; nohz_full: - (as the kernel lists them at the end)",
            "# sysctl kernel timer_migration: 0",
            "# lost events: 3 (overrun 3, commit overrun 0, dropped 0)",
            "# entries-in-buffer/entries-written: 100/107   #P:8",
        ]);
        assert_eq!(header.kernel.as_ref().map(|kernel| kernel.text.as_str()), Some("6.12.107"));
        assert_eq!(header.hz, Some(250));
        assert_eq!(header.cpu_count, Some(16), "possible CPUs, not the buffer's #P");
        assert_eq!(header.isolated.unwrap().to_string(), "1-7,9-15");
        assert_eq!(header.nohz_full.unwrap().to_string(), "");
        assert_eq!((header.timer_migration, header.lost_events), (Some(false), 7));
        assert_eq!(header.nodes.iter().map(ToString::to_string).collect::<Vec<_>>(), ["0-7", "8-15"]);
        assert_eq!(header.hierarchy_levels, Some((2, 1)));
        assert!(header.is_recording);
    }

    /// Goal: a tick that no kernel has is not known, so that nothing divides by it. Method: both ends.
    #[test]
    fn a_tick_is_believable() {
        let hz = |text: &str| read(&[&format!("# kernel: Linux 6.12.107, x86-64, HZ={text}")]).hz;
        assert_eq!((hz("1"), hz("100000")), (Some(1), Some(100_000)));
        assert_eq!((hz("0"), hz("100001"), hz("4294967295"), hz("99999999999")), (None, None, None, None));
    }

    /// Goal: plain traces give the little they know.
    #[test]
    fn a_plain_trace_says_how_many_cpus() {
        let ftrace = read(&["# tracer: nop", "#", "# entries-in-buffer/entries-written: 5/5   #P:4"]);
        assert_eq!((ftrace.cpu_count, ftrace.is_recording), (Some(4), false));
        assert_eq!(read(&["version = 7", "cpus=2"]).cpu_count, Some(2));
        assert!(!Header::default().take(b"7 = version = "), "it only looks like one");
        let unknown =
            read(&["# entries-in-buffer/entries-written: 5/5   #P:4", "# cpus: as many as there are"]);
        assert_eq!(unknown.cpu_count, Some(4));
        let kernel = read(&["# kernel: 6.12.107, x86-64, HZ=250"]).kernel;
        assert_eq!(kernel.map(|kernel| kernel.text).as_deref(), Some("6.12.107"));
    }

    /// Goal: what is written is read back. Method: nothing, and everything; nodes, and none.
    #[test]
    fn what_is_written_is_read_back() {
        let back = |header: &Header| {
            let text = header.to_string();
            read(&text.lines().collect::<Vec<_>>())
        };
        assert_eq!(back(&Header::default()), Header::default());
        let mut header = Header::of_recording("a name");
        assert_eq!(back(&header), header);
        header.kernel = crate::KernelRelease::parse("6.12.107-rt");
        (header.hz, header.cpu_count) = (Some(250), Some(16));
        header.isolated = Some(CpuSet::new());
        header.nohz_full = Some("3".parse().expect("a list"));
        (header.timer_migration, header.lost_events) = (Some(false), 7);
        header.load = Some("a load".to_owned());
        let (at, since_1970) = (Nanos(7), Nanos(1_795_817_949_000_000_070));
        header.wall_clock = Some(WallClock { at, since_1970 });
        header.whole_from = Some(Nanos(5_000_000_070));
        assert_eq!(back(&header), header);
        header.nodes = vec!["0-7".parse().expect("a list"), "8-15".parse().expect("a list")];
        header.isolated = Some("1-7,9".parse().expect("a list"));
        header.whole_on = header.isolated.clone();
        assert_eq!(back(&header), header);
    }

    /// Goal: a `trace.dat` says of which kernel it is, and what was lost, and is no recording of ours.
    #[test]
    fn a_trace_dat_says_of_which_kernel_it_is() {
        let header = read(&["cpus=16; uname: Linux a host 6.12.107-rt x86_64; lost events: 7"]);
        assert_eq!((header.kernel, header.cpu_count, header.lost_events), (None, Some(16), 7));
        let header = read(&["cpus=2; uname: Linux host 6.12.107-rt x86_64"]);
        assert_eq!(header.kernel.map(|kernel| kernel.text).as_deref(), Some("6.12.107-rt"));
        assert!(!header.is_recording && header.lost_events == 0 && !header.functions_unnamed);
        assert!(read(&["cpus=2; functions have no names"]).functions_unnamed);
        assert_eq!(read(&["cpus=x; other"]).cpu_count, None);
    }

    /// Goal: of what several lines say was lost the most counts. Method: two lines of each kind, in both
    /// orders.
    #[test]
    fn the_most_that_was_lost_counts() {
        let lines = ["# lost events: 9 (overrun 9)", "# entries-in-buffer/entries-written: 100/104   #P:8"];
        let lost = |lines: &[&str]| read(lines).lost_events;
        assert_eq!((lost(&lines), lost(&[lines[1], lines[0]])), (9, 9));
        let fewer = ["# lost events: 2 (overrun 2)", lines[1]];
        assert_eq!((lost(&fewer), lost(&[fewer[1], fewer[0]])), (4, 4));
        assert_eq!(
            [lines[0], lines[1], "# entries: 35641"].map(|line| read(&[line]).entries),
            [None, Some(100), Some(35_641)]
        );
    }

    /// Goal: a recording is told from a plain trace, and what it says unreadably is kept or left out. Method:
    /// each of the lines that only a recording has; lists and counts that are none.
    #[test]
    fn a_recording_is_known_by_its_lines() {
        assert!(read(&["# trace: x"]).is_recording);
        assert!(read(&["# kernel: Linux 6.12.107, x86-64, HZ=250"]).is_recording);
        let unreadable = read(&["# isolated: one-7; nohz_full: 3", "# lost events: some (overrun 5)"]);
        assert_eq!((&unreadable.isolated, unreadable.lost_events), (&None, 0));
        assert_eq!(unreadable.isolated_unreadable.as_deref(), Some("one-7; nohz_full: 3"));
        assert_eq!(unreadable.nohz_full.map(|list| list.to_string()).as_deref(), Some("3"));
        assert_eq!(read(&["# isolated: 1-7; nohz_full: -"]).isolated_unreadable, None);
    }
}

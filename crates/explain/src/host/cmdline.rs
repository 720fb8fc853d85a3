//! The kernel command line: its parameters, and what `isolcpus=` on it means.
//!
//! Decides which flags and CPUs one `isolcpus=` asks for, or why the kernel refuses it. Mirrors
//! the kernel's own reading, oddities included: a flag counts only when a comma follows it, an
//! unknown flag made of letters is skipped (from 5.8 on), any other one makes the kernel drop the
//! whole parameter.
//! Not here: whether the running kernel did what was asked (see `doctor`).
//! Source: Linux v5.17 and v6.19 kernel/sched/isolation.c (`housekeeping_isolcpus_setup`,
//! `housekeeping_setup`), lib/cmdline.c (`next_arg`), Documentation/admin-guide/kernel-parameters.

use super::files::{Fact, Reader};
use quietcore_core::{CpuError, CpuSet};
use std::str::FromStr;

/// The parameters that matter here, in order; everything after `--` belongs to init and is left out.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cmdline {
    params: Vec<Param>,
}

/// `name=value`, or a bare `name`. Dashes in names are underscores, as the kernel compares them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Param {
    pub(crate) name: String,
    pub(crate) value: Option<String>,
}

/// Parameters that some rule judges, or that explain a finding: only these are read, shown and copied.
const SHOWN: &[&str] = &[
    "clocksource",
    "idle",
    "intel_idle.max_cstate",
    "irqaffinity",
    "isolcpus",
    "kthread_cpus",
    "maxcpus",
    "nmi_watchdog",
    "nohz",
    "nohz_full",
    "nosmt",
    "nowatchdog",
    "nr_cpus",
    "preempt",
    "processor.max_cstate",
    "rcu_nocb_poll",
    "rcu_nocbs",
    "skew_tick",
    "threadirqs",
    "tsc",
    "workqueue.unbound_cpus",
];

impl Cmdline {
    pub(crate) fn read(reader: &mut Reader) -> Option<Fact<Self>> {
        let path = "/proc/cmdline";
        let line = Self::parse(&reader.part(path, shown_words)?);
        Some(Fact::new(path, &line.shown(), line))
    }

    fn shown(&self) -> String {
        let words: Vec<String> = self.params.iter().map(Param::to_string).collect();
        if words.is_empty() { "(no parameter about isolation or timers)".to_owned() } else { words.join(" ") }
    }

    /// Splits at blanks outside double quotes, and strips quotes around a value or a parameter.
    pub(crate) fn parse(text: &str) -> Self {
        let words = split(text);
        let kernel = words.iter().take_while(|word| word.as_str() != "--");
        Self { params: kernel.map(|word| Param::parse(word)).collect() }
    }

    /// The last value of `name`, as most parameters are overwritten by a repetition.
    pub(crate) fn value(&self, name: &str) -> Option<&str> {
        self.params.iter().rev().find(|param| param.name == name)?.value.as_deref()
    }

    /// Every occurrence of `name` with its place on the line.
    pub(crate) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = (usize, &'a str)> + 'a {
        let named = self.params.iter().enumerate().filter(move |(_, param)| param.name == name);
        named.map(|(at, param)| (at, param.value.as_deref().unwrap_or("")))
    }
}

impl std::fmt::Display for Param {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.value {
            Some(value) => write!(out, "{}={value}", self.name),
            None => out.write_str(&self.name),
        }
    }
}

impl Param {
    fn parse(word: &str) -> Self {
        let (name, value) = match word.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (word, None),
        };
        let unquoted = |text: &str| text.trim_matches('"').to_owned();
        Self { name: unquoted(name).replace('-', "_"), value: value.map(unquoted) }
    }
}

/// The words whose parameters are shown: others may hold secrets.
fn shown_words(text: &str) -> String {
    let words = split(text).into_iter().take_while(|word| word != "--");
    words.filter(|word| SHOWN.contains(&Param::parse(word).name.as_str())).collect::<Vec<_>>().join(" ")
}

fn split(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut quoted = false;
    for letter in text.chars() {
        quoted ^= letter == '"';
        if letter.is_whitespace() && !quoted {
            words.push(std::mem::take(&mut word));
        } else {
            word.push(letter);
        }
    }
    words.push(word);
    words.retain(|word| !word.is_empty());
    words
}

/// One `isolcpus=` as the kernel reads it.
#[derive(Clone, Debug)]
pub(crate) struct Isolcpus {
    /// Its place on the line: of two that disagree, the later one is dropped.
    pub(crate) at: usize,
    /// The value as written.
    pub(crate) text: String,
    /// Keep the CPUs out of the scheduling domains; also the default when no flag is known.
    pub(crate) domain: bool,
    /// Keep managed interrupts off the CPUs where possible.
    pub(crate) managed_irq: bool,
    /// Stop the tick, as `nohz_full=` does.
    pub(crate) nohz: bool,
    /// Flags that no kernel knows.
    pub(crate) unknown: Vec<String>,
    /// The CPUs; empty when refused.
    pub(crate) cpus: CpuSet,
    /// Why every kernel drops it.
    pub(crate) refusal: Option<Refusal>,
}

/// Why an `isolcpus=` is dropped as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// A flag with a character other than letters and `_`.
    BadFlag(String),
    /// No CPU list after the flags.
    NoList,
    /// The list cannot be read.
    BadList(CpuError),
}

impl Isolcpus {
    /// Reads one value; `possible` is what `all` and `N` in the list mean.
    pub(crate) fn parse(at: usize, text: &str, possible: &CpuSet) -> Self {
        let mut one = Self {
            at,
            text: text.to_owned(),
            domain: false,
            managed_irq: false,
            nohz: false,
            unknown: Vec::new(),
            cpus: CpuSet::new(),
            refusal: None,
        };
        let mut rest = text;
        while rest.starts_with(|letter: char| letter.is_ascii_alphabetic()) {
            let (flag, tail, comma) = match rest.split_once(',') {
                Some((flag, tail)) => (flag, tail, true),
                None => (rest, "", false),
            };
            rest = tail;
            match flag {
                "domain" if comma => one.domain = true,
                "managed_irq" if comma => one.managed_irq = true,
                "nohz" if comma => one.nohz = true,
                _ if flag.bytes().all(|byte| byte.is_ascii_alphabetic() || byte == b'_') => {
                    one.unknown.push(flag.to_owned());
                }
                _ => {
                    one.refusal = Some(Refusal::BadFlag(flag.to_owned()));
                    return one;
                }
            }
        }
        one.domain |= !one.managed_irq && !one.nohz;
        match cpu_list(rest, possible) {
            Ok(cpus) if cpus.is_empty() => one.refusal = Some(Refusal::NoList),
            Ok(cpus) => one.cpus = cpus,
            Err(error) => one.refusal = Some(Refusal::BadList(error)),
        }
        one
    }
}

/// A CPU list of a boot parameter: as in `CpuSet`, plus `all` and `N`, the last possible CPU.
pub(crate) fn cpu_list(text: &str, possible: &CpuSet) -> Result<CpuSet, CpuError> {
    if text.eq_ignore_ascii_case("all") {
        return Ok(possible.clone());
    }
    match possible.iter().last() {
        Some(last) => CpuSet::from_str(&text.replace('N', &last.to_string())),
        None => CpuSet::from_str(text),
    }
}

#[cfg(test)]
mod tests {
    use super::{Cmdline, Isolcpus, Refusal, cpu_list, shown_words};
    use quietcore_core::CpuSet;

    fn possible() -> CpuSet {
        "0-15".parse().unwrap()
    }

    /// Goal: words and quotes as the kernel splits them; init's words are not the kernel's.
    #[test]
    fn a_command_line_is_split_outside_quotes() {
        let line = Cmdline::parse(
            "quiet dyndbg=\"file a.c +p; func b\" \"isolcpus=4-7\" skew-tick=1 x=1 x=2 -- nohz_full=1",
        );
        assert_eq!(line.value("dyndbg"), Some("file a.c +p; func b"));
        assert_eq!(line.value("isolcpus"), Some("4-7"));
        assert_eq!(line.value("skew_tick"), Some("1"));
        assert_eq!(line.value("x"), Some("2"));
        assert_eq!((line.all("quiet").count(), line.all("nohz_full").count()), (1, 0));
        assert_eq!(line.all("x").collect::<Vec<_>>(), [(4, "1"), (5, "2")]);
    }

    /// Goal: of the line only what matters is read, and that means the same. Method: a secret, quotes, a dash
    /// in a name, and words of init.
    #[test]
    fn only_parameters_that_matter_are_read() {
        let text = "key=secret \"isolcpus=4-7\" skew-tick=1 dyndbg=\"a nohz_full=1\" -- nohz_full=1\n";
        let shown = shown_words(text);
        assert_eq!(shown, "\"isolcpus=4-7\" skew-tick=1");
        assert_eq!(Cmdline::parse(&shown).shown(), "isolcpus=4-7 skew_tick=1");
        assert_eq!(shown_words(&shown), shown);
    }

    /// Goal: each spelling means what the kernel makes of it. Method: a table.
    #[test]
    fn isolcpus_flags_are_read_as_the_kernel_reads_them() {
        for (text, [domain, managed, nohz], cpus) in [
            ("4-7", [true, false, false], "4-7"),
            ("domain,4-7", [true, false, false], "4-7"),
            ("managed_irq,4-7", [false, true, false], "4-7"),
            ("managed_irq,domain,2-N", [true, true, false], "2-15"),
            ("nohz,domain,1,3", [true, false, true], "1,3"),
            ("future_flag,4-7", [true, false, false], "4-7"),
        ] {
            let one = Isolcpus::parse(0, text, &possible());
            assert_eq!((one.domain, one.managed_irq, one.nohz), (domain, managed, nohz), "isolcpus={text}");
            assert_eq!(one.cpus.to_string(), cpus, "isolcpus={text}");
            assert_eq!(one.refusal, None, "isolcpus={text}");
        }
    }

    /// Goal: a refusal names its reason. Method: one text per reason.
    #[test]
    fn isolcpus_that_the_kernel_drops_says_why() {
        let refusal = |text| Isolcpus::parse(0, text, &possible()).refusal;
        assert_eq!(refusal("domain,x9,4-7"), Some(Refusal::BadFlag("x9".to_owned())));
        assert_eq!(refusal("managed-irq,4-7"), Some(Refusal::BadFlag("managed-irq".to_owned())));
        assert_eq!(refusal("domain"), Some(Refusal::NoList));
        assert!(matches!(refusal("7-4"), Some(Refusal::BadList(_))));
        assert!(cpu_list("0-99999999", &possible()).is_err());
        assert_eq!(cpu_list("ALL", &possible()), Ok(possible()));
    }
}

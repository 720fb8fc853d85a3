//! What is not compared, and where we differ: each with its reason.

/// Kinds that are not here, as words of lines.
pub(crate) const ABSENT: &[&str] = &[
    "ingress",
    "clsact",
    "cake",
    " fw ",
    "flower",
    "basic",
    "match u32",
    "match u8",
    "ip tos",
    "ip6",
    "divisor",
    "monitor",
    "802.1q",
    "filter replace",
];

/// A form of `show` that is not compared.
pub(crate) struct Form {
    object: &'static str,
    style: &'static str,
    /// What is in the recording.
    has: &'static str,
}

impl Form {
    pub(crate) fn excuses(&self, object: &str, style: &str, said: &str) -> bool {
        self.object == object && style.contains(self.style) && said.contains(self.has)
    }
}

pub(crate) const FORMS: &[Form] = &[
    // `tc` 6.1 prints text with `-j`, too; here it is JSON as 6.15 prints it.
    Form { object: "class", style: "-j", has: "" },
    // `tc` 6.1 prints `"options":{bands 4/4 }`, which is no JSON.
    Form { object: "qdisc", style: "-j", has: "{bands" },
    // `tc` 6.1 prints `"options":{default 1 }`, which is no JSON.
    Form { object: "qdisc", style: "-j", has: "{default" },
];

/// A line that differs.
pub(crate) struct Different {
    /// A part of its title; its end, if that is marked with `$`.
    pub(crate) line: &'static str,
    pub(crate) why: &'static str,
}

impl Different {
    pub(crate) fn is_of(&self, title: &str) -> bool {
        self.line.strip_suffix('$').map_or_else(|| title.contains(self.line), |end| title.ends_with(end))
    }
}

const fn different(line: &'static str, why: &'static str) -> Different {
    Different { line, why }
}

const UNIFORM: &str =
    "tc-netem(8) names it, tc looks for a file of that name; here it is netem without a table";
const NEWER: &str = "newer tc takes it, 6.1 does not know it";
const TWICE: &str = "a value that is given twice is refused, tc takes the last one";
const MINOR: &str = "the kernel makes a class `1:`, which has the discipline's own name";
const UNREAD: &str = "the kernel takes an attribute of htb for drr's quantum";
const SHORT: &str = "options may be shortened, where tc knows these in full only";
const OWN: &str = "it is about the program, and says what this one is";
const KERNEL_NO: &str = "the kernel of the recording has it no more";

const ORDER: &str =
    "the kernel orders by handles, and those of the recording were others before they were renumbered";

pub(crate) const DIFFERENT: &[Different] = &[
    different("netem gap 5 delay 10ms", "the kernel reorders by a gap alone; tc cannot tell it that"),
    different("distribution uniform", UNIFORM),
    different("netem delay 3ms seed 42", NEWER),
    different("netem delay 10ms delay 20ms", TWICE),
    different("fq priomap", NEWER),
    different("fq bands 3", NEWER),
    different("netem delay 1234567ns", NEWER),
    different("classid 1:0 drr", MINOR),
    different("drr => class add dev eth0 parent 1: classid 1:1 htb rate 1mbit", UNREAD),
    different("ets band 3", SHORT),
    different("cbq", KERNEL_NO),
    different("=> -V", OWN),
    different("=> qdisc help", OWN),
    different("=> class help", OWN),
    different("-j -p filter show", "tc breaks off in the middle"),
    different("-j -p -s class show", "tc 6.1 prints text"),
    different("slot 1ms 2ms bytes 10k packets 3", "here packets and bytes of a slot are taken in any order"),
    different("more | => class show$", "without a device tc says nothing; here it says that one is missing"),
    different("more | => filter show$", "without a device tc says nothing; here it says that one is missing"),
    different("mq => qdisc replace dev eth0 parent 1:1 netem delay 1ms", ORDER),
    different("parent 1:1 netem delay 1ms => qdisc add dev eth0 parent 1:2 netem delay 2ms", ORDER),
];

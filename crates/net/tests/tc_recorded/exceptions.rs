//! What is not compared, and where we differ: each with its reason.

/// Kinds that are not here, as words of lines.
pub(crate) const ABSENT: &[&str] = &["monitor"];

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
    // `tc` 6.1 prints `"options":{handle 0x6 classid 1:10 }`, a match as in text, and a name without a value,
    // which are no JSON.
    Form { object: "filter", style: "-j", has: "{handle" },
    // The kernel breaks off at a `fw` without a filter.
    Form { object: "filter", style: "", has: "Buffer too small" },
    Form { object: "filter", style: "-j", has: "\n" },
    // Of a `police` without `action` it has text there.
    Form { object: "filter", style: "-j", has: "} Sent 0 bytes" },
    Form { object: "filter", style: "-j", has: "\"    offset \"" },
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

const UNDER_LOCK: &str = "filters of a discipline are asked under the lock of its queue";
const ONE_ORDER: &str = "actions are asked in order";
const NO_KIND: &str = "tc lets a line without a kind pass, which changes nothing";
const NO_LINK: &str = "packets have no link header";
const NO_META: &str = "packets have no such thing";
const LAST_MATCH: &str = "tc 6.1 stops at a match behind which nothing stands";

const ORDER: &str =
    "the kernel orders by handles, and those of the recording were others before they were renumbered";

pub(crate) const DIFFERENT: &[Different] = &[
    different("flowid 1:10 flowid 1:11", TWICE),
    different("flowid 1:1 flowid 1:2", TWICE),
    different("classid 1:1 classid 1:2", TWICE),
    different("cake besteffort diffserv4", TWICE),
    different("cake flows hosts", TWICE),
    different("cake nat nonat", TWICE),
    different("cake ingress egress", TWICE),
    different(" indev ", "packets have not come in at another device"),
    different("filter replace dev eth0 parent 1: protocol ip prio 5$", NO_KIND),
    different("filter get dev eth0 parent 1: protocol", "rules are shown by `filter show` alone"),
    different("chain 1", "there is one chain, 0"),
    different("prio 7 estimator", "filters are not estimated"),
    different("matchall classid 1:1 skip_", "tc 6.1 stops where nothing stands behind it"),
    different("chain 4294967295", "there is one chain, 0"),
    different("prio 7 route", "the kind is not here"),
    different("flower src_ip any", "tc says of `any` that it is out of range"),
    different("flower ip_proto tcp hw_tc", "there is no hardware that filters"),
    different("flower dst_mac", NO_LINK),
    different("flower src_mac", NO_LINK),
    different("802.1q prio 7 flower vlan_id", NO_LINK),
    different("flower vlan_ethtype", NO_LINK),
    different("flower arp_sip", NO_LINK),
    different("flower ct_state", "connections are not tracked"),
    different("flower enc_key_id", "packets have not come through a tunnel"),
    different("meta(random mask 0xff", NO_META),
    different("meta(random mask 1", NO_META),
    different("meta(dev eq \\\"", NO_META),
    different("meta(vlan eq", NO_META),
    different("meta(vlan mask", NO_META),
    different("meta(tc_index", NO_META),
    different("meta(rt_iif", NO_META),
    different("meta(sk_family", NO_META),
    different("meta(pkt_type", NO_META),
    different("meta(sk_rcvbuf", NO_META),
    different("meta(data_len", NO_META),
    different("meta(mac_len", NO_META),
    different("canid(", "packets are none of CAN"),
    different("basic match 'cmp(u8 at 9 layer 1 eq 6)'$", LAST_MATCH),
    different("basic flowid 1:1 match 'cmp(u8 at 9 layer 1 eq 6)'$", LAST_MATCH),
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
    different("u32 match u32 0 0 flowid 1:10 action mirred egress redirect dev ifb0", UNDER_LOCK),
    different("u32 match u32 0 0 flowid 1:10 action mirred egress mirror dev ifb0", UNDER_LOCK),
    different("action mirred ingress", "what comes in at a device is the program's to give on"),
    different("action goto chain", "there is one chain, 0"),
    different("action jump 2", ONE_ORDER),
    different("action drop cookie", "actions have no names"),
    different("action drop hw_stats", "there is no hardware that filters"),
    different("action police avrate", "what passes is not estimated"),
    different("action police pkts_rate 1000", "bytes are policed, not packets"),
    different("burst 10k drop action pass$", "the kernel forgets the action; here it is refused"),
    different("action gact pass => -j -s -d filter show dev eth0 ingress$", "tc prints text within JSON"),
    different("=> -j -p -s filter show dev eth0 ingress$", "tc breaks off"),
    different("ingress_block 22 clsact", "blocks of filters do not exist"),
    different("qdisc show dev eth0 invisible", "what is shown is all that there is"),
    different("=> -V", OWN),
    different("=> qdisc help", OWN),
    different("=> class help", OWN),
    different("u32 match ip dport 80 0xffff flowid 1:10 => -j -p filter show", "tc breaks off in the middle"),
    different("-j -p -s class show", "tc 6.1 prints text"),
    different("slot 1ms 2ms bytes 10k packets 3", "here packets and bytes of a slot are taken in any order"),
    different("more | => class show$", "without a device tc says nothing; here it says that one is missing"),
    different("more | => filter show$", "without a device tc says nothing; here it says that one is missing"),
    different("mq => qdisc replace dev eth0 parent 1:1 netem delay 1ms", ORDER),
    different("parent 1:1 netem delay 1ms => qdisc add dev eth0 parent 1:2 netem delay 2ms", ORDER),
];

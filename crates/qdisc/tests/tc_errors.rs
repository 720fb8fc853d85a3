//! The exact texts of errors: the line, the mark, what is wrong, what may stand there.

use quietcore_qdisc::tc::{TcProblem, parse, parse_script};

/// The first line of `text` is a line of `tc`, the whole text its error.
fn check(text: &str) {
    let line = text.lines().next().expect("a line");
    match parse(line) {
        Ok(command) => panic!("{line} is taken as {command}"),
        Err(error) => assert_eq!(error.to_string(), text, "\n{error}"),
    }
}

/// Goal: errors name what is wrong, and what may stand there. Method: each block between empty lines is a
/// line and its error.
#[test]
fn errors_name_what_is_wrong() {
    let all = [
        WHAT_BEGINS_A_LINE,
        HEADS,
        IDS_AND_ESTIMATORS,
        OPTIONS_OF_NETEM,
        WHAT_BELONGS_TOGETHER,
        OTHER_KINDS,
        SERVICE_CURVES,
        FILTERS,
    ];
    for texts in all.map(|texts| texts.trim().split("\n\n").collect::<Vec<_>>()) {
        assert!(texts.len() > 5, "the blocks are apart");
        texts.into_iter().for_each(check);
    }
}

/// Words before the head.
const WHAT_BEGINS_A_LINE: &str = "
tc
   ^
tc lacks an object; allowed: qdisc, class, filter

qdisk add dev eth0 root mq
^^^^^
unknown object `qdisk`; allowed: qdisc, class, filter

-x qdisc show
^^
unknown flag `-x`; allowed: -statistics, -stats, -details, -json, -pretty, -graph, -iec, -Numeric, -quietcore

qdisc bad dev eth0
      ^^^
unknown command `bad`; allowed: add, change, replace, delete, show, list, ls

filter get dev eth0 matchall flowid 1:1
       ^^^
unknown command `get`; allowed: add, change, replace, delete, show, list, ls

qd show dev eth0 netem
                 ^^^^^
unknown word for show `netem`; allowed: dev, root, parent, handle, ingress, clsact

class show
           ^
class show lacks `dev`
";

/// The words before the kind.
const HEADS: &str = "
qdisc add
          ^
qdisc add lacks `dev`

qdisc add dev
              ^
the value of `dev` is missing; allowed: the name of a device

qdisc add dev eth0 root
                        ^
qdisc add lacks a kind; allowed: pfifo, bfifo, mq, netem, tbf, fq, htb, hfsc, cbq, prio, codel, fq_codel, cake, sfq, red, pfifo_fast, noqueue, multiq, drr, ets, ingress, clsact

class add dev eth0 parent 1:
                             ^
class add lacks a kind; allowed: htb, hfsc, cbq, drr, ets

qdisc add root mq
                  ^
qdisc add lacks `dev`

qdisc add dev eth0 mq
                      ^
qdisc add lacks `root` or `parent`

qdisc add dev eth0 root abc
                        ^^^
unknown kind of qdisc `abc`; allowed: pfifo, bfifo, mq, netem, tbf, fq, htb, hfsc, cbq, prio, codel, fq_codel, cake, sfq, red, pfifo_fast, noqueue, multiq, drr, ets, ingress, clsact, dev, root, parent, handle, est

qdisc add dev eth0 root ingress
                        ^^^^^^^
`ingress` and `root` exclude each other

qdisc add dev eth0 clsact limit 5
                          ^^^^^
`limit` is too much: clsact has no options

qdisc add dev eth0 root parent 1:1 mq
                        ^^^^^^
`parent` and `root` exclude each other

qdisc add dev eth0 parent 1:1 root mq
                              ^^^^
`root` and `parent` exclude each other

qdisc add dev eth0 root root mq
                        ^^^^
`root` is given twice

qdisc add dev eth0 dev eth1 root mq
                   ^^^
`dev` is given twice

qdisc add dev averylongdevicename root mq
              ^^^^^^^^^^^^^^^^^^^
`averylongdevicename` is not the name of a device: at most 15 bytes, without / and :

qdisc del dev eth0
                   ^
qdisc del lacks `root`, `parent` or `handle`

class del dev eth0
                   ^
class del lacks `classid`

class add dev eth0 classid 1:1 htb rate 1mbit
                                              ^
class add lacks `parent`

class add dev eth0 root htb rate 1mbit
                   ^^^^
unknown kind of class `root`; allowed: htb, hfsc, cbq, drr, ets, dev, parent, classid, est

class add dev eth0 parent 1: classid 1:1 netem delay 1ms
                                         ^^^^^
`netem` is not supported: it has no classes; allowed: htb, hfsc, cbq, drr, ets
";

/// Ids and the times of an estimator.
const IDS_AND_ESTIMATORS: &str = "
qdisc add dev eth0 root handle 0: mq
                               ^^
`0:` is out of range: from 1: to ffff:; allowed: MAJOR: in hexadecimal, from 1: to ffff:

qdisc add dev eth0 parent 1-1 mq
                          ^^^
`1-1` is not an id such as 1:10; allowed: MAJOR:MINOR in hexadecimal, from 1: to ffff:ffff

qdisc add dev eth0 parent 10000:1 mq
                          ^^^^^^^
`10000:1` is out of range: from 1: to ffff:ffff; allowed: MAJOR:MINOR in hexadecimal, from 1: to ffff:ffff

qdisc add dev eth0 root est 1sec netem limit 10
                                 ^^^^^
`netem` is not a time; allowed: a number with s, ms, us or ns

qdisc add dev eth0 root est 1sec
                                 ^
the value of `est` is missing; allowed: a number with s, ms, us or ns

qdisc add dev eth0 root est 1sec 0s mq
                                 ^^
`0s` is out of range: from 1ns to 9223372036854775807ns
";

/// Names and values.
const OPTIONS_OF_NETEM: &str = "
qd add dev eth0 root netem dleay 6ms
                           ^^^^^
unknown option of netem `dleay`; allowed: limit, delay, latency, distribution, loss, drop, ecn, corrupt, duplicate, reorder, gap, rate, slot, seed

qd add dev eth0 root netem d 6ms
                           ^
`d` begins more than one option of netem; allowed: delay, distribution, drop, duplicate

qd add dev eth0 root netem delay
                                 ^
the value of `delay` is missing; allowed: a number with s, ms, us or ns

qd add dev eth0 root netem delay 6xs
                                 ^^^
`6xs` is not a time; allowed: a number with s, ms, us or ns

qd add dev eth0 root netem delay -6ms
                                 ^^^^
`-6ms` is not a time; allowed: a number with s, ms, us or ns

qd add dev eth0 root netem delay 6ms limit 10 delay 7ms
                                              ^^^^^
`delay` is given twice

qd add dev eth0 root netem delay 99999999999s
                                 ^^^^^^^^^^^^
`99999999999s` is out of range: from 0 to 9223372036854775807ns; allowed: a number with s, ms, us or ns

qd add dev eth0 root netem limit ten
                                 ^^^
`ten` is not an integer

qd add dev eth0 root netem limit 4294967296
                                 ^^^^^^^^^^
`4294967296` is out of range: from 0 to 4294967295

qd add dev eth0 root netem rate fast
                                ^^^^
`fast` is not a rate; allowed: a number with bit, kbit, mbit, gbit, tbit (per second), bytes with bps to tbps, kibit and so on

qd add dev eth0 root netem loss
                                ^
the value of `loss` is missing; allowed: random, state, gemodel, a percentage

qd add dev eth0 root netem loss some
                                ^^^^
`some` is not a model of loss; allowed: random, state, gemodel, a percentage

qd add dev eth0 root netem loss 101%
                                ^^^^
`101%` is out of range: from 0% to 100%; allowed: a number from 0 to 100, with or without %

qd add dev eth0 root netem loss state
                                      ^
the value of `loss state` is missing; allowed: a number from 0 to 100, with or without %

qd add dev eth0 root netem slot 1ms packets 3 packets 4
                                              ^^^^^^^
`packets` is given twice
";

/// Options that need or exclude others.
const WHAT_BELONGS_TOGETHER: &str = "
qd add dev eth0 root netem delay 6ms distribution normal limit 4
                                     ^^^^^^^^^^^^
`distribution` needs `delay` with a jitter

qd add dev eth0 root netem delay 6ms 1ms distribution
                                                      ^
the value of `distribution` is missing; allowed: uniform, normal, pareto, paretonormal, experimental, FILE.dist

qd add dev eth0 root netem reorder 25%
                           ^^^^^^^
`reorder` needs `delay`

qd add dev eth0 root netem ecn
                           ^^^
`ecn` needs `loss`

qd add dev eth0 root tbf rate 1mbit burst 5kb
                                              ^
tbf lacks `limit` or `latency`

qd add dev eth0 root tbf rate 1mbit burst 5kb limit 10k latency 70ms
                                                        ^^^^^^^
`latency` and `limit` exclude each other

qd add dev eth0 root tbf rate 1mbit burst 5kb limit 10k peakrate 2mbit
                                                        ^^^^^^^^
`peakrate` needs `mtu`

class add dev eth0 parent 1: hfsc rt rate 1mbit ul rate 2mbit
                                                ^^
`ul` needs `ls` or `sc`

class add dev eth0 parent 1: hfsc rt rate 1mbit sc rate 2mbit
                                  ^^
`rt` and `sc` exclude each other

class add dev eth0 parent 1: hfsc ls rate 1mbit sc rate 2mbit
                                  ^^
`ls` and `sc` exclude each other

class add dev eth0 parent 1: classid 1:1 htb prio 3
                                                    ^
htb lacks `rate`

class add dev eth0 parent 1: cbq rate 1mbit allot 1514
                                                       ^
cbq lacks `avpkt`

class add dev eth0 parent 1: cbq rate 1mbit allot 1514 avpkt 1000 maxburst 20 prio 1
                                                                  ^^^^^^^^
`maxburst` needs `bandwidth`
";

/// One of each sort.
const OTHER_KINDS: &str = "
qdisc add dev eth0 root mq limit 10
                           ^^^^^
`limit` is too much: mq has no options

qd add dev eth0 root tbf rate 1mbit burst 5kb/15 limit 10k
                                          ^^^^^^
`5kb/15` is not a size with a cell that is a power of 2; allowed: a number with b, k, m or g (bytes), the same and /CELL

qd add dev eth0 root tbf rate 1mbit maxburst 5kb buffer 6kb limit 10k
                                                 ^^^^^^
`buffer` sets `burst`, which is given already

qd add dev eth0 root tbf rate 1mbit burst 5kb limit 5x
                                                    ^^
`5x` is not a size; allowed: a number with b, k, m or g (bytes), kbit, mbit or gbit

qd add dev eth0 root fq horizon_ 1ms
                        ^^^^^^^^
`horizon_` begins more than one option; allowed: horizon_drop, horizon_cap

qd add dev eth0 root fq pacing nopacing
                               ^^^^^^^^
`nopacing` sets `pacing`, which is given already

qd add dev eth0 root fq priomap 1 2 2 3
                                      ^
`3` is out of range: from 0 to 2

qd add dev eth0 root prio priomap 1 16
                                    ^^
`16` is out of range: from 0 to 15

qd add dev eth0 root prio priomap 0 1 2 0 1 2 0 1 2 0 1 2 0 1 2 0 3
                                                                  ^
unknown option of prio `3`; allowed: bands, priomap

qd add dev eth0 root tbf burst 5kb limit 10k
                                             ^
tbf lacks `rate`

qd add dev eth0 root tbf rate 1mbit limit 10k
                                              ^
tbf lacks `burst`

qd add dev eth0 root htb default 1ffff
                                 ^^^^^
`1ffff` is out of range: from 0 to ffff; allowed: a hexadecimal number from 0 to ffff
";

/// Curves cut short, or without a form.
const SERVICE_CURVES: &str = "
class add dev eth0 parent 1: hfsc
                                  ^
hfsc lacks a curve: `rt`, `ls` or `sc`

class add dev eth0 parent 1: hfsc sc
                                     ^
the value of `sc` is missing; allowed: m1, d, m2, umax, dmax, rate

class add dev eth0 parent 1: hfsc sc 1mbit
                                     ^^^^^
unknown part of a curve `1mbit`; allowed: m1, d, m2, umax, dmax, rate

class add dev eth0 parent 1: hfsc sc m1 1mbit m2 2mbit
                                              ^^
`m1` needs `d` behind it; allowed: d

class add dev eth0 parent 1: hfsc rt umax 1500b rate 1mbit
                                                ^^^^
`umax` needs `dmax` behind it; allowed: dmax

class add dev eth0 parent 1: hfsc rt umax 1500b dmax 10ms
                                                          ^
the value of `rt` is missing; allowed: rate

class add dev eth0 parent 1: hfsc rt umax 1500b dmax 10ms m2 1mbit
                                                          ^^
unknown part of a curve `m2`; allowed: rate
";

/// Fields, masks, addresses, matches.
const FILTERS: &str = "
filter add dev eth0 parent 1: u32 match ip dport 80 0x1ffff flowid 1:1
                                                    ^^^^^^^
`0x1ffff` is out of range: from 0 to 0xffff

filter add dev eth0 parent 1: u32 match u32 1 1 at 2
                                                   ^
`2` is not a multiple of 4, where a word begins

filter add dev eth0 parent 1: u32 match ip src 10.0.0.0/33 flowid 1:1
                                               ^^^^^^^^^^^
`10.0.0.0/33` is out of range: from /0 to /32; allowed: ADDRESS, ADDRESS/LENGTH, ADDRESS/MASK, any

filter add dev eth0 parent 1: u32 match ip src 10.0.x flowid 1:1
                                               ^^^^^^
`10.0.x` is not an IPv4 address; allowed: ADDRESS, ADDRESS/LENGTH, ADDRESS/MASK, any

filter add dev eth0 parent 1: u32 match sctp dst 80 0xffff flowid 1:1
                                        ^^^^
unknown header `sctp`; allowed: u32, u16, u8, ip, ip6, udp, tcp, icmp, mark, ether

filter add dev eth0 parent 1: u32 divisor 3
                                          ^
`3` is not a power of 2 of at most 256

filter add dev eth0 parent 1: flow flowid 1:1
                              ^^^^
unknown kind of filter `flow`; allowed: u32, fw, flower, basic, matchall, dev, root, parent, protocol, prio, \
priority, pref, preference, handle, chain, ingress, egress

filter add dev eth0 protocol ip prio 70000 matchall flowid 1:1
                                     ^^^^^
`70000` is not a priority, from 0 to 65535

filter add dev eth0 matchall flowid 1:1 classid 1:2
                                        ^^^^^^^
`classid` sets `flowid`, which is given already

filter add dev eth0 prio 1 handle 1:x u32 match u32 0 0
                                  ^^^
`1:x` is not a name of a table or rule, such as 800::801

filter add dev eth0 ingress egress matchall action drop
                            ^^^^^^
`egress` and `parent` exclude each other

filter add dev eth0 u32 match u32 0 0 flowid 1:1 action dorp
                                                        ^^^^
unknown action `dorp`; allowed: pass, ok, drop, shot, pipe, continue, reclassify, gact, police, mirred

filter add dev eth0 matchall action
                                    ^
the value of `action` is missing; allowed: pass, ok, drop, shot, pipe, continue, reclassify, gact, police, mirred

filter add dev eth0 matchall action drop action goto chain 2
                                                ^^^^
`goto` is not supported: there is one chain of filters, and their actions are asked in order; allowed: pass, ok, drop, \
shot, pipe, continue, reclassify

filter add dev eth0 matchall action pedit ex munge ip ttl set 9
                                    ^^^^^
`pedit` is not supported: packets are not changed by filters; allowed: gact, police, mirred

filter add dev eth0 matchall action police rate 1mbit drop
                                                           ^
police lacks `burst`; allowed: rate, burst, mtu, peakrate, conform-exceed, index

filter add dev eth0 matchall action police rate 1mbit burst 10k avrate 1mbit
                                                                ^^^^^^
`avrate` is not supported: what passes is not estimated; use `rate`

filter add dev eth0 matchall police mtu 9 action drop
                                          ^^^^^^
`police` and `action` exclude each other

filter add dev eth0 matchall action mirred egress redirect
                                                           ^
the value of `mirred` is missing; allowed: dev

filter add dev eth0 flower dst_port 80
                                    ^^
`80` is not for this protocol: `ip_proto tcp`, `udp` or `sctp` has to stand before

filter add dev eth0 basic match cmp(u8 at 9 eq)
                                            ^^^
`eq)` is not complete: cmp(u8|u16|u32 at OFFSET [layer LAYER] eq|gt|lt VALUE)

filter add dev eth0 basic match ipset(A dst)
                                ^^^^^^^
`ipset(A` is not supported: the kernel's sets of addresses are not there; match addresses with u32 or flower

filter add dev eth0 basic match meta(nf_mark eq 6
                                                  ^
a match lacks its end, `)`

filter add dev eth0 chain 2 matchall flowid 1:1
                          ^
`2` is not supported: there is one chain of filters, 0
";

/// Goal: marks stand below the word whatever is before it. Method: tabs, wide letters, a hostile line.
#[test]
fn marks_below_words() {
    for (line, shown) in [
        (
            "\tqd  add dev eth0 root\tnettem ",
            "\tqd  add dev eth0 root\tnettem\n\t                     \t^^^^^^\n",
        ),
        ("qd add dev ärger root x", "qd add dev ärger root x\n                      ^\n"),
        ("qd add dev \u{1b}[2J root x\u{7}y", "qd add dev  [2J root x y\n                     ^^^\n"),
        ("qd add # nothing", "qd add # nothing\n       ^\n"),
        ("", "\n^\n"),
    ] {
        let error = parse(line).expect_err("not a command");
        assert!(error.to_string().starts_with(shown), "{error}");
        assert!(error.to_string().lines().count() == 3 && error.line() == line);
    }
}

/// Goal: a program can use an error without reading its text. Method: position, problem and list of one.
#[test]
fn parts_of_an_error() {
    let error = parse("qd add dev eth0 root netem d 6ms").expect_err("ambiguous");
    assert_eq!(error.position(), 27..28);
    assert_eq!(error.problem(), &TcProblem::Ambiguous("option of netem"));
    assert_eq!(error.allowed(), ["delay", "distribution", "drop", "duplicate"]);
    let error = parse("qd add dev eth0 root netem delay  # too short").expect_err("no value");
    assert_eq!((error.position(), error.problem()), (32..32, &TcProblem::MissingValue("delay")));
}

/// Goal: a script's error says which line. Method: one between valid ones.
#[test]
fn a_line_of_a_script() {
    let error = parse_script("# title\ntc qd\n\n  tc qd ad dev\ntc qd").expect_err("no device");
    assert_eq!(error.line(), 4);
    assert_eq!(
        error.to_string(),
        "line 4:\n  tc qd ad dev\n               ^\nthe value of `dev` is missing; allowed: the name of a device"
    );
}

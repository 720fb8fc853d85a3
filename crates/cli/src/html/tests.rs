//! Pages of small recordings.

use super::page;
use quietcore_explain::{Explain, ExplainOptions, Explanation};
use quietcore_trace::TraceReader;

/// CPU 1 is isolated: a softirq that a device's interrupt of CPU 0 began, a task with a hostile name that CPU
/// 0 woke, a timer of it, its own task; and a mark of lost events.
const RECORDING: &str = "\
<i>&x-7 [000] d..2. 1.000000: sched_waking: comm=<b>\"'& pid=9 prio=120 target_cpu=001
   me-5 [001] d..2. 1.000010: sched_switch: prev_comm=me prev_pid=5 prev_prio=120 prev_state=R ==> next_comm=<b>\"'& next_pid=9 next_prio=120
<b>\"'&-9 [001] d..2. 1.000040: sched_switch: prev_comm=<b>\"'& prev_pid=9 prev_prio=120 prev_state=S ==> next_comm=me next_pid=5 next_prio=120
 <i>&x-7 [000] d..2. 1.100000: timer_start: timer=01 function=f expires=9 [timeout=1] cpu=1 idx=1 flags=
   me-5 [001] d.s1. 1.200000: softirq_entry: vec=1 [action=TIMER]
   me-5 [001] ..s1. 1.200002: timer_expire_entry: timer=01 function=f now=10 baseclk=10
   me-5 [001] ..s1. 1.200005: timer_expire_exit: timer=01
   me-5 [001] d.s1. 1.200009: softirq_exit: vec=1 [action=TIMER]
   me-5 [001] d..2. 1.250000: sched_switch: prev_comm=me prev_pid=5 prev_prio=120 prev_state=S ==> next_comm=swapper/1 next_pid=0 next_prio=120
CPU:1 [LOST 3 EVENTS]
<idle>-0 [001] d..2. 1.900000: sched_switch: prev_comm=swapper/1 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=me next_pid=5 next_prio=120
 <i>&x-7 [000] d..2. 2.000000: timer_start: timer=02 function=f expires=9 [timeout=1] cpu=0 idx=1 flags=
";

fn explained(recording: &str, isolated: &str) -> Explanation {
    let isolated = isolated.parse().expect("a list");
    let options = ExplainOptions { isolated, timeline: true, ..ExplainOptions::default() };
    let (mut reader, mut explain) = (TraceReader::new(recording.as_bytes()), Explain::new(options));
    reader.read(u64::MAX, &mut |record| explain.take(record)).expect("memory");
    explain.finish(reader.tally())
}

/// Goal: a page is whole, needs nothing from elsewhere, and no name of a recording becomes markup. Method:
/// tags that must pair, on pages with and without anything to show.
#[test]
fn a_page_is_whole_and_safe() {
    let full = page("<u>name", &explained(RECORDING, "1"), None);
    assert!(full.contains("quietcore explain &lt;u&gt;name"));
    assert!(full.contains("task &lt;b&gt;&quot;&#39;&amp;"), "{full}");
    for page in
        [full, page("t", &explained(RECORDING, "3"), None), page("t", &explained(RECORDING, ""), None)]
    {
        for absent in ["<script", "<link", "<img", "@import", "url(", "NaN", "inf\"", "<b>", "<i>", "<u>"] {
            assert!(!page.contains(absent), "{absent}");
        }
        assert!(!page.replace("http://www.w3.org/2000/svg", "").contains("://"), "nothing from elsewhere");
        for tag in [
            "figure", "svg", "table", "tr", "td", "th", "ul", "li", "text", "dl", "dd", "section", "h2",
            "rect",
        ] {
            let opened =
                page.matches(&format!("<{tag}>")).count() + page.matches(&format!("<{tag} ")).count();
            let closed = page.matches(&format!("</{tag}>")).count();
            let alone = if tag == "rect" { page.matches("\"/>\n").count() } else { 0 };
            assert!(opened >= closed && opened <= closed + alone, "{tag}: {opened} and {closed}");
        }
        assert!(page.starts_with("<!DOCTYPE html>") && page.ends_with("</html>\n"));
    }
}

/// Goal: each picture shows what the report has, and not the CPU's own task. Method: names, times and counts
/// where they must be.
#[test]
fn pictures_show_what_the_report_has() {
    let report = explained(RECORDING, "1");
    let page = page("t", &report, None);
    let timeline = report.timeline.as_ref().expect("it was asked for");
    assert_eq!((timeline.from_ns, timeline.piece_ns, timeline.pieces), (1_000_000_000, 4_096_000, 245));
    // When: what took most in a piece, and the share of the piece that took most.
    assert!(page.contains("<title>1.000000 s\ntask &lt;b&gt;&quot;&#39;&amp;: 30 us</title>"), "{page}");
    assert!(page.contains(">0.7 %</text>"));
    let softirq = "<title>1.196608 s\nsoftirq TIMER: 6 us\ntimer f: 3 us</title>";
    assert!(page.contains(softirq));
    assert_eq!(page.matches("class=\"lost\"").count(), 1);
    assert_eq!(page.matches("class=\"hint\"").count(), 3, "two pieces and a pair of CPUs");
    // Who: the task and the timer began on CPU 0, nothing is known of the softirq.
    assert!(
        page.contains(
            "<title>2 times from CPU 0 to CPU 1\n1 task &lt;b&gt;&quot;&#39;&amp;\n1 timer f</title>"
        )
    );
    assert!(page.contains("2 of 3 have a cause there."));
    // How long: 3 us, 6 us and 30 us.
    assert_eq!(page.matches("class=\"count\"").count(), 3);
    assert!(
        page.contains(">2 us</text>") && page.contains(">8.1 us</text>") && page.contains(">32.7 us</text>")
    );
    assert!(page.contains(
        "<td>task &lt;b&gt;&quot;&#39;&amp;</td><td>1 of 1 woken on CPU 0 by &lt;i&gt;&amp;x</td>"
    ));
    assert!(!page.contains("task me"), "the CPU is there for it");
    assert!(page.contains("INCOMPLETE"));
}

/// Goal: where nothing took a CPU away, or nothing has an end, the page says so.
#[test]
fn nothing_to_show_is_said() {
    let empty = page("t", &explained(RECORDING, "3"), None);
    assert!(empty.contains("Nothing that is recorded."));
    assert!(!empty.contains("<figure"));
    let no_ends: String = RECORDING
        .lines()
        .filter(|line| !line.contains("exit") && !line.contains("sched_"))
        .fold(String::new(), |text, line| text + line + "\n");
    let counts = page("t", &explained(&no_ends, "1"), None);
    assert!(!counts.contains("<figcaption>When<") && !counts.contains("For how long"));
    assert!(counts.contains("Who disturbs whom"));
}

/// Goal: who disturbs is the CPU where the chain of causes began. Method: an isolated CPU whose softirq was
/// raised in a callback of its own that another CPU had armed.
#[test]
fn a_chain_begins_elsewhere() {
    let recording = "\
  cron-7 [002] d..2. 1.000000: timer_start: timer=01 function=f expires=9 [timeout=1] cpu=1 idx=1 flags=
    me-5 [001] ..s1. 1.200002: timer_expire_entry: timer=01 function=f now=10 baseclk=10
    me-5 [001] d.s1. 1.200003: softirq_raise: vec=3 [action=NET_RX]
    me-5 [001] ..s1. 1.200005: timer_expire_exit: timer=01
    me-5 [001] d.s1. 1.200006: softirq_entry: vec=3 [action=NET_RX]
    me-5 [001] d.s1. 1.200009: softirq_exit: vec=3 [action=NET_RX]
    me-5 [001] ..s1. 1.300000: timer_expire_entry: timer=02 function=g now=10 baseclk=10
    me-5 [001] ..s1. 1.300005: timer_expire_exit: timer=02
  cron-7 [002] d..2. 1.400000: timer_start: timer=01 function=f expires=9 [timeout=1] cpu=1 idx=1 flags=
    me-5 [001] ..s1. 1.500000: timer_expire_entry: timer=01 function=f now=10 baseclk=10
    me-5 [001] d.s1. 1.500001: softirq_raise: vec=3 [action=NET_RX]
    me-5 [001] ..s1. 1.500005: timer_expire_exit: timer=01
    me-5 [001] d.s1. 1.500006: softirq_entry: vec=3 [action=NET_RX]
    me-5 [001] d.s1. 1.500009: softirq_exit: vec=3 [action=NET_RX]
";
    let page = page("t", &explained(recording, "1"), None);
    let from = |times: &str, cpu: u16| format!("<title>{times} from CPU {cpu} to CPU 1\n");
    // That ends of callbacks are recorded is not known yet at the first raise: a softirq did that.
    assert!(page.contains(&format!("{}2 timer f\n1 softirq NET_RX</title>", from("3 times", 2))), "{page}");
    assert!(page.contains(&format!("{}1 softirq NET_RX</title>", from("1 time", 1))), "{page}");
}

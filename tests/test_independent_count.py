"""Tests of independent_count.py: `python3 -m unittest discover -s tests`. Standard library only.

Goal: a count that is wrong shows here, before it is used to judge the tool. Method: texts short
enough to count by eye, in both formats; every definition has a case on either side of its edge.
"""

import contextlib
import io
import json
import os
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import compare_figures  # noqa: E402
import independent_count as ic  # noqa: E402


def ftrace(*events):
    """Lines as tracefs prints them; an event is (task-pid, cpu, text)."""
    lines = [
        "# kernel: Linux 6.12.30, x86-64, HZ=250",
        "# cpus: possible 0-3,8, online at the end 0-3; sockets 1",
        "# isolated: 1,3; nohz_full: 3 (as the kernel lists them at the end)",
        "# sysctl kernel timer_migration: 0",
    ]
    for number, (task, cpu, text) in enumerate(events):
        lines.append(f"{task:>22}     [{cpu:03}] d.h2.   {number:5}.000001: {text}")
    return lines


def start(timer, base, function="f"):
    return f"timer_start: timer={timer} function={function} expires=9 [timeout=4] cpu={base} idx=9 flags="


def expire(timer, function="f"):
    return f"timer_expire_entry: timer={timer} function={function} now=9 baseclk=9"


def count(lines, isolated=None):
    counter = ic.Counter()
    counter.read(lines)
    return ic.report(counter, counter.header.isolated if isolated is None else isolated)


class Timers(unittest.TestCase):
    def test_three_cpus_of_an_expiry(self):
        got = count(
            ftrace(
                ("a-1", 0, start("00a", 0, "pulled_fn")),
                ("a-1", 0, "timer_cancel: timer=00a"),
                ("b-2", 1, expire("00a", "pulled_fn")),  # foreign, pulled
                ("a-1", 0, start("00b", 1, "placed_fn")),
                ("b-2", 1, expire("00b", "placed_fn")),  # foreign, placed
                ("b-2", 3, start("00c", 3)),
                ("b-2", 1, expire("00c")),  # between isolated CPUs
                ("b-2", 1, start("00d", 1)),
                ("b-2", 1, expire("00d")),  # its own timer: nothing
                ("b-2", 1, start("00e", 1)),
                ("b-2", 2, expire("00e")),  # remote, but ran on a CPU that is not isolated
                ("b-2", 1, expire("00f")),  # never started here
            )
        )
        self.assertEqual(got["cpus"], 9)
        self.assertEqual((got["isolated"], got["nohz_full"]), ("1,3", "3"))
        self.assertEqual((got["kernel"], got["timer_migration"]), ("6.12.30", False))
        self.assertEqual((got["events"], got["duration_ns"]), (12, 11 * 10**9))
        self.assertEqual(
            got["timers"], {"started": 5, "expired": 6, "cancel_events": 1, "expired_unknown_start": 1}
        )
        foreign = got["foreign"]
        self.assertEqual((foreign["total"], foreign["pulled"], foreign["placed"]), (2, 1, 1))
        self.assertEqual(foreign["by_function"], {"pulled_fn": 1, "placed_fn": 1})
        self.assertEqual(foreign["by_cpu"], {"1": 2})
        self.assertEqual(foreign["by_base_cpu"], {"0": 1, "1": 1})
        self.assertEqual(got["between_isolated"]["by_base_cpu"], {"3": 1})
        self.assertEqual(got["remote"], {"total": 3, "by_cpu": {"1": 2, "2": 1}})
        pulled, placed = foreign["examples"]
        self.assertEqual((pulled["kind"], pulled["function"]), ("pulled", "pulled_fn"))
        self.assertEqual([pulled[key] for key in ("armed_cpu", "base_cpu", "cpu")], [0, 0, 1])
        self.assertEqual([placed[key] for key in ("armed_cpu", "base_cpu", "cpu")], [0, 1, 1])
        # Four lines of header; the cancel is the sixth line.
        self.assertEqual([pulled["armed_line"], pulled["line"], placed["line"]], [5, 7, 9])
        row = {"cpu": 1, "group": 0, "pulled": 1, "placed": 1, "by_function": foreign["by_function"]}
        self.assertEqual(got["isolated_cpus"], [row])

    def test_callbacks_of_others_take_time_without_what_is_on_top(self):
        leave = "timer_expire_exit: timer={}"
        lines = ftrace(
            ("a-1", 0, start("00a", 0)),
            ("b-2", 3, start("00b", 3)),
            ("b-2", 1, start("00c", 1)),
            ("b-2", 1, expire("00a")),  # foreign, 3 s without the interrupt
            ("b-2", 1, "irq_handler_entry: irq=27 name=eth0"),
            ("b-2", 1, "irq_handler_exit: irq=27 ret=handled"),
            ("b-2", 3, expire("00f")),  # never started here
            ("b-2", 1, leave.format("00a")),
            ("b-2", 3, leave.format("00f")),
            ("b-2", 1, expire("00b")),  # between isolated CPUs, 1 s
            ("b-2", 1, leave.format("00b")),
            ("b-2", 1, expire("00c")),  # its own
            ("b-2", 1, leave.format("00c")),
            ("b-2", 1, expire("00a")),  # without an end
        )
        got = count(lines)
        for side, seconds in (("foreign", 3), ("between_isolated", 1)):
            took = dict.fromkeys(("total", "p50", "p99", "max"), seconds * 10**9)
            self.assertEqual(got[side]["took_ns"], took)
        no_exit = count([line for line in lines if "expire_exit" not in line])
        self.assertEqual(set(no_exit["foreign"]["took_ns"].values()), {None})
        self.assertIn("foreign.took_ns", no_exit["not_recorded"])

    def test_two_examples_of_a_kind_and_cpu(self):
        rounds = [(start(f"0{n}", 0), expire(f"0{n}")) for n in range(3)]
        events = [event for s, e in rounds for event in (("a-1", 0, s), ("b-2", 1, e))]
        examples = count(ftrace(*events))["foreign"]["examples"]
        self.assertEqual([example["line"] for example in examples], [6, 8])

    def test_last_start_wins(self):
        got = count(ftrace(("a-1", 0, start("a", 0)), ("a-1", 1, start("a", 1)), ("a-1", 1, expire("a"))))
        self.assertEqual(got["foreign"]["total"], 0)

    def test_ping_pong_needs_the_next_start_on_the_old_base(self):
        there = [("a-1", 0, start("a", 0)), ("b-2", 1, expire("a"))]
        # Three events a second apart: one in two seconds.
        back = count(ftrace(*there, ("a-1", 0, start("a", 0))))["ping_pong"]
        self.assertEqual(back, {"count": 1, "per_s": 0.5})
        self.assertEqual(count(ftrace(*there, ("a-1", 2, start("a", 2))))["ping_pong"]["count"], 0)
        twice = [*there, ("a-1", 2, start("a", 2)), ("a-1", 0, start("a", 0))]
        self.assertEqual(count(ftrace(*twice))["ping_pong"]["count"], 0)
        local = [("a-1", 0, start("a", 0)), ("a-1", 0, expire("a")), ("a-1", 0, start("a", 0))]
        self.assertEqual(count(ftrace(*local))["ping_pong"]["count"], 0)

    def test_groups_are_numbered_by_their_lowest_cpu(self):
        events = [
            ("i-1", 0, "tmigr_connect_cpu_parent: cpu=1 groupmask=1 parent=0b lvl=0 numa=0 num_children=1"),
            ("i-1", 0, "tmigr_connect_cpu_parent: cpu=0 groupmask=1 parent=0a lvl=0 numa=0 num_children=1"),
            ("a-1", 0, start("a", 0)),
            ("b-2", 1, expire("a", "process_timeout")),
        ]
        named = count(ftrace(*events))
        self.assertEqual(named["foreign"]["by_group"], {"1": 1})
        self.assertEqual(named["groups"], {"estimated": False, "cpus": {"0": "0", "1": "1"}})
        guessed = count(ftrace(*events[2:]))
        self.assertEqual(guessed["foreign"]["by_group"], {"0": 1})
        self.assertEqual(guessed["groups"], {"estimated": True, "cpus": {"0": "0-7", "1": "8"}})
        mention = ("i-1", 1, "tmigr_cpu_idle: cpu=1 parent=0b nextevt=1 wakeup=1")
        self.assertEqual(count(ftrace(mention, *events[2:]))["foreign"]["by_group"], {"0": 1})

    def test_absent_events_are_null(self):
        got = count(ftrace(("a-1", 0, start("a", 0))))
        self.assertIsNone(got["foreign"]["total"])
        self.assertIsNone(got["timers"]["expired"])
        self.assertIsNone(got["softirq"]["timer_entries"])
        self.assertIsNone(got["hrtimers"]["qdisc_watchdog"]["expired"])
        self.assertIsNone(got["rt_wakeups"]["count"])
        self.assertEqual(len(got["not_recorded"]), 33)
        self.assertNotIn("timers.started", got["not_recorded"])
        unknown = count(ftrace(("a-1", 0, "cpu_frequency: state=1")))["unknown_events"]
        self.assertEqual(unknown, {"cpu_frequency": 1})

    def test_lost_events(self):
        lines = ftrace(("a-1", 0, start("a", 0)))
        for more, lost in (
            (["CPU:1 [LOST 12 EVENTS]", "CPU:0 [LOST EVENTS]", "CPU:3 [7 EVENTS DROPPED]"], 20),
            (["# lost events: 9 (overrun 9)"], 9),
            (["# entries-in-buffer/entries-written: 10/13   #P:4"], 3),
        ):
            self.assertEqual(count(lines + more)["lost_events"], lost)


class Softirqs(unittest.TestCase):
    def test_empty_means_no_expiry_on_that_cpu_in_between(self):
        got = count(
            ftrace(
                ("a-1", 0, start("a", 0)),
                ("a-1", 0, "softirq_entry: vec=1 [action=TIMER]"),
                ("a-1", 0, expire("a", "process_timeout")),
                ("a-1", 0, "softirq_exit: vec=1 [action=TIMER]"),
                ("a-1", 1, "softirq_entry: vec=1 [action=TIMER]"),
                ("a-1", 0, expire("a", "process_timeout")),
                ("a-1", 1, "softirq_exit: vec=1 [action=TIMER]"),
                ("a-1", 2, "softirq_entry: vec=7 [action=SCHED]"),
                ("a-1", 2, "softirq_exit: vec=7 [action=SCHED]"),
                ("a-1", 2, "softirq_exit: vec=1 [action=TIMER]"),  # its entry is not in the text
            )
        )
        took = got["softirq"].pop("empty_ns")
        self.assertEqual(got["softirq"], {"timer_entries": 2, "timer_empty": 1, "by_cpu": {"1": 1}})
        second = 10**9
        self.assertEqual(took, {"total": 2 * second, "p50": 2 * second, "p99": 2 * second, "max": 2 * second})

    def test_lost_events_end_what_was_known(self):
        lines = ftrace(
            ("a-1", 0, start("a", 0)),
            ("a-1", 0, expire("a", "process_timeout")),
            ("a-1", 1, "softirq_entry: vec=1 [action=TIMER]"),
            ("a-1", 1, "softirq_exit: vec=1 [action=TIMER]"),
        )
        self.assertEqual(count(lines)["softirq"]["timer_empty"], 1)
        lines.insert(len(lines) - 1, "CPU:1 [LOST 5 EVENTS]")
        self.assertEqual(count(lines)["softirq"]["timer_empty"], 0)
        nothing = {"total": None, "p50": None, "p99": None, "max": None}
        self.assertEqual(count(lines)["softirq"]["empty_ns"], nothing)

    def test_rt_wakeup_behind_a_long_softirq(self):
        waking = "sched_waking: comm=a b=c pid=7 prio={} target_cpu=00{}"
        got = count(
            ftrace(
                ("a-1", 2, "softirq_entry: vec=3 [action=NET_RX]"),
                ("a-1", 0, waking.format(98, 2)),  # behind
                ("a-1", 0, waking.format(99, 1)),  # that CPU is in no softirq
                ("a-1", 0, waking.format(100, 2)),  # not real-time
                ("a-1", 2, "softirq_exit: vec=3 [action=NET_RX]"),
                ("a-1", 2, "softirq_entry: vec=1 [action=TIMER]"),
                ("a-1", 0, waking.format(-1, 2)),  # TIMER is not a long one
            )
        )
        no_switch = {"p50": None, "p99": None, "max": None}
        expected = {"count": 3, "kernel_threads": 0, "behind_softirq": 1, "delay_ns": no_switch}
        self.assertEqual(got["rt_wakeups"], expected)

    def test_a_delay_ends_with_the_switch_to_the_task(self):
        waking = "sched_waking: comm=rt pid={} prio=9 target_cpu=002"
        switch = "sched_switch: prev_comm=x prev_pid={} prev_prio=120 prev_state=R ==> "
        switch += "next_comm=y next_pid={} next_prio=9"
        events = [("a-1", 2, "softirq_entry: vec=3 [action=NET_RX]")]
        events += [("a-1", 0, waking.format(7)), ("a-1", 2, switch.format(0, 7))]  # 1 s
        events += [("a-1", 0, waking.format(8)), ("a-1", 2, switch.format(8, 0))]  # still ran: no delay
        events += [("a-1", 2, switch.format(0, 8))]
        events += [("a-1", 0, waking.format(9)), ("a-1", 2, switch.format(0, 1))]
        events += [("a-1", 2, switch.format(0, 9))]  # 2 s
        events += [("a-1", 2, "softirq_exit: vec=3 [action=NET_RX]")]
        got = count(ftrace(*events))["rt_wakeups"]
        second = 10**9
        self.assertEqual(got["behind_softirq"], 3)
        self.assertEqual(got["delay_ns"], {"p50": second, "p99": 2 * second, "max": 2 * second})

    def test_quantiles(self):
        samples = list(range(100, 0, -1))
        self.assertEqual([ic.quantile(samples, q) for q in (0.5, 0.99, 1)], [50, 99, 100])
        self.assertEqual((ic.quantile([5], 0.5), ic.quantile([], 0.5)), (5, None))


class Interruptions(unittest.TestCase):
    def rows(self, *events, isolated=(1,)):
        got = count(ftrace(*events), isolated=set(isolated))["interruptions"]
        return [(row["cpu"], row["source"], row["name"], row["count"], row["total_ns"]) for row in got]

    def test_what_lies_on_top_is_not_counted_below(self):
        events = (
            ("a-1", 1, "softirq_entry: vec=3 [action=NET_RX]"),
            ("a-1", 1, "irq_handler_entry: irq=27 name=eth0"),
            ("a-1", 1, "nmi_handler: watchdog() delta_ns: 500000000 handled: 1"),
            ("a-1", 1, "irq_handler_exit: irq=27 ret=handled"),
            ("a-1", 1, "softirq_exit: vec=3 [action=NET_RX]"),
            ("a-1", 0, "local_timer_entry: vector=236"),
        )
        expected = [
            (1, "device", "27 eth0", 1, 1_500_000_000),
            (1, "nmi", "watchdog", 1, 500_000_000),
            (1, "softirq", "NET_RX", 1, 2_000_000_000),
        ]
        self.assertEqual(self.rows(*events), expected)
        self.assertEqual(self.rows(*events, isolated=())[0], (0, "processor", "local_timer", 1, None))

    def test_a_second_begin_ends_the_first(self):
        entry, leave = "reschedule_entry: vector=253", "reschedule_exit: vector=253"
        events = [("a-1", 1, event) for event in (leave, entry, entry, leave)]
        self.assertEqual(self.rows(*events), [(1, "processor", "reschedule", 2, 1_000_000_000)])


    def test_a_cause_is_followed_to_the_task_that_began_it(self):
        switch = "sched_switch: prev_comm=x prev_pid={} prev_prio=9 prev_state=S ==> "
        switch += "next_comm={} next_pid={} next_prio=9"
        work = "work struct {}a1: function vmstat_update"
        events = (
            ("init-1", 1, "timer_expire_exit: timer=9"),
            ("cron-3", 0, start("a", 0, "process_timeout")),
            ("spin-5", 1, "softirq_entry: vec=1 [action=TIMER]"),
            ("spin-5", 1, expire("a", "process_timeout")),
            ("spin-5", 1, "workqueue_queue_work: work struct=00a1 function=vmstat_update workqueue=mm cpu=1"),
            ("spin-5", 1, "sched_waking: comm=kworker/1:0 pid=7 prio=120 target_cpu=001"),
            ("spin-5", 1, "timer_expire_exit: timer=a"),
            ("spin-5", 1, "softirq_exit: vec=1 [action=TIMER]"),
            ("spin-5", 1, switch.format(5, "kworker/1:0", 7)),
            ("kworker/1:0-7", 1, "workqueue_execute_start: " + work.format("00")),
            ("kworker/1:0-7", 1, switch.format(7, "spin", 5)),
            ("spin-5", 1, switch.format(5, "kworker/1:0", 7)),
            ("kworker/1:0-7", 1, "workqueue_execute_end: " + work.format("00")),
            ("kworker/1:0-7", 1, switch.format(7, "<idle>", 0)),
        )
        got = count(ftrace(*events), isolated={1})["interruptions"]
        rows = {
            row["source"]: (
                row["name"],
                row["count"],
                row["total_ns"],
                row["own"],
                [[(at["how"], at["cpu"], at["name"]) for at in why["steps"]] for why in row["causes"]],
            )
            for row in got
            if row["name"] != "spin"
        }
        armed = ("armed", 0, "(unknown)")  # the flags of all lines here are those of a softirq
        second = 10**9
        expected = {
            "softirq": ("TIMER", 1, 2 * second, False, []),
            "timer": ("process_timeout", 1, 3 * second, False, [[armed]]),
            "work": ("vmstat_update", 1, 2 * second, False, [[("queued", 1, "process_timeout"), armed]]),
            "task": ("kworker/1:0", 2, 2 * second, False, [[("woken", 1, "process_timeout"), armed]]),
        }
        self.assertEqual(rows, expected)
        self.assertEqual([row["own"] for row in got if row["name"] == "spin"], [True])

    def test_an_interrupt_has_its_sender(self):
        send = "ipi_send_cpu: cpu=1 callsite=here+0x1/0x2 callback={}"
        queue = "csd_queue_cpu: cpu=1 callsite=here+0x1/0x2 func=flush csd=0a"
        several = "ipi_send_cpumask: cpumask=00000003 callsite=x callback=f"
        generic = "generic_smp_call_function_single_interrupt+0x0/0x10"
        for events, expected in (
            (((0, send.format("0x0")), (1, "reschedule_entry: vector=253")), ("here", 0)),
            (((0, queue), (0, send.format(generic)), (1, "call_function_single_entry: v")), ("flush", 0)),
            (((2, queue), (0, send.format(generic)), (1, "call_function_single_entry: v")), ("here", 0)),
            (((2, several), (1, "call_function_entry: v")), ("f", 2)),
            (((1, send.format("work")), (1, "irq_work_entry: vector=246")), ("work", 1)),
        ):
            got = count(ftrace(*(("a-1", cpu, event) for cpu, event in events)), isolated={1})
            step = got["interruptions"][0]["causes"][0]["steps"][0]
            self.assertEqual((step["how"], step["function"], step["cpu"]), ("sent", *expected))


class IdleStates(unittest.TestCase):
    def rows(self, lines):
        keys = ("cpu", "state", "entries", "total_ns", "max_ns", "share")
        return [tuple(row[key] for key in keys) for row in count(lines)["idle"]]

    def test_a_residency_ends_when_its_cpu_leaves(self):
        enter, leave = "cpu_idle: state={} cpu_id={}", f"cpu_idle: state={2**32 - 1} cpu_id={{}}"
        second = 10**9
        lines = ftrace(
            ("a-1", 0, leave.format(0)),  # its begin is not in the text
            ("a-1", 0, enter.format(2, 0)),
            ("a-1", 0, enter.format(1, 1)),
            ("a-1", 0, leave.format(0)),  # 2 s of CPU 0
            ("a-1", 0, leave.format(1)),  # 2 s of CPU 1
            ("a-1", 0, enter.format(2, 0)),
            ("a-1", 0, enter.format(3, 0)),  # no end of state 2
            ("a-1", 0, leave.format(0)),  # 1 s
            ("a-1", 0, enter.format(2, 0)),
            ("a-1", 0, leave.format(0)),  # 1 s
            ("a-1", 0, "x: y"),
        )
        rows = [
            (0, 2, 3, 3 * second, 2 * second, 0.3),
            (0, 3, 1, second, second, 0.1),
            (1, 1, 1, 2 * second, 2 * second, 0.2),
        ]
        self.assertEqual(self.rows(lines), rows)
        lines.insert(len(lines) - 2, "CPU:0 [LOST 5 EVENTS]")
        rows[0] = (0, 2, 3, 2 * second, 2 * second, 0.2)
        self.assertEqual(self.rows(lines), rows)


class Hrtimers(unittest.TestCase):
    def test_off_arming_and_by_task(self):
        begin = "hrtimer_start: hrtimer={} function={} expires=1 softexpires=1 mode=ABS was_armed=0"
        run = "hrtimer_expire_entry: hrtimer={} function={} now=1"
        got = count(
            ftrace(
                ("web server-12", 0, begin.format("a", "hrtimer_wakeup")),
                ("<idle>-0", 1, run.format("a", "hrtimer_wakeup")),
                ("tc-3", 2, begin.format("b", "qdisc_watchdog")),
                ("<idle>-0", 3, run.format("b", "qdisc_watchdog")),
                ("tc-3", 2, begin.format("b", "qdisc_watchdog")),
                ("<idle>-0", 2, run.format("b", "qdisc_watchdog")),
                ("<idle>-0", 2, run.format("c", "hrtimer_wakeup")),  # start unknown
                ("<...>-12", 1, begin.format("d", "hrtimer_wakeup")),  # off, not foreign; named above
                ("<idle>-0", 3, run.format("d", "hrtimer_wakeup")),
                ("<...>-13", 1, begin.format("e", "hrtimer_wakeup")),
                ("<idle>-0", 1, run.format("e", "hrtimer_wakeup")),
            )
        )
        self.assertEqual(
            got["hrtimers"],
            {
                "expired": 6,
                "off_arming_cpu": 3,
                "foreign": 2,
                "by_task": {"web server-12": 2, "<...>-13": 1},
                "qdisc_watchdog": {"expired": 2, "off_arming_cpu": 1, "by_cpu": {"3": 1, "2": 1}},
            },
        )


class Formats(unittest.TestCase):
    def test_trace_cmd_report(self):
        task = "          <idle>-0     [001]   626.{}: "
        lines = [
            "cpus=2",
            task.format("197365") + "timer_start:       timer=0xffff8a function=f/0x0 cpu=1 idx=9 flags=D|I",
            task.format("197365123") + "timer_expire_entry: timer=0xffff8a function=f/0x0 now=1",
            task.format("2") + "hrtimer_start:   hrtimer=0xff01 function=hrtimer_wakeup/0x0 expires=1",
            task.format("3") + "hrtimer_expire_entry: hrtimer=0xff01 now=1 function=hrtimer_wakeup/0x0",
            task.format("4") + "sched_switch:         swapper/1:0 [120] R ==> sleep:12 [120]",
            task.format("5") + "sched_waking:         comm=rt pid=12 prio=4 target_cpu=001",
            task.format("6").replace("[001]  ", "[000] d..2. ") + expire("0xffff8a"),
        ]
        got = count(lines, {0})
        self.assertEqual(got["cpus"], 2)
        self.assertEqual(got["timers"]["expired"], 2)
        self.assertEqual(got["foreign"]["by_function"], {"f": 1})
        self.assertEqual(got["hrtimers"]["by_task"], {"<idle>-0": 1})
        self.assertEqual(got["rt_wakeups"]["count"], 1)

    def test_cpu_lists(self):
        for text, cpus in (("1-3,8", {1, 2, 3, 8}), ("-", set()), ("0-7:1/4", {0, 4})):
            self.assertEqual(ic.parse_cpu_list(text), cpus)
        self.assertEqual(ic.format_cpu_list({1, 2, 3, 8}), "1-3,8")
        with self.assertRaises(ic.InputError):
            ic.parse_cpu_list("1-x")


class Compare(unittest.TestCase):
    def run_script(self, ours):
        with tempfile.TemporaryDirectory() as folder:
            text, other = os.path.join(folder, "t.txt"), os.path.join(folder, "o.json")
            with open(text, "w", encoding="utf-8") as file:
                file.write("\n".join(ftrace(("a-1", 0, start("a", 0)), ("b-2", 1, expire("a")))))
            with open(other, "w", encoding="utf-8") as file:
                file.write(ours if isinstance(ours, str) else json.dumps(ours))
            out = io.StringIO()
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
                code = ic.main([text, "--compare", other])
            return code, out.getvalue()

    def same(self):
        return count(ftrace(("a-1", 0, start("a", 0)), ("b-2", 1, expire("a"))))

    def test_same_figures_pass(self):
        ours = self.same()
        ours["schema"] = 1  # no figure
        self.assertEqual(self.run_script(ours), (0, ""))

    def test_each_kind_of_difference_is_named(self):
        missing = json.dumps(self.same()["not_recorded"])
        hrtimers = json.dumps(self.same()["hrtimers"], sort_keys=True)
        for path, value, line in (
            (("foreign", "total"), 2, "foreign.total: ours 2, counted 1"),
            (("foreign", "by_cpu"), {"1": 1, "2": 0}, "foreign.by_cpu.2: ours 0, counted nothing"),
            (("foreign", "by_cpu"), {}, "foreign.by_cpu.1: ours nothing, counted 1"),
            (("softirq", "timer_empty"), 0, "softirq.timer_empty: ours 0, counted null"),
            (("ping_pong", "count"), None, "ping_pong.count: ours null, counted 0"),
            (("ping_pong", "new"), 3, "ping_pong.new: ours 3, counted nothing"),
            (("new",), None, "new: ours null, counted nothing"),
            (("events",), "2", 'events: ours "2", counted 2'),
            (("not_recorded",), [], f"not_recorded: ours [], counted {missing}"),
            (("unknown_events",), {"x": 1}, "unknown_events.x: ours 1, counted nothing"),
            (("hrtimers",), None, f"hrtimers: ours null, counted {hrtimers}"),
            (("timers", "started"), None, "timers.started: ours null, counted 1"),
        ):
            ours = self.same()
            place = ours
            for key in path[:-1]:
                place = place[key]
            place[path[-1]] = value
            self.assertEqual(self.run_script(ours), (1, line + "\n"))

    def test_quantiles_are_rounded_and_nothing_else(self):
        counted = self.same()
        counted["rt_wakeups"]["delay_ns"] = {"p50": 60000, "p99": 119000, "max": 120000}
        for key, value, is_same in (
            ("p50", 60031, True),
            ("p50", 60100, False),
            ("p99", 119039, True),
            ("p99", 60031, False),
            ("p99", None, False),
            ("max", 120001, False),
        ):
            ours = json.loads(json.dumps(counted))
            ours["rt_wakeups"]["delay_ns"][key] = value
            self.assertEqual(not list(compare_figures.differences(ours, counted)), is_same, (key, value))

    def test_only_values_count_as_compared(self):
        names = compare_figures.with_value(self.same())
        self.assertIn("foreign.by_cpu", names)
        self.assertIn("groups.estimated", names)
        empty = ("foreign.placed", "between_isolated.by_cpu", "between_isolated.examples")
        for name in (*empty, "hrtimers.expired"):
            self.assertNotIn(name, names)

    def test_a_figure_that_was_never_compared_fails(self):
        empty = ic.report(ic.Counter(), set())
        keys = [key for key, _ in compare_figures.leaves(empty)]
        self.assertEqual((len(keys), len(set(keys))), (90, 90))
        for lines, code, first in (
            (keys, 0, "90 figures with a value compared, of 90 keys of 90"),
            (keys[1:], 1, f"{keys[0]}: no recording has a value of it, so it was never compared"),
        ):
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                self.assertEqual(compare_figures.total(empty, [f"{key}\n" for key in lines]), code)
            self.assertEqual(out.getvalue().splitlines()[0], first)

    def test_what_is_no_json_is_an_error(self):
        self.assertEqual(self.run_script("not json")[0], 2)


if __name__ == "__main__":
    unittest.main()

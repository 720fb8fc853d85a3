"""Counts a second time what took CPUs away from their tasks, and why: a part of independent_count.py.

Definitions used:
- open on a CPU, each on top of what it came in: interrupts, softirqs, callbacks of timers, work items, the
  task that was switched to. The own time of one is that up to its end in which no later begun one was open
  there. A second begin of the same thing ends the first; a mark of lost events ends all on its CPU. Where
  the CPU goes to another task, softirqs, callbacks of wheel timers and work items wait until it comes back
  to theirs; the rest has ended.
- what started it: for a timer what the CPU was doing at its last start, for a softirq at the last raise,
  for an interrupt of another CPU at the last one of its kind that was sent, for a task at its waking, for a
  work item at its queueing. None of them outlasts a mark of lost events on any CPU.
- what a CPU was doing: the last begun thing that is open and whose begin has the same interrupt context;
  not a task, not a callback if no end of such a one was seen before, not a work item of another worker.
  Otherwise what the context says, and in none the task.
- a cause is followed through what had started that: up to four steps; a step that repeats the one before is
  not there twice. The first 16 causes of a row are told apart.
"""

import math
import re

SOFTIRQS = dict(enumerate("HI TIMER NET_TX NET_RX BLOCK IRQ_POLL TASKLET SCHED HRTIMER RCU".split()))
VECTORS = """local_timer reschedule call_function call_function_single irq_work spurious_apic error_apic
thermal_apic threshold_apic deferred_error_apic x86_platform_ipi""".split()
OF_A_TASK = {"softirq", "timer", "work"}
WAKING = re.compile(r"comm=.* pid=(\d+) prio=-?\d+ ")
WAKING_SHORT = re.compile(r"^.*:(\d+) \[-?\d+\]")
SWITCH = re.compile(r"\bprev_pid=(\d+) prev_prio=.* ==> next_comm=(.*) next_pid=(\d+) next_prio=")
SWITCH_SHORT = re.compile(r":(\d+) \[-?\d+\] \S+ ==> (.*):(\d+) \[-?\d+\]\s*$")
WORK = re.compile(r"^\s*work struct[= ]\s*(?:0x)?([0-9a-f]+)")
KERNEL_THREADS = tuple(
    "kworker/ ksoftirqd/ migration/ rcu ktimers/ cpuhp/ irq/ irq_work/ idle_inject/ kcompactd kswapd "
    "khugepaged kdamond stopper/".split()
)
CONTEXTS = {".": "task", "s": "softirq", "h": "interrupt", "H": "both", "z": "nmi", "Z": "nmi"}
SOURCE_OF_CONTEXT = {"softirq": "softirq", "interrupt": "processor", "both": "processor", "nmi": "nmi"}
REASONS = {
    "Rescheduling interrupts": ["reschedule"],
    "Function call interrupts": ["call_function", "call_function_single"],
    "IRQ work interrupts": ["irq_work"],
}
NOISE = {"irq_noise": "interrupt", "softirq_noise": "softirq", "thread_noise": "task", "nmi_noise": "nmi"}
CALLS_A_QUEUE = "generic_smp_call_function_single_interrupt"
CAUSES_MAX = 16
STEPS_MAX = 4


def is_vector(event):
    """Whether the event is the begin or the end of an interrupt of the processor's own."""
    return event.removesuffix("_entry").removesuffix("_exit") in VECTORS and event not in VECTORS


def is_one(event):
    """Whether the event is needed here, and nowhere else."""
    others = "ipi_entry ipi_exit ipi_raise ipi_send_cpu ipi_send_cpumask csd_queue_cpu nmi_handler"
    ends = "softirq_raise timer_expire_exit hrtimer_expire_exit workqueue_execute_start workqueue_execute_end"
    if event in f"{others} {ends} workqueue_queue_work".split() or event in NOISE:
        return True
    return is_vector(event) or event.startswith("irq_handler_")


def context_of(flags):
    """What the flags before the time stamp say a CPU was doing; None without flags."""
    column = 3 if flags is not None and len(flags) == 7 else 2
    return CONTEXTS.get(flags[column]) if flags and len(flags) > column else None


def quantile(samples, share):
    """The smallest sample that at least this share of them does not exceed."""
    return sorted(samples)[max(math.ceil(share * len(samples)), 1) - 1] if samples else None


def named(text, key):
    """A function's name behind `key=`, without an offset."""
    match = re.search(rf"\b{key}=([^\s/+,]*)", text)
    return match.group(1) if match else ""


def cpus_of(text, key):
    """A mask of words of eight digits, or a list."""
    value = re.search(rf"\b{key}=(\S+)", text).group(1)
    if len(value.rsplit(",", maxsplit=1)[-1]) == 8:
        mask = int(value.replace(",", ""), 16)
        return [cpu for cpu in range(mask.bit_length()) if mask >> cpu & 1]
    cpus = []
    for part in value.split(","):
        first, _, last = part.partition("-")
        cpus.extend(range(int(first), int(last or first) + 1))
    return cpus


def chain(how, function, by):
    """The steps of a cause: this one, and those that had led to it."""
    cpu, source, name, before = by
    step = (how, function, cpu, source, name)
    if before and before[0] == step:
        return before
    return (step, *before[: STEPS_MAX - 1])


class Open:
    """It has begun and not ended."""

    def __init__(self, key, name, cause, event):
        self.key, self.name, self.cause = key, name, cause
        self.context, self.since = event["context"], event["now"]
        self.above = self.before = 0
        self.armed_on = None  # of a wheel timer's callback, if that is known

    def own(self, now):
        return self.before + max(now - self.since - self.above, 0)


class Interruptions:
    """Takes events in their order; rows come in `report`."""

    def __init__(self):
        self.open = {}  # cpu -> what is open there, the last on top
        self.begun = {}  # (cpu, source, name) -> how often
        self.taken = {}  # the same -> [(own time, now, line)]
        self.causes = {}  # the same -> {cause: [count, total or None]}
        self.raised, self.sent, self.queued = {}, {}, {}
        self.works, self.woken = {}, {}  # identity or pid -> what the CPU was doing
        self.away = {}  # (cpu, pid) -> what that task is in the middle of
        self.ends = set()  # "timer", "hrtimer"
        self.noise = {}  # (cpu, kind, name) -> [(took, now)], as the kernel's osnoise tracer says
        self.callbacks = {}  # (armed on, ran on) -> own times of callbacks of wheel timers

    def lost(self, cpu):
        """Events of that CPU were lost."""
        self.open.pop(cpu, None)
        for started in (self.raised, self.sent, self.queued, self.works, self.woken, self.away):
            started.clear()

    def begin(self, event, key, name, cause):
        cpu, (source, _) = event["cpu"], key
        row = (cpu, source, name)
        self.begun[row] = self.begun.get(row, 0) + 1
        causes = self.causes.setdefault(row, {})
        if cause and (cause in causes or len(causes) < CAUSES_MAX):
            causes.setdefault(cause, [0, None])[0] += 1
        stack = [begun for begun in self.open.get(cpu, []) if begun.key != key]
        self.open[cpu] = [*stack, Open(key, name, cause, event)]

    def end(self, event, key):
        stack = self.open.get(event["cpu"], [])
        if not any(begun.key == key for begun in stack):
            return
        while stack[-1].key != key:
            stack.pop()
        done = self.pop(event, stack)
        if done.armed_on is not None:
            self.callbacks.setdefault((done.armed_on, event["cpu"]), []).append(done.before)

    def pop(self, event, stack, is_over=True):
        """Ends the last; if it is not over, its time is not counted yet."""
        done = stack.pop()
        if stack:
            stack[-1].above += event["now"] - done.since
        own = done.own(event["now"])
        if is_over:
            self.takes(event, done.key[0], done.name, own, done.cause)
        done.before = own
        return done

    def takes(self, event, source, name, own, cause):
        row = (event["cpu"], source, name)
        self.taken.setdefault(row, []).append((own, event["now"], event["line"]))
        known = self.causes.get(row, {}).get(cause)
        if known:
            known[1] = (known[1] or 0) + own

    def doing(self, event):
        """What the CPU of an event was doing: (cpu, source, name, what had caused that)."""
        cpu, context, pid = event["cpu"], event["context"], event["pid"]
        for begun in reversed(self.open.get(cpu, [])):
            source = begun.key[0]
            if source == "task" or (source in ("timer", "hrtimer") and source not in self.ends):
                continue
            if None not in (context, begun.context) and begun.context != context:
                continue
            if source == "work" and begun.key[1] != pid:
                break
            return cpu, source, begun.name, begun.cause or ()
        if context in SOURCE_OF_CONTEXT:
            return cpu, SOURCE_OF_CONTEXT[context], "(unknown)", ()
        return cpu, "task", event["task"], ()

    def send(self, event, to, kind, text):
        by = self.doing(event)
        callback, callsite = named(text, "callback"), named(text, "callsite")
        sender, function = self.queued.pop(to, (None, None))
        if callback in ("", "0x0"):
            function = callsite
        elif callback != CALLS_A_QUEUE:
            function = callback
        elif sender != event["cpu"]:
            function = callsite
        # The first one and the last one; what a handler left when it began is no cause of what is sent later.
        waiting, is_left = self.sent.get((to, kind), ([], False))
        self.sent[(to, kind)] = ((waiting[:0] if is_left else waiting[:1]) + [(by, function or None)], False)

    def take_sent(self, cpu, kinds):
        sent = []
        for kind in kinds:
            waiting, _ = self.sent.get((cpu, kind), ([], False))
            sent += waiting[:1]
            self.sent[(cpu, kind)] = (waiting[1:], len(waiting) > 1)
        return chain("sent", sent[0][1], sent[0][0]) if sent else ()

    def take(self, event, text):
        """An event as a map: `name`, `cpu`, `context`, `now`, `line`, `task` and `pid`."""
        name = event["name"]
        handler = getattr(self, "on_" + name, None)
        if handler:
            handler(event, text)
        elif name in NOISE:
            thing, took = re.match(r"(.*)start \S+ duration (\d+) ns\s*$", text).groups()
            row = (event["cpu"], NOISE[name], thing.strip().rpartition(":")[0])
            self.noise.setdefault(row, []).append((int(took), event["now"]))
        elif is_vector(name):
            word, _, end = name.rpartition("_")
            self.step(event, end, ("processor", word), word, lambda: self.take_sent(event["cpu"], [word]))

    def step(self, event, word, key, name, cause=tuple):
        if word == "entry":
            self.begin(event, key, name, cause())
        else:
            self.end(event, key)

    def on_irq_handler_entry(self, event, text):
        number = re.search(r"\birq=(\d+)", text).group(1)
        self.begin(event, ("device", number), f"{number} {re.search(r'name=(.*)$', text).group(1)}", ())

    def on_irq_handler_exit(self, event, text):
        self.end(event, ("device", re.search(r"\birq=(\d+)", text).group(1)))

    def on_ipi_entry(self, event, text):
        reason = re.search(r"\(([^()]*)\)\s*$", text).group(1)
        cause = self.take_sent(event["cpu"], REASONS.get(reason, []))
        self.begin(event, ("processor", reason), reason, cause)

    def on_ipi_exit(self, event, text):
        self.end(event, ("processor", re.search(r"\(([^()]*)\)\s*$", text).group(1)))

    def on_softirq_raise(self, event, text):
        self.raised[(event["cpu"], vector(text))] = self.doing(event)

    def on_softirq_entry(self, event, text):
        by = self.raised.pop((event["cpu"], vector(text)), None)
        name = SOFTIRQS.get(vector(text), "(unknown)")
        self.begin(event, ("softirq", vector(text)), name, chain("raised", None, by) if by else ())

    def on_softirq_exit(self, event, text):
        self.end(event, ("softirq", vector(text)))

    def on_nmi_handler(self, event, text):
        handler, took = re.match(r"\s*([^(]*)\(.*delta_ns: (-?\d+)", text).groups()
        took = max(int(took), 0)
        row = (event["cpu"], "nmi", handler)
        self.begun[row] = self.begun.get(row, 0) + 1
        if self.open.get(event["cpu"]):
            self.open[event["cpu"]][-1].above += took
        self.takes(event, "nmi", handler, took, ())

    def on_ipi_send_cpu(self, event, text):
        to = int(re.search(r"\bcpu=(\d+)", text).group(1))
        is_call = named(text, "callback") not in ("", "0x0")
        kind = "call_function_single" if is_call else "reschedule"
        self.send(event, to, "irq_work" if to == event["cpu"] else kind, text)

    def on_ipi_send_cpumask(self, event, text):
        for cpu in cpus_of(text, "cpumask"):
            self.send(event, cpu, "call_function", text)

    def on_ipi_raise(self, event, text):
        kinds = REASONS.get(re.search(r"\(([^()]*)\)\s*$", text).group(1), ["call_function"])
        for cpu in cpus_of(text, "target_mask"):
            pending = (sent for kind in kinds for sent in self.sent.get((cpu, kind), ([], False))[0])
            if not any(by[0] == event["cpu"] for by, _ in pending):
                self.send(event, cpu, kinds[0], "")

    def on_csd_queue_cpu(self, event, text):
        to = int(re.search(r"\bcpu=(\d+)", text).group(1))
        self.queued[to] = (event["cpu"], named(text, "func"))

    def on_timer_expire_exit(self, event, _text):
        self.ends.add("timer")
        self.end(event, ("timer", ""))

    def on_hrtimer_expire_exit(self, event, _text):
        self.ends.add("hrtimer")
        self.end(event, ("hrtimer", ""))

    def callback(self, event, source, function, armed_by):
        """A timer's callback begins; `armed_by` is what its CPU was doing at its last start, or None."""
        self.begin(event, (source, ""), function, chain("armed", None, armed_by) if armed_by else ())
        if source == "timer" and armed_by:
            self.open[event["cpu"]][-1].armed_on = armed_by[0]

    def on_workqueue_queue_work(self, event, text):
        self.works[WORK.match(text).group(1)] = self.doing(event)

    def on_workqueue_execute_start(self, event, text):
        by = self.works.pop(WORK.match(text).group(1), None)
        function = re.search(r"function (.*?)\s*$", text)
        cause = chain("queued", None, by) if by else ()
        self.begin(event, ("work", event["pid"]), function.group(1) if function else "", cause)

    def on_workqueue_execute_end(self, event, _text):
        self.end(event, ("work", event["pid"]))

    def on_sched_waking(self, event, text):
        match = WAKING.search(text) or WAKING_SHORT.search(text)
        if match:
            self.woken[match.group(1)] = self.doing(event)

    def on_sched_switch(self, event, text):
        match = SWITCH.search(text) or SWITCH_SHORT.search(text)
        if not match:
            return
        previous, comm, pid = match.groups()
        cpu = event["cpu"]
        stack, waits = self.open.pop(cpu, []), []
        while stack:
            source = stack[-1].key[0]
            done = self.pop(event, stack, is_over=source == "task")
            if source in OF_A_TASK:
                waits.append(done)
        if waits:
            self.away[(cpu, previous)] = waits
        by = self.woken.pop(pid, None)
        if pid != "0":
            self.begin(event, ("task", pid), comm, chain("woken", None, by) if by else ())
        for begun in reversed(self.away.pop((cpu, pid), [])):
            begun.since, begun.above = event["now"], 0
            self.open.setdefault(cpu, []).append(begun)

    def report_noise(self):
        """A row per CPU, kind and name of what the osnoise tracer measured."""
        rows = []
        for (cpu, source, name), taken in sorted(self.noise.items()):
            longest, at = max(taken)
            row = {"cpu": cpu, "source": source, "name": name, "count": len(taken)}
            total = sum(took for took, _ in taken)
            rows.append({**row, "total_ns": total, "max_ns": longest, "max_at_ns": at})
        return rows

    def report(self, isolated, is_known):
        """A row per CPU, source and name, of isolated CPUs or, where there are none, of all."""
        rows = []
        for (cpu, source, name), count in sorted(self.begun.items(), key=lambda row: row[0]):
            is_asked = cpu in isolated or not isolated and source not in ("task", "work")
            if not is_asked or not is_known(source):
                continue
            taken = self.taken.get((cpu, source, name), [])
            spans = [nanos for nanos, _, _ in taken]
            longest, at, line = max(taken, key=lambda took: (took[0], took[2]), default=(None, None, None))
            rows.append({
                "cpu": cpu,
                "source": source,
                "name": name,
                "own": False,
                "count": count,
                "total_ns": sum(spans) if spans else None,
                "p99_ns": quantile(spans, 0.99),
                "max_ns": longest,
                "max_at_ns": at,
                "max_line": line,
                "causes": causes_of(self.causes.get((cpu, source, name), {})),
            })
        mark_own(rows)
        return rows


def vector(text):
    return int(re.search(r"\bvec=(\d+)", text).group(1))


def causes_of(causes):
    """The most frequent first, then in the order of their steps."""
    keys = ("how", "function", "cpu", "source", "name")
    listed = sorted(causes.items(), key=lambda item: (-item[1][0], sort_key(item[0])))
    return [
        {"count": count, "total_ns": total, "steps": [dict(zip(keys, step)) for step in steps]}
        for steps, (count, total) in listed
    ]


def sort_key(steps):
    """No function comes before any."""
    return [(how, function is not None, function or "", *rest) for how, function, *rest in steps]


def mark_own(rows):
    """The task that had its CPU longest and is not the kernel's."""
    longest = {}
    for row in rows:
        is_task = row["source"] == "task" and not row["name"].startswith(KERNEL_THREADS)
        if is_task and row["total_ns"] is not None:
            known = longest.get(row["cpu"])
            if known is None or row["total_ns"] >= known["total_ns"]:
                longest[row["cpu"]] = row
    for row in longest.values():
        row["own"] = True

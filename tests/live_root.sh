#!/usr/bin/env bash
# Live recording on the running kernel, as root: figures against cyclictest's own counts, nothing left
# behind, nothing written elsewhere.   bash tests/live_root.sh [QUIETCORE]
# Needs root and tracefs at /sys/kernel/tracing. Uses cyclictest and strace where they are installed; what is
# left out is said, and a line "WHAT: REASON" is added to the file $QUIETCORE_LEFT_OUT if that is set.
set -uo pipefail
cd "$(dirname "$0")/.."

quietcore=${1:-}
if [ -z "$quietcore" ]; then
    cargo build --release --quiet --package quietcore-cli || exit 2
    quietcore=${CARGO_TARGET_DIR:-target}/release/quietcore
fi
tracing=/sys/kernel/tracing
if [ "$(id -u)" -ne 0 ] || [ ! -d "$tracing/instances" ]; then
    echo "live_root: needs root and tracefs at $tracing (mount -t tracefs nodev $tracing)" >&2
    exit 2
fi

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
. tests/checks.sh

left_out() { # WHAT REASON
    echo "left out: $1 ($2)"
    [ -z "${QUIETCORE_LEFT_OUT:-}" ] || echo "live_root $1: $2" >>"$QUIETCORE_LEFT_OUT"
}

instances() { find "$tracing/instances" -mindepth 1 -maxdepth 1 | sort; }

wait_for() { # FILE WORD: until the word is in the file, 10 s at most
    for _ in $(seq 100); do
        grep -q "$2" "$1" 2>/dev/null && return 0
        sleep 0.1
    done
    return 1
}

snapshot() { python3 tests/snapshot_settings.py; }

before=$(instances)
same_instances() { [ "$(instances)" = "$before" ]; }

# 1. The figures against cyclictest's own.
if command -v cyclictest >/dev/null; then
    "$quietcore" explain --live 13s --json >"$folder/live.json" 2>"$folder/live.err" &
    recorder=$!
    wait_for "$folder/live.err" 'recording for' || cat "$folder/live.err"
    cyclictest -t2 -i1000 -D8 -q >"$folder/cyclictest.txt" 2>&1
    wait "$recorder"
    check "hrtimers.by_task equals cyclictest's own counts within 0.5 %" \
        python3 tests/compare_cyclictest.py "$folder/live.json" "$folder/cyclictest.txt"
    check "the instance is gone after a normal end" same_instances
else
    left_out "figures against cyclictest" "cyclictest is not installed (rt-tests)"
fi

# 2. Nothing is left behind.
for signal in INT TERM HUP; do
    rm -f "$folder/err" # the words of the run before must not be taken for this one's
    "$quietcore" explain --live 30s >"$folder/out" 2>"$folder/err" &
    recorder=$!
    wait_for "$folder/err" 'recording for'
    kill "-$signal" "$recorder"
    wait "$recorder"
    code=$?
    check "exit code 130 after SIG$signal" [ "$code" -eq 130 ]
    check "the instance is gone after SIG$signal" same_instances
done
rm -f "$folder/err"
"$quietcore" explain --live 30s >"$folder/out" 2>"$folder/err" &
recorder=$!
wait_for "$folder/err" 'recording for'
kill -KILL "$recorder"
wait "$recorder" 2>/dev/null
check "SIGKILL leaves the instance" [ "$(instances)" != "$before" ]
"$quietcore" explain --live 1s --questions empty-softirqs >/dev/null 2>"$folder/err"
check "the next start removes and names it" grep -q 'that a killed run left behind' "$folder/err"
check "nothing is left after it" same_instances

# A run in another PID namespace looks dead from here; it is read, so it must be left alone.
rm -f "$folder/ns.err"
unshare --pid --fork --mount-proc "$quietcore" explain --live 4s --json \
    >"$folder/ns.json" 2>"$folder/ns.err" &
recorder=$!
wait_for "$folder/ns.err" 'recording for'
"$quietcore" explain --live 1s --questions empty-softirqs >/dev/null 2>&1
wait "$recorder"
check "a start leaves a run in another PID namespace alone" python3 -c '
import json, sys
report = json.load(open(sys.argv[1]))
sys.exit(report["duration_ns"] < 3.5e9 or report["own_disturbance"] is not None)
' "$folder/ns.json"

# 3. No setting changes: files that may be written, whose value only a write changes.
run_verb() { # 0: no finding, 1: findings; more is an error, which shows nothing
    "$quietcore" "$@" >/dev/null 2>"$folder/err"
    local code=$?
    [ "$code" -le 1 ] || cat "$folder/err"
    return "$((code > 1))"
}
for verb in "--live 2s" "doctor" "explain recordings/g612-c16-iso.txt.zst" "explain --live 2s" \
    "explain --live 2s --isolated 1" "cat recordings/g61-c16-iso.txt.zst"; do
    snapshot >"$folder/before"
    # shellcheck disable=SC2086
    check "it runs: quietcore $verb" run_verb $verb
    snapshot >"$folder/after"
    check "no setting changed by: quietcore $verb" diff "$folder/before" "$folder/after"
done

# 4. Nothing is opened for writing outside of the instance and the named files.
calls=open,openat,openat2,creat,mkdir,mkdirat,rmdir,unlink,unlinkat
calls+=,rename,renameat,renameat2,link,linkat,truncate,mount
changing='O_WRONLY|O_RDWR|O_CREAT|O_TRUNC|creat\(|mkdir|rmdir|unlink|rename|link|truncate|mount\('
own_instance='/sys/kernel/tracing/instances/quietcore-[0-9]+-[0-9]+'
# By name, or below the folder's own descriptor by a name without a folder in it.
own_file="\"$folder[/\"]|<$folder>, \"[^/\"]+\""
if command -v strace >/dev/null; then
    for verb in "--live 2s" "doctor" "explain recordings/g612-c16-iso.txt.zst --perfetto $folder/t.pftrace" \
        "explain --live 2s --perfetto $folder/t.pftrace --openmetrics $folder/m.prom"; do
        # shellcheck disable=SC2086
        strace -f -y -e "trace=$calls" -o "$folder/strace" "$quietcore" $verb >/dev/null 2>&1
        grep -E "$changing" "$folder/strace" | grep -vE "readlink|ENOENT|$own_instance" |
            grep -vE "$own_file" | grep -vE '^[0-9]+ +(--- |\+\+\+ )' >"$folder/writes" || true
        check "nothing opened for writing elsewhere by: quietcore ${verb//$folder\//}" \
            [ ! -s "$folder/writes" ]
        cat "$folder/writes"
    done
    check "strace saw the instance being made and removed" \
        [ "$(grep -cE "(mkdir|rmdir)(at)?\(.*$own_instance" "$folder/strace")" -ge 2 ]
else
    left_out "writes elsewhere" "strace is not installed"
fi

# 5. A recording that is kept: it gives what it says it holds, and a signal ends it early.
check "record keeps a recording" "$quietcore" record "$folder/kept.txt.zst" --for 2s --isolated 1 --json
"$quietcore" record "$folder/kept.txt.zst" --for 2s --isolated 1 --json >"$folder/kept.json" 2>/dev/null
"$quietcore" explain "$folder/kept.txt.zst" --json >"$folder/explained.json"
check "explain reads what record kept" python3 -c '
import json, sys
kept, explained = (json.load(open(path)) for path in sys.argv[1:])
same = [kept[key] == explained[key] for key in ("events", "lost_events", "duration_ns")]
known = explained["kernel"] is not None and explained["isolated"] == "1"
sys.exit(not all(same) or not known or kept["incomplete"] != [] or kept["events"] < 100)
' "$folder/kept.json" "$folder/explained.json"
check "verify agrees with it" "$quietcore" verify "$folder/kept.txt.zst"
rm -f "$folder/err"
"$quietcore" record "$folder/early.txt" --for 30s >"$folder/out" 2>"$folder/err" &
recorder=$!
wait_for "$folder/err" 'recording for'
kill -INT "$recorder"
wait "$recorder"
check "exit code 130 after SIGINT while it records" [ "$?" -eq 130 ]
check "what was recorded until then is kept" grep -q '^# lost events: ' "$folder/early.txt"
check "the instance is gone after it" same_instances
check "a place that cannot be written is told before anything is done" python3 -c '
import subprocess, sys
run = subprocess.run([sys.argv[1], "record", "/no/such/folder/x.txt"], capture_output=True, text=True)
sys.exit(run.returncode != 2 or "switching" in run.stderr or "/no/such/folder" not in run.stderr)
' "$quietcore"

# 6. A file of perf gives the report of its own text.
if perf record -q -a -e timer:timer_start -o "$folder/try.data" true >/dev/null 2>&1; then
    perf record -q -a -k mono -o "$folder/perf.data" -e 'timer:*' -e 'irq:*' -e 'sched:sched_switch' \
        -e 'sched:sched_waking' -e 'workqueue:*' sleep 1 >/dev/null 2>&1
    { # The line of trace-cmd that says how many CPUs there are, as the file does.
        echo "cpus=$(getconf _NPROCESSORS_CONF)"
        perf script --ns -i "$folder/perf.data" 2>/dev/null
    } >"$folder/perf.txt"
    "$quietcore" explain "$folder/perf.data" --json --isolated 1 >"$folder/perf.json"
    "$quietcore" explain "$folder/perf.txt" --json --isolated 1 --kernel "$(uname -r)" \
        >"$folder/text.json"
    "$quietcore" cat "$folder/perf.data" >"$folder/cat.txt"
    "$quietcore" explain "$folder/cat.txt" --json --isolated 1 --kernel "$(uname -r)" >"$folder/cat.json"
    check "perf.data gives the report of its text" cmp "$folder/perf.json" "$folder/cat.json"
    # The text of perf script does not say that an event was in an interrupt, so its causes may be tasks.
    check "and that of perf script, causes apart" python3 -c '
import json, sys
reports = [json.load(open(path)) for path in sys.argv[1:]]
for row in (row for report in reports for row in report["interruptions"]):
    del row["causes"]
sys.exit(reports[0] != reports[1])
' "$folder/perf.json" "$folder/text.json"
    check "it has events, and names of functions" python3 -c '
import json, sys
report = json.load(open(sys.argv[1]))
sys.exit(report["events"] < 100 or report["incomplete"] != [])
' "$folder/perf.json"
else
    left_out "perf.data against perf script" "perf is not installed, or may not record here"
fi

# 7. Interrupts and softirqs against the kernel's own counts, and each interrupt of another CPU has its
# sender.
if [ "$(uname -m)" = x86_64 ] && [ "$(nproc)" -gt 1 ]; then
    check "interruptions equal /proc/interrupts and /proc/softirqs within 1 %" \
        python3 tests/compare_proc.py "$quietcore" "$folder"
else
    left_out "interruptions against /proc/interrupts" "it needs two CPUs of x86"
fi

# 8. A recording that waits for a spike: it ends with it, and the file shows it; without one there is none.
last=$(($(nproc) - 1))
"$quietcore" record "$folder/spike.txt.zst" --trigger 'gap>1us' --isolated "$last" --for 20s --json \
    >"$folder/spike.json" 2>"$folder/err"
check "a spike ends a recording, exit code 1" [ "$?" -eq 1 ]
check "the file shows what took the CPU away then" python3 -c '
import json, subprocess, sys
quietcore, folder, cpu = sys.argv[1:]
spike = json.load(open(folder + "/spike.json"))
gap = spike["gap"]
longest = gap["until_ns"] - gap["from_ns"]
middle = (gap["from_ns"] + gap["until_ns"]) / 2e9
around = ["--around", f"{longest // 2 + 1}ns"]
words = ["explain", spike["file"], "--json", "--at", f"{middle:.9f}", *around]
report = json.loads(subprocess.run([quietcore, *words], capture_output=True, check=True).stdout)
spans = [span for span in report["at"]["spans"] if span["cpu"] == int(cpu)]
kept = report["begin_ns"] <= gap["from_ns"] and report["events"] == spike["events"]
clock = abs(report["wall_clock_ns"] + report["begin_ns"] - __import__("time").time_ns()) < 120e9
sys.exit(not spans or longest <= 1000 or gap["cpu"] != int(cpu) or not kept or not clock)
' "$quietcore" "$folder" "$last"
"$quietcore" record "$folder/none.txt" --trigger 'gap>9s' --isolated "$last" --for 2s >"$folder/out" 2>&1
check "without a spike the exit code is 0" [ "$?" -eq 0 ]
check "and there is no file" [ ! -e "$folder/none.txt" ]
check "nothing is left after it, too" same_instances

# 9. A busy host at default settings: nothing is lost, and the real-time tasks' wake-ups are there.
if command -v stress-ng >/dev/null && command -v cyclictest >/dev/null; then
    for load in '--udp 2' '--switch 1 --timer 1'; do
        # shellcheck disable=SC2086 # several words
        stress-ng --quiet $load --timeout 12 >/dev/null 2>&1 &
        stress=$!
        cyclictest -t2 -i500 -p80 -D9 -q >"$folder/cyclictest.txt" 2>&1 &
        latency=$!
        sleep 1
        "$quietcore" explain --live 5s --isolated "$last" --json >"$folder/busy.json" 2>"$folder/err"
        wait "$latency" "$stress"
        check "stress-ng $load: no event is lost" python3 -c '
import json, re, sys
report = json.load(open(sys.argv[1]))
cycles = sum(int(count) for count in re.findall(r"C: *(\d+)", open(sys.argv[2]).read()))
woken = report["rt_wakeups"]["count"] or 0
events = report["events"]
print(f"  {events} events, {woken} real-time wake-ups in 5 s, cyclictest made {cycles} in 9 s")
sys.exit(report["lost_events"] or report["incomplete"] or 3 * woken < cycles)
' "$folder/busy.json" "$folder/cyclictest.txt"
    done
else
    left_out "a busy host" "stress-ng or cyclictest is not installed"
fi

# 9. The same through trace-cmd, only if asked for: trace-cmd resets the top-level tracing of the machine.
# crates/explain/tests/explain.rs holds a recording made this way against cyclictest's counts, on any machine.
if [ "${QUIETCORE_TRACE_CMD:-0}" = 1 ]; then
    events="-e hrtimer_start -e hrtimer_expire_entry -e timer_start -e timer_expire_entry"
    # shellcheck disable=SC2086
    trace-cmd record -q $events -o "$folder/trace.dat" cyclictest -t2 -i1000 -D4 -q \
        >"$folder/cyclictest.txt" 2>"$folder/trace-cmd.err"
    trace-cmd report -i "$folder/trace.dat" 2>/dev/null | "$quietcore" explain - --json >"$folder/tc.json"
    check "trace-cmd report: hrtimers.by_task equals cyclictest's own counts within 0.5 %" \
        python3 tests/compare_cyclictest.py "$folder/tc.json" "$folder/cyclictest.txt"
else
    echo "not asked for: trace-cmd (QUIETCORE_TRACE_CMD=1 runs it; it resets the machine's top-level tracing)"
fi

verdict

#!/usr/bin/env bash
# Counting in the running kernel, as root: it counts what others count, wakes nobody, gives up its rights, and
# leaves nothing behind.   bash tests/watch_root.sh [QUIETCORE] [--all]
# Needs root, tracefs at /sys/kernel/tracing and a kernel that describes its types. --all: a minute, beside
# bpftrace, too.
set -uo pipefail
cd "$(dirname "$0")/.."

all=
[ "${*: -1}" != --all ] || all=yes
quietcore=${1:-}
if [ -z "$quietcore" ] || [ "$quietcore" = --all ]; then
    cargo build --release --quiet --package quietcore-cli || exit 2
    quietcore=${CARGO_TARGET_DIR:-target}/release/quietcore
fi
tracing=/sys/kernel/tracing
if [ "$(id -u)" -ne 0 ] || [ ! -d "$tracing/instances" ]; then
    echo "watch_root: needs root and tracefs at $tracing (mount -t tracefs nodev $tracing)" >&2
    exit 2
fi

folder=$(mktemp -d)
# A user that is not root must reach the command.
cp "$quietcore" "$folder/quietcore"
chmod 755 "$folder" "$folder/quietcore"
trap 'rm -rf "$folder"' EXIT
. tests/checks.sh

wait_for() { # FILE WORD: until the word is in the file, 30 s at most
    for _ in $(seq 300); do
        grep -q "$2" "$1" 2>/dev/null && return 0
        sleep 0.1
    done
    return 1
}

# The last CPU is watched, the others do the rest.
cpu=$(($(nproc) - 1))

# Programs of the kind that is used, in all processes.
programs() { grep -ls '^prog_id:' /proc/[0-9]*/fdinfo/* 2>/dev/null | wc -l; }
maps() { bpftool map list 2>/dev/null | grep -cE 'name (rows|choices|losses|sents|aways|stacks_taken) '; }
before=$(programs)
maps_before=$(maps)

# 1. What others count, it counts.
if [ -n "$all" ]; then
    check "it counts what bpftrace, the kernel and a recording have" \
        python3 tests/watch_agreement.py "$quietcore" "$cpu" 60
else
    check "it counts what the kernel and a recording have" \
        python3 tests/watch_agreement.py "$quietcore" "$cpu" 10 --without-bpftrace
fi

# 2. Metrics, in a file and over HTTP; rights are given up; a kill leaves nothing.
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
"$quietcore" watch --isolated "$cpu" --interval 500ms --openmetrics "$port" --json \
    >"$folder/lines" 2>"$folder/said" &
watch=$!
check "it begins, and says what it did to begin" wait_for "$folder/said" 'from now on there are none'
check "lines of JSON appear" wait_for "$folder/lines" '"schema":1'
ask() { # PATH
    local program='import sys, urllib.request as u; print(u.urlopen(sys.argv[1]).read().decode())'
    python3 -c "$program" "http://127.0.0.1:$port/$1"
}
ask metrics >"$folder/metrics"
check "metrics are answered, to their end" grep -q '^# EOF' "$folder/metrics"
check "the CPU's ticks are in them" \
    grep -q "disturbances_total{cpu=\"$cpu\",source=\"processor\",name=\"local_timer\"" "$folder/metrics"
check "functions of the kernel have their names" grep -q 'source="hrtimer",name="[a-z]' "$folder/metrics"
check "it is in good health" test "$(ask healthz | head -1)" = ok
rights() { grep -hE '^Cap(Inh|Prm|Eff|Amb)' "/proc/$watch"/task/*/status | grep -v '0000000000000000$'; }
check "no thread of it has any right" test -z "$(rights)"
runs_on() { grep -hE '^Cpus_allowed_list' "/proc/$watch"/task/*/status | sort -u; }
check "it runs on other CPUs than those it watches" test -z "$(runs_on | grep -E "[:,[:space:]-]$cpu\$")"
check "the kernel has its programs" test "$(programs)" -gt "$before"
kill -9 "$watch"
wait "$watch" 2>/dev/null
sleep 0.5
check "a kill leaves no program behind" test "$(programs)" -eq "$before"
check "nor a map" test "$(maps)" -eq "$maps_before"
check "nor a file" test -z "$(find /sys/fs/bpf -name '*quietcore*' 2>/dev/null)"

# 3. A file of metrics, whole; an end that is asked for.
"$quietcore" watch --isolated "$cpu" --interval 300ms --for 1s --openmetrics "$folder/file.prom" \
    >"$folder/table" 2>&1
check "--for ends it with 0" test $? -eq 0
check "the file of metrics is whole" test "$(tail -1 "$folder/file.prom")" = '# EOF'
check "the table says what took the CPU away" \
    grep -qE "^ +$cpu +[0-9]+ .*(processor|hrtimer) " "$folder/table"

# 4. What it may not do is said in a sentence.
as_nobody() { setpriv --reuid 65534 --regid 65534 --clear-groups "$@"; }
as_nobody "$folder/quietcore" watch --isolated "$cpu" --for 1s >"$folder/refused" 2>&1
check "another user is refused with 2" test $? -eq 2
check "and told which rights it needs" grep -q 'CAP_BPF and CAP_PERFMON, or root' "$folder/refused"
granted() {
    setpriv --reuid 65534 --regid 65534 --clear-groups --inh-caps -all,+bpf,+perfmon,+syslog \
        --ambient-caps -all,+bpf,+perfmon,+syslog "$@"
}
granted "$folder/quietcore" watch --isolated "$cpu" --interval 1s --for 2s --json \
    >"$folder/granted" 2>"$folder/said"
check "three capabilities are enough" test $? -eq 0
check "names of functions included" grep -q '"source":"hrtimer","name":"[a-z]' "$folder/granted"
"$quietcore" watch --isolated 4095 --for 1s >"$folder/refused" 2>&1
check "a CPU that is not there is refused" grep -q 'is not online' "$folder/refused"
"$quietcore" watch --isolated "$cpu" --openmetrics 99999 >"$folder/refused" 2>&1
check "a port that is none is refused" grep -q 'is no port' "$folder/refused"

verdict

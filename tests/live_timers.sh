#!/usr/bin/env bash
# The runtime under disturbance: everything that docs/results/disturbance.md lists, one line each.
#   bash tests/live_timers.sh [--quick]
# Quick takes seconds per experiment, for CI, and judges only what holds on any machine: nothing early, lost
# or twice. Without it: the durations of the acceptance criteria, and lateness and wake-ups too.
# Exit code 0 when nothing failed, 1 when something did, 2 when the program could not be built. Runs as any
# user; what needs root, real-time rights or a tool that is not there is left out by name, and a line
# "WHAT: REASON" is added to the file $QUIETCORE_LEFT_OUT if that is set. Ctrl-C ends what it started and
# removes what it made.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 2

pace=full
case ${1:-} in
'') ;;
--quick) pace=quick ;;
*)
    sed -n '2,11s/^# \{0,1\}//p' "$0" >&2
    exit 2
    ;;
esac

cargo build --release --quiet --package quietcore-live --example endure || exit 2
endure=${CARGO_TARGET_DIR:-target}/release/examples/endure

pick() { if [ $pace = quick ]; then echo "$1"; else echo "$2"; fi; } # QUICK FULL

folder=$(mktemp -d)
group=''   # the process group under way
burden=''  # the process group that loads the machine meanwhile
control='' # the control group that was made
mounted='' # where a hierarchy of control groups was mounted for it
passed=0 failed=0 left_out=0

remove_control() {
    if [ -n "$control" ]; then
        # Its last process may still be on its way out.
        for _ in $(seq 50); do
            rmdir "$control" 2>/dev/null && break
            sleep 0.1
        done
        [ -d "$control" ] && echo "live_timers: could not remove $control" >&2
        control=''
    fi
    if [ -n "$mounted" ]; then
        umount "$mounted"
        mounted=''
    fi
}

clean_up() {
    if [ -n "$group" ]; then
        # KILL ends stopped processes, too.
        kill -KILL -- "-$group" 2>/dev/null
        wait "$group" 2>/dev/null
    fi
    unburden
    remove_control
    rm -rf "$folder"
}

# Something that keeps all CPUs busy, from outside, until it is taken away.
load_machine() {
    if command -v stress-ng >/dev/null; then
        load=stress-ng
        setsid stress-ng --quiet --cpu "$(nproc)" --switch 1 >/dev/null 2>&1 &
    else
        load=loops
        setsid bash -c 'for _ in $(seq "$(nproc)"); do while :; do :; done & done; wait' &
    fi
    burden=$!
}

unburden() {
    if [ -n "$burden" ]; then
        kill -TERM -- "-$burden" 2>/dev/null
        wait "$burden" 2>/dev/null
        burden=''
    fi
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

leave_out() { # NAME REASON
    echo "LEFT OUT $1 ($2)"
    left_out=$((left_out + 1))
    [ -z "${QUIETCORE_LEFT_OUT:-}" ] || echo "live_timers $1: $2" >>"$QUIETCORE_LEFT_OUT"
}

verdict() { # EXIT-CODE NAME
    case $1 in
    0) passed=$((passed + 1)) ;;
    77) leave_out "$2" 'the experiment could not be made here; its line says why' ;;
    1) failed=$((failed + 1)) ;;
    *)
        failed=$((failed + 1))
        echo "FAIL $2: exit code $1"
        ;;
    esac
}

# Starts the program as a process group of its own. Its line goes to a file; it runs until its input ends,
# or as long as it is told. $prefix is what to start it with.
prefix=()
start() { # ARGUMENT...
    rm -f "$folder/input"
    mkfifo "$folder/input"
    if [ -n "$control" ]; then
        (echo "$BASHPID" >"$control/cgroup.procs" && exec setsid "${prefix[@]}" "$endure" "$@") \
            <"$folder/input" >"$folder/line" &
    else
        setsid "${prefix[@]}" "$endure" "$@" <"$folder/input" >"$folder/line" &
    fi
    group=$!
    exec 9>"$folder/input"
}

# Ends its input, waits for it, and prints its line with the name of the disturbance.
finish() { # NAME [FIGURE...]
    local name=$1 code line
    shift
    exec 9>&-
    wait "$group"
    code=$?
    group=''
    line=$(cat "$folder/line")
    [ -z "$line" ] || echo "${line%% *} $name: ${line#* }${*:+ $*}"
    verdict "$code" "$name"
}

# An experiment that needs no help.
alone() { # NAME ARGUMENT...
    local name=$1
    shift
    start "$@"
    finish "$name"
}

is_running() { kill -0 "$group" 2>/dev/null; }

# All threads are there: what the program may use was decided before.
await_threads() { # LANES
    local count=4
    [ "$1" = none ] || count=7
    for _ in $(seq 100); do
        [ "$(find "/proc/$group/task" -mindepth 1 -maxdepth 1 2>/dev/null | wc -l)" -ge $count ] && return
        sleep 0.1
    done
}

nap() { # LOW HIGH, in ms below a second
    sleep "$(printf '0.%03d' $(($1 + RANDOM % ($2 - $1))))"
}

# 1. Random timers while everything stops at random.
stop_at_random() { # TIMES
    stops=0
    while [ "$stops" -lt "$1" ] && is_running; do
        nap 5 150
        kill -STOP -- "-$group" 2>/dev/null
        nap 1 150
        kill -CONT -- "-$group" 2>/dev/null
        stops=$((stops + 1))
    done
}

# 2. The same while the process may use a fifth of one CPU.
make_control() {
    local name=quietcore-endure-$$ controllers
    why=''
    [ "$(id -u)" -eq 0 ] || { why='needs root'; return 1; }
    if [ -e /sys/fs/cgroup/cpu/cpu.cfs_quota_us ]; then
        make_v1 "/sys/fs/cgroup/cpu/$name"
    elif grep -qw cpu /sys/fs/cgroup/cgroup.subtree_control 2>/dev/null; then
        mkdir "/sys/fs/cgroup/$name" || { why='cannot make a control group'; return 1; }
        control=/sys/fs/cgroup/$name
        echo '20000 100000' >"$control/cpu.max" || { why='cpu.max cannot be written'; return 1; }
    else
        controllers=$(awk '$1 == "cpu" && $2 > 0 && $4 == 1' /proc/cgroups)
        [ -n "$controllers" ] || { why='no cpu controller to be had'; return 1; }
        mkdir "$folder/cgroup"
        why='no cpu controller to be had'
        mount -t cgroup -o cpu none "$folder/cgroup" 2>/dev/null || return 1
        mounted=$folder/cgroup
        make_v1 "$mounted/$name"
    fi
}

make_v1() { # FOLDER
    mkdir "$1" || { why='cannot make a control group'; return 1; }
    control=$1
    echo 100000 >"$control/cpu.cfs_period_us" && echo 20000 >"$control/cpu.cfs_quota_us" ||
        { why='cpu.cfs_quota_us cannot be written'; return 1; }
}

throttled() { awk '$1 == "nr_throttled" { print $2 }' "$control/cpu.stat"; }

# 3. The same while the CPUs that the process may use change.
allowed=$(awk '$1 == "Cpus_allowed_list:" { print $2 }' /proc/self/status)
first_cpu=${allowed%%[-,]*}
last_cpu=${allowed##*[-,]}

change_affinity() { # SECONDS
    local end=$((SECONDS + $1)) cpus
    changes=0
    while [ "$SECONDS" -lt "$end" ] && is_running; do
        for cpus in "$first_cpu" "$allowed" "$last_cpu" "$allowed"; do
            taskset -a -p -c "$cpus" "$group" >/dev/null 2>&1 && changes=$((changes + 1))
            nap 20 300
        done
    done
}

random_timers() { # SUFFIX LANES
    alone "undisturbed$1" run --seconds "$(pick 2 10)" --lanes "$2"

    start run --lanes "$2"
    await_threads "$2"
    stop_at_random "$(pick 15 200)"
    finish "stopped$1" "stops=$stops"

    if make_control; then
        start run --seconds "$(pick 4 60)" --lanes "$2"
        while is_running; do nap 100 101; done
        finish "quota$1" "throttled=$(throttled)"
        if [ "$(throttled)" -eq 0 ]; then
            echo "FAIL quota$1: the quota throttled nothing"
            verdict 1 "quota$1"
        fi
    else
        leave_out "quota$1" "$why"
    fi
    remove_control

    if [ "$first_cpu" = "$last_cpu" ]; then
        leave_out "affinity$1" 'needs two CPUs'
    elif ! command -v taskset >/dev/null; then
        leave_out "affinity$1" 'taskset is not installed'
    else
        start run --lanes "$2"
        await_threads "$2"
        change_affinity "$(pick 4 30)"
        finish "affinity$1" "changes=$changes"
    fi
}

random_timers '' none
if [ "$first_cpu" = "$last_cpu" ]; then
    leave_out 'lanes' 'needs two CPUs'
else
    random_timers ', lanes' "$first_cpu,$last_cpu"

    # 4. Nobody wakes up for nothing. The program counts its child's context switches from outside. Not
    # quick: other load on the machine decides (crates/live/tests/lane_quiet.rs has looser bounds).
    if [ $pace = full ]; then
        alone 'quiet' quiet --seconds 60 --lanes "$first_cpu,$last_cpu"
        alone 'busy' busy --seconds 60 --lanes "$first_cpu,$last_cpu"
    fi

    # 5. A real-time loop on a lane's CPU. In a second of it the kernel gives others 50 ms, or not.
    hog=(hog --seconds "$(pick 2 5)" --lanes "$first_cpu,$last_cpu")
    [ $pace = full ] || hog+=(--counts-only)
    alone 'hog' "${hog[@]}"
    alone 'hog, parked lane' "${hog[@]}" --lane parked
    alone 'hog, stalls unnoticed' "${hog[@]}" --stall-handling off
    if chrt -f 50 true 2>/dev/null; then
        prefix=(chrt -f 50)
        alone 'hog, all real-time' "${hog[@]}"
        alone 'hog, all real-time, parked lane' "${hog[@]}" --lane parked
        prefix=()
    else
        leave_out 'hog, all real-time' 'needs real-time rights and chrt'
    fi

    # 6. Lanes are isolated in turns while everything goes on, on a machine that others load.
    load_machine
    start flips --count "$(pick 300 10000)" --lanes "$first_cpu,$last_cpu"
    finish 'flips' "load=$load"
    unburden

    # 7. Kicks of an isolated lane, as the kernel counts them.
    alone 'kicked' kicked --count "$(pick 100 1000)" --lanes "$first_cpu,$last_cpu"
fi

# 8. Arm and cancel, and nothing else.
alone 'churn' churn --threads 2 --pairs "$(pick 1000000 10000000)"
# Not quick: a lock's holder that other load preempts lets the other thread wait in the kernel.
if [ $pace = quick ]; then
    :
elif command -v strace >/dev/null; then
    prefix=(strace -f -c -e trace=futex,timerfd_settime -o "$folder/calls")
    start churn --threads 2 --pairs 10000000
    prefix=()
    calls() { awk -v name="$1" '$NF == name { calls = $4 } END { print calls + 0 }' "$folder/calls"; }
    exec 9>&-
    wait "$group"
    code=$?
    group=''
    futex=$(calls futex)
    line="churn, traced: futex=$futex (at most 10) timerfd_settime=$(calls timerfd_settime)"
    if [ "$code" -eq 0 ] && [ "$futex" -le 10 ]; then
        echo "PASS $line"
        verdict 0 'churn, traced'
    else
        echo "FAIL $line; exit code $code"
        verdict 1 'churn, traced'
    fi
else
    leave_out 'churn, traced' 'strace is not installed'
fi

echo "live_timers ($pace): $passed passed, $failed failed, $left_out left out"
[ "$failed" -eq 0 ]

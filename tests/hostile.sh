#!/usr/bin/env bash
# Runs `quietcore explain` on input that is hard to read, with 256 MiB of address space.
#
#   tests/hostile.sh [--quick] [SIZE_MIB] [QUIETCORE]
#   QUIETCORE=PATH GENERATE=PATH ONLY=REGEX tests/hostile.sh
#
# SIZE_MIB: of each input, default 1024; --quick is 64. QUIETCORE: default target/release/quietcore.
# GENERATE: bench's generator, built when not given. ONLY: run cases whose names match.
# Inputs lie below $TMPDIR (default: the system's) one at a time, and are removed.
#
# For each case: the exit code is 0 or 1 for what is a trace and 2 for what is none, then with one
# clear line; never a signal, a panic or a failed allocation; at most 1 MiB of output; and at least
# 4 MiB/s after the first 20 s. Exit code: 0 when all cases passed. What is left out is said, and a line
# "WHAT: REASON" is added to the file $QUIETCORE_LEFT_OUT if that is set.
set -uo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
limit_kib=262144
size=1024
case ${1:-} in --quick) size=64 && shift ;; esac
case ${1:-} in [0-9]*) size=$1 && shift ;; esac
quietcore=${1:-${QUIETCORE:-$root/target/release/quietcore}}
[ -x "$quietcore" ] || { echo "hostile: $quietcore is not there; build it or name it" >&2; exit 2; }

generate=${GENERATE:-}
if [ -z "$generate" ]; then
    cargo build --quiet --release --manifest-path "$root/bench/Cargo.toml" --bin generate || exit 2
    generate=${CARGO_TARGET_DIR:-$root/bench/target}/release/generate
fi

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
trap 'exit 130' INT TERM
passed=0 failed=0 left_out=0

# Runs the rest of the arguments; leaves "KIB SECONDS" in $folder/usage and returns the exit code.
measured() {
    if [ -x /usr/bin/time ]; then
        /usr/bin/time --quiet -o "$folder/usage" -f '%M %e' "$@"
    else
        python3 - "$folder/usage" "$@" <<'PYTHON'
import resource, subprocess, sys, time
start = time.monotonic()
code = subprocess.call(sys.argv[2:])
peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
with open(sys.argv[1], "w") as usage:
    print(peak, round(time.monotonic() - start, 2), file=usage)
sys.exit(128 - code if code < 0 else code)
PYTHON
    fi
}

# What is wrong with the run that just ended, a line each.
problems() {
    local kind=$1 code=$2 seconds=$3 allowed=$4
    case $kind-$code in
        valid-0 | valid-1 | garbage-2) ;;
        *) echo "exit code $code for $kind input" ;;
    esac
    if grep -qiE 'panicked|memory allocation|RUST_BACKTRACE|stack overflow' "$folder/err"; then
        echo "stderr: $(grep -iE -m 1 'panicked|memory allocation|stack overflow' "$folder/err")"
    fi
    if [ "$kind" = garbage ]; then
        [ "$(wc -l <"$folder/err")" -eq 1 ] || echo "$(wc -l <"$folder/err") lines on stderr instead of one"
        [ "$(wc -c <"$folder/err")" -lt 1000 ] || echo "a message of $(wc -c <"$folder/err") bytes"
        grep -q '^quietcore: ' "$folder/err" || echo "the message does not begin with quietcore:"
    fi
    [ "$(wc -c <"$folder/out")" -le 1048576 ] || echo "$(wc -c <"$folder/out") bytes of output"
    awk -v s="$seconds" -v a="$allowed" 'BEGIN { exit !(s > a) }' && echo "took longer than $allowed s"
}

# check KIND SIZE_MIB NAME: explains $folder/input, prints and counts.
check() {
    local kind=$1 mib=$2 name=$3 code allowed found kib seconds
    allowed=$((20 + mib / 4))
    (
        ulimit -v "$limit_kib" || exit 99
        measured timeout --signal=KILL $((allowed + 60)) "$quietcore" explain "$folder/input"
    ) >"$folder/out" 2>"$folder/err"
    code=$?
    rm -f "$folder/input"
    read -r kib seconds < <(tail -n 1 "$folder/usage")
    found=$(problems "$kind" "$code" "$seconds" "$allowed")
    printf '%-52s %5s MiB  exit %-3s %8s s %7s KiB  ' "$name" "$mib" "$code" "$seconds" "$kib"
    if [ -z "$found" ]; then
        echo passed && passed=$((passed + 1))
    else
        echo FAILED && failed=$((failed + 1))
        printf '%s\n' "$found" | sed 's/^/    /'
    fi
    [ ! -s "$folder/err" ] || head -n 2 "$folder/err" | cut -c1-160 | sed "s|$folder/||; s/^/    | /"
}

wanted() {
    [[ $1 =~ ${ONLY:-.} ]]
}

# plain KIND SIZE_MIB GENERATOR NAME
plain() {
    wanted "$4" || return 0
    "$generate" "$3" --size "$2" >"$folder/input" || { echo "hostile: no room for $4" >&2; exit 2; }
    check "$1" "$2" "$4"
}

# compressed KIND SIZE_MIB GENERATOR NAME [ZSTD_OPTION...]: as plain, through zstd.
compressed() {
    wanted "$4" || return 0
    if ! command -v zstd >/dev/null; then
        echo "$4: left out, there is no zstd" && left_out=$((left_out + 1))
        [ -z "${QUIETCORE_LEFT_OUT:-}" ] || echo "hostile $4: zstd is not installed" >>"$QUIETCORE_LEFT_OUT"
        return 0
    fi
    "$generate" "$3" --size "$2" | zstd -q -1 "${@:5}" -c >"$folder/input" || exit 2
    check "$1" "$2" "$4 ($(($(wc -c <"$folder/input") / 1024)) KiB of zstd)"
}

small=$((size / 64 > 0 ? size / 64 : 1))
echo "ulimit -v $limit_kib KiB, $("$quietcore" --version)"
plain garbage "$size" random "random bytes"
plain garbage "$size" garbage-lines "random printable lines"
plain garbage "$size" one-line "one line without a line break"
plain garbage "$size" zeros "zero bytes"
plain valid "$size" trace "a valid trace, repeated"
plain valid "$size" pointers "timers, all pointers different"
plain valid "$size" functions "timers, all functions different"
plain valid "$size" tasks "hrtimers, all tasks and pointers different"
plain valid "$size" cpus "timers from and on 8192 CPUs"
plain valid "$size" interrupts "interrupts, all devices different"
plain valid "$size" unknown "unknown events, all names different"
plain valid "$size" same-line "one valid line, repeated"
plain valid "$size" mixed "all tables full at once"
plain valid "$size" trace-dat "pages of trace-cmd, repeated"
plain garbage "$size" trace-dat-random "random pages behind trace-cmd's front"
plain valid "$size" perf-data "samples of perf in one round"
plain garbage "$size" perf-data-random "random records behind perf's front"
plain valid "$size" perfetto "packets of Perfetto on four CPUs"
plain garbage "$size" perfetto-random "random packets behind Perfetto's first one"
compressed garbage "$size" zeros "zero bytes"
compressed garbage "$size" same-line "one valid line, which expands further than is allowed"
compressed garbage "$small" same-line "a window of 128 MiB" --long=27
plain garbage "$small" dashes "lines of 60 KiB that look like a task's front"
plain valid "$small" long-lists "masks of 60 KiB"
plain valid "$small" changes "isolation that changes with every event"

echo "$passed passed, $failed failed$([ "$left_out" -eq 0 ] || echo ", $left_out left out")"
[ "$failed" -eq 0 ]

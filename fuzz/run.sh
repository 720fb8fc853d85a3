#!/usr/bin/env bash
# Runs every fuzz target for SECONDS each (default 600), then the canary, which must fail.
#   fuzz/run.sh [SECONDS [TARGET...]]        FUZZ_TARGET_DIR=DIR: where to build
# Exit code: 0 when no target found anything and the canary did.
set -uo pipefail
cd "$(dirname "$0")"
seconds=${1:-600}
targets=("${@:2}")
all=(parse_trace parse_line parse_line_fields tc_grammar control ip_packet disciplines whatif scenario)
all+=(trace_dat perf_data perfetto canary)
[ ${#targets[@]} -gt 0 ] || targets=("${all[@]}")
fuzz=(cargo +nightly fuzz run --fuzz-dir .)
[ -z "${FUZZ_TARGET_DIR:-}" ] || fuzz+=(--target-dir "$FUZZ_TARGET_DIR")
./seed.sh || exit 2
failed=0

for target in "${targets[@]}"; do
    options=(-max_total_time="$seconds" -timeout=20 -rss_limit_mb=2048 -detect_leaks=0)
    options+=(-print_final_stats=1)
    case $target in
        tc_grammar | control) options+=(-dict=tc.dict) ;;
        scenario) options+=(-dict=scenario.dict) ;;
        ip_packet | disciplines | trace_dat | perf_data | perfetto) ;;
        *) options+=(-dict=trace.dict) ;;
    esac
    case $target in
        parse_trace | whatif | scenario) options+=(-max_len=16384) ;;
        ip_packet) options+=(-max_len=256) ;;
        trace_dat | perf_data | perfetto) options+=(-max_len=150000) ;;
        canary) options[0]=-max_total_time=60 ;;
        *) options+=(-max_len=4096) ;;
    esac
    echo "== $target"
    log=$(mktemp)
    "${fuzz[@]}" "$target" -- "${options[@]}" 2>&1 | tee "$log"
    found=${PIPESTATUS[0]}
    if [ "$target" = canary ]; then
        if [ "$found" -ne 0 ] && grep -q "the planted bug was found" "$log"; then
            echo "== canary: failed, as it must"
        else
            echo "== canary: DID NOT FAIL: the fuzzer is blind" && failed=1
        fi
    elif [ "$found" -ne 0 ]; then
        echo "== $target: A FINDING, see above" && failed=1
    fi
    rm -f "$log"
done
exit "$failed"

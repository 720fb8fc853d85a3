#!/usr/bin/env bash
# Fills fuzz/corpus/ from recordings/, fuzz/seeds/, fuzz/tc_lines.txt and scenarios/. No network.
# May be run again at any time.
#   fuzz/seed.sh            builds quietcore and uses it to decompress
#   QUIETCORE=PATH fuzz/seed.sh
set -euo pipefail
cd "$(dirname "$0")"
traces=corpus/parse_trace lines=corpus/parse_line
mkdir -p "$traces" "$lines" corpus/parse_line_fields corpus/tc_grammar corpus/control corpus/canary
# No seeds: both find their forms from nothing.
mkdir -p corpus/ip_packet corpus/disciplines
mkdir -p corpus/whatif corpus/scenario

text() {
    if [ -n "${QUIETCORE:-}" ]; then
        "$QUIETCORE" cat "$1"
    else
        cargo run --quiet --release --manifest-path ../Cargo.toml -- cat "$1"
    fi
}

# Whole beginnings: the header and the first events, 400 lines.
for recording in ../recordings/*.zst; do
    name=$(basename "$recording" .txt.zst)
    # `head` closes the pipe early; that is no failure here.
    text "$recording" 2>/dev/null | head -n 400 >"$traces/$name" || true
    # One line of each event, as a seed of its own, and all of them as a small trace.
    text "$recording" | awk -v lines="$lines/$name" '
        /^#/ { if (header++ < 12) print; next }
        match($0, /[0-9]: [a-z_]+: /) {
            event = substr($0, RSTART + 3, RLENGTH - 5)
            if (seen[event]++ < 2) print
            if (seen[event] == 1) { printf "%s", $0 > (lines "-" event); close(lines "-" event) }
        }' >"$traces/$name-small"
done

# Forms that no recording has: trace-cmd, CRLF, marks.
cp seeds/* "$traces/"
cp "$traces"/* corpus/whatif/
for scenario in ../scenarios/*.toml; do
    { cat "$scenario" && printf '\n# costs follow\n' && cat ../scenarios/costs.toml; } \
        >"corpus/scenario/$(basename "$scenario" .toml)"
done
split -l 1 -d -a 3 seeds/report.txt "$lines/report-"
split -l 1 -d -a 3 seeds/ftrace.txt "$lines/ftrace-"
grep -h -m 1 timer_cancel seeds/ftrace.txt | tr -d '\n' >corpus/canary/cancel
cp tc_lines.txt corpus/tc_grammar/all
split -l 1 -d -a 3 tc_lines.txt corpus/tc_grammar/line-
# The same lines as requests: a length in four bytes, and the line.
while IFS= read -r line; do
    printf -v length '\\x%02x\\x%02x\\0\\0' $((${#line} & 255)) $((${#line} >> 8))
    printf "$length%s" "$line"
done <tc_lines.txt >corpus/control/all
# Binary files without the bytes that the targets put before them.
mkdir -p corpus/trace_dat corpus/perf_data corpus/perfetto
for file in ../crates/cli/tests/trace-cmd/*.dat; do
    tail -c +11 "$file" >"corpus/trace_dat/$(basename "$file")"
done
tail -c +9 seeds-binary/perf.data >corpus/perf_data/perf.data
tail -c +6 seeds-binary/perfetto.pftrace >corpus/perfetto/perfetto.pftrace
find corpus -type f | wc -l | sed 's/$/ seeds/'

#!/usr/bin/env bash
# Packets of real programs through `quietcore netem tun --unprivileged`, as a user without any privilege:
# nothing is left behind.   bash tests/packets_nobody.sh [QUIETCORE]
# As root it becomes user 65534 first (setpriv). Needs user namespaces, a /dev/net/tun that all users may
# open, ip, ping, nsenter, python3; uses iperf3 where it is installed.
set -uo pipefail
cd "$(dirname "$0")/.."

quietcore=${1:-}
if [ -z "$quietcore" ]; then
    cargo build --release --quiet --package quietcore-cli || exit 2
    quietcore=${CARGO_TARGET_DIR:-target}/release/quietcore
fi
quietcore=$(realpath "$quietcore")
for need in ip ping nsenter unshare python3; do
    command -v "$need" >/dev/null || { echo "packets_nobody: needs $need" >&2; exit 2; }
done
if [ "$(id -u)" -eq 0 ]; then
    command -v setpriv >/dev/null || { echo "packets_nobody: needs setpriv, as root" >&2; exit 2; }
    folder=$(mktemp -d)
    trap 'rm -rf "$folder"' EXIT
    cp "$quietcore" "$folder/quietcore"
    mkdir "$folder/work" "$folder/tests" "$folder/examples"
    cp tests/packets_nobody.sh tests/checks.sh "$folder/tests"
    cp -r examples/ci "$folder/examples"
    chmod -R a+rX "$folder"
    chmod 755 "$folder/quietcore"
    chown 65534:65534 "$folder/work"
    cd "$folder" || exit 2
    setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=-all --bounding-set=-all \
        env -u XDG_RUNTIME_DIR TMPDIR="$folder/work" HOME="$folder/work" \
        bash tests/packets_nobody.sh "$folder/quietcore"
    exit
fi
if ! unshare -Urn true 2>/dev/null || ! { [ -r /dev/net/tun ] && [ -w /dev/net/tun ]; }; then
    echo "packets_nobody: needs user namespaces, and a /dev/net/tun with mode 0666" >&2
    exit 2
fi

name=qcn$$
folder=$(mktemp -d)
runner=
. tests/checks.sh
trap '[ -z "$runner" ] || kill "$runner" 2>/dev/null; rm -rf "$folder"' EXIT

tun() { "$quietcore" netem tun --unprivileged --name "$name" --queues 2 "$@"; }
# What the host has of ours: namespaces, interfaces, records, processes.
nothing_left() {
    [ -z "$(ip netns 2>/dev/null | grep "$name"; find /run/quietcore -name "*$name*" 2>/dev/null
        pgrep -f "netem tun --unprivileged --name $name"; ip -o link | grep -E ' (eth1|eth2)@?.*tun')" ]
}
least() { # MILLISECONDS FILE: the smallest round trip of a ping
    awk -F'[=/ ]+' -v least="$1" '/^rtt/ { found = $6 } END { exit !(found >= least) }' "$2"
}

[ "$(id -u)" -ne 0 ] && grep -q '^CapEff:[[:space:]]*0*$' /proc/self/status
check "this user has no privilege" [ $? -eq 0 ]
"$quietcore" netem tun --name "$name" -- true 2>"$folder/err"
check "without --unprivileged it is refused" [ $? -eq 2 ]
check "and the way without privileges is told" grep -q -- '--unprivileged' "$folder/err"

# 1. With COMMAND.
tun -- sh -c 'exit 7' 2>"$folder/err"
check "COMMAND's exit code is ours" [ $? -eq 7 ]
tun -- sh -c 'id -u; ip -o link show eth1; ls /run' >"$folder/out" 2>"$folder/err"
check "COMMAND is root in there" grep -qx 0 "$folder/out"
check "has the interface" grep -q eth1 "$folder/out"
check "and nothing of the host's /run" [ "$(tail -n +3 "$folder/out" | tr '\n' ' ')" = "netns quietcore " ]
# shellcheck disable=SC2016
tun -- sh -c '"$1" tc qdisc add dev eth1 root netem delay 30ms && ping -q -c 5 -i 0.2 -W 9 10.77.0.2' \
    sh "$quietcore" >"$folder/out" 2>"$folder/err"
check "COMMAND shapes its wire and pings through it" [ $? -eq 0 ]
check "all pings are answered" grep -q ' 5 received' "$folder/out"
check "none sooner than the delay" least 30 "$folder/out"
if command -v iperf3 >/dev/null; then
    # shellcheck disable=SC2016
    stream='ip netns exec "$1" iperf3 -s -1 -D --logfile /dev/null; sleep 1; iperf3 -c 10.77.0.2 -n 20M -J'
    tun -- sh -c "$stream" sh "$name-b" >"$folder/iperf.json" 2>"$folder/err"
    check "a TCP stream passes" grep -q '"sum_received"' "$folder/iperf.json"
else
    echo "left out: iperf3 (not installed)"
fi
check "nothing is left after COMMAND" nothing_left

# 2. Until a signal.
for signal in INT TERM; do
    "$quietcore" netem tun --unprivileged --name "$name" >"$folder/out" 2>"$folder/err" &
    runner=$!
    for _ in $(seq 200); do
        grep -q Ctrl-C "$folder/out" && break
        kill -0 "$runner" 2>/dev/null || break
        sleep 0.1
    done
    check "it starts ($signal)" grep -q Ctrl-C "$folder/out"
    way_in=$(sed -n 's/^get in first: *//p' "$folder/out")
    # shellcheck disable=SC2086
    $way_in ip netns exec "$name-a" ping -q -c 2 -W 9 10.77.0.2 >"$folder/ping" 2>&1
    check "other programs get in as it says ($signal)" grep -q ' 2 received' "$folder/ping"
    kill "-$signal" "$runner"
    wait "$runner" 2>/dev/null
    check "exit code 130 after SIG$signal" [ $? -eq 130 ]
    runner=
    check "the figures are told at the end ($signal)" grep -q 'out at home' "$folder/out"
    check "nothing is left after SIG$signal" nothing_left
done

# 3. The example of docs/guide/packets.md. Its own names are of namespaces that only it sees.
QUIETCORE=$quietcore "$quietcore" netem tun --unprivileged -- python3 examples/ci/http_under_loss.py \
    >"$folder/out" 2>"$folder/err"
check "the example's HTTP client stands a bad network" [ $? -eq 0 ]
check "which has lost packets" grep -qE '^100 requests, [1-9][0-9]* packets lost' "$folder/out"

# 4. Refused. With a namespace in which no more can be made.
# shellcheck disable=SC2016
unshare -Ur sh -c 'echo 0 >/proc/sys/user/max_user_namespaces && exec "$1" netem tun --unprivileged -- true' \
    sh "$quietcore" 2>"$folder/err"
check "where user namespaces are forbidden it is refused" [ $? -eq 2 ]
check "and the setting is named" grep -q 'sysctl user.max_user_namespaces' "$folder/err"

verdict

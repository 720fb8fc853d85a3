#!/usr/bin/env bash
# Packets of real programs through `quietcore netem tun`, as root: what is typed is what they meet, and
# nothing is left behind.   bash tests/packets_root.sh [QUIETCORE]
# Needs root, /dev/net/tun, ip and ping. Uses iperf3, socat and python3 where they are installed and says
# which parts were left out.
set -uo pipefail
cd "$(dirname "$0")/.."

quietcore=${1:-}
if [ -z "$quietcore" ]; then
    cargo build --release --quiet --package quietcore-cli || exit 2
    quietcore=${CARGO_TARGET_DIR:-target}/release/quietcore
fi
quietcore=$(realpath "$quietcore")
for need in ip ping; do
    command -v "$need" >/dev/null || { echo "packets_root: needs $need" >&2; exit 2; }
done
if [ "$(id -u)" -ne 0 ] || [ ! -e /dev/net/tun ]; then
    echo "packets_root: needs root and /dev/net/tun (modprobe tun)" >&2
    exit 2
fi

name=qctest$$
folder=$(mktemp -d)
runner=
. tests/checks.sh
trap 'rm -rf "$folder"; [ -z "$runner" ] || kill "$runner" 2>/dev/null' EXIT

has_other() { ip -n "$1" link show other0 >"$folder/link"; } # NAMESPACE: a stranger's, with an interface
left_out() { echo "left out: $1 (not installed)"; }
tc() { "$quietcore" tc -n "$name" "$@"; } # so that scripts can be pasted as they are
in_a() { ip netns exec "$name-a" "$@"; }

state() { # namespaces, records, interfaces and processes of ours
    ip netns | grep "$name"
    find /run/quietcore -name "*$name*" 2>/dev/null
    ip -o link | grep -E ' (eth1|eth2)@?.*tun'
    true
}
nothing_left() { [ -z "$(state)" ]; }

start() { # OPTIONS: until it says how it is used, 20 s at most
    "$quietcore" netem tun --name "$name" "$@" >"$folder/out" 2>"$folder/err" &
    runner=$!
    for _ in $(seq 200); do
        grep -q 'Ctrl-C' "$folder/out" && return 0
        kill -0 "$runner" 2>/dev/null || break
        sleep 0.1
    done
    cat "$folder/err"
    return 1
}

finish() { # SIGNAL: the exit code is left in $code
    kill "-$1" "$runner"
    wait "$runner" 2>/dev/null
    code=$?
    runner=
}

# Pings, of which all that were sent have to be told: $folder/ping has how many replies came, and the smallest
# round trip in microseconds. No upper bound: how long this machine takes besides is its own business; that a
# delay is the one that was typed is seen in `qdisc show`.
ping_all() { # COUNT DESTINATION
    in_a ping -q -c "$1" -i 0.05 -W 5 "$2" >"$folder/said" 2>&1
    sed -n 's|^\([0-9]*\) packets transmitted, \([0-9]*\) received.*|sent \1 received \2|p
        s|^rtt [^=]*= \([0-9.]*\)/.*|least \1|p' "$folder/said" >"$folder/ping"
    grep -q "^sent $1 " "$folder/ping" || { cat "$folder/said"; return 1; }
}
answered() { # COUNT DESTINATION [MICROSECONDS]: each has a reply, none sooner than that
    ping_all "$1" "$2" || return 1
    awk -v count="$1" -v least="${3:-0}" '
        $1 == "sent" { replies = $4 }
        $1 == "least" { found = $2 * 1000 }
        END {
            if (replies == count && found >= least) exit 0
            printf "      %d replies of %d, the first after %d us", replies, count, found
            printf " (at least %d us expected)\n", least
            exit 1
        }' "$folder/ping"
}
unanswered() { # COUNT DESTINATION: all were sent, and none has a reply
    ping_all "$1" "$2" && grep -q 'received 0$' "$folder/ping"
}
shows() { grep -q -- "$2" <(tc qdisc show dev "$1"); } # DEVICE WORDS

# 1. Up and down.
for signal in INT TERM HUP; do
    check "it starts ($signal)" start
    finish "$signal"
    check "exit code 130 after SIG$signal" [ "$code" -eq 130 ]
    check "nothing is left after SIG$signal" nothing_left
    check "the figures are told at the end ($signal)" grep -q 'out at home' "$folder/out"
done
"$quietcore" netem tun --name "$name" -- sh -c 'exit 7' 2>/dev/null
check "COMMAND's exit code is ours" [ $? -eq 7 ]
# shellcheck disable=SC2016
"$quietcore" netem tun --name "$name" -- sh -c 'kill -9 $$' 2>/dev/null
check "128 and the signal's number if one ended COMMAND" [ $? -eq 137 ]
"$quietcore" netem tun --name "$name" -- /nowhere/at/all 2>"$folder/err"
check "a COMMAND that is none is an error" [ $? -eq 2 ]
check "nothing is left after COMMAND" nothing_left
echo 'tc qdisc add dev eth1 root nettem' >"$folder/script"
"$quietcore" netem tun --name "$name" --script "$folder/script" 2>"$folder/err"
check "a script that is none is an error, before anything is made" [ $? -eq 2 ]
check "and its line is named" grep -q 'line 1' "$folder/err"
echo 'tc qdisc change dev eth1 parent 77: netem delay 1ms' >"$folder/script"
"$quietcore" netem tun --name "$name" --script "$folder/script" 2>"$folder/err"
check "a script that fails is an error" [ $? -eq 2 ]
check "nothing is left after it" nothing_left

# 2. Names.
start
"$quietcore" netem tun --name "$name" -- true 2>"$folder/second"
check "a name that is taken is refused" [ $? -eq 2 ]
check "and the process is named" grep -q "process $runner" "$folder/second"
check "the first one still works" answered 1 10.77.0.2
finish KILL
check "kill -9 leaves namespaces" refuses nothing_left
check "tc finds nobody then" refuses tc qdisc show dev eth1 2>"$folder/err"
check "and names the remedy" grep -q 'quietcore netem tun' "$folder/err"
check "the next start works" start
check "and says what it removed" grep -q "removed the network namespace $name-a" "$folder/err"
finish INT
check "nothing is left after it" nothing_left
ip netns add "$name-a"
"$quietcore" netem tun --name "$name" -- true 2>"$folder/err"
check "a namespace that is not ours is left alone" [ $? -eq 2 ]
check "and it is still there" ip netns exec "$name-a" true
ip netns del "$name-a"
start
finish KILL
ip netns del "$name-a"
ip netns add "$name-a"
ip -n "$name-a" link add other0 type bridge
"$quietcore" netem tun --name "$name" -- true 2>"$folder/err"
check "one that has the name of a killed run's is left alone" [ $? -eq 2 ]
check "and what is in it" has_other "$name-a"
check "and it is said whose it is not" grep -q "$name-a is there already and is not ours" "$folder/err"
check "what was the killed run's is gone" refuses ip netns exec "$name-b" true 2>/dev/null
ip netns del "$name-a"
"$quietcore" netem tun --name "$name" -- \
    sh -c "ip netns del $name-b; ip netns add $name-b; ip -n $name-b link add other0 type bridge" \
    2>"$folder/err"
check "one that was put in place of ours is left at the end" has_other "$name-b"
check "and that is said" grep -q "$name-b is not the one that was made here" "$folder/err"
ip netns del "$name-b"
for moment in 0.00 0.01 0.02 0.03 0.04 0.06 0.08 0.10; do
    "$quietcore" netem tun --name "$name" >/dev/null 2>&1 &
    runner=$!
    sleep "$moment"
    finish KILL
    # What it had begun ends by itself.
    sleep 0.2
    "$quietcore" netem tun --name "$name" -- true 2>"$folder/err" || cat "$folder/err"
    nothing_left || break
done
check "a start that is killed at any moment leaves nothing that the next one does not remove" nothing_left

# 3. Privileges.
start
privileges() { # FIELD: what all threads of the instance have
    cat "/proc/$runner/task"/*/status | sed -n "s/^$1:[[:space:]]*//p" | sort -u
}
check "all threads have CAP_NET_ADMIN and CAP_SYS_ADMIN" [ "$(privileges CapEff)" = 0000000000201000 ]
check "and have no others to take" [ "$(privileges CapPrm)" = 0000000000201000 ]
check "nor may ever have" [ "$(privileges CapBnd)" = 0000000000201000 ]
check "nor can their programs" [ "$(privileges NoNewPrivs)" = 1 ]
finish INT
check "which is enough to remove everything" nothing_left
fields='^(CapEff|CapBnd|NoNewPrivs)'
own=$(grep -E "$fields" /proc/self/status)
"$quietcore" netem tun --name "$name" -- grep -E "$fields" /proc/self/status >"$folder/has" 2>/dev/null
check "COMMAND has the caller's privileges" [ "$(cat "$folder/has")" = "$own" ]
"$quietcore" netem tun --name "$name" --user 65534:65533 -- \
    sh -c 'id -u; id -g; id -G; grep CapEff /proc/self/status' >"$folder/has" 2>/dev/null
none="65534 65533 65533 CapEff: 0000000000000000 "
check "as another user it has none" [ "$(tr '\n\t' '  ' <"$folder/has")" = "$none" ]
"$quietcore" netem tun --name "$name" --user 65534:65534 -- sleep 600 2>/dev/null &
runner=$!
for _ in $(seq 100); do
    [ -n "$(ip netns pids "$name-a" 2>/dev/null)" ] && break
    sleep 0.1
done
finish TERM
check "COMMAND of another user ends with us" [ "$code" -eq 143 ]
check "nothing is left after it, either" nothing_left
mkdir "$folder/planted"
printf '#!/bin/sh\ntouch %s/ran\nexec /sbin/ip "$@"\n' "$folder" >"$folder/planted/ip"
chmod +x "$folder/planted/ip"
PATH="$folder/planted:$PATH" "$quietcore" netem tun --name "$name" -- true 2>/dev/null
check "ip is not looked for in the caller's PATH" [ $? -eq 0 ]
check "so a planted one has not run" [ ! -e "$folder/ran" ]
nobody() { setpriv --reuid=65534 --regid=65534 --clear-groups "$@"; }
if command -v setpriv >/dev/null && nobody test -x "$quietcore"; then
    nobody env -u XDG_RUNTIME_DIR "$quietcore" netem tun --name "$name" -- true 2>"$folder/err"
    check "without privileges it is refused" [ $? -eq 2 ]
    check "and the missing ones are named" \
        grep -q 'CAP_DAC_OVERRIDE, CAP_NET_ADMIN, CAP_SYS_ADMIN' "$folder/err"
    some=+net_admin,+sys_admin,+dac_override
    nobody --inh-caps=$some --ambient-caps=$some env -u XDG_RUNTIME_DIR \
        "$quietcore" netem tun --name "$name" -- ip link show eth1 >"$folder/out" 2>"$folder/err"
    check "with those three it needs no root" [ $? -eq 0 ]
    check "nothing is left after that" nothing_left
else
    left_out "setpriv, or the program is where nobody can run it"
fi

# 4. What is typed is what packets meet.
start
check "every ping is answered" answered 3 10.77.0.2
check "those of IPv6 too" answered 3 fd77:7163::2
tc qdisc add dev eth1 root netem delay 10ms
check "delay 10ms: all arrive, none sooner" answered 20 10.77.0.2 10000
check "and that is what is shown" shows eth1 'delay 10ms$'
tc qdisc add dev eth2 root netem delay 20ms
check "and 20ms on the way back" answered 20 10.77.0.2 30000
check "and that is shown, too" shows eth2 'delay 20ms$'
tc qdisc del dev eth2 root
tc qdisc replace dev eth1 root netem loss 100%
check "loss 100%: nothing arrives" unanswered 2 10.77.0.2
tc qdisc del dev eth1 root
check "without it every ping is answered again" answered 3 10.77.0.2
tc qdisc add dev eth1 ingress
tc filter add dev eth1 ingress protocol ip matchall action drop
check "what comes in at eth1 is dropped there" unanswered 3 10.77.0.2
# The filter's own count: the discipline counts what comes in by IPv6, too.
counted() { grep -q 'Sent 252 bytes 3 pkt (dropped 3, ' <(tc -s filter show dev eth1 ingress); }
check "and counted, without the header of the link" counted
tc qdisc del dev eth1 ingress
check "without that, too, every ping is answered again" answered 3 10.77.0.2

# 5. Seed 000's script, pasted.
EST="est 1sec 4sec"
for ETH in eth1
do
 tc qd del dev $ETH root 2>/dev/null
 tc qd add dev $ETH root handle 1: mq
 tc qd add dev $ETH parent 1:1 $EST netem limit 70000 delay 6ms
 tc qd add dev $ETH parent 1:2 $EST netem limit 70000 delay 8ms
 tc qd add dev $ETH parent 1:3 $EST netem limit 70000 delay 10ms
 tc qd add dev $ETH parent 1:4 $EST netem limit 70000 delay 12ms
 tc qd add dev $ETH parent 1:5 $EST netem limit 70000 delay 14ms
 tc qd add dev $ETH parent 1:6 $EST netem limit 70000 delay 16ms
 tc qd add dev $ETH parent 1:7 $EST netem limit 80000 delay 18ms
 tc qd add dev $ETH parent 1:8 $EST netem limit 90000 delay 20ms
done
tc -s qd show dev eth1 >"$folder/shown"
eight=$(grep -c 'netem.*limit [789]0000' "$folder/shown")
check "seed 000's script: eight netem below mq" [ "$eight" -eq 8 ]
check "and mq above them" grep -q 'qdisc mq 1: root' "$folder/shown"
check "no delay is below the least of the eight, and nothing is lost" answered 10 10.77.0.2 6000
if command -v python3 >/dev/null; then
    tc -j -s qd show dev eth1 >"$folder/shown.json"
    check "as JSON too" python3 -c '
import json, sys
qdiscs = json.load(open(sys.argv[1]))
sys.exit(sum(qdisc["kind"] == "netem" for qdisc in qdiscs) != 8)
' "$folder/shown.json"
else
    left_out "python3"
fi

# 6. Errors.
check "a word that is none is refused" refuses tc qd add dev eth1 root nettem 2>"$folder/err"
check "and marked" grep -q '\^\^\^\^\^\^' "$folder/err"
tc qd add dev eth1 parent 9:9 netem 2>"$folder/err"
check "exit code 2 for what is not there" [ $? -eq 2 ]
check "a device that nobody has is refused" refuses tc qd show dev eth7 2>"$folder/err"
check "and those that are there are named" grep -q 'eth1' "$folder/err"
printf 'qd del dev eth1 root\nqd add dev eth1 root fq\nqd add dev eth1 root nettem\n' >"$folder/batch"
check "a batch with a wrong line is refused" refuses tc -batch "$folder/batch" 2>"$folder/err"
check "as a whole" [ "$(tc qd show dev eth1 | grep -c netem)" -eq 8 ]
check "a batch is carried out" tc -batch - < <(head -n 2 "$folder/batch")
check "and is what is there then" grep -q 'qdisc fq' <(tc qd show dev eth1)
check "the socket is its user's alone" [ "$(stat -c %a "/run/quietcore/$name.sock")" = 600 ]
kernels=$(in_a env PATH="$PATH" sh -c 'command -v tc >/dev/null && tc qdisc show dev eth1')
check "the kernel's own disciplines are left alone" refuses grep -qE 'netem| fq ' <<<"$kernels"

# 7. Load.
stream() { # ADDRESS: some MB of TCP from a to b arrive as they were sent
    rm -f "$folder/heard"
    ip netns exec "$name-b" python3 -c '
import hashlib, socket, sys
family = socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET
server = socket.create_server((sys.argv[1], 5201), family=family)
print("ready", flush=True)
stream, heard = server.accept()[0], hashlib.sha256()
while data := stream.recv(1 << 20):
    heard.update(data)
print(heard.hexdigest())
' "$1" >"$folder/heard" &
    local server=$!
    for _ in $(seq 100); do
        grep -q ready "$folder/heard" 2>/dev/null && break
        sleep 0.1
    done
    in_a python3 -c '
import hashlib, random, socket, sys
stream = socket.create_connection((sys.argv[1], 5201), 20)
sent, random = hashlib.sha256(), random.Random(1)
for _ in range(100):
    data = random.randbytes(random.randrange(1, 200000))
    stream.sendall(data)
    sent.update(data)
print(sent.hexdigest())
' "$1" >"$folder/sent" || kill "$server"
    wait "$server"
    [ -s "$folder/sent" ] && [ "$(tail -n 1 "$folder/heard")" = "$(cat "$folder/sent")" ]
}
tc qd del dev eth1 root
if command -v python3 >/dev/null; then
    check "a stream of TCP arrives as it was sent" stream 10.77.0.2
    check "one over IPv6 too" stream fd77:7163::2
    tc qdisc add dev eth1 root netem delay 1ms loss 1% duplicate 1% reorder 5% 50%
    check "also if packets are lost, doubled and reordered" stream 10.77.0.2
    tc qdisc del dev eth1 root
    # More than is read meanwhile: what a discipline never saw is told, and the sum is what was sent.
    counted() { # of one discipline: sent, dropped by it, and lost ahead of it
        tc -s qdisc show dev eth1 | sed -nE \
            's/.* ([0-9]+) pkt \(dropped ([0-9]+),.*/\1 \2/p; s/.*overload ([0-9]+) pkt.*/\1/p' | tr '\n' ' '
    }
    arrived() { ip netns exec "$name-b" cat /sys/class/net/eth2/statistics/rx_packets; }
    flood() { # DISCIPLINE: whether all of it is counted; the kernel's own, of neighbours, is some more
        local before lost_before sum=0 last=1
        tc qdisc replace dev eth1 root "$@"
        read -r _ _ lost_before < <(counted) # that is the device's, since its begin
        before=$(arrived)
        in_a python3 -c '
import os, signal, socket, sys
flood = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
if sys.argv[1:]:
    os.kill(int(sys.argv[1]), signal.SIGSTOP)
for packet in range(300000):
    if packet == 20000 and sys.argv[1:]:
        os.kill(int(sys.argv[1]), signal.SIGCONT)
    flood.sendto(bytes(100), ("10.77.0.2", 9))
' ${held:+"$held"}
        # Until it is all there, and the queue is empty.
        for _ in $(seq 100); do
            read -r went dropped lost < <(counted)
            lost=$((${lost:-0} - ${lost_before:-0}))
            sum=$((went + dropped + lost))
            [ "$sum" -lt 300000 ] || [ "$sum" -ne "$last" ] || break
            last=$sum
            sleep 0.1
        done
        arrived=$(($(arrived) - before))
        echo "      $1: $arrived arrived, $dropped were dropped, $lost lost ahead of the queue"
        [ "$sum" -ge 300000 ] && [ "$sum" -le 300100 ] && [ "$arrived" -eq "$went" ]
    }
    # Held for the first 20,000 packets: a fast reader would keep up with all of them.
    overload() { held=$runner flood pfifo limit 100 && [ "$lost" -gt 0 ]; }
    check "of a flood every packet is counted" overload
    check "so it is where most are dropped" flood tbf rate 20mbit burst 10k limit 100k
    check "and where they wait" flood netem delay 20ms limit 1000
else
    left_out "python3"
fi
if command -v iperf3 >/dev/null; then
    ip netns exec "$name-b" iperf3 -s -1 >/dev/null 2>&1 &
    server=$!
    sleep 1
    in_a iperf3 -c 10.77.0.2 -t 4 -J >"$folder/iperf.json" 2>&1
    wait "$server"
    check "a TCP stream passes" grep -q '"sum_received"' "$folder/iperf.json"
    awk '/"sum_received"/ { found = 1 } found && /bits_per_second/ { gsub(/[^0-9.e+]/, "", $2)
        printf "      %.2f Gbit/s\n", $2 / 1e9; exit }' "$folder/iperf.json"
else
    left_out "iperf3"
fi
finish INT
check "nothing is left at the end" nothing_left
if command -v iperf3 >/dev/null && command -v python3 >/dev/null; then
    check "300 random lines of tc under TCP streams" python3 tests/tc_lines_under_load.py "$quietcore" 300
else
    left_out "iperf3 or python3"
fi

verdict

#!/bin/busybox sh
# First process of record.py's machine: carries out the lines of /lines with tc, each with fresh devices,
# and writes what is said to the second serial port.
/bin/busybox mkdir -p /usr/bin /usr/sbin
/bin/busybox --install -s /bin
export PATH=/usr/local/bin:/bin:/usr/bin:/sbin:/usr/sbin
mount -t proc none /proc
mount -t sysfs none /sys
mount -t devtmpfs none /dev
cd /lib/modules || exit 1
for module in $(find . -name 'sch_*.ko' -o -name 'cls_*.ko' -o -name 'act_*.ko' -o -name 'em_*.ko'); do
    name=${module##*/}
    [ "$name" = sch_teql.ko ] || modprobe "${name%.ko}" 2>/dev/null
done
modprobe ifb numifbs=0
modprobe dummy numdummies=0
modprobe ip_set
# As in quietcore: queues begin with a pfifo.
echo pfifo > /proc/sys/net/core/default_qdisc
stty -F /dev/ttyS1 raw
exec 3> /dev/ttyS1
tc() { timeout 10 /bin/iproute2-tc "$@"; }
ip() { /bin/iproute2-ip "$@"; }

# The next automatic handle is the one behind that of a discipline that is made now.
printf 'qdisc del dev probe root\nqdisc add dev probe root pfifo\nqdisc show dev probe\n' > /tmp/probe
for object in qdisc class filter; do
    echo "$object show dev eth0"
    echo "qdisc show dev mark"
done > /tmp/shows

devices() { # NAME...
    echo "link del eth0"
    echo "link del ifb0"
    for name; do
        echo "link add $name txqueuelen 1000 numtxqueues 4 type ifb"
        echo "link set $name up"
    done
}

one() { # SOURCE SETUP LINE
    case "$2$3" in *ifb0*) devices eth0 ifb0 ;; *) devices eth0 ;; esac | ip -force -batch - 2> /dev/null
    at=$(tc -force -batch /tmp/probe 2> /dev/null)
    at=${at#qdisc pfifo }
    at=${at%%:*}
    echo "@@@ $1 | ${2:+$2 }=> $3 @ $at"
    first=$(printf %x: $((0x$at + 1)))
    if [ -n "$2" ]; then
        echo "$2" | tr ';' '\n' > /tmp/setup
        tc -batch /tmp/setup > /tmp/err 2>&1 || { echo "@@ setup $?"; cat /tmp/err; }
    fi
    case "$3" in
    *8001:*) words="${3%%8001:*}$first${3#*8001:}" ;;
    *) words="$3" ;;
    esac
    eval "tc $words" > /tmp/out 2> /tmp/err
    code=$?
    echo "@@ exit $code"
    echo "@@ stdout"; cat /tmp/out
    echo "@@ stderr"; cat /tmp/err
    # tc does not end the last line of each message.
    [ -z "$(tail -c 1 /tmp/err)" ] || echo
    if [ $code = 0 ] && [ ! -s /tmp/out ]; then
        while read -r form <&5; do
            echo "@@ show${form:+ $form}"
            tc $form -force -batch /tmp/shows 2>&1
        done 5< /forms
    fi
}

ip link add mark type dummy
tc qdisc add dev mark handle feed: root pfifo
ip link add probe type dummy
grep -v '^#' /lines > /tmp/lines
while read -r all <&4; do
    source=${all%% |*} rest=${all#*| }
    setup=${rest%%=> *} line=${rest#*=> }
    echo "$source: $line"
    one "$source" "${setup% }" "$line" >&3
done 4< /tmp/lines
echo "@@@@ end" >&3
sleep 1
poweroff -f

#!/bin/busybox sh
# First process of a guest of `cargo xtask guest`: loads the machine, runs quietcore in it and says what
# came of it, a line per check, to the first virtio port; recordings go to the second one as a tar. From the
# kernel's command line: quietcore.pulls=1 where isolated CPUs of this kernel pull timers.
busybox=/bin/busybox
$busybox mkdir -p /sbin /usr/bin /tmp /dev /proc /sys /kept
$busybox --install -s /bin
export PATH=/bin
mount -t proc none /proc
mount -t sysfs none /sys
mount -t devtmpfs none /dev
mount -t tracefs none /sys/kernel/tracing
# Of kernels that have not built them in. Which one needs which differs, so each is tried again.
for _ in 1 2 3; do
    for module in /modules/*.ko; do
        [ ! -e "$module" ] || insmod "$module" 2>/dev/null
    done
done
exec 3>"$(echo /dev/vport*p1)"
pulls=$(sed -n 's/.*quietcore\.pulls=\([01]\).*/\1/p' /proc/cmdline)
isolated=$(cat /sys/devices/system/cpu/isolated)

say() { echo "$*" >&3; echo "guest: $*"; }
check() { # NAME CODE COMMAND...: the command ends with the code
    local name=$1 expected=$2 code
    shift 2
    "$@" >/tmp/out 2>&1
    code=$?
    if [ "$code" -eq "$expected" ]; then
        say "ok $name"
    else
        say "FAIL $name: exit code $code"
        sed 's/^/  /' /tmp/out >&3
    fi
}
# Three programs on each housekeeping CPU whose threads sleep on timers of the wheel, and a busy isolated CPU.
sleepers() {
    for cpu in 0 8; do
        for program in 1 2 3; do
            taskset -c $cpu xtask guest-load sleep 4 400 "$cpu$program" &
        done
    done
}
burn() {
    taskset -c 1 xtask guest-load burn &
    burner=$!
}
ran_timers() { [ "$(grep -c timer_expire_entry "$1")" -gt 100 ]; }
# Records without a reader beside it, which in an emulator is a load of its own: FILE.
kernel_records() {
    local tracing=/sys/kernel/tracing
    echo 0 >$tracing/tracing_on
    echo mono >$tracing/trace_clock
    echo 8192 >$tracing/buffer_size_kb
    echo >$tracing/trace
    for event in timer:timer_start timer:timer_cancel timer:timer_expire_entry 'timer_migration:*'; do
        echo "$event" >>$tracing/set_event
    done
    echo 1 >$tracing/tracing_on
    sleep 5
    echo 0 >$tracing/tracing_on
    {
        echo "# isolated: $isolated; nohz_full: -"
        cat $tracing/trace
    } >"$1"
    echo >$tracing/set_event
}

# What the kernel's osnoise tracer measures on one isolated CPU, with the events that it makes of it: FILE.
kernel_measures() {
    local tracing=/sys/kernel/tracing
    echo 0 >$tracing/tracing_on
    echo mono >$tracing/trace_clock
    echo >$tracing/trace
    echo 4 >$tracing/tracing_cpumask
    echo 2 >$tracing/osnoise/cpus
    for event in 'osnoise:*' 'irq_vectors:*' 'irq:*' nmi:nmi_handler sched:sched_switch; do
        echo "$event" >>$tracing/set_event
    done
    # The emulator's moments are too long for the tracer: each look at its clock would be an event.
    echo '!osnoise:sample_threshold' >>$tracing/set_event
    echo osnoise >$tracing/current_tracer
    echo 1 >$tracing/tracing_on
    sleep 2
    echo 0 >$tracing/tracing_on
    {
        grep -E '^# (kernel|cpus|isolated|sysctl|wall clock)' /kept/plain.txt
        # Without the tracer's own sums, which are no events.
        grep -vE ': +[0-9]+ +[0-9]+ +[0-9.]+ ' $tracing/trace
    } >"$1"
    echo nop >$tracing/current_tracer
    echo >$tracing/set_event
    echo ffffffff >$tracing/tracing_cpumask
}

say "Linux $(uname -r), isolated $isolated"
sleepers
sleep 1
burn
sleep 1
quietcore record /kept/plain.txt --for 5s --json >/kept/plain.record.json 2>&1
check "timers ran while it recorded" 0 ran_timers /kept/plain.txt
quietcore explain /kept/plain.txt --json >/kept/plain.json
quietcore --live 4s --json >/kept/checkup.json 2>/tmp/out
if [ "$pulls" = 1 ]; then
    check "a recording shows others' timers on isolated CPUs" 1 \
        quietcore explain /kept/plain.txt --fail-on 'foreign>5'
    check "so does a live one" 1 quietcore explain --live 4s --fail-on 'foreign>5'
    check "so does the check-up" 0 grep -q foreign-timers-pulled /kept/checkup.json
    # An awake migrator is never replaced, so the load begins anew.
    kill "$burner"
    sleep 1
    quietcore keep-awake --json >/kept/awake.json 2>/tmp/out &
    keeper=$!
    sleep 1
    burn
    sleep 1
    kernel_records /kept/awake.txt
    kill -INT $keeper
    wait $keeper
    check "timers ran beside keep-awake" 0 ran_timers /kept/awake.txt
    check "none of them on an isolated CPU of others" 0 \
        quietcore explain /kept/awake.txt --fail-on 'foreign>0'
else
    check "no timer of others runs on isolated CPUs" 0 quietcore explain /kept/plain.txt --fail-on 'pulled>0'
    check "keep-awake is of no use, and says so" 2 quietcore keep-awake --for 1s
fi
# Counted in the kernel, and beside it the kernel's own counts behind the second line and the twelfth.
quietcore watch --interval 1s --json >/kept/watch.json 2>/kept/watch.said &
watcher=$!
seconds() { # COUNT: until so many have ended; an emulator takes long to check the program first
    for _ in $(seq 6000); do
        [ "$(wc -l </kept/watch.json)" -lt "$1" ] || return 0
        sleep 0.05
    done
}
for second in 2 12; do
    seconds $second
    cat /proc/interrupts /proc/softirqs >/kept/kernel.$second
done
kill -INT $watcher
wait $watcher
check "watch counts until its end" 0 [ $? -eq 0 ]
grep 'not counted' /kept/watch.said | sed 's/^/  /' >&3
check "it has named functions" 0 grep -q '"source":"hrtimer","name":"[a-z]' /kept/watch.json
if grep -qw osnoise /sys/kernel/tracing/available_tracers; then
    kernel_measures /kept/osnoise.txt
    quietcore explain /kept/osnoise.txt --json >/kept/osnoise.json
    check "the osnoise tracer's events are read" 0 grep -q '"source": "interrupt"' /kept/osnoise.json
fi
tar -c -C /kept . >"$(echo /dev/vport*p2)"
say "END"
sync
poweroff -f

"""An emulated machine with a real kernel that sends and notes packets (load.c) through lines of `tc`.

A kernel is a package of Debian, unpacked: boot/vmlinuz-*, lib/modules/*. Time in the machine counts
instructions, a nanosecond each, so how busy the host is does not show.
"""

import importlib.util
import shutil
import subprocess
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
RECORD = HERE.parent.parent / "crates/net/tests/tc_recorded/record.py"
MODULES = ["drivers/net/veth"]
MODULE_FOLDERS = ["net/sched", "lib"]
INIT = """\
#!/bin/busybox sh
/bin/busybox mkdir -p /usr/bin /usr/sbin
/bin/busybox --install -s /bin
export PATH=/bin:/usr/bin:/sbin:/usr/sbin
mount -t proc none /proc
mount -t sysfs none /sys
mount -t devtmpfs none /dev
mount -t tmpfs none /run
mount -t tmpfs none /tmp
mkdir -p /run/netns
ip() { /bin/iproute2-ip "$@"; }
tc() { /bin/iproute2-tc "$@"; }
modprobe veth
stty -F /dev/ttyS1 raw
exec 3> /dev/ttyS1
echo "@@@ kernel" >&3
uname -r >&3
ip netns add b
ip link set lo up
for row in /rows/*; do
    echo "${row##*/}"
    echo "@@@ ${row##*/}" >&3
    ip link add v0 txqueuelen 1000 address 02:00:00:00:00:01 type veth peer name v1 address 02:00:00:00:00:02
    ip link set v1 netns b
    for host in 0 1 2 3; do ip addr add 10.9.$host.1/16 dev v0; done
    ip link set v0 up
    ip netns exec b /bin/iproute2-ip addr add 10.9.0.2/16 dev v1
    ip netns exec b /bin/iproute2-ip link set v1 up
    ip neigh add 10.9.0.2 lladdr 02:00:00:00:00:02 dev v0 nud permanent
    for host in 0 1 2 3; do
        ip netns exec b /bin/iproute2-ip neigh add 10.9.$host.1 lladdr 02:00:00:00:00:01 dev v1 nud permanent
    done
    while read -r line; do
        /bin/iproute2-$line 2>/tmp/err || { echo "@@ failed $line"; cat /tmp/err; } >&3
    done < "$row/lines"
    /bin/load /run/netns/b v1 < "$row/plan" > /tmp/out
    cat /tmp/out >&3
    echo "@@ shown" >&3
    { tc -s qdisc show dev v0; tc -s class show dev v0; } >&3
    ip link del v0
done
echo "@@@ end" >&3
sleep 1
poweroff -f
"""


def recorder():
    """The recorder of tc's output, which knows how to pack and boot such a machine."""
    spec = importlib.util.spec_from_file_location("tc_recorder", RECORD)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def run(kernel, rows):
    """Runs the rows in one machine; what each one's block says, by name, and the kernel's version."""
    tools = recorder()
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        root = folder / "root"
        tools.pack(kernel, root, MODULES, MODULE_FOLDERS)
        load = ["gcc", "-O2", "-static", "-o", root / "bin/load", HERE / "load.c"]
        subprocess.run(load, check=True)
        for row in rows:
            into = root / "rows" / row.name
            into.mkdir(parents=True)
            (into / "lines").write_text("".join(f"{line}\n" for line in row.lines))
            (into / "plan").write_text("".join(f"{sent}\n" for sent in row.plan()))
        (root / "init").write_text(INIT)
        (root / "init").chmod(0o755)
        (folder / "initrd").write_bytes(tools.archive(root))
        told = folder / "told"
        shutil.copy(next((kernel / "boot").glob("vmlinuz-*")), folder / "kernel")
        command = ["qemu-system-x86_64", "-accel", "tcg,thread=single", "-icount", "shift=0,sleep=off"]
        command += [*tools.MACHINE, *tools.OPTIONS, "-serial", f"file:{told}"]
        command += ["-kernel", folder / "kernel", "-initrd", folder / "initrd", "-append", tools.APPEND]
        subprocess.run(command, stdin=subprocess.DEVNULL, check=True, timeout=6000)
        blocks = [block.partition("\n") for block in told.read_text(errors="replace").split("@@@ ")[1:]]
    said = {name: body for name, _, body in blocks}
    if "end" not in said:
        raise SystemExit(f"the machine did not come to the end: it was at {list(said)[-1:]}")
    return said, said["kernel"].strip()

#!/usr/bin/env python3
"""Records what iproute2's `tc` says of every line of lines.txt, on a real kernel in an emulated machine.

    record.py KERNEL            lines.txt; KERNEL is a package of Debian, unpacked: boot, lib/modules
    record.py KERNEL filters    filters.txt, of which only what `filter show` says is kept
    record.py KERNEL actions    actions.txt, of which that and what `qdisc show` says is kept
    unshare -n record.py here u32    u32.txt likewise, on the running kernel, as root

Needs QEMU, a static busybox, `tc` and `ip` of the version that is to be recorded. Writes recorded.txt,
or NAME_recorded.txt for the others, beside itself; their form is told at the head. Every line begins
with a fresh `eth0` of four transmit queues that is up, and a fresh `ifb0` if the line names it; `lo` is
down. Automatic handles are counted by the kernel for all devices together; here they are written as if
each line were the first one since boot, so that the first is 8001: (init.sh says before each line where
the kernel's counter is).
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
MODULE_FOLDERS = ["net/sched", "net/netfilter", "net/ipv4/netfilter", "net/ipv6/netfilter", "net/core"]
MODULE_FOLDERS += ["lib", "crypto"]
MODULES = ["drivers/net/ifb", "drivers/net/dummy"]
QEMU = ["qemu-system-x86_64", "-accel", "tcg,thread=single", "-icount", "shift=2,sleep=off"]
MACHINE = ["-cpu", "max", "-smp", "1", "-m", "1024"]
OPTIONS = ["-nographic", "-no-reboot", "-nodefaults", "-serial", "stdio"]
APPEND = "console=ttyS0 quiet panic=-1 ipv6.disable=1 tsc=reliable"
FORMS = {
    "": ["", "-d", "-s", "-s -d", "-j", "-j -s -d"],
    "filters": ["", "-s", "-j -s -d"],
    # The kernel that u32.txt was recorded on counts nothing for a rule.
    "u32": ["", "-j"],
    "actions": ["", "-s", "-j -s -d"],
}
HEAD = """\
# What `tc` answered, line by line; made by record.py, read by tc_recorded.rs.
#   => SOURCE | SETUP;SETUP => LINE    exit CODE    stdout, stderr of the line
#   OBJECT FLAGS: what `tc FLAGS OBJECT show dev eth0` says then, of a line that did something;
#   `= FLAGS` behind one: the same as with those flags. `setup CODE`: a line of the setup failed.
# Each line of text begins with `|`.
"""


def libraries(program):
    listed = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
    return re.findall(r"/[^ )]+", listed)


def copy(path, root):
    target = root / str(path).lstrip("/")
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(path, target, follow_symlinks=True)


def pack(kernel, root, names, folders):
    """Busybox, tc, ip, and modules of the kernel: those of the names, and all of the folders."""
    for name in ["bin", "proc", "sys", "dev", "tmp", "var/run", "run/netns", "sbin"]:
        (root / name).mkdir(parents=True, exist_ok=True)
    shutil.copy("/bin/busybox", root / "bin/busybox")
    os.symlink("/bin/busybox", root / "sbin/modprobe")
    for program, name in [("/sbin/tc", "tc"), ("/sbin/ip", "ip")]:
        shutil.copy(program, root / "bin" / f"iproute2-{name}", follow_symlinks=True)
        for library in libraries(program):
            copy(library, root)
    for folder in ["/usr/lib/x86_64-linux-gnu/tc", "/etc/iproute2"]:
        if Path(folder).is_dir():
            shutil.copytree(folder, root / folder.lstrip("/"))
    modules = next((kernel / "lib/modules").iterdir())
    wanted = [modules / "kernel" / f"{name}.ko.xz" for name in names]
    for folder in folders:
        wanted += (modules / "kernel" / folder).rglob("*.ko.xz")
    into = root / "lib/modules" / modules.name
    for path in wanted:
        target = into / path.relative_to(modules).with_suffix("")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(subprocess.run(["xz", "-dc", path], capture_output=True, check=True).stdout)
    subprocess.run(["/bin/busybox", "depmod", "-b", root, modules.name], check=True)


def fill(kernel, root, which):
    """The machine of the lines, and its first process."""
    pack(kernel, root, MODULES, MODULE_FOLDERS)
    (root / "lines").write_text((HERE / f"{which or 'lines'}.txt").read_text())
    (root / "forms").write_text("".join(f"{form}\n" for form in FORMS[which]))
    shutil.copy(HERE / "init.sh", root / "init")
    (root / "init").chmod(0o755)


def archive(root):
    """The files below `root` as an archive of cpio's `newc` form."""
    parts = []

    def entry(name, mode, data):
        name = name.encode() + b"\0"
        fields = [len(parts) + 1, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(name), 0]
        head = b"070701" + b"".join(b"%08x" % field for field in fields) + name
        parts.append(head + b"\0" * (-len(head) % 4) + data + b"\0" * (-len(data) % 4))

    for path in sorted(root.rglob("*")):
        name = str(path.relative_to(root))
        if path.is_symlink():
            entry(name, 0o120777, os.readlink(path).encode())
        elif path.is_dir():
            entry(name, 0o040755, b"")
        else:
            entry(name, 0o100000 | (path.stat().st_mode & 0o777), path.read_bytes())
    entry("TRAILER!!!", 0, b"")
    return b"".join(parts)


def boot(kernel, which):
    """Runs the machine; what it wrote to its second serial port."""
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        fill(kernel, folder / "root", which)
        (folder / "initrd").write_bytes(archive(folder / "root"))
        image = next((kernel / "boot").glob("vmlinuz-*"))
        told = folder / "told"
        command = [*QEMU, *MACHINE, *OPTIONS, "-serial", f"file:{told}", "-kernel", image]
        command += ["-initrd", folder / "initrd"]
        subprocess.run([*command, "-append", APPEND], stdin=subprocess.DEVNULL, check=True, timeout=3000)
        return told.read_text(errors="replace")


def here(which):
    """Carries out the lines on the running kernel, in this network namespace; what they say as `boot`."""
    told = []

    def run(command, lines=None):
        return subprocess.run(command, shell=True, input=lines, capture_output=True, text=True)

    run("ip link add mark type ifb; ip link add probe type ifb")
    run("tc qdisc add dev mark handle feed: root pfifo")
    objects = ["qdisc", "class", "filter"]
    shows = "".join(f"{object} show dev eth0\nqdisc show dev mark\n" for object in objects)
    for line in (HERE / f"{which}.txt").read_text().splitlines():
        if line.startswith("#"):
            continue
        before, line = line.split("=> ", 1)
        source, setup = (part.strip() for part in before.split("|", 1))
        for name in ["eth0", "ifb0"]:
            run(f"ip link del {name}; ip link add {name} txqueuelen 1000 numtxqueues 4 type ifb")
            run(f"ip link set {name} up")
        at = run("tc qdisc del dev probe root; tc qdisc add dev probe root pfifo; tc qdisc show dev probe")
        told.append(f"@@@ {source} | {setup}{' ' * bool(setup)}=> {line} @ {at.stdout.split()[2][:-1]}\n")
        if setup:
            done = run("tc -batch -", setup.replace(";", "\n") + "\n")
            told.append(f"@@ setup {done.returncode}\n{done.stderr}" if done.returncode else "")
        done = run(f"tc {line}")
        told.append(f"@@ exit {done.returncode}\n@@ stdout\n{done.stdout}@@ stderr\n{done.stderr}")
        if done.returncode == 0 and not done.stdout:
            for form in FORMS[which]:
                shown = run(f"tc {form} -force -batch -", shows).stdout
                told.append(f"@@ show {form}".rstrip() + f"\n{shown}")
    return "".join(told) + "@@@@ end\n"


def renumbered(text, counter):
    """Automatic handles, as if the kernel had counted from 8001:."""

    def handle(found):
        number = int(found[0], 16)
        if number == 0xFFFF:  # ingress, which has no other
            return found[0]
        return f"{number - counter + 0x8000:x}" if number > counter else found[0]

    return re.sub(r"\b[89a-f][0-9a-f]{3}(?=:)", handle, text)


MARK = re.compile(
    r"^qdisc pfifo feed: .*\n(?: Sent .*\n backlog .*\n)?|^\[\{[^\n]*\"feed:\"[^\n]*\n", re.M
)
OTHERS = re.compile(r"^qdisc pfifo [0-9a-f]+: dev (?:mark|probe) .*\n(?: Sent .*\n backlog .*\n)?", re.M)


def parted(texts):
    """A `show` is of all three objects, with the discipline of the device `mark` behind each."""
    for text in texts:
        name, _, body = text.partition("\n")
        if not name.startswith("show"):
            yield name, body
            continue
        for object, part in zip(["qdisc", "class", "filter"], MARK.split(body)):
            yield f"{object}{name[4:]}", part


def written(told, kept):
    """The recording, of what the machine wrote (`@@ NAME` before each text); of a `show` the `kept`."""
    out = [HEAD]
    for block in re.split(r"^@@@ (?=[a-z])", told, flags=re.M)[1:]:
        counter, *texts = re.split(r"^@@ ", block, flags=re.M)
        title, counter = counter.rstrip("\n").rsplit(" @ ", 1)
        out.append(f"\n=> {title}\n")
        before = {}
        for name, body in parted(texts):
            body = renumbered(OTHERS.sub("", body), int(counter, 16))
            if body and not body.endswith("\n"):
                body += "\\\n"
            kind, _, flags = name.partition(" ")
            if kind in ("qdisc", "class", "filter") and kind not in kept:
                continue
            same = next((form for form, other in before.items() if form[0] == kind and other == body), None)
            if same and kind in ("qdisc", "class", "filter"):
                out.append(f"{name} = {same[1]}".rstrip() + "\n")
                continue
            before[(kind, flags)] = body
            if body or kind in ("exit", "setup"):
                out.append(name + "\n" + "".join(f"|{line}\n" for line in body.splitlines()))
            else:
                out.append(name + "\n")
    return "".join(out)


def main():
    where, which = (sys.argv[1:] + ["", ""])[:2]
    if not where or which not in FORMS or len(sys.argv) > 3:
        sys.exit(__doc__)
    told = here(which) if where == "here" else boot(Path(where), which)
    if "@@@@ end" not in told:
        print(told)
        sys.exit("the machine did not come to the end")
    kept = {"": ["qdisc", "class", "filter"], "actions": ["qdisc", "filter"]}.get(which, ["filter"])
    into = HERE / (f"{which}_recorded.txt" if which else "recorded.txt")
    into.write_text(written(told.replace("@@@@ end\n", ""), kept))


if __name__ == "__main__":
    main()

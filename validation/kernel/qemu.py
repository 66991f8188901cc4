"""One run of one kernel in QEMU, and the verdict on it.

A run is good only if the guest says so: its first process came to its end (QEMU ends with a status
that nothing else gives), the command's status is 0, and the kernel's log has no complaint. A panic,
a reboot, a hang and a lost result are each told apart.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
import threading
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import IO

from kernels import Kernel

QEMU = "qemu-system-x86_64"
# 2 x 42 + 1: guest/leave.c.
LEFT = 85
KVM_PROBE_S = 10
# Complaints of a kernel; each is a failure unless the caller tolerates it.
COMPLAINTS = (
    r"\bBUG\b",
    r"\bWARNING:",
    r"\bOops\b",
    r"general protection fault",
    r"refcount_t:",
    r"unable to handle",
    r"\b(UBSAN|KASAN|KCSAN|KFENCE)\b",
    r"(circular locking|recursive locking|lock state|RCU usage|invalid context)",
    r"(soft lockup|hard LOCKUP|detected stall|self-detected stall)",
    r"blocked for more than \d+ seconds",
    r"(list_add|list_del) corruption",
    r"unregister_netdevice: waiting for",
    r"NETDEV WATCHDOG",
    r"(Out of memory|page allocation failure|invoked oom-killer)",
    r"segfault at",
)
# Lines that look like complaints and are none.
HARMLESS = (r"Speculative Return Stack Overflow", r"\bSpectre\b", r"\bMDS\b.*CPU bug")
PARAMETERS = (
    "console=ttyS0",
    # Warnings and worse; the rest is read in the guest at the end. A serial line is slow.
    "loglevel=5",
    "log_buf_len=4M",
    "panic=-1",
    "oops=panic",
    # An emulated CPU stands still whenever the machine has other work; that is no fault of it.
    "rcupdate.rcu_cpu_stall_timeout=120",
    "watchdog_thresh=60",
    "tsc=reliable",
)


class QemuError(Exception):
    """QEMU cannot be started; the text says why."""


@dataclass(frozen=True)
class Machine:
    """The virtual machine."""

    cpus: int = 2
    memory: str = "1G"
    # One CPU whose clock counts instructions: each is 1 ns of the guest's time.
    icount: bool = False
    kvm: bool = False
    parameters: tuple[str, ...] = ()

    def options(self) -> list[str]:
        """What QEMU is told about it."""
        if self.icount:
            accel = ["-accel", "tcg,thread=single", "-icount", "shift=0,sleep=off", "-cpu", "max"]
        elif self.kvm:
            accel = ["-accel", "kvm", "-cpu", "host"]
        else:
            accel = ["-accel", "tcg,thread=multi", "-cpu", "max"]
        plain = ["-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"]
        cpus = 1 if self.icount else self.cpus
        return [QEMU, *plain, *accel, "-smp", str(cpus), "-m", self.memory]


@dataclass
class Outcome:
    """What became of a run."""

    # The command's own status; None if it never ended.
    status: int | None = None
    failures: list[str] = field(default_factory=list)

    @property
    def exit_status(self) -> int:
        """The command's status, or 1 where something else failed."""
        return self.status or (1 if self.failures else 0)


class Run:
    """A kernel, an image and a folder for what comes of it."""

    def __init__(self, kernel: Kernel, image: bytes, folder: Path, machine: Machine) -> None:
        """Write the image, and clear the folder of an earlier run's files."""
        self.kernel = kernel
        self.folder = folder.absolute()
        self.machine = machine
        self.folder.mkdir(parents=True, exist_ok=True)
        self.console = self.folder / "console.log"
        self.result = self.folder / "result.tar"
        self.dmesg = self.folder / "dmesg"
        self.initrd = self.folder / "initrd"
        for old in (self.console, self.result, self.dmesg):
            old.unlink(missing_ok=True)
        self.initrd.write_bytes(image)

    def command(self, terminal: bool) -> list[str]:
        """QEMU's command line."""
        parameters = [*PARAMETERS, *self.machine.parameters]
        if terminal:
            parameters.append(f"TERM={os.environ.get('TERM', 'vt100')}")
            main = ["-chardev", "stdio,id=main,signal=off", "-device", "virtconsole,chardev=main"]
        else:
            # Through a file, for a guest cannot write to a port whose host end has seen the end of
            # its input.
            main = ["-chardev", "file,id=main,path=/dev/stdout"]
            main += ["-device", "virtserialport,chardev=main,name=output"]
        return [
            # QEMU goes when this process goes, however that happens.
            *("setpriv", "--pdeathsig", "KILL"),
            *self.machine.options(),
            *("-kernel", str(self.kernel.image), "-initrd", str(self.initrd)),
            *("-append", " ".join(parameters)),
            *("-chardev", f"file,id=log,path={_escaped(self.console)}", "-serial", "chardev:log"),
            *("-device", "virtio-serial-pci"),
            *main,
            *("-chardev", f"file,id=result,path={_escaped(self.result)}"),
            *("-device", "virtserialport,chardev=result,name=result"),
            *("-device", "isa-debug-exit,iobase=0xf4,iosize=1"),
        ]

    def go(self, seconds: float | None, tolerated: tuple[str, ...], terminal: bool) -> Outcome:
        """Boot, wait for the end or the time limit, and judge."""
        with (self.folder / "qemu.log").open("w") as complaints:
            ended = self._run(seconds, terminal, complaints)
        outcome = self._judge(ended, seconds)
        outcome.failures += complaints_in(self.log(), tolerated)
        for bulky in (self.initrd, self.result):
            bulky.unlink(missing_ok=True)
        return outcome

    def log(self) -> str:
        """The kernel's log: complete if the guest came to its end, else what the console got."""
        log = self.dmesg if self.dmesg.exists() else self.console
        return log.read_text(errors="replace") if log.exists() else ""

    def _run(self, seconds: float | None, terminal: bool, complaints: IO[str]) -> int | None:
        """QEMU's status; None if the time was up."""
        quiet = None if terminal else subprocess.DEVNULL
        stdout = None if terminal else subprocess.PIPE
        command = self.command(terminal)
        try:
            qemu = subprocess.Popen(command, stdin=quiet, stdout=stdout, stderr=complaints)
        except OSError as error:
            raise QemuError(f"{command[0]}: {error.strerror}") from error
        reader = threading.Thread(target=self._relay, args=(qemu.stdout,))
        reader.start()
        try:
            return qemu.wait(seconds)
        except subprocess.TimeoutExpired:
            return None
        finally:
            qemu.kill()
            qemu.wait()
            reader.join()

    def _relay(self, stream: IO[bytes] | None) -> None:
        """Pass the guest's lines on, with the kernel's version in front."""
        if stream is None:
            return
        mark = f"{self.kernel.release.short:>7} | ".encode()
        with (self.folder / "output").open("wb") as copy:
            for line in stream:
                copy.write(line)
                sys.stdout.buffer.write(mark + line.rstrip(b"\r\n") + b"\n")
                sys.stdout.buffer.flush()

    def _judge(self, ended: int | None, seconds: float | None) -> Outcome:
        outcome = Outcome()
        if ended is None:
            outcome.failures.append(f"the guest was not done within {seconds:g} s")
        elif ended != LEFT:
            outcome.failures.append(self._why_it_ended(ended))
        else:
            self._unpack(outcome)
        return outcome

    def _why_it_ended(self, ended: int) -> str:
        panic = re.search(r"Kernel panic - .*", self.log())
        if panic:
            return f"the guest panicked: {panic.group()}"
        if ended == 0:
            return "the guest rebooted or powered off before its command had ended"
        said = (self.folder / "qemu.log").read_text(errors="replace").strip()[-500:]
        return f"QEMU ended with status {ended}: {said}"

    def _unpack(self, outcome: Outcome) -> None:
        """Take apart what the guest sent: `status`, `dmesg` and the files of `out`."""
        try:
            with tarfile.open(self.result) as archive:
                for member in archive:
                    path = PurePosixPath(member.name)
                    source = archive.extractfile(member) if member.isfile() else None
                    if source is None or ".." in path.parts or path.is_absolute():
                        continue
                    target = self.folder / path.relative_to("out") if path.parts[0] == "out" \
                        else self.folder / path
                    target.parent.mkdir(parents=True, exist_ok=True)
                    target.write_bytes(source.read())
            outcome.status = int((self.folder / "status").read_text())
        except (OSError, tarfile.TarError, ValueError) as error:
            outcome.failures.append(f"what the guest sent cannot be read: {error}")
            return
        if outcome.status != 0:
            outcome.failures.append(f"the command ended with status {outcome.status}")


def complaints_in(log: str, tolerated: tuple[str, ...] = ()) -> list[str]:
    """The lines of a kernel's log that must not be there."""
    bad = re.compile("|".join(COMPLAINTS))
    fine = re.compile("|".join((*HARMLESS, *tolerated)))
    lines = [line for line in log.splitlines() if bad.search(line) and not fine.search(line)]
    return [f"the kernel's log says: {line.strip()}" for line in lines]


def kvm_works(kernel: Kernel) -> bool:
    """Whether KVM runs a kernel to the point where it panics for want of an image.

    Some machines offer /dev/kvm and then fail on the first unusual instruction.
    """
    if not os.access("/dev/kvm", os.R_OK | os.W_OK):
        return False
    command = [*Machine(kvm=True).options(), "-kernel", str(kernel.image), "-append", "panic=-1"]
    try:
        done = subprocess.run(command, timeout=KVM_PROBE_S, capture_output=True, check=False)
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0


def _escaped(path: Path) -> str:
    """As QEMU wants it among options."""
    return str(path).replace(",", ",,")

"""One run of one kernel in QEMU, and the verdict on it.

A run is good only if the guest says so: its first process came to its end (QEMU ends with a status
that nothing else gives), the command's status is 0, and the kernel's log has no complaint. A panic,
a reboot, a hang and a lost result are each told apart.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import socket
import subprocess
import sys
import tarfile
import threading
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import IO

from kernels import Kernel

QEMU = "qemu-system-x86_64"
# 2 x 42 + 1: guest/leave.c.
LEFT = 85
KVM_PROBE_S = 10
# For a guest to say what it is at when its time is up.
LAST_WORDS_S = 10
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
HARMLESS = (r"Speculative Return Stack Overflow", r"\bSpectre\b")
PARAMETERS = (
    "console=ttyS0",
    # Warnings and worse; the rest is read in the guest at the end. A serial line is slow.
    "loglevel=5",
    "log_buf_len=4M",
    "panic=-1",
    "oops=panic",
    # What is sent when the time is up: the panic says what each CPU was at.
    "unknown_nmi_panic",
    # An emulated CPU stands still whenever the machine has other work. It must not take that for a
    # fault, neither of its timer at boot nor of its tasks.
    "no_timer_check",
    "rcupdate.rcu_cpu_stall_timeout=120",
    "watchdog_thresh=60",
)


# The kernel changes its code as it runs, by way of a breakpoint. On a busy machine QEMU's threads
# for several CPUs miss that now and then, and the breakpoint stays.
EMULATOR_FAULT = r"\bOops: int3\b"


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
    # The rate of the time-stamp counter that an emulated CPU shows.
    tsc_khz: int = 0
    # More of the kernel's parameters.
    extra: tuple[str, ...] = ()

    def may_be_at_fault(self, log: str) -> bool:
        """Whether a kernel with this log may have fallen to the emulator, not to what ran in it."""
        threads = self.cpus > 1 and not self.icount and not self.kvm
        return threads and re.search(EMULATOR_FAULT, log) is not None

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

    def parameters(self) -> list[str]:
        """What the kernel is told."""
        told = list(PARAMETERS)
        if not self.kvm:
            khz = 1_000_000 if self.icount else self.tsc_khz
            told += ["tsc=reliable", f"tsc_early_khz={khz}"]
        return [*told, *self.extra]


@dataclass
class Outcome:
    """What became of a run."""

    # The logs, and what the guest left in /out.
    folder: Path
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
        """Write the image, into a folder without an earlier run's files."""
        self.kernel = kernel
        self.folder = folder.absolute()
        self.machine = machine
        self.console = self.folder / "console.log"
        self.result = self.folder / "result.tar"
        self.dmesg = self.folder / "dmesg"
        self.initrd = self.folder / "initrd"
        self.folder.parent.mkdir(parents=True, exist_ok=True)
        self.lock = self.folder.with_name(f"{self.folder.name}.lock").open("w")
        try:
            fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise QemuError(f"another run is writing to {self.folder}: give --out") from error
        if self.folder.exists() and not self.console.exists() and any(self.folder.iterdir()):
            raise QemuError(f"{self.folder} is there, and not from an earlier run: choose another")
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir()
        self.console.touch()
        self.initrd.write_bytes(image)

    def command(self, terminal: bool, monitor: int) -> list[str]:
        """QEMU's command line; `monitor` is the file descriptor that takes its orders."""
        parameters = self.machine.parameters()
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
            *("-chardev", f"socket,id=monitor,fd={monitor}", "-mon", "chardev=monitor"),
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

    def close(self) -> None:
        """Leave the folder to another run."""
        self.lock.close()

    def log(self) -> str:
        """The kernel's log: what the console got, and all of it if the guest came to its end."""
        logs = (log for log in (self.console, self.dmesg) if log.exists())
        return "\n".join(log.read_text(errors="replace") for log in logs)

    def _run(self, seconds: float | None, terminal: bool, complaints: IO[str]) -> int | None:
        """QEMU's status; None if the time was up."""
        quiet = None if terminal else subprocess.DEVNULL
        stdout = None if terminal else subprocess.PIPE
        orders, monitor = socket.socketpair()
        command = self.command(terminal, monitor.fileno())
        try:
            qemu = subprocess.Popen(
                command,
                stdin=quiet,
                stdout=stdout,
                stderr=complaints,
                pass_fds=[monitor.fileno()],
            )
        except OSError as error:
            raise QemuError(
                f"{command[0]}: {error.strerror}; run scripts/setup.sh kernel"
            ) from error
        reader = threading.Thread(target=self._relay, args=(qemu.stdout,))
        reader.start()
        try:
            return qemu.wait(seconds)
        except subprocess.TimeoutExpired:
            orders.sendall(b"nmi\n")
            with suppress(subprocess.TimeoutExpired):
                qemu.wait(LAST_WORDS_S)
            return None
        finally:
            qemu.kill()
            qemu.wait()
            reader.join()
            orders.close()
            monitor.close()

    def _relay(self, stream: IO[bytes] | None) -> None:
        """Pass the guest's lines on, with the kernel's version in front."""
        if stream is None:
            return
        mark = f"{self.kernel.release.short:>7} | ".encode()
        with (self.folder / "output").open("wb") as copy:
            for line in stream:
                copy.write(line)
                # Who reads may have heard enough; the guest must not wait for that.
                with suppress(BrokenPipeError):
                    sys.stdout.buffer.write(mark + line.rstrip(b"\r\n") + b"\n")
                    sys.stdout.buffer.flush()

    def _judge(self, ended: int | None, seconds: float | None) -> Outcome:
        outcome = Outcome(self.folder)
        if ended is None:
            failure = f"the guest was not done within {seconds or 0:g} s"
            at = re.findall(r"CPU: \d+ .*?Comm: \S+", self.log())
            outcome.failures.append("; it was at ".join([failure, *at[-1:]]))
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
                    of_test = path.is_relative_to("out")
                    target = self.folder / (path.relative_to("out") if of_test else path)
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
    lines = [line.strip() for line in log.splitlines() if bad.search(line)]
    # Once each: the console and the log in memory tell the same.
    found = [line for line in dict.fromkeys(lines) if not fine.search(line)]
    return [f"the kernel's log says: {line}" for line in found]


def kvm_works(kernel: Kernel, notes: Path) -> bool:
    """Whether KVM runs a kernel to the point where it panics for want of an image.

    Some machines offer /dev/kvm and then fail on the first unusual instruction. What was found is
    noted in the folder `notes`, until the machine boots again.
    """
    if not os.access("/dev/kvm", os.R_OK | os.W_OK):
        return False
    note = notes / "kvm"
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    said = note.read_text().split() if note.exists() else []
    if said[:1] != [boot]:
        said = [boot, "works" if _kvm_boots(kernel) else "fails"]
        note.write_text(" ".join(said) + "\n")
    return said[1] == "works"


def _kvm_boots(kernel: Kernel) -> bool:
    command = [*Machine(kvm=True).options(), "-kernel", str(kernel.image), "-append", "panic=-1"]
    try:
        done = subprocess.run(command, timeout=KVM_PROBE_S, capture_output=True, check=False)
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0


def _escaped(path: Path) -> str:
    """As QEMU wants it among options."""
    return str(path).replace(",", ",,")

#!/usr/bin/env python3
"""Runs programs in real distribution kernels, in QEMU.

    vm.py list                                    which kernels there are
    vm.py run --kernel 6.17 --kernel newest --program target/debug/foo -- foo ARG...
                                                  a program in each of them
    vm.py shell --kernel 7.3                      a shell in one
    vm.py selftest                                whether faults in guests are noticed

The status is that of the first run that failed, 1 if it failed by other means than its status, and
2 for a wrong command line. docs/kernel-bench.md says more.
"""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from image import FILE, SEARCH, Image, ImageError, add_modules, add_system, compiled
from kernels import ROOT, Kernel, KernelError, Store
from qemu import Machine, Outcome, QemuError, Run, kvm_works
from selftest import selftest

TSC = Path(__file__).resolve().with_name("tsc.c")
FEATURES = ("NET_SCH_BPF", "DEBUG_INFO_BTF", "NET_SCH_FQ_CODEL", "NET_SCH_CAKE", "NET_PKTGEN")
# Runs of one command, if the emulator may have been at fault. A fault of the kernel's comes again.
TRIES = 3


def main() -> int:
    """Do what the command line says."""
    arguments = parsed(sys.argv[1:])
    try:
        act: Callable[[argparse.Namespace], int] = arguments.act
        return act(arguments)
    except (KernelError, ImageError, QemuError) as error:
        print(f"vm.py: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # Who reads has heard enough. What is still to be said goes nowhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141


def parsed(words: list[str]) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    verbs = parser.add_subparsers(required=True, metavar="run | shell | list | selftest")

    listing = verbs.add_parser("list", help="say which kernels there are, and what they have")
    listing.add_argument("--refresh", action="store_true", help="fetch the package lists again")
    listing.set_defaults(act=act_list)

    running = verbs.add_parser("run", help="run a command in a guest")
    _guest_options(running)
    running.add_argument("--timeout", type=float, default=600, metavar="S", help="600")
    running.add_argument(
        "--tolerate",
        action="append",
        default=[],
        metavar="REGEX",
        help="a complaint in the kernel's log that is no failure",
    )
    running.add_argument("command", nargs="+", help="after `--`: what the guest runs")
    running.set_defaults(act=act_run)

    proof = verbs.add_parser("selftest", help="plant faults in guests: each must be noticed")
    _guest_options(proof)
    proof.set_defaults(act=act_selftest)

    shell = verbs.add_parser("shell", help="an interactive shell in a guest")
    _guest_options(shell)
    shell.set_defaults(act=act_shell)
    return parser.parse_args(words)


def _guest_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "--kernel",
        action="append",
        metavar="SERIES",
        help="such as 6.17, or `oldest` or `newest` (the default)",
    )
    add(
        "--program",
        action="append",
        default=[],
        metavar="PATH[=NAME]",
        help="put a program and its shared libraries into the guest's /usr/bin",
    )
    add(
        "--file",
        action="append",
        default=[],
        metavar="PATH=GUEST_PATH",
        help="put a file into the guest",
    )
    add(
        "--out",
        type=Path,
        default=ROOT / "target" / "kernel-runs",
        metavar="DIR",
        help="what guests leave in /out goes to DIR/<version>, and the logs",
    )
    add("--smp", type=int, default=2, metavar="N", help="CPUs: 2")
    add("--memory", default="1G", metavar="SIZE", help="1G")
    add(
        "--icount",
        action="store_true",
        help="one CPU, and 1 ns of the guest's time for each instruction",
    )
    add("--accel", choices=("auto", "tcg", "kvm"), default="auto", help="auto: kvm if it works")
    add("--append", default="", metavar="TEXT", help="more kernel parameters")
    add(
        "--allow-missing",
        action="store_true",
        default=os.environ.get("SHORTLANE_KERNEL_MISSING") == "skip",
        help="skip a kernel that cannot be had (or SHORTLANE_KERNEL_MISSING=skip)",
    )


def act_list(arguments: argparse.Namespace) -> int:
    """Every kernel, and the features of those that are here."""
    store = Store()
    for release in store.releases(arguments.refresh):
        kernel = store.here(release)
        line = f"{release.series:6} {release.name}"
        if kernel is None:
            size = sum(package.size for package in release.packages) / 1e6
            print(f"{line}  not fetched yet, {size:.0f} MB")
        else:
            config = kernel.config()
            has = (f"{name}={config.get(f'CONFIG_{name}', 'n')}" for name in FEATURES)
            print(f"{line}  {' '.join(has)}")
    return 0


def act_run(arguments: argparse.Namespace) -> int:
    """The command in each kernel."""
    script = f"exec {shlex.join(arguments.command)}"
    limits = {"seconds": arguments.timeout, "tolerated": tuple(arguments.tolerate)}

    def run(store: Store, kernel: Kernel) -> int:
        began = time.monotonic()
        outcome = boot(store, kernel, arguments, script, **limits)
        report(kernel, outcome, time.monotonic() - began)
        return outcome.exit_status

    return in_each_kernel(arguments, run)


def act_selftest(arguments: argparse.Namespace) -> int:
    """Faults planted in each kernel."""
    return in_each_kernel(
        arguments, lambda store, kernel: selftest(partial(boot, store, kernel, arguments))
    )


def act_shell(arguments: argparse.Namespace) -> int:
    """A shell on this terminal."""
    store = Store()
    kernel = store.get((arguments.kernel or ["newest"])[-1])
    print("Type `exit` to end the machine; what is left in /out comes out of it.", flush=True)
    outcome = boot(store, kernel, arguments, "", seconds=None)
    for failure in outcome.failures:
        print(f"vm.py: {failure}", file=sys.stderr)
    return outcome.exit_status


def in_each_kernel(arguments: argparse.Namespace, run: Callable[[Store, Kernel], int]) -> int:
    """One after the other, all of them even if one fails; the first status that is not 0."""
    store = Store()
    status = 0
    for wanted in arguments.kernel or ["newest"]:
        try:
            kernel = store.get(wanted)
        except KernelError as error:
            verdict = "SKIPPED" if arguments.allow_missing else "FAILED"
            print(f"{verdict} Linux {wanted}: {error}", flush=True)
            status = status or (0 if arguments.allow_missing else 1)
        else:
            ended = run(store, kernel)
            status = status or ended
    return status


def boot(
    store: Store,
    kernel: Kernel,
    arguments: argparse.Namespace,
    script: str,
    *,
    seconds: float | None,
    tolerated: tuple[str, ...] = (),
) -> Outcome:
    """Run a script in the kernel, or a shell if the script is empty."""
    image = guest_image(store, kernel, arguments)
    if script:
        image.add("/command", FILE | 0o644, f"{script}\n".encode())
    elif bash := shutil.which("bash", path=SEARCH):
        image.add_program(Path(bash), "bash")
    machine = guest_machine(store, kernel, arguments)
    packed = image.packed()
    for left in reversed(range(TRIES)):
        run = Run(kernel, packed, run_folder(arguments, kernel), machine)
        outcome = run.go(seconds, tolerated, terminal=not script)
        if left == 0 or not script or not machine.may_be_at_fault(run.log()):
            break
        run.close()
        name = f"Linux {kernel.release.short}"
        print(f"{name}: the emulator may be at fault (Oops: int3): once more", flush=True)
    return outcome


def guest_image(store: Store, kernel: Kernel, arguments: argparse.Namespace) -> Image:
    """The system, and what the command line asks for."""
    image = Image()
    add_system(image, store.folder)
    add_modules(image, kernel)
    for word in arguments.program:
        path, _, name = word.partition("=")
        image.add_program(Path(path), name or Path(path).name)
    for word in arguments.file:
        path, _, target = word.partition("=")
        if not target.startswith("/"):
            raise ImageError(f"--file {word}: PATH=GUEST_PATH is wanted, GUEST_PATH absolute")
        image.add_file(Path(path), target)
    return image


def guest_machine(store: Store, kernel: Kernel, arguments: argparse.Namespace) -> Machine:
    """The machine that the command line asks for."""
    kvm = arguments.accel == "kvm"
    if arguments.accel == "auto" and not arguments.icount:
        kvm = kvm_works(kernel, store.folder)
    measured = subprocess.run(
        [compiled(TSC, store.folder)], capture_output=True, text=True, check=True
    )
    return Machine(
        cpus=arguments.smp,
        memory=arguments.memory,
        icount=arguments.icount,
        kvm=kvm,
        tsc_khz=int(measured.stdout),
        extra=tuple(arguments.append.split()),
    )


def run_folder(arguments: argparse.Namespace, kernel: Kernel) -> Path:
    """Where a run's files go."""
    out: Path = arguments.out
    return out / kernel.release.short


def report(kernel: Kernel, outcome: Outcome, seconds: float) -> None:
    """One line if all is well, else every failure and where to look."""
    name = f"Linux {kernel.release.short}"
    if not outcome.failures:
        print(f"{name}: passed in {seconds:.1f} s", flush=True)
        return
    print(f"{name}: FAILED after {seconds:.1f} s (logs in {outcome.folder})", flush=True)
    for failure in outcome.failures:
        print(f"{name}:   {failure}", flush=True)


if __name__ == "__main__":
    sys.exit(main())

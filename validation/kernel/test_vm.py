"""What can be tested without a guest: choosing kernels, building images, reading logs."""

from __future__ import annotations

import subprocess
from pathlib import Path

import apt
import image
import kernels
import pytest
import qemu
import selftest
from kernels import KernelError, choose, packages_in, releases_of

RECORDED = Path(__file__).parent / "testdata"
RELEASES = releases_of(packages_in((RECORDED / "packages.txt").read_text()))


def test_releases_are_sorted_by_number_and_whole() -> None:
    names = [release.short for release in RELEASES]
    # 6.19.14 and 7.0.13 are recorded without their modules, which the archive no longer had.
    assert names == ["6.16.12", "6.17.8", "6.17.13", "7.2.12", "7.2.13", "7.3.4"]


def test_old_kernels_are_one_package_and_new_ones_four() -> None:
    parts = {release.short: [it.name for it in release.packages] for release in RELEASES}
    assert parts["6.17.13"] == ["linux-image-6.17.13+deb13-cloud-amd64"]
    assert parts["7.3.4"] == [
        f"linux-{part}-7.3.4+deb13-cloud-amd64" for part in ("image", "base", "binary", "modules")
    ]
    assert not any("-dbg" in name for names in parts.values() for name in names)


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ("oldest", "6.17.13"),
        ("newest", "7.3.4"),
        ("6.17", "6.17.13"),
        ("6.17.8", "6.17.8"),
        ("7.2", "7.2.13"),
        ("6.16", "6.16.12"),
        ("7.3.4+deb13-cloud-amd64", "7.3.4"),
    ],
)
def test_choice(wanted: str, found: str) -> None:
    assert choose(RELEASES, wanted).short == found


def test_a_kernel_that_is_not_there_is_answered_with_those_that_are() -> None:
    with pytest.raises(KernelError, match=r"no kernel 5\.10 .* 6\.16, 6\.17, 7\.2, 7\.3"):
        choose(RELEASES, "5.10")
    with pytest.raises(KernelError, match="there are: none"):
        choose([], "newest")


def test_lists_fetched_once_serve_without_a_network(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = kernels.Store(tmp_path)
    monkeypatch.setattr(store.apt, "update", lambda: None)
    monkeypatch.setattr(store.apt, "records", lambda _: (RECORDED / "packages.txt").read_text())
    assert store.releases() == RELEASES
    monkeypatch.setattr(store.apt, "update", _no_network)
    assert store.releases() == RELEASES
    assert store.releases(refresh=True) == RELEASES
    other = kernels.Store(tmp_path / "other")
    monkeypatch.setattr(other.apt, "update", _no_network)
    with pytest.raises(KernelError, match="no package lists: no network"):
        other.releases()


def _no_network() -> None:
    raise apt.AptError("no network")


def test_the_mirror_is_the_one_of_the_machines_own_release() -> None:
    uris = """\
'http://mirror.example/debian/dists/bookworm/InRelease' a 0
'http://mirror.example/debian/dists/bookworm-updates/InRelease' b 0
'http://security.example/debian-security/dists/bookworm-security/InRelease' c 0
'http://mirror.example/debian/dists/bookworm/main/binary-amd64/Packages.xz' d 0
'https://vendor.example/apt/dists/stable/InRelease' e 0
"""
    assert apt.mirrors_among(uris, "bookworm") == ["http://mirror.example/debian"]


def test_libraries_are_read_from_ldd() -> None:
    said = """\
\tlinux-vdso.so.1 (0x00007ffc5f5d9000)
\tlibelf.so.1 => /lib/x86_64-linux-gnu/libelf.so.1 (0x00007f1)
\t/lib64/ld-linux-x86-64.so.2 (0x00007f2)
"""
    assert image.libraries_among(said) == [
        "/lib/x86_64-linux-gnu/libelf.so.1",
        "/lib64/ld-linux-x86-64.so.2",
    ]
    with pytest.raises(image.ImageError, match=r"libgone\.so\.7"):
        image.libraries_among(said + "\tlibgone.so.7 => not found\n")


def test_modules_come_with_what_they_need() -> None:
    table = (
        "kernel/net/sched/sch_cake.ko:\n"
        "kernel/net/sched/act_ct.ko: kernel/net/nf-conntrack.ko kernel/lib/crc.ko\n"
        "kernel/net/nf-conntrack.ko: kernel/lib/crc.ko\n"
        "kernel/lib/crc.ko:\n"
        "kernel/drivers/gpu.ko: kernel/lib/crc.ko\n"
    )
    chosen = image.module_closure(table, ("sch_*", "act_ct"))
    assert sorted(image.module_name(path) for path in chosen) == [
        "act_ct",
        "crc",
        "nf_conntrack",
        "sch_cake",
    ]


def test_a_program_comes_without_what_a_debugger_reads(tmp_path: Path) -> None:
    source, program = tmp_path / "a.c", tmp_path / "a"
    source.write_text("int main(void) { return 7; }\n")
    subprocess.run(["cc", "-g", "-o", str(program), str(source)], check=True)
    assert b".debug_info" in program.read_bytes()
    program.write_bytes(image.stripped(program))
    assert b".debug_info" not in program.read_bytes()
    assert subprocess.run([program], check=False).returncode == 7
    source.write_text("#!/bin/sh\n")
    assert image.stripped(source) == b"#!/bin/sh\n"


def test_the_archive_is_one_that_cpio_reads(tmp_path: Path) -> None:
    made = image.Image()
    made.add("/etc/name", image.FILE | 0o644, b"guest\n")
    made.add("/deep/in/odd", image.FILE | 0o755, b"12345")
    made.add_link("/init", "usr/bin/init")
    command = ["cpio", "--extract", "--make-directories", "--quiet", "--no-absolute-filenames"]
    subprocess.run(command, input=made.packed(), cwd=tmp_path, check=True)
    assert (tmp_path / "etc/name").read_bytes() == b"guest\n"
    assert (tmp_path / "deep/in/odd").read_bytes() == b"12345"
    assert (tmp_path / "deep/in/odd").stat().st_mode & 0o777 == 0o755
    assert (tmp_path / "init").readlink() == Path("usr/bin/init")
    assert (tmp_path / "bin").readlink() == Path("usr/bin")
    command = ["cpio", "--list", "--quiet"]
    listing = subprocess.run(command, input=made.packed(), capture_output=True, check=True)
    names = listing.stdout.decode().split()
    # The kernel makes no file before its folder.
    assert names.index("deep") < names.index("deep/in") < names.index("deep/in/odd")


@pytest.mark.parametrize(
    "line",
    [
        "[    1.0] BUG: unable to handle page fault for address: ffff",
        "[    1.0] kernel BUG at net/core/skbuff.c:1!",
        "[    1.0] WARNING: CPU: 0 PID: 1 at net/sched/sch_generic.c:9 x+0x1/0x2",
        "[    1.0] refcount_t: underflow; use-after-free.",
        "[    1.0] BUG: KASAN: slab-use-after-free in x",
        "[    1.0] Oops: general protection fault, probably for non-canonical address",
        "[    1.0] WARNING: possible circular locking dependency detected",
        "[    1.0] rcu: INFO: rcu_preempt self-detected stall on CPU",
        "[    1.0] watchdog: BUG: soft lockup - CPU#0 stuck for 22s! [x:1]",
        "[    1.0] INFO: task x:1 blocked for more than 120 seconds.",
        "[    1.0] unregister_netdevice: waiting for veth0 to become free. Usage count = 2",
        "[    1.0] Out of memory: Killed process 1 (x)",
        "[    1.0] x[1]: segfault at 0 ip 0 sp 0 error 4 in x",
    ],
)
def test_complaints_are_seen_once_and_can_be_tolerated(line: str) -> None:
    log = f"[    0.9] fine\n{line}\n{line}\n"
    assert qemu.complaints_in(log) == [f"the kernel's log says: {line}"]
    assert qemu.complaints_in(log, (r"\[    1\.0\]",)) == []


def test_ordinary_lines_are_no_complaints() -> None:
    log = """\
[    0.031607] Spectre V2 : WARNING: Unprivileged eBPF is enabled with eIBRS on
[    0.072192] rcu: \tRCU CPU stall warnings timeout set to 120 (rcu_cpu_stall_timeout).
[    1.526701] PCI: Using host bridge windows; if necessary, use "pci=nocrs" and report a bug
[    2.857000] x86/mm: Checked W+X mappings: passed, no W+X pages found.
"""
    assert qemu.complaints_in(log) == []


def test_a_status_other_than_the_commands_is_one() -> None:
    good = qemu.Outcome(Path(), status=0)
    failed = qemu.Outcome(Path(), status=7, failures=["the command ended with status 7"])
    complained = qemu.Outcome(Path(), status=0, failures=["the kernel's log says: BUG"])
    lost = qemu.Outcome(Path(), failures=["the guest panicked"])
    assert [it.exit_status for it in (good, failed, complained, lost)] == [0, 7, 1, 1]


def test_a_machine_that_counts_instructions_has_one_cpu_and_its_clock_is_known() -> None:
    machine = qemu.Machine(cpus=4, icount=True, tsc_khz=2_300_000)
    options = " ".join(machine.options())
    assert "-smp 1 " in options
    assert "-icount shift=0,sleep=off" in options
    assert "tsc_early_khz=1000000" in machine.parameters()
    plain = qemu.Machine(cpus=4, tsc_khz=2_300_000)
    assert "-smp 4 " in " ".join(plain.options())
    assert "tsc_early_khz=2300000" in plain.parameters()


def test_a_fault_of_the_emulator_may_only_be_one_of_several_threads() -> None:
    """A breakpoint that was left is one; a call of nothing is the kernel's own."""
    left = "[    2.409805] Oops: int3: 0000 [#1] SMP NOPTI"
    own = "[    2.409805] Oops: 0000 [#1] SMP NOPTI"
    assert qemu.Machine().may_be_at_fault(left)
    assert not qemu.Machine().may_be_at_fault(own)
    for machine in (qemu.Machine(cpus=1), qemu.Machine(icount=True), qemu.Machine(kvm=True)):
        assert not machine.may_be_at_fault(left)


def test_only_the_planted_failure_counts_as_noticed(tmp_path: Path) -> None:
    panic = selftest.Plant("a panic", "", "the guest panicked")
    passed = qemu.Outcome(tmp_path, status=0)
    assert not selftest.noticed(panic, passed)
    assert not selftest.noticed(panic, qemu.Outcome(tmp_path, failures=["not done within 9 s"]))
    assert selftest.noticed(panic, qemu.Outcome(tmp_path, failures=["the guest panicked: x"]))
    good = selftest.Plant("no fault", "", "")
    assert not selftest.noticed(good, passed), "what it left in /out is missing"
    (tmp_path / "kept").write_text("kept\n")
    assert selftest.noticed(good, passed)

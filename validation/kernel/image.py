"""What a guest boots into: an initramfs with busybox, tools, modules and the programs to test.

The archive is written here, in the kernel's own format (cpio `newc`), so that no root and no
staging folder are needed and the same content gives the same bytes.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from fnmatch import fnmatchcase
from pathlib import Path

from kernels import Kernel

GUEST = Path(__file__).resolve().parent / "guest"
# What the machine lends to the guest; of the second line, what there is.
TOOLS = ("ip", "tc")
EXTRA_TOOLS = ("ethtool", "ss", "nstat", "bpftool", "nft")
SEARCH = "/usr/bin:/bin:/usr/sbin:/sbin:/usr/local/bin:/usr/local/sbin"
# Modules that a test may need; with what they depend on. The kernel loads them when asked for one.
MODULES = (
    *("sch_*", "cls_*", "em_*", "act_*", "tcp_*", "pktgen", "xsk_diag", "*_diag"),
    *("veth", "dummy", "ifb", "tun", "bridge", "8021q", "macvlan", "bonding", "team", "nlmon"),
    *("ip_tunnel", "ipip", "sit", "ip_gre", "vxlan", "geneve", "af_packet", "sctp", "mpls_*"),
    # What connects the guest with the host; built into newer kernels.
    *("virtio_pci", "virtio_console"),
    *("nf_conntrack", "nf_nat", "nf_tables", "nft_*", "x_tables", "xt_*", "ip*_tables"),
)
FOLDER, FILE, LINK = 0o040000, 0o100000, 0o120000


class ImageError(Exception):
    """The image cannot be made; the text says what is missing."""


class Image:
    """The files of a guest, by absolute path."""

    def __init__(self) -> None:
        """Has nothing in it yet but the folders that everything is found in."""
        self.entries: dict[str, tuple[int, bytes]] = {}
        self.add("/usr/bin", FOLDER | 0o755, b"")
        self.add("/usr/lib", FOLDER | 0o755, b"")
        for link, target in (("/bin", "usr/bin"), ("/sbin", "usr/bin"), ("/usr/sbin", "bin")):
            self.add_link(link, target)

    def add(self, path: str, mode: int, data: bytes) -> None:
        """An entry; the folders above it come along."""
        parent = path.rpartition("/")[0]
        if parent and parent not in self.entries:
            self.add(parent, FOLDER | 0o755, b"")
        self.entries[path] = (mode, data)

    def add_link(self, path: str, target: str) -> None:
        """A symbolic link."""
        self.add(path, LINK | 0o777, target.encode())

    def add_file(self, source: Path, path: str) -> None:
        """A copy of a file, executable if the original is."""
        try:
            executable = source.stat().st_mode & 0o100
            self.add(path, FILE | (0o755 if executable else 0o644), source.read_bytes())
        except OSError as error:
            raise ImageError(f"{source}: {error.strerror}") from error

    def add_program(self, source: Path, name: str) -> None:
        """A program into /usr/bin, with the shared libraries that it asks for."""
        self.add(f"/usr/bin/{name}", FILE | 0o755, stripped(source))
        for library in libraries(source):
            self.add_file(Path(library), library)

    def packed(self) -> bytes:
        """The archive."""
        parts = []
        for number, (path, (mode, data)) in enumerate(sorted(self.entries.items()), start=1):
            parts.append(_record(path[1:], number, mode, data))
        parts.append(_record("TRAILER!!!", 0, 0, b""))
        return b"".join(parts)


def _record(name: str, inode: int, mode: int, data: bytes) -> bytes:
    """One entry in the format that the kernel's documentation calls `newc`."""
    raw = name.encode() + b"\0"
    links = 2 if mode & FOLDER == FOLDER else 1
    numbers = (inode, mode, 0, 0, links, 0, len(data), 0, 0, 0, 0, len(raw), 0)
    head = b"070701" + b"".join(b"%08X" % number for number in numbers) + raw
    return head + bytes(-len(head) % 4) + data + bytes(-len(data) % 4)


def stripped(program: Path) -> bytes:
    """A program without what only a debugger reads, since an emulator is slow to unpack it."""
    try:
        content = program.read_bytes()
        if not content.startswith(b"\x7fELF"):
            return content
        with tempfile.NamedTemporaryFile() as out:
            command = ["strip", "--strip-debug", "-o", out.name, str(program)]
            subprocess.run(command, capture_output=True, text=True, check=True)
            return Path(out.name).read_bytes()
    except OSError as error:
        raise ImageError(f"{program}: {error.strerror}") from error
    except subprocess.CalledProcessError as error:
        raise ImageError(f"{program}: {error.stderr.strip()}") from error


def libraries(program: Path) -> list[str]:
    """The shared libraries that a program is loaded with, by ldd; none if it is static."""
    done = subprocess.run(["ldd", str(program)], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        # ldd's way to say that a file is a script or a static program.
        if "not a dynamic executable" in done.stdout + done.stderr:
            return []
        raise ImageError(f"ldd {program}: {done.stderr.strip()}")
    return libraries_among(done.stdout)


def libraries_among(ldd: str) -> list[str]:
    """The files that ldd's output names."""
    missing = re.findall(r"^\s*(\S+) => not found", ldd, re.MULTILINE)
    if missing:
        raise ImageError(f"shared libraries not found: {', '.join(missing)}")
    return re.findall(r"^\s*(?:\S+ => )?(/\S+) \(0x", ldd, re.MULTILINE)


def module_closure(table: str, patterns: tuple[str, ...]) -> dict[str, list[str]]:
    """The lines of `modules.dep` for modules whose names match, and for all that they need."""
    needs = {}
    for line in table.splitlines():
        path, _, rest = line.partition(":")
        needs[path] = rest.split()
    chosen: dict[str, list[str]] = {}
    for path, needed in needs.items():
        name = module_name(path)
        if any(fnmatchcase(name, pattern) for pattern in patterns):
            # depmod's lists are complete: they name the needs of the needs too.
            chosen |= {each: needs[each] for each in (path, *needed)}
    return chosen


def module_name(path: str) -> str:
    """Such as sch_cake for kernel/net/sched/sch_cake.ko."""
    return Path(path).name.split(".")[0].replace("-", "_")


def add_modules(image: Image, kernel: Kernel) -> None:
    """The modules of `MODULES`, and what modprobe reads to find them."""
    target = f"/lib/modules/{kernel.release.name}"
    chosen = module_closure((kernel.modules / "modules.dep").read_text(), MODULES)
    for path in chosen:
        image.add_file(kernel.modules / path, f"{target}/{path}")
    dep = "".join(f"{path}: {' '.join(needed)}\n" for path, needed in chosen.items())
    image.add(f"{target}/modules.dep", FILE | 0o644, dep.encode())
    names = {module_name(path) for path in chosen}
    aliases = [
        line
        for line in (kernel.modules / "modules.alias").read_text().splitlines(keepends=True)
        if line.split()[-1] in names
    ]
    image.add(f"{target}/modules.alias", FILE | 0o644, "".join(aliases).encode())
    image.add_file(kernel.modules / "modules.builtin", f"{target}/modules.builtin")


def add_system(image: Image, programs: Path) -> None:
    """busybox, the tools that this machine lends, and the guest's first process.

    What is compiled for it goes to the folder `programs`.
    """
    busybox = tool("busybox")
    if libraries(busybox):
        raise ImageError(f"{busybox} is not static: install busybox-static")
    applets = subprocess.run([busybox, "--list"], capture_output=True, text=True, check=True)
    for applet in applets.stdout.split():
        image.add_link(f"/usr/bin/{applet}", "busybox")
    image.add_file(busybox, "/usr/bin/busybox")
    # From here on programs take the places of applets. The shell is not busybox's, which runs its
    # own `ip` and `timeout` whatever there is in PATH.
    image.add_program(Path("/bin/sh").resolve(), "sh")
    for name in TOOLS:
        image.add_program(tool(name), name)
    for name in EXTRA_TOOLS:
        if found := shutil.which(name, path=SEARCH):
            image.add_program(Path(found), name)
    # netem's tables of distributions.
    for table in Path("/usr/lib").glob("**/tc/*.dist"):
        image.add_file(table, str(table))
    image.add_program(compiled(GUEST / "leave.c", programs), "leave")
    image.add_program(GUEST / "init", "init")
    image.add_link("/init", "usr/bin/init")


def tool(name: str) -> Path:
    """A program of this machine."""
    found = shutil.which(name, path=SEARCH)
    if found is None:
        raise ImageError(f"there is no {name} here: run scripts/setup.sh kernel")
    return Path(found)


def compiled(source: Path, folder: Path) -> Path:
    """A C program of one file, static, compiled into the folder if it has changed."""
    program = folder / source.stem
    if not program.exists() or program.stat().st_mtime < source.stat().st_mtime:
        folder.mkdir(parents=True, exist_ok=True)
        part = folder / f"{source.stem}.{os.getpid()}"
        command = ["cc", "-O2", "-static", "-o", str(part), str(source)]
        try:
            subprocess.run(command, capture_output=True, text=True, check=True)
        except OSError as error:
            raise ImageError(f"cc: {error.strerror}; run scripts/setup.sh kernel") from error
        except subprocess.CalledProcessError as error:
            raise ImageError(f"{' '.join(command)}: {error.stderr.strip()}") from error
        part.replace(program)
    return program

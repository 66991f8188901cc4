#!/usr/bin/env python3
"""The README's own lines on systems that have nothing but `make` and Rust: Debian 12 and 13.

    scripts/test-bare.py --quick       set-up, build (without optimising), attach, doctor, detach
    scripts/test-bare.py --packages    what `make packages` has made, installed and used
    scripts/test-bare.py --guests      the Debian package on Debian's own kernels, in QEMU: marks
    scripts/test-bare.py               all of it, the lab, the Python package, and faults
    scripts/test-bare.py --only 13     one of the systems

Each system is a root file system of its own below target/bare, made by mmdebstrap, and is entered
by chroot in namespaces of its own. From the host it has the kernel, the toolchain, the sources of
crates, and files of this checkout as git lists them. Packages and the bare systems are kept below
target/bare; `--fresh` forgets them.
"""

import argparse
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parents[1]
WORK = HERE / "target" / "bare"
SUITES = {"12": "bookworm", "13": "trixie"}
#: Their own, as validation/kernel/vm.py names them.
KERNELS = {"12": "6.1", "13": "6.12"}
MIRROR = os.environ.get("DEBIAN_MIRROR", "http://deb.debian.org/debian")
SECURITY = os.environ.get("DEBIAN_SECURITY_MIRROR", "http://deb.debian.org/debian-security")
KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"

#: What is done on a link, in this order, and with which options where README.md has no such line.
ON_A_LINK = {
    "attach": "--rate 20mbit",
    "show": "",
    "doctor": "",
    "change": "--rate 18mbit",
    "detach": "",
}
#: Lines that are run elsewhere, or wait for somebody to look at them.
ELSEWHERE = (
    r"make test\b",  # this is a part of it
    r"make run LAB=",  # as make run
    r"shortlane (top|bridge|metrics)\b",  # crates/cli/tests
    r"shortlane (sim|replay|report|campaign|paper|lab|list)\b",  # crates/cli/tests, python/tests
    r"cargo add\b",
)


class Failure(Exception):
    """Something did not go as it should."""


class System:
    """A bare Debian."""

    def __init__(self, version: str) -> None:
        self.version = version
        self.suite = SUITES[version]
        self.root = WORK / f"debian-{version}"
        self.image = WORK / f"debian-{version}.tar"
        self.packages = WORK / f"packages-{version}"

    def make(self) -> None:
        """Make it new, from the kept image if there is one."""
        if not self.image.exists():
            note(f"Debian {self.version}: making the root file system")
            sources = [
                f"deb {MIRROR} {self.suite} main",
                f"deb {MIRROR} {self.suite}-updates main",
                f"deb {SECURITY} {self.suite}-security main",
            ]
            partial = self.image.with_suffix(".partial.tar")
            options = [f"--aptopt={line}" for line in host_apt()]
            made = ["mmdebstrap", "--quiet", "--variant=minbase", "--include=make,ca-certificates"]
            host([*made, f"--keyring={KEYRING}", *options, self.suite, str(partial), *sources])
            partial.rename(self.image)
        shutil.rmtree(self.root, ignore_errors=True)
        self.root.mkdir(parents=True)
        self.packages.mkdir(exist_ok=True)
        host(["tar", "-C", str(self.root), "-xf", str(self.image)])
        (self.root / "etc/apt/apt.conf.d/99-host").write_text("\n".join(host_apt()) + "\n")
        shutil.copy("/etc/resolv.conf", self.root / "etc/resolv.conf")
        shutil.copy("/etc/ssl/certs/ca-certificates.crt", self.root / "etc/ssl/certs/")
        tree = self.root / "src"
        tree.mkdir()
        listed = host(["git", "ls-files", "-z"], cwd=HERE)
        names = "\0".join(name for name in listed.split("\0") if (HERE / name).exists())
        packed = ["tar", "-C", str(HERE), "--null", "-T", "-", "-c"]
        tar = subprocess.run(packed, input=names.encode(), capture_output=True, check=True)
        subprocess.run(["tar", "-C", str(tree), "-x"], input=tar.stdout, check=True)

    def run(
        self, script: str, *, link: bool = False, offline: bool = False, fails: bool = False
    ) -> str:
        """Run a shell script in /src of this system and give what it said.

        With `link` in a network of its own with a veth eth0, up; with `offline` in one without.
        """
        sysroot = host(["rustc", "--print", "sysroot"]).strip()
        registry = Path(os.environ.get("CARGO_HOME", Path.home() / ".cargo")) / "registry"
        registry.mkdir(exist_ok=True)
        mounts = [
            "mount -t proc proc proc",
            "mount -t sysfs sysfs sys",
            "mount --rbind /dev dev",
            "mount -t tmpfs tmpfs run",
            "mount -t tmpfs tmpfs tmp",
            f"mkdir -p opt/rust root/.cargo/registry && mount --bind {sysroot} opt/rust",
            f"mount --bind {registry} root/.cargo/registry",
        ]
        # What apt has fetched once it installs without a network as well.
        if not offline:
            mounts.append(f"mount --bind {self.packages} var/cache/apt/archives")
        if link:
            mounts += ["ip link set lo up", "ip link add eth0 type veth peer name far"]
            mounts += ["ip link set eth0 up", "ip link set far up"]
        environment = {
            "PATH": "/opt/rust/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            "HOME": "/root",
            "LANG": "C.UTF-8",
            "SSL_CERT_FILE": "/etc/ssl/certs/ca-certificates.crt",
            "PIP_CERT": "/etc/ssl/certs/ca-certificates.crt",
            **{
                name: value for name, value in os.environ.items() if name.lower().endswith("_proxy")
            },
            **BUILD,
        }
        words = [f"{name}={value}" for name, value in environment.items()]
        inside = shlex.join(
            ["env", "-i", *words, "bash", "-euo", "pipefail", "-c", f"cd /src\n{script}"]
        )
        lines = [f"cd {self.root}", *mounts, f"exec chroot . {inside}"]
        spaces = ["--mount", "--pid", "--fork", "--kill-child", "--uts", "--ipc"]
        if link or offline:
            spaces.append("--net")
        begun = time.monotonic()
        log = WORK / f"debian-{self.version}.log"
        result = subprocess.run(
            ["unshare", *spaces, "bash", "-euo", "pipefail", "-c", "\n".join(lines)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        with log.open("a") as file:
            file.write(f"$ {script}\n{result.stdout}\n")
        took = time.monotonic() - begun
        what = " && ".join(script.strip().split("\n"))
        note(f"Debian {self.version}: {what[:100]} ({took:.0f} s)")
        if (result.returncode != 0) != fails:
            tail = "\n".join(result.stdout.splitlines()[-30:])
            raise Failure(
                f"Debian {self.version}: `{script}` ended with {result.returncode}:\n{tail}"
            )
        return result.stdout


#: How the quick form compiles: the same commands, without optimising.
BUILD: dict[str, str] = {}
QUICK = {"CARGO_PROFILE_RELEASE_OPT_LEVEL": "0", "CARGO_PROFILE_RELEASE_LTO": "off",
         "CARGO_PROFILE_RELEASE_CODEGEN_UNITS": "16"}  # fmt: skip


def note(line: str) -> None:
    """Say how far it is."""
    print(f"bare: {line}", flush=True)


def host(command: list[str], cwd: Path | None = None) -> str:
    """Run a command of the host, which has to succeed."""
    result = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        said = (result.stderr or result.stdout).strip().splitlines()[-8:]
        raise Failure(f"{shlex.join(command)} ended with {result.returncode}: " + "\n".join(said))
    return result.stdout


def host_apt() -> list[str]:
    """How this machine reaches its mirror: proxies and the like."""
    dump = host(["apt-config", "dump"])
    return [line for line in dump.splitlines() if re.match(r"Acquire::(Check|https?::Proxy)", line)]


def readme_lines() -> list[str]:
    """The commands in README.md's blocks, without what is said beside them."""
    commands = []
    language: str | None = None
    for line in (HERE / "README.md").read_text().splitlines():
        if line.startswith("```"):
            language = line[3:].strip() if language is None else None
        elif language in {"", "console", "sh", "bash"}:
            command = line.removeprefix("$ ").removeprefix("sudo ")
            command = re.split(r"\s{2,}|\s+#", command)[0]
            command = re.sub(r"^(target/release/)?shortlane ", "shortlane ", command)
            if re.match(r"(make|shortlane|pip|cargo|scripts/\S+) [-\w.]", command):
                commands.append(command)
    return list(dict.fromkeys(commands))


def on_a_link(lines: list[str]) -> list[str]:
    """Those of README's lines that are for a device, in an order that works, on eth0."""
    found = []
    for verb, usual in ON_A_LINK.items():
        line = re.compile(rf"shortlane {verb} [a-z]+\d*( -|$)")
        mine = next(filter(line.match, lines), f"shortlane {verb} eth0 {usual}".strip())
        found.append(re.sub(rf"({verb}) \w+", r"\1 eth0", mine))
    return found


def check_readme(lines: list[str]) -> None:
    """Every command of README.md is run here, or somebody has said where it is."""
    here = ["make run", "make build", "pip install ."]
    for line in lines:
        known = (
            line in here
            or line.split()[1] in ON_A_LINK
            or any(re.match(e, line) for e in ELSEWHERE)
        )
        if not known:
            raise Failure(
                f"README.md has `{line}`, which scripts/test-bare.py neither runs nor knows"
            )


def built(system: System, lines: list[str]) -> None:
    """Set-up and build on a system with nothing, and what came out on a link."""
    said = system.run("make build")
    if "WITHOUT the engines" in said:
        raise Failure(f"Debian {system.version}: " + said.splitlines()[-1])
    version = system.run("target/release/shortlane --version")
    if "engines: kernel, userspace, bridge" not in version:
        raise Failure(f"Debian {system.version}: --version says {version!r}")
    commands = on_a_link(lines)
    script = "\n".join(["PATH=/src/target/release:$PATH", *map(tolerant, commands), "echo done"])
    used(system, system.run(script, link=True))


def tolerant(command: str) -> str:
    """A doctor that finds something on a veth without a network behind it has worked."""
    return f"{command} || [ $? -eq 1 ]" if " doctor" in command else command


def used(system: System, said: str) -> None:
    """What `attach`, `show` and `doctor` have said."""
    for words in ("userspace engine", "eth0", "done"):
        if words not in said:
            raise Failure(f"Debian {system.version}: no '{words}' in:\n{said}")


def whole(system: System) -> None:
    """The lab, the Python package, and faults."""
    system.run(
        "target/release/shortlane lab --quick --scheduler efd > /tmp/lab\ngrep -q efd /tmp/lab"
    )
    system.run(
        "apt-get -qq install -y --no-install-recommends python3 python3-venv > /dev/null 2>&1"
    )
    system.run(
        "python3 -m venv /venv\n/venv/bin/pip install -q .\n"
        "cd /tmp && /venv/bin/python -c 'import shortlane; print(shortlane.simulate)'\n"
        "/venv/bin/shortlane --version | grep 'engines: kernel, userspace, bridge'"
    )


def packages(system: System, lines: list[str]) -> None:
    """What `make packages` has made, on a system that has never seen a compiler."""
    system.make()
    made = HERE / "target" / "packages"
    for kind in ("*.deb", "*.whl", "shortlane-*-linux-*"):
        (file,) = made.glob(kind)
        shutil.copy(file, system.root / "root")
    host(["sha256sum", "--check", "--quiet", "SHA256SUMS"], cwd=made)
    (package,) = map(str, made.glob("*.deb"))
    host(["lintian", "--allow-root", "--fail-on", "error", package])
    on_link = [tolerant(command) for command in on_a_link(lines)]

    # The one file: where there is nothing else at all, and as a command.
    system.run("install -D /root/shortlane-*-linux-* /empty/shortlane")
    for arguments in ("--version", "list", "sim --list"):
        system.run(f"chroot /empty /shortlane {arguments}")
    script = ['shortlane() { /empty/shortlane "$@"; }', *on_link, "echo done"]
    used(system, system.run("\n".join(script), link=True))

    # The Debian package: installed, used, upgraded, removed for good.
    files = (
        "find /etc /usr /lib /opt /srv /var -xdev -not -path '/opt/rust*' -not -path '/var/log/*'"
        " -not -path '/var/cache/*' -not -path '/var/lib/apt/*' -not -path '/var/lib/dpkg/*' | sort"
    )
    install = "apt-get -qq install -y --no-install-recommends"
    system.run("apt-get -qq update && apt-get -qq install -y libc6 > /dev/null")
    before = system.run(files)
    system.run(f"{install} /root/shortlane_*.deb > /dev/null")
    used(system, system.run("\n".join([*on_link, "echo done"]), link=True))
    system.run("test -s /usr/share/man/man1/shortlane.1.gz || grep -q man /etc/dpkg/dpkg.cfg.d/*")
    system.run("test -s /usr/lib/systemd/system/shortlane@.service")
    system.run("echo '# mine' >> /etc/shortlane.toml")
    system.run(
        "dpkg-deb -R /root/shortlane_*.deb /root/next\n"
        "sed -i 's/^Version: .*/&+next/' /root/next/DEBIAN/control\n"
        "dpkg-deb -Znone -b /root/next /root/next.deb > /dev/null\n"
        f"{install} /root/next.deb > /dev/null\n"
        "dpkg-query -W shortlane | grep -q '+next$'\n"
        "grep -q '# mine' /etc/shortlane.toml"
    )
    said = system.run(
        "shortlane attach eth0 --rate 20mbit\n"
        "apt-get -qq purge -y shortlane > /dev/null\n"
        "/empty/shortlane show 2>&1 || true",
        link=True,
    )
    if "nothing is attached" not in said:
        raise Failure(f"Debian {system.version}: the package was removed and left:\n{said}")
    system.run("apt-get -qq autoremove -y > /dev/null")
    left = sorted(set(system.run(files).splitlines()) - set(before.splitlines()))
    left = [path for path in left if "/libgcc" not in path and "/gcc-" not in path]
    if left:
        raise Failure(f"Debian {system.version}: the package has left {', '.join(left[:5])}")

    # Its services, in a systemd of its own.
    system.run(f"{install} systemd iproute2 /root/shortlane_*.deb > /dev/null 2>&1")
    said = host([str(HERE / "scripts" / "test-systemd-boot.sh"), "--in", str(system.root)])
    if "all worked" not in said:
        raise Failure(f"Debian {system.version}: systemd was not tried:\n{said}")
    note(f"Debian {system.version}: its systemd starts, restarts and stops the services")

    # The wheel, which brings its libraries along.
    if not list((system.root / "root").glob("shortlane-*manylinux*.whl")):
        raise Failure("the wheel's name does not say manylinux")
    system.run(
        "apt-get -qq install -y --no-install-recommends python3 python3-venv > /dev/null 2>&1"
    )
    system.run(
        "python3 -m venv /venv\n/venv/bin/pip install -q /root/shortlane-*.whl\ncd /tmp\n"
        "/venv/bin/python -c 'import shortlane; print(shortlane.simulate)'\n"
        "/venv/bin/shortlane --version | grep 'engines: kernel, userspace, bridge'"
    )


def guest(system: System) -> None:
    """From nothing to marks and back, with Debian's own kernel, by what docs/operators says."""
    system.make()
    install = "apt-get -qq install -y --no-install-recommends iproute2"
    system.run(f"apt-get -qq update && {install} > /dev/null 2>&1")
    (package,) = map(str, (HERE / "target" / "packages").glob("*.deb"))
    script = str(HERE / "scripts" / "test-debian-guest.sh")
    said = host([script, str(system.root), package, KERNELS[system.version]])
    done = re.search("from nothing to marks and back: .*", said)
    if done is None:
        raise Failure(f"Debian {system.version}: its own kernel was not tried:\n{said}")
    note(done[0])


def without_clang(system: System) -> None:
    """Where only a C compiler can be had the build says so, and every command is there."""
    system.make()
    system.run(
        "(apt-get -qq update && apt-get -qq install -y --no-install-recommends gcc libc6-dev)"
        " > /dev/null 2>&1"
    )
    last = system.run("make build", offline=True).splitlines()[-1]
    if not last.startswith("built WITHOUT the engines of attach, for lack of clang 16 or newer"):
        raise Failure(f"Debian {system.version}: the build ended with: {last}")
    said = system.run("target/release/shortlane attach lo --rate 10mbit", fails=True)
    if "scripts/setup.sh bpf" not in said:
        raise Failure(f"Debian {system.version}: attach says {said}")
    said = system.run("target/release/shortlane doctor", fails=True)
    if not said.startswith("PROBLEM engines"):
        raise Failure(f"Debian {system.version}: doctor says {said}")


def main() -> None:
    """Run what was asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--quick", action="store_true", help="set-up, build, attach, doctor, detach"
    )
    parser.add_argument(
        "--packages",
        action="store_true",
        help="only what is in target/packages, installed and used",
    )
    parser.add_argument(
        "--guests",
        action="store_true",
        help="only the Debian package in target/packages, on Debian's own kernels",
    )
    parser.add_argument("--only", choices=SUITES, help="one system instead of both")
    parser.add_argument(
        "--fresh", action="store_true", help="forget bare systems and packages of earlier runs"
    )
    options = parser.parse_args()
    spaces = ["unshare", "--mount", "--pid", "--fork", "--uts", "--ipc", "--net", "true"]
    if os.geteuid() != 0 or subprocess.run(spaces, capture_output=True, check=False).returncode:
        print("SKIPPED: bare systems take root and namespaces", file=sys.stderr)
        return
    if options.fresh:
        shutil.rmtree(WORK, ignore_errors=True)
    WORK.mkdir(parents=True, exist_ok=True)
    lines = readme_lines()
    systems = [System(version) for version in SUITES if options.only in (None, version)]
    try:
        host([str(HERE / "scripts" / "setup.sh"), "bare"])
        if not options.quick and not options.packages:
            host([str(HERE / "scripts" / "setup.sh"), "kernel"])
        check_readme(lines)
        BUILD.update(QUICK if options.quick else {})
        if not options.quick and not options.packages and not options.guests:
            host(["make", "packages"], cwd=HERE)
        for system in systems:
            if options.guests:
                guest(system)
                continue
            if options.packages:
                packages(system, lines)
                continue
            system.make()
            built(system, lines)
            if not options.quick:
                whole(system)
                packages(system, lines)
                guest(system)
        if not options.quick and not options.packages and not options.guests:
            BUILD.update(QUICK)
            without_clang(systems[0])
    except Failure as failure:
        sys.exit(f"test-bare: {failure}")
    for system in systems:
        shutil.rmtree(system.root, ignore_errors=True)
    print(f"{len(systems)} bare systems: all worked")


main()

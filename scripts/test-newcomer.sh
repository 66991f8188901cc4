#!/usr/bin/env bash
# A new discipline is one file, the line that declares it and its line in the registry: puts one of at most 80
# lines into a copy of the tree, and asserts that everything has it that has disciplines: the commands, a real
# link, Python, reports, the manual, the conformance suite, the fuzzers, the benchmarks; and that the suite asks
# for what its author owes: a sequence worked out by hand, and a page. Without root, not a link.
set -euo pipefail
cd "$(dirname "$0")/.."
readonly NEW=scripts/newcomer
readonly COPY=$PWD/target/newcomer
PATH=$PWD/.venv/bin:$PATH
# Third-party crates are compiled there already.
CARGO_TARGET_DIR=$(realpath "${CARGO_TARGET_DIR:-target}")
export CARGO_TARGET_DIR
# Cargo takes crates of the copy for those of the tree, which are at the same place in it: a later build there
# would keep them, whatever has changed.
tree=$PWD/Cargo.toml
forget() {
	local packages
	mapfile -t packages < <(cargo metadata --manifest-path "$tree" --no-deps --format-version 1 |
		python3 -c 'import json, sys; [print(one["name"]) for one in json.load(sys.stdin)["packages"]]')
	cargo clean --quiet --manifest-path "$tree" "${packages[@]/#/--package=}"
}
trap forget EXIT
features=()
[ -z "$(scripts/setup.sh lacks)" ] || features=(--no-default-features)

lines=$(wc -l < $NEW/lifo.rs)
[ "$lines" -le 80 ] || { echo "$NEW/lifo.rs has $lines lines; 80 are accepted" >&2; exit 1; }

rm -rf "$COPY"
mkdir -p "$COPY"
git ls-files -z | tar --null --files-from=- --create | tar --extract --directory "$COPY"
cd "$COPY"
cp "$OLDPWD/$NEW/lifo.rs" crates/sched/src/disciplines/lifo.rs
sed -i 's/^pub(crate) mod fq_codel;/&\npub(crate) mod lifo;/' crates/sched/src/disciplines/mod.rs
sed -i 's/^    fifo::Fifo,/&\n    crate::disciplines::lifo::Lifo,/' crates/sched/src/registry.rs

fails() { # what, what its output has, the command
	local what=$1 expected=$2
	shift 2
	if "$@" > failure.log 2>&1; then echo "$what passes, and should ask for it" >&2; exit 1; fi
	grep -q -- "$expected" failure.log || { echo "$what fails with something else:" >&2; tail -30 failure.log >&2; exit 1; }
	echo "ok: $what asks for it"
}
has() { # what, what its output has, the command
	local what=$1 expected=$2
	shift 2
	"$@" > output.log 2>&1 || { echo "$what fails:" >&2; tail -30 output.log >&2; exit 1; }
	grep -q -- "$expected" output.log || { echo "$what lacks $expected:" >&2; tail -30 output.log >&2; exit 1; }
	echo "ok: $what"
}
tests() { cargo test --locked "$@"; }

# What its author owes.
fails "a sequence worked out by hand" "lifo has none" tests --package shortlane-conformance --test golden
sed -i 's/^fn fifo() {/&\n    golden("lifo:limit=2packets", "+A +B +A!A2 >B1 >A1 >-");/' crates/conformance/tests/golden.rs
fails "a page" "UPDATE_DOCS=1 begins a page" tests --package shortlane "${features[@]}" --test docs
fails "a page that somebody has written" "lifo.md has an empty section" \
	env UPDATE_DOCS=1 cargo test --locked --package shortlane "${features[@]}" --test docs
sed -i 's/(to be written)/Written by hand./' docs/disciplines/lifo.md
has "the documentation" "test result: ok" tests --package shortlane "${features[@]}" --test docs

# What the suite does for it.
has "that sequence" "test fifo ... ok" tests --package shortlane-conformance --test golden
has "the invariants" "test result: ok" tests --package shortlane-conformance --test generic
has "the corpus, whose cases are what they were" "test result: ok. 2 passed" tests --package shortlane-conformance --test corpus
has "the labels of the fuzzers" "test result: ok" tests --package shortlane-conformance --lib label
has "the benchmarks" "lifo" tests --package shortlane-sched --bench disciplines -- lifo

# What its users see.
cargo build --quiet --locked --package shortlane "${features[@]}"
shortlane=$CARGO_TARGET_DIR/debug/shortlane
has "shortlane list" "last in, first out" "$shortlane" list lifo
"$shortlane" man manual > /dev/null 2>&1
has "the manual" "lifo" cat manual/shortlane-list.1
has "shortlane sim" "lifo" "$shortlane" sim home-link --duration 12s --seeds 1 --scheduler lifo --out results
python3 - <<-'END'
	import struct
	with open("capture.pcap", "wb") as file:
	    file.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1))
	    for at in range(200):
	        udp = struct.pack(">HHHH", 5000 + at % 7, 53, 1008, 0) + bytes(1000)
	        ip = struct.pack(">BBHHHBBH4s4s", 69, 0, 1028, at, 0, 64, 17, 0, b"\x0a\x00\x00\x01", b"\x0a\x00\x00\x02")
	        frame = bytes(12) + b"\x08\x00" + ip + udp
	        file.write(struct.pack("<IIII", 1, at * 500, len(frame), len(frame)) + frame)
END
has "shortlane replay" "lifo" "$shortlane" replay capture.pcap --rate 10mbit --scheduler lifo
has "shortlane lab" "lifo" "$shortlane" lab --duration 6s --scheduler lifo
if [ "$(id -u)" -eq 0 ] && [ "${#features[@]}" -eq 0 ]; then
	cat > link.sh <<-'END'
		set -e
		mount -t tmpfs none /run
		ip link set lo up
		ip link add eth0 type veth peer name far
		ip link set eth0 up
		ip link set far up
		"$1" attach eth0 --rate 20mbit --scheduler lifo
		"$1" show eth0
		"$1" detach eth0
	END
	has "shortlane attach" "lifo" unshare --net --mount sh link.sh "$shortlane"
else
	echo "SKIPPED: a real link takes root, clang and libelf" >&2
fi

# Python.
cargo build --quiet --locked --package shortlane-python "${features[@]}"
install -m 755 "$CARGO_TARGET_DIR/debug/lib_native.so" python/shortlane/_native.abi3.so
export PYTHONPATH=$PWD/python
cat > try.py <<-'END'
	from shortlane.disciplines import Lifo
	from shortlane.figures.style import looks

	lifo = Lifo(limit=2)
	for size in (100, 200):
	    lifo.enqueue(flow=size, size=size)
	assert lifo.dequeue().size == 200
	assert looks(["fifo", "lifo"])["lifo"] != looks(["fifo", "lifo"])["fifo"]
	print("worked")
END
has "Python and its figures" worked python3 try.py
scripts/python-definitions.py
has "the types of Python" "Lifo" cat python/shortlane/disciplines.pyi
python3 -m shortlane report results > /dev/null
has "the report" "lifo" cat results/report.html

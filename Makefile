# The two commands are `make run` and `make test`; CI calls the same targets.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.NOTPARALLEL:

CARGO ?= cargo
# Options for `make run`, such as LAB="--tcp bbr --duration 5min".
LAB ?=
# Options for the picture of the README, such as PICTURE="--only fifo,fq-codel,efd,fq-lanes".
PICTURE ?=
FUZZ_SECONDS ?= 60
FUZZ_EXECUTIONS ?= 1e9
# Packets of `make soak`.
PACKETS ?= 300000000
# Which kernels `make kernel-test` and `make bench-kernel` boot (`validation/kernel/vm.py list` names
# them), and which tests of validation/kernel/guest run in each, in a machine of its own.
KERNELS ?= oldest newest
KERNEL_TESTS ?= smoke proof framing probes attach leak change misuse removal unload memory register killed flood mq marks proof-marks
# These run on a counted clock, which a busy machine does not disturb.
KERNEL_COUNTED_TESTS ?= live bench lab suite ecn nat queues
# Marks take no BPF qdisc: which older kernels `make kernel-test-older` boots for them, and which tests
# run in each.
MARKS_KERNELS ?= 6.1 6.12
MARKS_TESTS ?= marks proof-marks
# What `make bench-kernel` runs: files of scenarios/kernel, their seeds, and what they go through.
WORKLOADS ?= $(patsubst scenarios/kernel/%.toml,%,$(wildcard scenarios/kernel/*.toml))
SEEDS ?= 1..3
BENCHED ?= kernel:fq_codel kernel:cake fq-lanes marks:cake marks:prio
GUEST := validation/kernel/guest
VM_RUN = validation/kernel/vm.py run $(KERNELS:%=--kernel %)
# Compiled for development: what is timed is the kernel's work, and it builds in a fraction of the time.
VM_PROGRAMS = --program $(TARGET)/debug/kernel-guest --program $(TARGET)/debug/shortlane
VM_TEST = $(VM_RUN) $(VM_PROGRAMS)
# The engines of `attach` are built in unless there is no clang or libelf to compile them with. Set-up,
# which installs these, is a target of its own: all lines of a recipe are read before the first runs.
FEATURES = $(if $(shell scripts/setup.sh lacks),--no-default-features)
# What the released program says it was built from.
COMMIT = $(shell git describe --always --dirty --abbrev=10 --exclude='*' 2> /dev/null)
KERNEL_CRATES := --package shortlane --package shortlane-kernel-guest
# Options for `make papers` and `make papers-quick`, such as PAPERS="--jobs 1 --rows A-F2,B-T1b".
PAPERS ?=
# Rows of `make papers-quick` that `make test-all` runs: those of few runs, from every paper.
PAPERS_PART := A-F6,B-F7a,C-TOY,C-TOY2,D-F2a,D-F2b,E-T1a,F-4
# Options for `make validate-ns3`.
NS3 ?=
NS3_LIBRARIES := traffic-control point-to-point internet network core
C_SOURCES = $(shell git ls-files '*.c' '*.h')
SHELL_SCRIPTS := $(wildcard scripts/*.sh packaging/*.sh scenarios/queues/*.sh) .ci/run .ci/skipped $(GUEST)/init $(GUEST)/probe.sh validation/kernel/bench.sh
TARGET := $(or $(CARGO_TARGET_DIR),target)
# Kinds of qdisc that `tc` gets options for.
TC_KINDS := fql efd run2c xprot sift sb sb_ko sb_sh lanes fifo
TC_PLUGINS := $(TC_KINDS:%=$(TARGET)/tc/q_shortlane_%.so)
# Where guests have them.
GUEST_TC := /usr/lib/shortlane-tc
# How the Python package is compiled by `make wheel`: release or dev.
PROFILE ?= release
WHEELS := target/wheels$(if $(filter-out release,$(PROFILE)),/$(PROFILE))
HOST := $(shell rustc -vV 2> /dev/null | sed -n 's/^host: //p')
# Options of `make test-bare`, such as BARE="--quick --only 13".
BARE ?=
# What is handed out brings its libraries along, and says which systems it fits.
WHEEL_FEATURES = $(if $(filter-out release,$(PROFILE)),$(FEATURES),--features vendored)
WHEEL_OPTIONS = $(WHEEL_FEATURES) $(if $(filter-out release,$(PROFILE)),--auditwheel skip)
PYTHON_SOURCES := python papers scripts bench validation

# Where `make install` puts everything, below DESTDIR if that is given.
PREFIX ?= /usr/local
DESTDIR ?=
# What goes where, by `make install` and `make uninstall`.
INSTALLED_PROGRAM := $(PREFIX)/bin/shortlane
INSTALLED_MAN := $(PREFIX)/share/man/man1
INSTALLED_BASH := $(PREFIX)/share/bash-completion/completions/shortlane
INSTALLED_ZSH := $(PREFIX)/share/zsh/site-functions/_shortlane
INSTALLED_FISH := $(PREFIX)/share/fish/vendor_completions.d/shortlane.fish
INSTALLED_UNITS := $(PREFIX)/lib/systemd/system
INSTALLED_EXAMPLE := $(PREFIX)/share/doc/shortlane/shortlane.toml
INSTALLED_DASHBOARD := $(PREFIX)/share/shortlane/grafana/shortlane.json
INSTALLED_ALERTS := $(PREFIX)/share/shortlane/prometheus/shortlane.rules.yml
UNITS := shortlane@.service shortlane-metrics.service

# Tools that setup.sh installed are in .venv; a shell from before rustup's time misses its directory.
export PATH := $(CURDIR)/.venv/bin:$(PATH):$(HOME)/.cargo/bin

.PHONY: help
help: ## Say what there is
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "make %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: run
run: build ## Set up, build, and run the lab: about two minutes (LAB="..." adds options)
	$(TARGET)/release/shortlane lab $(LAB)

.PHONY: setup setup-%
setup:
	@scripts/setup.sh
setup-%:
	@scripts/setup.sh $*

.PHONY: build
build: setup ## Set up and build the program with everything in it, target/release/shortlane
	SHORTLANE_COMMIT=$(COMMIT) $(CARGO) build --locked --release --package shortlane $(FEATURES) || \
		{ scripts/setup.sh why; false; }
	@lacks=$$(scripts/setup.sh lacks); [ -z "$$lacks" ] || \
		echo "built WITHOUT the engines of attach, for lack of $$lacks: \`scripts/setup.sh bpf\` installs" \
			"what can be had, and \`make build\` then builds them" >&2

# The random cases of property tests: `make test` draws the same ones everywhere, so that a failure is the
# change's own; `make test-random` draws others.
CASES ?= 2026

.PHONY: test
test: export PROPTEST_RNG_SEED = $(CASES)
test: setup-test setup-python ## Set up and check everything: format, lints, all tests, documentation
	scripts/test-setup.sh
	scripts/test-skipped.sh
	scripts/test-faults.sh
	ruff check $(PYTHON_SOURCES)
	ruff format --check $(PYTHON_SOURCES)
	$(CARGO) fmt --all --check
	$(CARGO) clippy --locked --workspace --all-targets $(FEATURES) -- -D warnings
	$(CARGO) test --locked --workspace $(FEATURES)
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --locked --workspace --no-deps $(FEATURES)
	scripts/purity.sh
	$(MAKE) --no-print-directory python
	mypy
	python3 -m pytest -m "not long"

.PHONY: test-random
test-random: setup-test ## Property tests with cases that nobody has seen yet (CASES="..." repeats them)
	cases=$(if $(filter file,$(origin CASES)),$$(date +%s),$(CASES)); echo "CASES=$$cases"; \
	PROPTEST_RNG_SEED=$$cases PROPTEST_CASES=6000 CONFORMANCE_EFFORT=10 $(CARGO) test --locked \
		--package shortlane-conformance --package shortlane-tcp --package shortlane-sim

.PHONY: test-features
test-features: setup-test ## The program as a machine without clang builds it: what `attach` and `doctor` say there
	$(CARGO) clippy --locked --package shortlane --no-default-features --all-targets -- -D warnings
	$(CARGO) test --locked --package shortlane --no-default-features --test attach

.PHONY: man
man: build ## Man pages of all commands: target/man
	$(TARGET)/release/shortlane man $(TARGET)/man

.PHONY: completions
completions: build ## Completions for bash, zsh and fish: target/completions
	@mkdir -p $(TARGET)/completions
	for shell in bash zsh fish; do \
		$(TARGET)/release/shortlane completions $$shell > $(TARGET)/completions/$$shell; \
	done

.PHONY: install
install: build install-built ## Install program, man pages, completions, systemd units, dashboard and alerts (PREFIX=/usr/local DESTDIR=)

# What the program that is there says of itself, and where it all goes.
.PHONY: install-built
install-built:
	$(TARGET)/release/shortlane man $(TARGET)/man
	@mkdir -p $(TARGET)/completions
	for shell in bash zsh fish; do \
		$(TARGET)/release/shortlane completions $$shell > $(TARGET)/completions/$$shell; \
	done
	install -D -m 755 $(TARGET)/release/shortlane $(DESTDIR)$(INSTALLED_PROGRAM)
	install -d $(DESTDIR)$(INSTALLED_MAN) $(DESTDIR)$(INSTALLED_UNITS)
	install -m 644 $(TARGET)/man/shortlane*.1 $(DESTDIR)$(INSTALLED_MAN)
	install -D -m 644 $(TARGET)/completions/bash $(DESTDIR)$(INSTALLED_BASH)
	install -D -m 644 $(TARGET)/completions/zsh $(DESTDIR)$(INSTALLED_ZSH)
	install -D -m 644 $(TARGET)/completions/fish $(DESTDIR)$(INSTALLED_FISH)
	for unit in $(UNITS); do \
		sed 's#=/usr/bin/#=$(PREFIX)/bin/#' packaging/systemd/$$unit > $(DESTDIR)$(INSTALLED_UNITS)/$$unit; \
	done
	install -D -m 644 packaging/shortlane.toml $(DESTDIR)$(INSTALLED_EXAMPLE)
	install -D -m 644 packaging/grafana/shortlane.json $(DESTDIR)$(INSTALLED_DASHBOARD)
	install -D -m 644 packaging/prometheus/shortlane.rules.yml $(DESTDIR)$(INSTALLED_ALERTS)

.PHONY: uninstall
uninstall: ## Remove what `make install` has installed; /etc/shortlane.toml stays (PREFIX, DESTDIR)
	rm -f $(addprefix $(DESTDIR),$(INSTALLED_PROGRAM) $(INSTALLED_MAN)/shortlane.1 $(INSTALLED_MAN)/shortlane-*.1 \
		$(INSTALLED_BASH) $(INSTALLED_ZSH) $(INSTALLED_FISH) $(INSTALLED_EXAMPLE) \
		$(INSTALLED_DASHBOARD) $(INSTALLED_ALERTS) \
		$(UNITS:%=$(INSTALLED_UNITS)/%))

.PHONY: docs
docs: setup-python ## The documentation as a site, strict about links: target/site (python3 -m http.server -d target/site)
	python3 scripts/docs.py

.PHONY: deb
deb: setup-package ## A Debian package, with libelf and zlib built in: target/packages
	SHORTLANE_COMMIT=$(COMMIT) $(CARGO) build --locked --release --package shortlane --features vendored
	rm -rf target/packages/deb
	$(MAKE) --no-print-directory install-built PREFIX=/usr DESTDIR=$(CURDIR)/target/packages/deb
	packaging/deb.sh target/packages/deb target/packages
	rm -rf target/packages/deb

.PHONY: static
static: setup-package ## The program as one file that needs no library of the system: target/packages
	SHORTLANE_COMMIT=$(COMMIT) RUSTFLAGS="-C target-feature=+crt-static" $(CARGO) build --locked --release \
		--target $(HOST) --package shortlane --features vendored
	install -D -s -m 755 $(TARGET)/$(HOST)/release/shortlane target/packages/static.partial
	mv target/packages/static.partial target/packages/shortlane-$(HOST)

.PHONY: packages
packages: ## Everything that is handed out, with checksums: target/packages
	rm -rf target/packages
	$(MAKE) --no-print-directory deb static wheel
	mv $(WHEELS)/*.whl target/packages/
	cd target/packages && sha256sum *.deb *.whl shortlane-$(HOST) > sums.partial && mv sums.partial SHA256SUMS

.PHONY: test-bare
test-bare: ## README's lines and the packages on Debian 12 and 13 with nothing installed (BARE=--quick)
	scripts/test-bare.py $(BARE)

.PHONY: test-killed
test-killed: setup ## Kill commands and engine at every system call, and have every call fail that can (KILLED_STEP=1)
	KILLED_STEP=$(or $(KILLED_STEP),1) $(CARGO) test --locked --package shortlane $(FEATURES) --test userspace killed:: -- \
		--nocapture --test-threads 20

# What the emulator takes for one run is seconds: one call in ten, and all that have an effect.
.PHONY: test-killed-kernel
test-killed-kernel: kernel-guest ## The same for `register` and the kernel engine, in QEMU (KILLED_STEP=10)
	KILLED_STEP=$(or $(KILLED_STEP),10) KILLED_EFFECTS=1 TIMEOUT=14400 CARGO="$(CARGO)" \
		scripts/test-older-kernel.sh newest killed::kernel

.PHONY: test-prometheus
test-prometheus: setup ## A real Prometheus scrapes the metrics, and answers the dashboard's queries; skipped where none can be had
	$(CARGO) build --locked --package shortlane $(FEATURES)
	scripts/test-prometheus.sh $(TARGET)/debug/shortlane

.PHONY: test-operators
test-operators: setup-operators ## Every command of docs/operators, the systemd units in a systemd of their own, the dashboard's queries
	$(CARGO) build --locked --package shortlane $(FEATURES)
	scripts/test-systemd.sh $(TARGET)/debug/shortlane
	scripts/test-operators.sh $(TARGET)/debug/shortlane
	scripts/test-prometheus.sh $(TARGET)/debug/shortlane
	$(CARGO) test --locked --package shortlane $(FEATURES) --test latency -- --include-ignored --test-threads 1

.PHONY: picture
picture: build python ## The picture of the README, from a new run of the lab (LAB="...", PICTURE="...")
	@mkdir -p $(TARGET)/picture
	$(TARGET)/release/shortlane lab --json $(LAB) > $(TARGET)/picture/lab.json
	PYTHONPATH=python scripts/picture.py $(TARGET)/picture/lab.json $(PICTURE)

.PHONY: python
python: setup ## Compile the Python package's extension, into python/shortlane; then PYTHONPATH=python
	$(CARGO) build --locked --package shortlane-python $(FEATURES)
	install -m 755 $(TARGET)/debug/lib_native.so python/shortlane/_native.abi3.so
	scripts/python-definitions.py

.PHONY: python-release
python-release: setup-python
	$(CARGO) build --locked --release --package shortlane-python $(FEATURES)
	install -m 755 $(TARGET)/release/lib_native.so python/shortlane/_native.abi3.so
	scripts/python-definitions.py

.PHONY: wheel
wheel: setup-python setup-package ## The Python package as a wheel, for every Python from 3.11 on: target/wheels
	@rm -f $(WHEELS)/*.whl
	SHORTLANE_COMMIT=$(COMMIT) $(CARGO) build --locked --profile $(PROFILE) --package shortlane-python $(WHEEL_FEATURES)
	install -m 755 $(TARGET)/$(if $(filter-out release,$(PROFILE)),debug,release)/lib_native.so python/shortlane/_native.abi3.so
	scripts/python-definitions.py
	SHORTLANE_COMMIT=$(COMMIT) maturin build --locked $(WHEEL_OPTIONS) --profile $(PROFILE) --out $(WHEELS)/partial
	mv $(WHEELS)/partial/*.whl $(WHEELS)/

.PHONY: test-all
test-all: test lint test-random test-long test-newcomer test-features test-toolchains test-bare docs fuzz mutants prove loom papers-part kernel-test kernel-test-older test-killed test-killed-kernel test-operators test-states ## `make test` and what takes longer: licences, fuzzing, mutants, kernels

# The parts of `make test-ci`, those first that CI should miss least: .ci/run starts none of them late.
TEST_CI := prove loom kernel-test-quick kernel-test-older-quick papers-part test-long test-bare-quick test-operators docs test-toolchains test-features test-newcomer

.PHONY: test-ci
test-ci: $(TEST_CI) ## What CI runs besides `make test` and `make lint`: docs/testing.md

.PHONY: print-test-ci
print-test-ci:
	@echo $(TEST_CI)

.PHONY: kernel-test-quick
kernel-test-quick:
	SHORTLANE_KERNEL_MISSING=$(or $(SHORTLANE_KERNEL_MISSING),skip) $(MAKE) --no-print-directory kernel-test \
		KERNEL_TESTS='smoke "proof --sequences 300"' KERNEL_COUNTED_TESTS='"nat sent" "queues place hosts" "suite mild"'

.PHONY: kernel-test-older-quick
kernel-test-older-quick:
	KILLED_STEP=1500 SHORTLANE_KERNEL_MISSING=$(or $(SHORTLANE_KERNEL_MISSING),skip) $(MAKE) --no-print-directory kernel-test-older \
		MARKS_TESTS='"marks made joined others" "proof-marks --sequences 300"'

.PHONY: test-long
test-long: python setup-python ## Tests of the Python package that take long: clusters, browser, notebooks, wheel
	python3 -m pytest -m long

.PHONY: test-newcomer
test-newcomer: setup-test setup-python ## A new discipline is one file and two lines: in a copy of the tree, on every surface
	scripts/test-newcomer.sh

.PHONY: test-toolchains
test-toolchains: setup-toolchains ## The oldest Rust, a target without a system, crates as packages, features, the fuzzers
	scripts/test-toolchains.sh

.PHONY: test-bare-quick
test-bare-quick:
	$(MAKE) --no-print-directory test-bare BARE=--quick

.PHONY: mutants
mutants: setup ## Break the rules of the disciplines one by one: the suite must notice each time
	$(CARGO) run --locked --package shortlane-conformance --example mutants

.PHONY: test-states
test-states: setup ## Every state that up to nine operations lead to, of EFD, SB and fq-lanes, beside their models: docs/proofs.md
	$(CARGO) test --locked --package shortlane-conformance --test states -- --ignored --nocapture

.PHONY: prove
prove: setup-prove ## Prove the engine's C by CBMC, check the journals' model by SPIN, refute every planted fault: docs/proofs.md
	validation/prove/prove.py
	validation/prove/prove.py --planted
	validation/journal/spin.py
	validation/journal/spin.py --planted

.PHONY: loom
loom: setup ## What the userspace engine's threads share, in every order that the memory model allows: docs/proofs.md
	CARGO="$(CARGO)" validation/loom/orders.py
	CARGO="$(CARGO)" validation/loom/orders.py --planted

.PHONY: papers
papers: python-release ## A verdict on every claim of every paper; resumes: papers-results (PAPERS="...")
	PYTHONPATH=python python3 -m shortlane paper --all --no-sensitivity --out papers-results $(PAPERS)

.PHONY: papers-sensitivity
papers-sensitivity: python-release ## The same, with every variant of what the papers leave open: hours (PAPERS="...")
	PYTHONPATH=python python3 -m shortlane paper --all --out papers-results $(PAPERS)

.PHONY: papers-quick
papers-quick: python-release ## Every paper, scaled down: an indication in minutes: papers-quick (PAPERS="...")
	PYTHONPATH=python python3 -m shortlane paper --all --quick --out papers-quick $(PAPERS)

.PHONY: papers-part
papers-part: python-release
	PYTHONPATH=python python3 -m shortlane paper --all --quick --rows $(PAPERS_PART) --out target/papers-part

.PHONY: validate-theory
validate-theory: setup ## The simulator against queueing theory: writes validation/theory/RESULTS.md, 10 minutes
	$(CARGO) run --quiet --locked --release --package shortlane-theory > target/theory.md
	mv target/theory.md validation/theory/RESULTS.md

.PHONY: lint
lint: setup-lint setup-python ## Format, lints, licences and sources of dependencies, shell scripts
	$(CARGO) fmt --all --check
	$(CARGO) clippy --locked --workspace --all-targets $(FEATURES) -- -D warnings
	ruff check $(PYTHON_SOURCES)
	ruff format --check $(PYTHON_SOURCES)
	clang-format --dry-run --Werror $(C_SOURCES)
	cargo-deny --all-features --locked check bans licenses sources
	shellcheck $(SHELL_SCRIPTS)

.PHONY: bench
bench: setup-bench ## Benchmarks: disciplines, parsing and hashing, the engine
	$(CARGO) bench --locked --workspace --bench '*'

.PHONY: ablation
ablation: python ## fq-lanes with and without each of its mechanisms, simulated: writes its page and a picture, 5 minutes
	$(CARGO) build --locked --release --package shortlane
	python3 bench/fq-lanes/ablation.py --shortlane $(TARGET)/release/shortlane --into docs/disciplines/fq-lanes.md
	PYTHONPATH=python python3 bench/fq-lanes/frontier.py docs/disciplines/fq-lanes.md

.PHONY: worst-pages
worst-pages: ## The worst case of every discipline, searched for: writes their pages, 20 minutes
	$(CARGO) build --locked --release --package shortlane
	python3 bench/worst/pages.py --shortlane $(TARGET)/release/shortlane --kept $(TARGET)/worst-pages \
		--into docs/disciplines

.PHONY: worst-all
worst-all: ## Go on searching the worst case of fq-lanes until WORST_HOURS=24 of a processor are on record
	$(CARGO) build --locked --release --package shortlane
	python3 bench/worst/go_on.py --shortlane $(TARGET)/release/shortlane --record bench/worst/record.csv \
		--hours $(or $(WORST_HOURS),24)

.PHONY: suite
suite: python-release ## The scenarios after RFC 7928 in the simulator: writes tables and picture of docs/suite.md
	$(CARGO) build --locked --release --package shortlane
	python3 bench/rfc7928/suite.py --shortlane $(TARGET)/release/shortlane --into docs/suite.md
	PYTHONPATH=python python3 bench/rfc7928/ellipses.py --shortlane $(TARGET)/release/shortlane --out docs/suite.svg

# What `make suite-kernel` measures: files of the suite, each with the length of a block (in waves, flows
# start after 20 s), and disciplines by engine.
SUITE ?= fairness:20s aggressive:20s aggressive-bbr:20s unresponsive:20s round-trips:20s bursts:20s mild:20s \
	medium:20s heavy:20s waves:40s varying:20s mix:20s both-ways:20s
SUITE_USERSPACE ?= fifo codel fq-codel cake efd las fq-lanes
SUITE_KERNEL ?= kernel:pfifo kernel:codel kernel:fq_codel kernel:cake efd fq-lanes
SUITE_RUNS := target/kernel-runs/suite

.PHONY: suite-kernel
suite-kernel: kernel-guest python ## The same by the lab's two engines in a guest, held against the simulator: docs/suite.md (SUITE="mild:50s")
	@rm -rf $(SUITE_RUNS)
	for file in $(SUITE); do \
		name=$${file%:*}; \
		for engine in userspace kernel; do \
			validation/kernel/vm.py run --kernel newest --program $(TARGET)/debug/shortlane \
				--program validation/kernel/bench.sh=bench \
				--file scenarios/rfc7928/$$name.toml=/scenarios/$$name.toml \
				--out $(SUITE_RUNS)/$$name/$$engine --icount --timeout 7200 \
				-- bench $$engine "--seeds 1 --duration $${file#*:}" \
				$$([ $$engine = kernel ] && echo "$(SUITE_KERNEL)" || echo "$(SUITE_USERSPACE)") || exit 1; \
		done; \
	done
	PYTHONPATH=python python3 bench/rfc7928/suite.py --shortlane $(TARGET)/debug/shortlane --into docs/suite.md \
		--measured $(SUITE_RUNS)/*/*/*

.PHONY: bench-lanes
bench-lanes: ## fq-lanes and fq-codel on real TCP, on 38 links: writes its page, 80 minutes
	@scripts/setup.sh python
	$(CARGO) build --locked --release --package shortlane
	python3 bench/fq-lanes/cells.py --shortlane $(TARGET)/release/shortlane --into docs/disciplines/fq-lanes.md

.PHONY: fuzz
fuzz: setup-fuzz ## Fuzz everything that reads bytes of others, from the committed corpora (FUZZ_SECONDS=60 each)
	$(CARGO) fetch --locked --manifest-path fuzz/Cargo.toml
	scripts/fuzz.py --seconds $(FUZZ_SECONDS)

.PHONY: fuzz-all
fuzz-all: setup-fuzz ## Go on fuzzing until FUZZ_EXECUTIONS=1e9 are on record in fuzz/record.csv
	$(CARGO) fetch --locked --manifest-path fuzz/Cargo.toml
	scripts/fuzz.py --until $(FUZZ_EXECUTIONS)

.PHONY: soak
soak: setup ## 300 million packets through the userspace engine: memory must not grow (PACKETS=...)
	$(CARGO) run --quiet --locked --release --package shortlane-engine --features harness \
		--example soak -- $(PACKETS)

.PHONY: validate-linux
validate-linux: setup python-release ## The simulator against this kernel's TCP, scenarios/linux in both: validation/linux/RESULTS.md, 40 minutes
	$(CARGO) build --locked --release --package shortlane
	@rm -rf target/linux
	for file in scenarios/linux/*.toml; do name=$$(basename $$file .toml); \
		for engine in sim lab; do \
			$(TARGET)/release/shortlane $$engine $$file --out target/linux/$$name/$$engine > /dev/null || exit 1; \
		done; \
	done
	PYTHONPATH=python scripts/tables.py --into validation/linux/RESULTS.md \
		$(foreach file,$(wildcard scenarios/linux/*.toml),$(file)=target/linux/$(basename $(notdir $(file)))/sim,target/linux/$(basename $(notdir $(file)))/lab)

.PHONY: validate-packetdrill
validate-packetdrill: ## Published packet-level tests of TCP, from SCRIPTS=folder: writes validation/packetdrill/RESULTS.md
	@test -n "$(SCRIPTS)" || { echo "SCRIPTS= is missing: a folder of packetdrill scripts, validation/packetdrill/README.md"; false; }
	@scripts/setup.sh
	$(CARGO) run --quiet --locked --package shortlane-packetdrill -- "$(SCRIPTS)" --into validation/packetdrill/RESULTS.md

.PHONY: sim-dumbbell
sim-dumbbell: setup
	$(CARGO) build --locked --release --package shortlane-sim --example dumbbell

.PHONY: validate-ns3
validate-ns3: sim-dumbbell target/ns3/dumbbell ## The simulator against ns-3: 10 minutes (NS3="--quick": 2)
	validation/ns3/compare.py --ns3 target/ns3/dumbbell \
		--shortlane target/release/examples/dumbbell \
		--work target/ns3/runs $(if $(NS3),$(NS3),--out validation/ns3)

.PHONY: validate-ns3-overload
validate-ns3-overload: sim-dumbbell target/ns3/dumbbell ## The same at loads of 1.5 and 2: 10 minutes on one core
	validation/ns3/compare.py --ns3 target/ns3/dumbbell \
		--shortlane target/release/examples/dumbbell \
		--work target/ns3/runs --overload --out validation/ns3 --into overload

NS3_NEWEST := $(CURDIR)/target/ns3/newest/root/usr
NS3_NEWEST_LIB = $(NS3_NEWEST)/lib/$(shell gcc -print-multiarch)

.PHONY: validate-ns3-newest
validate-ns3-newest: sim-dumbbell target/ns3/dumbbell-newest ## The quick cases against Debian's newest ns-3
	validation/ns3/compare.py --ns3 target/ns3/dumbbell-newest \
		--shortlane target/release/examples/dumbbell --work target/ns3/runs --quick \
		--out validation/ns3 --into newest \
		--release "$$(sed -n 's/^Version: //p' $(NS3_NEWEST_LIB)/pkgconfig/ns3-core.pc)"

.PHONY: validate-ns3-queues
validate-ns3-queues: target/ns3/queue ## RED, CoDel, FQ-CoDel against ns-3's on the same packets: 2 minutes
	$(CARGO) build --locked --package shortlane-sched --example behind_a_link
	validation/ns3/queues.py --ns3 target/ns3/queue --shortlane $(TARGET)/debug/examples/behind_a_link

target/ns3/%: validation/ns3/%.cc
	@scripts/setup.sh ns3
	@mkdir -p $(@D)
	g++ -std=c++17 -O2 -Wall -Wextra $< -o $@ $(NS3_LIBRARIES:%=-lns3-%)

# Linked with a C library of its own, which is newer than this system's.
target/ns3/dumbbell-newest: validation/ns3/dumbbell.cc
	@scripts/setup.sh ns3-newest
	g++ -std=c++20 -O2 -Wall -Wextra -isystem $(NS3_NEWEST)/include $< -o $@ -L$(NS3_NEWEST_LIB) \
		-Wl,--allow-shlib-undefined,--disable-new-dtags,-rpath,$(NS3_NEWEST_LIB) \
		-Wl,--dynamic-linker=$(NS3_NEWEST_LIB)/ld-linux-x86-64.so.2 $(NS3_LIBRARIES:%=-lns3-%)

.PHONY: bench-sim
bench-sim: setup-peers sim-dumbbell target/ns3/dumbbell ## The simulator's speed beside ns-3 and ns-2: ten minutes
	bench/sim/bench.py --ours target/release/examples/dumbbell --ns3 target/ns3/dumbbell \
		--work target/bench-sim --out docs/benchmarks/simulator.md

.PHONY: kernel-guest
kernel-guest: setup-kernel
	$(CARGO) build --locked $(KERNEL_CRATES)

.PHONY: kernel-test
kernel-test: kernel-guest tc-plugin ## Tests of the qdisc in real kernels, in QEMU (KERNELS="6.17 7.2" for others)
	validation/kernel/vm.py selftest
	$(VM_RUN) --program $(GUEST)/probe.sh=probe -- probe
	for test in $(KERNEL_TESTS); do \
		$(VM_TEST) $(foreach so,$(TC_PLUGINS),--file $(so)=$(GUEST_TC)/$(notdir $(so))) \
			--out "target/kernel-runs/$${test%% *}" --timeout 2400 \
			-- env TC_LIB_DIR=$(GUEST_TC) kernel-guest $$test; \
	done
	for test in $(KERNEL_COUNTED_TESTS); do \
		$(VM_TEST) --icount --out "target/kernel-runs/$${test%% *}-counted" --timeout 1200 \
			-- kernel-guest $$test; \
	done

.PHONY: kernel-test-older
kernel-test-older: kernel-guest ## The userspace engine and marks on kernels without BPF qdiscs, in QEMU: Debian 12's 6.1, Debian 13's 6.12
	CARGO="$(CARGO)" scripts/test-older-kernel.sh
	for test in $(MARKS_TESTS); do \
		validation/kernel/vm.py run $(MARKS_KERNELS:%=--kernel %) $(VM_PROGRAMS) \
			--out "target/kernel-runs/$${test%% *}" --timeout 2400 -- kernel-guest $$test; \
	done

.PHONY: kernel-test-planted
kernel-test-planted: setup-kernel ## Plant bugs in copies of the qdisc: the proof against the core must find each
	validation/kernel/planted.py

.PHONY: tc-plugin
tc-plugin: $(TC_PLUGINS) ## Options of the qdiscs for `tc`: target/tc; `make install-tc` installs it

$(TARGET)/tc/q_shortlane_%.so: crates/engine/tc/q_shortlane.c crates/engine/bpf/shortlane.h
	@mkdir -p $(@D)
	$(CC) -std=gnu11 -O2 -Wall -Wextra -Wno-missing-field-initializers -fPIC -shared \
		-DKIND=shortlane_$* $< -o $@

.PHONY: install-tc
install-tc: tc-plugin ## Install that where `tc` looks for it (TC_LIB_DIR=... for another place)
	scripts/install-tc.sh $(TC_PLUGINS)

.PHONY: bench-kernel
bench-kernel: kernel-guest python ## The qdiscs and their peers in a guest: instructions per packet, and scenarios/kernel (SEEDS=1)
	$(VM_TEST) --out target/kernel-runs/instructions --icount --timeout 3600 \
		-- kernel-guest instructions
	@rm -rf target/kernel-runs/bench
	validation/kernel/vm.py run --kernel newest $(VM_PROGRAMS) --program validation/kernel/bench.sh=bench \
		$(foreach name,$(WORKLOADS),--file scenarios/kernel/$(name).toml=/scenarios/$(name).toml) \
		--out target/kernel-runs/bench --icount --timeout 14400 -- bench kernel "--seeds $(SEEDS)" $(BENCHED)
	PYTHONPATH=python scripts/tables.py --into docs/benchmarks/kernel.md --against kernel:fq_codel,kernel:cake \
		$(foreach name,$(WORKLOADS),scenarios/kernel/$(name).toml=$$(echo target/kernel-runs/bench/*/$(name)))

# What `make bench-autorate` measures: an experiment of validation/kernel/guest/src/follow, a direction and
# the number of rounds.
FOLLOWS ?= drop-down-5 drop-up-5 radio-down-10 noise-down-3 idle-down-3 slow-down-2
PEER_FILES := cake-autorate.sh lib.sh defaults.sh
.PHONY: bench-autorate
bench-autorate: kernel-guest ## Rates that follow a link, in a guest; PEER=folder: beside that checkout of cake-autorate (needs fping)
	@$(if $(PEER),command -v fping > /dev/null || { echo "fping is missing: install it"; false; })
	for follows in $(FOLLOWS); do \
		validation/kernel/vm.py run --icount --timeout 14400 --out target/kernel-runs/follow-$$follows $(VM_PROGRAMS) \
			$(if $(PEER),$(foreach file,$(PEER_FILES),--file $(PEER)/$(file)=/peer/$(file)) --program "$$(command -v bash)" --program "$$(command -v fping)") \
			-- kernel-guest follow $${follows//-/ }; \
	done

.PHONY: clean
clean: ## Remove what was built and installed here
	$(CARGO) clean
	rm -rf .venv python/shortlane/_native.abi3.so python/shortlane/{disciplines,sections}.pyi fuzz/target crates/purity/target

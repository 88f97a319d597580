# Every target sets up what it needs and this machine lacks (scripts/setup.sh), then does its work.
# `make help` lists them.

PREFIX ?= /usr/local
# Where the demonstration makes its scratch file: on the storage that it measures.
DEMO_TARGET ?= .
# Where the demonstration leaves its files.
DEMO_OUT ?= demo
# Parts of the benchmark, such as `make bench PARTS=cpu`; all of them if empty.
PARTS ?=
# How often `make test-often` runs the tests, of each kind.
RUNS ?= 3
# What `make dist` and `make packages` build for, and the releases of Debian in whose fresh roots packages are tried, such
# as `make packages SUITES='bookworm trixie'`.
ARCHS ?= x86_64 aarch64
SUITES ?=
# How long `make fuzz` runs each target.
SECONDS ?= 60
# Its rounds and seconds, such as `ARGS='--rounds 3 --seconds 10'`.
ARGS ?=
# Where `make bench-commits` makes its servers and logs: on the storage that is tried.
FOLDER ?= target

SHELL := /bin/bash
# A toolchain that the set-up has just installed is not yet on the caller's PATH; Debian's PostgreSQL never is.
POSTGRES := $(lastword $(sort $(wildcard /usr/lib/postgresql/*/bin)))
export PATH := $(HOME)/.cargo/bin:$(PATH):/usr/local/sbin:/usr/sbin:/sbin:$(POSTGRES)
CARGO := cargo
OLDEST = $(shell sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
# What `rigel --version --verbose` says it was built from.
COMMIT = $(shell git rev-parse HEAD 2>/dev/null)
PROGRAM := target/release/rigel

# Where results land, nothing may be left out for want of a tool or a right: what would skip, fails.
ifeq ($(CI),true)
export RIGEL_REQUIRE_ALL := 1
export CARGO_TERM_COLOR := never
# Nothing is built twice there.
export CARGO_INCREMENTAL := 0
endif

.DEFAULT_GOAL := help
.PHONY: help build demo cluster-demo test test-often check-fresh fuzz lint fmt mpi oldest bench bench-searches bench-sql bench-commits \
	coverage pictures dist packages crates site test-aarch64 install clean

help: ## List the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 24

build: ## Build the program: target/release/rigel
	@scripts/setup.sh build
	RIGEL_COMMIT=$(COMMIT) $(CARGO) build --release --locked

demo: ## Build, then find out what the current disk can do, and what a database gets out of it: two minutes
	@scripts/setup.sh demo
	@echo 'demo: builds the program first: 3 minutes, if it is not there yet' >&2
	@$(MAKE) --no-print-directory build
	@scripts/demo.sh $(PROGRAM) $(DEMO_TARGET) $(DEMO_OUT)

cluster-demo: build ## Measure DEMO_TARGET from three hosts at once: namespaces of this machine, under mpiexec; needs root
	@command -v mpiexec.hydra >/dev/null || scripts/setup.sh test
	@scripts/cluster-demo.sh $(PROGRAM) $(DEMO_TARGET) $(DEMO_OUT)-cluster --scratch-size 256MiB

test: ## Every test, lint and check of the documents: what decides whether a change lands
	@scripts/setup.sh test
	$(CARGO) fmt --check
	@scripts/test.sh checks

test-often: ## Every test RUNS times (3) as the machine is, and as often with CPUs and disk kept busy: none may fail
	@scripts/setup.sh test
	@scripts/test-often.sh $(RUNS)

check-fresh: ## The README's commands in fresh roots of Debian, as root and without a terminal: ARGS='demo bookworm'
	@scripts/setup.sh fresh
	@scripts/check-fresh.sh $(ARGS)

fuzz: ## Each fuzz target for SECONDS (60), in 1 GiB of memory: PARTS='journal packed'; needs nightly and cargo-fuzz
	@scripts/fuzz.sh $(SECONDS) $(PARTS)

lint:
	@scripts/setup.sh test
	$(CARGO) fmt --check
	$(CARGO) clippy --locked --workspace --all-targets --quiet -- -D warnings
	$(CARGO) check --locked --quiet --manifest-path fuzz/Cargo.toml --target-dir target/fuzz

fmt: ## Format the sources
	@scripts/setup.sh test
	$(CARGO) fmt

mpi: ## Build with a site's library of MPI, and try it on this machine: target/mpi/release/rigel
	@scripts/setup.sh mpi
	$(CARGO) clippy --locked --features mpi --target-dir target/mpi -- -D warnings
	$(CARGO) test --locked --features mpi --target-dir target/mpi --lib ranks::library
	$(CARGO) test --locked --features mpi --target-dir target/mpi --test machine three_hosts_under_mpiexec
	$(CARGO) build --locked --release --features mpi --target-dir target/mpi

oldest: ## Compile everything with exactly the oldest Rust that is promised, which rustup brings
	@scripts/setup.sh build
	rustup toolchain install $(OLDEST) --profile minimal --no-self-update
	CARGO_TARGET_DIR=target/oldest $(CARGO) +$(OLDEST) check --locked --workspace --all-targets

bench: ## Side by side with fio: docs/performance.md
	@scripts/setup.sh bench
	$(CARGO) bench --locked --bench against_fio -- $(PARTS) $(ARGS)

bench-searches: ## Time to max IOPS, repeatability, the pacer's lateness: docs/performance.md
	@scripts/setup.sh bench
	$(CARGO) bench --locked --bench searches -- $(PARTS) $(ARGS)

bench-sql: ## Beside pgbench, a loop in the server, raw reads and psql: docs/performance.md
	@scripts/setup.sh test
	$(CARGO) bench --locked --bench sql -- $(PARTS) $(ARGS)

bench-commits: build ## Commits of private PostgreSQL and MariaDB beside rigel's: ARGS='ROUNDS SECONDS DELAY_US'
	@scripts/setup.sh test
	scripts/bench-commits.sh $(PROGRAM) $(FOLDER) $(ARGS)

coverage: ## How often intervals hold the truth, on models of devices: PARTS='open stalls' ARGS='--runs 50'
	@scripts/setup.sh build
	$(CARGO) bench --locked --bench coverage -- $(PARTS) $(ARGS)

pictures: build ## Make the pictures of the documents again, on models of devices: docs/pictures/
	@scripts/setup.sh test
	scripts/pictures.sh

dist: ## Build dist/: one static file each for ARCHS (x86_64 aarch64), which runs on any Linux of it
	@scripts/setup.sh dist
	@for arch in $(ARCHS); do scripts/dist.sh $$arch || exit; done
	@echo "not signed: RELEASE-CHECKLIST.md says how"

packages: dist ## Tarball, .deb, .rpm, OCI image of each, with licences and SBOM, tried in SUITES: dist/packages/
	@scripts/setup.sh packages
	@rm -rf dist/packages
	@for arch in $(ARCHS); do scripts/package.sh $$arch dist/packages || exit; done
	@[ "$$(id -u)" != 0 ] || scripts/check-packages.sh dist/packages $(SUITES)

crates: ## Make the crates as they would be published, and build each from what is in its package: target/package/
	@scripts/setup.sh build
	$(CARGO) package --locked --workspace

site: build ## Make the documents' site, to be read without a network, with reports of runs: dist/site/
	@scripts/setup.sh site
	PATH="$(CURDIR)/target/tools/bin:$$PATH" scripts/site.sh $(PROGRAM) dist/site

test-aarch64: ## The unit tests of what is not bound to this machine's kernel, compiled for aarch64, under qemu
	@scripts/setup.sh dist
	CARGO_TARGET_AARCH64_UNKNOWN_LINUX_MUSL_LINKER=aarch64-linux-gnu-gcc CC_aarch64_unknown_linux_musl=aarch64-linux-gnu-gcc \
	CARGO_TARGET_AARCH64_UNKNOWN_LINUX_MUSL_RUNNER=qemu-aarch64-static $(CARGO) test --locked \
	--target aarch64-unknown-linux-musl --lib -p rigel-stats -p rigel-model -p rigel-import -p rigel-analyse \
	-p rigel-report -p rigel-verbs -p rigel-ranks

install: build ## Install to PREFIX (/usr/local): rigel, its name orion if that is free, manual pages, completions
	@rm -rf target/share && mkdir -p target/share/man/man1 target/share/bash-completion/completions \
		target/share/zsh/site-functions target/share/fish/vendor_completions.d
	@$(PROGRAM) man target/share/man/man1
	@$(PROGRAM) completions bash > target/share/bash-completion/completions/rigel
	@$(PROGRAM) completions zsh > target/share/zsh/site-functions/_rigel
	@$(PROGRAM) completions fish > target/share/fish/vendor_completions.d/rigel.fish
	@place='$(DESTDIR)$(PREFIX)'; while [ ! -e "$$place" ]; do place=$$(dirname "$$place"); done; \
	[ -w "$$place" ] && sudo= || sudo=sudo; set -e; \
	$$sudo install -D -m 755 $(PROGRAM) '$(DESTDIR)$(PREFIX)/bin/rigel'; \
	orion='$(DESTDIR)$(PREFIX)/bin/orion'; \
	if { [ ! -e "$$orion" ] && [ ! -L "$$orion" ]; } || [ "$$(readlink "$$orion")" = rigel ]; \
	then $$sudo ln -sf rigel "$$orion"; named=', also named orion'; \
	else named=''; echo "$$orion is another program, and stays: \`rigel orion\` does the same"; fi; \
	$$sudo cp -r --no-preserve=ownership target/share '$(DESTDIR)$(PREFIX)/'; \
	echo "installed: $(DESTDIR)$(PREFIX)/bin/rigel$$named, with manual pages and completions"

clean: ## Remove what was built and what the demonstration left
	rm -rf target dist demo

# `make demo` and `make test` also install the packages that they need.
.DEFAULT_GOAL := help
.PHONY: help setup build countersign demo test check lint format docs libcountersign install clients conformance browser web prove fuzz bench release release-check

# Homebrew keeps some libraries out of the default search paths.
ifeq ($(shell uname -s),Darwin)
BREW := $(shell brew --prefix 2>/dev/null)
export CPATH := $(BREW)/include:$(BREW)/opt/openssl@3/include:$(CPATH)
export LIBRARY_PATH := $(BREW)/lib:$(BREW)/opt/openssl@3/lib:$(LIBRARY_PATH)
export PKG_CONFIG_PATH := $(BREW)/opt/openssl@3/lib/pkgconfig:$(BREW)/opt/sqlite/lib/pkgconfig:$(PKG_CONFIG_PATH)
endif

COUNTERSIGN := .build/debug/countersign-cli
TOOLS := python3 -B -m tools
# The option --rounds of tools, such as the number of kills.
ROUNDS_OF = $(if $(ROUNDS),--rounds $(ROUNDS))

# Warnings are errors here, but not in packages that depend on this one (Package.swift).
export COUNTERSIGN_STRICT := 1

# By default swift-testing starts all tests at once, and some reach their time limits while they wait for a core.
export SWT_EXPERIMENTAL_MAXIMUM_PARALLELIZATION_WIDTH ?= 4

help: ## List the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1\t\2/p' Makefile | awk -F '\t' '{ printf "  make %-15s %s\n", $$1, $$2 }'

# MARK: Use

# The demo of a cluster publishes to NATS. Its program has another build folder, because it is built with COUNTERSIGN_NATS=1.
demo: export COUNTERSIGN_NATS = $(if $(CLUSTER),1)
demo: setup ## Show events going from devices through the gateway to disk (INPUT=path replays a file, CLUSTER=1 for three gateways)
	@$(if $(CLUSTER),scripts/setup.sh cluster)
	swift build $(if $(CLUSTER),--scratch-path .build-nats) --product countersign-cli
	@$(if $(CLUSTER),$(TOOLS) cluster_demo --countersign .build-nats/debug/countersign-cli,$(COUNTERSIGN) demo $${INPUT:+--input "$$INPUT"})

countersign: setup ## Build the command line, and link it to .build/bin/countersign
	swift build --product countersign-cli
	@mkdir -p .build/bin
	@ln -sf ../debug/countersign-cli .build/bin/countersign

# PREFIX is the folder of `make install`; DESTDIR is a prefix for packaging. `make install` builds only if the library is missing,
# because under sudo Swift may not be in PATH.
PREFIX ?= /usr/local
libcountersign: setup ## Build libcountersign, its header and its pkg-config file into .build/libcountersign
	@scripts/libcountersign.sh

.build/libcountersign/countersign.pc:
	@$(MAKE) --no-print-directory libcountersign

install: .build/libcountersign/countersign.pc ## Install libcountersign as make libcountersign has built it (PREFIX=/usr/local, DESTDIR=)
	install -d $(DESTDIR)$(PREFIX)/lib/pkgconfig $(DESTDIR)$(PREFIX)/include
	cp -P .build/libcountersign/libcountersign.* $(DESTDIR)$(PREFIX)/lib/
	install -m 644 .build/libcountersign/countersign.h $(DESTDIR)$(PREFIX)/include/
	sed 's|^prefix=.*|prefix=$(PREFIX)|' .build/libcountersign/countersign.pc >$(DESTDIR)$(PREFIX)/lib/pkgconfig/countersign.pc
	chmod 644 $(DESTDIR)$(PREFIX)/lib/pkgconfig/countersign.pc

# MARK: Develop

# Installs the missing system packages.
setup:
	@scripts/setup.sh

build: setup ## Build the debug products
	swift build

test: setup lint ## Check the style and run the tests: a minute on two cores, once built
	@scripts/test.sh

lint: ## Check the style, the words, the size, and that no folders refer to each other in a circle
	scripts/targets.py
	scripts/budget.py
	scripts/concurrency.py
	scripts/words.py
	@$(TOOLS) audit
	@for fault in Torture/Faults/*.patch; do patch -p1 -s --dry-run -i $$fault || { echo "$$fault: the patch does not apply any more; recreate it."; exit 1; }; done
	@! grep -rnE 'Lock<\(*(@|\([A-Za-z, ]*\) *(throws *)?->)' Sources || { echo "A closure in a Lock belongs in a struct: see Lock.swift."; exit 1; }
	@! grep -rn 'NSCondition()' Sources || { echo "NSCondition waits by the wall clock, which may be set back: use Condition of GatewayModel."; exit 1; }
	@! grep -rnE '^[^/]*(`countersign [a-z]|"[^"]* --[a-z])' Sources --include='*.swift' --exclude-dir='CLI' || { echo "A library must not name commands: describe the remedy, and let CountersignCLI add the command."; exit 1; }
	swift format lint --strict --parallel -r Sources Tests Snippets Examples/*/Sources Torture/Sources Package.swift Examples/Package.swift Torture/Package.swift

format: ## Format the sources
	swift format -i --parallel -r Sources Tests Snippets Examples/*/Sources Torture/Sources Package.swift Examples/Package.swift Torture/Package.swift

BASE :=
docs: ## Build the site of all documentation into .build/docs/site (BASE=/path below which it is served, OPEN=1 shows it)
	@$(if $(OPEN),[ -d .build/docs/site ] ||) { scripts/docs.sh && $(TOOLS) site --base "$(BASE)"; }
	@$(if $(OPEN),cd .build/docs/site && python3 -m http.server -b 127.0.0.1 0)

# MARK: Verify

check: setup ## Run the checks of CI besides make test: PostgreSQL, documentation, SDK for Apple and by URL, dashboard, clients (ONLY="a b" or all)
	@$(TOOLS) check $(ONLY)

clients: build libcountersign ## Check the clients in C, Python and for the JVM against a gateway (ONLY=c, ROUNDS=n)
	@scripts/setup.sh venv && scripts/setup.sh jvm
	@$(TOOLS) clients $(or $(ONLY),c python jvm) $(ROUNDS_OF)

conformance: setup ## Run the scenarios that each client passes (Conformance), and print a table of scenarios and clients
	-@scripts/setup.sh web && scripts/setup.sh browser
	@$(TOOLS) conformance --build

browser: build ## Drive the dashboard in Chromium against a gateway with traffic (SCREENSHOTS=1 takes the pictures of docs/images)
	@$(if $(SCREENSHOTS),scripts/setup.sh screenshots)
	@$(TOOLS) browser $(if $(SCREENSHOTS),--screenshots docs/images)

web: build ## Check the browser client (Clients/web): types, size, tests, and in Chromium (ROUNDS=n, DEMO=1 serves a page to break by hand)
	@$(if $(DEMO),,scripts/web.sh)
	@$(TOOLS) web $(if $(DEMO),--demo,$(ROUNDS_OF))

# The row `stream` needs a program with NATS.
prove: export COUNTERSIGN_NATS = 1
prove: build ## Crash devices, gateways, disks, power and networks in slices, and show that each row can fail (MINUTES=10, ONLY="row group", ROUNDS=n, SEED=n)
	@scripts/setup.sh cluster
	swift build --disable-build-manifest-caching --package-path Torture --scratch-path .build
	@$(TOOLS) prove $(ONLY) $(ROUNDS_OF) $(if $(MINUTES),--minutes $(MINUTES)) $(if $(SEED),--seed $(SEED))

# SwiftPM instruments only the executable for the fuzzer, so these flags instrument the libraries. Swift's backtracer would never
# end under the fuzzer. @testable needs -enable-testing. The leak checker is off, because it does not find pointers that Swift packs
# into enums, and reports the fuzzer's own keys; leaks show as growing memory (rss_limit_mb).
COVERAGE := -Xswiftc -sanitize-coverage=edge,trace-cmp,inline-8bit-counters,pc-table -Xcxx -fsanitize=fuzzer-no-link
fuzz: setup ## Fuzz the parsers of tokens, keys, JSON and request bodies (DURATION=60 seconds)
	cd Fuzzing && SWIFT_BACKTRACE=enable=no swift build -c release --sanitize=fuzzer --sanitize=address \
		-Xswiftc -enable-testing $(COVERAGE) --product Fuzz
	mkdir -p Fuzzing/.build/corpus
	cd Fuzzing && SWIFT_BACKTRACE=enable=no ASAN_OPTIONS=detect_leaks=0 .build/release/Fuzz -max_total_time=$(or $(DURATION),60) -max_len=65536 \
		-timeout=60 -rss_limit_mb=1024 -detect_leaks=0 .build/corpus Seeds

# Builds the gateway like a release, with the Swift runtime linked statically.
bench: ## Measure verification and the gateway beside servers in Go, Rust, Node and Python, and draw a chart (release build)
	@scripts/setup.sh bench
	swift build -c release --static-swift-stdlib --scratch-path .build-static --product countersign-cli
	swift run -c release --package-path Benchmarks Verifying
	for part in compare views floods dashboards readers; do \
		swift run -c release --package-path Benchmarks Gateway "$(CURDIR)/.build-static/release/countersign-cli" $$part || exit 1; done
	gnuplot -e "data='Benchmarks/.build/chart.tsv'" Benchmarks/chart.gnuplot >Benchmarks/.build/chart.svg
	python3 -B Benchmarks/idle.py .build-static/release/countersign-cli
	python3 -B Benchmarks/livez.py .build-static/release/countersign-cli
	swift run -c release --package-path Benchmarks Queue

# MARK: Release

release: setup ## Build the files of a release into .build/release-files (RELEASE_KEY=path signs them)
	@scripts/setup.sh release
	@$(TOOLS) release

release-check: setup ## Check that a second run makes equal files, and install each in a fresh root without Swift (needs root)
	@scripts/setup.sh release
	@$(TOOLS) release check

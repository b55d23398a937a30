# All that a fresh machine needs is `make demo` or `make test`.
.DEFAULT_GOAL := help
.PHONY: countersign tsan libcountersign install c python jvm flutter compat oauth webhooks help setup build demo test lint format bench torture interop differential fuzz openapi metrics otlp proxies packaging docs examples

# Homebrew keeps some libraries out of the default search paths.
ifeq ($(shell uname -s),Darwin)
BREW := $(shell brew --prefix 2>/dev/null)
export CPATH := $(BREW)/include:$(BREW)/opt/openssl@3/include:$(CPATH)
export LIBRARY_PATH := $(BREW)/lib:$(BREW)/opt/openssl@3/lib:$(LIBRARY_PATH)
export PKG_CONFIG_PATH := $(BREW)/opt/openssl@3/lib/pkgconfig:$(BREW)/opt/sqlite/lib/pkgconfig:$(PKG_CONFIG_PATH)
endif

COUNTERSIGN := .build/debug/countersign-cli

# Warnings are errors here, but not in packages that depend on this one (Package.swift).
export COUNTERSIGN_STRICT := 1

# Left alone, swift-testing begins all tests at once, each waits for all others, and time limits are reached that no test needs.
export SWT_EXPERIMENTAL_MAXIMUM_PARALLELIZATION_WIDTH ?= 4

# What CI runs is marked: make test and make check, with the targets that do a part of them alone.
IN_CI := setup lint test check docs web browser consumers
help: ## List the targets; those with a star are, wholly or in part, what CI runs
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1\t\2/p' Makefile | \
		awk -F '\t' -v in_ci=" $(IN_CI) " '{ printf "  make %-15s %s %s\n", $$1, index(in_ci, " " $$1 " ") ? "*" : " ", $$2 }'

setup: ## Install the missing system packages
	@scripts/setup.sh

build: setup ## Build the debug products
	swift build

countersign: setup ## Build the command line, and link it to .build/bin/countersign
	swift build --product countersign-cli
	@mkdir -p .build/bin
	@ln -sf ../debug/countersign-cli .build/bin/countersign

# Where `make install` puts libcountersign; DESTDIR goes before it and is not remembered. It builds nothing where something was
# built: under sudo there may be no Swift.
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

# What records is killed ROUNDS times.
ROUNDS_OF = $(if $(ROUNDS),--rounds $(ROUNDS))
c: build libcountersign ## Check libcountersign from C, under the address sanitizer, against a gateway, and by the scenarios (ROUNDS=n)
	@scripts/clients-test.py c $(ROUNDS_OF)

python: build libcountersign ## Check the Python client (Clients/python) from a fresh virtual environment against a gateway (ROUNDS=n)
	@scripts/setup.sh python
	@scripts/clients-test.py python $(ROUNDS_OF)

jvm: build libcountersign ## Check the client for Java and Kotlin (Clients/jvm), with two vendors' samples, against a gateway (ROUNDS=n)
	@scripts/setup.sh jvm
	@scripts/clients-test.py jvm $(ROUNDS_OF)

flutter: ## Compare the Dart bindings (Clients/flutter) with the C header, and parse them; nothing here runs Dart (makes .venv)
	@python3 -m venv .venv
	@.venv/bin/pip install -q --disable-pip-version-check tree-sitter tree-sitter-dart
	@.venv/bin/python scripts/flutter-check.py --syntax

demo: setup ## Show events going from devices through the gateway to disk (INPUT=path replays a file)
	swift build --product countersign-cli
	@$(COUNTERSIGN) demo $${INPUT:+--input "$$INPUT"}

demo-cluster: setup ## Show devices sending through a proxy to three gateways on one PostgreSQL that feed a stream of NATS while all are killed (makes .venv)
	@scripts/setup.sh cluster
	swift build --product countersign-cli
	@scripts/demo-cluster.py $(COUNTERSIGN) $$(scripts/nats-server.sh)

test-postgres: setup ## Run the tests of the gateway, its command line and the SDKs against PostgreSQL, and those of that storage (FILTER=regex, SERVER=18 for that version, makes .venv)
	@$(if $(SERVER),POSTGRESQL_BIN="$$(scripts/postgresql-$(SERVER).sh)" )scripts/test-postgres.sh $(if $(FILTER),--filter '$(FILTER)')

test: setup lint ## Check the style and run the tests: a minute on two cores, once built
	@scripts/test.sh

check: setup ## Run what CI runs besides make test: PostgreSQL, documentation, the SDK for Apple and by URL, dashboard, other clients
	@scripts/check.sh

# Three parts that run beside each other, since each waits much of the time. The first alone installs packages of the system.
check-pages:
	@scripts/browser.sh $(COUNTERSIGN)
	@scripts/web.sh

check-sources:
	@scripts/docs.sh
	@scripts/packages-check.sh
	@scripts/apple-check.sh
	@scripts/objc-check.sh
	@scripts/flutter-check.py

check-clients:
	@scripts/consumer-test.sh
	@scripts/consumers-test.sh $(COUNTERSIGN)
	swift build --product CountersignC
	@scripts/clients-test.py c --library .build/debug/libCountersignC.so --rounds 1

# Slower by an order of magnitude: on a busy machine some tests run into their time limits.
tsan: setup ## Run the SDK's tests under the thread sanitizer
	swift test --sanitize=thread --scratch-path .build-tsan --disable-xctest \
		--filter '^(CountersignTests|BrazeCompatTests)\.'

torture: ## Kill devices, gateways, consumers and power, and count what is left (ROUNDS=n)
	swift build -c release --package-path Torture
	swift build -c release --product countersign-cli
	@Torture/.build/release/CountersignTorture all $(ROUNDS)
	@scripts/torture-gateway.py --countersign .build/release/countersign-cli $(if $(ROUNDS),--rounds $(ROUNDS))
	@scripts/torture-consumers.py --countersign .build/release/countersign-cli $(if $(ROUNDS),--rounds $(ROUNDS))

torture-cluster: setup ## Kill gateways, PostgreSQL and the network between them, and count (ROUNDS=n, FAULT=name, BEFORE=program)
	@scripts/setup.sh cluster
	swift build -c release --product countersign-cli
	@scripts/torture-cluster.py $(FAULT) --countersign .build/release/countersign-cli $(ROUNDS_OF) $(if $(BEFORE),--before $(BEFORE))

openapi: ## Check the running gateway against its OpenAPI document (Schemathesis)
	@scripts/openapi-test.sh

metrics: ## Check metrics, alerts and dashboard with a real Prometheus
	@scripts/metrics-test.sh

otlp: ## Check the export to OpenTelemetry against a receiver built on its protobuf messages (makes .venv)
	@scripts/otlp-test.sh

proxies: ## Run the configurations for nginx and HAProxy in front of a gateway
	@scripts/proxy-test.sh

BASE :=
docs: ## Build the site of all documentation into .build/docs/site (BASE=/path when it is served below one)
	@scripts/docs.sh
	@scripts/site.sh "$(BASE)"

docs-open: ## Open that site in a browser, by a web server on this machine (builds it when it is not there)
	@[ -d .build/docs/site ] || $(MAKE) --no-print-directory docs
	@scripts/docs-open.py

examples: ## Build the examples and run them together (makes .venv)
	@scripts/examples.sh

packaging: ## Check the systemd unit and the image's packages
	@scripts/packaging-test.sh

deploy: ## Check the chart, the compose file and the workflows (makes .venv)
	@scripts/deploy-test.sh

release-files: setup ## Build what a release attaches into .build/release-files: Linux program, checksums, list of parts
	@scripts/release-files.sh

check-all: ## Run every check that this machine can, for hours, with a table at the end (ONLY="a b" runs these)
	@scripts/check-all.sh $(ONLY)

service: setup ## Install the systemd unit into a separate Debian, boot it and test it (needs root)
	@scripts/service-test.sh

lint: ## Check the style, and that no folders refer to each other in a circle
	scripts/rooms.py
	@! grep -rnE 'Lock<\(*(@|\([A-Za-z, ]*\) *(throws *)?->)' Sources || { echo "A closure in a Lock belongs in a struct: see Lock.swift."; exit 1; }
	@! grep -rn 'NSCondition()' Sources || { echo "NSCondition waits by the time of day, which may be set back: use Condition of GatewayModel."; exit 1; }
	@! grep -rnE '^[^/]*(`countersign [a-z]|"[^"]* --[a-z])' Sources --include='*.swift' --exclude-dir='CountersignCLI' || { echo "A library knows no command line: say what to do, and let CountersignCLI add the command."; exit 1; }
	swift format lint --strict --parallel -r Sources Tests Snippets Examples/*/Sources Torture/Sources Package.swift Examples/Package.swift Torture/Package.swift

format: ## Format the sources
	swift format -i --parallel -r Sources Tests Snippets Examples/*/Sources Torture/Sources Package.swift Examples/Package.swift Torture/Package.swift

# The gateway as it is released: with the Swift runtime inside.
bench: ## Measure verification and the gateway (release build)
	@scripts/setup.sh bench
	swift build -c release --static-swift-stdlib --scratch-path .build-static --product countersign-cli
	swift run -c release --package-path Benchmarks Verifying
	swift run -c release --package-path Benchmarks Gateway "$(CURDIR)/.build-static/release/countersign-cli"
	swift run -c release --package-path Benchmarks Gateway "$(CURDIR)/.build-static/release/countersign-cli" views
	swift run -c release --package-path Benchmarks Gateway "$(CURDIR)/.build-static/release/countersign-cli" floods
	swift run -c release --package-path Benchmarks Gateway "$(CURDIR)/.build-static/release/countersign-cli" dashboards
	swift run -c release --package-path Benchmarks Queue

interop: build ## Exchange tokens and keys with PyJWT (makes .venv)
	scripts/interop-pyjwt.py

compat: build ## Deliver through the Python clients of Segment and RudderStack, unchanged, and refuse others (makes .venv)
	python3 -m venv .venv
	.venv/bin/pip install -q segment-analytics-python rudder-sdk-python
	.venv/bin/python scripts/segment-clients.py $(COUNTERSIGN)
	.venv/bin/pip install -q posthog amplitude-analytics mixpanel snowplow-tracker sentry-sdk \
		opentelemetry-sdk opentelemetry-exporter-otlp-proto-http
	.venv/bin/python scripts/foreign-clients.py $(COUNTERSIGN)

webhooks: build ## Verify deliveries with the Standard Webhooks reference library, and kill the gateway meanwhile (makes .venv)
	python3 -m venv .venv
	.venv/bin/pip install -q standardwebhooks
	.venv/bin/python scripts/webhooks.py $(COUNTERSIGN)

stream: build ## Feed a stream of a real nats-server while the gateway and the server are killed (ROUNDS=n)
	@scripts/stream-test.sh --countersign $(COUNTERSIGN) $(ROUNDS_OF)

away: build ## Store events for an hour while a stream is away and a webhook never answers, and watch the gateway's memory (MINUTES=60)
	@scripts/stream-test.sh away --countersign $(COUNTERSIGN) $(if $(MINUTES),--minutes $(MINUTES))

oauth: build ## Get and refresh tokens through Authlib, requests-oauthlib and Segment's client, unchanged (makes .venv)
	python3 -m venv .venv
	.venv/bin/pip install -q authlib requests requests-oauthlib segment-analytics-python
	.venv/bin/python scripts/oauth-clients.py $(COUNTERSIGN)

.PHONY: check check-pages check-sources check-clients test-postgres demo-cluster torture-cluster stream away deploy docs-open release-files check-all service browser screenshots web consumers exports conformance demo-web
browser: build ## Drive the dashboard in Chromium against a gateway with traffic, and the page of demo-web (makes .venv)
	@scripts/browser.sh $(COUNTERSIGN)
	@scripts/web.sh $(COUNTERSIGN) story

demo-web: build ## Serve a page that records, whose network, tokens and tab can be spoilt (prints an address)
	@scripts/demo-web.py $(COUNTERSIGN)

web: build ## Check the browser client (Clients/web): types, size, tests, and in Chromium against a gateway (makes .venv, ROUNDS=n)
	@scripts/web.sh $(COUNTERSIGN) $(ROUNDS_OF)

conformance: setup ## Run the scenarios that every client passes (Conformance) and print a table of scenarios and clients (makes .venv)
	-@scripts/setup.sh web && scripts/setup.sh browser
	-@python3 -m venv .venv && .venv/bin/pip install -q --disable-pip-version-check --retries 1 playwright
	@scripts/conformance.py --build

consumers: build ## Check the Python client for readers of events (Examples/Consumers), also against a gateway, killing workers
	@scripts/consumers-test.sh $(COUNTERSIGN)

exports: build ## Kill a gateway that writes hourly files, fill their disk, load them into DuckDB and PostgreSQL (makes .venv)
	@scripts/exports-test.sh --countersign $(COUNTERSIGN)

screenshots: build ## Take the pictures of the dashboard in docs/images, of a day that takes three minutes
	@scripts/setup.sh screenshots
	@scripts/browser.sh $(COUNTERSIGN) --screenshots docs/images

differential: build ## Compare verdicts on mutated tokens with the OpenSSL command line (COUNT=400)
	scripts/differential.py

# SwiftPM gives coverage to the executable only, so the libraries are told here. The crash reporter of Swift would wait
# for ever under the fuzzer. @testable needs -enable-testing. Leaks show as growing memory: the leak checker does not see
# pointers that Swift packs into enums, and calls the fuzzer's own keys leaked.
COVERAGE := -Xswiftc -sanitize-coverage=edge,trace-cmp,inline-8bit-counters,pc-table -Xcxx -fsanitize=fuzzer-no-link
fuzz: setup ## Fuzz the parsers of tokens, keys, JSON and request bodies (DURATION=60 seconds)
	cd Fuzzing && SWIFT_BACKTRACE=enable=no swift build -c release --sanitize=fuzzer --sanitize=address \
		-Xswiftc -enable-testing $(COVERAGE) --product Fuzz
	mkdir -p Fuzzing/.build/corpus
	cd Fuzzing && SWIFT_BACKTRACE=enable=no ASAN_OPTIONS=detect_leaks=0 .build/release/Fuzz -max_total_time=$(or $(DURATION),60) -max_len=65536 \
		-timeout=60 -rss_limit_mb=1024 -detect_leaks=0 .build/corpus Seeds

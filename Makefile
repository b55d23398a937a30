# Everything that a fresh machine needs: `make demo` and `make test`.
.DEFAULT_GOAL := help
.PHONY: help setup build demo test lint format bench torture

# Homebrew keeps some libraries out of the default search paths.
ifeq ($(shell uname -s),Darwin)
BREW := $(shell brew --prefix 2>/dev/null)
export CPATH := $(BREW)/include:$(BREW)/opt/openssl@3/include:$(BREW)/opt/sqlite/include:$(CPATH)
export LIBRARY_PATH := $(BREW)/lib:$(BREW)/opt/openssl@3/lib:$(BREW)/opt/sqlite/lib:$(LIBRARY_PATH)
export PKG_CONFIG_PATH := $(BREW)/opt/openssl@3/lib/pkgconfig:$(BREW)/opt/sqlite/lib/pkgconfig:$(PKG_CONFIG_PATH)
endif

COUNTERSIGN := .build/debug/countersign

help: ## Say what can be made
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 18

setup: ## Install the missing system packages
	@scripts/setup.sh

build: setup ## Build the debug products
	swift build

demo: setup ## Show events going from devices through the gateway to disk (INPUT=path replays a file)
	swift build --product countersign
	@$(COUNTERSIGN) demo $${INPUT:+--input "$$INPUT"}

test: setup lint ## Check the style and run every test
	swift test --disable-xctest

torture: ## Kill devices, gateways and power, and count what is left (ROUNDS=n)
	swift build --product CountersignTorture
	@.build/debug/CountersignTorture all $(ROUNDS)

lint: ## Check the style
	swift format lint --strict -r Sources Tests Snippets Package.swift

format: ## Put the sources into the house style
	swift format -i -r Sources Tests Snippets Package.swift

bench: ## Measure the gateway (release build)
	@scripts/setup.sh bench
	swift build -c release --product countersign
	swift run -c release --package-path Benchmarks Gateway "$(CURDIR)/.build/release/countersign"

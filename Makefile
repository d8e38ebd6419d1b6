# `make` prints this file's targets.

SHELL := /bin/bash
.DEFAULT_GOAL := help
# What the dashboard is built from: everything in its folder but what npm and Vite put there.
PAGES := $(shell find dashboard -name node_modules -prune -o -path dashboard/dist -prune -o -type f -print 2>/dev/null)

.PHONY: help up build dashboard check test browser test-kube bench fmt lint docs deps clean-data

help: ## print this help
	@echo "Argosy: one control plane for GPU fleets"
	@echo
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

up: ## build, and run a whole fleet on this machine, with faults and a dashboard; Ctrl-C stops it
	@DASHBOARD=$(DASHBOARD) scripts/up

build: ## build the programs that are packaged: target/release/argosy and argosy-agent, their symbols beside them
	@DASHBOARD=$(DASHBOARD) scripts/release

ifeq ($(shell command -v npm),)
dashboard: ## build the dashboard, which the program carries (needs Node)
	@echo "npm is not here, so the dashboard is not built: the program says so at /ui/, and all else works."
	@echo "Install Node (for example: apt install npm) and try again."
else ifeq ($(PAGES),)
dashboard:
	@echo "there is no dashboard/ in this directory, so the program will have none"
else
dashboard: dashboard/dist/index.html
endif

# Only when the lock changed. Not `npm ci`: it refuses a lock that lacks the optional parts for other platforms.
dashboard/node_modules/.package-lock.json: dashboard/package-lock.json
	cd dashboard && PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD=1 npm install --no-save --no-audit --no-fund
	@touch $@

dashboard/dist/index.html: $(PAGES) dashboard/node_modules/.package-lock.json
	cd dashboard && npm run build
	@touch $@

check: ## before a commit: format, tidy, clippy and the unit tests that your change can reach
	@scripts/install-test-deps python
	@scripts/check

test: ## everything CI runs, cheapest first (installs PostgreSQL, Slurm and more if missing)
	@scripts/install-test-deps python
	@scripts/ci-steps

browser: dashboard ## the dashboard's journeys in a real browser, against a debug build (installs Chromium if missing)
	cargo build --locked --workspace --bins
	@ARGOSY_BIN=$(or $(CARGO_TARGET_DIR),target)/debug/argosy scripts/browser

test-kube: ## the Kubernetes tests against a real API server, which is built first (needs Go; minutes, once)
	@scripts/kube-apiserver
	ARGOSY_TEST_KUBERNETES=1 cargo test --locked -p argosy-providers --test it kubernetes

bench: ## measure: latency, throughput and memory, embedded and PostgreSQL side by side (ARGS=--quick)
	@scripts/bench $(ARGS)

fmt: ## format the code
	cargo fmt --all

lint: ## clippy, warnings are errors
	cargo clippy --workspace --all-targets --locked -- -D warnings

docs: ## write the generated papers again: openapi/, the dashboard's types, and config, errors, cli and xid in docs/
	UPDATE=1 cargo test --locked --workspace generated
	node dashboard/scripts/types.mjs
	cargo test --locked -q -p argosy-tidy

deps: ## install what the tests need, and nothing else
	@scripts/install-test-deps

clean-data: ## forget what `make up` stored in ./.argosy
	rm -rf .argosy

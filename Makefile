# `make` prints this file's targets.

SHELL := /bin/bash
.DEFAULT_GOAL := help
.PHONY: help up build test test-kube bench fmt lint docs deps clean-data

help: ## print this help
	@echo "Argosy: one control plane for GPU fleets"
	@echo
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

up: ## build, and run a server with a simulated cloud and a few clusters; Ctrl-C stops it
	@cargo build --release --locked -p argosy
	@exec ./target/release/argosy up

build: ## build the program: target/release/argosy
	cargo build --release --locked -p argosy

test: ## everything CI runs, cheapest first (installs PostgreSQL, Slurm and a Python environment if missing)
	@scripts/ci-steps

test-kube: ## the Kubernetes tests against a real API server, which is built first (needs Go; minutes, once)
	@scripts/kube-apiserver
	ARGOSY_TEST_KUBERNETES=1 cargo test --locked -p argosy-providers --test it kubernetes

bench: ## measure: latency, throughput and memory, embedded and PostgreSQL side by side (ARGS=--quick)
	@scripts/bench $(ARGS)

fmt: ## format the code
	cargo fmt --all

lint: ## clippy, warnings are errors
	cargo clippy --workspace --all-targets --locked -- -D warnings

docs: ## write the generated papers again: openapi/, and config, errors, cli and xid in docs/
	UPDATE=1 cargo test --locked --workspace generated
	cargo test --locked -q -p argosy-tidy

deps: ## install what the tests need, and nothing else
	@scripts/install-test-deps

clean-data: ## forget what `make up` stored in ./.argosy
	rm -rf .argosy

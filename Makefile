# Everything a contributor runs. `make help` lists it.
#
# Build output and tools live outside the tree, in ~/.cache/sandbox-build; set CACHE or
# CARGO_TARGET_DIR to put them elsewhere. Every target may be run again at any time, installs only
# what is missing, names it first, and needs no network once everything is there.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

# Where snapshots are looked for: a shared cache may hold tests that another checkout built.
export INSTA_WORKSPACE_ROOT := $(CURDIR)

export CACHE ?= $(HOME)/.cache/sandbox-build
export CARGO_TARGET_DIR ?= $(CACHE)/target
export PATH := $(CACHE)/tools/bin:$(HOME)/.cargo/bin:$(PATH):/usr/sbin:/sbin

# The one binary people install; `scripts/build-release` puts it here whatever the target triple.
BINARY := $(CARGO_TARGET_DIR)/dist/sandbox

# Tests make loop devices and switch users, so their binaries run as root. Everything is still
# built by whoever calls make, so that nothing in the cache ends up owned by root.
ifneq ($(shell id -u),0)
AS_ROOT := scripts/run-tests-as-root
SUDO := sudo
endif

.PHONY: help build run tour test bench lint audit fmt

help: ## List the targets
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## /  make \1\t/' | expand -t 16

build: ## Build the release binaries, static where the machine can; installs: gcc, musl-tools
	@scripts/set-up build
	@scripts/build-release
	@echo "built $(BINARY)"

run: build ## Build it, then serve the API on 127.0.0.1:8000 until Ctrl-C; SERVE='--bind 127.0.0.1:9000'
	@exec $(BINARY) serve $(SERVE)

tour: build ## Build it, then play a two-minute tour of the command line in a throwaway directory
	@scripts/tour.sh $(BINARY)

test: ## Run every test, as root and as the user `tester`; installs the tools and servers they drive, and that user
	@scripts/set-up test
	cargo build --workspace --all-targets --locked
	cargo test --doc --workspace --locked --quiet
	scripts/leave-nothing $(AS_ROOT) cargo nextest run --workspace --locked

bench: build ## Measure against bubblewrap, git, cp and others; installs databases; fails when a bar is missed; BENCH='--user tester'
	@scripts/set-up bench
	cargo build --package sandbox-bench --release --locked
	$(SUDO) unshare --mount $(CARGO_TARGET_DIR)/release/sandbox-bench --sandbox $(BINARY) $(BENCH)

lint: ## Check formatting, lints and dependencies; installs: cargo-deny
	@scripts/set-up lint
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --all-features --locked -- -D warnings
	cargo deny --locked check bans licenses sources
	@echo "not checked: known vulnerabilities of dependencies, because that needs a database from the network: make audit"

audit: ## Check the dependencies for known vulnerabilities; fetches the advisory database; installs: cargo-deny
	@scripts/set-up lint
	cargo deny --locked check advisories

fmt: ## Format the code
	cargo fmt --all

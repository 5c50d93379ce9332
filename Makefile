# SPDX-License-Identifier: GPL-2.0-only
# Thin: what is done is in scripts/, in cargo and in `corun lab`.

.PHONY: help setup build guest guest-check demo test lint unit determinism smoke browser-test \
	perfetto-test clean

help:
	@echo "make demo   set up, build, boot the lab, run the demo, write out/demo.json"
	@echo "make test   set up, then lint, unit and property tests, determinism, lab smoke"
	@echo "make build  set up and build target/release/corun"
	@echo "make guest  build the guest modules (KVER=\"7.3 7.2\", or KDIR=headers)"
	@echo "make guest-check"
	@echo "            the guest modules checked by sparse"
	@echo "make lint   formatting, clippy, licences"
	@echo "make unit   tests that need no lab"
	@echo "make determinism"
	@echo "            the simulator's traces in a debug and a release build are equal"
	@echo "make smoke  tests that boot the lab"
	@echo "make browser-test"
	@echo "            the report's page in headless Chromium; screenshots in out/report"
	@echo "make perfetto-test"
	@echo "            exported traces in Perfetto's own parser"

setup:
	scripts/setup

build: setup
	cargo build --release --locked -p corun -p corun-agent

guest: build
	KVER="$(KVER)" KDIR="$(KDIR)" scripts/guest

demo: build
	target/release/corun lab run demo --out out/demo.json

test: lint unit determinism browser-test perfetto-test guest-check smoke

guest-check: build
	scripts/guest-check

lint: setup
	scripts/lint

unit: setup
	cargo test --release --locked --workspace

determinism: setup
	scripts/sim-determinism

smoke: guest
	cargo test --release --locked -p corun --test lab --test guest --test locks -- --ignored --nocapture --test-threads=1

# The browser is 120 MB to fetch and installed in half a minute: for this alone.
browser-test:
	scripts/setup --browser
	CORUN_BROWSER_REQUIRED=1 cargo test --release --locked -p corun-report --test browser -- --ignored --test-threads=1

# Perfetto's parser is 16 MB to fetch, and wants Node.
perfetto-test:
	scripts/setup --perfetto
	CORUN_PERFETTO_REQUIRED=1 cargo test --release --locked -p corun --test perfetto -- --ignored --test-threads=1

clean:
	cargo clean
	rm -rf out

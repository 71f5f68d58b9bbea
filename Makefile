# A thin front for Meson and the scripts; `make help` says what there is.

PREFIX ?= /usr/local
DESTDIR ?=
ARGS ?=
# More options for meson setup, for instance MESON_OPTIONS=-Dwerror=true. Used when a build folder is first made.
MESON_OPTIONS ?=

.DEFAULT_GOAL := all
.PHONY: all help deps serve check check-clients check-guest bench install format lint fuzz clean

all: build/build.ninja ## build the daemon to build/kiln
	@ninja -C build
	@scripts/compile-runtimes runtimes

build/build.ninja:
	@command -v meson >/dev/null || { echo "meson is missing; 'make deps' installs what the build needs" >&2; exit 1; }
	meson setup build -Dtests=disabled $(MESON_OPTIONS)

deps: ## install the Debian packages that the build needs
	@scripts/install-packages build

serve: ## install what is missing, build, and run the daemon; options in ARGS='--listen ...'
	@scripts/install-packages build serve
	@$(MAKE) --no-print-directory all
	@exec build/kiln serve $(ARGS)

check: ## install what is missing, build, and run every test
	@scripts/install-packages build serve check
	@scripts/check prepare unit unit-asan layers scripts runtimes conformance integration smoke

check-clients: ## run functions on the service's own Runtime API clients, which are built from npm first
	@scripts/install-packages build serve check clients
	@scripts/check clients

check-guest: ## run the tests of sandboxes under cgroup v2, in a virtual machine; some of them: GUEST_SUITES='cgroup daemon'
	@scripts/install-packages build serve check guest
	@scripts/check guest

lint: ## check the form and run the static analysers
	@scripts/install-packages build check lint
	@scripts/check format shell tidy

fuzz: ## run every fuzz target for FUZZ_SECONDS (default 60) on top of its corpus
	@scripts/install-packages build check lint
	@scripts/check fuzz

bench: ## run the benchmarks, each beside what it is compared with
	@scripts/install-packages build serve check bench
	@$(MAKE) --no-print-directory all
	@exec bench/run

format: ## let clang-format rewrite the C sources
	@scripts/install-packages lint
	@scripts/format

install: all ## install to $(DESTDIR)$(PREFIX)
	@meson configure build --prefix=$(abspath $(PREFIX))
	@DESTDIR=$(DESTDIR) meson install -C build

clean: ## remove the build folders
	rm -rf build build-*

help: ## print this
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

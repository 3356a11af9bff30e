# Everything that is done with this repository. It needs Go, and nothing else that is installed: what a target uses beyond it is optional
# (a C compiler for the race detector, nginx for a comparison), and the target says so when it is missing.

GOLANGCI_VERSION := v2.15.0
GOVULN_VERSION   := v1.8.0
FUZZTIME         ?= 20s
HOURS            ?= 20
DAYS             ?= 7
VERSION          ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)

# The time of every file in a release: that of the commit.
SOURCE_DATE_EPOCH ?= $(shell git log -1 --format=%ct 2>/dev/null || echo 0)
export SOURCE_DATE_EPOCH

GO      := go

# Go asks git for the revision, and git tells only the owner of a checkout: in one that is mounted into a container, nothing was built, and no
# package listed. VERSION is enough.
export GOFLAGS := $(strip $(shell $(GO) env GOFLAGS 2>/dev/null) -buildvcs=false)

BIN     := bin
LINTER  := $(BIN)/tools/golangci-lint-$(GOLANGCI_VERSION)
LDFLAGS := -s -w -X hooklock/cmd/hooklock/cli.version=$(VERSION)

E2E := hooklock/test/e2e

# The race detector costs time and finds nothing in these packages:
#   test/arch   reads source files, in one goroutine
#   test/bench  measures; the detector would be what it measures
#   test/model  explores tens of millions of states, a scenario in one goroutine (MODEL, below)
#   test/scale  simulates, and measures what etcd carries
#   test/virtual  lets hours pass in seconds, which the detector would make minutes
#   config, proxy/sender  functions of their arguments
#   cmd/hooklock  commands, one after the other
# test/e2e builds the program as the tests are built: `make test-program-raced`, and CI, run it with the detector.
NO_RACE := $(E2E) hooklock/test/arch hooklock/test/bench hooklock/test/scale hooklock/test/virtual hooklock/config hooklock/proxy/sender hooklock/cmd/hooklock

# Apart, because it takes longer than one likes to wait: it kills and freezes processes and waits for leases to run out.
APART := hooklock/test/fault%

# What finds the more the longer it searches: `make test` and `make test-race` cut it off, `make test-long` and CI do not.
MODEL   := hooklock/test/model hooklock/test/model/jobs
HISTORY := hooklock/test/history

# These take longest, so they begin first: the rest fills the other core meanwhile.
SLOW  := hooklock/etcdlock
FIRST := $(E2E) $(SLOW) hooklock/test/virtual

# Tests wait for most of their time, for leases and for other processes, so more of them run at a time than there are cores: of a package, and
# packages.
AT_A_TIME := 4
PACKAGES  := 3

# The race detector is C. Without a compiler the tests run all the same.
RACE = $(shell command -v "$$($(GO) env CC)" >/dev/null 2>&1 && echo -race)

# The race detector waits for a second before a program ends. What the tests start (test/testkit) does not, and the tests need not either.
export GORACE ?= atexit_sleep_ms=0

.DEFAULT_GOAL := help
.PHONY: help run build cross install test test-race test-whole test-raced test-plain test-cut test-cut-raced test-long test-program-raced test-short test-virtual test-virtual-week test-fault test-fault-short test-deploy test-cluster test-fronts test-systemd fuzz bench bench-peers lint fmt tidy-check advisories pictures page-pictures licences release packages image test-packages clean ci

help: ## show this list
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  make %-17s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

run: build ## the whole thing with a sample receiver, in one process (ARGS=--auto-ports picks free ports)
	@exec $(BIN)/hooklock demo $(ARGS)

build: ## the program: bin/hooklock, one static file
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '$(LDFLAGS)' -o $(BIN)/hooklock ./cmd/hooklock

cross: ## the program for each system that it may run on, to see that it compiles
	for os in linux darwin freebsd; do for arch in amd64 arm64; do \
		GOOS=$$os GOARCH=$$arch CGO_ENABLED=0 $(GO) build -o /dev/null ./cmd/hooklock || exit 1; done; done

install: ## the program, to where Go keeps programs
	CGO_ENABLED=0 $(GO) install -trimpath -ldflags '$(LDFLAGS)' ./cmd/hooklock

# A test without debugging information is linked in three quarters of the time, and there are thirty of them. `make lint` vets: go test would
# vet every dependency, too, an eighth of the time of a first run.
TEST := $(GO) test -vet=off -ldflags='-s -w' -timeout 30m -parallel $(AT_A_TIME)

test: ## all tests (five minutes on two cores the first time, under four later)
	@$(MAKE) --no-print-directory -j 2 test-whole test-cut

test-race: ## the same with the race detector, where a C compiler is installed (twice the time; CI runs it)
	@test -n '$(RACE)' || echo 'no C compiler found: the race detector stays off'
	@$(MAKE) --no-print-directory -j 2 test-raced test-plain test-cut-raced

test-whole:
	$(TEST) -p 4 $(FIRST) $(filter-out $(FIRST) $(APART) $(MODEL) $(HISTORY),$(shell $(GO) list -buildvcs=false ./...))

test-raced:
	$(if $(RACE),CGO_ENABLED=1) $(TEST) $(RACE) -p $(PACKAGES) $(SLOW) $(filter-out $(SLOW) $(NO_RACE) $(APART) $(MODEL) $(HISTORY),$(shell $(GO) list -buildvcs=false ./...))

test-plain:
	$(TEST) $(NO_RACE)

test-cut:
	$(TEST) -short $(MODEL) $(HISTORY)

test-cut-raced:
	$(TEST) -short $(MODEL)
	$(if $(RACE),CGO_ENABLED=1) $(TEST) $(RACE) -short $(HISTORY)

test-short: ## the same without the longest searches, for while you work
	$(GO) test -short -timeout 5m -parallel $(AT_A_TIME) $(filter-out $(APART),$(shell $(GO) list -buildvcs=false ./...))

test-long: ## the model's searches to their end, and long histories (three minutes)
	$(TEST) $(MODEL)
	$(if $(RACE),CGO_ENABLED=1) $(TEST) $(RACE) $(HISTORY)

test-program-raced: ## the built program, with the race detector in it (five minutes on two shared cores)
	$(if $(RACE),CGO_ENABLED=1) $(TEST) $(RACE) $(E2E)

test-virtual: ## replicas, senders, operators and faults for HOURS=20 of virtual time, with other seeds each time (15 s an hour)
	$(GO) test -timeout 0 ./test/virtual -hours $(HOURS) $(ARGS)

test-virtual-week: ## one calm world that remembers for a day, for DAYS=7 of virtual time: nothing grows (12 minutes of CPU)
	$(GO) test -timeout 0 ./test/virtual -run TestNothingGrowsWithTheDays -v -days $(DAYS) $(ARGS)

test-fault: ## on Linux, everything that can break between any two parts, broken (ARGS="-soak 10m": under traffic, for so long)
	$(GO) test -count=1 -timeout 60m ./test/fault $(ARGS)
	$(GO) test -count=1 -timeout 60m ./test/fault/mixed

test-fault-short: ## a part of it, in minutes
	$(GO) test -count=1 -short -timeout 30m ./test/fault/...

test-deploy: ## what users copy from deploy/, run or checked; says what it skipped (a module of its own: deploy/test)
	@deploy/test/run $(ARGS)

test-cluster: ## Kubernetes: a real control plane, and what deploy/ has for it (root; 15 to 40 minutes of building once, then 15)
	@PREPARE=traefik PACKAGES=./cluster deploy/test/run -timeout 90m $(ARGS)

test-fronts: ## deliveries through nginx, HAProxy, Apache, Caddy and Traefik as docs/ingress has them (builds Traefik: some minutes, once)
	@PREPARE=traefik PACKAGES=./front/... deploy/test/run $(ARGS)

test-systemd: ## the packages in a Debian that boots under systemd-nspawn: installed, upgraded, crashed, frozen, reloaded (root; 4 minutes)
	@PREPARE=debian PACKAGES=./systemd/... deploy/test/run $(ARGS)

fuzz: ## every fuzz target, each for FUZZTIME=20s
	@grep -rl '^func Fuzz' --include='*_test.go' . | sort | while read -r file; do \
		for name in $$(sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\)(.*/\1/p' "$$file"); do \
			echo "== $$name ($$file)"; \
			$(GO) test -run '^$$' -fuzz "^$$name$$" -fuzztime $(FUZZTIME) "$$(dirname "$$file")" || exit 1; \
		done; \
	done

bench: build ## what it costs: micro-benchmarks, then beside nginx and net/http (BENCH=short: some minutes; ARGS: see test/bench)
	$(GO) test -run '^$$' -bench . -benchmem $(if $(filter short,$(BENCH)),-benchtime 100ms -short) ./idem/... ./proxy/... ./etcdlock/...
	$(GO) build -o $(BIN)/bench ./test/bench
	$(BIN)/bench -hooklock $(BIN)/hooklock $(if $(filter short,$(BENCH)),-short) $(ARGS)

bench-peers: build ## the same event guarded by PostgreSQL, Redis, etcd's mutex and Restate (BENCH=short: 3 minutes; names what is missing)
	$(GO) build -o $(BIN)/bench ./test/bench
	@$(GO) -C test/peers build -o '$(CURDIR)/$(BIN)/peers' . || { rm -f $(BIN)/peers; echo 'the modules of test/peers cannot be had'; }
	$(BIN)/bench -peers $(BIN)/peers -hooklock $(BIN)/hooklock $(if $(filter short,$(BENCH)),-short) $(ARGS)

lint: $(LINTER) ## what machines can say about the code (the first time builds the linter: some minutes)
	$(LINTER) run ./...

# Built from source, at a fixed version, through your own Go settings: the same findings everywhere.
$(LINTER):
	@mkdir -p $(BIN)/tools
	CGO_ENABLED=0 GOBIN='$(CURDIR)/$(BIN)/tools' $(GO) install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_VERSION)
	@mv $(BIN)/tools/golangci-lint $@

fmt: ## gofmt
	$(GO) fmt ./...

# `go mod tidy -diff` would load the tests of all that the tests' modules import: minutes, the first time.
tidy-check: ## go.mod and go.sum say what is imported, and nothing else (of the tests' modules: nothing less)
	$(GO) mod tidy -diff
	for module in deploy/test deploy/test/vendors deploy/tools test/s3; do \
		$(GO) -C $$module list -deps -test ./... >/dev/null || { echo "$$module: run go mod tidy there"; exit 1; }; done

advisories: ## what is known against the modules that are linked in (asks the Go vulnerability database where it can be reached)
	@.ci/advisories golang.org/x/vuln/cmd/govulncheck@$(GOVULN_VERSION)

pictures: ## docs/pictures: each .dot drawn as .svg (needs graphviz)
	@docs/pictures/draw

page-pictures: ## the pictures of docs/page.md, from its tests in a Chromium
	@mkdir -p $(BIN)/pictures && PICTURES='$(CURDIR)/$(BIN)/pictures' PACKAGES=./page deploy/test/run -run TestEachScreen
	@grep -o 'page-[a-z-]*\.png' docs/page.md | sort -u | while read -r picture; do cp "$(BIN)/pictures/$$picture" docs/pictures/; done

licences: ## docs/licences.md: what is linked in, and under which licence
	$(GO) -C deploy/tools run ./release -version none -licences ../../docs/licences.md

release: ## bin/release: programs for Linux and macOS, bills of materials, checksums; the same bytes each time
	$(GO) -C deploy/tools run ./release -version '$(VERSION)' -out '$(CURDIR)/$(BIN)/release'
	@ls -l $(BIN)/release

packages: ## bin/release: deb and rpm for amd64 and arm64 (MAINTAINER='You <you@example.com>')
	$(GO) -C deploy/tools run ./packages -version '$(VERSION)' $(if $(MAINTAINER),-maintainer '$(MAINTAINER)') -out '$(CURDIR)/$(BIN)/release'

image: ## bin/image: the container image, as an OCI layout and as bin/image.tar; needs no container engine
	$(GO) -C deploy/tools run ./image -version '$(VERSION)' -out '$(CURDIR)/$(BIN)/image'

test-packages: ## what is handed out: unit, packages, image, compose file, release; each made and looked into
	$(GO) -C deploy/tools test -count=1 -timeout 15m ./...

clean: ## what was built
	rm -rf $(BIN)

ci: ## what CI does
	.ci/run

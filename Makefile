GO      ?= go
VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
LDFLAGS := -s -w -X main.release=$(VERSION)
TIME    ?= 10s
REV     ?= main
BEFORE  ?= 46dff4bd
FOR     ?= 5m
ROUNDS  ?= 10

# RACE=1 has the race detector, which takes twice the time and a C compiler. .ci/run has it.
RACE ?=
DEPS := build/deps$(if $(RACE), race)
TEST := CGO_ENABLED=$(if $(RACE),1,0) $(GO) test$(if $(RACE), -race)
# A program with the race detector sleeps for a second before it exits. The tests start hundreds, and look at what each has said.
export GORACE ?= atexit_sleep_ms=0

# Tools are built from the Go module proxy, each version once.
GOLANGCI_LINT_VERSION := v2.15.0
COMPOSE_VERSION       := v2.16.2
GOVULNCHECK_VERSION   := v1.9.0
GOLANGCI_LINT         := .cache/golangci-lint-$(GOLANGCI_LINT_VERSION)/golangci-lint
GOVULNCHECK           := .cache/govulncheck-$(GOVULNCHECK_VERSION)/govulncheck
VULNDB                ?= https://vuln.go.dev

# Of the end-to-end tests, those that a broker can make a difference to. The others are in test.
KAFKA_TESTS ?= TestRunOnce|TestTopicsConverge|TestAnOwnerThatWasPaused|TestKilling|TestAReset|TestACustomerIsErased|Kcat|$\
	TestWithEverythingEncrypted

# What test-versions tries, as Maven Central names it: the oldest and the newest that docs/reference.md names, and some between.
POSTGRES_VERSIONS ?= 13.23.0 14.24.0 15.19.0 16.15.0 17.11.0 18.6.0
KAFKA_VERSIONS    ?= 3.6.2 3.9.2 4.0.2 4.1.2 4.2.1 4.3.1
# Of the end-to-end tests, those that a PostgreSQL can make a difference to.
POSTGRES_TESTS ?= TestRunOnce|TestTopicsConverge|TestRestarts|TestATableThatIsAltered|TestTransactionsThatCommitLate|TestStrangeTimes|$\
	TestWhatChanges|TestABulkUpdate|TestWithoutAFloor|TestAStoppedDatabase|TestVerifyFinds
# Changes of schemas, releases side by side, clusters that are lost or mirrored. HISTORY=: a clone that has not got the release before
# leaves that out.
UPGRADE_TESTS ?= TestAFieldThatIs|TestIncompatibleSchemas|TestTwoReleases|TestACluster|TestAFailover
HISTORY       ?= required

.DEFAULT_GOAL := help
.PHONY: help demo build test test-e2e test-long test-matrix test-kafka test-kafka-producer test-versions chaos test-page test-alerts test-deploy test-consumers lint house fmt bench bench-quick bench-check fuzz compose-check compose-test vulncheck release-check release notice man terminal page-picture deps clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-20s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: ## the whole thing on this machine, with live traffic; Ctrl-C ends it (ARGS=--kafka: on Apache Kafka; ARGS=--help)
	@echo "Building storestream and the demo. The first time takes some minutes."
	@$(MAKE) --no-print-directory --silent build bin/demo
	@bin/demo $(ARGS)

build: ## the programs, into bin/
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '$(LDFLAGS)' -o bin/ ./cmd/...

# What tries storestream out and measures it is a Go module of its own, in lab, so that storestream's go.mod names what storestream needs.
.PHONY: bin/demo bin/chaos bin/bench
bin/demo bin/chaos bin/bench:
	cd lab && CGO_ENABLED=0 $(GO) build -trimpath -o ../bin/ ./$(@F)

test: ## every test, against PostgreSQL, PgBouncer and the embedded broker (installs what is missing; RACE=1: with the race detector)
	@$(DEPS)
	@$(MAKE) --no-print-directory house
	@$(MAKE) --no-print-directory -j 2 test-product test-lab

# Side by side, because each waits a good part of its time for servers, and the longest first, which would be alone at the end. The lab's
# tests run storestream, which go test's cache does not look at: without -count=1 they would be called good of another program.
.PHONY: test-product test-lab
test-product:
	$(TEST) -p 3 -parallel 6 -timeout 20m ./producer ./poller/postgres ./cmd/storestream ./...
test-lab:
	cd lab && $(TEST) -count=1 -p 2 -parallel 6 -timeout 20m ./e2e ./demo ./...

test-e2e: ## every end-to-end scenario (test has one of each promise; E2E=further: all but those), and the runbook's drills on the demo
	@$(DEPS)
	cd lab && E2E=$(or $(E2E),all) $(TEST) -count=1 -parallel 6 -timeout 40m ./e2e
	cd lab && $(GO) test -count=1 -tags drills -timeout 10m ./demo -run TestTheDrills

test-long: ## every property test with ROUNDS (default 10) times the rounds that make test has of it, a sweep of 50M rows, a client held up in a commit
	@$(DEPS)
	STORESTREAM_LONG=1 STORESTREAM_TEST_ROUNDS=$(ROUNDS) $(GO) test -count=1 -parallel 6 -timeout 50m \
		./poller/... ./internal/reconcile ./internal/rowset ./schemas
	STORESTREAM_LONG=1 $(GO) test -count=1 ./producer -run TestACommittedWatermarkIsThere
	cd lab && STORESTREAM_LONG=1 $(GO) test -count=1 ./chaos -run TestTheOperator

test-matrix: ## storestream through every reading of the service's document, any two of them together (a few are in test; SEED=0: other plans)
	@$(DEPS)
	cd lab && $(TEST) -count=1 -timeout 20m ./e2e -run 'TestUnderEveryReading' -parallel 4 -matrix -matrix-seed $(or $(SEED),1)

test-kafka: ## the end-to-end tests of the promise, and the demo, with a real Apache Kafka (installs Java and Maven, which fetches Kafka)
	@$(DEPS) kafka
	cd lab && E2E=all E2E_BROKER=kafka $(TEST) -count=1 -parallel 3 -timeout 20m ./e2e -run '$(KAFKA_TESTS)'
	cd lab && $(TEST) -count=1 -tags kafka -timeout 10m ./demo -run TestOnApacheKafka
	cd lab && $(TEST) -count=1 -tags kafka -timeout 10m ./contracts -run ForKafka

test-kafka-producer: ## the producer's own tests against a real Apache Kafka: some three minutes
	@$(DEPS) kafka
	E2E_BROKER=kafka $(TEST) -count=1 -tags kafka -timeout 20m ./internal/standins/servers ./producer

# The newest and the oldest, one after the other: beside each other a broker may not have deleted the topics of the test before.
.PHONY: test-kafka-producers test-kafka-producer-oldest
test-kafka-producers:
	@$(DEPS) kafka
	@$(MAKE) --no-print-directory test-kafka-producer test-kafka-producer-oldest
test-kafka-producer-oldest:
	@SERVERS_KAFKA=$(firstword $(KAFKA_VERSIONS)) $(MAKE) --no-print-directory test-kafka-producer

.PHONY: test-upgrade
test-upgrade: ## schemas that change, the release before beside this one, a cluster that is lost, MirrorMaker; all with Apache Kafka and Apicurio
	@$(DEPS) kafka
	cd lab && E2E=all E2E_BROKER=kafka E2E_HISTORY=$(HISTORY) $(TEST) -count=1 -parallel 3 -timeout 30m ./e2e \
		-run '$(UPGRADE_TESTS)'

test-versions: ## the tests that a version can make a difference to, on each of POSTGRES_VERSIONS and KAFKA_VERSIONS: some half an hour
	@$(DEPS) kafka
	@GO=$(GO) POSTGRES_VERSIONS="$(POSTGRES_VERSIONS)" KAFKA_VERSIONS="$(KAFKA_VERSIONS)" \
		POSTGRES_TESTS="$(POSTGRES_TESTS)" KAFKA_TESTS="$(KAFKA_TESTS)" build/versions

test-page: ## the status page in Chromium, with a real storestream behind it (installs Chromium; PAGE_SHOTS=folder leaves pictures)
	@$(DEPS) page
	cd lab && $(if $(PAGE_SHOTS),PAGE_SHOTS=$(abspath $(PAGE_SHOTS))) $(GO) test -count=1 -tags page -timeout 10m ./pagetest

test-alerts: ## the alert rules and the dashboard's expressions, by promtool (installs it)
	@$(DEPS) alerts
	promtool check rules deploy/prometheus/alerts.yml
	promtool test rules deploy/prometheus/*_test.yml
	$(GO) test -tags promtool ./deploy

test-deploy: ## the Helm chart, rendered and held against Kubernetes' types, and the systemd unit (installs systemd for its checks)
	@$(DEPS) deploy
	$(GO) test -count=1 ./deploy
	cd lab && $(GO) test -count=1 -tags chart ./chart

test-consumers: ## the examples, which are other people's clients, against Apache Kafka and Apicurio (CONSUMERS="python go": only these)
	@$(DEPS) kafka consumers
	cd lab && CONSUMERS="$(CONSUMERS)" $(GO) test -count=1 -tags consumers -timeout 30m ./consumers

chaos: bin/chaos ## storestream where everything around it fails, for FOR (default 5m) by the plan of SEED (default: any, which it prints); ARGS=--help
	@build/deps race kafka
	@bin/chaos --seed $(or $(SEED),0) --for $(FOR) $(ARGS)

lint: $(GOLANGCI_LINT) ## golangci-lint; which checks and why: .golangci.yml
	$(GOLANGCI_LINT) run ./...
	cd lab && $(abspath $(GOLANGCI_LINT)) run --config ../.golangci.yml ./...
	cd examples/go && $(abspath $(GOLANGCI_LINT)) run --config ../../.golangci.yml ./...

house: ## count what makes code hard to hold, and compare its sizes with lab/budget/budget.txt (MARKS=1: list the marks of hard English)
	@cd lab && $(GO) run ./house $(if $(MARKS),-marks) ..

.PHONY: rows-way
rows-way: ## list our functions on a row's way, from the service's answer to the commit, for both sources (test holds their number)
	@$(DEPS)
	@cd lab && $(GO) test -count=1 -v ./rowsway -run TestARowsWayIsWithinItsBudget

fmt: $(GOLANGCI_LINT) ## format as lint wants it
	$(GOLANGCI_LINT) fmt ./...
	cd lab && $(abspath $(GOLANGCI_LINT)) fmt --config ../.golangci.yml ./...

bench: bin/bench ## measure the whole program beside the version BEFORE, and write docs/performance.md's tables and plots (three quarters of an hour; BENCH=--help)
	@$(DEPS) kafka
	bin/bench --kafka --runs 3 --against $(BEFORE) --write docs/performance.md $(BENCH)

bench-quick: bin/bench ## everything that bench measures, with small numbers: only whether it still runs (some minutes)
	@$(DEPS)
	bin/bench --quick --against $(BEFORE) $(BENCH)

bench-check: bin/bench ## hot paths against REV (default main): allocations, and ratios in one interleaved run
	bin/bench check --against $(REV)

fuzz: ## every fuzz test for TIME (default 10s)
	build/fuzz $(TIME)

# What docker compose config does, by the library that it does it with: no Docker is needed.
compose-check: ## docker-compose.yml against the Compose specification
	$(GO) run github.com/compose-spec/compose-go/v2/cmd@$(COMPOSE_VERSION) docker-compose.yml >/dev/null

compose-test: ## docker-compose.yml, started for real: healthy, read, checked, killed piece by piece, gone (as root, with Docker)
	@$(DEPS) kafka compose
	@GO=$(GO) build/compose-test

vulncheck: $(GOVULNCHECK) ## known vulnerabilities in what the program calls (asks vuln.go.dev; VULNDB=URL: a copy of it)
	@$(GOVULNCHECK) -db $(VULNDB) ./... || { [ $$? = 3 ] || echo "vulncheck: nothing is said of vulnerabilities, because \
	govulncheck ended before it had compared: see above. If $(VULNDB) cannot be reached from here, run make vulncheck on \
	a machine that reaches it, or with VULNDB=URL of a copy (http, https or file)" >&2; exit 1; }

man: ## the man pages, into dist/man (MAN=folder)
	$(GO) test -count=1 ./cmd/storestream -run TestEveryCommandHasAManPage -args -man $(abspath $(or $(MAN),dist/man))

terminal: build bin/demo ## draw docs/terminal.svg anew: what the commands print on the demo
	@GO=$(GO) build/terminal

page-picture: bin/demo ## draw docs/status-page.png anew: the status page of a demo in its first load (installs Chromium)
	@$(DEPS) page
	@GO=$(GO) build/page-picture

release-check: ## what a release needs, as far as it goes without network and keys: licences, snapshot, SBOMs, the same bytes twice
	@GO=$(GO) build/release check

release: ## build a release from a tag, into dist (.github/workflows/release.yml tries, signs and uploads it)
	@GO=$(GO) build/release release

notice: ## write NOTICE: which modules the program contains, and their licences
	@GO=$(GO) build/release notice

deps: ## install what the tests need and this machine lacks
	@$(DEPS) kafka page alerts deploy consumers

clean: ## what was built here
	rm -rf bin .cache dist

$(GOLANGCI_LINT):
	GOBIN=$(abspath $(@D)) $(GO) install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_LINT_VERSION)

$(GOVULNCHECK):
	GOBIN=$(abspath $(@D)) $(GO) install golang.org/x/vuln/cmd/govulncheck@$(GOVULNCHECK_VERSION)

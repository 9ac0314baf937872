# footnote. A newcomer needs two targets: demo and test.

GOLANGCI    := github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
GOVULNCHECK := golang.org/x/vuln/cmd/govulncheck@v1.9.0
VULNDB      := v0.0.0-20261105234957-e22db6528018

BIN    := bin/footnote
TOOLS  := $(CURDIR)/.cache/bin
COMMIT := $(shell git rev-parse --short=12 HEAD 2>/dev/null)$(shell git diff --quiet HEAD 2>/dev/null || echo -changed)

.DEFAULT_GOAL := help
.PHONY: help demo test build check lint vuln fuzz bench clean

help: ## say what can be made
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  make \1\t/' | expand -t 18

include Makefile.native
include Makefile.redis

demo: build ## build all, ingest the demo documents, ask five questions, leave a prompt
	@go run ./cmd/internal/demo $(BIN)

test: native $(if $(CI),redis-get) ## run every test with the race detector
	@echo "test: all packages, with the race detector"
	@go test -race -shuffle=on -timeout 20m ./...

build: native ## make bin/footnote
	@echo "build: $(BIN)"
	@go build -trimpath -ldflags "-X footnote/cmd/internal/command.commit=$(COMMIT)" -o $(BIN) ./cmd/footnote

fuzz: native ## fuzz every parser for FUZZTIME each, 60s if not given
	@.ci/fuzz

check: native lint vuln ## formatting, go vet, linters, go.mod, known vulnerabilities
	@echo "check: everything is in order"

lint: $(TOOLS)/golangci-lint
	@echo "check: gofmt"
	@files=$$(git ls-files -z '*.go' | xargs -0 gofmt -l); [ -z "$$files" ] || { echo "not formatted, run gofmt -w on:"; echo "$$files"; exit 1; }
	@echo "check: go vet"
	@go vet ./...
	@echo "check: go.mod"
	@go mod tidy -diff
	@echo "check: golangci-lint"
	@$(TOOLS)/golangci-lint run ./...

vuln: $(TOOLS)/govulncheck
	@.ci/vulncheck $(TOOLS)/govulncheck $(VULNDB)

bench: native .cache/peers/ready ## speed beside hugot, FAISS, tantivy and bleve, as ratios
	@mkdir -p .cache/bench
	@go -C cmd/internal/bench build -tags ORT -o $(CURDIR)/.cache/bench/bench .
	@.cache/bench/bench -python .cache/peers/bin/python

.cache/peers/ready: cmd/internal/bench/requirements.txt
	@echo "bench: fetching faiss-cpu and tantivy"
	@rm -rf .cache/peers && python3 -m venv .cache/peers
	@.cache/peers/bin/python -m pip install --quiet --disable-pip-version-check --only-binary :all: --require-hashes -r $<
	@touch $@

# 64 MB by default; the target is set for FOOTNOTE_BENCH_BYTES=1073741824.
bench-ingest: native .cache/peers/ingest-ready ## speed and memory of ingestion; extraction beside pdftotext and python-docx
	@mkdir -p .cache/bench
	@go build -o .cache/bench/ingestbench ./cmd/internal/ingestbench
	@.cache/bench/ingestbench -python .cache/peers/ingest/bin/python -bytes $${FOOTNOTE_BENCH_BYTES:-67108864}

.cache/peers/ingest-ready: cmd/internal/ingestbench/requirements.txt
	@echo "bench-ingest: fetching python-docx"
	@rm -rf .cache/peers/ingest && python3 -m venv .cache/peers/ingest
	@.cache/peers/ingest/bin/python -m pip install --quiet --disable-pip-version-check --only-binary :all: --require-hashes -r $<
	@touch $@

$(TOOLS)/golangci-lint: Makefile
	@echo "check: building $(GOLANGCI) (once, about two minutes)"
	@GOBIN=$(TOOLS) GOFLAGS= go install $(GOLANGCI) && touch $@

$(TOOLS)/govulncheck: Makefile
	@echo "check: building $(GOVULNCHECK)"
	@GOBIN=$(TOOLS) GOFLAGS= go install $(GOVULNCHECK) && touch $@

clean: ## remove what was built; the native parts and tools in .cache stay
	rm -rf bin .cache/demo

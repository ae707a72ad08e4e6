# Needs Go (go.mod says which version) and nothing else: no root, and no network once the modules are there.

.DEFAULT_GOAL := help
.PHONY: help build demo test lint bench fuzz clean

help: ## list the targets
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  make \1~\2/p' $(MAKEFILE_LIST) | awk -F'~' '{ printf "%-14s%s\n", $$1, $$2 }'

build: ## static binaries into bin/
	CGO_ENABLED=0 go build -trimpath -o bin/ ./cmd/...

demo: build ## replay an outage: against the rule that prevents it, and without
	bin/enilab demo

test: ## all tests, the scenarios among them
	go test ./...

lint: ## gofmt, go vet, staticcheck: silent when all is well
	@unformatted=$$(gofmt -l .) && test -z "$$unformatted" || { echo "gofmt -w is needed by:"; echo "$$unformatted"; exit 1; }
	@go vet ./...
	@go tool staticcheck ./...

bench: ## benchmarks on one core; the fleet's is in sim/virtual
	GOMAXPROCS=1 go test -run '^$$' -bench . -benchmem $$(grep -rl --include='*_test.go' '^func Benchmark' . | xargs -n1 dirname | sort -u)

FUZZTIME ?= 60s
fuzz: ## every fuzz target for FUZZTIME=60s, one after another
	@grep -rHo --include='*_test.go' '^func Fuzz[A-Za-z0-9_]*' . | sort | while IFS=: read -r file target; do \
		echo "$$(dirname $$file) $${target#func }"; \
		go test -run '^$$' -fuzz "^$${target#func }\$$" -fuzztime $(FUZZTIME) "$$(dirname $$file)" || exit 1; \
	done

clean: ## remove bin/ and what tests leave behind
	rm -rf bin
	find . -name '*.test' -o -name '*.prof' | xargs rm -f

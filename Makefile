# Needs Go (go.mod says which version) and nothing else, and no network once the modules are there. As root on Linux demo, test, bench
# and soak also use the machine's kernel, in namespaces that they make and that are gone afterwards.

.DEFAULT_GOAL := help
.PHONY: help build build-arm64 image demo test short netns lint race race-all seeds e2e bench soak fuzz conform-mutants gate-mutants patches mutation versions atlas conformance worlds behaviour bare clean

# What is released is built without cgo, and so is whatever else is compiled here but for the race detector: once, then.
export CGO_ENABLED := 0
# So is this flag, and the tag below: with others each package would be compiled once more for tests, and again for lint.
export GOFLAGS := $(GOFLAGS) -trimpath

# The tag leaves golang.org/x/net/trace out of gRPC: its templates make the linker keep every method there is, 50 MB of them.
TAGS := -tags grpcnotrace
BUILD := CGO_ENABLED=0 go build -trimpath -tags grpcnotrace -ldflags '-s -w'

help: ## list the targets
	@sed -n 's/^\([a-z0-9-]*\):.*## \(.*\)/  make \1~\2/p' $(MAKEFILE_LIST) | awk -F'~' '{ printf "%-24s%s\n", $$1, $$2 }'

build: ## static binaries into bin/: enilab, enilab-kind, ipamd, aws-cni
	$(BUILD) -o bin/ ./cmd/...

build-arm64: ## what a virtual machine of arm64 needs, into bin/arm64/: enilab, ipamd, aws-cni
	GOARCH=arm64 $(BUILD) -o bin/arm64/ ./cmd/enilab ./cmd/ipamd ./cmd/aws-cni

IMAGE_TAG ?= dev
image: ## container image docker.io/enilab/cni:IMAGE_TAG=dev, for amd64 and arm64, into bin/enilab-cni.tar
	go run ./impl/deploy/mkimage --out bin/enilab-cni.tar --tag $(IMAGE_TAG)

demo: build ## replay every incident, and what each mutant breaks; as root on Linux on a real kernel too
	bin/enilab demo --html bin/demo.html

# A package that takes so long hangs: the slowest needs six minutes beside the others on two cores.
# Without debugging information, which nobody reads here, test binaries are linked in a third of the time; without gRPC's templates
# all of them are a tenth sooner still.
LIMIT := -timeout 30m $(TAGS) -ldflags=-w
# What takes longest begins first: beside it there is time for all others.
PACKAGES := ./sim/virtual ./sim/netns ./...

test: ## all tests, the scenarios among them; as root on Linux with real daemons, plugins and packets: PACKAGES=./impl/... for some
	go test $(LIMIT) $(PACKAGES)

# Linker and tests hold little, and collect garbage for a tenth of the time if nobody stops them.
short: ## what of them takes no minute, without kind, which needs Docker, the real kernel's world (make netns) and the rules for the source (make lint): while you work
	GOGC=400 go test $(LIMIT) -short -p 6 ./impl/daemon ./sim/virtual $$(go list ./... | grep -v -e /e2e -e kind$$ -e /kind/ -e /sim/netns -e /purity)

netns: ## the tests of world netns alone: each scenario on a real kernel, packets, crashes (root, Linux)
	go test $(LIMIT) ./sim/netns/...

lint: ## gofmt, go vet, the rules of internal/purity, staticcheck, no binaries in git: silent when all is well
	@unformatted=$$(gofmt -l .) && test -z "$$unformatted" || { echo "gofmt -w is needed by:"; echo "$$unformatted"; exit 1; }
	@go run ./internal/purity/tracked
	@go vet $(TAGS) ./...
	@go build -o bin/purity ./internal/purity/vet
	@go vet $(TAGS) -vettool=bin/purity ./...
	@go tool staticcheck $(TAGS) ./...

race: ## the race detector: the daemon, what it talks to, the servers; and one seed is one trace
	CGO_ENABLED=1 go test -race -run 'ThousandRuns|Fork' $(LIMIT) ./sim/virtual
	CGO_ENABLED=1 go test -race -short $(LIMIT) ./impl/daemon ./impl/clock ./impl/cloud ./impl/cri ./impl/dataplane/linux ./impl/install \
		./impl/ipc ./impl/kube ./impl/netpolicy ./impl/plugin ./impl/grpclite ./fakes/.../server ./fakes/world

# Packages that have goroutines or what guards against them, in their tests or beside them; but for e2e, which is a run of its own.
race-all: ## the race detector over every package with goroutines, nothing left out (minutes)
	CGO_ENABLED=1 go test -race $(TAGS) -ldflags=-w -timeout 60m $$(grep -rlE --include='*.go' '^\s*go (func|[a-zA-Z_.]+)\(|\.Go\(|"sync"|"sync/atomic"' . | xargs -n1 dirname | sort -u | grep -v '^./e2e$$')

SEEDS ?= 1-20
SWARM ?= 1-500
seeds: build ## every scenario with other seeds, and invented ones: SEEDS=1-20 SWARM=1-500
	bin/enilab run scenarios/*.scn --seeds $(SEEDS)
	$(if $(SWARM),bin/enilab swarm --seeds $(SWARM))

LABELS ?= !long
TIMEOUT ?= $(if $(findstring long,$(subst !long,,$(LABELS))),3h,30m)
e2e: ## pods and scenarios on kind clusters (root, Docker, KIND_NODE_IMAGE): LABELS=datapath for some specs, PROCS=2 for two clusters at once; report in bin/e2e/junit.xml
	@e2e/ready
	@go test -c $(TAGS) -ldflags=-w -o bin/e2e/e2e.test ./e2e
	@$(if $(PROCS),go build -o bin/ginkgo github.com/onsi/ginkgo/v2/ginkgo)
	@ENILAB_E2E=1 exec $(if $(PROCS),e2e/atonce bin/ginkgo --procs=$(PROCS) -v --no-color --timeout=$(TIMEOUT) --label-filter='$(LABELS)' bin/e2e/e2e.test,\
		bin/e2e/e2e.test -ginkgo.v -ginkgo.timeout=$(TIMEOUT) -ginkgo.label-filter='$(LABELS)')

bench: build ## benchmarks on one core, then daemon and plugin on a real kernel, beside ptp, and beside whole other CNIs, then pods on kind
	GOMAXPROCS=1 go test -run '^$$' -bench . -benchmem $$(grep -rl --include='*_test.go' '^func Benchmark' . | xargs -n1 dirname | sort -u)
	go run ./e2e/bench/netns $$(base=$$(cut -d' ' -f1 testdata/base); if git cat-file -e $$base 2>/dev/null; then echo -base $$base; fi)
	go run ./e2e/bench/systems
	@if [ "$$(id -u)" = 0 ] && [ -n "$$KIND_NODE_IMAGE" ] && docker version >/dev/null 2>&1; then go run ./e2e/bench/kind; \
	else echo "skipped: pod start on kind needs root, Docker and KIND_NODE_IMAGE"; fi

soak: ## 500 kills of the daemon and 200 of running plugins on a real kernel (root)
	ENILAB_SOAK=full go test -count=1 -timeout 60m -v ./e2e/soak

FUZZTIME ?= 60s
fuzz: ## every fuzz target for FUZZTIME=60s, one after another
	@grep -rHo --include='*_test.go' '^func Fuzz[A-Za-z0-9_]*' . | sort | while IFS=: read -r file target; do \
		echo "$$(dirname $$file) $${target#func }"; \
		go test -run '^$$' -fuzz "^$${target#func }\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 10x "$$(dirname $$file)" || exit 1; \
	done

conform-mutants: ## break the fakes once for each row of enilab conform, and see the row fail (minutes)
	ENILAB_CONFORM_MUTANTS=all go test -count=1 -timeout 120m -run '^TestMutants$$' -v ./conform

MUTANTS ?= all
GATE_CACHE ?= $(HOME)/.cache/enilab/gate-mutants
gate-mutants: ## the gate against versions that are worse, and some that are not, in virtual machines (hours; again from GATE_CACHE): MUTANTS=all:NAME,NAME or quick
	ENILAB_GATE_MUTANTS=$(MUTANTS) ENILAB_GATE_CACHE=$(GATE_CACHE) go test -v -run TestMutants -timeout 24h -count 1 ./gate/mutants

patches: ## change one line of source, as testdata/patches says, and see the test fail that notices it: PATCH=NAME for one
	ENILAB_PATCHES=$(PATCH) go test -count=1 $(LIMIT) -run '^TestPatches' -v ./internal/mutation

SAMPLE ?= 400
SEED ?= 1
mutation: ## which of SAMPLE=400 changes of impl, drawn by SEED=1, the quick tests notice; goes on where it ended (an hour)
	go run ./internal/mutation/mutate --state bin/mutation.json --sample $(SAMPLE) --seed $(SEED)

VERSIONS ?=
J ?= 2
versions: build ## incidents against released versions in ENILAB_SYSTEMS, into docs/versions.md; goes on where it ended: VERSIONS="1.5.3 1.22" J=2 (hours)
	go run ./gate/versions $(if $(VERSIONS),-versions "$(VERSIONS)") -j $(J)

PAIRS ?=
atlas: build ## gate released versions in ENILAB_SYSTEMS to the next ones, into docs/upgrades.md; goes on where it ended: PAIRS="1.21.2..1.22.0" (hours)
	go run ./gate/atlas -only "$(PAIRS)"

SPECS ?= conformance
conformance: ## Kubernetes' own [sig-network] specs on kind, with its e2e.test (E2E_TEST, E2E_KUBECTL, E2E_IMAGES): SPECS=more KILLS=1 CONTROL=1 BROKEN=no-udp FOCUS=DNS PROCS=8 RESUME=1 (minutes)
	go run ./e2e/conformance -specs $(SPECS) $(if $(KILLS),-kills) $(if $(CONTROL),-control) $(if $(BROKEN),-broken $(BROKEN)) $(if $(FOCUS),-focus "$(FOCUS)") $(if $(PROCS),-procs $(PROCS)) $(if $(RESUME),-resume)

INCIDENTS ?=
WORLDS ?=
worlds: build ## incidents in every world, into docs/incidents.md; goes on where it ended: INCIDENTS=upgrade WORLDS="sim vm" (hours on kind)
	go run ./e2e/worlds -incidents "$(INCIDENTS)" -worlds "$(WORLDS)"

bare: ## a bare Debian with Go and make: the demo there, a gate without iptables and with it (root, debootstrap; minutes)
	.ci/bare

behaviour: build ## write down what the project does, trace by trace: testdata/behaviour.txt (minutes)
	go run ./e2e/behaviour > bin/behaviour.txt
	mkdir -p testdata && mv bin/behaviour.txt testdata/behaviour.txt

clean: ## remove bin/ and what tests leave behind
	rm -rf bin
	find . -name '*.test' -o -name '*.prof' | xargs rm -f

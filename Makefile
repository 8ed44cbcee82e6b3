# SharedOS for Kubernetes. `make help` lists what there is.
#
# Every tool is built from a module of this repository that pins it (tools/*), so a
# checkout, Go and a C compiler (for -race) are all that is needed. A nested module
# that is not there yet is left out.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.NOTPARALLEL:
.DEFAULT_GOAL := help

ROOT := $(CURDIR)
BIN := $(ROOT)/bin
RESULTS := $(ROOT)/dist/test

# What may be set from outside, as in `make demo CLUSTER=current`.
#   CLUSTER   local: the cluster of test/localcluster; current: the one kubectl talks to
CLUSTER ?= local
#   TAG       of the images; the chart's appVersion, which is what the chart expects
TAG ?= $(shell sed -n 's/^appVersion: *//p' charts/sharedos/Chart.yaml)
#   VERSION   compiled into the programs
VERSION ?= $(TAG)
#   PLATFORMS of the images, as in linux/amd64,linux/arm64; this machine's if empty
PLATFORMS ?=
#   FUZZTIME  per fuzz target
FUZZTIME ?= 10s
#   RACE      empty turns the race detector off, where there is no C compiler
RACE ?= -race
#   SUITES    what `make test` runs
SUITES ?= test-unit test-integration test-console test-e2e
#   TEST      flags for every `go test`, as in TEST='-run Admission -v'
TEST ?=
# SHAREDOS_FORBID_SKIP=1 in the environment makes every skipped test a failure.

HELM := $(BIN)/helm
GOLANGCI_LINT := $(BIN)/golangci-lint
GOTESTSUM := $(BIN)/gotestsum
LOCALCLUSTER := go -C $(ROOT)/test/localcluster run .

# Modules, as folders. Those below test/localcluster/binaries only collect other
# projects' programs: they are kept tidy, and are neither linted nor tested.
MODULES := $(sort $(patsubst ./%,%,$(patsubst %/,%,$(dir $(shell find . -name go.mod -not -path '*/testdata/*' -not -path './.cache/*' -not -path './dist/*')))))
LINTED := $(filter-out tools/helm tools/golangci-lint test/localcluster/binaries/%,$(MODULES))
present = $(patsubst %/go.mod,%,$(wildcard $(addsuffix /go.mod,$(1))))
UNIT_MODULES := $(call present,images tools test/localcluster test/peers test/gitops examples/harness)

# Packages of the root module whose tests want a Kubernetes API server.
SERVER_PACKAGES := /(test/integration|injection|controllers)(/|$$)

# Results of tests that read manifests are not cached: Go does not see what helm reads.
# $(call suite,NAME,FOLDER,FLAGS) runs the tests of a module and keeps their record.
suite = cd $(2) && $(GOTESTSUM) --format=pkgname --format-hide-empty-pkg --jsonfile=$(RESULTS)/$(1).json -- $(3) $(TEST)

##@ General

.PHONY: help
help: ## Show this list.
	@awk 'BEGIN {FS = ":.*## "} /^##@/ {printf "\n%s\n", substr($$0, 5)} /^[a-z0-9-]+:.*## / {printf "  %-18s %s\n", $$1, $$2}' Makefile tools/generate.mk

.PHONY: build
build: ## Build the programs into bin/.
	CGO_ENABLED=0 go build -trimpath -ldflags='-s -w' -o $(BIN)/ ./cmd/...

.PHONY: plugin
plugin: ## Build the kubectl plugin, bin/kubectl-sharedos.
	CGO_ENABLED=0 go build -trimpath -ldflags='-s -w $(RELEASE)' -o $(BIN)/ ./cmd/kubectl-sharedos

# The release's number for the programs that answer --version.
RELEASE = -X github.com/sharedos-dev/operator/plugin/internal/command.release=$(VERSION)

.PHONY: sharedos-local
sharedos-local: ## Build what needs no cluster, local runs and tests of manifests: bin/sharedos-local.
	CGO_ENABLED=0 go build -trimpath -ldflags='-s -w $(RELEASE)' -o $(BIN)/ ./cmd/sharedos-local

# With the same flags, so that the standard library is compiled once for both.
.PHONY: example-harness
example-harness: ## Build the example agent, bin/example-harness.
	CGO_ENABLED=0 go -C examples/harness build -trimpath -ldflags='-s -w' -o $(BIN)/example-harness .

.PHONY: first-turn
first-turn: ## Time from a clone with a cold build cache to a finished local Turn.
	examples/first-turn.sh

.PHONY: images
images: ## Build the images into dist/images, without a container engine.
	go -C images run . build --tag=$(TAG) --version=$(VERSION) $(if $(PLATFORMS),--platform=$(PLATFORMS))

.PHONY: push
push: ## Push the images: make push REPOSITORY=registry.example/sharedos.
	@[ -n "$(REPOSITORY)" ] || { echo 'say where to: make push REPOSITORY=registry.example/sharedos' >&2; exit 2; }
	go -C images run . push $(REPOSITORY) --tag=$(TAG) --version=$(VERSION) $(if $(PLATFORMS),--platform=$(PLATFORMS))

.PHONY: demo
demo: images $(HELM) ## From nothing to a finished Turn (CLUSTER=current uses your cluster).
	CLUSTER=$(CLUSTER) HELM=$(HELM) SHAREDOS_IMAGES=$(ROOT)/dist/images SHAREDOS_TAG=$(TAG) go -C test/e2e run ./demo

.PHONY: clean
clean: ## Remove what was built here; the local cluster and its cache stay.
	rm -rf $(BIN) dist .cache

##@ Checks

.PHONY: fmt
fmt: $(GOLANGCI_LINT) ## Format the Go code.
	@for m in $(LINTED); do (cd $$m && $(GOLANGCI_LINT) fmt ./...); done

.PHONY: vet
vet: ## Run go vet on every module.
	@for m in $(LINTED); do echo "vet $$m"; go -C $$m vet ./...; done

.PHONY: lint
lint: $(GOLANGCI_LINT) ## Run the linters on every module.
	@failed=; for m in $(LINTED); do echo "lint $$m"; (cd $$m && $(GOLANGCI_LINT) run ./...) || failed="$$failed $$m"; done; \
	[ -z "$$failed" ] || { echo "findings in:$$failed" >&2; exit 1; }

.PHONY: verify
verify: verify-format verify-tidy verify-dependencies verify-walls verify-generated ## Check formatting, go.mod files, walls and generated files; changes nothing but stale generated files.

.PHONY: verify-format
verify-format:
	@unformatted=$$(git ls-files -co --exclude-standard -- '*.go' | { while read -r f; do [ ! -f "$$f" ] || echo "$$f"; done; } | xargs gofmt -l); \
	[ -z "$$unformatted" ] || { printf 'not formatted, run make fmt:\n%s\n' "$$unformatted" >&2; exit 1; }

.PHONY: verify-tidy
verify-tidy:
	@failed=; for m in $(MODULES); do go -C $$m mod tidy -diff || failed="$$failed $$m"; done; \
	[ -z "$$failed" ] || { echo "run go mod tidy in:$$failed" >&2; exit 1; }

# A direct dependency, or a tool, has its reason in docs/dependencies.md.
.PHONY: verify-dependencies
verify-dependencies:
	@failed=; for m in $(MODULES); do \
		for d in $$(go -C $$m mod edit -print | awk '/^(require|tool) \(/ {on = 1; next} /^\)/ {on = 0} /\/\/ indirect/ {next} \
				on {print $$1} /^(require|tool) [^(]/ {print $$2}'); do \
			case $$d in github.com/sharedos-dev/*) continue ;; esac; \
			grep -qF "\`$$d\`" docs/dependencies.md || failed="$$failed $$m:$$d"; \
		done; \
	done; \
	[ -z "$$failed" ] || { echo "no line in docs/dependencies.md:$$failed" >&2; exit 1; }

# depguard sees what a file imports; these see what a program becomes.
#   $(call wall,PACKAGES,PATTERN) fails if the packages depend on what matches.
define wall
	@inside=$$(go list -deps $(1) | grep -E '$(2)' || true); \
	[ -z "$$inside" ] || { printf '%s must not depend on:\n%s\n' '$(1)' "$$inside" >&2; exit 1; }
endef
KUBERNETES := (^|/)(k8s\.io|sigs\.k8s\.io)/|^github\.com/sharedos-dev/operator/(api|controllers|injection|manager|translate)(/|$$)
# The clients of Kubernetes, and what only they bring along.
CLIENTS := ^(k8s\.io/(api/(admission|apps|discovery|policy)|apiextensions-apiserver|cli-runtime|client-go)|sigs\.k8s\.io/(controller-runtime|kustomize))(/|$$)

.PHONY: vet-windows
vet-windows: ## Look at the plugin as it is on Windows; before a release, because it compiles everything anew.
	GOOS=windows go vet ./cmd/kubectl-sharedos/... ./cmd/sharedos-local/...

.PHONY: verify-walls
verify-walls:
	$(call wall,./kernel/...,$(KUBERNETES)|^net/http$$)
	$(call wall,./mcp/...,$(KUBERNETES))
	$(call wall,./httpapi/... ./client/...,$(KUBERNETES))
	$(if $(wildcard planes),$(call wall,./planes/...,$(KUBERNETES)))
	$(if $(wildcard cmd/bridge-sidecar/*.go),$(call wall,./cmd/bridge-sidecar,$(KUBERNETES)))
	$(if $(wildcard cmd/files-provider/*.go),$(call wall,./cmd/files-provider,$(KUBERNETES)))
	$(call wall,./cmd/sharedos-local,$(CLIENTS))

# Fingerprints of all generated files, one a line.
FINGERPRINTS = git ls-files -co --exclude-standard -- 'api/**/zz_generated*.go' config charts/sharedos/files docs/reference | sort | xargs sha256sum

.PHONY: verify-generated
verify-generated:
	@before=$$($(FINGERPRINTS)); $(MAKE) --no-print-directory generated; after=$$($(FINGERPRINTS)); \
	diff <(echo "$$before") <(echo "$$after") || { echo 'generated files were stale; they are current now, commit them' >&2; exit 1; }

##@ Tests

.PHONY: test
test: ## Unit tests with -race, integration tests, end-to-end tests, and one summary.
	@rm -rf $(RESULTS)
	@for suite in $(SUITES); do $(MAKE) --no-print-directory $$suite; done
	@$(MAKE) --no-print-directory test-summary

.PHONY: test-unit
test-unit: $(GOTESTSUM) ## Tests that need nothing but this machine.
	@mkdir -p $(RESULTS)
	$(call suite,unit,$(ROOT),$(RACE) -timeout=20m $$(go list ./... | grep -vE '$(SERVER_PACKAGES)'))
	@for m in $(UNIT_MODULES); do echo "# $$m"; ($(call suite,unit-$${m//\//-},$$m,$(RACE) -timeout=20m ./...)); done

.PHONY: test-integration
test-integration: $(GOTESTSUM) $(HELM) ## Tests on a real kube-apiserver and etcd, which are built the first time.
	@mkdir -p $(RESULTS)
	@eval "$$($(LOCALCLUSTER) env --only-assets)"; export HELM=$(HELM); \
	($(call suite,integration,$(ROOT),$(RACE) -count=1 -timeout=20m $$(go list ./... | grep -E '$(SERVER_PACKAGES)'))); \
	($(call suite,chart,$(ROOT)/test/chart,-count=1 -timeout=20m ./...))

# A local cluster needs root on Linux. Elsewhere, and with CLUSTER=current, the tests
# use the cluster that kubectl talks to; without either they are skipped, loudly. The
# tests start the local cluster and load the images themselves.
.PHONY: test-e2e e2e
test-e2e: $(GOTESTSUM) $(HELM) images ## Tests with real pods, on the local cluster or with CLUSTER=current.
	@mkdir -p $(RESULTS)
	@export HELM=$(HELM) CLUSTER=$(CLUSTER) SHAREDOS_IMAGES=$(ROOT)/dist/images SHAREDOS_TAG=$(TAG); \
	if [ "$$CLUSTER" = local ] && { [ "$$(uname -s)" != Linux ] || [ "$$(id -u)" != 0 ]; }; then \
		echo '************************************************************************' >&2; \
		echo '* END-TO-END TESTS SKIPPED: the local cluster needs Linux and root.' >&2; \
		echo '* Run as root, or use the cluster of kubectl: make test CLUSTER=current' >&2; \
		echo '************************************************************************' >&2; \
		[ "$${SHAREDOS_FORBID_SKIP:-}" != 1 ] || exit 1; \
		exit 0; \
	fi; \
	$(call suite,e2e,$(ROOT)/test/e2e,-count=1 -timeout=40m ./...)
e2e: test-e2e ## The same as test-e2e.

.PHONY: test-console
test-console: $(GOTESTSUM) ## Tests of the web console in Chromium, with screenshots in dist/screenshots.
	@mkdir -p $(RESULTS)
	@export SHAREDOS_SCREENSHOTS=$(ROOT)/dist/screenshots; \
	$(call suite,console,$(ROOT)/test/console,-count=1 -timeout=20m ./...)

.PHONY: test-harnesses
test-harnesses: $(GOTESTSUM) ## Tests with the real agents' programs, where test/harness has them.
	@mkdir -p $(RESULTS)
	@if [ ! -f test/harness/go.mod ]; then echo 'no module test/harness: nothing to test' >&2; exit 0; fi; \
	$(call suite,harnesses,$(ROOT)/test/harness,-count=1 -timeout=30m ./...)

# Reads the records of all suites once more, so that the last lines are about all of
# them. With SHAREDOS_FORBID_SKIP=1 no test may have been skipped.
.PHONY: test-summary
test-summary: $(GOTESTSUM)
	@if [ "$${SHAREDOS_FORBID_SKIP:-}" = 1 ] && grep -h '"Action":"skip"' $(RESULTS)/*.json | grep '"Test":'; then \
		echo 'tests were skipped, and SHAREDOS_FORBID_SKIP=1 forbids it' >&2; exit 1; \
	fi
	@$(GOTESTSUM) --format=testname --hide-summary=output --raw-command -- cat $(RESULTS)/*.json >$(RESULTS)/summary.txt || { cat $(RESULTS)/summary.txt; exit 1; }
	@tail -n 3 $(RESULTS)/summary.txt

.PHONY: fuzz
fuzz: ## Run every fuzz target for FUZZTIME.
	@for dir in $$(grep -rlE --include='*_test.go' '^func Fuzz' . | xargs -r -n1 dirname | sort -u); do \
		for target in $$(grep -hoE '^func Fuzz[A-Za-z0-9_]*' $$dir/*_test.go | cut -c6-); do \
			echo "# $$dir $$target"; go -C $$dir test -run='^$$' -fuzz="^$$target$$" -fuzztime=$(FUZZTIME) .; \
		done; \
	done

.PHONY: bench
bench: ## Run every benchmark once, with allocations.
	@for dir in $$(grep -rlE --include='*_test.go' '^func Benchmark' . | xargs -r -n1 dirname | sort -u); do \
		echo "# $$dir"; go -C $$dir test -run='^$$' -bench=. -benchmem .; \
	done

##@ Local cluster

.PHONY: cluster-up cluster-down cluster-status
cluster-up: ## Start a real Kubernetes on this machine (Linux, root).
	$(LOCALCLUSTER) up
cluster-down: ## Stop it and remove all of it, except what was built.
	$(LOCALCLUSTER) down
cluster-status: ## Show what runs.
	$(LOCALCLUSTER) status

##@ Generated files

# deep copies, CRDs and reference documents; see the file.
include tools/generate.mk

.PHONY: generate-rbac sync-chart generated
manifests: generate-rbac sync-chart

# Markers are beside the controllers, and in config/rbac for what belongs to none.
RBAC_PACKAGES := $(wildcard config/rbac controllers injection sessions manager)
generate-rbac:
	$(TOOL) controller-gen rbac:roleName=sharedos-manager $(foreach p,$(RBAC_PACKAGES),paths=./$(p)/...) output:rbac:dir=config/rbac

sync-chart: generate-crds generate-rbac $(HELM)
	HELM=$(HELM) charts/sharedos/hack/sync.sh

generated: generate manifests docs ## Make every generated file.

# Tools, each at the version its module pins. Plain builds, so that what they have in
# common with the tests is compiled once.

$(HELM): tools/helm/go.mod tools/helm/go.sum
	go -C tools/helm build -o $@ helm.sh/helm/v4/cmd/helm

$(GOLANGCI_LINT): tools/golangci-lint/go.mod tools/golangci-lint/go.sum
	go -C tools/golangci-lint build -o $@ github.com/golangci/golangci-lint/v2/cmd/golangci-lint

$(GOTESTSUM): tools/go.mod tools/go.sum
	go -C tools build -o $@ gotest.tools/gotestsum

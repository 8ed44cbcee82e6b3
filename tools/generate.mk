# Code and documents that are made from the API types. The Makefile includes this
# file, and its targets run from the root of the repository.
#
#   make generate    deep copies
#   make manifests   CRDs
#   make docs        reference of the API and of its conditions, of the HTTP API and OpenAPI
#
# CRD_COPY_DIR, when set, is a folder that the CRDs are copied into as well.
# TOOL runs a tool at the version that tools/go.mod pins.
TOOL ?= go tool -modfile=tools/go.mod
CRD_COPY_DIR ?=

.PHONY: generate manifests docs generate-deepcopy generate-crds generate-api-docs generate-http-docs

generate: generate-deepcopy ## Make deep copies from the API types.
manifests: generate-crds ## Make CRDs from the API types.
docs: generate-api-docs generate-http-docs ## Make the references of the API and of the HTTP API.

generate-deepcopy:
	$(TOOL) controller-gen object paths=./api/...

generate-crds:
	$(TOOL) controller-gen crd:generateEmbeddedObjectMeta=false paths=./api/... output:crd:dir=config/crd
	$(if $(CRD_COPY_DIR),mkdir -p $(CRD_COPY_DIR) && cp config/crd/sharedos.dev_*.yaml $(CRD_COPY_DIR)/)

generate-api-docs:
	mkdir -p docs/reference
	$(TOOL) crd-ref-docs --source-path=api/v1alpha1 --config=tools/crd-ref-docs/config.yaml \
		--templates-dir=tools/crd-ref-docs/templates --renderer=markdown --log-level=ERROR --output-path=docs/reference/api.md
	go -C tools run ./conditiondocs ../api/v1alpha1 >docs/reference/conditions.md

generate-http-docs:
	mkdir -p docs/reference
	go generate ./httpapi

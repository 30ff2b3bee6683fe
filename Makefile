# Tallyman: what a developer types. `make help` lists it. CMake does the building.

BUILD_DIR ?= build
JOBS      ?= $(shell nproc 2> /dev/null || echo 2)
STAGES    ?=
STATES    ?= 100000
SEEDS     ?= 10000
SEED      ?= 1
WORLDS    ?= 300
SEED      ?= 1729
COUNT     ?= 300
PLAY      ?= play
PLANS     ?= 100000
MINUTES   ?= 10
CHURN_MINUTES ?= 60
SLOTS     ?= 8
BIN       := $(BUILD_DIR)/rel/tallyman
SOURCES    = $(shell find api controller include tests -name '*.[ch]')

.DEFAULT_GOAL := help
.PHONY: help demo demo-cluster cluster-up cluster-down deps build asan test test-nightly test-model test-handover \
        test-small-scope test-scheduler test-torture test-faults test-chaos test-churn test-vopr \
        test-vopr-bugs check bench format tidy coverage test-mutation fuzz reproducible sbom clean

# $(call cmake_build,PRESET,TARGETS): configured once, then only what changed.
define cmake_build
	@mkdir -p $(BUILD_DIR)
	@test -f $(BUILD_DIR)/$(1)/build.ninja || { echo "building $(BUILD_DIR)/$(1)"; \
	    cmake --preset $(1) -B $(BUILD_DIR)/$(1) > $(BUILD_DIR)/$(1).log 2>&1 || \
	    { cat $(BUILD_DIR)/$(1).log; exit 1; }; }
	@cmake --build $(BUILD_DIR)/$(1) -j $(JOBS) $(if $(2),--target $(2)) -- --quiet
endef

# $(call need,TOOL,DEBIAN_PACKAGE): a tool that only this target needs.
define need
	@command -v $(1) > /dev/null || \
	    { echo "make $@: $(1) is missing; on Debian: apt-get install $(2)" >&2; exit 1; }
endef

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' Makefile
	@echo
	@echo "  BUILD_DIR=build    where everything is built    JOBS=$(JOBS)    how many at once"

demo: build ## two gangs that deadlock, without Tallyman and with it, in virtual time
	@$(BIN) simulate examples/deadlock

demo-cluster: build ## the same on a real control plane (builds one at first); KEEP=1 leaves it running
	@tests/cluster/demo --bin $(BIN) $(if $(KEEP),--keep)

cluster-up: ## start a control plane to play with, PLAY=its name
	@tests/cluster/cluster up --name $(PLAY)

cluster-down: ## stop it
	@tests/cluster/cluster down --name $(PLAY)

deps: ## install the packages that building and testing need (Debian)
	@cmake/deps test

build: ## build the program: optimised, hardened, assertions on
	@cmake/deps build
	$(call cmake_build,rel,tallyman)

asan: ## build program and tests with sanitizers
	@cmake/deps test
	$(call cmake_build,asan,)

test: ## run every test; STAGES="unit wire" picks stages
	@cmake/deps test
	@tests/run --build-dir $(BUILD_DIR) --jobs $(JOBS) $(STAGES)

test-nightly: test-model ## besides: 100,000 instances of fair sharing, 20,000 random cases of each property, real traces where TALLYMAN_DATA has them
	$(call cmake_build,dev)
	$(call cmake_build,rel,tallyman)
	@DRF_INSTANCES=100000 $(BUILD_DIR)/dev/property_drf
	@for program in $(BUILD_DIR)/dev/property_*; do \
	    case $$program in *_drf) continue ;; *_backfill) cases=2000 ;; *) cases=20000 ;; esac; \
	    PROPERTY_CASES=$$cases $$program || exit 1; done
	@tests/traces/run --bin $(BIN)

test-model: ## hold the core against the reference model; STATES=100000
	@cmake/deps test
	$(call cmake_build,dev,model)
	@$(BUILD_DIR)/dev/model --states $(STATES)

test-scheduler: build ## hold plan against the real kube-scheduler; WORLDS=300 SEED=1729
	@tests/compare-scheduler/run --bin $(BIN) --worlds $(WORLDS) --seed $(SEED)

test-faults: build ## a fault at each write of S1..S10, on a real API server; PLANS=400 SEED=1 SLOTS=8
	@tests/cluster/faults --bin $(BIN) --count $(PLANS) --seed $(SEED) --slots $(SLOTS)

test-chaos: build ## random faults before a real API server while 500 Jobs come and go; MINUTES=10 SEED=1
	@tests/cluster/chaos --bin $(BIN) --minutes $(MINUTES) --seed $(SEED)

test-churn: build ## an hour of Jobs that come and go on a real API server: nothing grows; CHURN_MINUTES=60 SEED=1
	@tests/cluster/churn --bin $(BIN) --minutes $(CHURN_MINUTES) --seed $(SEED)

test-vopr: ## the whole under faults, from SEED on; SEEDS=10000
	@cmake/deps test
	$(call cmake_build,dev,vopr)
	@PROPERTY_SEED=$(SEED) PROPERTY_CASES=$(SEEDS) $(BUILD_DIR)/dev/vopr

test-vopr-bugs: ## plant bugs in a copy of the committed tree: test-vopr finds each in 2,000 seeds
	@cmake/deps test
	@tests/vopr/bugs/run --build-dir $(BUILD_DIR)/vopr-bugs

test-torture: ## every allocation and system call of store and kube layer fails once
	@cmake/deps test
	$(call cmake_build,asan,torture_store torture_client wire_client)
	@$(BUILD_DIR)/asan/torture_store --all
	@TORTURE=1 tests/wire/run --client $(BUILD_DIR)/asan/wire_client --only 'torture*'

test-handover: ## a thousand hand-overs of the leader's place, simulated
	@cmake/deps test
	$(call cmake_build,dev,handover)
	@$(BUILD_DIR)/dev/handover 1000 $(SEED)

test-small-scope: ## the core under every order of events at small scope, each state once
	@cmake/deps test
	$(call cmake_build,dev,smallscope)
	@$(BUILD_DIR)/dev/smallscope

check: ## run the checks of layering, purity, size, format and words
	@cmake/deps test
	@tests/run --build-dir $(BUILD_DIR) --jobs $(JOBS) checks

bench: build ## measure decisions, start, memory and admissions per second
	$(call cmake_build,rel,bench_policy)
	@tests/bench/run --bin $(BIN)

format: ## put every C file into the project's format
	$(call need,clang-format,clang-format)
	@clang-format -i $(SOURCES)

tidy: ## run clang-tidy on every file
	$(call need,clang,clang)
	$(call need,clang-tidy,clang-tidy)
	$(call cmake_build,tidy,)

coverage: ## count what the tests run through; fails below tests/coverage/floors
	@cmake/deps test
	@cmake/deps measure
	@tests/coverage/run --build-dir $(BUILD_DIR) --jobs $(JOBS)

test-mutation: ## change the core in COUNT small places: do the tests notice? COUNT=300 SEED=1
	@cmake/deps test
	@cmake/deps measure
	@tests/mutation/run --build-dir $(BUILD_DIR)/mutation --jobs $(JOBS) --seed $(SEED) --count $(COUNT)

fuzz: ## build the fuzz targets for libFuzzer, in BUILD_DIR/fuzz
	$(call need,clang,clang)
	$(call cmake_build,fuzz,)
	@ls $(BUILD_DIR)/fuzz/fuzz_*

reproducible: ## build the committed source twice and compare the programs
	@cmake/deps build
	@cmake/reproducible

sbom: build ## write what the program is made of (SPDX), beside it
	@cmake/sbom $(BIN) > $(BIN).spdx.json
	@echo $(BIN).spdx.json

clean: ## remove what was built
	@rm -rf $(BUILD_DIR)

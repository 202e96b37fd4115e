# Everything needs only python3 (3.11 or later), make and git; the rest goes into .venv.
# `make help` lists the targets.

PYTHON ?= python3
VENV   ?= .venv
JOBS   ?= auto
SEEDS  ?= 1000:4000
SOAK   ?= 120
KIT    ?= build/gpu-kit
GPUS   ?= sm_80 sm_90 sm_100 sm_120
FUZZ_JOBS ?= $(shell getconf _NPROCESSORS_ONLN)

BIN      := $(VENV)/bin
PLUGINS  := $(sort $(wildcard plugins/*))
PROJECTS := pyproject.toml $(PLUGINS:%=%/pyproject.toml)
EDITABLE := -e . $(PLUGINS:%=-e ./%) -e "./plugins/tile-time[tools]"
PIP      := $(BIN)/python -m pip --disable-pip-version-check

RUNTIME := $(VENV)/.runtime
DEV     := $(VENV)/.dev
EXPORT  := $(VENV)/.export
PEER    := $(VENV)/.peer

# cuTile's suite goes with one version of cuTile, so it has an environment of its own.
SUITE      ?= https://github.com/NVIDIA/cutile-python
CC         ?= 8.0 9.0 10.0 12.0
SAMPLES    ?= https://github.com/NVIDIA/cutile-python
SUITE_VENV ?= $(VENV)-suite

RELEASES := 13.1.80 13.2.51 13.2.78 13.2.86 13.3.36 13.4.59 13.4.92 13.5.37

.PHONY: help demo test lint format unit fuzz bench conformance samples wheels soak cutile second-provider docs docs-links stubs examples clean releases judge gpu-kit gpu
.DEFAULT_GOAL := help

help: ## this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

demo: $(RUNTIME) ## compile the examples and show what came out
	$(BIN)/python examples/demo.py

test: lint unit ## lint, types and the whole test suite

lint: $(DEV) ## style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright --pythonpath $(BIN)/python

unit: $(DEV) ## the test suite alone
	$(BIN)/pytest -n $(JOBS) -m "not slow and not torch and not gpu"

format: $(DEV) ## rewrite the sources in the project's style
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

fuzz: $(DEV) ## the long tests, and thousands of random programs (SEEDS=FIRST:LAST goes on)
	$(BIN)/pytest -n $(JOBS) -m slow
	$(BIN)/tilec fuzz --seeds $(SEEDS) --jobs $(FUZZ_JOBS)

soak: $(DEV) ## load on a compile server for SOAK minutes, among it crashes and clients that go
	$(BIN)/python tools/soak.py --clients 8 --minutes $(SOAK)

cutile: $(DEV) build/cutile/.done ## cuTile as it comes, with and without NVIDIA's wheel, compiles through our tileiras
	$(BIN)/python tools/cutile_client.py --python build/cutile/plain/bin/python build/cutile/wheel/bin/python

# Absolute: tests run commands in other folders.
ON_SECOND := PYTHONPATH=$(abspath build/second-provider) TILEC_MLIR=numba-cuda-mlir

second-provider: $(DEV) build/second-provider/.done ## the tests of passes, of all that becomes code, and the examples, on other bindings of MLIR
	$(ON_SECOND) $(BIN)/pytest -n $(JOBS) tests/test_filecheck.py tests/unit/test_examples.py \
	  -k "filecheck or (numpy and sm_90)"
	$(ON_SECOND) $(BIN)/pytest -n $(JOBS) tests/unit/tile_nvptx

releases: $(RELEASES:%=build/releases/%) ## NVIDIA's tools, every release, for tests that ask them

judge: $(DEV) releases ## the corpus, broken files, the examples beside tileiras; before every release (an hour)
	$(BIN)/python tests/unit/tile_cudatile/corpus/judge.py
	$(BIN)/python tests/unit/tile_cudatile/differential.py --count 4200 --seed 7 --write
	$(BIN)/python tools/witness_corpus.py
	$(BIN)/python tools/witness.py --tileiras $(firstword $(wildcard build/releases/$(lastword $(RELEASES))/nvidia/*/bin/tileiras))

bench: $(DEV) $(PEER) ## compile times and code size, beside NVIDIA's tileiras where it can be installed
	$(BIN)/python benchmarks/compile_time.py
	$(BIN)/python benchmarks/static.py

gpu-kit: $(DEV) ## a folder that checks compiler, simulator and model on a machine with a GPU (GPUS="sm_90")
	$(BIN)/python tools/gpu_kit.py --target $(GPUS) --out $(KIT)
	@echo "there: pip install numpy cuda-bindings; python run.py. Here: tilec gpu-report results.json --kit $(KIT)"

gpu: $(DEV) gpu-kit ## on a machine with a GPU: the kit, its tests, its report
	$(PIP) install --quiet cuda-bindings
	status=0; TILEC_GPU_KIT=$(abspath $(KIT)) $(BIN)/pytest -m gpu tests/gpu || status=$$?; \
	  $(BIN)/tilec gpu-report $(KIT)/results/results.json --kit $(KIT) && exit $$status

conformance: $(SUITE_VENV)/.done ## cuTile's own test suite in the simulator: make conformance SUITE=folder CC="9.0"
	$(SUITE_VENV)/bin/python tools/conformance.py --suite $(SUITE) --cc $(CC) --jobs 2 \
	  --cache build/conformance --json build/conformance.json --markdown build/conformance.md

samples: $(SUITE_VENV)/.done ## cuTile's samples, run and compiled for every target: make samples SAMPLES=folder
	$(SUITE_VENV)/bin/python -m pytest -m torch tests/unit/tile_sim/test_samples.py tests/unit/tile_sim/test_cutile.py tests/unit/tile_sim/test_chip.py \
	  tests/unit/tile_sim/test_suite.py
	$(SUITE_VENV)/bin/python tools/samples.py --samples $(SAMPLES) --cc $(CC) --jobs 2 \
	  --cache build/conformance --json build/samples.json --markdown build/samples.md

wheels: $(BIN)/python ## every wheel of the repository and of what it needs, into build/wheels
	$(PIP) wheel --quiet --no-deps -C requirements=names -w build/wheels . $(PLUGINS:%=./%)
	$(PIP) wheel --quiet --find-links build/wheels -w build/wheels tilec
	@echo "offline: pip install --no-index --find-links build/wheels tilec"

docs: $(DEV) ## the documentation into build/docs, references made of the code; warnings are errors
	$(BIN)/sphinx-build -q -W --keep-going -b html -d build/docs-trees docs build/docs
	@echo "open build/docs/index.html"

docs-links: $(DEV) ## whether the links of the documentation lead somewhere (needs the network)
	$(BIN)/sphinx-build -q -W --keep-going -b linkcheck -d build/docs-trees docs build/docs-links

stubs: $(DEV) ## write typings anew from the installed bindings
	$(PIP) install --quiet nanobind
	$(BIN)/python typings/generate.py

examples: $(EXPORT) ## write examples/bytecode anew (needs cuda-tile)
	$(BIN)/python examples/export.py

clean: ## remove the environment and what tools left behind
	rm -rf $(VENV) $(SUITE_VENV) build .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
	find . -name '*.egg-info' -type d -prune -exec rm -rf {} +

# --- the environment ------------------------------------------------------------------------------

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "$(PYTHON) is older than 3.11: make PYTHON=python3.11 $(MAKECMDGOALS)" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(PIP) install --quiet --upgrade "pip>=25.1"

$(RUNTIME): $(BIN)/python $(PROJECTS)
	$(PIP) install --quiet $(EDITABLE)
	@touch $@

$(DEV): $(RUNTIME)
	$(PIP) install --quiet --group dev
	@touch $@

$(EXPORT): $(RUNTIME)
	$(PIP) install --quiet --group export
	@touch $@

$(SUITE_VENV)/.done: tools/conformance.txt $(PROJECTS)
	$(PYTHON) -m venv $(SUITE_VENV)
	$(SUITE_VENV)/bin/python -m pip install --quiet --upgrade "pip>=25.1"
	$(SUITE_VENV)/bin/python -m pip install --quiet $(EDITABLE) -r tools/conformance.txt
	@touch $@

build/cutile/.done: $(BIN)/python
	$(PYTHON) -m venv build/cutile/plain
	$(PYTHON) -m venv build/cutile/wheel
	build/cutile/plain/bin/python -m pip install --quiet "cuda-tile>=1.7,<2"
	build/cutile/wheel/bin/python -m pip install --quiet "cuda-tile[tileiras]>=1.7,<2"
	@touch $@

# Only its folder `_mlir` is of use: what the package needs besides is not installed.
build/second-provider/.done: $(BIN)/python
	$(PIP) install --quiet --no-deps --target build/second-provider "numba-cuda-mlir>=0.6"
	@touch $@

build/releases/%: $(BIN)/python
	$(PIP) install --quiet --no-deps --target $@ nvidia-cuda-tileiras==$*

# The peer is optional: the benchmark says so when it is not there.
$(PEER): $(RUNTIME)
	-$(PIP) install --quiet --group peer
	@touch $@

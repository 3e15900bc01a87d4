# The habits of this project. `make` lists them.
.DEFAULT_GOAL := help
SHELL := /bin/bash
PYTHON ?= python3
PY := .venv/bin/python
UV := .venv/bin/uv
UV_VERSION := 0.13.8
# Many tests wait for processes, so twice as many as this machine has cores are at work.
TEST_PROCESSES ?= 4
export PYTHONPATH := $(CURDIR)
# Where it is set, each process would compile anew what it loads.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help setup bootstrap demo up test quick check lint types contracts bench chaos attack long lanes repositories lock clean histories golden docs sandbox-image mcp-conformance

help: ## list these habits
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-13s %s\n", $$1, $$2}'

setup: .venv/.ready ## the environment, from the lock (bootstraps uv itself)

.venv/.ready: requirements.lock packages/toolagent/pyproject.toml packages/service/pyproject.toml
	@test -x $(UV) || $(MAKE) --no-print-directory bootstrap
	@$(UV) pip sync -q --python $(PY) --compile-bytecode --require-hashes requirements.lock
	@$(UV) pip install -q --python $(PY) --no-deps --no-build-isolation -e packages/toolagent -e packages/service
	@touch $@

bootstrap:
	@if command -v uv >/dev/null; then \
	  uv venv -q --allow-existing --python '>=3.11' .venv && uv pip install -q --python $(PY) uv==$(UV_VERSION); \
	elif $(PYTHON) -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
	  $(PYTHON) -m venv .venv && $(PY) -m pip install -q --disable-pip-version-check uv==$(UV_VERSION); \
	else \
	  echo "Python 3.11 or newer with venv is needed (Debian: apt-get install python3-venv), or uv. PYTHON=… names another."; exit 1; \
	fi

demo: setup ## start everything on free ports, stitch pictures, leave the picture, have tools made (no model set: a replayed one)
	@$(PY) -m workers demo

up: setup ## run everything in one process until Ctrl-C
	@exec $(PY) -m workers up

test: setup ## all tests, several at a time; TEST_PROCESSES=0 one after the other, ARGS="tests/api" some
	@# Hundreds of processes load the same modules: those that begin together would each compile them.
	@$(PY) -m compileall -q activities api engine packages workers workflows
	@$(PY) -m pytest -n $(TEST_PROCESSES) --dist loadfile --no-loadscope-reorder $(ARGS)

QUICK = core contracts calls callbacks roles validation house/test_names.py house/test_texts.py house/test_promises.py house/test_workflow_imports.py docs/test_pages.py

quick: setup ## the tests that start no service, in about a minute: before each commit
	@$(PY) -m pytest -q -n 2 --dist loadfile $(addprefix tests/,$(QUICK)) $(ARGS)

LANED = cli docs/test_blocks.py $(addprefix client/test_,conformance.py following.py vendor_uses.py) $(addprefix system/test_,bad_tools.py callbacks.py \
  command_line.py content_store_s3.py external_temporal.py full_disk.py hosts.py idempotency.py killed.py large_results.py local_tools.py lost_steps.py \
  nexus.py refusals.py scripts.py shipped_tools.py stopping.py temporal_killed.py versions.py)

lanes: setup ## the tests that call a real service, with every call in a workflow of its own (off), then with all in lanes
	@for mode in off all; do TEST_LANES=$$mode $(MAKE) --no-print-directory test ARGS="-q $(addprefix tests/,$(LANED))" || exit 1; done

check: setup lint types contracts test ## what .ci/run runs: format, lint, types, import contracts, tests

lint: setup
	@.venv/bin/ruff format --check .
	@.venv/bin/ruff check .

types: setup
	@# Room for young objects: a tenth less processor time for collecting them.
	@NODE_OPTIONS=--max-semi-space-size=64 nice .venv/bin/basedpyright

contracts: setup
	@.venv/bin/lint-imports

bench: setup ## measure us beside others, in turns; ARGS="--quick" is short (see bench/README.md)
	@exec $(PY) -m bench $(ARGS)

chaos: setup ## a thousand calls under kill -9; SEED=7 repeats a plan, ARGS="--calls 60 --kills 3" is short
	@exec $(PY) -m bench.chaos $(if $(SEED),--seed $(SEED)) $(ARGS)

repositories: setup ## have tools made of the drawn public repositories; DIR=FOLDER holds clones of them, named <owner>+<name>
	@exec $(PY) -m bench.repositories $(DIR) $(ARGS)

attack: setup ## every attack on services of its own, with a monitor beside it; ARGS="--only bombs" some (at most 45 minutes, results in tests/attacks/results)
	@exec $(PY) -m tests.attacks $(ARGS)

mcp-conformance: setup ## the conformance suite of MCP, installed by npm, against a service of its own
	@exec $(PY) -m tests.mcp.conformance $(ARGS)

long: setup ## what `make test` shows in short, at full size (results in tests/long/results); ARGS="-k attempt" some
	@# Nothing that this machine can have may be skipped.
	@CI=true exec $(PY) -m tests.long $(ARGS)

histories: setup ## play every path of every workflow on a real server and record it (tests/workflows/histories); ARGS=ControlTool some
	@$(PY) -m tests.workflows.record $(ARGS)

golden: setup ## write what this release puts on the wire (tests/contracts/golden)
	@$(PY) -m tests.contracts.golden

docs: setup ## write what the pages take from the code: settings, command line
	@$(PY) -m tests.docs.generated

lock: ## write requirements.lock anew (hashes, no addresses)
	@test -x $(UV) || $(MAKE) setup
	$(UV) pip compile -q --universal --generate-hashes --python-version 3.11 --group dev --extra meanings \
	  --no-emit-package toolagent --custom-compile-command "make lock" pyproject.toml -o requirements.lock

sandbox-image: ## build the image that containers are made from, out of Debian packages (root on Debian, with an engine)
	@bash deploy/sandbox-image/build $(TOOL_AGENT_DOCKER_BASE_IMAGE)

clean: ## remove the environment, the development state and that of the demo
	rm -rf .venv .state .demo

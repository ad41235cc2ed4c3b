# agent-gate: `make run` to try it, `make test` to trust it.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet

.PHONY: run browser test test-fast check bench chaos screens fuzz clients fix lock clean cluster soak

run: $(VENV)/.run ## Install and start the gateway with something real to try
	@$(BIN)/agent-gate demo --folder home

browser: $(VENV)/.run ## Install what the browser tools need, before the first `make run`
	@$(PIP) install --no-build-isolation -e '.[browser]'

WORKERS ?= 5 # more than a small machine has cores, since many tests wait for another process
test test-fast: export PYTHONDONTWRITEBYTECODE = # what was compiled once is not compiled by every process of the tests

test: $(VENV)/.dev ## Install what the tests need, and run them
	@$(BIN)/python -m tests.fetch >/dev/null 2>&1 & $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal

test-fast: $(VENV)/.dev ## What needs no other process: for the loop while writing
	@$(BIN)/python -m pytest -n 3 --dist worksteal $(addprefix tests/,access audit config core observe policy results)

check: $(VENV)/.dev ## Lint, types, layers, docs against the code
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-logo 2>/dev/null || $(BIN)/lint-imports
	@$(BIN)/python tools/class_names.py
	@$(BIN)/python tools/function_names.py
	@$(BIN)/python -m pytest -p no:cacheprovider tests/docs

bench: $(VENV)/.dev ## Measure CPU per call, discovery on real servers and the browser's pages, and print the tables
	@$(BIN)/python -m bench
	@$(BIN)/python -m bench.discovery
	@$(BIN)/python -m bench.browser

chaos: $(VENV)/.dev ## A thousand kills; the record must survive them all
	@AGENT_GATE_KILLS=1000 $(BIN)/python -m pytest tests/chaos --timeout=7200 -s

screens: $(VENV)/.dev ## Draw the screenshots of the docs anew
	@$(BIN)/python -m tests.ui.screens docs/images

cluster: $(VENV)/.dev ## Two and three gateways behind HAProxy, restarted, killed and cut off in turn while agents call
	@AGENT_GATE_RESTARTS=$(or $(RESTARTS),50) AGENT_GATE_FAULTS=$(or $(FAULTS),5) $(BIN)/python -m pytest tests/cluster --timeout=3600 -s

soak: $(VENV)/.dev ## An hour (MINUTES=60) of calls and ten thousand agents over TLS; nothing may stay behind
	@$(BIN)/python -m bench.soak --minutes $(or $(MINUTES),60) --agents $(or $(AGENTS),10000)

fuzz: $(VENV)/.dev ## Hostile input, guided by coverage: MINUTES for each target (TARGET=http_reader for one)
	@AGENT_GATE_FUZZ=$(or $(MINUTES),2) AGENT_GATE_FUZZ_TARGET=$(TARGET) $(BIN)/python -m pytest tests/fuzz/test_fuzz_targets.py -n 2 -rP

clients: $(VENV)/.dev ## Install Claude Code, Codex, Gemini CLI and OpenCode (1 GB); they must find and reach the gateway, and sign in
	@AGENT_GATE_CLIENTS=1 $(BIN)/python -m pytest tests/clients/test_client_programs.py tests/clients/test_client_sign_in.py --timeout=900

fix: $(VENV)/.dev
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

lock: $(VENV)/.dev ## Pin the newest versions that fit, with hashes
	@$(PIP) install uv
	@$(BIN)/uv pip compile pyproject.toml --group build --universal --python-version 3.11 --generate-hashes --no-header --no-annotate --upgrade --quiet -o requirements.lock
	@$(BIN)/uv pip compile pyproject.toml --group build --extra postgres -c requirements.lock --universal --python-version 3.11 --generate-hashes --no-header --no-annotate --upgrade --quiet -o requirements-postgres.lock
	@$(BIN)/uv pip compile pyproject.toml --group build --group dev --universal --python-version 3.11 --generate-hashes --no-header --no-annotate --upgrade --quiet -o requirements-dev.lock

clean:
	rm -rf $(VENV) .cache build dist

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "Python 3.11 or newer is needed; name one with make PYTHON=python3.11")'
	@$(PYTHON) -m venv $(VENV)

$(VENV)/.run: requirements.lock pyproject.toml | $(VENV)/bin/python
	@echo "Installing into $(VENV) …"
	@$(PIP) install --require-hashes -r requirements.lock
	@$(PIP) install --no-deps --no-build-isolation -e .
	@touch $@

$(VENV)/.dev: requirements-dev.lock $(VENV)/.run
	@echo "Installing what the tests need …"
	@$(PIP) install --require-hashes -r requirements-dev.lock
	@touch $@

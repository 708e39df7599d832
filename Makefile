# `make demo` and `make test` do all their set-up in .venv; nothing is written outside this folder.
PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin
# as many processes as there are processors; a file's tests stay together until one runs out of work
WORKERS = -n logical --dist worksteal
DEMO = gpt3-6.7b:batch=1,tokens=2048 tpu-v4i --objective energy --max-fused-loops 1

.PHONY: pages demo test test-all test-browser docs bench bench-scaling bench-arrays bench-alone lint install install-dev clean

# The main job: the optimal fused mapping of a GPT-3 6.7B layer onto TPUv4i.
demo: install
	$(BIN)/einloom map $(DEMO) --json r.json

# Lint, strict types, and every test but the slow ones.
test: install-dev lint
	$(BIN)/python -m pytest $(WORKERS) -m "not slow"

# The slow ones too.
test-all: install-dev lint
	$(BIN)/python -m pytest $(WORKERS)

# The reports in a real browser: needs Debian's chromium and chromium-driver.
test-browser: install-dev
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[dev,browser]'
	$(BIN)/python -m pytest -m browser tests/report

# The pages as a site in docs/_build/html, every warning an error; and everything that they promise, run.
docs: install-dev
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[dev,docs]'
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs docs/_build/html
	$(BIN)/python -m pytest -q tests/docs tests/inputs/test_pages.py

# einloom and AccelForge side by side (bench/README.md); fails if bench/setup_peer.sh was not run before.
bench: install
	$(BIN)/python -m bench.peer

# CPU time against the length of a chain; microseconds per choice of tiles; what only einloom solves.
bench-scaling bench-arrays bench-alone: bench-%: install
	$(BIN)/python -m bench.$*

# Every measured table, written into its page from its CSV (bench/README.md).
pages: install
	$(BIN)/python -m bench.pages

lint: install-dev
	$(BIN)/ruff check .
	$(BIN)/mypy

install: $(VENV)/.installed

install-dev: $(VENV)/.installed-dev

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "einloom needs Python 3.11 or newer: make PYTHON=...")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: pyproject.toml constraints.txt | $(BIN)/python
	$(BIN)/python -m pip install --quiet -c constraints.txt -e .
	@touch $@

$(VENV)/.installed-dev: pyproject.toml constraints.txt | $(BIN)/python
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[dev]'
	@touch $@ $(VENV)/.installed

clean:
	rm -rf $(VENV) docs/_build build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis

# `make demo` and `make test` set up everything they need in .venv; the second time they are quick.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check

# Bytecode is kept, also where the environment says otherwise: else each worker of the tests, and each
# program that they start, compiles what it imports again.
unexport PYTHONDONTWRITEBYTECODE

# What is marked slow has a target of its own (tests/conftest.py).
TESTS := -m pytest --numprocesses 2
QUICK := -m "not slow"

.PHONY: help install demo lint types test test-all test-lowest test-newest coverage format bench \
	experiments clean

help:
	@echo "make demo    show what private-gsd does, on simulated data"
	@echo "make test    lint, type-check and run the quick tests (a few minutes)"
	@echo "make test-all run the slow tests, which make test leaves out (six minutes)"
	@echo "make test-lowest run the quick tests with the lowest dependencies that pyproject.toml allows"
	@echo "make test-newest run them with today's newest"
	@echo "make coverage run all tests, and print which branches none of them takes"
	@echo "make install set up .venv for development (all others do it themselves)"
	@echo "make format  format the code and sort its imports"
	@echo "make bench   run the benchmarks"
	@echo "make experiments DATA=FILE.csv  the paper's figures and tables (an hour); QUICK=1 for a look"
	@echo "make clean   remove .venv, caches and the demo's output"

$(VENV)/created:
	@$(PYTHON) -c 'import sys; v = sys.version_info; sys.exit(v < (3, 11) and f"private-gsd needs Python 3.11 or newer, and {sys.executable} is {v[0]}.{v[1]}. Try: make PYTHON=python3.12 $(MAKECMDGOALS)")'
	@echo "Creating $(VENV) ..."
	@$(PYTHON) -m venv $(VENV)
	@touch $@

# The demo needs the package alone; the tests need the tools too.
$(VENV)/package: pyproject.toml $(VENV)/created
	@echo "Installing private-gsd into $(VENV) (a minute the first time) ..."
	@$(PIP) --editable .
	@touch $@

$(VENV)/tools: $(VENV)/package
	@echo "Installing the test tools into $(VENV) ..."
	@$(PIP) --editable '.[dev]'
	@touch $@

install: $(VENV)/tools

demo: $(VENV)/package
	@$(BIN)/private-gsd demo

lint: install
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/lint-imports
	@$(MAKE) --no-print-directory --jobs 2 types types-darwin types-win32

types:
	@$(BIN)/mypy

types-%:
	@$(BIN)/mypy --platform $* --cache-dir .mypy_cache/$* --package private_gsd

test: lint
	@$(BIN)/python $(TESTS) $(QUICK)

test-all: install
	@$(BIN)/python $(TESTS) -m slow

# Each has an environment and compiled kernels of its own.
.venv-lowest/tools: pyproject.toml
	@echo "Installing the lowest dependencies into .venv-lowest ..."
	@$(PYTHON) -m venv --clear .venv-lowest
	@.venv-lowest/bin/python -m pip install --quiet --disable-pip-version-check uv
	@.venv-lowest/bin/uv pip install --quiet --python .venv-lowest/bin/python \
		--resolution lowest-direct --editable '.[dev]'
	@touch $@

.venv-newest/created:
	@$(PYTHON) -m venv .venv-newest
	@touch $@

test-lowest: .venv-lowest/tools
	@NUMBA_CACHE_DIR=$(CURDIR)/.venv-lowest/kernels .venv-lowest/bin/python $(TESTS) $(QUICK)

test-newest: .venv-newest/created
	@echo "Installing the newest dependencies into .venv-newest ..."
	@.venv-newest/bin/python -m pip install --quiet --disable-pip-version-check --upgrade uv
	@.venv-newest/bin/uv pip install --quiet --python .venv-newest/bin/python \
		--upgrade --editable '.[dev]'
	@NUMBA_CACHE_DIR=$(CURDIR)/.venv-newest/kernels .venv-newest/bin/python $(TESTS) $(QUICK)

coverage: install
	@$(BIN)/python $(TESTS) --cov --cov-report=term

format: install
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

bench: install
	@$(BIN)/python -m benchmarks.encoding
	@$(BIN)/python -m benchmarks.counting
	@$(BIN)/python -m benchmarks.noise
	@$(BIN)/python -m benchmarks.genetic
	@$(BIN)/python -m benchmarks.endtoend
	@$(BIN)/python -m benchmarks.predicates
	@$(BIN)/python -m benchmarks.scale

DATA ?= census
RESULTS ?= results
experiments: install
	@$(BIN)/python -m experiments all --data $(DATA) --out $(RESULTS) $(if $(QUICK),--quick)

clean:
	rm -rf $(VENV) .venv-lowest .venv-newest .mypy_cache .ruff_cache .pytest_cache .hypothesis .coverage .import_linter_cache demo
	find . -name __pycache__ -prune -exec rm -rf {} +

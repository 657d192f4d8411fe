# `make demo` and `make test` set up everything they need in .venv; the second time they are quick.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check

.PHONY: help install demo test coverage lint format bench experiments clean

help:
	@echo "make demo    show what private-gsd does, on simulated data"
	@echo "make test    lint, type-check and test everything"
	@echo "make coverage test everything, and print which branches no test takes"
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
	@$(BIN)/mypy
	@$(BIN)/mypy --platform darwin --cache-dir .mypy_cache/darwin --package private_gsd
	@$(BIN)/mypy --platform win32 --cache-dir .mypy_cache/win32 --package private_gsd

test: lint
	@$(BIN)/python -m pytest --numprocesses 2

coverage: install
	@$(BIN)/python -m pytest --numprocesses 2 --cov --cov-report=term

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
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .coverage .import_linter_cache demo
	find . -name __pycache__ -prune -exec rm -rf {} +

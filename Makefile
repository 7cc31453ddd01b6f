# Everything that there is to run. Needs Python 3.11 or later (with venv), git and make.
#
#   make demo         a whole grid for a minute: starts it, asks it a question, stops it
#   make test         lint, types, import rules, the wheel by itself, the tests
#   make proof        the full counts at the default time limits (about an hour)
#   make bench-quick  first figures beside a direct call
#   make lint         only what needs no server
#   make format       puts the code into its form
#   make clean        removes what the above made

PYTHON ?= $(firstword $(foreach p,python3.11 python3.12 python3.13 python3.14 python3,$(shell command -v $(p))))
VENV := .venv
BIN := $(VENV)/bin
RUNTIME := $(VENV)/.runtime
DEV := $(VENV)/.dev
PIP := $(BIN)/python -m pip --disable-pip-version-check

.PHONY: demo test proof bench-quick lint format wheel clean
.DEFAULT_GOAL := test

demo: $(RUNTIME)
	./demo.sh $(BIN)/cogrid

test: lint wheel
	./tests/run.sh $(BIN)/pytest

proof: $(DEV)
	$(BIN)/pytest -rs -m proof

bench-quick: $(DEV)
	$(BIN)/python -m benchmarks.quick

lint: $(DEV)
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

wheel: $(DEV)
	./tests/wheel_smoke.sh $(BIN)/python

format: $(DEV)
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

clean:
	rm -rf $(VENV) dist build .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

# Two stamps, so that the demo installs only what cogrid itself needs. Both are made anew when
# pyproject.toml changes.
$(DEV): $(RUNTIME)
	$(PIP) install --quiet --editable . --group dev
	@touch $@

$(RUNTIME): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "cogrid needs Python 3.11 or later; set PYTHON=..." >&2; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) install --quiet --upgrade 'pip>=25.1'
	$(PIP) install --quiet --editable .
	@touch $@

# Every target makes its own .venv first, on any machine with Python 3.11 or newer.

VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
READY := $(VENV)/.ready

# What the demo needs; the tests need `all` but for agents, which nothing uses yet.
DEMO := cli,embed,sync,server
EXTRAS := $(DEMO),sanitize,dev

# 3.11 first: constraints.txt was resolved on it. ensurepip is what Debian leaves out of a bare python3.
PYTHON = $(shell for name in python3.11 python3.12 python3.13 python3.14 python3 python; do \
    "$$name" -c 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
    && command -v "$$name" && break; done)

.PHONY: help demo test lint mypy pyright style check vectors bench clean

help:
	@echo "make demo    the whole story in one run, on this machine only"
	@echo "make test    the tests"
	@echo "make check   format, lint, types and layers, then the tests"
	@echo "make vectors the interop vectors anew, and what changed in them (nothing should)"
	@echo "make bench   the benchmarks (LOCOMO=FILE: recall too)"
	@echo "make clean   remove .venv and everything that the tools left"

demo: $(READY)
	$(BIN)/memseal demo

# worksteal: each process takes a run of files, and what another still has to do when it is done with them.
test: $(INSTALLED)
	$(BIN)/python -m pytest --numprocesses auto --dist worksteal

lint: mypy pyright style

mypy: $(INSTALLED)
	$(BIN)/mypy

pyright: $(INSTALLED)
	$(BIN)/pyright --pythonpath $(BIN)/python

style: $(INSTALLED)
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/lint-imports

check: lint
	@$(MAKE) --no-print-directory test

vectors: $(INSTALLED)
	$(BIN)/python interop-vectors/primitives/generate.py
	$(BIN)/python interop-vectors/generate.py
	git diff --exit-code --stat -- interop-vectors format-spec/worked-example.md
	@test -z "$$(git ls-files --others --exclude-standard -- interop-vectors)" || { echo "new files:"; git ls-files --others --exclude-standard -- interop-vectors; exit 1; }

bench: $(INSTALLED)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[bench]'
	$(BIN)/python tests/bench/vault.py
	$(BIN)/python tests/bench/container.py
	$(BIN)/python tests/bench/scale.py --sizes 10000 100000
	$(BIN)/python tests/bench/server.py
	$(BIN)/python tests/bench/sync.py
	$(BIN)/python tests/bench/sanitizer.py
	$(BIN)/python tests/bench/probes.py
	$(if $(LOCOMO),$(BIN)/python tests/bench/locomo.py $(LOCOMO),@echo 'LOCOMO=path/to/locomo.json runs the recall benchmark too')

clean:
	rm -rf $(VENV) build dist .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Written last, so that an install that was cut short runs again.
$(INSTALLED): pyproject.toml constraints.txt
	$(call install,$(EXTRAS))
	touch $(READY) $@

$(READY): pyproject.toml constraints.txt
	$(call install,$(DEMO))
	touch $@

define install
	$(if $(PYTHON),,$(error memseal needs Python 3.11 or newer with venv (Debian: apt-get install python3-venv)))
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[$(1)]'
endef

# Every target sets itself up: the first one creates .venv and installs the pinned versions of constraints.txt.
ifndef PYTHON
PYTHON := $(shell for p in python3.11 python3; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
endif
VENV := .venv
PY := $(VENV)/bin/python
PIP := $(PY) -m pip --quiet --quiet --disable-pip-version-check install --constraint constraints.txt
JOBS ?= $(shell n=$$(nproc 2>/dev/null || echo 2); echo $$((n < 4 ? n : 4)))
RUN := $(VENV)/.run-ready
DEV := $(VENV)/.dev-ready
DOCS = NO_MKDOCS_2_WARNING=1 $(PY) -m mkdocs build --strict --config-file docs/config/mkdocs.yml

.PHONY: help install evolve test test-long lint docs bench clean
.DELETE_ON_ERROR:

help:
	@echo "make install  set up .venv with the package, its extras and the development tools"
	@echo "make evolve   find an interface for xland-easy (minutes on two cores, no API key)"
	@echo "make test     the test suite, without the tests marked long or slow"
	@echo "make test-long  the tests marked long, which CI runs too"
	@echo "make lint     ruff, formatting, pyright and the links of the documentation"
	@echo "make docs     the documentation as a site, in site/"
	@echo "make bench    candidates per hour: together against one by one"
	@echo "make clean    remove .venv, caches and build output; runs/ stays"

install: $(DEV)
	@echo "Installed. The commands are in $(CURDIR)/$(VENV)/bin:"
	@echo "    export PATH=$(CURDIR)/$(VENV)/bin:\$$PATH"
	@echo "    jaxreward doctor"
	@echo "    jaxreward evolve --task xland-easy"

evolve: $(RUN)
	@$(PY) scripts/evolve.py --task xland-easy --baselines sparse best-of-n $(ARGS)

test: $(DEV)
	@$(PY) -m pytest -m "not slow and not long" -n $(JOBS) --dist loadfile --no-loadscope-reorder

test-long: $(DEV)
	@$(PY) -m pytest -m "long and not slow" -n $(JOBS) --dist loadfile --no-loadscope-reorder

lint: $(DEV)
	@$(PY) -m ruff check
	@$(PY) -m ruff format --check
	@$(PY) -m pyright --pythonpath $(PY)
	@$(DOCS) --quiet --site-dir $(CURDIR)/$(VENV)/site

docs: $(DEV)
	@$(DOCS) --site-dir $(CURDIR)/site

bench: $(RUN)
	@$(PY) benchmarks/candidate_throughput.py

clean:
	@rm -rf $(VENV) build dist site *.egg-info .pytest_cache .ruff_cache .hypothesis
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(RUN): pyproject.toml constraints.txt
	@test -n "$(PYTHON)" || { echo "jaxreward needs Python 3.11 or newer: make PYTHON=/path/to/python3.11" >&2; exit 1; }
	@echo "Setting up $(VENV) with $(PYTHON): a few minutes the first time ..."
	@$(PYTHON) -m venv $(VENV)
	@$(PIP) setuptools
	@$(PIP) --no-build-isolation --editable ".[all]"
	@touch $@

$(DEV): $(RUN)
	@echo "Installing the development tools ..."
	@$(PIP) --no-build-isolation --editable ".[dev]"
	@touch $@

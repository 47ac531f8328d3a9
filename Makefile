# One command each; every target sets itself up. Needs: make, git, a C++ compiler, Python 3.11 to 3.13.
#   make demo | test | test-all | lint | clean          PYTHON=… chooses the interpreter, VENV=… the folder

VENV ?= .venv
TEST_JOBS ?= 2
PYTEST_ARGS ?=
RUN = $(VENV)/bin/python
PYTEST = $(RUN) -m pytest -ra -n $(TEST_JOBS) --dist worksteal

.PHONY: help setup demo test test-all lint clean

help:
	@sed -n '2s/^# */  /p' Makefile

# Does nothing when the virtual environment was made here from this pyproject.toml; a copied or moved checkout,
# another interpreter gone, or changed dependencies make it anew. VIRTUAL_ENV and PYTHON* of a caller's own
# environment don't reach it. Checksums, not times: a fresh clone has today's times everywhere.
setup:
	@unset VIRTUAL_ENV PYTHONHOME PYTHONPATH; set -u; \
	fits='import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))'; \
	stamp="$$(pwd) $$(cksum < pyproject.toml)"; \
	if [ "$$(cat '$(VENV)/.astra-installed' 2>/dev/null)" = "$$stamp" ] && $(RUN) -c "$$fits" 2>/dev/null; then exit 0; fi; \
	rm -f '$(VENV)/.astra-installed'; \
	if ! $(RUN) -m pip --version >/dev/null 2>&1 || ! $(RUN) -c "$$fits" 2>/dev/null; then \
	  found=; \
	  for python in $${PYTHON:-python3 python3.13 python3.12 python3.11 python}; do \
	    "$$python" -c "$$fits" 2>/dev/null || continue; \
	    found="$$python"; \
	    echo "Making $(VENV) with $$python ($$("$$python" --version))"; \
	    rm -rf '$(VENV)'; \
	    "$$python" -m venv '$(VENV)' >/dev/null 2>&1 && $(RUN) -m pip --version >/dev/null 2>&1 && break; \
	    rm -rf '$(VENV)'; \
	  done; \
	  if [ -z "$$found" ]; then \
	    echo "astra needs Python 3.11, 3.12 or 3.13, and none is on PATH. Install one (apt-get install python3 python3-venv), or run: make PYTHON=/path/to/python" >&2; \
	    exit 2; \
	  fi; \
	  if [ ! -x '$(RUN)' ]; then \
	    echo "$$found can't make a virtual environment (venv or ensurepip is missing). Install it: apt-get install python3-venv" >&2; \
	    exit 2; \
	  fi; \
	fi; \
	echo "Installing astra-integrate and its development tools into $(VENV)"; \
	$(RUN) -m pip install -qq --disable-pip-version-check -e '.[dev]' || { \
	  echo "pip could not install the dependencies (see above): check the package index and the network" >&2; exit 2; }; \
	printf '%s\n' "$$stamp" > '$(VENV)/.astra-installed'

demo: setup
	@$(RUN) -m astra_integrate.demo

test: setup
	$(PYTEST) -m "not slow and not gpu" $(PYTEST_ARGS)

test-all: setup
	$(PYTEST) $(PYTEST_ARGS)

lint: setup
	$(RUN) -m ruff check .
	$(RUN) -m ruff format --check .
	$(RUN) -m mypy

clean:
	rm -rf '$(VENV)' build dist ./*.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Two commands do everything: `make html` and `make test`. See the README.

UV_VERSION := 0.13.9
# Editions of the site, by Sphinx's name of the language; each gets a folder of its own.
EDITIONS := en
PORT := 8000
SPHINX_FLAGS := -c . -W --keep-going -n

# A fitting Python of this machine. Without one, uv fetches that of .python-version.
FITS := import sys; sys.exit(not (3, 12) <= sys.version_info[:2] <= (3, 14))
PYTHON := $(shell for p in python3.13 python3.14 python3.12 python3 python; do \
    $$p -c '$(FITS)' 2>/dev/null && $$p -c 'import sys; print(sys.executable)' && break; done)
ifneq ($(PYTHON),)
export UV_PYTHON ?= $(PYTHON)
endif
# uv: the reader's own, or one in this folder.
UV := $(or $(shell command -v uv 2>/dev/null),.uv/bin/uv)
BIN := .venv/bin
# Many tests wait for processes that they start: one worker more than there are cores.
WORKERS := $(shell echo $$(($$(getconf _NPROCESSORS_ONLN) + 1)))
# What runs here uses the project's environment and no other.
unexport VIRTUAL_ENV PYTHONPATH PYTHONHOME JUPYTER_PATH UV_PROJECT_ENVIRONMENT \
  UV_NO_DEV UV_NO_DEFAULT_GROUPS UV_NO_GROUP UV_PROJECT UV_WORKING_DIRECTORY

.DEFAULT_GOAL := html
.PHONY: help html test lint serve clean newest-jax

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-10s %s\n", $$1, $$2}' Makefile

html: .venv/synced ## build the site, executing the pages that changed (the default)
	@for language in $(EDITIONS); do \
	  edition=$$(echo $$language | tr '_A-Z' '-a-z'); \
	  echo "edition $$edition"; \
	  $(BIN)/sphinx-build $(SPHINX_FLAGS) -q -b html -D language=$$language \
	    -d _build/doctrees/$$edition docs _build/html/$$edition || { \
	      echo "The site was not built. The reason is above; a warning counts as an error." >&2; \
	      exit 1; }; \
	done
	@cp docs/_root/index.html _build/html/index.html
	@echo "The site is ready: open _build/html/index.html"

test: lint html ## check everything: lint, types, the site, unit tests, the built pages
	$(BIN)/pytest -n $(WORKERS)

lint: .venv/synced
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyrefly check

serve: .venv/synced ## build, serve at PORT (8000), and rebuild on each change
	$(BIN)/sphinx-autobuild --port $(PORT) $(SPHINX_FLAGS) -q -b html --watch src --watch examples \
	  --watch docs/_ext -d _build/doctrees/en docs _build/html/en

newest-jax: .venv/synced ## put the newest JAX in place of the locked one (until the lock changes)
	$(UV) pip install --python $(BIN)/python --quiet --upgrade --compile-bytecode jax jaxlib

clean: ## remove what was built (the environment in .venv stays)
	rm -rf _build

.venv/synced: pyproject.toml uv.lock .python-version | $(UV)
	@test -n "$(UV_PYTHON)" || echo "No Python 3.12 to 3.14 on the PATH: uv downloads one from GitHub." \
	  "Without access to it, install one, or name one: make html UV_PYTHON=/path/to/python3.13" >&2
	$(UV) sync --locked --compile-bytecode --quiet
	@touch $@

.uv/bin/uv:
	@echo "getting uv $(UV_VERSION) into .uv"
	@python3 -m venv .uv 2>/dev/null && .uv/bin/python -m pip install -q uv==$(UV_VERSION) \
	  || python3 -m pip install -q --target .uv uv==$(UV_VERSION) \
	  || { echo "Could not install uv: install it (https://docs.astral.sh/uv/), or" \
	         "Python's venv and pip (Debian: python3-venv), and try again." >&2; exit 1; }

# Two commands: `make demo` does the main job, `make test` checks everything.  Both set up .venv first.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready

.PHONY: demo test lint types tests paper paper-quick docs notebooks site bench extension system-deps lock components clean
.DEFAULT_GOAL := demo

demo: $(READY)
	$(BIN)/sfumato demo --out demo

# The types are checked while the first tests run: alone they would keep one core busy.
test: $(READY)
	$(MAKE) --no-print-directory -j 2 lint types tests

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-cache

types: $(READY)
	$(BIN)/mypy

# One thread a process: more threads than free cores make small matrix products crawl.
tests paper paper-quick: export OPENBLAS_NUM_THREADS = 1
# Bytecode is kept, wherever Python was told not to: the tests start some hundred processes, and
# after the demo every command starts sooner.
demo tests: export PYTHONDONTWRITEBYTECODE =
tests: $(READY)
	$(BIN)/pytest -n 2 --dist worksteal

# GOWALLA=FILE names SNAP's loc-gowalla_totalCheckins.txt.gz, or a cut of it; what is there already is not run again.
paper: $(READY)
	$(BIN)/python -m paper $(if $(GOWALLA),--gowalla '$(GOWALLA)')

# Seed 0 without the side experiments, into runs/reproduction-quick.
paper-quick: $(READY)
	$(BIN)/python -m paper --quick $(if $(GOWALLA),--gowalla '$(GOWALLA)')

# The pages and figures of docs/reproduction are what the committed JSON gives.
docs: $(READY)
	$(BIN)/python -m paper.pages.build

# Runs docs/notebooks and writes what their cells show.
notebooks: export OPENBLAS_NUM_THREADS = 1
notebooks: $(READY)
	$(BIN)/python -m tools.notebooks

# The documentation as pages, in build/site; open build/site/index.html.
site: $(READY)
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --quiet
	@echo build/site/index.html

bench: $(READY)
	$(BIN)/python -m benchmarks

# The browser extension without a bundle; sfumato export --extension puts one inside.
extension: $(READY)
	rm -rf build/extension
	$(BIN)/python -c 'from sfumato.deploy.web_files import write_extension; print(write_extension("build/extension"))'

# What the tests of web/, of the studio and of Spark drive, from Debian; does nothing where all are there.
system-deps:
	{ command -v chromium && command -v node && command -v java; } >/dev/null || { \
	  SUDO=$$(test "$$(id -u)" = 0 || echo sudo); \
	  $$SUDO apt-get update --quiet && $$SUDO apt-get install --quiet --yes --no-install-recommends \
	    chromium nodejs openjdk-17-jre-headless; }

# Every file that is installed has a hash in requirements.lock, uv and the build's own tools too.
$(READY): pyproject.toml requirements.lock
	$(PYTHON) -c 'import sys; sys.exit("sfumato needs Python 3.11 or newer; got " + sys.version.split()[0]) if sys.version_info < (3, 11) else None'
	$(PYTHON) -m venv .venv
	sed -n '/^uv==/,/[^\\]$$/p' requirements.lock > .venv/uv.lock
	$(BIN)/python -m pip --quiet --disable-pip-version-check install --require-hashes --requirement .venv/uv.lock
	sed -n '/^setuptools==/,/[^\\]$$/p' requirements.lock > .venv/setuptools.lock
	$(BIN)/uv pip install --quiet --require-hashes --requirement .venv/setuptools.lock
	$(BIN)/uv pip install --quiet --require-hashes --no-build-isolation-package pyspark --requirement requirements.lock
	$(BIN)/uv pip install --quiet --no-deps --no-build-isolation --editable .
	touch $(READY)

# Newest versions within pyproject.toml, for all platforms.
lock: $(READY)
	$(BIN)/uv pip compile --quiet --universal --upgrade --generate-hashes --no-emit-index-url --no-annotate --no-header \
	  --python-version 3.11 --extra dev --output-file requirements.lock pyproject.toml

# What a release is made of, as CycloneDX: the plain install and each extra.
components: $(READY)
	$(BIN)/python -m tools.components --out components.cdx.json

clean:
	rm -rf .venv demo runs .mypy_cache .ruff_cache .hypothesis

# Two commands do everything, set-up included: `make demo` and `make test`.
# The rest are the parts of `make test`, to be run alone while working.

PYTHON ?= python3
# Tests compare with torch, too, if a build without GPU libraries is at hand: one with them is several
# gigabytes. TORCH=torch-companions installs whatever there is, TORCH= nothing.
TORCH ?= cpu

# QUICK=1 makes `make bench` small, a few minutes instead of about 25, and `make papers`, minutes
# instead of days.
QUICK ?=
# The experiments that `make papers` runs; `python -m studies` lists their names.
STUDIES ?= all
RESULTS := build/benchmarks/results.json
# Its metrics need little of what the package asks for, which is much: installed without.
MCGRAD := mcgrad==0.1.5

export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PYTHON

VENV := .venv
VENV_DEMO := .venv-demo
VENV_BENCH := .venv-bench
VENV_LOWEST := .venv-lowest
VENV_PACKAGE := .venv-package

BIN := $(VENV)/bin
PINS := constraints.txt
INSTALL := -m pip install -qq -c $(PINS) --build-constraint $(PINS)
TORCH_GROUP = $(if $(filter cpu,$(TORCH)),$$($(BIN)/python tools/cpu_torch.py pyproject.toml),$\
	$(if $(TORCH),--group $(TORCH)))

.PHONY: help test setup lint types layers unit portable-smoke portable docs package lowest demo bench papers format constraints clean
.DELETE_ON_ERROR:

help:
	@echo "make demo   assess bundled forecasts, and report on them"
	@echo "make test   check everything: lint types layers unit portable-smoke docs package lowest"
	@echo "make bench  compare speed with other packages"
	@echo "make papers run the experiments of the papers: STUDIES=smooth-ece, QUICK=1"
	@echo "also: setup portable format constraints clean"

test: setup
	@for part in lint types layers unit portable-smoke docs package lowest; do \
		echo "== $$part"; $(MAKE) --no-print-directory $$part || exit 1; done
	@echo "== all passed"

# Set-up: each environment is made once, and again only when what it holds has changed.

setup: $(VENV)/ready

$(VENV)/ready: pyproject.toml $(PINS) tools/venv.sh tools/browser.sh tools/cpu_torch.py
	@echo "== set-up of $(VENV) (minutes the first time)"
	tools/venv.sh $(VENV) $(PINS)
	tools/browser.sh
	$(BIN)/python $(INSTALL) -e . --group dev $(TORCH_GROUP)
	@touch $@

$(VENV_DEMO)/ready: pyproject.toml $(PINS) tools/venv.sh
	tools/venv.sh $(VENV_DEMO) $(PINS)
	$(VENV_DEMO)/bin/python $(INSTALL) -e '.[cli,report]'
	@touch $@

$(VENV_BENCH)/ready: pyproject.toml $(PINS) tools/venv.sh
	tools/venv.sh $(VENV_BENCH) $(PINS)
	$(VENV_BENCH)/bin/python $(INSTALL) -e '.[fast,files,report]' --group bench
	$(VENV_BENCH)/bin/python -m pip install -qq --no-deps $(MCGRAD)
	@touch $@

$(VENV_LOWEST)/ready: pyproject.toml $(PINS) tools/venv.sh tools/lowest.py
	tools/venv.sh $(VENV_LOWEST) $(PINS)
	$(PYTHON) tools/lowest.py pyproject.toml $(PINS) > $(VENV_LOWEST)/constraints.txt
	$(VENV_LOWEST)/bin/python -m pip install -qq -c $(VENV_LOWEST)/constraints.txt \
		--build-constraint $(PINS) -e . --group lowest
	@touch $@

# The parts of `make test`.

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: setup
	$(BIN)/mypy

layers: setup
	$(BIN)/python tools/layers.py

# Tracing every line doubles the time of twins and simulations, which run without it.
WATCHED := src studies tests/architecture tests/cli tests/plot tests/studies tests/unit

# Two processes for two cores: a second thread of BLAS in each would only be in the way.
unit lowest: export OPENBLAS_NUM_THREADS := 1

unit: setup
	$(BIN)/pytest -n 2 --cov=calibrant --cov=studies $(WATCHED)
	$(BIN)/pytest -n 2 tests $(patsubst %,--ignore=%,$(WATCHED))

# As other processors would run them. Of all settings `make test` has the one that differs most from
# any processor of today, over tests that compare one way to compute with another.
PORTABLE := $(BIN)/python tools/portable.py -n 2
SMOKE := tests/laws tests/references tests/oracles tests/unit/recalibration \
	$(patsubst %,--ignore=tests/oracles/test_%.py,sketch_measures smooth_twin bootstrap_twin sources) \
	$(patsubst %,tests/unit/test_%.py,abs_integral by_group canonical compare cumulative distance goodness)

portable-smoke: setup
	$(PORTABLE) --only oldest --seed 0 $(SMOKE)

portable: setup
	$(PORTABLE) tests/unit tests/laws tests/oracles tests/references

docs: setup
	rm -rf site
	$(BIN)/python tools/notebooks.py docs/gallery
	PYTHONPATH=tools $(BIN)/zensical build --clean --strict
	$(BIN)/python tools/check_site.py site

package: setup
	rm -rf dist $(VENV_PACKAGE)
	$(BIN)/python -m build --quiet --no-isolation --outdir dist .
	tools/venv.sh $(VENV_PACKAGE) $(PINS)
	$(VENV_PACKAGE)/bin/python $(INSTALL) dist/*.whl
	cd $(VENV_PACKAGE) && bin/python -I ../tests/packaging/smoke.py

lowest: $(VENV_LOWEST)/ready
	$(VENV_LOWEST)/bin/pytest -n 2 tests/unit -m "not slow"

# The three jobs a visitor runs.

demo: $(VENV_DEMO)/ready
	@mkdir -p build
	@$(VENV_DEMO)/bin/calibrant demo --out build/demo.html

bench: $(VENV_BENCH)/ready
	$(VENV_BENCH)/bin/pytest -q tests/oracles/test_binned_peers.py tests/oracles/test_cumulative_peers.py
	$(VENV_BENCH)/bin/python -W ignore -m benchmarks.run $(if $(QUICK),--quick) --out $(RESULTS)
	$(VENV_BENCH)/bin/python -m benchmarks.page $(RESULTS) build/benchmarks

papers: setup
	$(BIN)/python -m studies $(STUDIES) $(if $(QUICK),--quick) --out build/papers

# Housekeeping.

format: setup
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# Move every pin to the newest versions that fit together, then run `make test`.
constraints:
	rm -rf build/newest && mkdir -p build && : > build/none.txt
	tools/venv.sh build/newest build/none.txt
	build/newest/bin/python -m pip install --quiet -e '.[fast]' \
		--group dev --group torch-companions --group bench
	( echo "# Every version that make installs. Written by 'make constraints'; do not edit."; \
	  build/newest/bin/python -m pip freeze --all --exclude calibrant | sed 's/+cpu$$//' ) > $(PINS)

clean:
	rm -rf $(VENV) $(VENV_DEMO) $(VENV_BENCH) $(VENV_LOWEST) $(VENV_PACKAGE) \
		build dist site .cache .coverage .hypothesis .mypy_cache .pytest_cache .ruff_cache

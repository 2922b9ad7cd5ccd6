# Each target builds .venv from the pinned requirements.lock first; a second call does not reinstall.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
JOBS ?= 2
# Of the extras peers and ray; not in the lock file, since comparisons alone need them.
PEERS := ngboost==0.5.11
RAY := ray==2.60.0
# Workers use one thread each: two threads on a shared core are slower than one.
TEST_ENV := OMP_NUM_THREADS=1 MKL_NUM_THREADS=1

.PHONY: help setup demo test test-extras check lint types clean \
	quality toy contract support foreign-mean baselines speed scaling card figures docs

help:
	@echo "make demo          the toy regression: a table, figures and a page in demo/"
	@echo "make test          everything that CI runs"
	@echo "make check         the fast part of it"
	@echo "make test-extras   what needs NGBoost or Ray, which make test skips"
	@echo "make docs          the documentation, in docs/_build/html"
	@echo "make clean         away with .venv, the demo and what the measurements below wrote here"
	@echo
	@echo "Measurements, each a file of records like the one in results/ (most need NESCIO_DATA):"
	@echo "make quality       accuracy, calibration and detection on six UCI sets"
	@echo "make toy           every method on the toy problem, 20 seeds: adds what results/toy.csv and its curves lack"
	@echo "make contract      nescio check on all UCI sets at hand and on the toy problem"
	@echo "make support       support and false alarms on fresh rows of three UCI sets"
	@echo "make foreign-mean  d-VV around gradient boosting beside NGBoost on five UCI sets"
	@echo "make baselines     every baseline on the splits that published levels are held against"
	@echo "make speed         microseconds per model-step against a plain loop"
	@echo "make scaling       time and memory of a fit at 1e4, 1e5 and 1e6 rows"
	@echo
	@echo "From records to pages:"
	@echo "make figures       the README's tables from the records in results/"
	@echo "make card          the example in docs/examples/, from the concrete data (needs NESCIO_DATA)"

setup: $(STAMP)

$(STAMP): requirements.lock pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --disable-pip-version-check --quiet -r requirements.lock
	$(BIN)/python -m pip install --disable-pip-version-check --quiet --no-deps --no-build-isolation -e .
	touch $(STAMP)

$(VENV)/.peers: $(STAMP)
	$(BIN)/python -m pip install --disable-pip-version-check --quiet -c requirements.lock $(PEERS)
	touch $@

$(VENV)/.ray: $(STAMP)
	$(BIN)/python -m pip install --disable-pip-version-check --quiet -c requirements.lock $(RAY)
	touch $@

demo: $(STAMP)
	$(BIN)/nescio demo --out demo

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(STAMP)
	$(BIN)/mypy

check: lint types
	$(TEST_ENV) $(BIN)/python -m pytest -q -n $(JOBS) -m "not slow" tests
	$(TEST_ENV) $(BIN)/python -m pytest -q --doctest-modules src/nescio

test: lint types
	$(TEST_ENV) $(BIN)/python -m pytest -q -n $(JOBS) tests
	$(TEST_ENV) $(BIN)/python -m pytest -q --doctest-modules src/nescio

test-extras: $(VENV)/.peers $(VENV)/.ray
	$(TEST_ENV) $(BIN)/python -m pytest -q tests/estimators/test_baselines_2.py tests/benchmark/test_run.py \
		-k "ngboost or NaturalBoosting or ray_cluster"

quality: $(STAMP)
	$(BIN)/python -m nescio.benchmark.quality --csv quality.csv --jobs $(JOBS)

toy: $(STAMP)
	$(BIN)/python -m nescio.benchmark.toy_runs --csv results/toy.csv --curves results/toy_curves.npz --jobs $(JOBS)
	$(BIN)/python -m nescio.benchmark.toy_paper --csv results/toy_paper.csv

contract: $(STAMP)
	$(BIN)/python -m nescio.benchmark.contract --csv contract.csv

support: $(STAMP)
	$(BIN)/python -m nescio.benchmark.support --csv support.csv

foreign-mean: $(STAMP)
	$(BIN)/python -m nescio.benchmark.foreign_mean --csv foreign_mean.csv

baselines: $(VENV)/.peers
	$(BIN)/python -m nescio.benchmark.levels --csv baselines_1.csv \
		--methods mean-variance beta-nll deep-ensemble mc-dropout evidential faithful
	$(BIN)/python -m nescio.benchmark.levels --csv baselines_2.csv \
		--methods skafte ncp bbb gp ngboost pseudo-count vv-vbem

speed: $(STAMP)
	$(BIN)/python -m nescio.benchmark.speed --csv speed.csv

scaling: $(STAMP)
	$(BIN)/python -m nescio.benchmark.scaling --csv scaling.csv

docs: $(STAMP)
	$(BIN)/python -m sphinx -q -W --keep-going -b html docs docs/_build/html
	$(BIN)/python -m sphinx -q -b doctest docs docs/_build/doctest

figures: $(STAMP)
	$(BIN)/python -m nescio.benchmark.readme

card: $(STAMP)
	mkdir -p build docs/examples
	$(BIN)/nescio fit $(NESCIO_DATA)/uci/concrete.csv.gz --target "Concrete compressive strength(MPa)" \
		--out build/concrete.nescio --card docs/examples/concrete-card.html
	$(BIN)/python tests/browser.py docs/examples/concrete-card.html docs/images/card

clean:
	rm -rf $(VENV) demo quality.csv contract.csv support.csv foreign_mean.csv baselines_?.csv speed.csv scaling.csv

# Every target sets up what it needs: on a machine with Python 3.11 nothing has to be typed before.

PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check

.PHONY: chaos demo docs gallery serve-demo dist test test-clients test-cluster test-jobs test-pythons format lint types pytest bench-prepare bench-train bench-wire bench-compile bench-quality bench-scaling bench-serve bench-sync bench-telemetry bench-watch bench-diagnosis bench-mirror bench-network bench-plan bench-translate bench-truth bench-beside clean help

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-16s %s\n", $$1, $$2}' Makefile

demo: $(VENV)/.installed ## from nothing to a trained translator, with a report
	$(BIN)/python -m dragoman demo

serve-demo: $(VENV)/.installed-serve ## a page and an API to translate with the demo's model, which it trains if needed
	test -e runs/demo/evaluation-test.json || $(BIN)/python -m dragoman demo
	$(BIN)/python -m dragoman serve runs/demo

docs: $(VENV)/.installed-docs ## the site, in site/; links and anchors are checked
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet
	@echo "open site/index.html, or: $(BIN)/python -m http.server --directory site"

gallery: $(VENV)/.installed-docs ## runs with known trouble in a lab, whose reports `make docs` takes up; needs root
	$(BIN)/python -m docs_site.gallery

dist: $(VENV)/.installed-dev ## a wheel and its source archive, in dist/
	$(BIN)/python -m hatchling build

test: format lint types pytest ## format check, lint, types, and all tests but the long ones

format: $(VENV)/.installed-dev
	$(BIN)/ruff format --check .

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check .

types: $(VENV)/.installed-dev
	$(BIN)/mypy

# Files of tests run beside each other (tests/conftest.py has the groups), the slow ones first, so
# that none is left to run alone at the end; then those that measure links and steps, or look for what
# labs leave behind. Of these, `make test` runs one of each kind.
BESIDE_EACH_OTHER := --numprocesses 2 --dist loadgroup --no-loadscope-reorder
SLOW := tests/distributed/ tests/faults/ tests/system/
ONE_OF_EACH := tests/hosts/test_check.py::test_a_capped_port_is_named_by_a_short_check \
  tests/hosts/test_training.py::test_two_hosts_train_like_one_machine_and_everything_comes_home \
  tests/lab/test_links.py::test_bytes_are_counted_on_the_links_that_carry_them
ALONE := tests/hosts/test_known_causes.py tests/hosts/test_check.py tests/hosts/test_forecast.py tests/lab/
pytest: $(VENV)/.installed-dev
	$(BIN)/python -m pytest $(SLOW) $(filter-out $(SLOW),$(wildcard tests/*/)) -m "not cluster" --durations 30 $(BESIDE_EACH_OTHER)
	$(BIN)/python -m pytest $(ONE_OF_EACH)

test-cluster: $(VENV)/.installed-dev ## the long tests: faults, hosts, labs, all seeds of the scenarios
	$(BIN)/python -m pytest tests/hosts/ $(SLOW) tests/browser/ tests/docs/ tests/shipped/ tests/unit/ -m cluster $(addprefix --ignore ,$(ALONE)) $(BESIDE_EACH_OTHER)
	$(BIN)/python -m pytest $(ALONE) -m cluster

# argostranslatefiles needs older packages than we do, so it gets an environment of its own.
test-clients: $(VENV)/.installed-dev $(VENV)-clients/.installed ## clients of LibreTranslate that need another environment
	ARGOS_PYTHON=$(abspath $(VENV)-clients/bin/python) $(BIN)/python -m pytest tests/system/test_serve.py

# Clients of clouds need other packages than we do, too.
test-jobs: $(VENV)/.installed-dev $(VENV)-jobs/.installed ## job files, checked by SkyPilot, dstack and Kubeflow's SDK
	JOBS_PYTHON=$(abspath $(VENV)-jobs/bin/python) $(BIN)/python -m pytest tests/shipped/test_job_files.py

$(VENV)-jobs/.installed:
	$(PYTHON) -m venv $(VENV)-jobs
	$(VENV)-jobs/bin/python -m pip --disable-pip-version-check install --quiet skypilot==0.14.1 dstack==0.22.5 kubeflow-training==1.9.4
	touch $@

# Each gets an environment of its own, with all packages, beside that of the project.
test-pythons: $(VENV)/.installed-dev ## unit tests with every other supported Python that is found here
	@set -e; for python in $$($(BIN)/python tests/interpreters.py); do \
	  version=$$($$python -c 'import sys; print("{}.{}".format(*sys.version_info))'); \
	  $(MAKE) VENV=$(VENV)-$$version PYTHON=$$python $(VENV)-$$version/.installed-dev; \
	  $(VENV)-$$version/bin/python -m pytest tests/unit/ -m "not cluster" $(BESIDE_EACH_OTHER); \
	done

$(VENV)-clients/.installed:
	$(PYTHON) -m venv $(VENV)-clients
	$(VENV)-clients/bin/python -m pip --disable-pip-version-check install --quiet argos-translate-files==1.4.4
	touch $@

# torch comes first, so that no other package's requirement can choose another build of it.
$(VENV)/.torch: constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Dragoman needs Python 3.11 or newer; name one with: make PYTHON=/path/to/python3.11"; exit 2; }
	$(PYTHON) -m venv $(VENV)
	$(PIP) install --quiet --constraint constraints.txt torch
	touch $@

$(VENV)/.installed: $(VENV)/.torch pyproject.toml
	$(PIP) install --quiet --constraint constraints.txt --editable '.[tensorboard]'
	touch $@

$(VENV)/.installed-serve: $(VENV)/.installed
	$(PIP) install --quiet --constraint constraints.txt --editable '.[serve]'
	touch $@

$(VENV)/.installed-docs: $(VENV)/.installed
	$(PIP) install --quiet --constraint constraints.txt --editable '.[docs]'
	touch $@

$(VENV)/.installed-dev: $(VENV)/.installed
	$(PIP) install --quiet --constraint constraints.txt --editable '.[dev]'
	touch $@

# Pairs of the corpora whose cost per pair is compared; the last takes 40 GB of disk and half an hour.
SIZES ?= 500000,5000000,50000000
bench-prepare: $(VENV)/.installed ## preparation beside the raw SentencePiece encoder, and what a pair costs in larger corpora
	$(BIN)/python benchmarks/prepare.py --sizes $(SIZES)

# Where Multi30k is: make bench-train DATA=path/to/multi30k
DATA ?= data/multi30k
bench-train: $(VENV)/.installed ## training speed beside other tools, which it installs for itself
	$(BIN)/python benchmarks/train.py --data $(DATA)

bench-scaling: $(VENV)/.installed ## what more workers, hosts, steps and pairs cost; needs root for the hosts
	$(BIN)/python benchmarks/scaling.py --data $(DATA)

bench-quality: $(VENV)/.installed ## BLEU by training minute beside a plain Hugging Face loop, in turns
	$(BIN)/python benchmarks/quality.py --data $(DATA)

bench-sync: $(VENV)/.installed ## what each sync.mode costs in BLEU and saves on slow links; needs root for the links
	$(BIN)/python benchmarks/sync.py --data $(DATA) $(if $(KEEP),--keep $(KEEP))

bench-checkpoint: $(VENV)/.installed ## what saving costs the training beside it
	$(BIN)/python benchmarks/checkpoint.py

bench-beside: $(VENV)/.installed ## what evaluations take from training, inline and beside it
	$(BIN)/python benchmarks/beside.py

bench-telemetry: $(VENV)/.installed ## what telemetry costs a step, and how long a run takes to open
	$(BIN)/python benchmarks/telemetry.py

bench-watch: $(VENV)/.installed ## what watching costs: opening a long run, an update, nothing, the training beside it
	$(BIN)/python benchmarks/watch.py

bench-diagnosis: $(VENV)/.installed ## what the diagnosis says of runs whose truth is known
	$(BIN)/python benchmarks/diagnosis.py

bench-network: $(VENV)/.installed ## one run over slower and slower links, in a lab; needs root
	$(BIN)/python benchmarks/network.py

bench-mirror: $(VENV)/.installed-dev ## what uploading checkpoints takes from gradients on the same link, in a lab; needs root
	$(BIN)/python benchmarks/mirror.py

bench-plan: $(VENV)/.installed ## forecasts before runs against what steps then took, in a lab; needs root
	$(BIN)/python benchmarks/plan.py $(if $(KEEP),--keep $(KEEP))

bench-truth: $(VENV)/.installed ## real runs with known trouble, in a lab: is the whole report true? needs root
	$(BIN)/python benchmarks/truth.py

bench-wire: $(VENV)/.installed ## how fast weight differences are encoded for the wire, and how far off
	$(BIN)/python benchmarks/wire.py

# Which run: make bench-translate RUN=runs/multi30k
RUN ?= runs/demo
bench-translate: $(VENV)/.installed ## how fast a run translates, beside CTranslate2's package, Hugging Face, OpenNMT-py and JoeyNMT
	$(BIN)/python benchmarks/translate.py --run $(RUN)

bench-serve: $(VENV)/.installed-dev ## how a run is served to many clients, beside a plain FastAPI and CTranslate2 loop
	$(BIN)/python benchmarks/serve.py --run $(RUN)

bench-compile: $(VENV)/.installed ## what torch.compile wins and costs on this machine
	$(BIN)/python benchmarks/compile.py

chaos: $(VENV)/.installed ## a run with one fault a minute on three lab nodes, beside one in peace; needs root
	$(BIN)/python benchmarks/chaos.py --steps 6000 --every-s 60

clean: ## remove the virtual environment and the caches, keep runs and data
	rm -rf $(VENV) $(VENV)-clients $(VENV)-jobs $(VENV)-3.* dist .mypy_cache .ruff_cache .pytest_cache .hypothesis

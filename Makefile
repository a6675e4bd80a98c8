# The one door: `make help` lists what is behind it.
SHELL := /bin/sh
.DEFAULT_GOAL := help

# What a sourced ROS 2 or another environment exports would be mixed with .venv.
unexport PYTHONPATH PYTHONHOME AMENT_PREFIX_PATH CMAKE_PREFIX_PATH COLCON_PREFIX_PATH LD_LIBRARY_PATH VIRTUAL_ENV

BIN := .venv/bin
BRIDGE := apollo_bridge/src/apollo_bridge
PYTEST_ARGS ?=
BEGAN := $(shell date +%s)
# Two tests for each core, and one more, run at once, for live tests mostly wait. They reserve their ROS domains.
CORES := $(shell getconf _NPROCESSORS_ONLN 2>/dev/null || echo 1)
WORKERS := -n $(shell expr 2 \* $(CORES) + 1) --maxprocesses 9 --dist loadfile --no-loadscope-reorder

.PHONY: help setup demo docs test test-long coverage lint check bench mutants fuzz soak study lock layouts licences clean

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## /\1	/p' Makefile | while IFS='	' read -r name text; do printf '  make %-9s %s\n' "$$name" "$$text"; done

setup: ## .venv with everything: Python packages, ROS 2 from wheels, messages; nothing to source
	@for python in $(PYTHON) python3 /usr/bin/python3 python3.10 python3.11 python3.12 python3.13; do \
		if $$python -c 'import sys; sys.exit(sys.version_info < (3, 8))' >/dev/null 2>&1; then \
			exec $$python scripts/bootstrap.py; \
		fi; \
	done; \
	echo 'setup: error: no working Python 3.8 or newer: run `apt-get install python3 python3-venv`' >&2; exit 1

demo: setup ## learn, watch and replay the sample recordings over real ROS 2 topics
	@$(BIN)/python scripts/demo.py

docs: setup ## the pages as a site in out/site, with all links checked
	@$(BIN)/python scripts/documentation.py

test: setup ## unit, oracle, property-based and live ROS tests
	@$(BIN)/python -m pytest $(WORKERS) $(PYTEST_ARGS); code=$$?; seconds=$$(($$(date +%s) - $(BEGAN))); \
	echo "make test: $$((seconds / 60)) min $$((seconds % 60)) s, set-up included"; exit $$code

test-long: setup ## all of `make test`, and what it leaves out: every repetition, every file of others, what takes long
	@FOREWARN_LONG=1 $(BIN)/python -m pytest $(WORKERS) $(PYTEST_ARGS)

coverage: setup ## branch coverage by all tests, with the processes that they start
	@rm -rf out/coverage && mkdir -p out/coverage
	@FOREWARN_LONG=1 $(BIN)/python -m coverage run -m pytest $(WORKERS) $(PYTEST_ARGS); status=$$?; \
	$(BIN)/python -m coverage combine -q && \
	for package in forewarn monitor_node apollo_bridge agent_guard; do \
		$(BIN)/python -m coverage report --skip-covered --include="$$package/src/*"; \
	done; exit $$status

lint: setup ## ruff, mypy --strict, import contracts, known vulnerabilities of what is locked
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	$(BIN)/python scripts/audit.py

check: lint test ## all of lint and test, README snippets included

bench: setup ## measure, and print the figures of benchmarks/RESULTS.md (BENCH_ARGS=--write: put them there)
	@$(BIN)/python -m benchmarks $(BENCH_ARGS)

mutants: setup ## mutation testing of what decides: which change would no test notice? (MUTANTS="policy feed")
	@nice $(BIN)/python evaluation/mutation/run.py $(MUTANTS)

fuzz: setup ## ten minutes of hostile input for each reader (FOREWARN_FUZZ_SECONDS=600)
	@FOREWARN_FUZZ_SECONDS=$${FOREWARN_FUZZ_SECONDS:-600} $(BIN)/python -m pytest -s --timeout=0 tests/fuzz $(PYTEST_ARGS)

soak: setup ## ten minutes under load for each executor (SOAK_MINUTES=10), and a hundred kills (FOREWARN_KILLS=100)
	@$(BIN)/python -m evaluation.soak.soak --minutes $${SOAK_MINUTES:-10}
	@FOREWARN_LONG=1 FOREWARN_KILLS=$${FOREWARN_KILLS:-100} $(BIN)/python -m pytest --timeout=0 tests/actuators/test_journal.py $(PYTEST_ARGS)

study: setup ## seven scenarios in SUMO against simpler and trained monitors, for hours (STUDY_SEEDS=80)
	@$(BIN)/python -m evaluation.study.study --runs $${STUDY_SEEDS:-80}

lock: setup ## resolve requirements/lock anew (LOCK_ARGS=--upgrade: to the newest versions that are allowed)
	@$(BIN)/python scripts/lock.py $(LOCK_ARGS)

layouts: setup ## compile the layouts of Apollo's messages (apollo_bridge/src/apollo_bridge/protos) with protoc
	@$(BIN)/python -m grpc_tools.protoc -Iforewarn=$(BRIDGE)/protos --descriptor_set_out=$(BRIDGE)/layouts.binpb $(BRIDGE)/protos/*.proto

licences: setup ## list the licences of what Forewarn needs to run; an error if one is a GPL or unknown
	@$(BIN)/python scripts/licences.py

clean: ## remove what these commands made, .venv included
	rm -rf .venv .study-venv .ros out build install log .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
	find . -name '*.egg-info' -type d -prune -exec rm -rf {} +

# make run    start a broker on localhost:9092      make bench  compare with Apache Kafka on this machine
# make cluster  a ZooKeeper and three brokers here  make containers  docker-compose.yml, tried for real
# make test   all tests                             make soak   many repetitions and random examples
# make quick  what a change needs first, 2 minutes  make bench-cluster  three brokers each, on ZooKeeper
# make check  style, types, layers, house rules     make other-pythons  the unit tests with those there are
# make chaos  a cluster under faults, 30 minutes    make bench-client  what producers and consumers cost their programs
# make pipeline  page visits to a lake by Spark     make pipeline-demo  back again, audited, and a picture
# make clean  remove what was built or cached       make bench-security  what TLS, SASL, ACLs and quotas cost

PYTHON ?= $(shell for p in python3.14 python3.13 python3.12 python3.11 python3 python; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo $$p; break; }; done)
BIN := .venv/bin
INSTALLED := .venv/.installed
# Spark and what the pipeline needs besides, half a gigabyte: a broker does without.
PIPELINE := .venv/.installed-pipeline
# The first that installs dependency groups (PEP 735); a Python's own is older.
PIP := pip>=25.1
RUN_CONFIG ?= config/server.properties
PYTEST_ARGS ?=
BENCH_ARGS ?=
CHAOS_ARGS ?=
DEMO_ARGS ?=

.PHONY: run cluster pipeline pipeline-demo test quick soak chaos containers check other-pythons bench bench-cluster bench-security bench-client clean system-packages
.DEFAULT_GOAL := test

run: $(INSTALLED)
	@exec $(BIN)/kavka broker $(RUN_CONFIG)

cluster: $(INSTALLED)
	@exec $(BIN)/python -m examples.cluster.run

# Needs Java 17. A broker of its own, an archive, a count by site and hour; nothing is left.
pipeline: $(PIPELINE)
	@$(BIN)/kavka pipeline run examples/page_visits/pipeline.toml

# DEMO_ARGS="--keep DIR" make pipeline-demo: where its lake and its picture stay.
pipeline-demo: $(PIPELINE)
	@$(BIN)/python -m examples.page_visits.demo $(DEMO_ARGS)

test: $(PIPELINE) system-packages
	$(BIN)/python -m tests.run $(PYTEST_ARGS)

quick: $(PIPELINE) system-packages
	$(BIN)/python -m tests.run --quick $(PYTEST_ARGS)

# SOAK_SECONDS=600 make soak: how long each soak test goes on.
soak: $(PIPELINE) system-packages
	$(BIN)/python -m tests.run --soak $(PYTEST_ARGS)

# Needs Docker with Compose, or podman with podman-compose; builds the image, which takes minutes.
containers: $(INSTALLED)
	$(BIN)/python -m pytest -m containers -rs tests/integration/containers $(PYTEST_ARGS)

# CHAOS_ARGS="--seconds 300 --seed 7" make chaos: shorter, and a seed again that has failed.
chaos: $(INSTALLED) system-packages
	$(BIN)/python -m tests.chaos.run $(CHAOS_ARGS)

check: $(PIPELINE)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy --strict -p kavka -p tests -p benchmarks -p examples -m pyspark_kavka
	$(BIN)/lint-imports
	$(BIN)/pytest tests/tidy

# The unit tests with the other Pythons that Kavka supports, where they are installed.
other-pythons: $(INSTALLED)
	@.ci/other-pythons

bench: $(INSTALLED) system-packages
	$(BIN)/python -m benchmarks.run $(BENCH_ARGS)

bench-cluster: $(INSTALLED) system-packages
	$(BIN)/python -m benchmarks.cluster $(BENCH_ARGS)

bench-security: $(INSTALLED) system-packages
	$(BIN)/python -m benchmarks.security $(BENCH_ARGS)

bench-client: $(INSTALLED)
	$(BIN)/python -m benchmarks.clients $(BENCH_ARGS)

clean:
	rm -rf .venv .venv-* .cache build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# The stamp is younger than pyproject.toml: nothing is installed again until the dependencies change.
$(INSTALLED): pyproject.toml
	@test -n "$(PYTHON)" || { echo "Kavka needs Python 3.11 or newer; none found (say which: make PYTHON=/path/to/python3)" >&2; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade '$(PIP)'
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable . --group dev
	@touch $@

$(PIPELINE): $(INSTALLED)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[pipeline,delta,iceberg]'
	@touch $@

# The tests' outside clients. Only root may install; without them those tests skip and say so.
system-packages:
	@.ci/system-packages

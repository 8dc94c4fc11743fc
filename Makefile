# Everything a person or CI does here. `make` lists it.
.DEFAULT_GOAL := help
.PHONY: help run build test chaos races full lint lint-deploy fmt bench soak profile prepare emit revisions fuzz coverage deny test-tools clean-data mutants model simulate structure pictures hooks

help: ## Lists these targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: ## Installs what is missing, builds, and starts Portolan with a demo API
	@scripts/run.sh $(ARGS)

build: ## Builds the console and the binary
	@scripts/require.sh
	@scripts/web.sh
	@SQLX_OFFLINE=true cargo build

test: ## Sets up everything the tests need and runs all of them
	@scripts/test.sh

chaos: ## Kills, holds, drains and empties everything under load for half an hour (ARGS="SECONDS SEED")
	@scripts/chaos.sh $(ARGS)

races: ## Tries what must happen once by many at the same instant, a thousand rounds of each race (ARGS=ROUNDS)
	@scripts/races.sh $(ARGS)

full: ## Streams, calls, sessions and floods as many as the test plan has them (a quarter of an hour; ARGS=TEST)
	@scripts/full.sh $(ARGS)

mutants: ## Breaks readers and writers of streams on purpose and expects the tests to notice
	@scripts/mutants.sh

model: ## The long form of the comparisons with the model: a million walks in memory, 25,000 on Redis
	@PROPTEST_CASES=1000000 SQLX_OFFLINE=true cargo test --release --package portolan-cluster --test it -- --nocapture model_walks
	@PROPTEST_CASES=25000 SQLX_OFFLINE=true cargo test --release --package portolan-cluster --test it -- --nocapture differential

simulate: ## Nodes and clients in a time of their own, under 200,000 seeds of faults (ARGS=SEEDS)
	@PORTOLAN_TEST_SEEDS=$(or $(ARGS),200000) SQLX_OFFLINE=true cargo test --release --package portolan-cluster --test it -- --nocapture simulated::nodes_keep

test-tools: ## Installs what the tests need: Postgres, Chromium, Node 22, the official SDKs
	@scripts/test-tools.sh

lint: ## rustfmt, clippy and the console's linters
	@scripts/lint.sh

lint-deploy: ## Dockerfile, docker-compose.yml and deploy/: linters, rules tried, proxies started
	@scripts/lint-deploy.sh

hooks: ## Installs the commit template and the check of commit subjects in this clone
	@git config core.hooksPath scripts/hooks
	@git config commit.template scripts/hooks/message.txt

fmt: ## Formats everything
	@cargo fmt --all
	@npm --prefix web run --silent format

bench: ## Prints what calls, sessions and streams cost, against bare servers (ARGS="--only streams")
	@scripts/bench.sh $(ARGS)

soak: ## An hour of use of three nodes: memory, open files, keys, errors (ARGS="--minutes 10")
	@scripts/bench.sh --only soak $(ARGS)

profile: ## Takes the profile that releases are built with: which code runs often (half an hour)
	@scripts/profile.sh

prepare: ## Refreshes .sqlx, what the SQL macros know about the database
	@scripts/prepare.sh

emit: ## Refreshes what is generated from the code: API document and configuration reference
	@scripts/emit.sh

pictures: ## Takes pictures of README.md and docs/ anew, by the browser tests of these pages
	@scripts/pictures.sh

fuzz: ## Fuzzes the readers of foreign bytes and what judges them, 10 minutes each (SECONDS=…)
	@scripts/fuzz.sh $${SECONDS:-600}

coverage: ## Counts the lines of decoders that the kept inputs of fuzzing reach
	@scripts/coverage.sh $(ARGS)

structure: ## Prints the measures of the structure: import circles, operations of the store, prose, lines (tests/structure.tsv)
	@SQLX_OFFLINE=true cargo test --quiet --package portolan-tests --test it -- --nocapture structure::

revisions: ## Writes docs/revisions.md, authorization-rules.md, translation-rules.md and tests/rules-open.txt anew: which test holds which rule
	@REVISIONS_WRITE=1 cargo nextest run --workspace -E 'test(/^revisions::/)'

deny: ## Checks licences, sources, bans and advisories of all dependencies (cargo-deny, needs the network)
	@command -v cargo-deny >/dev/null || cargo install --locked cargo-deny
	@cargo deny check

clean-data: ## Deletes what `make run` has stored: accounts, workspaces, everything
	@rm -rf .portolan/dev

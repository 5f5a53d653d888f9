# sluice: the commands. Each installs what is missing first (scripts/setup, quick when nothing is).

.PHONY: bench bench-quick chaos demo fuzz model mutants test psql setup

demo: ## the story of a withdrawal on the terminal, with crashes and a lying node, in under a minute once built
	@scripts/demo

test: ## every test
	@scripts/test

bench: ## what sluice costs, as ratios to bare SQL in the same run: a table, and target/bench/result.json
	@scripts/bench

bench-quick: ## the same, smaller, in about a minute
	@scripts/bench --withdrawals 5000 --runs 1

chaos: ## every fault at once, SEED=… OPS=1000 WORKERS=4 MINUTES=3, and a verifier at the end
	@SEED="$(SEED)" OPS="$(OPS)" WORKERS="$(WORKERS)" MINUTES="$(MINUTES)" scripts/chaos

fuzz: ## generated input for all that parses bytes, and for every SQL function and table: SECONDS=600 in all, SEED=…
	@FUZZ_SECONDS="$(SECONDS)" SEED="$(SEED)" scripts/fuzz

model: ## every order of events within bounds, under the shipped decisions: prints the states explored; LONG=1 for larger bounds
	@scripts/model $(if $(LONG),--long) $(if $(TELL),--tell)

mutants: ## sluice with one rule broken at a time: the whole failure matrix against each (a night's work; scripts/mutants NAME… for some)
	@scripts/mutants --matrix $(NAMES)

psql: ## a psql in a throwaway database with the extension as it now is
	@scripts/psql

setup: ## what is missing to build and test: packages, a private PostgreSQL, cargo-pgrx
	@scripts/setup

# Two commands do most: `make run` and `make test`. All build .venv first if it is missing.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

# Where the tasks' real data are: a folder of <task>/<split>.jsonl.gz.
DATA ?= ../shared/data

.PHONY: run test check slow lint docs leaderboard regenerate install clean

run: $(READY)
	$(BIN)/faithbench run --explainer lrp-mask --task sst2

test: lint
	$(BIN)/python -m pytest -n auto --dist loadfile

# The quick suite, for while one works: about a minute on two cores.
check: lint
	$(BIN)/python -m pytest -n auto --dist loadfile -m "not slow"

# Which tests `make check` leaves out: those of half a second or more in a whole run.
slow: $(READY)
	$(BIN)/python -m pytest -n auto --dist loadfile --durations=0 --durations-min=0.1 | tee slow.log
	$(BIN)/python benchmarks/slow_tests.py slow.log

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# The site of docs/, in site/: open site/index.html, no server is needed.
docs: $(READY)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet

# Hours of CPU the first time; what is done is not done again, and a killed run continues.
leaderboard: $(READY)
	$(BIN)/faithbench leaderboard run --data $(DATA)
	$(BIN)/faithbench leaderboard build

# New and changed submissions on the bundled model. One that fails does not keep the others off
# the board, but the target fails in the end. Explainers run on the examples of the board's table.
# YES=--yes builds although records of the former board are gone, as of a withdrawn submission.
STRICT ?=
YES ?=
regenerate: $(READY)
	status=0; $(BIN)/faithbench submission regenerate $(STRICT) || status=$$?; \
	$(BIN)/faithbench leaderboard build $(YES) && exit $$status

install: $(READY)

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit("faithbench needs Python 3.11 or newer: make PYTHON=python3.11") if sys.version_info < (3, 11) else None'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[test]'
	touch $(READY)

clean:
	rm -rf $(VENV) results site

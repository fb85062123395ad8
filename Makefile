# `make demo` installs the package alone into .venv at the project's root; the other targets add what they need.
# Nothing else is needed than Python 3.11+.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
LEVELS ?= x86-64-v4 x86-64-v3 x86-64-v2
PYTHONS ?= python3.11 python3.12 python3.13
DIST ?= dist
# Tests start many processes: each takes 2 seconds where it compiles every module again, 1 where bytecode is kept.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: demo test test-all test-deep trials lint cuda docs bench wheel wheels clean

$(BIN)/.package: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --editable .
	touch $@

$(BIN)/.installed: $(BIN)/.package
	$(BIN)/python -m pip install --quiet uv
	$(BIN)/uv pip install --quiet --compile-bytecode --python $(BIN)/python --editable ".[test,lint,docs,bench,wheel]"
	touch $@ $(BIN)/.builder

$(BIN)/.builder: $(BIN)/.package
	$(BIN)/python -m pip install --quiet --editable ".[wheel]"
	touch $@

demo: $(BIN)/.package
	$(BIN)/python -m polars_tadoc warmup --demo
	$(BIN)/python examples/quickstart.py

# What every change runs: all but tests marked slow, each property with 10 examples.
test: $(BIN)/.installed
	$(BIN)/python -m pytest --numprocesses 2 --dist worksteal -m "not slow" --hypothesis-profile=quick

# Every test, each property with 15 examples; then the slowest.
test-all: $(BIN)/.installed
	$(BIN)/python -m pytest --numprocesses 2 --dist worksteal --durations=40

# Before a release: each property with 300 examples that are new in each run, and a minute for each fuzz target.
test-deep: $(BIN)/.installed
	$(BIN)/python -m pytest --numprocesses 2 --dist worksteal --hypothesis-profile=deep
	$(BIN)/python -m tests.fuzz all --seconds 660

trials: $(BIN)/.installed
	$(BIN)/python -W error -m tests.trials

lint: $(BIN)/.installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

# Every CUDA source, with NVRTC; no GPU is needed.
cuda:
	.ci/compile_cuda

docs: $(BIN)/.installed
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet

bench: $(BIN)/.installed
	$(BIN)/python -m benchmarks.word_count
	$(BIN)/python -m benchmarks.compress

# Machine code of all kernels for each level of processors, then a wheel for this Python, and the source distribution.
# `make wheel LEVELS=aarch64` compiles for ARM, on any processor.
wheel: $(BIN)/.builder
	rm -rf build/lib build/bdist.* $(DIST)
	$(BIN)/python -m polars_tadoc.runtime.machine_code.build --levels $(LEVELS)
	$(BIN)/python -m build --sdist --wheel --outdir $(DIST)

# A wheel of all levels for each Python, in dist/VERSION: examples, tests and a frozen application run with it.
wheels:
	for python in $(PYTHONS); do PYTHON=$$python LEVELS="$(LEVELS)" .ci/check_wheel || exit 1; done

clean:
	rm -rf $(VENV) build dist polars_tadoc/runtime/_compiled *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis

"""Tests, in folders as the package has; what several files use (oracles, strategies, cases) is beside this file."""

from pathlib import Path

ROOT = Path(__file__).parents[1]
"""The project's folder."""

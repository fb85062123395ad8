"""Gives a wheel that holds machine code the Python and platform that this is for; all else is in pyproject.toml."""

from pathlib import Path

from setuptools import setup
from setuptools.command.bdist_wheel import bdist_wheel

BUILT_FOR = Path(__file__).parent / "polars_tadoc" / "runtime" / "_compiled" / "TAG"


class Wheel(bdist_wheel):
    """A wheel, with or without machine code."""

    def get_tag(self) -> tuple[str, str, str]:
        """Return what ``python -m polars_tadoc.runtime.machine_code.build`` noted; without it any Python will do."""
        if not BUILT_FOR.exists():
            return super().get_tag()
        python, abi, platform = BUILT_FOR.read_text("utf-8").split()
        return python, abi, platform


setup(cmdclass={"bdist_wheel": Wheel})

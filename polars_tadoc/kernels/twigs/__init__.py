"""Kernels that match twig patterns against XML events and grammars."""

from polars_tadoc.kernels.twigs.arrays import Events as Events
from polars_tadoc.kernels.twigs.arrays import Twigs as Twigs
from polars_tadoc.kernels.twigs.arrays import WordEvents as WordEvents

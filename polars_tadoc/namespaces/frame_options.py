"""Options of calls that return frames."""

from __future__ import annotations

from polars_tadoc.analytics.bm25_weights import BM25WeightsOptions
from polars_tadoc.analytics.cooccurrence import CooccurrenceOptions
from polars_tadoc.analytics.tfidf import TFIDFOptions
from polars_tadoc.traversal.options import CountOptions, LengthsOptions, RunOptions, TopOptions, WordFormOption

WORD_FORM = """"string", or "categorical": words of the result as ``Categorical``, which takes 4 bytes a word instead of
    16, and groups and joins by number. Polars keeps the distinct words as long as a series refers to them."""


class CountInFrames(CountOptions, WordFormOption, total=False):
    """Options of calls that return frames."""


class TopInFrames(TopOptions, WordFormOption, total=False):
    """Options of calls that return frames."""


class LengthsInFrames(LengthsOptions, WordFormOption, total=False):
    """Options of calls that return frames."""


class RunInFrames(RunOptions, WordFormOption, total=False):
    """Options of calls that return frames."""


class CooccurrenceInFrames(CooccurrenceOptions, WordFormOption, total=False):
    """Options of the call that returns a frame."""


class BM25WeightsInFrames(BM25WeightsOptions, WordFormOption, total=False):
    """Options of the call that returns a frame."""


class TFIDFInFrames(TFIDFOptions, WordFormOption, total=False):
    """Options of the call that returns a frame."""

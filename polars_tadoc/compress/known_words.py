"""Numbers a grammar's words by a dictionary."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa

from polars_tadoc.dictionary.dictionary import Dictionary, damaged
from polars_tadoc.kernels.repair.prune import LevelledRules
from polars_tadoc.model.vocabulary import Vocabulary
from polars_tadoc.runtime.array_types import UInt32
from polars_tadoc.runtime.arrow_arrays import lent


def number_by_dictionary(
    dictionary: Dictionary, vocabulary: pa.LargeStringArray, rules: LevelledRules, predicted_gaps: UInt32, engine: str
) -> tuple[pa.LargeStringArray, LevelledRules, UInt32]:
    """Put all words of a dictionary first in a grammar's vocabulary, and rename its symbols.

    Runs after the rules are made: so they are the same as without a dictionary, on every engine, and there are fewer
    symbols to rename than words.

    Parameters
    ----------
    dictionary
        The first words, by their ids.
    vocabulary
        The grammar's words; those missing from the dictionary come last, in their order.
    rules
        Rules and rows.
    predicted_gaps
        As of :class:`polars_tadoc.Grammar`.
    engine
        Engine that looks words up.

    Returns
    -------
    (LargeStringArray, LevelledRules, uint32 array)
        The renamed vocabulary, rules and gaps.

    Raises
    ------
    InvalidDictionaryError
        The dictionary was loaded unverified, and is damaged: look-ups return ids of other words.

    """
    ids = dictionary.ids(Vocabulary(vocabulary).series, engine=engine).to_numpy().copy()
    first, is_known = dictionary.vocabulary.strings, ids < dictionary.unknown
    known, lacking = np.flatnonzero(is_known), np.flatnonzero(~is_known)
    if not first.take(lent(ids[known])).equals(vocabulary.take(lent(known))):
        raise damaged("a word has the id of another word")
    words = pa.concat_arrays([first, vocabulary.take(lent(lacking))])
    ids[lacking] = np.arange(len(dictionary), len(words), dtype=np.uint32)
    rule_count = len(rules.rule_offsets) - 1
    renamed = np.concatenate([ids, np.arange(len(words), len(words) + rule_count, dtype=np.uint32)])
    word_gaps, body_gaps = np.split(predicted_gaps, [len(vocabulary)])
    gaps = np.zeros(len(words) + len(body_gaps), np.uint32)
    gaps[ids], gaps[len(words) :] = word_gaps, body_gaps
    return words, replace(rules, symbols=renamed[rules.symbols], roots=renamed[rules.roots]), gaps

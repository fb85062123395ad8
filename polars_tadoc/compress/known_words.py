"""Gives the words of a grammar the numbers that they have in a dictionary."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from polars_tadoc.dictionary.dictionary import Dictionary, damaged
from polars_tadoc.kernels.repair.prune import LevelledRules
from polars_tadoc.model.vocabulary import Vocabulary

UInt32 = npt.NDArray[np.uint32]


def number_by_dictionary(
    dictionary: Dictionary,
    vocabulary: pa.LargeStringArray,
    rules: LevelledRules,
    predicted_gaps: UInt32,
    engine: str,
) -> tuple[pa.LargeStringArray, LevelledRules, UInt32]:
    """Let a grammar's vocabulary begin with all words of a dictionary, and rename its symbols.

    Done when the rules are made: they are the same as without a dictionary, on every engine, and symbols are fewer
    than words.

    Parameters
    ----------
    dictionary
        The words that come first, by their ids.
    vocabulary
        The grammar's words; those that the dictionary has not come last, in their order.
    rules
        Rules and rows.
    predicted_gaps
        As of :class:`polars_tadoc.Grammar`.
    engine
        Where words are looked up.

    Returns
    -------
    (LargeStringArray, LevelledRules, uint32 array)
        The same of the renamed grammar.

    Raises
    ------
    InvalidDictionaryError
        The dictionary was loaded unverified, and is damaged: other words stand under the ids that it gives.

    """
    ids = dictionary.ids(Vocabulary(vocabulary).series, engine=engine).to_numpy().copy()
    first, is_known = dictionary.vocabulary.strings, ids < dictionary.unknown
    known, lacking = np.flatnonzero(is_known), np.flatnonzero(~is_known)
    if not first.take(pa.array(ids[known])).equals(vocabulary.take(pa.array(known))):
        raise damaged("a word is found under the id of another")
    words = pa.concat_arrays([first, vocabulary.take(pa.array(lacking))])
    ids[lacking] = np.arange(len(dictionary), len(words), dtype=np.uint32)
    rule_count = len(rules.rule_offsets) - 1
    renamed = np.concatenate([ids, np.arange(len(words), len(words) + rule_count, dtype=np.uint32)])
    word_gaps, body_gaps = np.split(predicted_gaps, [len(vocabulary)])
    gaps = np.zeros(len(words) + len(body_gaps), np.uint32)
    gaps[ids], gaps[len(words) :] = word_gaps, body_gaps
    return words, replace(rules, symbols=renamed[rules.symbols], roots=renamed[rules.roots]), gaps

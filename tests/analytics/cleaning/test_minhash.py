"""MinHash signatures against their plain-Python definition, and against datasketch."""

from __future__ import annotations

import math
import random
from typing import Any
from unittest.mock import patch

import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import polars_tadoc as tadoc
from polars_tadoc.analytics.cleaning import signatures
from polars_tadoc.analytics.cleaning.signatures import DOUBLE, SCHEMES, Scheme
from polars_tadoc.kernels.host.near import reference
from tests.analytic_cases import COLUMN
from tests.analytics.cleaning.test_repeats import IMAGES, columns, documents_of, forms

LONG = [" ".join(["antidisestablishmentarianism"] * 5), "x" * 51, "x" * 64, "é" * 60, "word " * 40]
"""N-grams of more than a block of SHA-1, and of lengths at its edges."""
CROWDED = "日a bc" * 70
"""More words than are cut before they are signed."""
RECORDED = {
    "datasketch": [51128894, 2635174766, 1651918912],
    "datasketch-affine32": [453909177, 358226941, 332177223],
    "fast": [2508553281, 294700656, 102640787],
    "double": [146277308, 538852112, 15132527],
}
"""Signatures of "to be or not to be" in 2-grams."""


def definition(words: list[str], scheme: Scheme) -> list[int]:
    a, b = (numbers.tolist() for numbers in scheme.constants())
    if scheme.name in DOUBLE:
        hash_word = reference.hash_fast if scheme.name == "fast" else reference.hash_sha1
        return reference.sign_double(words, scheme.ngram, b[0], a, hash_word)
    return reference.sign_affine(words, scheme.ngram, scheme.name == "datasketch", a, b)


@given(
    columns(),
    st.lists(st.sampled_from([*LONG, CROWDED]), max_size=2),
    st.integers(1, 6),
    st.sampled_from([1, 15, 33]),
    st.integers(0, 3),
    st.sampled_from(SCHEMES),
    st.sampled_from(list(IMAGES)),
)
def test_signatures(
    rows: list[str | None], more: list[str], ngram: int, permutations: int, seed: int, scheme: str, name: str
) -> None:
    rows, (arguments, image) = [*rows, *more], IMAGES[name]
    options: dict[str, Any] = {"permutations": permutations, "ngram": ngram, "seed": seed}
    made = Scheme.of(options, "test", scheme)  # type: ignore[arg-type]
    expected = [
        None if document is None else definition([word for word, _ in document], made)
        for document in documents_of(rows, image)
    ]
    for column in forms(rows):
        with patch.object(signatures, "ROW_HASHES", 130 if seed else signatures.ROW_HASHES):
            got = column.tadoc.minhash(scheme=scheme, **options, **arguments)
        assert (got.name, got.dtype) == ("text", pl.Array(pl.UInt32, permutations))
        assert got.to_list() == expected
        expression = pl.col("text").tadoc.minhash(scheme=scheme, **options, **arguments)
        assert column.to_frame().lazy().select(expression).collect().to_series().equals(got)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_signatures_stay_what_they_are(scheme: str) -> None:
    """They may be stored: a later release gives the same."""
    column = pl.Series(["to be or not to be"])
    assert tadoc.minhash(column, permutations=3, ngram=2, scheme=scheme).to_list() == [RECORDED[scheme]]


@pytest.mark.parametrize("tokenizer", ["whitespace", "code"])
def test_text_is_cut_as_columns_are(tokenizer: str) -> None:
    """By tokenizers with classes of characters, and others; errors name the row."""
    text = pl.Series("text", ["a_b, cD-e " * 20, None, "", *LONG, "日本 word " * 9])
    column = tadoc.compress(text, tokenizer=tokenizer)
    assert tadoc.minhash(text, tokenizer=tokenizer, ngram=2).equals(tadoc.minhash(column, ngram=2))
    binary = pa.array([b"a", b"a\x80"], pa.large_binary()).view(pa.large_string())
    with pytest.raises(ValueError, match="row 1: not UTF-8"):
        tadoc.minhash(pl.Series("text", binary), tokenizer=tokenizer)


@pytest.mark.parametrize(("scheme", "theirs"), [("datasketch", "legacy"), ("datasketch-affine32", "affine32")])
def test_signatures_of_datasketch(scheme: str, theirs: str) -> None:
    datasketch = pytest.importorskip("datasketch", minversion="2")
    rows = ["to be or not to be that is the question", "a b", *LONG]
    found = tadoc.minhash(pl.Series(rows), permutations=100, ngram=3, seed=7, scheme=scheme)
    for row, own in zip(rows, found.to_list(), strict=True):
        sketch = datasketch.MinHash(100, seed=7, scheme=theirs)
        sketch.update_batch([" ".join(ngram).encode() for ngram in reference.ngrams(row.split(), 3)])
        assert sketch.hashvalues.tolist() == own


@pytest.mark.parametrize("scheme", SCHEMES)
def test_equal_values_estimate_the_similarity(scheme: str) -> None:
    """The mean over many pairs is as near as independent permutations would bring it."""
    pick, permutations = random.Random(3), 64
    errors, sets = [], []
    for share in (0.2, 0.5, 0.8) * 40:
        words = [f"w{pick.randrange(10**9)}" for _ in range(60)]
        sets += [words, [word if pick.random() < share else f"v{word}" for word in words]]
    column = pl.Series([" ".join(words) for words in sets])
    signed = tadoc.minhash(column, ngram=1, permutations=permutations, scheme=scheme).to_list()
    for words, other, one, two in zip(sets[::2], sets[1::2], signed[::2], signed[1::2], strict=True):
        similarity = len({*words} & {*other}) / len({*words} | {*other})
        deviation = math.sqrt(max(similarity * (1 - similarity), 0.01) / permutations)
        estimate = sum(a == b for a, b in zip(one, two, strict=True)) / permutations
        errors.append((estimate - similarity) / deviation)
    mean = sum(errors) / len(errors)
    assert abs(mean) < 4 / math.sqrt(len(errors))
    assert sum(error**2 for error in errors) / len(errors) < 1.6  # 1 if permutations are independent


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"permutations": 0}, ValueError, "permutations=0 must be at least 1"),
        ({"permutations": 65537}, ValueError, "at most 65536"),
        ({"ngram": "5"}, TypeError, "ngram='5' must be an integer"),
        ({"seed": -1}, ValueError, "seed=-1 must be at least 0"),
        (
            {"scheme": "sha1"},
            ValueError,
            "minhash: scheme='sha1': use one of fast, double, datasketch, datasketch-affine32",
        ),
        ({"lowercase": 1}, TypeError, "lowercase=1"),
    ],
)
def test_arguments(arguments: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        COLUMN.tadoc.minhash(**arguments)

"""A few words are mapped as many are."""

from __future__ import annotations

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from polars_tadoc.model.word_map import Morphism

words = st.text(st.characters(exclude_categories=["Cs"]), max_size=8) | st.sampled_from(
    ["ΣΑΣ", "ΑΣ", "Σ", "İ", "STRAẞE", "É", "the", "THE", "ᏸ", "\u1c89", ""]
)
morphisms = st.builds(
    Morphism,
    st.sampled_from([None, pl.element().str.head(2), pl.element().str.strip_chars("a")]),
    st.booleans(),
    st.frozensets(words, max_size=5),
)


@given(morphism=morphisms, words=st.lists(words, max_size=20))
def test_few_are_mapped_as_many(morphism: Morphism, words: list[str]) -> None:
    assert morphism.few_images(words) == morphism.images(pl.Series("word", words, pl.String)).to_list()


def test_every_character() -> None:
    characters = [chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000 and chr(code) != "Σ"]
    many = pl.Series(characters).str.to_lowercase().to_list()
    assert Morphism(lowercase=True).few_images(characters) == many

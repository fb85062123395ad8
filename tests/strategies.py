"""Texts and grammars that break things."""

from __future__ import annotations

from hypothesis import strategies as st

NUL_TO_SPACE = "\x00\t\n\x0b\x0c\r\x1c\x1f \x85\xa0\u1680\u2003\u2028\u202f\u3000\u200b\ufeff"
PIECES = [
    *("a", "b", "the", "The", "straße", "ΑΣ", "İ", "naïve", "nai\u0308ve", "x_y", "42", "٣", "\u0301", "\u200d"),
    *(
        "日",
        "本語",
        "か",
        "カー",
        "ｶﾞ",
        "か\u3099",
        "葛\U000e0100",
        "한국어",
        "ไทย",
        "नमस्ते",
        "👩\u200d👩\u200d👧",
        "☺\ufe0f",
        "🇩🇪",
    ),
    *(",", ". ", "  ", " - ", "\r\n", "", "'", "\x00", "a" * 13, "word" * 300, "é" * 9),
    *NUL_TO_SPACE,
]

arbitrary = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
pieced = st.lists(st.sampled_from(PIECES), max_size=30).map("".join)
spaced = st.lists(st.sampled_from(PIECES), max_size=30).map(" ".join)
runs = st.builds(
    lambda unit, times, tail: unit * times + tail,
    st.sampled_from(["a", "a ", "a b ", "日", "ab, ", "\n", " "]),
    st.integers(0, 70),
    st.sampled_from(["", "a", "b"]),
)
texts = st.one_of(st.sampled_from(["", "a", " ", "\x00"]), arbitrary, pieced, spaced, runs)


@st.composite
def _columns(draw: st.DrawFn, nulls: bool) -> list[str | None]:
    """Rows of which many repeat one another."""
    pool = draw(st.lists(st.one_of(texts, st.none()) if nulls else texts, min_size=1, max_size=5))
    return draw(st.lists(st.sampled_from(pool), max_size=12))


columns = _columns(nulls=True)
columns_without_nulls = _columns(nulls=False)


@st.composite
def sequences(draw: st.DrawFn) -> tuple[list[list[int]], int]:
    """Rows of word ids that repeat themselves and one another, and the vocabulary's size."""
    vocabulary_size = draw(st.sampled_from([1, 2, 3, 6, 20]))
    row = st.one_of(
        st.lists(st.integers(0, vocabulary_size - 1), max_size=30),
        st.builds(lambda w, n: [w] * n, st.integers(0, vocabulary_size - 1), st.integers(0, 80)),
        st.builds(
            lambda unit, n: unit * n,
            st.lists(st.integers(0, vocabulary_size - 1), min_size=1, max_size=5),
            st.integers(0, 20),
        ),
    )
    pool = draw(st.lists(row, min_size=1, max_size=4))
    return draw(st.lists(st.sampled_from(pool), max_size=12)), vocabulary_size


@st.composite
def rows_of_lines(draw: st.DrawFn) -> tuple[list[list[int]], list[list[int]], int]:
    """Rows of word ids in lines and paragraphs that repeat; the line ends between words, by row; vocabulary size."""
    vocabulary_size = draw(st.sampled_from([2, 4, 30]))
    line = st.lists(st.integers(0, vocabulary_size - 1), min_size=1, max_size=9)
    lines = draw(st.lists(line, min_size=1, max_size=5))
    paragraph = st.lists(st.sampled_from(lines), min_size=1, max_size=4)
    paragraphs = draw(st.lists(paragraph, min_size=1, max_size=3))
    rows, ends = [], []
    for row in draw(st.lists(st.lists(st.sampled_from(paragraphs), max_size=4), max_size=8)):
        words, after = list[int](), list[int]()
        for own in row:
            for line in own:
                words += line
                after += [0] * (len(line) - 1) + [1]
            after[-1] = draw(st.sampled_from([1, 2, 2, 3]))
        rows.append(words)
        ends.append(after[:-1])
    repeated = draw(st.integers(1, 3))
    return rows * repeated, ends * repeated, vocabulary_size


@st.composite
def grammars(draw: st.DrawFn) -> tuple[int, list[list[int]], list[int], list[list[int]]]:
    """Vocabulary size, rule bodies in level order, level offsets, rows."""
    vocabulary_size = draw(st.integers(1, 6))
    bodies: list[list[int]] = []
    level_offsets = [0]
    for width in draw(st.lists(st.integers(1, 3), max_size=6)):
        symbols = st.integers(0, vocabulary_size + len(bodies) - 1)
        bodies += draw(st.lists(st.lists(symbols, min_size=2, max_size=5), min_size=width, max_size=width))
        level_offsets.append(len(bodies))
    symbols = st.integers(0, vocabulary_size + len(bodies) - 1)
    rows = draw(st.lists(st.lists(symbols, max_size=6), max_size=5))
    return vocabulary_size, bodies, level_offsets, rows

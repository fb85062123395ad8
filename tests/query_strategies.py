"""Generators of queries: trees with their text, and texts with mistakes."""

from __future__ import annotations

from hypothesis import strategies as st

from polars_tadoc.index.language import tree as t

WORDS = ["a", "b", "ab", "ba", "abc", "acb", "abba", "baab", "zz"]
Typed = tuple[str, t.Node]
"""Text and tree."""


def _grouped(one: Typed) -> Typed:
    """Put a part that is looser than an operator in parentheses."""
    text, node = one
    return (f"({text})", node) if isinstance(node, t.And | t.Or | t.Sequence) else one


def _operation(name: str, node: type[t.And | t.Or], parts: list[tuple[str, Typed]]) -> Typed:
    own = [(sign, *_grouped(one)) for sign, one in parts]
    text = f" {name} ".join(sign + text for sign, text, _ in own)
    return text, node(tuple(t.Not(tree) if sign in ("-", "NOT ") else tree for sign, _, tree in own))


def _sequence(parts: list[tuple[t.Modifier, Typed]]) -> Typed:
    own = [(modifier, _grouped(one)) for modifier, one in parts]
    text = " ".join(modifier + text for modifier, (text, _) in own)
    if len(own) == 1 and not own[0][0]:
        return own[0][1]
    return text, t.Sequence(tuple((modifier, node) for modifier, (_, node) in own))


def _boosted(one: Typed, factor: float) -> Typed:
    text, node = _grouped(one)
    return f"{text}^{factor:g}", t.Boost(node, factor)


def _range(low: str, high: str, takes_low: bool, takes_high: bool) -> Typed:
    text = f"{'{['[takes_low]}{low or '*'} TO {high or '*'}{'}]'[takes_high]}"
    return f"year:{text}", t.Field("year", t.Range(low, high, takes_low, takes_high, text))


words = st.sampled_from(WORDS)
years = st.sampled_from(["", "1", "2", "3"])
atoms: st.SearchStrategy[Typed] = st.one_of(
    words.map(lambda word: (word, t.Word(word))),
    st.tuples(words, words).map(lambda own: ("-".join(own), t.Word("-".join(own)))),
    st.tuples(st.lists(words, min_size=1, max_size=3).map(" ".join), st.integers(0, 3)).map(
        lambda own: (f'"{own[0]}"' + (f"~{own[1]}" if own[1] else ""), t.Phrase(*own))
    ),
    st.tuples(st.lists(words, min_size=2, max_size=3), st.integers(0, 3)).map(
        lambda own: (f" NEAR/{own[1]} ".join(own[0]), t.Near(tuple(own[0]), own[1]))
    ),
    st.sampled_from(["a*", "*b", "?b*", "a?b", "b*b?c", "z*z*z"]).map(lambda text: (text, t.Pattern(text))),
    st.tuples(words, st.sampled_from([None, 0, 1, 2])).map(
        lambda own: (f"{own[0]}~{'' if own[1] is None else own[1]}", t.Fuzzy(*own))
    ),
    st.sampled_from(["1", "2"]).map(lambda year: (f"year:{year}", t.Field("year", t.Word(year)))),
    st.builds(_range, years, years, st.booleans(), st.booleans()),
)
factors = st.sampled_from([0.0, 0.5, 2.0, 3.0])
is_boosted = (t.Word, t.Phrase, t.And, t.Or, t.Sequence)


def _extended(parts: st.SearchStrategy[Typed]) -> st.SearchStrategy[Typed]:
    boosts = st.tuples(parts.filter(lambda one: isinstance(one[1], is_boosted)), factors)
    return st.one_of(_joined(parts), boosts.map(lambda own: _boosted(*own)))


def _joined(parts: st.SearchStrategy[Typed]) -> st.SearchStrategy[Typed]:
    some = st.lists(st.tuples(st.sampled_from(["", "", "+", "-", "NOT "]), parts), min_size=2, max_size=3)
    clause = st.tuples(st.sampled_from(["", "", "+", "-"]), parts)
    return st.one_of(
        some.map(lambda own: _operation("AND", t.And, own)),
        some.map(lambda own: _operation("OR", t.Or, own)),
        st.lists(clause, min_size=1, max_size=4).map(_sequence),
        parts.map(lambda one: (f"NOT {_grouped(one)[0]}", t.Sequence((("-", one[1]),)))),
    )


queries: st.SearchStrategy[Typed] = st.recursive(atoms, _extended, max_leaves=6)

_words = st.sampled_from(WORDS[:-2])
short_atoms: st.SearchStrategy[Typed] = st.one_of(
    _words.map(lambda word: (word, t.Word(word))),
    st.tuples(_words, _words).map(lambda own: ("-".join(own), t.Word("-".join(own)))),
    st.tuples(st.lists(_words, min_size=2, max_size=3).map(" ".join), st.integers(0, 2)).map(
        lambda own: (f'"{own[0]}"' + (f"~{own[1]}" if own[1] else ""), t.Phrase(*own))
    ),
    st.sampled_from(["a*", "ab*", "b*"]).map(lambda text: (text, t.Pattern(text))),
    st.tuples(_words, st.sampled_from([None, 1, 2])).map(
        lambda own: (f"{own[0]}~{'' if own[1] is None else own[1]}", t.Fuzzy(*own))
    ),
)
short_queries: st.SearchStrategy[Typed] = st.recursive(short_atoms, _joined, max_leaves=7)
"""Queries that a kernel answers alone."""

PIECES = ["a", "b", "AND", "OR", "NOT", "NEAR/2", "NEAR/", '"', "(", ")", "+", "-", "*", "?", "~", "~1", "^", "^2", ":",
          "year:", "year:[", "TO", "]", "}", "{", ">=", "<", " ", " ", "\t", "\x00", "\x1f", "明", "é", "\\", "!", "🙂",
          "ab", "abc", "a-b", "C++", "http://"]  # fmt: skip
mistakes = st.lists(st.sampled_from(PIECES), max_size=14).map("".join)
"""Queries by a grammar of mistakes."""

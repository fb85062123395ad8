"""Packed rows with entropy-coded symbols, in the fields of plain ones: versions 3 and 4 of the format.

``write_packed(effort="small")`` writes them. A grammar whose words and rules have the order that compression gives
them, and whose rows use all of them, is coded; others (rows that were filtered, grammars of dictionaries or of
``compress(like=)``, few symbols) stay as they are. Rows of many bytes for each symbol, as in logs and versions of a
text, have version 4, whose differences :mod:`polars_tadoc.packed.contexts` tells: smaller, and decoding an event takes
longer. The fields of version 3 that differ from version 2:

- ``vocabulary``: the words by shape (digits and length), then in the order of their first use. Their ids follow from
  how often each occurs in the rows, most frequent first, then code points. If no word has a line end, those of a shape
  are one string: a line each, or without separators where the shape gives their length.
- ``predicted_gaps``: of words. Those within bodies are in the streams, as codes: see
  :mod:`polars_tadoc.kernels.host.grammars.coded_gaps`.
- ``rule_offsets``: the header: number of rules, of bodies' symbols (two numbers, lower 32 bits first), of rows' symbols
  (likewise), and flags: 1 if the streams use predictions, 2 if the words of a shape are one string; then the words of
  each shape, the symbols of each class, and the frequencies of each table. See
  :mod:`polars_tadoc.kernels.host.grammars.coded_symbols`.
- ``symbols``, ``roots``: the streams of kinds and of places.
- ``level_offsets``: empty; levels follow from the bodies.
- ``document_offsets``: one number, the symbols of bodies and rows, so that statistics in a file's footer could tell it.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

from polars_tadoc.config import settings
from polars_tadoc.errors import InvalidGrammarError, LimitExceededError
from polars_tadoc.kernels.host.grammars import coded_symbols as kernels
from polars_tadoc.kernels.host.grammars.coded_gaps import code_gaps
from polars_tadoc.kernels.host.records.sort_keys import sort_with
from polars_tadoc.kernels.host.records.sort_words import code_point_order
from polars_tadoc.model.vocabulary import Vocabulary
from polars_tadoc.packed import contexts
from polars_tadoc.runtime.array_types import Int64, UInt32, UInt64
from polars_tadoc.runtime.arrow_memory import owned

VERSION = 3
VERSIONS = VERSION, contexts.VERSION
HEADER = 6
"""Numbers before the classes' sizes."""

LENGTH = HEADER + kernels.SHAPES + kernels.CLASSES + 256 * kernels.TABLES

MIN_EVENTS = 1 << 12
"""Symbols and rows from which a row is coded: the header takes up to 1 KB."""

PREDICTS, JOINS, GAPS = 1, 2, 4
"""Flags of the header."""

LINES = (0, 16, 32)
"""Shapes that do not give the length of their words."""

PREDICTS_FROM = 0.3
"""Share of events predicted from which predictions are used: below it they save little and halve the speed."""

PREDICTS_FROM_BYTES = 32
"""Bytes of words for each event from which a share of ``PREDICTS_LEAST`` is enough: decoding remains fast."""

PREDICTS_LEAST = 0.05

MASK_BITS = (8, 18)
"""Least and most bits of places in the tables of predictions."""

GAP_BITS = (8, 20)
"""Least and most bits of places in the table of gaps."""

CODED = (
    *("vocabulary", "rule_offsets", "symbols", "level_offsets", "predicted_gaps", "document_offsets", "roots"),
    *("gaps", "valid"),
)

_WRONG = {
    kernels.TRUNCATED: "a stream of symbols is truncated",
    kernels.WRONG_COUNT: "its symbols do not match its counts",
    kernels.WRONG_PLACE: "a place is beyond the symbols of its class",
    kernels.OPEN_RULE: "a rule contains itself or the end of a row",
    kernels.WRONG_TABLE: "a code is not in its table",
    kernels.WRONG_END: "a stream of symbols does not end where it should",
}


def numbers(array: npt.NDArray[Any]) -> pl.Series:
    """Copy an array into memory that Polars can own."""
    kind = pa.from_numpy_dtype(array.dtype)
    return cast(pl.Series, pl.from_arrow(pa.Array.from_buffers(kind, len(array), [None, owned(array)])))


def coded(packed: pl.Series) -> pl.Series:
    """Return a packed column with each row coded, if it can be; rows are trusted to be what ``pack`` makes."""
    rows = [_coded_row(packed.slice(row, 1).alias("packed")) for row in range(len(packed))]
    return pl.concat([packed.clear().alias("packed"), *rows]).alias(packed.name)


def _coded_row(cell: pl.Series) -> pl.Series:
    if cell.null_count():
        return cell
    fields = cell.struct.unnest()
    made = encode({name: fields[name][0] for name in CODED})
    if made is None:
        return cell
    version = made.pop("version").cast(pl.UInt32)
    changes = [_cell(values, fields.schema[name]).alias(name) for name, values in made.items()]
    changes.append(version)
    return fields.with_columns(changes).to_struct("packed")


def _cell(values: pl.Series, dtype: Any) -> pl.Series:
    return values.alias("values").implode().cast(dtype)


def encode(fields: dict[str, pl.Series]) -> dict[str, pl.Series] | None:
    """Code a packed row's fields; None if it is small, or not in the form of ``compress``."""
    words, rule_offsets, symbols = fields["vocabulary"], fields["rule_offsets"].to_numpy(), fields["symbols"].to_numpy()
    level_offsets, roots = fields["level_offsets"].to_numpy(), fields["roots"].to_numpy()
    gaps = fields["predicted_gaps"].to_numpy().copy()  # a kernel that may write takes it
    root_offsets: Int64 = fields["document_offsets"].to_numpy()
    events = len(symbols) + len(roots) + len(root_offsets) - 1
    if events < MIN_EVENTS:
        return None
    count, rules = len(words), len(rule_offsets) - 1
    unused = gaps[count + rule_offsets[:-1].astype(np.int64)]  # not stored
    if unused.any() or gaps.max(initial=0) >> kernels.MAX_GAP_BITS:
        return None
    grammar = count, rule_offsets, symbols
    shapes = np.empty(count, np.uint8)
    vocabulary = Vocabulary(words.rechunk().to_arrow(compat_level=pl.CompatLevel.oldest()))
    kernels.shapes_of(vocabulary.offsets, vocabulary.data, shapes)
    order_of, uses = np.empty(count + rules, np.uint32), np.empty(count + rules, np.uint32)
    rows = *grammar, root_offsets, roots, shapes
    used = kernels.order_of_first_use(*rows, order_of, uses)
    if used != (count, rules) or not kernels.have_levels(*grammar, level_offsets):
        return None
    weights = np.zeros(count + rules, np.uint64)
    kernels.weigh(count, np.arange(rules, dtype=np.uint32), rule_offsets, symbols, roots, weights)
    if not _are_ordered(words, weights[:count]):
        return None
    gap_codes = np.empty(len(symbols) - rules, np.uint32)
    code_gaps(*grammar, _bits(len(symbols), *GAP_BITS), False, gaps, gap_codes)
    steps = np.empty(rules, np.int64)
    kernels.steps_between_rules(count, level_offsets, order_of, steps)
    shape_sizes = np.bincount(shapes, minlength=kernels.SHAPES).astype(np.uint32)
    joins = not words.str.contains("\n", literal=True).any()
    flags, counts = JOINS * joins, [rules, *_halves(len(symbols)), *_halves(len(roots))]
    row_gaps, version = fields["gaps"], contexts.VERSION
    expanded = int((weights[:count] * np.diff(vocabulary.offsets).view(np.uint64)).sum())
    order = np.empty(count, np.uint32)
    order[order_of[:count]] = np.arange(count, dtype=np.uint32)
    listed = words.gather(order)
    listed = _joined(listed, shape_sizes) if joins else listed
    planned = _planned(rows, order_of, uses, steps, gap_codes, expanded)
    streams = (
        contexts.encode(*rows, order_of, uses, steps, gap_codes) if expanded >= contexts.FROM_BYTES * events else None
    )
    if streams is not None and contexts.are_smaller(streams, planned):
        listed, turned = contexts.turn(listed, shape_sizes, LINES) if joins else (listed, 0)
        coded_gaps = contexts.encode_gaps(*grammar, gaps, root_offsets, roots, shapes, row_gaps, fields["valid"])
        visits, size = 0, 0
        if coded_gaps is not None:
            flags, (row_gaps, visits, size) = flags | GAPS, coded_gaps
        header = [*counts, flags, *_halves(visits), *_halves(size), *_halves(turned), *shape_sizes.tolist()]
    elif planned is None:
        return None
    else:
        predicts, sizes, streams = planned
        version, flags = VERSION, flags | PREDICTS * predicts
        header = [*counts, flags, *shape_sizes.tolist(), *sizes.tolist()]
    return {
        "version": pl.Series("version", [version]),
        "vocabulary": listed,
        "rule_offsets": numbers(np.array(header, np.uint32)),
        "symbols": numbers(streams[0]),
        "level_offsets": fields["level_offsets"].clear(),
        "predicted_gaps": fields["predicted_gaps"].head(count),
        "document_offsets": numbers(np.array([len(symbols) + len(roots)])),
        "roots": numbers(streams[1]),
        "gaps": row_gaps,
    }


def _planned(
    rows: Any, order_of: UInt32, uses: UInt32, steps: Int64, gap_codes: UInt32, expanded: int
) -> tuple[bool, UInt32, tuple[UInt32, UInt32]] | None:
    """Code symbols by tables: whether with predictions, the classes' sizes and the tables, and both streams."""
    count, rule_offsets, symbols, root_offsets, roots, _ = rows
    rules, events = len(rule_offsets) - 1, len(symbols) + len(roots) + len(root_offsets) - 1
    most = 3 * events + count + 2 * rules + len(gap_codes)
    kinds, places = np.empty(most, np.uint32), np.empty(events + 3 * rules + len(gap_codes), np.uint64)
    is_fast = expanded >= PREDICTS_FROM_BYTES * events
    predicts = True
    while True:
        tallies = np.zeros(256 * kernels.TABLES, np.uint32)
        sizes = np.zeros(kernels.CLASSES, np.uint32)
        planned = kinds, places, tallies, sizes
        coded_count, placed, hits = kernels.plan(*rows, order_of, uses, predicts, _mask(events), *planned)
        if not predicts or hits >= (PREDICTS_LEAST if is_fast else PREDICTS_FROM) * events:
            break
        predicts = False
    if sizes[1:].max() > kernels.MAX_MEMBERS:
        return None
    placed += kernels.plan_steps(steps, kinds[coded_count:], places[placed:], tallies)
    coded_count += rules
    placed += kernels.plan_gaps(gap_codes, kinds[coded_count:], places[placed:], tallies)
    coded_count += len(gap_codes)
    frequencies = _frequencies(tallies)
    starts, _ = _looked_up(frequencies)
    kind_words = np.empty(coded_count + 2, np.uint32)
    kind_words = kind_words[kernels.write_kinds(kinds[:coded_count], starts, frequencies, kind_words) :]
    place_words = np.empty(2 * placed + 2, np.uint32)
    place_words = place_words[kernels.write_places(places[:placed], place_words) :]
    return predicts, np.concatenate([sizes, frequencies]), (kind_words, place_words)


def _are_ordered(words: pl.Series, tallies: UInt64) -> bool:
    """Tell whether words descend by tally, then ascend."""
    falls = tallies[1:] < tallies[:-1]
    rises = tallies[1:] > tallies[:-1]
    follows = (words.slice(1) > words.head(max(len(words) - 1, 0))).to_numpy()
    return bool(not rises.any() and (falls | follows).all())


def _joined(words: pl.Series, shape_sizes: UInt32) -> pl.Series:
    """Join the words of each shape."""
    ends = np.cumsum(shape_sizes).tolist()
    groups = [words.slice(start, stop - start) for start, stop in pairwise([0, *ends])]
    made = [(group + "\n" if shape in LINES else group).str.join("").item() for shape, group in enumerate(groups)]
    return pl.Series("words", made, pl.String)


def _split(joined: pl.Series, shape_sizes: UInt32, turned: int = 0) -> pl.Series:
    """Invert :func:`_joined`, and :func:`polars_tadoc.packed.contexts.turn`."""
    wrong = InvalidGrammarError("grammar: the words of a shape do not match their number")
    if len(joined) != kernels.SHAPES:
        raise wrong
    parts, lengths = [], []
    for shape, (text, size) in enumerate(zip(joined, shape_sizes.tolist(), strict=True)):
        data = np.frombuffer(text.encode(), np.uint8)
        if shape in LINES:
            ends = np.flatnonzero(data == ord("\n"))
            if len(ends) != size or (size and ends[-1] != len(data) - 1) or (not size and len(data)):
                raise wrong
            lengths.append(np.diff(ends, prepend=-1) - 1)
            data = data[data != ord("\n")]
        else:
            if len(data) != shape % 16 * size:
                raise wrong
            lengths.append(np.full(size, shape % 16))
            if turned >> shape & 1:
                data = data.reshape(shape % 16, size).T.ravel()
        parts.append(data)
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(np.concatenate(lengths))])
    strings = pa.LargeStringArray.from_buffers(
        len(offsets) - 1, pa.py_buffer(offsets), pa.py_buffer(np.concatenate(parts))
    )
    try:
        strings.validate(full=True)
    except pa.ArrowInvalid as error:  # a shape's length cuts a character
        raise InvalidGrammarError("grammar: a word is not UTF-8") from error
    return cast(pl.Series, pl.from_arrow(strings))


def _bits(count: int, low: int, high: int) -> int:
    return min(max(count.bit_length() - 1, low), high)


def _mask(events: int) -> int:
    return (1 << _bits(events, *MASK_BITS)) - 1


def _halves(number: int) -> tuple[int, int]:
    return number & 0xFFFFFFFF, number >> 32


def _frequencies(tallies: UInt32) -> UInt32:
    """Scale each table's tallies to the sum that rANS needs; codes that occur keep at least 1."""
    made = np.zeros((kernels.TABLES, 256), np.int64)
    for own, scaled in zip(tallies.reshape(kernels.TABLES, 256).astype(np.int64), made, strict=True):
        if own.any():
            scaled[:] = np.maximum((own << kernels.SCALE) // own.sum(), own > 0)
            while (excess := scaled.sum() - (1 << kernels.SCALE)) > 0:
                scaled[scaled.argmax()] -= min(excess, scaled.max() // 2)
            scaled[scaled.argmax()] -= excess
    return made.ravel().astype(np.uint32)


def _looked_up(frequencies: UInt32) -> tuple[UInt32, UInt32]:
    starts = np.zeros(256 * kernels.TABLES, np.uint32)
    entries = np.zeros(kernels.TABLES << kernels.SCALE, np.uint32)
    if not kernels.look_up(frequencies, starts, entries):
        raise InvalidGrammarError("grammar: a table of frequencies has a wrong sum")
    return starts, entries


def decoded(fields: dict[str, Any]) -> dict[str, Any]:
    """Decode the fields of a row of version 3 or 4 to those of version 2.

    Raises
    ------
    InvalidGrammarError
        The streams do not match the counts, or are damaged.
    LimitExceededError
        The counts claim more than ``Config(payload_limit_bytes=)``; raised before anything is allocated for them.

    """
    header, words = fields["rule_offsets"].to_numpy(), fields["vocabulary"]
    is_in_context = fields["version"] == contexts.VERSION
    length = contexts.HEADER + kernels.SHAPES if is_in_context else LENGTH
    if len(header) != length:
        raise InvalidGrammarError(f"grammar: the header has {len(header):,} numbers, not {length:,}")
    rules, *halves, flags = (int(count) for count in header[:HEADER])
    size, root_count = halves[0] | halves[1] << 32, halves[2] | halves[3] << 32
    visits, gap_bytes, turned, start = 0, 0, 0, HEADER
    if is_in_context:
        start = contexts.HEADER
        lower, upper = (header[place:start:2].tolist() for place in (HEADER, HEADER + 1))
        visits, gap_bytes, turned = (low | high << 32 for low, high in zip(lower, upper, strict=True))
    shape_sizes, sizes, frequencies = np.split(header[start:], np.cumsum([kernels.SHAPES, kernels.CLASSES]))
    if flags & JOINS:
        words = _split(words, shape_sizes, turned)
    count, rows = len(words), len(fields["valid"])
    limit = settings().payload_limit_bytes
    needed = _decoding_bytes(count, rules, size, root_count, rows, is_in_context) + max(2 * gap_bytes, visits)
    if needed > limit:
        raise LimitExceededError(
            f"grammar: claims to decode to at least {needed:,} bytes, the limit is {limit:,}; if the data is trusted, "
            "raise it: tadoc.Config(payload_limit_bytes=…)"
        )
    known = JOINS | (GAPS if is_in_context else PREDICTS)
    if fields["document_offsets"].to_list() != [size + root_count] or flags & ~known or 2 * rules > size:
        raise InvalidGrammarError("grammar: the header's counts contradict each other")
    if not is_in_context and (sizes.sum(dtype=np.uint64) != count + rules or sizes[1:].max() > kernels.MAX_MEMBERS):
        raise InvalidGrammarError("grammar: the classes' sizes do not add up to the words and rules")
    if shape_sizes.sum(dtype=np.uint64) != count or len(fields["predicted_gaps"]) != count:
        raise InvalidGrammarError("grammar: the shapes' sizes do not add up to the words")
    rule_starts, bodies = np.zeros(rules + 1, np.uint32), np.empty(size, np.uint32)
    heights, steps = np.zeros(rules, np.uint32), np.empty(rules, np.int64)
    root_offsets, roots = np.empty(rows + 1, np.int64), np.empty(root_count, np.uint32)
    gap_codes = np.empty(size - rules, np.uint32)
    streams = fields["symbols"].to_numpy(), fields["roots"].to_numpy()
    arrays = rule_starts, bodies, heights, root_offsets, roots, steps, gap_codes
    events = size + root_count + rows
    if is_in_context:
        wrong = contexts.decode(count, shape_sizes, streams, events, arrays)
    else:
        _, entries = _looked_up(frequencies)
        shape_starts = np.concatenate([[0], np.cumsum(shape_sizes)]).astype(np.uint32)
        given = count, bool(flags & PREDICTS), _mask(events), *streams, entries, shape_starts, sizes
        wrong = kernels.read(*given, *arrays)
    del arrays
    if wrong != kernels.OK:
        raise InvalidGrammarError(f"grammar: {_WRONG[wrong]}")
    level_offsets = np.cumsum(np.bincount(heights, minlength=1)).astype(np.uint32)
    rule_order = np.empty(rules, np.uint32)
    if not kernels.order_rules(heights, steps, level_offsets, rule_order):
        raise InvalidGrammarError("grammar: the rules' order is not one of their levels")
    del heights, steps
    weights = np.zeros(count + rules, np.uint64)
    kernels.weigh(count, rule_order, rule_starts, bodies, roots, weights)
    strings: Any = words.rechunk().to_arrow(compat_level=pl.CompatLevel.oldest())
    in_order = code_point_order(strings).astype(np.uint64)
    word_order = sort_with((weights.max(initial=0) - weights[:count])[in_order], in_order)[1].astype(np.uint32)
    del weights, in_order
    new = np.empty(count + rules, np.uint32)
    new[word_order] = np.arange(count, dtype=np.uint32)
    new[count + rule_order.astype(np.int64)] = np.arange(count, count + rules, dtype=np.uint32)
    rule_offsets, symbols = np.empty(rules + 1, np.uint32), np.empty(size, np.uint32)
    kernels.renumber(rule_order, new, rule_starts, bodies, rule_offsets, symbols)
    del rule_starts, bodies, rule_order
    kernels.renumber_in_place(new, roots)
    del new
    gaps = np.empty(count + size, np.uint32)
    gaps[:count] = fields["predicted_gaps"].to_numpy()
    if not code_gaps(count, rule_offsets, symbols, _bits(size, *GAP_BITS), True, gaps, gap_codes):
        raise InvalidGrammarError("grammar: the codes of predicted gaps do not match the words and rules")
    del gap_codes
    made: dict[str, Any] = {}
    if flags & GAPS:
        shapes = np.repeat(np.arange(kernels.SHAPES, dtype=np.uint8), shape_sizes)[word_order]
        arrays_of_rows = count, rule_offsets, symbols, gaps, root_offsets, roots, shapes
        made["gaps"] = contexts.decode_gaps(*arrays_of_rows, visits, gap_bytes, fields["gaps"], fields["valid"])
    made |= {"rule_offsets": numbers(rule_offsets), "symbols": numbers(symbols)}
    del rule_offsets, symbols
    made |= {"level_offsets": numbers(level_offsets), "predicted_gaps": numbers(gaps)}
    del level_offsets, gaps
    made |= {"document_offsets": numbers(root_offsets), "roots": numbers(roots)}
    return {**fields, **made, "vocabulary": words.gather(word_order)}


def _decoding_bytes(words: int, rules: int, symbols: int, roots: int, rows: int, is_in_context: bool = False) -> int:
    """Return the maximum bytes that :func:`decoded` holds at once, except text and gaps of rows.

    By word: 10 in lists, numbers of its own, and 48 to sort it. By rule, while streams are read: 16 for its start,
    level and step, 12 on the stack, 10 in lists; less a gap that its body has not. By symbol of a body, once these are
    read: itself, its gap and the code of it. By root and row: itself and its copy. The tables of predictions and gaps
    have up to 7 MB. In context, lists take 23 and a rule's last word 4; gaps take 25 by word and rule, 1 by symbol.
    """
    tables = (10 << _bits(symbols + roots + rows, *MASK_BITS)) + (4 << _bits(symbols, *GAP_BITS))
    needed = 64 * words + 34 * rules + 12 * symbols + 8 * roots + 16 * rows + tables
    return needed + (16 * words + 24 * rules + 2 * symbols + 8 * rows if is_in_context else 0)

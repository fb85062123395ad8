"""Packed rows with entropy-coded symbols, in the fields of plain ones: version 3 of the format.

``write_packed(effort="small")`` writes them. A grammar whose words and rules have the order that compression gives
them, and whose rows use all of them, is coded; others (rows that were filtered, grammars of dictionaries or of
``compress(like=)``, few symbols) stay as they are. Rows of many bytes for each symbol, as in logs,
are coded in context if that is smaller: :mod:`polars_tadoc.packed.contexts` tells what differs, and decoding an event
takes longer. The fields that differ from version 2:

- ``vocabulary``: the words by shape (digits and length), then in the order of their first use. Their ids follow from
  how often each occurs in the rows, most frequent first, then code points. If no word has a line end, those of a shape
  are one string: a line each, or without separators where the shape gives their length.
- ``rule_offsets``: the header. Ten numbers: rules, bodies' symbols (two numbers, lower 32 bits first), rows' symbols
  (likewise), flags (1 if the streams use predictions, 2 if the words of a shape are one string, 4 if gaps of rows are
  coded, 8 if symbols are coded in context, 16 if the gap vocabulary is one string), and two pairs for rows coded in
  context. Then the words of each shape, the frequencies of codes of gaps, and those of symbols.
- ``symbols``, ``roots``: the streams of kinds and of places: see
  :mod:`polars_tadoc.kernels.host.grammars.coded_symbols`.
- ``predicted_gaps``: of words. ``level_offsets`` is the stream of those within bodies: see
  :mod:`polars_tadoc.kernels.host.grammars.coded_gaps`. Levels follow from the bodies.
- ``gap_vocabulary``: one string, a NUL after each gap, unless a gap has a NUL.
- ``document_offsets``: one number, the symbols of bodies and rows, so that statistics in a file's footer could tell it.
"""

from __future__ import annotations

from functools import partial
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

from polars_tadoc.config import settings
from polars_tadoc.errors import InvalidGrammarError, LimitExceededError
from polars_tadoc.kernels.host.grammars import coded_gaps, coded_rules, coded_streams
from polars_tadoc.kernels.host.grammars import coded_symbols as kernels
from polars_tadoc.kernels.host.grammars.coded_guesses import read_guesses
from polars_tadoc.kernels.host.grammars.coded_runs import read_runs
from polars_tadoc.model.vocabulary import Vocabulary
from polars_tadoc.packed import coded_words, contexts
from polars_tadoc.packed.coded_words import LINES, StoredWords
from polars_tadoc.runtime.array_types import Int64, UInt32, UInt64
from polars_tadoc.runtime.arrow_memory import allocate, shared
from polars_tadoc.runtime.parallel import map_parallel

VERSION = 3

HEADER = 10
"""Numbers before the shapes' sizes."""

LENGTHS = np.array([HEADER, kernels.SHAPES, coded_gaps.CODES, 256 * kernels.TABLES])
"""Numbers in the header's parts; without the last one if symbols are coded in context."""

MIN_EVENTS = 1 << 12
"""Symbols and rows from which a row is coded: the header takes up to 1 KB."""

PREDICTS, JOINS, GAPS, IN_CONTEXT, JOINS_GAPS = 1, 2, 4, 8, 16
"""Flags of the header."""

PREDICTS_FROM_BYTES = 32
"""Bytes of words for each event from which decoding with predictions is fast all the same."""

PREDICTS_SAVES, PREDICTS_SAVES_MUCH = 0.04, 0.15
"""Share of the streams that predictions must save, where there are so many bytes and elsewhere: events take twice as
long to decode. Text that repeats saves much if ``compress`` made no rules."""

MASK_BITS = (8, 15)
"""Least and most bits of places in the tables of predictions: 18 saves 1 % of the file at most, but does not fit the
caches, and decoding takes up to 1.4 times as long."""

GAP_BITS = (8, 20)
"""Least and most bits of places in the table of gaps."""

CODED = (
    *("vocabulary", "rule_offsets", "symbols", "level_offsets", "predicted_gaps", "document_offsets", "roots"),
    *("gap_vocabulary", "gaps", "valid"),
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
    """Return an array as a series; copies it unless it is in memory that Polars can own."""
    kind = pa.from_numpy_dtype(array.dtype)
    return cast(pl.Series, pl.from_arrow(pa.Array.from_buffers(kind, len(array), [None, shared(array)])))


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
    if unused.any() or gaps.max(initial=0) >> coded_gaps.MAX_GAP_BITS:
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
    coded_rules.weigh(count, np.arange(rules, dtype=np.uint32), rule_offsets, symbols, roots, weights)
    if not _are_ordered(words, weights[:count]):
        return None
    gap_stream, gap_frequencies = _coded_gaps(*grammar, gaps)
    steps = np.empty(rules, np.int64)
    kernels.steps_between_rules(count, level_offsets, order_of, steps)
    shape_sizes = np.bincount(shapes, minlength=kernels.SHAPES).astype(np.uint32)
    joins = not words.str.contains("\n", literal=True).any()
    flags, counts = JOINS * joins, [rules, *_halves(len(symbols)), *_halves(len(roots))]
    row_gaps, gap_words, tables = fields["gaps"], fields["gap_vocabulary"], np.zeros(0, np.uint32)
    if not gap_words.str.contains("\0", literal=True).any():
        flags, gap_words = flags | JOINS_GAPS, pl.Series([(gap_words + "\0").str.join("").item()], dtype=pl.String)
    expanded = int((weights[:count] * np.diff(vocabulary.offsets).view(np.uint64)).sum())
    order = np.empty(count, np.uint32)
    order[order_of[:count]] = np.arange(count, dtype=np.uint32)
    listed = words.gather(order)
    listed = coded_words.joined(listed, shape_sizes) if joins else listed
    planned = _planned(rows, order_of, uses, steps, expanded)
    in_context = expanded >= contexts.FROM_BYTES * events
    streams = contexts.encode(*rows, order_of, uses, steps) if in_context else None
    size, turned = 0, 0
    if streams is not None and contexts.are_smaller(streams, planned):
        flags |= IN_CONTEXT
        listed, turned = contexts.turn(listed, shape_sizes, LINES) if joins else (listed, 0)
        found = contexts.encode_gaps(*grammar, root_offsets, roots, row_gaps, fields["valid"])
        if found is not None:
            flags, (row_gaps, size) = flags | GAPS, found
    elif planned is None:
        return None
    else:
        predicts, tables, streams = planned
        flags |= PREDICTS * predicts
    header = [*counts, flags, *_halves(size), *_halves(turned), *shape_sizes.tolist()]
    return {
        "version": pl.Series("version", [VERSION]),
        "vocabulary": listed,
        "rule_offsets": numbers(np.concatenate([np.array(header, np.uint32), gap_frequencies, tables])),
        "symbols": numbers(streams[0]),
        "level_offsets": numbers(gap_stream),
        "gap_vocabulary": gap_words,
        "predicted_gaps": fields["predicted_gaps"].head(count),
        "document_offsets": numbers(np.array([len(symbols) + len(roots)])),
        "roots": numbers(streams[1]),
        "gaps": row_gaps,
    }


def _coded_gaps(count: int, rule_offsets: UInt32, symbols: UInt32, gaps: UInt32) -> tuple[UInt32, UInt32]:
    """Code the gaps within bodies: the stream, and the frequencies of its codes."""
    codes = np.empty(coded_gaps.MOST * (len(symbols) - len(rule_offsets) + 1), np.uint32)
    nothing = np.zeros(0, np.uint32)
    given = count, rule_offsets, symbols, _bits(len(symbols), *GAP_BITS)
    _, coded_count = coded_gaps.code_gaps(*given, False, gaps, codes, nothing, nothing, nothing)
    codes = codes[:coded_count]
    places = codes[codes < coded_streams.EXPLICIT] & np.uint32((1 << coded_streams.STATE_SHIFT) - 1)
    tallies = np.bincount(places, minlength=coded_gaps.CODES)
    frequencies = np.concatenate([_frequencies(tallies[:256], 256), _frequencies(tallies[256:], 4)])
    starts = np.concatenate([_starts(frequencies[:256], 256), _starts(frequencies[256:], 4)])
    return _written(codes, starts, frequencies), frequencies


def _written(codes: UInt32, starts: UInt32, frequencies: UInt32) -> UInt32:
    out = np.empty(len(codes) + 2 * coded_streams.STATES, np.uint32)
    return out[coded_streams.write_codes(codes, starts, frequencies, out) :]


def _planned(
    rows: Any, order_of: UInt32, uses: UInt32, steps: Int64, expanded: int
) -> tuple[bool, UInt32, tuple[UInt32, UInt32]] | None:
    """Code symbols by tables: whether with predictions, the tables, and both streams."""
    count, rule_offsets, symbols, root_offsets, roots, _ = rows
    rules, events = len(rule_offsets) - 1, len(symbols) + len(roots) + len(root_offsets) - 1
    by_use, classes = np.empty(count + rules, np.uint32), np.empty(count + rules, np.uint8)
    by_use[order_of] = uses
    kernels.classes_of(by_use, classes)
    sizes = np.bincount(classes, minlength=kernels.CLASSES)
    if sizes[1:].max() > kernels.MAX_MEMBERS or count + rules + kernels.OLD >= kernels.MAX_CODES:
        return None
    kinds, places = np.empty(3 * events, np.uint32), np.empty(events + 4 * rules, np.uint64)
    step_bits = np.empty(rules, np.uint32)
    parts = {kernels.WORD_CLASS: classes[:count], kernels.RULE_CLASS: classes[count:], kernels.STEP: step_bits}
    made, written = [], []
    for predicts in (False, True):
        tallies = np.zeros(256 * kernels.TABLES, np.uint32)
        planned = kinds, places, tallies
        coded_count, placed = kernels.plan(*rows, order_of, uses, predicts, _mask(events), *planned)
        placed += kernels.plan_steps(steps, step_bits, places[placed:])
        states = np.arange(coded_count, dtype=np.uint32) % coded_streams.STATES
        order, states = (slice(coded_count), states) if predicts else _side_by_side(events)
        frequencies, stream = _kinds_written(parts, kinds[order], states, tallies)
        bits = np.empty(placed + 1, np.uint32)
        bits = bits[: coded_streams.write_places(places[:placed], bits)]
        made.append((predicts, frequencies, (stream, bits)))
        written.append(stream.nbytes + len(pa.Codec("zstd", 3).compress(bits, asbytes=True)))
    least = PREDICTS_SAVES if expanded >= PREDICTS_FROM_BYTES * events else PREDICTS_SAVES_MUCH
    return made[int(written[1] < (1 - least) * written[0])]


def _side_by_side(events: int) -> tuple[Any, UInt32]:
    """Return the order of kinds in which four runs are written side by side, and the states that code them."""
    run = max(-(-events // coded_streams.STATES), 1)
    order = np.arange(coded_streams.STATES * run).reshape(-1, run).T.ravel()
    order = order[order < events]
    return order, (order // run).astype(np.uint32)


def _kinds_written(parts: dict[int, Any], kinds: UInt32, states: UInt32, tallies: UInt32) -> tuple[UInt32, UInt32]:
    """Write the first stream: codes of whole tables, then kinds. Return the frequencies and the stream."""
    codes = []
    for table, part in parts.items():
        tallies[256 * table : 256 * (table + 1)] = np.bincount(part, minlength=256)
        turns = np.arange(len(part), dtype=np.uint32) % coded_streams.STATES
        codes.append((part.astype(np.uint32) + np.uint32(256 * table), turns))
    frequencies = _frequencies(tallies, 256)
    together = [part | (turns << coded_streams.STATE_SHIFT) for part, turns in [*codes, (kinds, states)]]
    return frequencies, _written(np.concatenate(together), _starts(frequencies, 256), frequencies)


def _are_ordered(words: pl.Series, tallies: UInt64) -> bool:
    """Tell whether words descend by tally, then ascend."""
    falls = tallies[1:] < tallies[:-1]
    rises = tallies[1:] > tallies[:-1]
    follows = (words.slice(1) > words.head(max(len(words) - 1, 0))).to_numpy()
    return bool(not rises.any() and (falls | follows).all())


def _bits(count: int, low: int, high: int) -> int:
    return min(max(count.bit_length() - 1, low), high)


def _mask(events: int) -> int:
    return (1 << _bits(events, *MASK_BITS)) - 1


def _halves(number: int) -> tuple[int, int]:
    return number & 0xFFFFFFFF, number >> 32


def _frequencies(tallies: Any, width: int) -> UInt32:
    """Scale each table's tallies to the sum that rANS needs; codes that occur keep at least 1."""
    own = tallies.reshape(-1, width).astype(np.int64)
    made = np.zeros(own.shape, np.int64)
    for table in np.flatnonzero(own.any(axis=1)).tolist():
        scaled = np.maximum((own[table] << coded_streams.SCALE) // own[table].sum(), own[table] > 0)
        while (excess := scaled.sum() - (1 << coded_streams.SCALE)) > 0:
            scaled[scaled.argmax()] -= min(excess, scaled.max() // 2)
        scaled[scaled.argmax()] -= excess
        made[table] = scaled
    return made.ravel().astype(np.uint32)


def _starts(frequencies: UInt32, width: int) -> UInt32:
    """Return where each code starts in its table; checks the sums."""
    tables = frequencies.reshape(-1, width).astype(np.uint64)
    ends = tables.cumsum(axis=1)
    if not np.isin(ends[:, -1], (0, 1 << coded_streams.SCALE)).all():
        raise InvalidGrammarError("grammar: a table of frequencies has a wrong sum")
    return (ends - tables).astype(np.uint32).ravel()


def _looked_up(frequencies: UInt32) -> UInt32:
    entries = np.zeros(len(frequencies) // 256 << coded_streams.SCALE, np.uint32)
    if not coded_streams.look_up(frequencies, np.zeros(len(frequencies), np.uint32), entries):
        raise InvalidGrammarError("grammar: a table of frequencies has a wrong sum")
    return entries


def decoded(fields: dict[str, Any]) -> dict[str, Any]:
    """Decode the fields of a row of version 3 to those of version 2; errors as for :func:`decode`."""
    made = decode(fields)
    strings = {name: cast(pl.Series, pl.from_arrow(made[name])) for name in ("vocabulary", "gap_vocabulary")}
    return {**made, **strings, "gaps": made["gaps"]() if callable(made["gaps"]) else made["gaps"]}


def decode(fields: dict[str, Any]) -> dict[str, Any]:
    """Do as :func:`decoded`, with words that differ and gaps as Arrow arrays.

    The gaps of rows, if they are coded, are a function that decodes them.

    Raises
    ------
    InvalidGrammarError
        The streams do not match the counts, or are damaged.
    LimitExceededError
        The counts claim more than ``Config(payload_limit_bytes=)``; raised before anything is allocated for them.

    """
    header, words = fields["rule_offsets"].to_numpy(), fields["vocabulary"]
    flags = int(header[5]) if len(header) > 5 else 0
    is_in_context = bool(flags & IN_CONTEXT)
    lengths = LENGTHS[: 3 if is_in_context else 4]
    if len(header) != lengths.sum():
        raise InvalidGrammarError(f"grammar: the header has {len(header):,} numbers, not {lengths.sum():,}")
    counts, shape_sizes, gap_frequencies, frequencies = np.split(header, np.cumsum(LENGTHS[:3]))
    rules = int(counts[0])
    places = [1, 3, *range(6, HEADER, 2)]
    size, root_count, gap_bytes, turned = (int(counts[at]) | int(counts[at + 1]) << 32 for at in places)
    count, rows = int(shape_sizes.sum(dtype=np.uint64)), len(fields["valid"])
    gap_words = fields["gap_vocabulary"]
    gap_count = coded_words.count_gaps(gap_words) if flags & JOINS_GAPS else 0
    limit = settings().payload_limit_bytes
    needed = _decoding_bytes(count, rules, size, root_count, rows, is_in_context) + 2 * gap_bytes
    needed += 24 * gap_count
    if needed > limit:
        raise LimitExceededError(
            f"grammar: claims to decode to at least {needed:,} bytes, the limit is {limit:,}; if the data is trusted, "
            "raise it: tadoc.Config(payload_limit_bytes=…)"
        )
    known = JOINS | JOINS_GAPS | (IN_CONTEXT | GAPS if is_in_context else PREDICTS)
    if fields["document_offsets"].to_list() != [size + root_count] or flags & ~known or 2 * rules > size:
        raise InvalidGrammarError("grammar: the header's counts contradict each other")
    if len(fields["predicted_gaps"]) != count or (len(words) != count and not flags & JOINS):
        raise InvalidGrammarError("grammar: the shapes' sizes do not add up to the words")
    if not flags & JOINS_GAPS:
        gap_words = gap_words.rechunk().to_arrow(compat_level=pl.CompatLevel.oldest())
    else:
        gap_words = coded_words.split_gaps(gap_words)
    rule_starts, spelled = np.zeros(rules + 1, np.uint32), np.empty(size + root_count, np.uint32)
    heights, steps = np.zeros(rules, np.uint32), np.empty(rules, np.int64)
    root_offsets, bodies = allocate(rows + 1, np.int64)[1], spelled[:size]
    arrays = rule_starts, size, spelled, heights, root_offsets, steps
    streams = fields["symbols"].to_numpy(), fields["roots"].to_numpy()
    makers: list[Any] = [
        partial(_read_symbols, count, flags, shape_sizes, streams, frequencies, arrays),
        partial(StoredWords, words, shape_sizes if flags & JOINS else None, turned),
    ]
    wrong, stored = map_parallel(lambda make: make(), makers)
    del makers, arrays
    if wrong != kernels.OK:
        raise InvalidGrammarError(f"grammar: {_WRONG[wrong]}")
    level_offsets = np.cumsum(np.bincount(heights, minlength=1)).astype(np.uint32)
    rule_order = np.empty(rules, np.uint32)
    if not coded_rules.order_rules(heights, steps, level_offsets, rule_order):
        raise InvalidGrammarError("grammar: the rules' order is not one of their levels")
    del heights, steps
    weights = np.zeros(count + rules, np.uint64)
    coded_rules.weigh(count, rule_order, rule_starts, bodies, spelled[size:], weights)
    word_order = stored.ordered(weights[:count])
    del weights
    new = np.empty(count + rules, np.uint32)
    new[word_order] = np.arange(count, dtype=np.uint32)
    new[count + rule_order.astype(np.int64)] = np.arange(count, count + rules, dtype=np.uint32)
    rule_offsets, symbols, roots = (allocate(own, np.uint32)[1] for own in (rules + 1, size, root_count))
    coded_rules.renumber(rule_order, new, rule_starts, bodies, rule_offsets, symbols)
    coded_rules.renumber_rows(new, spelled[size:], roots)
    del rule_starts, bodies, rule_order, spelled, new
    gaps = allocate(count + size, np.uint32)[1]
    gaps[:count] = fields["predicted_gaps"].to_numpy()
    starts = np.concatenate([_starts(gap_frequencies[:256], 256), _starts(gap_frequencies[256:], 4)])
    tables = starts, gap_frequencies, _looked_up(gap_frequencies[:256])
    given_gaps = count, rule_offsets, symbols, _bits(size, *GAP_BITS), True, gaps
    if not coded_gaps.code_gaps(*given_gaps, fields["level_offsets"].to_numpy().copy(), *tables)[0]:
        raise InvalidGrammarError("grammar: the stream of gaps within rules does not match the words and rules")
    made: dict[str, Any] = {"gap_vocabulary": gap_words}
    if flags & GAPS:
        arrays_of_rows = count, rule_offsets, symbols, root_offsets, roots, gap_bytes
        made["gaps"] = partial(contexts.decode_gaps, *arrays_of_rows, fields["gaps"], fields["valid"])
    made |= {"rule_offsets": numbers(rule_offsets), "symbols": numbers(symbols)}
    del rule_offsets, symbols
    made |= {"level_offsets": numbers(level_offsets), "predicted_gaps": numbers(gaps)}
    del level_offsets, gaps
    made |= {"document_offsets": numbers(root_offsets), "roots": numbers(roots)}
    return {**fields, **made, "vocabulary": stored.taken(word_order)}


def _read_symbols(
    count: int, flags: int, shape_sizes: UInt32, streams: tuple[UInt32, UInt32], frequencies: UInt32, arrays: Any
) -> int:
    """Fill the arrays of bodies and rows; return ``OK`` or what is wrong."""
    _, _, spelled, _, root_offsets, _ = arrays
    events = len(spelled) + len(root_offsets) - 1
    if flags & IN_CONTEXT:
        return contexts.decode(count, shape_sizes, streams, events, arrays)
    shape_starts = np.concatenate([[0], np.cumsum(shape_sizes)]).astype(np.uint32)
    given = *streams, _looked_up(frequencies), shape_starts, *arrays
    if flags & PREDICTS:
        return int(read_guesses(count, np.zeros(2 * (_mask(events) + 1), np.uint32), *given))
    return int(read_runs(count, *given))


def _decoding_bytes(words: int, rules: int, symbols: int, roots: int, rows: int, is_in_context: bool = False) -> int:
    """Return the maximum bytes that :func:`decoded` holds at once, except text and gaps of rows.

    By word: 10 in lists, numbers of its own, and 56 to sort it. By rule, while streams are read: 16 for its start,
    level and step, 12 on the stack, 11 in lists; less a gap that its body has not. By symbol of a body: its kind or
    its copy, itself, and its gap. By root and row: its kind, itself and its copy. The tables of predictions and gaps
    have up to 5 MB. In context, lists take 23 and a rule's last word 4; gaps take 2 by word
    and rule and 4 by row.
    """
    tables = (8 << _bits(symbols + roots + rows, *MASK_BITS)) + (4 << _bits(symbols, *GAP_BITS))
    needed = 72 * words + 35 * rules + 12 * symbols + 9 * roots + 17 * rows + tables
    return needed + (16 * words + 24 * rules + 2 * symbols + 8 * rows if is_in_context else 0)

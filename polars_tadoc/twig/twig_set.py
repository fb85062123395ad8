"""The public set of twigs: subscriptions by name, which may change at any time."""

from __future__ import annotations

import os
import threading
from array import array
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from polars_tadoc.errors import InvalidTwigSetError, TwigMissingError
from polars_tadoc.runtime.arguments import require_path, require_text
from polars_tadoc.runtime.array_types import Bools, UInt32
from polars_tadoc.runtime.documented import documented_by, with_imports
from polars_tadoc.runtime.process.writer_thread import apart
from polars_tadoc.storage.saved import Saved
from polars_tadoc.twig import file, prefixes
from polars_tadoc.twig.compiled import CompiledTwigs
from polars_tadoc.twig.forest import Forest, Tree
from polars_tadoc.twig.twig import Twig
from polars_tadoc.twig.xpath import parse

MAX_SHOWN = 8
"""Twigs that the repr shows."""

FEW = 64
"""Never compact fewer gaps than this."""

MAX_CHARACTERS = 100
"""Characters of a query in the repr."""


_GAP = 0xFFFFFFFF
"""Root of a removed name; no twig has it."""


class _Planted:
    """A twig in the forest, and the number of names that use it."""

    __slots__ = ("key", "tree", "uses")

    def __init__(self, key: bytes, tree: Tree) -> None:
        self.key = key
        self.tree = tree
        self.uses = 0


class _Places:
    """Root of each name and whether its twig compares a text, in the order of the names; removed names leave gaps."""

    def __init__(self, planted: Iterable[_Planted] = ()) -> None:
        self.gaps = 0
        self._roots, self._texts = array("I"), array("B")
        for one in planted:
            self.append(one)

    def append(self, planted: _Planted) -> int:
        """Add an entry for a new name and return its position."""
        self._roots.append(planted.tree.root)
        self._texts.append(planted.tree.has_text)
        return len(self._roots) - 1

    def replace(self, place: int, planted: _Planted) -> None:
        """Let a name use another twig."""
        self._roots[place], self._texts[place] = planted.tree.root, planted.tree.has_text

    def clear(self, place: int) -> None:
        """Leave a gap."""
        self._roots[place] = _GAP
        self.gaps += 1

    def arrays(self) -> tuple[UInt32, Bools]:
        """Return a copy of both, without gaps."""
        roots = np.array(self._roots, np.uint32)
        held = roots != _GAP
        return roots[held], np.array(self._texts, np.bool_)[held]


@with_imports
class TwigSet(Mapping[str, str]):
    """Twig patterns (subscriptions) by name, compiled together, for :func:`polars_tadoc.twig_filter`.

    A twig is a query in a part of XPath 1.0. It matches a document if XPath's ``boolean(query)`` is true there:

    - ``/`` and ``//``, names, ``*`` for any element; ``@name`` as the last step;
    - predicates of relative paths, several and nested to any depth: ``//article[author][.//cite[@href]]/title``;
    - at the end of a predicate ``@name="value"`` and ``text()="value"``: ``[@lang="de"]``, ``[year/text()="1999"]``.

    Other XPath raises an ``InvalidTwigError``. As in XPath 1.0, a name without a prefix has no namespace.

    Adding and removing a twig takes time proportional to its size, whatever the size of the set. The next filter call
    copies the arrays of the set, which takes little time. Filters cache partial matches of a column between calls;
    removing twigs keeps that cache, and adding a twig with new names or values clears it. A change also copies the
    tables of names while another thread or a lazy plan uses the previous state. Equal queries are compiled once. All
    methods may be called from several threads at once; a running filter call keeps the state that it started with.

    A set is a read-only mapping of names to queries as written. It changes only by :meth:`add`, :meth:`update` and
    :meth:`remove`; ``s["name"] = …``, ``del s["name"]`` and ``pop`` do not exist. Two sets are equal if they have the
    same names with equal twigs, in any order.

    Parameters
    ----------
    queries
        XPath queries by name, or another set. A filter returns the names in insertion order.
    namespaces
        Namespace by prefix, for all queries of the set; ``xml`` is predefined. Default: those of the given set.

    Raises
    ------
    InvalidTwigError
        A query is not XPath or uses unsupported XPath; the message has the query's name and the position.
    TypeError
        A name, query, prefix or namespace is not a string.
    ValueError
        A prefix is not a name or is reserved, a namespace is empty, or a given set has a prefix that this set does not
        have or maps to another namespace.

    Examples
    --------
    >>> twigs = tadoc.TwigSet({"titled": "//article[author]/title"})
    >>> twigs.add("german", '//article[@lang="de"]')
    >>> twigs
    TwigSet of 2 twigs
      titled: //article[author]/title
      german: //article[@lang="de"]
    >>> twigs.remove("titled")
    >>> len(twigs), "titled" in twigs, list(twigs), twigs["german"]
    (1, False, ['german'], '//article[@lang="de"]')

    """

    def __init__(
        self, queries: Mapping[str, str] | None = None, *, namespaces: Mapping[str, str] | None = None
    ) -> None:
        if isinstance(queries, TwigSet) and namespaces is None:
            namespaces = queries.namespaces
        self._namespaces = prefixes.checked(namespaces, "TwigSet")
        self._lock = threading.RLock()
        self._queries: dict[str, tuple[str, _Planted, int]] = {}
        self._places = _Places()
        self._planted: dict[bytes, _Planted] = {}
        self._unused: dict[bytes, _Planted] = {}
        """Twigs without names; removed from the forest before it is next compiled."""
        self._forest = Forest()
        self._last: CompiledTwigs | None = None
        """The last compiled set, as long as the forest is unchanged."""
        self._is_current = False
        if queries is not None:
            self._update(queries, "TwigSet")

    @documented_by(Saved.save)
    @apart
    def save(self, path: str | os.PathLike[str]) -> None:
        """Save the queries and namespaces as JSON; an existing file is replaced atomically.

        Examples
        --------
        >>> twigs = tadoc.TwigSet({"titled": "//article[author]/title"})
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     twigs.save(f"{folder}/subscriptions.json")

        """
        file.write(require_path("path", path, "TwigSet.save"), self._texts(), self.namespaces)

    @classmethod
    @documented_by(Saved.load)
    def load(cls, path: str | os.PathLike[str]) -> TwigSet:
        """Load a file that :meth:`save` wrote.

        Returns
        -------
        TwigSet
            The set, in the order that was saved.

        Raises
        ------
        InvalidTwigSetError
            It is not a file of saved twigs, has an unsupported format version, or is damaged.

        Examples
        --------
        >>> twigs = tadoc.TwigSet({"titled": "//article[author]/title"})
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     twigs.save(f"{folder}/subscriptions.json")
        ...     tadoc.TwigSet.load(f"{folder}/subscriptions.json") == twigs
        True

        """
        path = require_path("path", path, "TwigSet.load")
        queries, namespaces = file.read(path)
        try:
            return cls(queries, namespaces=namespaces)
        except ValueError as error:
            raise InvalidTwigSetError(f"TwigSet.load: {path} cannot be used: {error}") from None

    @property
    def namespaces(self) -> dict[str, str]:
        """Namespace by prefix, including ``xml``; a copy.

        Examples
        --------
        >>> tadoc.TwigSet({"any": "//a:entry"}, namespaces={"a": "http://www.w3.org/2005/Atom"}).namespaces["a"]
        'http://www.w3.org/2005/Atom'

        """
        return self._namespaces.copy()

    def add(self, name: str, query: str) -> None:
        """Add a twig after the others.

        Parameters
        ----------
        name
            Its name, which filters return; the set must not have it yet.
        query
            XPath.

        Raises
        ------
        InvalidTwigError
            The query is not XPath or uses unsupported XPath; the set is unchanged.
        TypeError
            The name or the query is not a string.
        ValueError
            The set already has the name.

        Examples
        --------
        >>> twigs = tadoc.TwigSet()
        >>> twigs.add("recent", '//article[@year="2024"]')
        >>> twigs.add("first", "//article[1]")
        Traceback (most recent call last):
        polars_tadoc.errors.InvalidTwigError: query "first", character 11: a position test cannot be used; twigs are
        made of /, //, names, *, @name and predicates of these
          //article[1]
                    ^

        """
        twig = self._parsed(name, query, "TwigSet.add")
        with self._lock:
            if name in self._queries:
                raise ValueError(
                    f'TwigSet.add: the set has a twig "{name}" already, {_shortened(self[name])}; '
                    "TwigSet.update({name: query}) replaces it"
                )
            self._put(name, query, twig)

    def update(self, queries: Mapping[str, str]) -> None:
        """Add twigs, and replace those whose names exist; these keep their positions.

        Parameters
        ----------
        queries
            XPath queries by name, or another set; filters return the names.

        Raises
        ------
        InvalidTwigError
            A query is not XPath or uses unsupported XPath; the set is unchanged.
        TypeError
            ``queries`` is not a mapping, or a name or query is not a string.
        ValueError
            A given set has a prefix that this set does not have or maps to another namespace.

        Examples
        --------
        >>> twigs = tadoc.TwigSet({"titled": "//article/title", "cited": "//cite"})
        >>> twigs.update({"titled": "//book/title", "priced": "//book[price]"})
        >>> twigs
        TwigSet of 3 twigs
          titled: //book/title
          cited: //cite
          priced: //book[price]

        """
        self._update(queries, "TwigSet.update")

    def remove(self, name: str) -> None:
        """Remove a twig.

        Parameters
        ----------
        name
            Its name.

        Raises
        ------
        TwigMissingError
            The set has no twig of this name; the message suggests the most similar one.

        Examples
        --------
        >>> twigs = tadoc.TwigSet({"titled": "//article/title", "cited": "//cite"})
        >>> twigs.remove("titled")
        >>> list(twigs)
        ['cited']

        """
        with self._lock:
            if name not in self._queries:
                raise TwigMissingError.for_name(name, self._queries, "TwigSet.remove")
            _, planted, place = self._queries.pop(name)
            self._places.clear(place)
            if self._places.gaps > len(self._queries) + FEW:
                self._number_places()
            self._drop(planted)
            self._is_current = False

    def _compiled(self) -> CompiledTwigs:
        """Return the compiled current set; cached until the set changes.

        If twigs were only removed since the last call, the forest and its cached reductions are kept, and just their
        roots are dropped, until half of the twigs are unused.
        """
        with self._lock:
            if self._last is None or 2 * len(self._unused) > len(self._planted):
                self._last = None  # first: tables in use are copied before they change
                self._repack()
                roots, texts = self._places.arrays()
                twigs = self._forest.twigs()._replace(roots=roots)
                self._last = CompiledTwigs(self._forest.alphabet(), twigs, tuple(self._queries), texts)
            elif not self._is_current:
                self._last = self._last.asking(tuple(self._queries), *self._places.arrays())
            self._is_current = True
            return self._last

    def __getitem__(self, name: str) -> str:
        """Return the query of a name as written."""
        try:
            return self._queries[name][0]
        except KeyError:
            with self._lock:
                raise TwigMissingError.for_name(name, self._queries, "TwigSet") from None

    def get(self, name: str, default: Any = None, /) -> Any:
        """Return the query of a name as written, or a default if the set does not have the name.

        Parameters
        ----------
        name
            Name of a twig.
        default
            Returned for other names.

        Returns
        -------
        str or the default
            The query.

        Examples
        --------
        >>> twigs = tadoc.TwigSet({"titled": "//article/title"})
        >>> twigs.get("titled"), twigs.get("dated"), twigs.get("dated", "//article/@year")
        ('//article/title', None, '//article/@year')

        """
        found = self._queries.get(name)
        return default if found is None else found[0]

    def __contains__(self, name: object) -> bool:
        """Tell whether the set has a name."""
        return name in self._queries

    def __iter__(self) -> Iterator[str]:
        """Iterate over a snapshot of the names, in insertion order."""
        with self._lock:
            return iter(tuple(self._queries))

    def __len__(self) -> int:
        """Count the names."""
        return len(self._queries)

    def __eq__(self, other: object) -> bool:
        """Compare names and twigs."""
        if not isinstance(other, TwigSet):
            return NotImplemented
        return self._keys() == other._keys()

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        """Show the first twigs."""
        texts = self._texts()
        lines = [f"TwigSet of {len(texts):,} twig{'' if len(texts) == 1 else 's'}"]
        lines += [f"  {name}: {_shortened(query)}" for name, query in list(texts.items())[:MAX_SHOWN]]
        if len(texts) > MAX_SHOWN:
            lines.append(f"  … and {len(texts) - MAX_SHOWN:,} more")
        return "\n".join(lines)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle and copy by queries and namespaces."""
        return _made, (type(self), self._texts(), self.namespaces)

    @classmethod
    def _for_call(cls, queries: Mapping[str, str], namespaces: Mapping[str, str] | None, call: str) -> TwigSet:
        """Make a set of a call's queries; errors name the call."""
        made = cls()
        made._namespaces = prefixes.checked(namespaces, call)
        made._update(queries, call)
        return made

    def _update(self, queries: Mapping[str, str], call: str) -> None:
        if not isinstance(queries, Mapping):
            raise TypeError(
                f"{call}: queries must be a mapping of names to XPath queries, not {type(queries).__name__}: "
                '{"titled": "//article/title"}'
            )
        if isinstance(queries, TwigSet):
            self._require_same_namespaces(queries, call)
        parsed = [(name, query, self._parsed(name, query, call)) for name, query in queries.items()]
        with self._lock:
            for name, query, twig in parsed:
                self._put(name, query, twig)

    def _require_same_namespaces(self, other: TwigSet, call: str) -> None:
        """Raise if the other set's prefixes have other namespaces here."""
        for prefix, uri in other._namespaces.items():
            if self._namespaces.get(prefix, uri) != uri:
                raise ValueError(
                    f'{call}: the prefix "{prefix}" is "{uri}" in the set given and "{self._namespaces[prefix]}" here; '
                    "give its queries other prefixes, or pass them as strings: dict(the set)"
                )
            if prefix not in self._namespaces:
                raise ValueError(
                    f'{call}: the set given uses the prefix "{prefix}" for "{uri}", which is not declared here; '
                    f'declare it: TwigSet(…, namespaces={{"{prefix}": "{uri}", …}})'
                )

    def _parsed(self, name: str, query: str, call: str) -> Twig:
        if not isinstance(name, str):
            raise TypeError(f"{call}: the name {name!r} must be a string")
        require_text(name, f"{call}: the name {name!r}")
        if not isinstance(query, str):
            raise TypeError(f'{call}: the query of "{name}" is {query!r}, but must be a string of XPath')
        require_text(query, f'{call}: the query of "{name}"')
        return parse(query, self._namespaces, name)

    def _put(self, name: str, query: str, twig: Twig) -> None:
        planted = self._planted.get(twig.key)
        if planted is None:
            self._last = None  # first: tables in use are copied before they change
            planted = self._planted[twig.key] = _Planted(twig.key, self._forest.add(twig))
        self._unused.pop(twig.key, None)
        planted.uses += 1
        replaced = self._queries.get(name)
        if replaced is None:
            self._queries[name] = query, planted, self._places.append(planted)
        else:
            self._queries[name] = query, planted, replaced[2]
            self._places.replace(replaced[2], planted)
            self._drop(replaced[1])
        self._is_current = False

    def _drop(self, planted: _Planted) -> None:
        planted.uses -= 1
        if planted.uses:
            return
        if self._last is None:
            self._uproot(planted)
        else:
            self._unused[planted.key] = planted

    def _uproot(self, planted: _Planted) -> None:
        del self._planted[planted.key]
        self._forest.remove(planted.tree)

    def _repack(self) -> None:
        """Remove unused twigs and compact the others; deferred until the set is compiled."""
        for one in self._unused.values():
            self._uproot(one)
        self._unused.clear()
        if self._forest.is_sparse:
            planted = list(self._planted.values())
            self._forest, trees = self._forest.repacked(one.tree for one in planted)
            for one, tree in zip(planted, trees, strict=True):
                one.tree = tree
            self._number_places()

    def _number_places(self) -> None:
        self._places = _Places(planted for _, planted, _ in self._queries.values())
        self._queries = {
            name: (query, planted, place) for place, (name, (query, planted, _)) in enumerate(self._queries.items())
        }

    def _texts(self) -> dict[str, str]:
        with self._lock:
            return {name: query for name, (query, _, _) in self._queries.items()}

    def _keys(self) -> dict[str, bytes]:
        with self._lock:
            return {name: planted.key for name, (_, planted, _) in self._queries.items()}


def _made(kind: type[TwigSet], queries: dict[str, str], namespaces: dict[str, str]) -> TwigSet:
    return kind(queries, namespaces=namespaces)


def _shortened(query: str) -> str:
    return query if len(query) <= MAX_CHARACTERS else query[: MAX_CHARACTERS - 1] + "…"

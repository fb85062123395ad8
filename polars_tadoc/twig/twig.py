"""A twig as a tree in canonical form: equal twigs have equal trees."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Literal, NamedTuple

NO_PARENT = -1
"""Parent of the root."""

KEY_BYTES = 16
"""Bytes of a key; two different twigs collide with probability 2 ** -128."""

Kind = Literal["element", "any", "attribute", "text"]


class NodeTest(NamedTuple):
    """The test of a twig's node: an element, attribute or text."""

    kind: Kind
    uri: str = ""
    """Namespace of an element or attribute; "" for none."""
    local: str = ""
    """Local name."""
    value: str | None = None
    """Value of a text, or of an attribute if the twig compares it."""


@dataclass(frozen=True, slots=True)
class Twig:
    """A tree of nodes in preorder; children are a set, stored in a canonical order.

    Made by :func:`canonical_twig`. Twigs are equal if their keys are.
    """

    key: bytes
    """Digest of the tree."""
    tests: tuple[NodeTest, ...]
    """Test of each node."""
    descendants: tuple[bool, ...]
    """Per node: whether it is reached by ``//`` rather than ``/``."""
    parents: tuple[int, ...]
    """Per node: parent; ``NO_PARENT`` for the root."""

    def __eq__(self, other: object) -> bool:
        """Compare keys."""
        return self.key == other.key if isinstance(other, Twig) else NotImplemented

    def __hash__(self) -> int:
        """Hash the key."""
        return hash(self.key)

    def __len__(self) -> int:
        """Count the nodes."""
        return len(self.tests)


def canonical_twig(tests: Sequence[NodeTest], descendants: Sequence[bool], parents: Sequence[int]) -> Twig:
    """Remove duplicate children of a node, and sort the children of each.

    As in a Merkle tree, a node's digest covers its own test and its children's digests in order. Equal subtrees are
    found in time linear in the twig, at any depth.

    Parameters
    ----------
    tests, descendants, parents
        Per node, in preorder, as in :class:`Twig`.

    Returns
    -------
    Twig
        The canonical tree.

    Examples
    --------
    >>> a, b, c = NodeTest("element", "", "a"), NodeTest("element", "", "b"), NodeTest("element", "", "c")
    >>> once = canonical_twig([a, b, c], [True, False, False], [-1, 0, 0])
    >>> twice = canonical_twig([a, c, b, c], [True, False, False, False], [-1, 0, 0, 0])
    >>> once == twice, len(twice)
    (True, 3)

    """
    children: list[dict[bytes, int]] = [{} for _ in tests]
    key = b""
    for node in range(len(tests) - 1, -1, -1):
        kind, uri, local, value = tests[node]
        compared = "" if value is None else f"={value}"
        label = f"{descendants[node]:d}{kind} {len(uri)} {uri}{local}{compared}\0".encode()  # names have no "=" or NUL
        below = children[node]
        if len(below) > 1:
            below = children[node] = dict(sorted(below.items()))
        key = blake2b(label + b"".join(below), digest_size=KEY_BYTES).digest()
        if node:
            children[parents[node]].setdefault(key, node)
    order: list[int] = []
    new_parents: list[int] = []
    waiting = [(0, NO_PARENT)]
    while waiting:
        node, parent = waiting.pop()
        waiting += [(child, len(order)) for child in reversed(children[node].values())]
        order.append(node)
        new_parents.append(parent)
    return Twig(
        key, tuple(tests[node] for node in order), tuple(descendants[node] for node in order), tuple(new_parents)
    )

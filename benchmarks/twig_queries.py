"""Draws twig queries from the structure of real documents, with the parameters of the literature.

A query is a tree of so many nodes, so many of which branch. It is found by walks within one document, so it matches
that document; then names are replaced by ``*`` at random, and in some queries one name by any other of the documents,
so that these mostly fail. As in Absalyamov, Moussalli, Walia, Tsotras, "High-performance XML twig filtering using
GPUs", ADMS 2013: 32 to 2,048 queries of 5, 10 or 15 nodes with 1, 3 or 6 splits, ``*`` and ``//`` at 10, 30 or 50 %.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import lxml.etree

ATTEMPTS = 16
"""Walks tried for the wanted nodes and splits; shallow documents do not hold every shape, then the nearest is taken."""


class Shape(NamedTuple):
    """Parameters of queries."""

    nodes: int = 10
    splits: int = 3
    """Nodes with more than one child."""
    wildcards: float = 0.1
    """Share of names that are ``*``."""
    descendants: float = 0.1
    """Share of steps by ``//``."""
    values: float = 0.0
    """Share of steps to attributes and texts, most with their value; the paper has none."""
    near_misses: float = 0.5
    """Share of queries one name of which is drawn anew."""


class Drawn(NamedTuple):
    """Queries by name, and the namespaces that their prefixes stand for."""

    queries: dict[str, str]
    namespaces: dict[str, str]


@dataclass
class Element:
    """An element of a sampled document."""

    name: str
    """In Clark's notation."""
    attributes: list[tuple[str, str]]
    texts: list[str]
    children: list[Element] = field(default_factory=list)


@dataclass
class Node:
    """A node of a query and the element that it was found at."""

    test: str
    """A name in Clark's notation, ``*``, ``text()``, or a name after ``@``."""
    descends: bool
    image: Element | None
    value: str | None = None
    children: list[Node] = field(default_factory=list)

    def walk(self) -> Iterator[Node]:
        """Yield this node and all below."""
        yield self
        for child in self.children:
            yield from child.walk()

    def key(self) -> tuple[object, ...]:
        """Equal for nodes that ask the same."""
        return self.test, self.descends, self.value, frozenset(child.key() for child in self.children)

    def size(self) -> int:
        """Count the nodes; children that ask the same are one."""
        return 1 + sum({child.key(): child.size() for child in self.children}.values())


class Sample:
    """Documents that queries are drawn from.

    Parameters
    ----------
    documents
        Well-formed XML. Some hundred documents or some megabytes of them will do.

    """

    def __init__(self, documents: Sequence[str]) -> None:
        parser = lxml.etree.XMLParser(encoding="utf-8", huge_tree=True)
        self.roots = [_element(lxml.etree.fromstring(document.encode(), parser)) for document in documents]
        self.elements: list[tuple[Element, Element]] = []
        for root in self.roots:
            reached = [root]
            while reached:
                element = reached.pop()
                reached += element.children
                self.elements.append((root, element))
        names = {element.name for _, element in self.elements}
        attributes = {name for _, element in self.elements for name, _ in element.attributes}
        self.names, self.attributes = sorted(names), sorted(f"@{name}" for name in attributes)
        uris = {name[1:].split("}")[0] for name in names | attributes if name.startswith("{")}
        uris.discard("http://www.w3.org/XML/1998/namespace")
        self.namespaces = {f"n{number}": uri for number, uri in enumerate(sorted(uris), 1)}

    def draw(self, count: int, shape: Shape, seed: int = 0) -> Drawn:
        """Draw so many queries; equal ones may be among them."""
        drawing = _Drawing(self, shape, random.Random(seed))
        return Drawn({f"q{number}": drawing.query() for number in range(count)}, self.namespaces)


def _element(parsed: lxml.etree._Element) -> Element:
    made: dict[lxml.etree._Element, Element] = {}
    for element in parsed.iter(lxml.etree.Element):
        texts = [text for text in element.xpath("text()") if text.strip()]
        made[element] = Element(str(element.tag), [(str(name), value) for name, value in element.items()], texts)
        if element is not parsed:
            made[element.getparent()].children.append(made[element])
    return made[parsed]


class _Drawing:
    def __init__(self, sample: Sample, shape: Shape, chance: random.Random) -> None:
        self.sample, self.shape, self.chance = sample, shape, chance
        self.prefixes = {uri: prefix for prefix, uri in sample.namespaces.items()}
        self.prefixes["http://www.w3.org/XML/1998/namespace"] = "xml"

    def query(self) -> str:
        """Draw a query and write it."""
        best: tuple[int, Node] | None = None
        for _ in range(ATTEMPTS):
            root = self.twig()
            splits = sum(len(node.children) > 1 for node in root.walk())
            error = abs(self.shape.nodes - root.size()) + abs(self.shape.splits - splits)
            if best is None or error < best[0]:
                best = error, root
            if error == 0:
                break
        assert best is not None
        if self.happens(self.shape.near_misses):
            self.miss(best[1])
        return ("//" if best[1].descends else "/") + self.path(best[1], within=False)

    def happens(self, probability: float) -> bool:
        return self.chance.random() >= 1 - probability

    def twig(self) -> Node:
        """Grow a query within one document."""
        top, within = self.chance.choice(self.sample.elements)
        if self.happens(self.shape.descendants):
            root = self.node(within if within.children else top, True)
        else:
            root = self.node(top, False)
        nodes, splits = [root], 0
        while len(nodes) < self.shape.nodes:
            open_ = [node for node in nodes if node.image is not None and node.image.children]
            single = [node for node in open_ if len(node.children) == 1]
            others = [node for node in open_ if len(node.children) != 1]
            splits_wanted = self.shape.splits - splits
            if splits_wanted > 0 and single and self.happens(splits_wanted / (self.shape.nodes - len(nodes))):
                others = single
            parent = self.chance.choice(others or single) if others or single else None
            if parent is None:
                break
            splits += len(parent.children) == 1
            child = self.child(parent)
            parent.children.append(child)
            nodes.append(child)
        return root

    def node(self, image: Element, descends: bool) -> Node:
        return Node("*" if self.happens(self.shape.wildcards) else image.name, descends, image)

    def child(self, parent: Node) -> Node:
        """Go on below a node, to where its other children did not go if there is a choice."""
        assert parent.image is not None
        taken = {(child.test, child.descends) for child in parent.children}
        for _ in range(4):
            descends, reached = self.happens(self.shape.descendants), self.chance.choice(parent.image.children)
            while descends and reached.children and self.happens(0.5):
                reached = self.chance.choice(reached.children)
            if self.happens(self.shape.values) and (leaf := self.leaf(parent.image, reached, descends)):
                return leaf
            found = self.node(reached, descends)
            if (found.test, found.descends) not in taken:
                break
        return found

    def leaf(self, parent: Element, reached: Element, descends: bool) -> Node | None:
        """Ask for an attribute or a text of an element."""
        holder = reached if descends else parent
        texts = [text for text in holder.texts if '"' not in text or "'" not in text]
        attributes = [(name, value) for name, value in holder.attributes if '"' not in value or "'" not in value]
        if texts and (not attributes or self.happens(0.5)):
            return Node("text()", descends, None, self.chance.choice(texts))
        if attributes:
            name, value = self.chance.choice(attributes)
            return Node(f"@{name}", descends, None, value if self.happens(0.7) else None)
        return None

    def miss(self, root: Node) -> None:
        """Replace one name by any other."""
        named = [node for node in root.walk() if node.test not in ("*", "text()")]
        if named:
            node = self.chance.choice(named)
            node.test = self.chance.choice(self.sample.attributes if node.test[0] == "@" else self.sample.names)

    def path(self, node: Node, within: bool) -> str:
        """Write a step and all below it: one child goes on in the path, the others are predicates."""
        on = [child for child in node.children if within or child.value is None]
        chosen = self.chance.choice(on) if on and self.happens(0.7) else None
        written = self.name(node.test)
        for child in node.children:
            if child is not chosen:
                lead = ".//" if child.descends else "./" if self.happens(0.1) else ""
                written += f"[{lead}{self.path(child, within=True)}]"
        if node.value is not None:
            quote = "'" if '"' in node.value else '"'
            written += f"={quote}{node.value}{quote}"
        if chosen is not None:
            written += ("//" if chosen.descends else "/") + self.path(chosen, within)
        return written

    def name(self, test: str) -> str:
        lead, clark = ("@", test[1:]) if test[0] == "@" else ("", test)
        if not clark.startswith("{"):
            return test
        uri, local = clark[1:].split("}")
        return f"{lead}{self.prefixes[uri]}:{local}"

"""Which parameters a kernel writes to, by its source: arrays that are readonly in Python must not be among them.

Kernels take readonly and writable arrays in one form (``runtime/compiled.py``), so Numba no longer refuses to write.
"""

from __future__ import annotations

import ast
import gc
import inspect
import textwrap
import threading
from functools import cache
from types import FunctionType
from typing import Any

_WRITING_METHODS = {"fill", "sort", "partition", "put", "itemset"}
WRITING_INTRINSICS = {"move", "copy_wide", "copy_scaled", "update", "atomic_exchange_if"}
"""Intrinsics that write to the array that is their first argument."""
READING_INTRINSICS = {"prefetch", "equal_bits", "nonzero_bits", "ordered_load"}
"""Intrinsics that take an array and write to none; all others take numbers and addresses."""

_PARSING = threading.Lock()
"""Python 3.11 fails with a ``SystemError`` if a syntax tree is made while another is being made."""


@cache
def written_parameters(function: FunctionType) -> frozenset[int]:
    """Return the positions of parameters, or of parts of them, to which a kernel or one that it calls writes."""
    return _Reader(function).written()


def _tree_of(function: FunctionType) -> ast.stmt:
    """Return a function's syntax tree, made while no other thread makes one and no finalizer runs that would."""
    source = textwrap.dedent(inspect.getsource(function))
    with _PARSING:
        collects = gc.isenabled()
        gc.disable()
        try:
            (tree,) = ast.parse(source).body
        finally:
            if collects:
                gc.enable()
    return tree


class _Reader(ast.NodeVisitor):
    """Follows names that stand for a parameter or a part of one; a scalar taken from one does no harm."""

    def __init__(self, function: FunctionType) -> None:
        self._function = function
        self._tree = _tree_of(function)
        names = function.__code__.co_varnames[: function.__code__.co_argcount]
        self._of = {name: {position} for position, name in enumerate(names)}
        self._found: set[int] = set()

    def written(self) -> frozenset[int]:
        """Read the source until no name stands for more parameters."""
        before = None
        while before != (before := {name: set(positions) for name, positions in self._of.items()}):
            self.visit(self._tree)
        return frozenset(self._found)

    def _roots(self, node: ast.AST) -> set[int]:
        """Return the parameters that an expression may be a part of."""
        if isinstance(node, ast.Name):
            return self._of.get(node.id, set())
        if isinstance(node, (ast.Subscript, ast.Attribute, ast.Starred)):
            return self._roots(node.value)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            return self._roots(node.func.value)  # a view
        if isinstance(node, (ast.Tuple, ast.List)):
            return set().union(*map(self._roots, node.elts))
        return self._roots(node.body) | self._roots(node.orelse) if isinstance(node, ast.IfExp) else set()

    def _assign(self, target: ast.AST, roots: set[int]) -> None:
        if isinstance(target, ast.Name):
            self._of[target.id] = self._of.get(target.id, set()) | roots
        elif isinstance(target, (ast.Tuple, ast.List, ast.Starred)):
            for one in target.elts if not isinstance(target, ast.Starred) else [target.value]:
                self._assign(one, roots)
        elif isinstance(target, ast.Subscript):
            self._found |= self._roots(target.value)

    def visit_Assign(self, node: ast.Assign) -> None:
        pairs = [(target, node.value) for target in node.targets]
        for target, value in pairs:
            if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
                pairs += zip(target.elts, value.elts, strict=True)
            else:
                self._assign(target, self._roots(value))
        self.generic_visit(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        if isinstance(node.target, ast.Subscript):
            self._assign(node.target, set())
        self.generic_visit(node)

    def visit_For(self, node: ast.For) -> None:
        self._assign(node.target, self._roots(node.iter))
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        if isinstance(node.func, ast.Attribute) and node.func.attr in _WRITING_METHODS:
            self._found |= self._roots(node.func.value)
        called = self._value(node.func)
        positions = self._written_by(called) if called is not None else frozenset()
        for place, given in enumerate(node.args):
            if isinstance(given, ast.Starred):  # all that follows: which is which is not known
                self._found |= self._roots(given) if any(position >= place for position in positions) else set()
            elif place in positions:
                self._found |= self._roots(given)
        self.generic_visit(node)

    def _written_by(self, called: Any) -> frozenset[int]:
        called = getattr(called, "__wrapped__", called)  # a kernel that ends on interrupts
        if getattr(getattr(called, "_defn", None), "__name__", "") in WRITING_INTRINSICS:
            return frozenset([0])
        function = getattr(called, "py_func", called)
        if not isinstance(function, FunctionType) or not function.__module__.startswith(("polars_tadoc.", "tests.")):
            return frozenset()
        # what a function writes that calls itself is seen in its own body
        return frozenset() if function is self._function else written_parameters(function)

    def _value(self, node: ast.AST) -> Any:
        """Return what a name stands for outside of the function; None if that is not known."""
        if isinstance(node, ast.Name):
            inside = dict(zip(self._function.__code__.co_freevars, self._function.__closure__ or (), strict=True))
            if node.id in inside:
                return inside[node.id].cell_contents
            return self._function.__globals__.get(node.id)
        if isinstance(node, ast.Attribute):
            return getattr(self._value(node.value), node.attr, None)
        return None

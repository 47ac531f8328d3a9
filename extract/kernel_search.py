"""Which kernels an expression may name: through variables, variable templates and functions that return one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

from clang.cindex import CursorKind

from astra_integrate.extract.cursors import FUNCTIONS, candidates, qualified_name

REFERENCES = frozenset({CursorKind.DECL_REF_EXPR, CursorKind.OVERLOADED_DECL_REF})
VALUES = REFERENCES | {CursorKind.MEMBER_REF_EXPR}
_VARIABLES = frozenset({CursorKind.VAR_DECL, CursorKind.FIELD_DECL})


class Names(Protocol):
    """What the search asks of the walk over a unit."""

    def is_kernel(self, target: Any) -> bool:
        """Whether a declaration is a kernel."""

    def own_name(self, target: Any) -> str | None:
        """Qualified name of a declaration of the framework."""

    def spelled_kernels(self, declaration: Any) -> list[str]:
        """Kernels that a declaration's text names."""


class KernelSearch:
    """Kernels that an expression may name, followed through variables and functions that return a kernel."""

    def __init__(self, function: Any, walk: Names) -> None:
        self._function = function
        self._walk = walk
        self._visited: set[int] = set()
        self._found: dict[str, set[str]] = {}

    def below(self, cursor: Any) -> dict[str, set[str]]:
        """Kernel name → mangled names of the instantiations that the expression spells."""
        self._look(cursor)
        return self._found

    def _look(self, cursor: Any) -> None:
        if cursor.kind in VALUES:
            for target in candidates(cursor):
                self._target(target)
        for child in cursor.get_children():
            self._look(child)

    def _target(self, target: Any) -> None:
        if self._walk.is_kernel(target):
            self._kernel(target)
        elif target.hash not in self._visited:
            self._visited.add(target.hash)
            self._follow(target)

    def _kernel(self, target: Any) -> None:
        symbols = self._found.setdefault(qualified_name(target), set())
        if target.kind == CursorKind.FUNCTION_DECL and target.get_num_template_arguments() > 0:
            symbols.add(target.mangled_name)

    def _follow(self, target: Any) -> None:
        if target.kind in _VARIABLES:
            for child in (*target.get_children(), *_assignments(self._function, target)):
                self._look(child)
        elif target.kind == CursorKind.UNEXPOSED_DECL:
            for name in self._walk.spelled_kernels(target):
                self._found.setdefault(name, set())
        elif target.kind in FUNCTIONS and self._walk.own_name(target) is not None:
            for cursor in (target.get_definition() or target).walk_preorder():
                if cursor.kind == CursorKind.RETURN_STMT:
                    self._look(cursor)


def _assignments(function: Any, variable: Any) -> Iterator[Any]:
    """Right sides of ``variable = …`` in a function."""
    for cursor in function.walk_preorder():
        if cursor.kind != CursorKind.BINARY_OPERATOR:
            continue
        sides = list(cursor.get_children())
        if len(sides) == 2 and sides[0].kind == CursorKind.DECL_REF_EXPR and sides[0].referenced == variable:
            yield sides[1]

"""Which declarations must be copied so that one op alone gets the changed code.

By identifier: a declaration leads to every declaration whose name it mentions. That finds dependent
calls, template arguments and macros alike; it can only name too many, never too few.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from functools import lru_cache

from astra_integrate.records import Declaration, Slice
from astra_integrate.reinject.rename import code_tokens


def host_declarations(slice: Slice) -> tuple[Declaration, ...]:
    """The declarations that hold the op's host function: the function, its prototypes, or the class it is in.

    Empty where the slice has no host function.
    """
    if slice.host_function is None:
        return ()
    parts = [part.partition("<")[0].strip() for part in slice.host_function.split("::")]
    for name in reversed([part for part in parts if part]):
        found = tuple(d for d in slice.declarations if name in d.names and d.role in ("host", "either"))
        if found:
            return found
    return ()


def to_copy(slice: Slice, changed: Collection[str], texts: Mapping[str, str]) -> tuple[Declaration, ...]:
    """Declarations to copy under a new name, in the slice's order: the changed ones, and all on a way to them.

    Args:
        slice: the slice.
        changed: ids of the changed declarations.
        texts: id → new text of the changed ones; both old and new text count as ways.

    Overloads and specialisations of a copied name come along: each mentions the name. Declarations of
    the host function are left out: they are edited in place. Without one, the ways start at the kernels.
    """
    hosts = {d.id for d in host_declarations(slice)}
    forward = _graph(slice.declarations, texts)
    backward: dict[str, set[str]] = {}
    for start, ends in forward.items():
        for end in ends:
            backward.setdefault(end, set()).add(start)
    starts = hosts or {d.id for d in slice.declarations if d.is_kernel}
    on_the_way = _reached(starts, forward) & _reached(changed, backward)
    chosen = (on_the_way | set(changed)) - hosts
    return tuple(d for d in slice.declarations if d.id in chosen)


def reached_from_host(slice: Slice, texts: Mapping[str, str]) -> set[str]:
    """Ids of all declarations that the host function leads to, itself included."""
    return _reached({d.id for d in host_declarations(slice)}, _graph(slice.declarations, texts))


@lru_cache(maxsize=4096)
def words(text: str) -> frozenset[str]:
    """Every identifier of ``text`` outside comments and strings."""
    return frozenset(token.text for token in code_tokens(text) if token.kind == "word")


def _graph(declarations: Iterable[Declaration], texts: Mapping[str, str]) -> dict[str, set[str]]:
    declarations = tuple(declarations)
    by_name: dict[str, set[str]] = {}
    for declaration in declarations:
        for name in declaration.names:
            by_name.setdefault(name, set()).add(declaration.id)
    return {
        d.id: {id for word in words(d.text) | words(texts.get(d.id, "")) for id in by_name.get(word, ()) if id != d.id}
        for d in declarations
    }


def _reached(starts: Iterable[str], edges: Mapping[str, Collection[str]]) -> set[str]:
    reached: set[str] = set()
    waiting = list(starts)
    while waiting:
        current = waiting.pop()
        if current not in reached:
            reached.add(current)
            waiting.extend(edges.get(current, ()))
    return reached

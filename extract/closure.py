"""What a piece of code needs, by the identifiers that it mentions.

Names rather than resolved references: dependent calls, argument-dependent look-up, overloads and
specialisations then come along by themselves. The result is larger than strictly needed, never smaller.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from astra_integrate.extract.lexing import head, identifiers
from astra_integrate.records import Declaration

_OPERATOR = "operator"
_DIRECTIVE = "USING_DIRECTIVE"


@dataclass(frozen=True)
class Piece:
    """A declaration, macro or addition as the closure sees it.

    ``names`` are what others mention to reach it. ``barred`` pieces are never reached (but may be roots).
    """

    key: str
    names: tuple[str, ...]
    text: str
    kind: str = ""
    namespaces: tuple[str, ...] = ()
    barred: bool = False


def piece(declaration: Declaration, *, barred: bool = False) -> Piece:
    """``declaration`` as a piece."""
    return Piece(
        key=declaration.id,
        names=declaration.names,
        text=declaration.text,
        kind=declaration.kind,
        namespaces=declaration.namespaces,
        barred=barred,
    )


def reach(
    pieces: Sequence[Piece],
    roots: Iterable[str],
    names: Iterable[str] = (),
    outside_namespaces: Collection[str] = (),
) -> set[str]:
    """Keys of all pieces that the roots need.

    Args:
        pieces: everything there is, in the order of the translation unit.
        roots: keys of the pieces to start from.
        names: further identifiers to start from (template arguments of a launch, for example).
        outside_namespaces: namespaces that headers outside the pieces declare; ``using namespace``
            of one of these stays.

    Overloads and specialisations of a reached name are reached. A free operator is reached with the
    types in its parameters, a ``using namespace`` with its namespace.
    """
    by_name: dict[str, list[Piece]] = defaultdict(list)
    by_key = {p.key: p for p in pieces}
    for p in pieces:
        for name in p.names:
            by_name[name].append(p)
    operators = [p for p in pieces if any(name.startswith(_OPERATOR) for name in p.names)]
    types = _types(pieces)
    reached: set[str] = set()
    waiting = [by_key[key] for key in roots]
    waiting += [p for name in names for p in by_name.get(name, ()) if not p.barred]
    while waiting:
        current = waiting.pop()
        if current.key in reached:
            continue
        reached.add(current.key)
        waiting += _mentioned(current, by_name, reached)
        if not waiting:
            waiting += [o for o in operators if o.key not in reached and _fits(o, reached, types)]
    return reached | _directives(pieces, reached, outside_namespaces)


def _mentioned(current: Piece, by_name: Mapping[str, list[Piece]], reached: Collection[str]) -> list[Piece]:
    return [
        found
        for word in identifiers(current.text)
        for found in by_name.get(word, ())
        if not found.barred and found.key not in reached
    ]


_TYPE_KINDS = {"STRUCT_DECL", "CLASS_DECL", "CLASS_TEMPLATE", "UNION_DECL", "ENUM_DECL"}


def _types(pieces: Sequence[Piece]) -> dict[str, set[str]]:
    """Name of a class or enum → keys of its declarations."""
    types: dict[str, set[str]] = defaultdict(set)
    for p in pieces:
        if p.kind in _TYPE_KINDS:
            for name in p.names:
                types[name].add(p.key)
    return types


def _fits(operator: Piece, reached: Collection[str], types: Mapping[str, set[str]]) -> bool:
    """Whether a free operator belongs to reached types.

    One over outside types alone (``float2 operator*(float2, float2)``) fits as soon as anything of its
    own namespaces may use it: nothing names it, so it is taken.
    """
    if operator.barred:
        return False
    own = [keys for word in identifiers(head(operator.text)) if (keys := types.get(word))]
    return all(keys & set(reached) for keys in own)


def _directives(pieces: Sequence[Piece], reached: Collection[str], outside: Collection[str]) -> set[str]:
    """``using namespace`` pieces whose namespace is there: one of the reached pieces' own, or an outside one."""
    known = {name for p in pieces if p.key in reached for name in p.namespaces} | set(outside)
    return {
        p.key
        for p in pieces
        if p.kind == _DIRECTIVE and not p.barred and (words := identifiers(p.text) - {"using", "namespace"})
        if words <= known
    }

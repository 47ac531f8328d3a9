"""All top-level declarations and macros of the framework's own files in one parsed unit, with exact bytes."""

from __future__ import annotations

import functools
import os
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from clang.cindex import CursorKind

from astra_integrate.extract.extents import FileText, cut
from astra_integrate.extract.lexing import head, identifiers
from astra_integrate.extract.locations import Place, file_location, spelling_location
from astra_integrate.extract.parsing import Unit
from astra_integrate.records import Declaration, Extent, digest_of

Role = Literal["device", "host", "either", "macro"]

_FUNCTIONS = {
    CursorKind.FUNCTION_DECL,
    CursorKind.FUNCTION_TEMPLATE,
    CursorKind.CXX_METHOD,
    CursorKind.CONSTRUCTOR,
    CursorKind.DESTRUCTOR,
    CursorKind.CONVERSION_FUNCTION,
}
_MEMBERS = _FUNCTIONS - {CursorKind.FUNCTION_DECL, CursorKind.FUNCTION_TEMPLATE}
_NAME = re.compile(r"[A-Za-z_]\w*")
# Types of tensor libraries: what spells one of these can only be host code.
_HOST_TYPES = {"Tensor", "TensorView", "TensorBase", "TensorOptions", "IValue"}


@dataclass(frozen=True)
class Found:
    """A declaration with the cursors that it was made from (more than one for ``int a, b;`` or a macro's call)."""

    declaration: Declaration
    cursors: tuple[Any, ...]


@dataclass
class OwnFiles:
    """Which files are the framework's own, and their texts."""

    root: Path
    folders: tuple[Path, ...]
    _texts: dict[str, FileText] = field(default_factory=dict)
    _relative: dict[str, str | None] = field(default_factory=dict)

    @classmethod
    def of(cls, root: Path, folders: Iterable[str]) -> OwnFiles:
        """``folders`` are relative to ``root``."""
        real = root.resolve()
        return cls(real, tuple((real / folder).resolve() for folder in folders))

    def relative(self, file: str | None) -> str | None:
        """``file`` (as libclang opened it) relative to the root, with ``/``; None where it isn't own."""
        if file is None:
            return None
        if file not in self._relative:
            real = Path(os.path.realpath(file))
            own = any(real.is_relative_to(folder) for folder in self.folders)
            self._relative[file] = real.relative_to(self.root).as_posix() if own else None
        return self._relative[file]

    def text(self, relative: str) -> FileText:
        """The file's text, read once."""
        if relative not in self._texts:
            self._texts[relative] = FileText((self.root / relative).read_bytes())
        return self._texts[relative]


def declarations(unit: Unit, own: OwnFiles) -> tuple[Found, ...]:
    """Every top-level declaration and active macro definition of own files, in the unit's order.

    Only active text is seen: what a false ``#if`` hides is not there. Declarations whose bytes
    overlap (several declarators, several products of one macro call) are one.
    """
    raw = _collect(unit.tu.cursor, own)
    by_file: dict[str, list[_Raw]] = defaultdict(list)
    for entry in raw:
        by_file[entry.file].append(entry)
    merged = [group for file, entries in by_file.items() for group in _merge(own.text(file), entries)]
    merged.sort(key=functools.cmp_to_key(_in_unit_order))
    return tuple(_found(group, order, own) for order, group in enumerate(merged))


@dataclass
class _Raw:
    file: str
    start: int
    end: int
    ends_in_macro: bool
    namespaces: tuple[str, ...]
    cursors: list[Any]


def _in_unit_order(first: _Raw, second: _Raw) -> int:
    here, there = first.cursors[0].extent.start, second.cursors[0].extent.start
    if here < there:
        return -1
    return 1 if there < here else 0


def _collect(top: Any, own: OwnFiles) -> list[_Raw]:
    raw: list[_Raw] = []
    calls: dict[str, set[tuple[int, int]]] = defaultdict(set)
    borders: list[tuple[str, int]] = []
    for cursor, namespaces in _walk(top, (), own, borders):
        start = _place(cursor, own)
        file = own.relative(start.file)
        if file is None:
            continue
        end = file_location(cursor.extent.end)
        if cursor.kind == CursorKind.MACRO_INSTANTIATION:
            if own.relative(end.file) == file:
                calls[file].add((start.offset, end.offset))
            continue
        if own.relative(end.file) != file:
            # A declaration whose end another file spells (an included body) has no extent of its own.
            continue
        spelled = spelling_location(cursor.extent.end)
        in_macro = (spelled.file, spelled.offset) != (end.file, end.offset)
        raw.append(_Raw(file, start.offset, end.offset, in_macro, namespaces, [cursor]))
    for file, found in calls.items():
        own.text(file).add_calls(found)
    for file, offset in borders:
        call = own.text(file).call_at(offset)
        if call is not None:
            own.text(file).stops.append(call[1])
    return raw


def _place(cursor: Any, own: OwnFiles) -> Place:
    """Where a cursor starts in its file. Most cursors are not own: the cheap test comes first."""
    location = cursor.location
    file = location.file
    if file is None or own.relative(file.name) is None:
        return Place(None, 0, 0, 0)
    return file_location(cursor.extent.start)


def _walk(
    parent: Any, namespaces: tuple[str, ...], own: OwnFiles, borders: list[tuple[str, int]]
) -> Iterator[tuple[Any, tuple[str, ...]]]:
    for cursor in parent.get_children():
        kind = cursor.kind
        if kind in (CursorKind.NAMESPACE, CursorKind.LINKAGE_SPEC):
            start = _place(cursor, own)
            file = own.relative(start.file)
            if file is None:
                continue
            borders += [(file, start.offset), (file, file_location(cursor.extent.end).offset - 1)]
            inner = (*namespaces, _namespace(cursor)) if kind == CursorKind.NAMESPACE else namespaces
            yield from _walk(cursor, inner, own, borders)
        elif kind.is_declaration() or kind in (CursorKind.MACRO_DEFINITION, CursorKind.MACRO_INSTANTIATION):
            yield cursor, namespaces


def _namespace(cursor: Any) -> str:
    name: str = cursor.spelling
    return name if _NAME.fullmatch(name) else ""


def _merge(file: FileText, entries: Sequence[_Raw]) -> list[_Raw]:
    """Give every entry its final bytes; entries that share bytes become one."""
    merged: list[_Raw] = []
    file.stops.sort()
    for entry in sorted(entries, key=lambda e: (e.start, -e.end)):
        kind = entry.cursors[0].kind
        if kind == CursorKind.MACRO_DEFINITION:
            line = next((d for d in file.directives if d[0] < entry.start < d[1]), None)
            start, end = line if line else (entry.start, entry.end)
        else:
            start, end = cut(
                file, entry.start, entry.end, ends_in_macro=entry.ends_in_macro, is_function=kind in _FUNCTIONS
            )
        if merged and start < merged[-1].end and entry.start < merged[-1].end:
            merged[-1].end = max(merged[-1].end, end)
            merged[-1].start = min(merged[-1].start, start)
            # A macro defined inside a function's body is a part of that body, nothing else.
            if kind != CursorKind.MACRO_DEFINITION:
                merged[-1].cursors += entry.cursors
        else:
            merged.append(_Raw(entry.file, start, end, False, entry.namespaces, list(entry.cursors)))
        if kind != CursorKind.MACRO_DEFINITION:
            file.stops.append(merged[-1].end)
            file.stops.sort()
    return merged


def _found(group: _Raw, order: int, own: OwnFiles) -> Found:
    data = own.text(group.file).data[group.start : group.end]
    text = data.decode("utf-8", "surrogateescape")
    names = tuple(dict.fromkeys(name for cursor in group.cursors for name in names_of(cursor)))
    is_kernel = any(is_global(cursor) for cursor in group.cursors)
    label = names[0] if names else group.cursors[0].kind.name.lower()
    declaration = Declaration(
        id=f"{group.file}:{label}@{group.start}",
        names=names,
        kind=group.cursors[0].kind.name,
        role=role_of(group.cursors, text),
        namespaces=group.namespaces,
        order=order,
        extent=Extent(file=group.file, start=group.start, end=group.end, bytes_digest=digest_of(data)),
        text=text,
        is_kernel=is_kernel,
    )
    return Found(declaration, tuple(group.cursors))


def names_of(cursor: Any) -> tuple[str, ...]:
    """What other code spells to use the declaration: its name, enumerators, for a member its class."""
    kind = cursor.kind
    if kind == CursorKind.USING_DIRECTIVE:
        return ()
    if kind in _MEMBERS:
        return names_of(cursor.semantic_parent)
    spelling: str = cursor.spelling
    guide = re.fullmatch(r"<deduction guide for (\w+)>", spelling)
    if guide:
        return (guide[1],)
    if kind == CursorKind.USING_DECLARATION:
        referred = [child.spelling for child in cursor.get_children() if child.kind != CursorKind.NAMESPACE_REF]
        return tuple(_NAME.findall(spelling)[-1:]) or tuple(referred[-1:])
    names = (spelling,) if _NAME.fullmatch(spelling) or spelling.startswith("operator") else ()
    if kind == CursorKind.ENUM_DECL:
        names += tuple(child.spelling for child in cursor.get_children() if child.kind == CursorKind.ENUM_CONSTANT_DECL)
    return names


def is_global(cursor: Any) -> bool:
    """Whether the function or function template is a ``__global__`` one."""
    return cursor.kind in _FUNCTIONS and CursorKind.CUDAGLOBAL_ATTR in _attributes(cursor)


def _attributes(cursor: Any) -> set[Any]:
    return {child.kind for child in cursor.get_children() if child.kind.is_attribute()}


def role_of(cursors: Sequence[Any], text: str) -> Role:
    """Where the declaration can be used. Types and constants are usable on both sides unless they spell host types."""
    if cursors[0].kind == CursorKind.MACRO_DEFINITION:
        return "macro"
    roles = {cursor_role(cursor, text) for cursor in cursors}
    for role in ("device", "either"):
        if role in roles:
            return role
    return "host"


def cursor_role(cursor: Any, text: str = "") -> Literal["device", "either", "host"]:
    """Where one function, variable or type can be used; ``text`` is what spells it."""
    kind = cursor.kind
    if kind in _FUNCTIONS:
        return _function_role(cursor, head(text))
    if kind == CursorKind.VAR_DECL:
        attributes = _attributes(cursor)
        if attributes & {CursorKind.CUDADEVICE_ATTR, CursorKind.CUDACONSTANT_ATTR, CursorKind.CUDASHARED_ATTR}:
            return "device"
        constant = cursor.type.is_const_qualified() or "constexpr" in identifiers(head(text))
        return "either" if constant and not _spells_host(text) else "host"
    return "host" if _spells_host(text) else "either"


def _function_role(cursor: Any, opening: str) -> Literal["device", "either", "host"]:
    attributes = _attributes(cursor)
    if attributes & {CursorKind.CUDAGLOBAL_ATTR, CursorKind.CUDADEVICE_ATTR}:
        return "either" if CursorKind.CUDAHOST_ATTR in attributes else "device"
    words = identifiers(opening)
    # nvcc lets device code call a constexpr function (--expt-relaxed-constexpr).
    return "either" if {"constexpr", "consteval"} & words and not _spells_host(opening) else "host"


def _spells_host(text: str) -> bool:
    return bool(_HOST_TYPES & identifiers(text)) or "<<<" in text

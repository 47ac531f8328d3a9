"""A slice as source text again: for nvcc (device code) or for a host compiler (the whole op).

Pure functions over records. Every declaration keeps its bytes and its namespaces; spans tell where.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from astra_integrate.errors import BadInput
from astra_integrate.extract.closure import Piece, reach
from astra_integrate.extract.includes import OUTSIDE_NAMESPACES, device_includes, op_includes, prologue
from astra_integrate.extract.lexing import blank, head, identifiers
from astra_integrate.records import Addition, Declaration, Lowering, Slice


@dataclass(frozen=True)
class Span:
    """Where a declaration (by id) or an addition (by name) stands: bytes ``start`` to ``end`` of the text."""

    id: str
    start: int
    end: int


@dataclass(frozen=True)
class Rendered:
    """Source text and what stands where in it (UTF-8 with surrogateescape; spans in byte offsets)."""

    text: str
    spans: tuple[Span, ...]

    def span(self, id: str) -> Span:
        """The span of a declaration id or an addition's name; ``KeyError`` when it isn't in the text."""
        for span in self.spans:
            if span.id == id:
                return span
        raise KeyError(id)


@dataclass(frozen=True)
class _Item:
    id: str
    text: str
    names: tuple[str, ...]
    namespaces: tuple[str, ...]
    declaration: Declaration | None = None

    @property
    def is_macro(self) -> bool:
        return self.text.lstrip().startswith("#")


def device_text(slice: Slice, lowering: Lowering | None = None, keep: Sequence[str] = ()) -> Rendered:
    """The device code of ``slice`` as one file that nvcc compiles by itself.

    Args:
        slice: the slice.
        lowering: replaced and added declarations to use.
        keep: template-ids (``ns::kernel<args>``) whose code is to be emitted; see :func:`keep_text`.

    Only what the kernels reach is in it: no host function, no launch, no dispatch macro.
    Raises :class:`BadInput` where the lowering names a declaration that the slice doesn't hold.
    """
    items = _items(slice, lowering)
    forced = (*keep, *(lowering.instantiations if lowering else ()), *slice.instantiations)
    chosen = _device_keys(items, forced)
    selected = [item for index, item in enumerate(items) if str(index) in chosen]
    texts = [item.text for item in selected]
    lines = [*device_includes(slice.includes, (*texts, *forced)), *prologue((*texts, *forced))]
    rendered = _assemble(lines, selected)
    return Rendered(rendered.text + keep_text(keep), rendered.spans)


def op_text(slice: Slice, lowering: Lowering | None = None) -> Rendered:
    """The whole op, host function included, without the headers of tensor libraries (torch, tvm).

    Raises :class:`BadInput` where the lowering names a declaration that the slice doesn't hold.
    """
    return _assemble(op_includes(slice.includes), _items(slice, lowering))


def keep_text(instantiations: Sequence[str]) -> str:
    """C++ that makes the compiler emit these kernels, to stand at the end of a text; empty for none."""
    if not instantiations:
        return ""
    entries = ",\n    ".join(f"(void*)&{instantiation}" for instantiation in instantiations)
    return f"namespace {{\n[[maybe_unused]] void* astra_keep[] = {{\n    {entries}}};\n}}\n"


def _items(slice: Slice, lowering: Lowering | None) -> list[_Item]:
    """Declarations and additions in the order in which they are to stand."""
    known = {declaration.id for declaration in slice.declarations}
    replaced: dict[str, str] = {}
    before: dict[str, list[Addition]] = defaultdict(list)
    after: dict[str, list[Addition]] = defaultdict(list)
    if lowering is not None:
        replaced = {replacement.declaration: replacement.text for replacement in lowering.replaced}
        for addition in lowering.added:
            (before if addition.where == "before" else after)[addition.anchor].append(addition)
    missing = sorted((replaced.keys() | before.keys() | after.keys()) - known)
    if missing:
        raise BadInput(f"The slice holds no declaration {missing[0]!r}", "Use the ids of its own declarations")
    items: list[_Item] = []
    for declaration in sorted(slice.declarations, key=lambda d: d.order):
        items += [_added(addition, declaration) for addition in before[declaration.id]]
        text = replaced.get(declaration.id, declaration.text)
        items.append(_Item(declaration.id, text, declaration.names, declaration.namespaces, declaration))
        items += [_added(addition, declaration) for addition in after[declaration.id]]
    return items


def _added(addition: Addition, anchor: Declaration) -> _Item:
    return _Item(addition.name, addition.text, (addition.name,), anchor.namespaces)


def _device_keys(items: Sequence[_Item], forced: Iterable[str]) -> set[str]:
    """Indices (as keys) of the items that the kernels reach; two additions may have one name."""
    pieces: list[Piece] = []
    roots: list[str] = []
    for index, item in enumerate(items):
        kernel = _is_kernel(item)
        if kernel:
            roots.append(str(index))
        pieces.append(
            Piece(
                key=str(index),
                names=item.names,
                text=item.text,
                kind=item.declaration.kind if item.declaration else "",
                namespaces=item.namespaces,
                barred=_is_host(item),
            )
        )
    names = {word for text in forced for word in identifiers(text)}
    return reach(pieces, roots, names, OUTSIDE_NAMESPACES)


def _is_kernel(item: _Item) -> bool:
    if item.declaration is not None:
        return item.declaration.is_kernel
    return not item.is_macro and "__global__" in head(item.text)


def _is_host(item: _Item) -> bool:
    """A declaration has its role; an addition is host code where it launches."""
    if item.declaration is not None:
        return item.declaration.role == "host"
    return "<<<" in blank(item.text)


def _assemble(lines: Sequence[str], items: Sequence[_Item]) -> Rendered:
    writer = _Writer()
    for line in lines:
        writer.write(line + "\n")
    defined: set[str] = set()
    for item in items:
        if item.is_macro:
            writer.redefine(item.names, defined)
        else:
            writer.enter(item.namespaces)
        writer.item(item)
    writer.enter(())
    return Rendered("".join(writer.parts), tuple(writer.spans))


class _Writer:
    """Text so far, its length in bytes, and the namespaces that are open."""

    def __init__(self) -> None:
        self.parts: list[str] = []
        self.spans: list[Span] = []
        self._bytes = 0
        self._open: tuple[str, ...] = ()

    def write(self, text: str) -> None:
        self.parts.append(text)
        self._bytes += len(text.encode("utf-8", "surrogateescape"))

    def item(self, item: _Item) -> None:
        start = self._bytes
        self.write(item.text)
        self.spans.append(Span(item.id, start, self._bytes))
        self.write("\n")

    def enter(self, namespaces: tuple[str, ...]) -> None:
        shared = 0
        while shared < min(len(self._open), len(namespaces)) and self._open[shared] == namespaces[shared]:
            shared += 1
        for name in reversed(self._open[shared:]):
            self.write(f"}}  // namespace {name}".rstrip() + "\n")
        for name in namespaces[shared:]:
            self.write(f"namespace {name} {{\n" if name else "namespace {\n")
        self._open = namespaces

    def redefine(self, names: Collection[str], defined: set[str]) -> None:
        """A macro that the source undefined and defined anew needs its ``#undef`` here too."""
        for name in names:
            if name in defined:
                self.write(f"#undef {name}\n")
            defined.add(name)

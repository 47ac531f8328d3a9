"""Parameters of a kernel as its text declares them, for the kernels of a slice that have no record of their own."""

from __future__ import annotations

import re
from dataclasses import dataclass

from astra_integrate.extract.lexing import blank, closing, split_list
from astra_integrate.records import Declaration, Kernel, Slice


@dataclass(frozen=True)
class Signature:
    """``parameters``: (name, type); ``template_parameters``: (name, whether it is a type)."""

    name: str
    parameters: tuple[tuple[str, str], ...]
    template_parameters: tuple[tuple[str, bool], ...]


def signatures(slice: Slice) -> dict[str, Signature]:
    """Plain name of each kernel of ``slice`` → its signature (of the first overload); the record's wins."""
    found: dict[str, Signature] = {}
    for declaration in slice.declarations:
        if declaration.is_kernel and declaration.names and declaration.names[0] not in found:
            found[declaration.names[0]] = _of_text(declaration)
    own = _of_record(slice.kernel)
    return {own.name: own, **{name: signature for name, signature in found.items() if name != own.name}}


def plain(name: str) -> str:
    """A qualified name without namespaces and template arguments."""
    return name.partition("<")[0].rpartition("::")[2].strip()


def named(item: str) -> tuple[str, str]:
    """(name, type) of one parameter; a pointer to function has its name inside brackets."""
    item = " ".join(item.partition("=")[0].split())
    inside = re.search(r"\(\s*[*&]\s*(\w+)\s*\)", item)
    if inside:
        return inside[1], item
    last = re.search(r"(\w+)(?:\s*\[[^\]]*\])?$", item)
    return (last[1], item[: last.start()].strip()) if last else ("", item)


def template_parameters(text: str) -> tuple[str, ...]:
    """The parameters of the ``template <…>`` that ``text`` (comments blanked) starts with; empty for none."""
    template = re.match(r"\s*template\s*<", text)
    if template is None:
        return ()
    items, start = [], template.end()
    rounds, angles = 0, 1
    for place in range(start, len(text)):
        character = text[place]
        rounds += (character in "([{") - (character in ")]}")
        if rounds == 0:
            # Inside round brackets "<" and ">" compare.
            angles += (character == "<") - (character == ">")
            if angles == 0 or (character == "," and angles == 1):
                items.append(text[start:place].strip())
                start = place + 1
            if angles == 0:
                break
    return tuple(item for item in items if item)


def _of_record(kernel: Kernel) -> Signature:
    return Signature(
        name=plain(kernel.name),
        parameters=tuple((p.name, p.type) for p in kernel.parameters),
        template_parameters=tuple((p.name, p.kind == "type") for p in kernel.template_parameters),
    )


def _of_text(declaration: Declaration) -> Signature:
    text, name = blank(declaration.text), declaration.names[0]
    opening = re.search(rf"\b{re.escape(name)}\s*\(", text)
    end = closing(text, opening.end() - 1) if opening else None
    parameters = split_list(text[opening.end() : end - 1]) if opening and end else ()
    return Signature(
        name=name,
        parameters=tuple(named(item) for item in parameters),
        template_parameters=tuple(
            (named(item)[0], bool(re.match(r"(?:typename|class)\b", item))) for item in template_parameters(text)
        ),
    )

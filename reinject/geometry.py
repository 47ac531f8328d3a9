"""Grid and block of a launch as its text shows them: what ``x`` is, and whether there is a ``y`` or ``z``."""

from __future__ import annotations

import re

from astra_integrate.errors import BadInput
from astra_integrate.reinject.expressions import Scope, is_primary
from astra_integrate.reinject.launch_site import Piece, Site
from astra_integrate.reinject.signature import Signature

_WHOLE_NUMBERS = r"(?:int|long|unsigned|auto|size_t|u?int(?:32|64)_t|std::size_t)"


def scope_at(text: str, site: Site, kernel: Signature) -> Scope:
    """What a plan's names mean at a site: the kernel's parameters are the launch's arguments there.

    A template argument that the site leaves to deduction is the type that its pointer argument points to.
    Raises :class:`BadInput` where the launch has more arguments than the kernel has parameters.
    """
    if len(site.arguments) > len(kernel.parameters):
        raise BadInput(f"A launch of {kernel.name} has {len(site.arguments)} arguments for {len(kernel.parameters)}")
    values = {name: piece.text for (name, _), piece in zip(kernel.parameters, site.arguments, strict=False) if name}
    values.setdefault("grid_x", _x(text, site.grid))
    values.setdefault("block_x", _x(text, site.block))
    types: dict[str, str] = {}
    for place, (name, is_type) in enumerate(kernel.template_parameters):
        if is_type and (spelled := _type_at(place, name, site, kernel)):
            types[name] = spelled
        elif not is_type and place < len(site.template_arguments):
            values.setdefault(name, site.template_arguments[place].text)
    return Scope(values, types)


def with_x(text: str, piece: Piece, x: str) -> str:
    """``x`` in place of the deployed x; the deployed y and z stay, where ``text`` doesn't show that they are 1."""
    if _one_dimensional(text, piece.text):
        return x
    return f"dim3({x}, {_member(text, piece, 'y')}, {_member(text, piece, 'z')})"


def _type_at(place: int, name: str, site: Site, kernel: Signature) -> str:
    if place < len(site.template_arguments):
        return site.template_arguments[place].text
    pointer = re.compile(rf"(?:const )?{name}(?: const)? ?\*(?: ?(?:const|__restrict__|__restrict))*")
    for (_, kind), argument in zip(kernel.parameters, site.arguments, strict=False):
        if pointer.fullmatch(kind):
            return f"*{argument.text}" if is_primary(argument.text) else f"*({argument.text})"
    return ""


def _x(text: str, piece: Piece) -> str:
    return _member(text, piece, "x")


def _member(text: str, piece: Piece, axis: str) -> str:
    """An axis of a dim3 or number: a number becomes a dim3 first."""
    if re.fullmatch(r"\w+", piece.text) and _initialisers(text, piece.text):
        return f"{piece.text}.{axis}"
    return f"dim3({piece.text}).{axis}"


def _initialisers(text: str, name: str) -> list[str]:
    """What ``text`` makes a dim3 of that name from: ``dim3 name(…)``, ``dim3 name{…}``, ``dim3 name = …``."""
    pattern = rf"\bdim3\s+{name}\s*(?:[({{]|=\s*(?:dim3)?\s*[({{]?)([^;]*?)[)}}]?\s*\\?\s*;"
    return [match[1] for match in re.finditer(pattern, text)]


def _one_dimensional(text: str, expression: str) -> bool:
    """Whether ``text`` shows that ``expression`` has only an x. False is always safe, only longer."""
    if expression.isdigit():
        return True
    if re.fullmatch(r"\w+", expression):
        made = _initialisers(text, expression)
        if made:
            changed = re.search(rf"\b{expression}\s*(?:\.\s*[yz]\s*)?=[^=]", re.sub(r"\bdim3\s+\w+\s*=", "", text))
            return changed is None and all(_commas(initialiser) == 0 for initialiser in made)
        return re.search(rf"\b{_WHOLE_NUMBERS}\s+{expression}\b", text) is not None
    if match := re.fullmatch(r"dim3\s*[({](.*)[)}]", expression):
        return _commas(match[1]) == 0
    # dim3 has no operators, so what is computed is a number; what other functions return isn't known.
    return re.match(r"std::(?:min|max)\b", expression) is not None or _computed(expression)


def _computed(expression: str) -> bool:
    depth = 0
    for character in expression:
        depth += (character in "([{") - (character in ")]}")
        if depth == 0 and character in "+-*/%":
            return True
    return False


def _commas(text: str) -> int:
    depth = count = 0
    for character in text:
        depth += (character in "([{") - (character in ")]}")
        count += character == "," and depth == 0
    return count

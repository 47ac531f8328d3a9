"""Which ops the edits reach: by identifier over the unit, from each op's host function."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from astra_integrate.records import Binding, Lowering, Slice
from astra_integrate.reinject.members import changed_members, members
from astra_integrate.reinject.paths import words
from astra_integrate.reinject.rename import Token, code_tokens


@dataclass(frozen=True)
class Impact:
    """Ops whose code the edits reach; ``alone`` when that is the slice's op and no other."""

    ops: tuple[str, ...]
    own: tuple[str, ...]

    @property
    def alone(self) -> bool:
        """Whether no other op is reached."""
        return set(self.ops) <= set(self.own)

    @property
    def summary(self) -> str:
        """One line for a person."""
        if self.alone:
            return f"only {', '.join(self.own) or 'the kernel itself'} is reached"
        return f"also reached: {', '.join(op for op in self.ops if op not in self.own)}"


def impact(slice: Slice, lowering: Lowering, bindings: Iterable[Binding]) -> Impact:
    """What ``lowering`` reaches in the slice's unit.

    Copies have new names that only the op's own launcher mentions, so what counts are the declarations
    replaced in place and whoever calls them. Ops of other units are seen by their host function's name.
    """
    declarations = [slice.declaration(r.declaration) for r in lowering.replaced]
    edited: set[str] = set()
    classes: set[str] = set()
    for replacement, declaration in zip(lowering.replaced, declarations, strict=True):
        functions = changed_members(declaration.text, replacement.text)
        edited |= set(functions or declaration.names)
        if functions:
            classes |= set(declaration.names)
            edited |= _callers(set(functions), [(frozenset({m.name}), m.words) for m in members(declaration.text)])
    files = {slice.unit, *(declaration.extent.file for declaration in declarations)}
    # Host functions of other files may have the same name: each JIT header has its own "run".
    near = [b for b in bindings if b.host_file is None or b.host_file in files]
    # A class of which only some functions change is not itself changed.
    callers = _callers(edited, [d for d in definitions(_unit_text(slice)) if not d[0] & classes])
    own = {b.op for b in near if _parts(b.host_function) == _parts(slice.host_function or "")}
    own |= {slice.op} if slice.op else set()
    reached = {b.op for b in near if (callers | edited) & set(_parts(b.host_function))}
    if edited and slice.op:
        reached.add(slice.op)
    return Impact(tuple(sorted(reached)), tuple(sorted(own)))


def definitions(text: str) -> list[tuple[frozenset[str], frozenset[str]]]:
    """Functions, classes and macros at namespace level: (names they define, identifiers in them)."""
    found: list[tuple[frozenset[str], frozenset[str]]] = []
    current: list[Token] = []
    depth = 0
    for token in code_tokens(_without_macros(text, found)):
        if depth == 0 and token.text == "{" and _is_namespace(current):
            current = []
            continue
        if depth == 0 and token.text == "}":
            current = []
            continue
        current.append(token)
        depth += (token.text == "{") - (token.text == "}")
        if depth == 0 and token.text in ("}", ";"):
            found.append(_definition(current))
            current = []
    return found


def _callers(names: set[str], every: Sequence[tuple[frozenset[str], frozenset[str]]]) -> set[str]:
    """Names of definitions that mention one of ``names``, directly or through each other."""
    callers: set[str] = set()
    while True:
        more = {n for defined, used in every if used & (names | callers) for n in defined} - callers - names
        if not more:
            return callers
        callers |= more


def _unit_text(slice: Slice) -> str:
    return (Path(slice.source.root) / slice.unit).read_bytes().decode("utf-8", "surrogateescape")


def _without_macros(text: str, found: list[tuple[frozenset[str], frozenset[str]]]) -> str:
    """``text`` without directives; each ``#define`` is added to ``found``."""
    kept: list[str] = []
    lines = iter(text.split("\n"))
    for line in lines:
        if not line.lstrip().startswith("#"):
            kept.append(line)
            continue
        whole = line
        while whole.rstrip("\r").endswith("\\"):
            whole = whole.rstrip("\r")[:-1] + " " + next(lines, "")
        code = code_tokens(whole)
        if len(code) > 2 and code[1].text == "define":
            found.append((frozenset({code[2].text}), words(whole) - {code[2].text}))
    return "\n".join(kept)


def _is_namespace(code: Sequence[Token]) -> bool:
    texts = [token.text for token in code]
    return "namespace" in texts or (texts[:1] == ["extern"] and "(" not in texts)


def _definition(code: Sequence[Token]) -> tuple[frozenset[str], frozenset[str]]:
    """What is named before the first bracket, and everything after it."""
    texts = [token.text for token in code]
    stops = [texts.index(mark) for mark in ("(", "{", "=") if mark in texts]
    head = code[: min(stops)] if stops else code
    names = [token.text for token in head if token.kind == "word"][-1:]
    used = frozenset(token.text for token in code[len(head) :] if token.kind == "word")
    return frozenset(names), used


def _parts(name: str) -> tuple[str, ...]:
    """A qualified name in its parts, template arguments left out: a class counts as well as its function."""
    return tuple(part.partition("<")[0].strip() for part in name.split("::"))

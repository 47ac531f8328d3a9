"""The text of a widened loop: packs in a vector loop, the loop's own body for the rest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from astra_integrate.agents.models.rules.accesses import PACK_BYTES, Access, Accesses
from astra_integrate.agents.models.rules.loops import ThreadLoop, words
from astra_integrate.agents.models.rules.reading import Function, Reading
from astra_integrate.agents.models.rules.rewriting import Change, apply, dedent, indent
from astra_integrate.agents.models.rules.tree import Node
from astra_integrate.extract.lexing import identifiers

_WIDTH = 80


@dataclass(frozen=True, eq=False)
class Widened:
    """A loop that is to be widened, its accesses, and what the change does to the outcome."""

    loop: ThreadLoop
    found: Accesses
    notes: tuple[str, ...]

    @property
    def elements(self) -> tuple[str, ...]:
        """Element types, in order of appearance."""
        return tuple(dict.fromkeys(access.element for access in self.found.walking))


@dataclass(frozen=True)
class _Array:
    """One run of memory in a loop: what is read or written at ``origin + index``."""

    origin: str
    element: str
    pointer: str
    pack: str
    read: bool
    written: bool


def rewrite(loops: Sequence[Widened], function: Function, reading: Reading) -> list[Change]:
    """Changes that put each widened loop in place of the loop it comes from."""
    names = _Names(set(identifiers(reading.at(function.body))) | {p.name for p in function.parameters})
    siblings = (
        len({id(loop.loop.parents[-1]) for loop in loops}) == 1 and loops[0].loop.parents[-1].kind == "COMPOUND_STMT"
    )
    shared = siblings and len({loop.elements for loop in loops}) == 1
    packs = _packs(loops[0].elements, names)
    changes = []
    for position, loop in enumerate(loops):
        own = packs if shared or position == 0 else _packs(loop.elements, _Names(names.taken))
        braces = len(loops) > 1 or loop.loop.parents[-1].kind != "COMPOUND_STMT"
        column = loop.loop.statement.start - (reading.text.rfind(b"\n", 0, loop.loop.statement.start) + 1)
        lines = _definitions(own) if not shared else []
        lines += _loop(loop, own, reading, _Names(names.taken), _WIDTH - column - 2 * braces)
        if braces:
            lines = ["{", *[indent(line, 2) for line in lines], "}"]
        if shared and position == 0:
            lines = [*_definitions(own), *lines]
        start = _start(loop.loop.statement, reading)
        text = "\n".join(indent(line, column) for line in lines)
        changes.append(Change(start, loop.loop.statement.end, text.lstrip(" ")))
    return changes


def _start(statement: Node, reading: Reading) -> int:
    """Where the loop begins, an unroll directive before it included: that would be the vector loop's."""
    before = reading.text[: statement.start].rstrip()
    line = before.rfind(b"\n") + 1
    if before[line:].lstrip().startswith(b"#pragma unroll"):
        return line + len(before[line:]) - len(before[line:].lstrip())
    return statement.start


@dataclass(frozen=True)
class _Packs:
    size: str
    types: dict[str, str]
    width: str


def _packs(elements: Sequence[str], names: _Names) -> _Packs:
    size = names.new("kVecSize")
    if len(elements) == 1:
        return _Packs(size, {elements[0]: names.new("vec_t")}, f"{PACK_BYTES} / sizeof({elements[0]})")
    first, second = elements
    largest = f"(sizeof({first}) > sizeof({second}) ? sizeof({first}) : sizeof({second}))"
    types = {element: names.new(f"{element.split('::')[-1].replace(' ', '_')}_vec") for element in elements}
    return _Packs(size, types, f"{PACK_BYTES} / {largest}")


def _definitions(packs: _Packs) -> list[str]:
    lines = [
        f"// {packs.size} neighbouring elements, moved by one instruction.",
        f"constexpr int {packs.size} = {packs.width};",
    ]
    for element, name in packs.types.items():
        bytes_ = str(PACK_BYTES) if len(packs.types) == 1 else f"{packs.size} * sizeof({element})"
        lines += [f"struct alignas({bytes_}) {name} {{", f"  {element} val[{packs.size}];", "};"]
    return [*lines, ""]


def _loop(widened: Widened, packs: _Packs, reading: Reading, names: _Names, width: int) -> list[str]:
    loop = widened.loop
    arrays = _arrays(widened, names)
    lane = names.new("lane")
    body, needs_index = _body(widened, arrays, lane, reading)
    aligned, count, vec = (names.new(name) for name in ("aligned", "num_vecs", "vec"))
    bound = reading.at(loop.bound)
    divided = bound if words(bound).replace("_", "").isalnum() else f"({bound})"
    index, kind, size = loop.variable.name, loop.index_type, packs.size
    lines = [
        f"{'' if array.written else 'const '}{array.element}* {array.pointer} = {array.origin};"
        for array in arrays.values()
        if array.pointer != array.origin
    ]
    tests = [
        f"reinterpret_cast<uintptr_t>({a.pointer}) % sizeof({packs.types[a.element]}) == 0" for a in arrays.values()
    ]
    lines += [
        "// A pack must start on a multiple of its size; where one wouldn't, the scalar",
        "// loop does it all.",
        f"const bool {aligned} = {' && '.join(tests)};",
        f"const {kind} {count} = {aligned} ? {divided} / {size} : 0;",
        f"for ({kind} {vec} = {loop.first}; {vec} < {count}; {vec} += {loop.stride}) {{",
    ]
    for array in arrays.values():
        pack = packs.types[array.element]
        value = f" = reinterpret_cast<const {pack}*>({array.pointer})[{vec}]" if array.read else ""
        lines.append(f"  {'' if array.written else 'const '}{pack} {array.pack}{value};")
    lines += ["#pragma unroll", f"  for (int {lane} = 0; {lane} < {size}; ++{lane}) {{"]
    if needs_index:
        lines.append(f"    const {kind} {index} = {vec} * {size} + {lane};")
    stores = [
        f"  reinterpret_cast<{packs.types[array.element]}*>({array.pointer})[{vec}] = {array.pack};"
        for array in arrays.values()
        if array.written
    ]
    rest = f"for ({kind} {index} = {count} * {size} + {loop.first}; {index} < {bound}; {index} += {loop.stride})"
    opening = " {" if loop.body.kind == "COMPOUND_STMT" else ""
    return [
        *_wrapped(lines, width),
        indent(body, 4),
        "  }",
        *_wrapped(stores, width),
        "}",
        "// What is left: less than one pack, or all of it.",
        *_wrapped([rest + opening], width),
        *_scalar(loop, reading),
    ]


def _scalar(loop: ThreadLoop, reading: Reading) -> list[str]:
    """The loop's own body after its header, at the left margin."""
    if loop.body.kind != "COMPOUND_STMT":
        return [indent(dedent(reading.at(loop.body)), 2) + ";"]
    inside = reading.between(loop.body.start + 1, loop.body.end - 1).strip("\n").rstrip()
    return [indent(dedent(inside), 2), "}"]


def _arrays(widened: Widened, names: _Names) -> dict[str, _Array]:
    """The loop's runs of memory by the text of their origin without blanks."""
    grouped: dict[str, list[Access]] = {}
    for access in widened.found.walking:
        grouped.setdefault(words(access.origin), []).append(access)
    arrays = {}
    for key, accesses in grouped.items():
        first = accesses[0]
        name = first.name
        plain = first.origin.replace("_", "").isalnum()
        arrays[key] = _Array(
            origin=first.origin,
            element=first.element,
            pointer=first.origin if plain else names.new(f"{name}_start"),
            pack=names.new(f"{name}_vec"),
            read=any(access.use.read for access in accesses),
            written=any(access.use.written for access in accesses),
        )
    return arrays


def _body(widened: Widened, arrays: dict[str, _Array], lane: str, reading: Reading) -> tuple[str, bool]:
    """The loop's body on one lane of the packs, and whether it still needs the index."""
    loop, found = widened.loop, widened.found
    changes = [
        Change(access.node.start, access.node.end, f"{arrays[words(access.origin)].pack}.val[{lane}]")
        for access in found.walking
    ]
    taken = [access.node for access in found.walking]
    dropped = {
        place: alias
        for place, alias in found.aliases.items()
        if not _used(place, loop.body, [*taken, *found.aliases.values()])
    }
    for statement in loop.body.find("DECL_STMT"):
        if len(statement.children) == 1 and statement.children[0].place in dropped:
            changes.append(Change(*_whole_line(statement, reading), ""))
    gone = [*taken, *dropped.values()]
    if loop.body.kind != "COMPOUND_STMT":
        text = apply(reading.text, changes, loop.body.start, loop.body.end) + ";"
    else:
        text = dedent(apply(reading.text, changes, loop.body.start + 1, loop.body.end - 1).strip("\n"))
    return text.rstrip(), _used(loop.index, loop.body, gone)


def _used(place: int, body: Node, without: Sequence[Node]) -> bool:
    return any(
        node.refers == place and not any(part.start <= node.start < part.end for part in without)
        for node in body.find("DECL_REF_EXPR")
    )


def _whole_line(statement: Node, reading: Reading) -> tuple[int, int]:
    """The statement's bytes, and its line's where nothing else stands there."""
    start = reading.text.rfind(b"\n", 0, statement.start) + 1
    end = reading.text.find(b"\n", statement.end)
    if reading.text[start : statement.start].strip() or reading.text[statement.end : end].strip(b" ;"):
        return statement.start, statement.end
    return start, end + 1


class _Names:
    """Hands out names that the function doesn't use yet."""

    def __init__(self, taken: set[str]) -> None:
        self.taken = set(taken)

    def new(self, wanted: str) -> str:
        name, number = wanted, 2
        while name in self.taken:
            name, number = f"{wanted}{number}", number + 1
        self.taken.add(name)
        return name


def _wrapped(lines: Sequence[str], width: int) -> list[str]:
    """Lines that are too long, broken after ``=``, ``;`` or ``&&`` (comments and directives stay)."""
    done: list[str] = []
    for line in lines:
        margin = len(line) - len(line.lstrip(" "))
        hanging = margin + (5 if line.lstrip().startswith("for (") else 4)
        while len(line) > width and not line.lstrip().startswith(("//", "#")):
            cut = _cut(line, width)
            if cut is None:
                break
            done.append(line[:cut].rstrip())
            line = " " * hanging + line[cut:].lstrip()
        done.append(line)
    return done


def _cut(line: str, width: int) -> int | None:
    first = len(line) - len(line.lstrip(" "))
    for mark in ("; ", " && ", " = "):
        place = line.rfind(mark, first, width)
        if place > 0:
            return place + len(mark)
    return None

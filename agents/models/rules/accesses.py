"""The array accesses of a loop body: which of them walk with the loop's index, and from where."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from astra_integrate.agents.models.rules.findings import NoMatch
from astra_integrate.agents.models.rules.loops import ThreadLoop, sum_terms
from astra_integrate.agents.models.rules.reading import Function, Reading
from astra_integrate.agents.models.rules.tree import Node
from astra_integrate.agents.models.rules.uses import Use, use_of

PACK_BYTES = 16
_ARRAYS = {"CONSTANTARRAY", "INCOMPLETEARRAY", "VARIABLEARRAY", "DEPENDENTSIZEDARRAY"}


@dataclass(frozen=True, eq=False)
class Access:
    """``pointer[terms + index]``; ``node`` is all of it, a cached load around it included.

    ``root`` names the array that the pointer leads into: equal roots may share memory, whatever the
    qualifiers. ``element`` is the element type as the source spells it, ``size`` its bytes (None: a
    template's type). ``name`` is what the access may be called: the variable it is read into, else the array.
    """

    node: Node
    pointer: str
    terms: tuple[str, ...]
    element: str
    size: int | None
    root: str
    restrict: bool
    use: Use
    name: str

    @property
    def origin(self) -> str:
        """Address of the element at index 0, as source text."""
        return " + ".join((self.pointer, *self.terms))


@dataclass(frozen=True)
class Standing:
    """An access that doesn't walk with the index, or one to shared memory."""

    root: str
    node: Node
    written: bool


@dataclass(eq=False)
class Accesses:
    """What a loop body does with arrays and with its index.

    ``aliases`` are the body's own variables that are ``terms + index``, by place.
    """

    walking: list[Access] = field(default_factory=list)
    standing: list[Standing] = field(default_factory=list)
    aliases: dict[int, Node] = field(default_factory=dict)


def accesses(loop: ThreadLoop, function: Function, reading: Reading) -> Accesses:
    """Sort the accesses of ``loop``; raises :class:`NoMatch` for one that walks in another way than by one element."""
    return _Sorter(loop, function, reading).sort()


class _Sorter:
    def __init__(self, loop: ThreadLoop, function: Function, reading: Reading) -> None:
        self.loop = loop
        self.function = function
        self.reading = reading
        self.own = {node.place: node for node in loop.body.find("VAR_DECL")}
        self.found = Accesses()

    def sort(self) -> Accesses:
        for place, variable in self.own.items():
            value = variable.initialiser
            settled = place not in self.function.changed and variable.type_kind in ("INT", "UINT", "LONG", "ULONG")
            if settled and value is not None and self._index_leaves(sum_terms(value)) == 1:
                self.found.aliases[place] = variable
        self._visit(self.loop.body, ())
        return self.found

    def _visit(self, node: Node, parents: tuple[Node, ...]) -> None:
        place = _load(node, self.reading) or _place(node)
        if place is not None and self._sorted_in(node, *place, parents):
            return
        for child in node.children:
            self._visit(child, (*parents, node))

    def _sorted_in(self, node: Node, pointer: Node, offsets: list[Node], parents: tuple[Node, ...]) -> bool:
        """Put the access where it belongs; False where its parts are to be looked at too."""
        text = self.reading.at(node)
        moving = (self.loop.index, *self.own)
        root, restrict = self._root(pointer)
        use = use_of(node, parents, self.loop.body, self.function, self.reading)
        array = pointer.bare.type_kind in _ARRAYS
        if array or not any(part.uses(*moving) for part in (pointer, *offsets)):
            local = pointer.bare.refers in self.own
            if use.written and not local and not self._shared(pointer):
                raise NoMatch(f"{text} is changed from one iteration to the next", node.start)
            if array and not local and not self._shared(pointer) and any(part.uses(*moving) for part in offsets):
                raise NoMatch(f"{text} is a thread's own array, indexed by the loop", node.start)
            if not local:
                self.found.standing.append(Standing(root, node, use.written))
            return False
        if pointer.uses(*moving):
            raise NoMatch(f"the pointer of {text} is computed in the loop", node.start)
        if node.in_macro:
            raise NoMatch(f"{pointer.bare.name or 'an array'} is accessed inside a macro", node.start)
        terms = self._terms(offsets, text)
        element, size = self._element(pointer, text)
        if use.conditional:
            raise NoMatch(f"{text} is accessed only under a condition", node.start)
        if use.unknown:
            raise NoMatch(f"{text} {use.unknown}", node.start)
        self.found.walking.append(
            Access(
                node=node,
                pointer=self.reading.at(pointer),
                terms=terms,
                element=element,
                size=size,
                root=root,
                restrict=restrict,
                use=use,
                name=use.variable or pointer.bare.name or "array",
            )
        )
        return True

    def _terms(self, offsets: list[Node], text: str) -> tuple[str, ...]:
        """Texts of the offset's terms without the index; aliases are spelled out."""
        index = 0
        terms: list[str] = []
        pending = [term for offset in offsets for term in sum_terms(offset)]
        while pending:
            term = pending.pop(0)
            if term.refers == self.loop.index:
                index += 1
            elif term.refers in self.found.aliases:
                value = self.found.aliases[term.refers].initialiser
                pending = [*(sum_terms(value) if value is not None else []), *pending]
            elif term.uses(self.loop.index, *self.found.aliases):
                how = self.reading.at(term)
                raise NoMatch(f"{text} isn't contiguous in {self.loop.variable.name}: it goes by {how}", term.start)
            elif term.uses(*self.own):
                raise NoMatch(f"{text} depends on {self.reading.at(term)}, which the loop computes", term.start)
            else:
                terms.append(self._spelled(term))
        if index != 1:
            raise NoMatch(f"{text} isn't contiguous in {self.loop.variable.name}", offsets[0].start)
        return tuple(terms)

    def _spelled(self, term: Node) -> str:
        text = self.reading.at(term)
        tight = term.kind not in ("CONDITIONAL_OPERATOR", "BINARY_OPERATOR") or term.operator in ("*", "/", "%")
        return text if tight else f"({text})"

    def _index_leaves(self, terms: list[Node]) -> int:
        """How often the bare index is one of ``terms``; 0 as well where it enters in another way."""
        if any(term.refers != self.loop.index and term.uses(self.loop.index, *self.own) for term in terms):
            return 0
        return sum(term.refers == self.loop.index for term in terms)

    def _element(self, pointer: Node, text: str) -> tuple[str, int | None]:
        """Element type and size; raises :class:`NoMatch` where it is a pack already or isn't known."""
        spelled = re.sub(r"\b(?:const|__restrict(?:__)?)\b", "", pointer.bare.type).strip()
        element = spelled[:-1].strip() if spelled.endswith("*") else spelled
        if element in self.function.template_types:
            return element, None
        size = pointer.bare.size
        if size is not None and size >= PACK_BYTES:
            raise NoMatch(f"already vectorised: {text} is {size * 8} bits wide", pointer.start)
        if size is None and "auto" not in element:
            raise NoMatch(f"already vectorised: the elements of {text} are packs ({element})", pointer.start)
        if size not in (1, 2, 4, 8) or "*" in element or "volatile" in element or "auto" in element:
            raise NoMatch(f"{text} has elements of type {element}, which this pass doesn't widen", pointer.start)
        return element, size

    def _root(self, pointer: Node) -> tuple[str, bool]:
        """The array that a pointer leads into, and whether it is ``__restrict__`` there."""
        node = pointer.bare
        variable = self.function.variables.get(node.refers) if node.refers is not None else None
        if variable is None:
            return self.reading.at(node), "__restrict" in node.type
        if "__restrict" in variable.type:
            return f"@{variable.place}", True
        value = variable.initialiser if variable.kind == "VAR_DECL" else None
        if value is not None and variable.place not in self.function.changed and variable.type_kind == "POINTER":
            inner = [term for term in sum_terms(_without_address(value)) if term.type_kind == "POINTER"]
            if len(inner) == 1:
                return self._root(inner[0])
        return f"@{variable.place}", False

    def _shared(self, pointer: Node) -> bool:
        variable = self.function.variables.get(pointer.bare.refers or -1)
        return variable is not None and any(child.kind == "CUDASHARED_ATTR" for child in variable.children)


def _place(node: Node) -> tuple[Node, list[Node]] | None:
    """(pointer, offsets) where ``node`` is ``p[i]`` or ``*(p + i)``."""
    if node.kind == "ARRAY_SUBSCRIPT_EXPR" and len(node.children) == 2:
        return node.children[0], [node.children[1]]
    if node.kind == "UNARY_OPERATOR" and node.operator == "*" and node.children:
        return _split(node.children[0])
    return None


def _split(address: Node) -> tuple[Node, list[Node]] | None:
    terms = sum_terms(address)
    pointers = [term for term in terms if term.type_kind == "POINTER"]
    if len(pointers) != 1 or len(terms) == 1:
        return None
    return pointers[0], [term for term in terms if term is not pointers[0]]


def _load(call: Node, reading: Reading) -> tuple[Node, list[Node]] | None:
    """(pointer, offsets) of ``__ldg(&p[i])``, ``__ldg(p + i)`` and the macros that stand for them."""
    if call.kind != "CALL_EXPR" or len(call.children) != 2 or called(call, reading) not in reading.loads:
        return None
    address = call.children[1].bare
    if address.kind == "UNARY_OPERATOR" and address.operator == "&" and address.children:
        return _place(address.children[0].bare)
    return _split(address)


def called(call: Node, reading: Reading) -> str:
    """The name of the function that is called, without qualifiers and template arguments."""
    if call.name:
        return call.name
    text = reading.at(call.children[0]) if call.children else ""
    return text.split("<")[0].split("::")[-1].strip()


def _without_address(value: Node) -> Node:
    """``p`` for ``&p[i]``: the pointer that an address is counted from."""
    value = value.bare
    if value.kind == "UNARY_OPERATOR" and value.operator == "&" and value.children:
        inner = value.children[0].bare
        if inner.kind == "ARRAY_SUBSCRIPT_EXPR":
            return inner.children[0].bare
    return value

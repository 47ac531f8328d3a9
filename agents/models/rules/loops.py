"""Find loops in which the threads of a block (or grid) stride over neighbouring elements."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from astra_integrate.agents.models.rules.findings import NoMatch
from astra_integrate.agents.models.rules.reading import Function, Reading
from astra_integrate.agents.models.rules.tree import INTEGERS, Node

_CASTS = {"CSTYLE_CAST_EXPR", "CXX_STATIC_CAST_EXPR", "CXX_FUNCTIONAL_CAST_EXPR"}


@dataclass(frozen=True, eq=False)
class ThreadLoop:
    """``for (index_type index = first; index < bound; index += stride) body``.

    ``first`` is ``threadIdx.x`` or ``blockIdx.x * blockDim.x + threadIdx.x`` in the source's own words.
    ``in_block``: ``blockDim.x`` is the stride, so the block's size may be chosen anew.
    """

    statement: Node
    parents: tuple[Node, ...]
    variable: Node
    index_type: str
    first: str
    bound: Node
    stride: str
    body: Node
    in_block: bool

    @property
    def index(self) -> int:
        """The place of the loop variable."""
        return self.variable.place


def thread_loops(function: Function, reading: Reading) -> list[ThreadLoop | NoMatch]:
    """Every loop that starts at the thread's index, in order; :class:`NoMatch` for those of another form."""
    found: list[ThreadLoop | NoMatch] = []
    for statement, parents in _loops(function.body, ()):
        if statement.children and any(
            _is_thread_index(node, function, reading) for node in statement.children[0].walk()
        ):
            try:
                found.append(_loop(statement, parents, function, reading))
            except NoMatch as reason:
                found.append(reason)
    return found


def _loops(node: Node, parents: tuple[Node, ...]) -> Iterator[tuple[Node, tuple[Node, ...]]]:
    if node.kind == "FOR_STMT":
        yield node, parents
    for child in node.children:
        yield from _loops(child, (*parents, node))


def _loop(statement: Node, parents: tuple[Node, ...], function: Function, reading: Reading) -> ThreadLoop:
    if statement.in_macro or len(statement.children) != 4:
        raise NoMatch("the loop over threads isn't of the form for (index = …; index < …; index += …)", statement.start)
    declaration, condition, step, body = statement.children
    variables = declaration.children if declaration.kind == "DECL_STMT" else ()
    if len(variables) != 1 or variables[0].type_kind not in INTEGERS:
        raise NoMatch("the loop over threads doesn't declare one integer as its index", statement.start)
    variable = variables[0]
    first = variable.initialiser
    if first is None:
        raise NoMatch(f"{variable.name} has no first value", statement.start)
    if condition.operator != "<" or condition.children[0].bare.refers != variable.place:
        raise NoMatch(f"the loop's condition isn't {variable.name} < bound", condition.start)
    if step.operator != "+=" or step.children[0].bare.refers != variable.place:
        raise NoMatch(f"the loop's step isn't {variable.name} += stride", step.start)
    stride = step.children[1]
    in_block = _check_partition(first, stride, variable, function, reading)
    written = reading.between(variable.start, variable.place).strip()
    return ThreadLoop(
        statement=statement,
        parents=parents,
        variable=variable,
        index_type=written if written and "auto" not in written else variable.canonical,
        first=reading.at(first),
        bound=condition.children[1],
        stride=reading.at(stride),
        body=body,
        in_block=in_block,
    )


def _check_partition(first: Node, stride: Node, variable: Node, function: Function, reading: Reading) -> bool:
    """Raise where first and stride don't deal out 0, 1, 2 … to the threads; True for ``blockDim.x`` as the stride."""
    terms = [resolved(term, function, reading) for term in sum_terms(value_of(first, function))]
    block = [term for term in terms if words(term) != "threadIdx.x"]
    if len(terms) - len(block) != 1 or len(block) > 1:
        raise NoMatch(f"{variable.name} starts at {reading.at(first)}, not at the thread's index", first.start)
    step = resolved(stride, function, reading)
    if not block:
        if "threadIdx" in step or "gridDim" in step or "blockIdx" in step:
            raise NoMatch(f"{variable.name} moves on by {reading.at(stride)}, not by a block's threads", stride.start)
        return words(step) == "blockDim.x"
    factors = set(words(block[0]).split("*"))
    size = factors - {"blockIdx.x"}
    if "blockIdx.x" not in factors or len(size) != 1:
        raise NoMatch(f"{variable.name} starts at {reading.at(first)}, not at the thread's index", first.start)
    if set(words(step).split("*")) != {"gridDim.x", *size}:
        raise NoMatch(f"{variable.name} moves on by {reading.at(stride)}, not by the grid's threads", stride.start)
    return False


def _is_thread_index(node: Node, function: Function, reading: Reading) -> bool:
    return node.kind == "DECL_REF_EXPR" and (
        (node.name == "threadIdx" and reading.text[node.end : node.end + 2] == b".x")
        or "threadIdx.x" in words(resolved(node, function, reading))
    )


def plain(node: Node) -> Node:
    """The node below brackets, implicit casts and casts between integers."""
    node = node.bare
    while node.kind in _CASTS and node.type_kind in INTEGERS and node.children:
        node = node.children[-1].bare
    return node


def sum_terms(node: Node) -> list[Node]:
    """The operands of a sum, whatever its brackets: ``a + (b + c)`` gives three."""
    node = plain(node)
    if node.kind == "BINARY_OPERATOR" and node.operator == "+":
        return [term for child in node.children for term in sum_terms(child)]
    return [node]


def value_of(node: Node, function: Function) -> Node:
    """The initialiser of the variable that ``node`` is, where that is set only there; else ``node`` itself."""
    node = plain(node)
    variable = function.variables.get(node.refers) if node.refers is not None else None
    if variable is not None and variable.kind == "VAR_DECL" and variable.place not in function.changed:
        value = variable.initialiser
        if value is not None:
            return value_of(value, function)
    return node


def resolved(node: Node, function: Function, reading: Reading) -> str:
    """The source text of what ``node`` stands for."""
    return reading.at(value_of(node, function))


def words(text: str) -> str:
    """``text`` without blanks."""
    return re.sub(r"\s+", "", text)

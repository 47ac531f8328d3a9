"""May the iterations of a loop be dealt out to the threads anew? Every check raises the reason why not."""

from __future__ import annotations

import re

from astra_integrate.agents.models.rules.accesses import Accesses, called
from astra_integrate.agents.models.rules.findings import NoMatch
from astra_integrate.agents.models.rules.loops import ThreadLoop, words
from astra_integrate.agents.models.rules.reading import Function, Reading
from astra_integrate.agents.models.rules.tree import INTEGERS, Node
from astra_integrate.extract.lexing import blank

# Threads of a warp or block that act together: which thread has which element matters to them.
_TOGETHER = re.compile(
    r"sync|shfl|ballot|barrier|vote|__any|__all|match_|reduce|scan|elect|atomic|asm|clock|arrive", re.I
)
_BY_THREAD = re.compile(r"threadIdx|lane|warp|asm|clock|smid|rank", re.I)
_JUMPS = {
    "RETURN_STMT": "returns",
    "BREAK_STMT": "is left by break",
    "CONTINUE_STMT": "skips elements by continue",
    "GOTO_STMT": "jumps",
    "CXX_THROW_EXPR": "throws",
}


def check(loop: ThreadLoop, found: Accesses, function: Function, reading: Reading) -> tuple[str, ...]:
    """Raise :class:`NoMatch` where another dealing could change the outcome.

    Returns what the change does to the outcome all the same, in words: sums that a thread takes in another order.
    """
    _check_body(loop, reading)
    notes = _check_variables(loop, function, reading)
    _check_sharing(loop, found, function, reading)
    _check_overlap(loop, found)
    return notes


def _check_body(loop: ThreadLoop, reading: Reading) -> None:
    for node in loop.body.walk():
        if node.kind in _JUMPS:
            raise NoMatch(f"the loop {_JUMPS[node.kind]}", node.start)
        if node.kind in ("LAMBDA_EXPR", "ASM_STMT", "GCC_ASM_STMT", "MS_ASM_STMT"):
            raise NoMatch("the loop holds a lambda or inline assembly", node.start)
        if node.kind == "DECL_REF_EXPR" and node.name in ("threadIdx", "blockDim"):
            raise NoMatch(f"the loop's body uses {node.name}", node.start)
        if node.kind == "CALL_EXPR":
            name = called(node, reading)
            if _TOGETHER.search(name) or any(_TOGETHER.search(text) for text in _reached(name, reading)):
                raise NoMatch(f"{name} makes threads act together", node.start)
            for argument in node.children[1:]:
                if argument.type_kind == "POINTER" and "const" not in argument.type and name not in reading.loads:
                    raise NoMatch(f"{name} is handed the pointer {reading.at(argument)}", node.start)
    bound = loop.bound
    if any(node.kind in ("CALL_EXPR", "ARRAY_SUBSCRIPT_EXPR") for node in bound.walk()):
        raise NoMatch(f"the loop's bound {reading.at(bound)} is computed anew each time", bound.start)


def _reached(name: str, reading: Reading, seen: frozenset[str] = frozenset()) -> list[str]:
    """Texts of the slice's functions of that name and of all that they call."""
    if name in seen:
        return []
    texts: list[str] = []
    for function in reading.named(name):
        texts.append(blank(reading.at(function.body)))
        for call in function.body.find("CALL_EXPR"):
            texts += _reached(called(call, reading), reading, seen | {name})
    return texts


def _check_variables(loop: ThreadLoop, function: Function, reading: Reading) -> tuple[str, ...]:
    own = {node.place for node in loop.statement.find("VAR_DECL")}
    varying = varying_variables(function, reading)
    notes: list[str] = []
    totals: dict[int, str] = {}
    for node in loop.body.walk():
        target = node.target
        if target is None or target.kind != "DECL_REF_EXPR" or target.refers is None or target.refers in own:
            if target is not None and target.refers == loop.index:
                raise NoMatch(f"the body changes {loop.variable.name}", node.start)
            continue
        total = function.variables.get(target.refers)
        if total is None or not _is_total(node, target.refers, loop):
            raise NoMatch(f"{target.name} carries a value from one iteration to the next", node.start)
        totals[target.refers] = target.name
        if node.kind == "COMPOUND_ASSIGNMENT_OPERATOR" and total.type_kind not in INTEGERS:
            notes.append(f"each thread adds up {target.name} over other elements, in another order")
    for node in loop.statement.find("DECL_REF_EXPR"):
        refers = node.refers
        if refers is not None and refers in varying and refers not in own and refers not in totals:
            if node.start < loop.bound.start and node.start < loop.body.start:
                continue  # the index's first value is the thread's own, as it should be
            raise NoMatch(f"{node.name} differs from thread to thread", node.start)
    return tuple(dict.fromkeys(notes))


def _is_total(node: Node, place: int, loop: ThreadLoop) -> bool:
    """A running sum, product or extreme: nothing else in the loop reads it."""
    uses = sum(part.refers == place for part in loop.body.find("DECL_REF_EXPR"))
    if node.kind == "COMPOUND_ASSIGNMENT_OPERATOR":
        changes = sum(
            part.target is not None and part.target.refers == place
            for part in loop.body.find("COMPOUND_ASSIGNMENT_OPERATOR")
        )
        return node.operator in ("+=", "-=", "*=", "|=", "&=", "^=") and uses == changes
    if node.operator == "=" and len(node.children) == 2:
        call = node.children[1].bare
        callee = call.children[0].bare.name if call.kind == "CALL_EXPR" and call.children else ""
        return callee in ("fmaxf", "fminf", "max", "min", "fmax", "fmin") and uses == 2 and call.uses(place)
    return False


def varying_variables(function: Function, reading: Reading) -> set[int]:
    """Places of the variables that may differ between threads that differ in ``threadIdx.x`` alone."""
    varying: set[int] = set()
    shared = {
        place
        for place, variable in function.variables.items()
        if any(child.kind == "CUDASHARED_ATTR" for child in variable.children)
    }
    while True:
        before = len(varying)
        _spread(function.body, False, varying, function, reading)
        varying -= shared
        if len(varying) == before:
            return varying


def _spread(node: Node, guarded: bool, varying: set[int], function: Function, reading: Reading) -> None:
    """Mark what is set from something that varies, or set under a condition that does."""
    if node.kind == "VAR_DECL" and node.initialiser is not None and _varies(node.initialiser, varying, reading):
        varying.add(node.place)
    target = node.target
    if target is not None:
        while target.children and target.kind in ("ARRAY_SUBSCRIPT_EXPR", "MEMBER_REF_EXPR"):
            target = target.children[0].bare
        # What a pointer points to is one memory for all threads; the pointer itself stays.
        element = target.type_kind == "POINTER" and target is not node.target
        varied = guarded or any(_varies(child, varying, reading) for child in node.children[1:])
        if target.refers is not None and varied and not element:
            varying.add(target.refers)
    if node.kind in ("IF_STMT", "FOR_STMT", "WHILE_STMT", "DO_STMT", "SWITCH_STMT"):
        guarded = guarded or any(
            _varies(child, varying, reading) for child in node.children if child.kind != "COMPOUND_STMT"
        )
    for child in node.children:
        _spread(child, guarded, varying, function, reading)


def _varies(node: Node, varying: set[int], reading: Reading) -> bool:
    for part in node.walk():
        if part.kind == "DECL_REF_EXPR" and part.refers in varying:
            return True
        if part.kind == "DECL_REF_EXPR" and part.name == "threadIdx" and reading.text[part.end : part.end + 2] == b".x":
            return True
        if part.kind == "CALL_EXPR":
            name = called(part, reading)
            if not name or _TOGETHER.search(name) or _BY_THREAD.search(name):
                return True
            if any(_TOGETHER.search(text) or _BY_THREAD.search(text) for text in _reached(name, reading)):
                return True
    return False


def _check_sharing(loop: ThreadLoop, found: Accesses, function: Function, reading: Reading) -> None:
    """What one thread wrote and itself reads elsewhere may fall to two threads: then a barrier must be between."""
    touched = {access.root: access.use.written for access in found.walking}
    for access in found.walking:
        touched[access.root] = touched[access.root] or access.use.written
    for standing in found.standing:
        touched[standing.root] = touched.get(standing.root, False) or standing.written
    barriers = [
        statement.start
        for statement in function.body.children
        if statement.kind == "CALL_EXPR" and called(statement, reading) == "__syncthreads"
    ]
    for node, root, written in _elsewhere(loop, function, reading):
        if root not in touched or not (written or touched[root]):
            continue
        first, last = sorted((loop.statement.start, node.start))
        apart = any(first < barrier < last for barrier in barriers)
        repeated = any(parent.kind in ("FOR_STMT", "WHILE_STMT", "DO_STMT") for parent in loop.parents)
        if not apart or repeated:
            raise NoMatch(f"{reading.at(node)} is used outside of the loop too, with no barrier between", node.start)


def _elsewhere(loop: ThreadLoop, function: Function, reading: Reading) -> list[tuple[Node, str, bool]]:
    """(access, root, written) of every array element that the function touches outside of ``loop``."""
    found: list[tuple[Node, str, bool]] = []

    def visit(node: Node, written: bool) -> None:
        if node is loop.statement:
            return
        target = node.target
        if node.kind == "ARRAY_SUBSCRIPT_EXPR" or (node.kind == "UNARY_OPERATOR" and node.operator == "*"):
            found.append((node, _root_of(node, function, reading), written))
        elif node.kind == "CALL_EXPR":
            handed = [part for part in node.children[1:] if part.type_kind == "POINTER"]
            found.extend((node, _root_of(part, function, reading), "const" not in part.type) for part in handed)
        for child in node.children:
            visit(child, target is not None and child.bare is target)

    visit(function.body, False)
    return found


def _root_of(node: Node, function: Function, reading: Reading) -> str:
    names = [part for part in node.find("DECL_REF_EXPR") if part.refers in function.variables]
    pointers = [name for name in names if name.type_kind in ("POINTER", "CONSTANTARRAY", "INCOMPLETEARRAY")]
    if not pointers:
        return reading.at(node)
    place = pointers[0].refers
    while place is not None:
        variable = function.variables[place]
        value = variable.initialiser if variable.kind == "VAR_DECL" and variable.type_kind == "POINTER" else None
        inner = None
        if value is not None and "__restrict" not in variable.type:
            inner = next((n.refers for n in value.find("DECL_REF_EXPR") if n.type_kind == "POINTER"), None)
        if inner is None or inner not in function.variables:
            return f"@{place}"
        place = inner
    return reading.at(node)


def _check_overlap(loop: ThreadLoop, found: Accesses) -> None:
    """A pack is read whole before it is written: no array that is written may be read at other elements."""
    for written in (access for access in found.walking if access.use.written):
        for other in found.walking:
            if other.root == written.root:
                if words(other.origin) != words(written.origin):
                    raise NoMatch(f"{written.name} is written at one element and used at another", written.node.start)
            elif not (written.restrict or other.restrict) and written.element == other.element:
                raise NoMatch(
                    f"{written.pointer} and {other.pointer} may overlap: neither is __restrict__", written.node.start
                )
        for standing in found.standing:
            if standing.root == written.root:
                raise NoMatch(f"{written.name} is written and read at a fixed place", standing.node.start)

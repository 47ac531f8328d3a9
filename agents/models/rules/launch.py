"""How many threads a widened kernel wants: one per pack, where nothing in it depends on the block's size."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from astra_integrate.agents.models.rules.accesses import PACK_BYTES
from astra_integrate.agents.models.rules.emitting import Widened
from astra_integrate.agents.models.rules.loops import words
from astra_integrate.agents.models.rules.reading import Function, Reading
from astra_integrate.agents.models.rules.tree import Node
from astra_integrate.records import DeployedStep, LaunchPlan, LaunchStep, Variant

WARP = 32
# Block-wide reductions that are told how many threads take part.
_COUNTED = ("Reduce", "Sum")


def plan_for(widened: Mapping[Function, Sequence[Widened]], reading: Reading) -> tuple[LaunchPlan, tuple[str, ...]]:
    """The launch plan for the widened kernels and what it does, in sentences."""
    steps: list[LaunchStep] = []
    about: list[str] = []
    for function, loops in widened.items():
        if not function.is_kernel:
            continue
        why = _tied_to_block(function, loops, reading)
        if why:
            about.append(f"{function.name} keeps the deployed block size: {why}")
            continue
        steps.append(LaunchStep(kernel=function.qualified, block=_block(function, loops, reading)))
        about.append(f"{function.name} is launched with no more threads than there are packs in a row")
    if not steps:
        return LaunchPlan(variants=(Variant(steps=(DeployedStep(),)),)), tuple(about)
    return LaunchPlan(variants=(Variant(steps=tuple(steps)),)), tuple(about)


def _block(function: Function, loops: Sequence[Widened], reading: Reading) -> str:
    """One thread per pack in whole warps; as deployed where a row isn't whole packs and may go element by element."""
    counts = {(words(reading.at(loop.loop.bound)), f"{PACK_BYTES} / {_bytes(loop)}"): None for loop in loops}
    packs = [f"ceil_div({bound}, {width})" for bound, width in counts]
    most = packs[0] if len(packs) == 1 else f"max({', '.join(packs)})"
    rest = " + ".join(f"{_factor(bound)} % ({width})" for bound, width in counts)
    rest = f"({rest})" if len(counts) > 1 else rest
    return f"min(block_x, max({WARP}, ceil_div({most}, {WARP}) * {WARP}) + {rest} * block_x)"


def _factor(text: str) -> str:
    return text if text.replace("_", "").isalnum() else f"({text})"


def _bytes(widened: Widened) -> str:
    sizes = {access.element: access.size for access in widened.found.walking}
    texts = [f"sizeof({element})" if size is None else str(size) for element, size in sizes.items()]
    return texts[0] if len(texts) == 1 else f"max({', '.join(texts)})"


def _tied_to_block(function: Function, loops: Sequence[Widened], reading: Reading) -> str:
    """Why another block size could change the outcome or leave work undone; empty where it couldn't."""
    if len(reading.named(function.name)) > 1:
        return "the kernel has overloads, and a launch may mean any of them"
    parameters = {parameter.place for parameter in function.parameters}
    for loop in loops:
        names = loop.loop.bound.find("DECL_REF_EXPR")
        if not loop.loop.in_block or any(name.refers not in parameters for name in names):
            return "the loop's trip count isn't known from the arguments, or its stride isn't the block"
    firsts = [loop.loop.statement.children[0] for loop in loops]
    strides = [loop.loop.statement.children[2] for loop in loops]
    for node, parents in _with_parents(function.body, ()):
        if node.kind == "VAR_DECL" and node.type_kind == "INCOMPLETEARRAY":
            return f"the size of {node.name} may depend on it"
        if node.kind == "CALL_EXPR" and any(_mentions_threads(f) for f in reading.named(node.name)):
            return f"{node.name} uses the thread's index"
        if node.kind != "DECL_REF_EXPR" or node.name not in ("threadIdx", "blockDim"):
            continue
        within = {id(part) for part in (*firsts, *strides)}
        if any(id(parent) in within for parent in parents) or _harmless(node, parents, reading):
            continue
        return f"{node.name} is used outside of the loops that were changed"
    return ""


def _mentions_threads(function: Function) -> bool:
    return any(node.name in ("threadIdx", "blockDim") for node in function.body.find("DECL_REF_EXPR"))


def _harmless(node: Node, parents: tuple[Node, ...], reading: Reading) -> bool:
    """``threadIdx.x == 0``, or ``blockDim.x`` as the number of threads in a block-wide reduction."""
    for parent in reversed(parents):
        if parent.operator == "==":
            return node.name == "threadIdx" and words(reading.at(parent)) in ("threadIdx.x==0", "0==threadIdx.x")
        if parent.kind == "CALL_EXPR":
            callee = reading.at(parent.children[0]) if parent.children else ""
            return node.name == "blockDim" and callee.endswith(_COUNTED)
    return False


def _with_parents(node: Node, parents: tuple[Node, ...]) -> Iterator[tuple[Node, tuple[Node, ...]]]:
    yield node, parents
    for child in node.children:
        yield from _with_parents(child, (*parents, node))

"""Read declaration replacements out of whatever a language model wrote; what can't be used is named, never guessed."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence

from astra_integrate.agents.blocks import Block, Chunk, blocks, chunks
from astra_integrate.agents.messages import CodingOutput
from astra_integrate.extract.lexing import blank, closing, head, split_list
from astra_integrate.records import Addition, Candidate, Declaration, LaunchPlan, Replacement, Slice

LONGEST = 400_000
_REFUSAL = re.compile(
    r"\b(?:I(?:'m| am) (?:sorry|unable|not able)|I can(?:'t|not|’t)|I won(?:'t|’t)|as an AI|cannot (?:help|assist))",
    re.I,
)
_DIFF = re.compile(r"^(?:@@ .* @@|--- \S|\+\+\+ \S|diff --git )", re.MULTILINE)
_ALLOWED = re.compile(r"#\s*(?:pragma\s+(?:unroll|once)\b|define\s+\w|undef\s+\w)")


class _Unusable(Exception):
    """The reason, in words that a repair turn can be asked with."""


def read_answer(text: str, slice: Slice, best: Candidate | None = None) -> CodingOutput:
    """The replacements and additions in an answer, or ``rejected`` with the reason; never raises.

    A block counts only if it defines a declaration of the slice; two blocks that define the same one
    are not chosen between. Names are not mended: a near name is shown in the reason instead. What the
    answer doesn't mention stays as in ``best``, whose text it was written on; so does the launch plan.
    """
    try:
        return _read(text, slice, best)
    except _Unusable as reason:
        return CodingOutput(rejected=str(reason))


def _read(text: str, slice: Slice, best: Candidate | None) -> CodingOutput:
    if len(text) > LONGEST:
        raise _Unusable(f"the reply is too long: {len(text)} characters, at most {LONGEST}")
    changeable = [declaration for declaration in slice.declarations if declaration.role != "host"]
    block, parts = _block(text, slice, changeable)
    replaced: dict[str, str] = {}
    added: list[Chunk] = []
    for part in parts:
        if part.head == "#":
            _check_directive(part.text, slice)
            if not part.name:
                continue
        known = [declaration for declaration in changeable if part.name in declaration.names]
        _check_device(part, bool(known))
        target = _same(part, known) if known else None
        if target is None:
            added.append(part)
        elif replaced.setdefault(target.id, part.text) != part.text:
            raise _Unusable(f"two texts for {part.name} in one block: give one")
    base = {r.declaration: r.text for r in best.replaced} if best else {}
    before = {id: base.get(id, slice.declaration(id).text) for id in replaced}
    if not added and all(before[id].strip() == new.strip() for id, new in replaced.items()):
        raise _Unusable("the reply changes nothing: every declaration in it is as it was")
    anchor = min((*replaced, *base), key=lambda id: slice.declaration(id).order)
    new_names = {part.name for part in added}
    kept = [addition for addition in (best.added if best else ()) if addition.name not in new_names]
    return CodingOutput(
        replaced=tuple(Replacement(declaration=id, text=new) for id, new in {**base, **replaced}.items()),
        added=(
            *(addition.model_copy(update={"anchor": anchor}) for addition in kept),
            *(Addition(anchor=anchor, name=part.name, text=part.text) for part in added if part.name),
        ),
        plan=best.plan if best else LaunchPlan(),
        reasoning=_prose(text, block),
    )


def _block(text: str, slice: Slice, changeable: Sequence[Declaration]) -> tuple[Block, list[Chunk]]:
    """The one block that defines declarations of the slice."""
    names = {name for declaration in changeable for name in declaration.names if name}
    found: list[tuple[Block, list[Chunk], str]] = []
    others: list[Chunk] = []
    diff = False
    for block in blocks(text):
        if block.info.strip().lower() in ("diff", "patch") or _DIFF.search(block.text):
            diff = True
            continue
        if not block.is_code:
            continue
        parts, rest = chunks(block.text)
        if any(part.name in names and (part.function or part.head != "#") and _defines(part) for part in parts) or (
            rest and any(re.search(rf"\b{re.escape(name)}\b", rest) for name in names)
        ):
            found.append((block, parts, rest))
        else:
            others += [part for part in parts if part.function and part.name]
    if not found:
        if diff:
            raise _Unusable("the reply is a diff: give the whole text of each changed declaration")
        raise _Unusable(_nothing(text, slice, others))
    if len(found) > 1:
        shared = [
            part.name for part in found[0][1] if any(part.name == p.name for p in found[1][1]) and part.name in names
        ]
        what = shared[0] if shared else slice.kernel.name.split("::")[-1]
        raise _Unusable(f"{len(found)} blocks define {what}: give one block with the final text")
    block, parts, rest = found[0]
    if rest or (not block.closed and not parts):
        raise _Unusable(f"the reply is truncated: it ends inside {_first_words(rest)!r}")
    if not block.closed:
        raise _Unusable("the reply is truncated: its code block is not closed")
    return block, parts


def _defines(part: Chunk) -> bool:
    return part.text.rstrip().endswith(("}", "};")) or part.head == "#"


def _nothing(text: str, slice: Slice, others: Sequence[Chunk]) -> str:
    kernel = slice.kernel.name.split("::")[-1]
    if others:
        return (
            f"entry point missing: {kernel}; {_near(slice, kernel, others)}. Names and parameters must stay as they are"
        )
    if not text.strip():
        return "the reply is empty"
    if _REFUSAL.search(text) and not blocks(text):
        return f"the model refused: {_first_words(text.strip(), 160)}"
    return "no code in reply" if not blocks(text) else f"no block in the reply defines {kernel}"


def _near(slice: Slice, kernel: str, others: Sequence[Chunk]) -> str:
    """What is there in place of the kernel, with its parameters where those are others."""
    names = [other.name for other in others]
    near = difflib.get_close_matches(kernel, names, n=1, cutoff=0.4)
    if not near:
        return f"it defines {', '.join(dict.fromkeys(names))}"
    other = others[names.index(near[0])]
    declared = next((d for d in slice.declarations if d.is_kernel and kernel in d.names), None)
    before = _parameters(declared.text, kernel) if declared else ()
    after = _parameters(other.text, other.name)
    changed = f" with ({', '.join(after)}) in place of ({', '.join(before)})" if before != after else ""
    return f"{other.name} is there instead{changed}"


def _same(part: Chunk, known: Sequence[Declaration]) -> Declaration:
    """The declaration that ``part`` replaces: of overloads the one with equal head; a kernel's parameters must stay."""
    if len(known) > 1:
        equal = [d for d in known if _squeezed(head(d.text)) == _squeezed(part.head)]
        if len(equal) != 1:
            raise _Unusable(
                f"{part.name} has {len(known)} overloads, and the head in the reply is that of none of them"
            )
        return equal[0]
    declaration = known[0]
    if declaration.is_kernel:
        before, after = _parameters(declaration.text, part.name), _parameters(part.text, part.name)
        if before != after:
            raise _Unusable(
                f"the parameters of {part.name} changed: they must stay ({', '.join(before)}), not ({', '.join(after)})"
            )
    return declaration


def _parameters(text: str, name: str) -> tuple[str, ...]:
    """Parameter declarations without blanks, comments and default arguments."""
    plain = head(text)
    match = re.search(rf"\b{re.escape(name)}\s*\(", plain)
    end = closing(plain, match.end() - 1) if match else None
    if match is None or end is None:
        return ()
    return tuple(_squeezed(parameter.split("=")[0]) for parameter in split_list(plain[match.end() : end - 1]))


def _squeezed(text: str) -> str:
    return re.sub(r"\s*([^\w\s])\s*", r"\1", " ".join(text.split()))


def _check_directive(text: str, slice: Slice) -> None:
    include = re.match(r"#\s*include\s*([<\"][^>\"]*[>\"])", text)
    if include and include[1] not in slice.includes and include[1].strip('<>"') not in _included(slice):
        raise _Unusable(f"the reply includes {include[1]}, which the slice does not: use what is there")
    if not include and not _ALLOWED.match(text):
        raise _Unusable(f"the reply has a directive that is not allowed: {text.strip()}")


def _included(slice: Slice) -> set[str]:
    # Every CUDA unit has these; an answer that writes them out asks for nothing new.
    return {include.strip('<>"') for include in slice.includes} | {"cuda_runtime.h", "cuda.h", "cstdint", "stdint.h"}


def _check_device(part: Chunk, known: bool) -> None:
    plain = blank(part.text)
    if "<<<" in plain or re.search(r"\bcudaLaunch\w*\s*\(", plain):
        raise _Unusable(f"{part.name or 'a declaration'} launches a kernel: the reply may hold device code only")
    # What is in the slice already is device code by its role, however a macro spells that.
    if part.function and not known and not re.search(r"__(?:device|global)__|\bconstexpr\b|_DEVICE\b", part.head):
        raise _Unusable(f"{part.name} is a host function: the reply may hold device code only")


def _prose(text: str, block: Block) -> str:
    """The words before the block, shortened: the model's reasoning."""
    before = text.split(block.text)[0] if block.text else text
    return " ".join(line for line in before.split() if not line.startswith("```"))[:600]


def _first_words(text: str, length: int = 60) -> str:
    line = " ".join(text.split())
    return line if len(line) <= length else line[:length].rstrip() + " …"

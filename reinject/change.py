"""What a candidate changes in its slice, and whether that can be led to the op alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from astra_integrate.errors import BadInput
from astra_integrate.records import Addition, Candidate, Declaration, Replacement, Slice
from astra_integrate.reinject import members
from astra_integrate.reinject.paths import host_declarations, reached_from_host, words
from astra_integrate.reinject.rename import Renamed
from astra_integrate.reinject.signature import plain, signatures


def check_known(slice: Slice, candidate: Candidate, texts: Mapping[str, str]) -> None:
    """Raise :class:`BadInput` for a candidate that names what isn't there, host code, or a name that is taken."""
    known = {d.id: d for d in slice.declarations}
    for id in [*texts, *(a.anchor for a in candidate.added)]:
        if id not in known:
            raise BadInput(f"The slice holds no declaration {id!r}", "Use the ids of its own declarations")
    for id in texts:
        if known[id].role == "host":
            raise BadInput(f"{id!r} is host code: a candidate changes device code only", "Say it in the launch plan")
    taken = {name for d in slice.declarations for name in d.names}
    for addition in candidate.added:
        if addition.name in taken:
            raise BadInput(
                f"The slice has a declaration named {addition.name!r} already", "Replace it, or add another name"
            )


def changed_by(slice: Slice, candidate: Candidate, texts: Mapping[str, str]) -> set[str]:
    """Changed declarations; a kernel that only the plan replaces counts, so that its launches are redirected."""
    changed = set(texts)
    launched = set(launched_by(candidate)) | (
        {plain(slice.kernel.name)} if replaces_kernel(slice, candidate) else set()
    )
    changed |= {d.id for d in slice.declarations if d.is_kernel and launched & set(d.names)}
    if host_declarations(slice):
        reached = reached_from_host(slice, texts)
        for addition in candidate.added:
            reached |= {d.id for d in slice.declarations if words(addition.text) & set(d.names)}
        for id in sorted(changed - reached):
            raise BadInput(f"The candidate changes {id!r}, which {slice.host_function} doesn't reach")
    return changed


def check_redirected(
    slice: Slice, renames: Sequence[Renamed], replaced: Sequence[Replacement], added: Sequence[Addition]
) -> None:
    """Every new name must be used by some other text: else the op would silently keep the deployed code."""
    if not host_declarations(slice):
        return
    texts = [(r.declaration, words(r.text)) for r in replaced] + [(a.name, words(a.text)) for a in added]
    for renamed in renames:
        if not any(renamed.new in found for name, found in texts if name != renamed.new):
            raise BadInput(
                f"{slice.host_function} can't be led to a changed {renamed.old}: nothing in the slice names it plainly",
                "Change a declaration nearer to the launch",
            )


def replaces_kernel(slice: Slice, candidate: Candidate) -> bool:
    """Whether the plan launches added kernels in place of the slice's own, and not that one too."""
    launched = launched_by(candidate)
    known = signatures(slice)
    return plain(slice.kernel.name) not in launched and any(name not in known for name in launched)


def launched_by(candidate: Candidate) -> tuple[str, ...]:
    """Plain names of the kernels that the plan launches, in order."""
    steps = [step for variant in candidate.plan.variants for step in variant.steps if step.kind == "launch"]
    return tuple(dict.fromkeys(plain(step.kernel) for step in steps))


def shared_class(slice: Slice) -> Declaration | None:
    """The class that holds the host function, where other ops enter by other functions of it; else None."""
    parts = (slice.host_function or "").split("::")
    if len(parts) < 2:
        return None
    for declaration in host_declarations(slice):
        if plain(parts[-2]) in declaration.names and members.entries(declaration.text, plain(parts[-1])):
            return declaration
    return None

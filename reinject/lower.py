"""A candidate and its launch plan turned into final texts: copies under marked names, the launcher redirected.

Other ops may share a launch macro, a header or a device function with the op at hand. They keep the
framework's code: whatever lies between the op's host function and a changed declaration is copied
under a new name, and only the host function itself is edited in place.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from astra_integrate.errors import BadInput
from astra_integrate.measure.evidence import MARKER
from astra_integrate.records import Addition, Candidate, Declaration, Lowering, Replacement, Slice, digest_of
from astra_integrate.reinject.format import align_continuations, is_macro
from astra_integrate.reinject.launch_site import Site
from astra_integrate.reinject.launcher import Launching, rewrite
from astra_integrate.reinject.paths import host_declarations, reached_from_host, to_copy, words
from astra_integrate.reinject.rename import Renamed, rename


def marker_of(candidate: Candidate) -> str:
    """The suffix of every name that this candidate brings; equal changes have equal ones, whatever they cost."""
    content = Candidate(
        id="",
        slice_digest=candidate.slice_digest,
        replaced=candidate.replaced,
        added=candidate.added,
        plan=candidate.plan,
        author="",
        strategy="",
    )
    return MARKER + digest_of(content.to_json())[:8]


def lower(slice: Slice, candidate: Candidate) -> Lowering:
    """Final texts for the declarations of ``slice`` under ``candidate``.

    A plan without guard and geometry leaves the launch statements as they are but for names. Under a
    guard the deployed launch stays in the ``else``, with the framework's own kernel; device functions
    that the host function hands in as template arguments are the candidate's in both branches.

    Raises:
        BadInput: the candidate names a declaration or kernel that isn't there, changes something that
            the op doesn't reach, or asks for a launch that the site's text can't express.
    """
    texts = {replacement.declaration: replacement.text for replacement in candidate.replaced}
    _check_known(slice, candidate, texts)
    marker = marker_of(candidate)
    hosts = host_declarations(slice)
    copied = to_copy(slice, _changed(slice, candidate, texts), texts)
    launched = _launched(candidate)
    own = _plain(slice.kernel.name)
    if launched and own not in launched:
        # Another kernel takes its place: the deployed one needs no copy unless it is changed too.
        copied = tuple(d for d in copied if d.id in texts or not (d.is_kernel and own in d.names))
    renames = [
        *(Renamed(name, name + marker, _scope(d)) for d in copied for name in d.names),
        *(Renamed(a.name, a.name + marker, _scope(slice.declaration(a.anchor), a.text)) for a in candidate.added),
    ]
    renames = list(dict.fromkeys(renames))
    work = _Work(slice, candidate, renames)
    copies = {d.id: _copy(work, d, texts.get(d.id, d.text), marker) for d in copied}
    copies.update({id: _noted(slice, candidate, id, copies[id]) for id in texts if id in copies})
    replaced = tuple(
        Replacement(declaration=d.id, text=text) for d in hosts if (text := work.launcher(d, d.text)) != d.text
    )
    added = _in_order(slice, candidate, copies, renames)
    work.check_launches()
    _check_redirected(slice, renames, replaced, added)
    return Lowering(
        candidate=candidate.id,
        marker=marker,
        replaced=replaced,
        added=added,
        renamed=tuple(dict.fromkeys((r.old, r.new) for r in renames)),
        instantiations=_instantiations(slice, candidate, renames),
    )


class _Work:
    """The launch sites met so far, and how to rewrite them."""

    def __init__(self, slice: Slice, candidate: Candidate, renames: Sequence[Renamed]) -> None:
        self._slice = slice
        self._renames = renames
        names = {r.old: r.new for r in renames}
        self._launching = Launching(slice.kernel, candidate.plan, names)
        self._rewritten = 0

    def renamed(self, text: str) -> str:
        return rename(text, self._renames)

    def launcher(self, declaration: Declaration, text: str) -> str:
        """``text`` of a declaration with new names, and the plan's launches where it launches the kernel."""
        if text != declaration.text or "<<<" not in text:
            return self.renamed(text)
        new, count = rewrite(text, self._launching, self.renamed, lambda site: self._launches(declaration, site))
        self._rewritten += count
        return new

    def check_launches(self) -> None:
        """A plan with a guard or a geometry needs a launch by ``<<<…>>>`` to be written into."""
        if self._launching.plain or self._rewritten or not host_declarations(self._slice):
            return
        raise BadInput(
            f"No <<<…>>> launch of {self._slice.kernel.name} is between {self._slice.host_function} and the kernel",
            "The plan must leave the launch as deployed here",
        )

    def _launches(self, declaration: Declaration, site: Site) -> bool:
        """Whether ``site`` launches the slice's kernel: by the index's record of it, else by its name."""
        own = self._slice.kernel.name
        before = len(declaration.text[: site.chevrons].encode("utf-8", "surrogateescape"))
        place = (declaration.extent.file, declaration.extent.start + before)
        recorded = {launch.kernel for launch in self._slice.launches if (launch.file, launch.offset) == place}
        if recorded:
            return own in recorded
        return site.name.text == _plain(own)


def _check_known(slice: Slice, candidate: Candidate, texts: dict[str, str]) -> None:
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


def _changed(slice: Slice, candidate: Candidate, texts: dict[str, str]) -> set[str]:
    """Changed declarations; a kernel that only the plan replaces counts, so that its launches are redirected."""
    changed = set(texts)
    own = _plain(slice.kernel.name)
    if _launched(candidate):
        changed |= {d.id for d in slice.declarations if d.is_kernel and own in d.names}
    if host_declarations(slice):
        reached = reached_from_host(slice, texts)
        for addition in candidate.added:
            reached |= {d.id for d in slice.declarations if words(addition.text) & set(d.names)}
        for id in sorted(changed - reached):
            raise BadInput(f"The candidate changes {id!r}, which {slice.host_function} doesn't reach")
    return changed


def _scope(declaration: Declaration, text: str | None = None) -> tuple[str, ...] | None:
    """Namespaces that may qualify the name; a macro has none."""
    return None if is_macro(declaration.text if text is None else text) else declaration.namespaces


def _copy(work: _Work, declaration: Declaration, text: str, marker: str) -> str:
    new = align_continuations(work.launcher(declaration, text).strip("\r\n"))
    if not any(name + marker in words(new) for name in declaration.names):
        name = declaration.names[0] if declaration.names else declaration.id
        raise BadInput(
            f"{name} can't be copied under another name: it is made by a macro or named in pieces",
            "Replace the declarations that use it instead",
        )
    return new


def _noted(slice: Slice, candidate: Candidate, id: str, text: str) -> str:
    """A changed copy with one line before it that says what it is, as its reader will ask."""
    if is_macro(text):
        return text
    name = slice.declaration(id).names[0]
    purpose = re.sub(r"[\s\\]+", " ", candidate.strategy).strip()
    note = f"// As {name}, but for {slice.op or slice.host_function or 'one caller'} alone"
    return f"{note}: {purpose}.\n{text}" if purpose else f"{note}.\n{text}"


def _in_order(
    slice: Slice, candidate: Candidate, copies: dict[str, str], renames: Sequence[Renamed]
) -> tuple[Addition, ...]:
    """Copies right after their originals; the candidate's own additions where it wants them, after the copy."""
    new_names = {(r.old): r.new for r in renames}
    added: list[Addition] = []
    for declaration in sorted(slice.declarations, key=lambda d: d.order):
        own = [a for a in candidate.added if a.anchor == declaration.id]
        own = [a.model_copy(update={"name": new_names[a.name], "text": rename(a.text, renames)}) for a in own]
        added += [a for a in own if a.where == "before"]
        if declaration.id in copies:
            name = new_names[declaration.names[0]]
            added.append(Addition(anchor=declaration.id, where="after", name=name, text=copies[declaration.id]))
        added += [a for a in own if a.where == "after"]
    return tuple(added)


def _check_redirected(
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


def _instantiations(slice: Slice, candidate: Candidate, renames: Sequence[Renamed]) -> tuple[str, ...]:
    """The slice's instantiations of the new kernels: those that the plan launches, else the renamed ones."""
    own = _plain(slice.kernel.name)
    names = {r.old: r.new for r in renames}
    scopes = {d.namespaces for d in slice.declarations if d.is_kernel and own in d.names} or {()}
    kernels = [names[name] for name in _launched(candidate) if name in names] or [names.get(own, own)]
    others = [r for r in renames if r.old != own]
    return tuple(
        dict.fromkeys(
            rename(rename(instantiation, others), [Renamed(own, kernel, scope) for scope in scopes])
            for kernel in kernels
            for instantiation in slice.instantiations
        )
    )


def _launched(candidate: Candidate) -> tuple[str, ...]:
    """Plain names of the kernels that the plan launches, in order."""
    steps = [step for variant in candidate.plan.variants for step in variant.steps if step.kind == "launch"]
    return tuple(dict.fromkeys(_plain(step.kernel) for step in steps))


def _plain(name: str) -> str:
    return name.partition("<")[0].rpartition("::")[2]

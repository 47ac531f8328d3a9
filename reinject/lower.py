"""A candidate and its launch plan turned into final texts: copies under marked names, the launcher redirected.

Other ops may share a launch macro, a header or a device function with the op at hand. They keep the
framework's code: whatever lies between the op's host function and a changed declaration is copied
under a new name, and only the host function itself is edited in place. A class whose functions are
the host code of several ops is copied too; of the original, only the op's function leads to the copy.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import Literal

from astra_integrate.errors import BadInput
from astra_integrate.measure.evidence import MARKER
from astra_integrate.records import Addition, Candidate, Declaration, Lowering, Replacement, Slice, digest_of
from astra_integrate.reinject import members
from astra_integrate.reinject.align import realigned
from astra_integrate.reinject.change import (
    changed_by,
    check_known,
    check_redirected,
    launched_by,
    replaces_kernel,
    shared_class,
)
from astra_integrate.reinject.format import is_macro, tidy
from astra_integrate.reinject.launch_site import Site
from astra_integrate.reinject.launcher import Launcher
from astra_integrate.reinject.paths import host_declarations, to_copy, words
from astra_integrate.reinject.rename import Renamed, rename
from astra_integrate.reinject.signature import plain, signatures


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
    check_known(slice, candidate, texts)
    marker = marker_of(candidate)
    hosts = host_declarations(slice)
    copied = to_copy(slice, changed_by(slice, candidate, texts), texts)
    if replaces_kernel(slice, candidate):
        # Another kernel takes its place: the deployed one needs no copy unless it is changed too.
        own = plain(slice.kernel.name)
        copied = tuple(d for d in copied if d.id in texts or not (d.is_kernel and own in d.names))
    shared = shared_class(slice)
    if shared is not None:
        copied = (*copied, shared)
    renames = [
        *(Renamed(name, name + marker, _scope(d)) for d in copied for name in d.names),
        *(Renamed(a.name, a.name + marker, _scope(slice.declaration(a.anchor), a.text)) for a in candidate.added),
    ]
    renames = list(dict.fromkeys(renames))
    work = _Work(slice, candidate, renames, copied)
    copies = {d.id: _copy(work, d, texts.get(d.id, d.text), marker) for d in copied}
    copies.update({id: _noted(slice, candidate, id, copies[id]) for id in texts if id in copies})
    replaced = tuple(
        Replacement(declaration=d.id, text=tidy(text, d.text))
        for d in hosts
        if (text := _led(slice, d, marker) if d is shared else work.launcher(d, d.text)) != d.text
    )
    added = _in_order(slice, candidate, copies, renames, {shared.id} if shared else set())
    work.check_launches()
    check_redirected(slice, renames, replaced, added)
    return Lowering(
        candidate=candidate.id,
        marker=marker,
        replaced=replaced,
        added=added,
        renamed=tuple(dict.fromkeys((r.old, r.new) for r in renames)),
        instantiations=_instantiations(slice, candidate, renames),
    )


class _Work:
    """Renames, and the plan's launches, for one declaration after the other."""

    def __init__(
        self, slice: Slice, candidate: Candidate, renames: Sequence[Renamed], copied: Sequence[Declaration]
    ) -> None:
        self._slice = slice
        self._renames = renames
        near = (*copied, *host_declarations(slice))
        self._launcher = Launcher(
            plan=candidate.plan,
            main=plain(slice.kernel.name),
            kernels=signatures(slice),
            names={r.old: r.new for r in renames},
            renamed=self.renamed,
            taken=frozenset().union(*(words(d.text) for d in near)),
        )

    def renamed(self, text: str) -> str:
        return realigned(text, rename(text, self._renames))

    def launcher(self, declaration: Declaration, text: str) -> str:
        """``text`` of a declaration with new names, and the plan's launches where it launches the kernel."""
        if text != declaration.text or "<<<" not in text:
            return self.renamed(text)
        return self._launcher.rewrite(text, lambda site: self._kernel_at(declaration, site))

    def check_launches(self) -> None:
        """A plan with a guard or a geometry needs a launch by ``<<<…>>>`` to be written into."""
        if self._launcher.missing and host_declarations(self._slice):
            raise BadInput(
                f"No <<<…>>> launch that {self._slice.host_function} leads to is one of {self._launcher.missing[0]}",
                "The plan must leave this launch as deployed",
            )

    def _kernel_at(self, declaration: Declaration, site: Site) -> str:
        """Plain name of the kernel that ``site`` launches: by the index's record of it, else as it is written."""
        before = len(declaration.text[: site.chevrons].encode("utf-8", "surrogateescape"))
        place = (declaration.extent.file, declaration.extent.start + before)
        recorded = {plain(launch.kernel) for launch in self._slice.launches if (launch.file, launch.offset) == place}
        own = plain(self._slice.kernel.name)
        return own if own in recorded else min(recorded, default=site.name.text)


def _scope(declaration: Declaration, text: str | None = None) -> tuple[str, ...] | None:
    """Namespaces that may qualify the name; a macro has none."""
    return None if is_macro(declaration.text if text is None else text) else declaration.namespaces


def _copy(work: _Work, declaration: Declaration, text: str, marker: str) -> str:
    new = tidy(work.launcher(declaration, text).strip("\r\n"), text)
    if not any(name + marker in words(new) for name in declaration.names):
        name = declaration.names[0] if declaration.names else declaration.id
        raise BadInput(
            f"{name} can't be copied under another name: it is made by a macro or named in pieces",
            "Replace the declarations that use it instead",
        )
    return new


def _led(slice: Slice, shared: Declaration, marker: str) -> str:
    """The class with the host function alone led to the class's copy, which stands before it."""
    function = plain(slice.host_function or "")
    return members.led_to(shared, function, shared.names[0] + marker)


def _noted(slice: Slice, candidate: Candidate, id: str, text: str) -> str:
    """A changed copy with one line before it that says what it is, as its reader will ask."""
    if is_macro(text):
        return text
    name = slice.declaration(id).names[0]
    purpose = re.sub(r"[\s\\]+", " ", candidate.strategy).strip()
    note = f"// As {name}, but for {slice.op or slice.host_function or 'one caller'} alone"
    return f"{note}: {purpose}.\n{text}" if purpose else f"{note}.\n{text}"


def _in_order(
    slice: Slice, candidate: Candidate, copies: dict[str, str], renames: Sequence[Renamed], before: Collection[str]
) -> tuple[Addition, ...]:
    """Copies right after their originals; the candidate's own additions where it wants them, after the copy."""
    new_names = {(r.old): r.new for r in renames}
    added: list[Addition] = []
    for declaration in sorted(slice.declarations, key=lambda d: d.order):
        own = [a for a in candidate.added if a.anchor == declaration.id]
        own = [
            a.model_copy(
                update={"name": new_names[a.name], "text": tidy(realigned(a.text, rename(a.text, renames)), a.text)}
            )
            for a in own
        ]
        added += [a for a in own if a.where == "before"]
        if declaration.id in copies:
            name = new_names[declaration.names[0]]
            where: Literal["before", "after"] = "before" if declaration.id in before else "after"
            added.append(Addition(anchor=declaration.id, where=where, name=name, text=copies[declaration.id]))
        added += [a for a in own if a.where == "after"]
    return tuple(added)


def _instantiations(slice: Slice, candidate: Candidate, renames: Sequence[Renamed]) -> tuple[str, ...]:
    """The slice's instantiations under the new names; an added kernel takes those of the one it replaces."""
    names = {r.old: r.new for r in renames}
    kernels = signatures(slice)
    main = plain(slice.kernel.name)
    others = [r for r in renames if r.old not in kernels]
    found: list[str] = []
    for instantiation in slice.instantiations:
        own = plain(instantiation.partition("<")[0])
        head, bracket, given = instantiation.partition("<")
        arguments = rename(given, others)
        # A changed function that is a template argument makes a new kernel out of one that keeps its name.
        wanted = [names.get(own, own)] if own in names or arguments != given else []
        if own == main:
            wanted += [names[name] for name in launched_by(candidate) if name in names and name not in kernels]
        found += [f"{head[: len(head) - len(own)]}{name}{bracket}{arguments}" for name in wanted]
    return tuple(dict.fromkeys(found))

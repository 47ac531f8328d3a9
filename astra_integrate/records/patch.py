"""A change on its way back into a framework."""

from __future__ import annotations

from typing import Literal

from .base import Record
from .source import Extent


class Edit(Record):
    """Replace the bytes of ``extent`` by ``text`` (UTF-8 with surrogateescape).

    An insertion has ``extent.start == extent.end``; ``context`` are bytes that must be unchanged for
    it to be at the right place. ``before`` and ``after`` are the SHA-256 of the whole file without and
    with all edits of the set ("" where not known): they tell an untouched file from an edited one.
    """

    extent: Extent
    text: str
    context: tuple[Extent, ...] = ()
    before: str = ""
    after: str = ""


class Provenance(Record):
    """Where a patch came from and what evidence it has."""

    candidate: str
    author: str
    strategy: str
    chosen_by: Literal["static evidence, not timed", "measured speed"]
    correctness: str
    timing: str
    run: str = ""


class Patch(Record):
    """Edits with their unified diff. ``impact`` names every op whose code the edits reach."""

    framework: str
    version: str
    op: str | None
    edits: tuple[Edit, ...]
    impact: tuple[str, ...] = ()
    diff: str
    closure_hash: str
    launcher_digest: str
    marker: str
    provenance: Provenance


class UnitCompile(Record):
    """The patched translation unit through the framework's own flags."""

    unit: str
    ok: bool
    command: tuple[str, ...]
    seconds: float
    error: str = ""
    marked_kernels: tuple[str, ...] = ()
    same_sass: bool | None = None
    detail: str = ""


class ServingResult(Record):
    """End-to-end arms A against B."""

    mode: str
    verdict: Literal["faster", "slower", "no measurable change", "failed", "not measured"]
    reason: str = ""
    metric: str = "tokens/s"
    pairs: tuple[tuple[float, float], ...] = ()
    interval: tuple[float, float] | None = None

"""One candidate into one folder and out again: the records of a run in, what was done out."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from astra_integrate import frameworks
from astra_integrate.records import Candidate, Edit, Lowering, Slice, digest_of
from astra_integrate.reinject import checkout
from astra_integrate.reinject.apply import Applied, apply, undo
from astra_integrate.reinject.edits import edits_for
from astra_integrate.reinject.impact import Impact, impact
from astra_integrate.reinject.lower import lower


@dataclass(frozen=True)
class Prepared:
    """A candidate ready to be put into any copy of its source."""

    slice: Slice
    candidate: Candidate
    lowering: Lowering
    edits: tuple[Edit, ...]
    impact: Impact


def prepare(slice: Slice, candidate: Candidate) -> Prepared:
    """Lower ``candidate`` and make its edits; raises as :func:`lower` and :func:`edits_for` do."""
    framework = frameworks.get(slice.source.framework)
    lowering = lower(slice, candidate)
    edits = edits_for(slice, lowering)
    return Prepared(
        slice, candidate, lowering, edits, impact(slice, lowering, framework.bindings(Path(slice.source.root)))
    )


def put(prepared: Prepared, folder: Path, journal: Path, *, git: Path | None = None) -> tuple[Applied, str]:
    """Apply the edits in ``folder``; returns what was done and, for a copy of our own, the diff.

    A folder that isn't there becomes a git-tracked copy of the source, whose diff is applied once more
    to a clean copy as a proof. A folder that is there is taken as it is: it must hold the source's
    files, unchanged where the edits are. What takes the edits back is written to ``journal`` first.
    """
    own = not folder.exists() or checkout.is_copy(folder, prepared.slice.source, git=git)
    if not folder.exists():
        framework = frameworks.get(prepared.slice.source.framework)
        folders = framework.own_folders(Path(prepared.slice.source.root))
        checkout.checkout(prepared.slice.source, folders, folder, git=git)
    planned = apply(folder, prepared.edits, dry_run=True)
    if planned.undo:
        save(journal, planned.undo)
    done = apply(folder, prepared.edits)
    if not own:
        return done, ""
    diff = checkout.diff(folder, git=git)
    checkout.verify(folder, diff, git=git)
    return done, diff


def take_back(prepared: Prepared, folder: Path, journal: Path) -> Applied:
    """Undo the change of ``folder``; without a journal, by what the slice's own source holds at the edits."""
    if journal.is_file():
        return undo(folder, load(journal))
    return undo(folder, apply(Path(prepared.slice.source.root), prepared.edits, dry_run=True).undo)


def journal_of(run: Path, folder: Path) -> Path:
    """Where the edits that undo a run's change of ``folder`` are kept."""
    return run / "undo" / f"{digest_of(str(folder.resolve()))[:16]}.json"


def save(path: Path, edits: Sequence[Edit]) -> None:
    """Write edits as JSON in ASCII: texts may hold bytes that are no UTF-8."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps([edit.model_dump() for edit in edits]), encoding="ascii")


def load(path: Path) -> tuple[Edit, ...]:
    """Read what :func:`save` wrote."""
    return tuple(Edit.model_validate(item) for item in json.loads(path.read_text(encoding="ascii")))

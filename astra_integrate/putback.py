"""From the chosen candidate to a proven patch: git-tracked copy, edits, diff, patched unit, record."""

from __future__ import annotations

from pathlib import Path

from . import frameworks
from .errors import CheckFailed
from .extract.render import device_text
from .measure.compile import Limits, cubin
from .progress import step
from .records import Candidate, Lowering, Patch, Provenance, Slice, Trial, UnitCompile
from .reinject import checkout
from .reinject.apply import apply
from .reinject.edits import edits_for
from .reinject.impact import impact
from .reinject.unit import compile_unit
from .settings import Settings
from .toolchain.discovery import Toolchain


def put_back(
    slice: Slice,
    candidate: Candidate,
    lowering: Lowering,
    trial: Trial,
    folder: Path,
    toolchain: Toolchain,
    *,
    run: str,
    chosen_by: str,
) -> Patch:
    """Apply ``lowering`` to a git-tracked copy of the source in ``folder``/framework and make the patch of it.

    The diff is applied once more to a clean checkout by git itself. Raises :class:`CheckFailed` where
    that differs or where the edits reach an op other than the chosen one.
    """
    framework = frameworks.get(slice.source.framework)
    root = Path(slice.source.root)
    edits = edits_for(slice, lowering)
    reached = impact(slice, lowering, framework.bindings(root))
    if not reached.alone:
        raise CheckFailed(f"The change would reach other ops than the chosen one: {', '.join(reached.ops)}")
    with step("Putting the candidate back into a git-tracked copy"):
        copy = checkout.checkout(slice.source, framework.own_folders(root), folder / "framework", git=toolchain.git)
        apply(copy, edits)
        diff = checkout.diff(copy, git=toolchain.git)
        checkout.verify(copy, diff, git=toolchain.git)
    return Patch(
        framework=slice.source.framework,
        version=slice.source.version,
        op=slice.op,
        edits=edits,
        impact=reached.ops,
        diff=diff,
        closure_hash=slice.closure_hash,
        launcher_digest=slice.launcher_digest,
        marker=lowering.marker,
        provenance=Provenance(
            candidate=candidate.id,
            author=candidate.author,
            strategy=candidate.strategy,
            chosen_by="measured speed" if chosen_by == "measured speed" else "static evidence, not timed",
            correctness=trial.correctness.verdict,
            timing=trial.timing.verdict,
            run=run,
        ),
    )


def prove(
    slice: Slice, lowering: Lowering, patch: Patch, folder: Path, settings: Settings, toolchain: Toolchain
) -> UnitCompile:
    """Compile the patched unit with the framework's flags and compare its new kernels with the candidate's own."""
    framework = frameworks.get(slice.source.framework)
    copy = checkout.checkout(
        slice.source, framework.own_folders(Path(slice.source.root)), folder / "framework", git=toolchain.git
    )
    apply(copy, patch.edits)
    return compile_patched(slice, lowering, copy, folder / "unit", settings, toolchain)


def compile_patched(
    slice: Slice, lowering: Lowering, copy: Path, folder: Path, settings: Settings, toolchain: Toolchain
) -> UnitCompile:
    """Compile the slice's unit in ``copy``, which holds the edits, and compare it with the candidate's own object.

    The unit's cubin goes to ``folder``. Raises only what a missing tool or the candidate's own object gives.
    """
    text = device_text(slice, lowering, lowering.instantiations).text
    limits = Limits(seconds=settings.compile_seconds)
    root = Path(slice.source.root)
    own = cubin(text, slice.flags, slice.arch, toolchain, settings.cache / "cubins", root=root, limits=limits)
    with step(f"Compiling {slice.unit} with the framework's flags"):
        return compile_unit(
            copy,
            slice.unit,
            slice.flags,
            slice.arch,
            toolchain,
            folder,
            marker=lowering.marker,
            candidate=own,
            instantiations=lowering.instantiations,
            limits=limits,
        )

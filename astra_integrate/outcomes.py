"""From what the loop found to the result of a run, in the words that its summary and report print."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .agents.loop import Measured, Outcome
from .measure.rank import LABEL, Ranked, best, rank
from .records import Candidate, RunResult, Slice, StaticEvidence, Trial, UnitCompile
from .settings import Settings
from .store import Run

SERVING = "serving throughput: no serving run was asked for"


def patched(
    run: Run, cut: Slice, settings: Settings, outcome: Outcome, chosen: Measured, built: UnitCompile
) -> RunResult:
    """The result of a run whose best candidate is back in the framework's source; failed where the proof is not."""
    candidate, trial = chosen
    proven = built.ok and built.same_sass is not False
    return _result(
        run.id,
        cut,
        settings,
        outcome,
        kind="patched" if proven else "failed",
        reason="" if proven else built.error or built.detail,
        best=candidate,
        correctness=trial.correctness,
        timing=trial.timing,
        chosen_by=_chosen_by(outcome, candidate),
        compile=built,
        not_measured=_missing(trial),
        diff=str(run.folder / "change.diff"),
    )


def without_patch(run: str, cut: Slice, settings: Settings, outcome: Outcome, missing: str) -> RunResult:
    """The result of a run that puts nothing back, with the reason. ``missing``: why nothing could be checked."""
    unchecked = [pair for pair in outcome.tried if pair[1].correctness.verdict == "not run"]
    if not outcome.tried and not outcome.rejected:
        reason = "; ".join(outcome.declined) or outcome.stopped
        return _result(run, cut, settings, outcome, kind="nothing to change", reason=reason)
    if unchecked:
        candidate, trial = _first(outcome, unchecked)
        why = missing or trial.correctness.detail
        return _result(
            run,
            cut,
            settings,
            outcome,
            kind="candidate",
            reason=f"not put back, since its correctness was not checked: {why}",
            best=candidate,
            correctness=trial.correctness,
            timing=trial.timing,
            chosen_by=_chosen_by(outcome, candidate),
            not_measured=(f"correctness: {why}", *_missing(trial)),
        )
    if any(trial.correctness.verdict == "correct under emulation" for _, trial in outcome.tried):
        reasons = "; ".join(found.reason for found in ranked(outcome.baseline, outcome.tried))
        reason = f"no correct candidate has an advantage in the compiled code: {reasons}"
        return _result(run, cut, settings, outcome, kind="nothing to change", reason=reason)
    failures = [f"{c.strategy}: {t.correctness.verdict} ({t.correctness.detail})" for c, t in outcome.tried]
    return _result(
        run, cut, settings, outcome, kind="no correct candidate", reason="; ".join([*failures, *outcome.rejected])
    )


def _chosen_by(outcome: Outcome, candidate: Candidate) -> str:
    """How ``candidate`` came first; without an advantage it was not chosen over anything."""
    found = next((r for r in ranked(outcome.baseline, outcome.tried) if r.candidate == candidate.id), None)
    if found is None:
        return ""
    return f"{LABEL}: {found.reason}" if found.advantage else found.reason


def ranked(baseline: StaticEvidence, tried: Sequence[Measured]) -> tuple[Ranked, ...]:
    """The candidates that compiled, in the order of their static evidence."""
    return rank(baseline, [(c.id, t.evidence) for c, t in tried if t.evidence is not None])


def _first(outcome: Outcome, pairs: list[Measured]) -> Measured:
    found = best(ranked(outcome.baseline, pairs))
    return next((pair for pair in pairs if found is not None and pair[0].id == found.candidate), pairs[0])


def _missing(trial: Trial) -> tuple[str, ...]:
    speed = (f"speed: {trial.timing.reason}",) if trial.timing.verdict in ("not timed", "void") else ()
    return (*speed, SERVING)


def _result(run: str, cut: Slice, settings: Settings, outcome: Outcome, *, kind: str, **found: Any) -> RunResult:
    return RunResult.model_validate(
        {
            "run": run,
            "source": cut.source.spec,
            "kernel": cut.kernel.name,
            "op": cut.op,
            "arch": cut.arch,
            "model": settings.model,
            "outcome": kind,
            "tried": len(outcome.tried),
            "declined": outcome.declined,
            **found,
        }
    )

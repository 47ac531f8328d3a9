"""The outcome of a run in at most ten lines, to be read in ten seconds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from astra_integrate.records import Correctness, Event, OutputError, RunResult, UnitCompile

from . import text
from .content import gather

_WIDTH = 118
_LABEL = 13


@dataclass(frozen=True)
class Margin:
    """The largest error of the candidate over all outputs, against its limit; ``output`` is where."""

    workload: str
    error: OutputError


def summary(result: RunResult, events: Sequence[Event] = ()) -> list[str]:
    """At most ten lines, without markup. Paths are never cut; anything else is, to stay on its line.

    Args:
        result: the run's outcome.
        events: the run's events, where the static evidence before and after is found; may be empty.
    """
    name = result.op or result.kernel
    lines = [text.one_line(f"{name} of {result.source}, {result.arch}: {result.outcome}  [{result.run}]")]
    lines += _line("reason", result.reason)
    # Without a candidate, why each strategy found nothing is the answer.
    for declined in result.declined if result.best is None else ():
        lines += _line("declined", declined)
    lines += _change(result)
    if result.best is not None or result.correctness is not None:
        lines += _line("verdict", text.verdict_line(result.correctness, result.timing))
    lines += _line("checked", checked(result.correctness))
    lines += _line("choice", _chosen(result))
    best = gather(events, result).best if events else None
    lines += _line("evidence", text.whole_items(best.reason, _WIDTH - _LABEL - 2) if best is not None else "")
    lines += _line("compiled", compiled(result.compile))
    paths = [*_path("report", result.report), *_path("diff", result.diff)]
    missing = _line("not measured", "; ".join(result.not_measured))
    # What was not measured and where to read on are never what is left out.
    return [*lines[: 10 - len(missing) - len(paths)], *missing, *paths]


def checked(correctness: Correctness | None) -> str:
    """What the correctness verdict rests on, or the first thing that failed."""
    if correctness is None:
        return ""
    if not correctness.verdict.startswith("correct"):
        return correctness.detail or correctness.verdict
    workloads = len({result.workload for result in correctness.results})
    orders = len({result.order for result in correctness.results})
    if not workloads:
        return correctness.detail
    told = f"{workloads} workload{'s' if workloads > 1 else ''} × {orders} fiber order{'s' if orders > 1 else ''}"
    widest = margin(correctness)
    if widest is None:
        return told
    error = widest.error
    return (
        f"{told}; largest error {text.share_figure(error.candidate, error.limit)}"
        f" ({text.error_figure(error.candidate)}; unmodified {text.error_figure(error.baseline)})"
    )


def margin(correctness: Correctness) -> Margin | None:
    """The output that comes nearest to its limit, or lies furthest beyond it."""
    found = [Margin(result.workload, error) for result in correctness.results for error in result.errors]
    return max(found, key=lambda m: _share(m.error), default=None)


def _share(error: OutputError) -> float:
    if error.candidate != error.candidate:
        return float("inf")
    return error.candidate / error.limit if error.limit > 0 else (float("inf") if error.candidate > 0 else 0.0)


def compiled(compile: UnitCompile | None) -> str:
    """Whether the patched translation unit compiled, and whether its code is the candidate's."""
    if compile is None:
        return ""
    if not compile.ok:
        return f"{compile.unit} does NOT compile: {compile.error}"
    same = {
        True: "its SASS holds the candidate's code",
        False: "its SASS is NOT the candidate's",
        None: "SASS not compared",
    }
    return f"{compile.unit} with the framework's flags, {text.seconds(compile.seconds)}; {same[compile.same_sass]}"


def _change(result: RunResult) -> list[str]:
    if result.best is None:
        return []
    best = result.best
    return _line("change", f"{best.strategy}, by {best.author}" + (f": {best.reasoning}" if best.reasoning else ""))


def _chosen(result: RunResult) -> str:
    tried = f"{result.tried} candidate{'' if result.tried == 1 else 's'} tried" if result.tried else ""
    return "; ".join(part for part in (text.chosen_line(result), tried) if part)


def _line(label: str, content: str) -> list[str]:
    line = text.one_line(content, _WIDTH - _LABEL - 2)
    return [f"  {label:<{_LABEL}}{line}"] if line else []


def _path(label: str, path: str | None) -> list[str]:
    return [f"  {label:<{_LABEL}}{text.visible(path)}"] if path else []

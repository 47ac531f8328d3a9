"""One self-contained HTML page of a run: no script, no address outside itself, readable in any year."""

from __future__ import annotations

import importlib.resources
from dataclasses import dataclass
from typing import Any

import jinja2
from markupsafe import Markup

from astra_integrate import __version__
from astra_integrate.records import OutputError, WorkloadResult

from . import code, evidence, text
from .content import Content
from .summary import checked, compiled


@dataclass(frozen=True)
class CodeChange:
    """One declaration before and after; ``before`` is None for an added one, ``after`` for an unchanged one."""

    title: str
    before: str | None
    after: str | None


@dataclass(frozen=True)
class ErrorRow:
    """One output of one workload; ``first`` opens a workload's rows."""

    result: WorkloadResult
    error: OutputError | None
    first: bool


def render(content: Content) -> str:
    """The page for ``content``; text of models and of sources is escaped, whatever it holds."""
    folder = importlib.resources.files(__package__)
    environment = jinja2.Environment(
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_finalize,
    )
    environment.filters.update(
        cuda=code.cuda, diff=code.diff, error=text.error_figure, seconds=text.seconds, size=text.size
    )
    template = environment.from_string((folder / "page.html.j2").read_text(encoding="utf-8"))
    style = (folder / "page.css").read_text(encoding="utf-8")
    best = content.best
    trial = best.trial if best is not None else None
    result = content.result
    correctness = (result.correctness if result else None) or (trial.correctness if trial else None)
    timing = (result.timing if result else None) or (trial.timing if trial else None)
    return template.render(
        version=__version__,
        style=Markup(style + code.colours()),
        content=content,
        result=result,
        best=best,
        verdict=text.verdict_line(correctness, timing),
        holds=_holds(content),
        timing_line=text.timing_line,
        checked=checked(correctness),
        chosen=text.chosen_line(result) if result else "",
        compiled=compiled(content.compile),
        correctness=correctness,
        errors=_error_rows(correctness.results if correctness else ()),
        bar=bar,
        comparisons=evidence.compare(content.baseline, trial.evidence if trial else None),
        changes=code_changes(content),
        diff_text=content.patch.diff if content.patch is not None else None,
        counts=_event_counts(content),
    )


def _finalize(value: Any) -> Any:
    """Plain strings are made visible before they are escaped; nothing is shown for None."""
    if value is None:
        return ""
    return text.visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _holds(content: Content) -> str:
    """How the page's verdict is coloured: good, neutral or bad. It never depends on anything but the records."""
    result = content.result
    if result is None:
        return "open"
    if result.outcome in ("patched", "candidate"):
        return "good"
    return "neutral" if result.outcome == "nothing to change" else "bad"


def _error_rows(results: tuple[WorkloadResult, ...]) -> list[ErrorRow]:
    rows = []
    for result in results:
        for number, error in enumerate(result.errors or (None,)):
            rows.append(ErrorRow(result, error, number == 0))
    return rows


def bar(error: OutputError) -> Markup:
    """A small drawing: the candidate's error (bar) and the unmodified kernel's (tick) between 0 and the limit."""

    def place(value: float) -> float:
        if value != value:
            return 100.0
        share = value / error.limit if error.limit > 0 else float(value > 0)
        return round(100 * min(1.0, share), 1)

    over = error.mismatches > 0 or not error.candidate <= error.limit
    return Markup(
        '<svg class="bar" viewBox="0 0 100 8" preserveAspectRatio="none" role="img" aria-label="{}">'
        '<rect class="room" width="100" height="8"/><rect class="{}" width="{}" height="8"/>'
        '<rect class="tick" x="{}" width="1.5" height="8"/></svg>'
    ).format(
        "share of the limit",
        "over" if over else "used",
        place(error.candidate),
        min(98.5, place(error.baseline)),
    )


def code_changes(content: Content) -> list[CodeChange]:
    """The declarations that the best candidate changed or added; without one, the kernel as it is."""
    piece = content.slice
    texts = {declaration.id: declaration for declaration in (piece.declarations if piece else ())}
    if content.best is None:
        kernels = [declaration for declaration in texts.values() if declaration.is_kernel]
        return [CodeChange(_title(d.names, d.extent.file), d.text, None) for d in kernels]
    changes = []
    for replaced in content.best.candidate.replaced:
        old = texts.get(replaced.declaration)
        title = _title(old.names, old.extent.file) if old else replaced.declaration
        changes.append(CodeChange(title, old.text if old else None, replaced.text))
    changes += [CodeChange(f"{item.name} (new)", None, item.text) for item in content.best.candidate.added]
    return changes


def _title(names: tuple[str, ...], file: str) -> str:
    return f"{', '.join(names)} in {file}"


def _event_counts(content: Content) -> list[tuple[str, str, int]]:
    counts: dict[tuple[str, str], int] = {}
    for event in content.events:
        counts[event.stage, event.kind] = counts.get((event.stage, event.kind), 0) + 1
    return [(stage, kind, count) for (stage, kind), count in counts.items()]

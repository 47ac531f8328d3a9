"""Ten lines that say what the records say."""

from __future__ import annotations

import math

from astra_integrate.records import Candidate, Correctness, Event, OutputError, RunResult, Timing, WorkloadResult
from astra_integrate.report import summary
from astra_integrate.report.summary import checked, margin

PATHS = (
    "  report       /home/me/.local/share/astra-integrate/runs/20260101-scale-0123abcd/report.html",
    "  diff         /home/me/.local/share/astra-integrate/runs/20260101-scale-0123abcd/change.diff",
)


def test_a_patched_run_in_ten_lines(result: RunResult, events: tuple[Event, ...]) -> None:
    lines = summary(result, events)
    assert lines[:5] == [
        "scale of vllm==1, sm_90a: patched [20260101-scale-0123abcd]",
        "  change       vectorised access, by rules: 128-bit loads and stores where both are aligned",
        "  verdict      correct under emulation; not timed: no GPU",
        "  checked      2 workloads × 2 fiber orders; largest error 60 % of the limit (0.0006; unmodified 0.0004)",
        "  choice       chosen by static evidence, not timed; 2 candidates tried",
    ]
    assert lines[5].startswith("  evidence     global loads 16→128 bit, global stores 16→128 bit, ")
    assert lines[5].endswith(" bit, …")
    assert lines[6:] == [
        "  compiled     csrc/scale.cu with the framework's flags, 12 s; its SASS holds the candidate's code",
        "  not measured speed: this machine has no GPU; end to end: no GPU",
        *PATHS,
    ]
    assert all(len(line) <= 118 for line in lines if line not in PATHS)


def test_a_run_that_found_nothing_gives_the_reason() -> None:
    nothing = RunResult(
        run="r",
        source="vllm==2",
        kernel="ns::k",
        op=None,
        arch="sm_90a",
        model="rules",
        outcome="nothing to change",
        reason="no strategy applies",
        declined=("vectorise: already vectorised", "fast math: no slow function"),
    )
    assert summary(nothing) == [
        "ns::k of vllm==2, sm_90a: nothing to change [r]",
        "  reason       no strategy applies",
        "  declined     vectorise: already vectorised",
        "  declined     fast math: no slow function",
    ]
    many = nothing.model_copy(update={"declined": ("x",) * 20, "report": "/r"})
    assert len(summary(many)) == 10 and summary(many)[-1] == "  report       /r"


def test_never_more_than_ten_lines_and_what_is_missing_stays(result: RunResult, events: tuple[Event, ...]) -> None:
    full = summary(result.model_copy(update={"reason": "a reason as well"}), events)
    assert len(full) == 10
    assert full[-3:] == ["  not measured speed: this machine has no GPU; end to end: no GPU", *PATHS]


def test_text_of_a_model_cannot_steer_the_terminal(result: RunResult, events: tuple[Event, ...]) -> None:
    best: Candidate = result.best.model_copy(  # type: ignore[union-attr]
        update={"strategy": "a\x1b[2J\x1b]0;x\x07b", "reasoning": "one\ntwo\u202etrap" + "x" * 500}
    )
    lines = summary(result.model_copy(update={"best": best}), events)
    text = "\n".join(lines)
    assert len(lines) == 10
    assert not {"\x1b", "\x07", "\u202e"} & set(text)
    assert "\\u{1b}[2J" in text and "one two\\u{202e}trap" in text and lines[1].endswith("…")


def test_a_failure_is_said_in_the_records_words() -> None:
    failed = Correctness(verdict="wrong", detail="out: 3 of 258 elements beyond the limit")
    assert checked(failed) == "out: 3 of 258 elements beyond the limit"


def test_the_margin_is_the_worst_share_of_the_limit() -> None:
    def error(candidate: float, limit: float) -> OutputError:
        return OutputError(output="o", candidate=candidate, baseline=0.0, limit=limit)

    def worst(*errors: OutputError) -> OutputError:
        found = WorkloadResult(
            workload="w", order="forward", verdict="correct under emulation", oracle="expression", errors=errors
        )
        margin_ = margin(Correctness(verdict="correct under emulation", results=(found,)))
        assert margin_ is not None
        return margin_.error

    assert worst(error(1e-3, 1e-2), error(1e-4, 2e-4)).limit == 2e-4
    assert worst(error(1e-3, 1e-2), error(1e-9, 0.0)).limit == 0.0
    assert worst(error(1.0, 1.0), error(0.0, 0.0)).limit == 1.0
    assert math.isnan(worst(error(5.0, 1.0), error(math.nan, 1.0)).candidate)
    assert margin(Correctness(verdict="not run")) is None


def test_speed_is_told_with_its_interval(result: RunResult) -> None:
    timed = result.model_copy(
        update={"timing": Timing(verdict="faster", ratio=1.25, interval=(1.2, 1.3)), "not_measured": ()}
    )
    assert "  verdict      correct under emulation; faster (1.250×, 1.200 to 1.300)" in summary(timed)

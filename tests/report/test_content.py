"""What a report shows is found among a run's events."""

from __future__ import annotations

from astra_integrate.records import Event, RunResult, Slice
from astra_integrate.report import gather


def test_records_are_sorted_by_what_they_are(events: tuple[Event, ...], result: RunResult, slice_: Slice) -> None:
    content = gather(events)
    assert content.result == result and content.slice == slice_ and content.unread == ()
    assert [(tried.candidate.id, tried.best) for tried in content.tried] == [("c1", True), ("c2", False)]
    assert content.best is not None and content.best.reason.startswith("global loads 16→128 bit")
    assert content.tried[1].reason == ""
    # The unmodified kernel's evidence, not the candidate's.
    assert content.baseline is not None and content.baseline.kernels[0].registers == 32
    assert content.machine is not None and content.machine.host == "box"


def test_a_run_cut_short_shows_what_there_is(events: tuple[Event, ...]) -> None:
    for count in range(len(events)):
        content = gather(events[:count])
        assert content.result is None and content.best is None


def test_events_of_other_kinds_and_versions_do_no_harm(events: tuple[Event, ...]) -> None:
    odd = (
        Event(sequence=90, stage="agents", key="x", kind="prompt", payload="not JSON"),
        Event(sequence=91, stage="agents", key="y", kind="digest_of", payload="{}"),
        Event(sequence=92, stage="slice", key="z", kind="Slice", payload='{"of": "the future"}'),
    )
    content = gather((*events, *odd))
    assert content.slice == gather(events).slice
    assert content.unread == ("92 slice Slice",)

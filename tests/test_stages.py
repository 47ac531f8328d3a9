from __future__ import annotations

from astra_integrate.records import Timing
from astra_integrate.stages import Stages
from astra_integrate.store import Store


def test_a_stage_is_done_once_for_the_same_content_and_again_for_another(tmp_path):
    done: list[str] = []

    def effect() -> Timing:
        done.append("once more")
        return Timing(verdict="not timed", reason=str(len(done)))

    with Store(tmp_path) as store, store.create("s", "k", None, {}) as run:
        first = Stages(run).once("time", ("a",), Timing, effect)
        assert Stages(run).once("time", ("a",), Timing, effect) == first
        assert len(done) == 1
        assert Stages(run).once("time", ("b",), Timing, effect) != first
        assert len(done) == 2


def test_records_that_are_kept_twice_are_one_event(tmp_path):
    with Store(tmp_path) as store, store.create("s", "k", None, {}) as run:
        for _ in range(2):
            Stages(run).keep("trial", [Timing(verdict="not timed", reason="no GPU")])
        assert len(run.events()) == 1

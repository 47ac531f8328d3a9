"""The loop with scripted answers and with the rules: what it tries, when it stops, that it can be killed anywhere."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pytest

from astra_integrate.agents.effects import Tools
from astra_integrate.agents.loop import Limits, Measured, Outcome, optimise
from astra_integrate.agents.models import Model, Reply, Request
from astra_integrate.agents.models.rules import RulesModel
from astra_integrate.agents.models.scripted import ScriptedModel
from astra_integrate.errors import BadInput
from astra_integrate.measure.compile import CompileError
from astra_integrate.records import (
    Candidate,
    Comparator,
    Correctness,
    KernelEvidence,
    Lowering,
    Machine,
    Slice,
    StaticEvidence,
    TensorArgument,
    Workload,
)
from astra_integrate.toolchain.discovery import Toolchain

KERNEL = """\
__global__ void k(float* __restrict__ out, const float* __restrict__ in, int n) {
  for (int i = threadIdx.x; i < n; i += blockDim.x) out[i] = in[i] / 3.0f;
}"""
MACHINE = Machine(host="h", cpu="c", cores=1, memory_bytes=1)


def workload(name: str, role: str = "representative") -> Workload:
    out = TensorArgument(name="out", dtype="float32", shape=(4,), role="out")
    return Workload.model_validate(
        {"id": name, "op": "k", "arguments": (out,), "comparators": (Comparator(output="out", how="bits"),)}
        | {"role": role, "seed": 0, "oracle": "x / 3"}
    )


WORKLOADS = (workload("a"), workload("b"), workload("zero rows", "edge"))


class Killed(BaseException):
    """The process ends here."""


class Memory:
    """A journal in memory; it dies once ``alive`` more events are recorded."""

    def __init__(self) -> None:
        self.events: dict[str, Event] = {}
        self.alive: int | None = None

    def find(self, key: str) -> Event | None:
        return self.events.get(key)

    def record(self, stage: str, key: str, kind: str, payload: str) -> None:
        assert key not in self.events, "a finished step was done again"
        if self.alive == 0:
            raise Killed
        self.alive = None if self.alive is None else self.alive - 1
        self.events[key] = Event(payload)


@dataclass
class Event:
    payload: str


class Bench:
    """Stands in for lowering, compiler and gate; a text that holds a word in ``refuse`` is refused there."""

    def __init__(self, **refuse: str) -> None:
        self.refuse = refuse
        self.calls: list[str] = []

    def tools(self) -> Tools:
        return Tools(lower=self.lower, compile=self.compile, check=self.check, machine=MACHINE)

    def _hit(self, stage: str, text: str) -> bool:
        return stage in self.refuse and self.refuse[stage] in text

    def lower(self, candidate: Candidate) -> Lowering:
        self.calls.append(f"lower {candidate.id}")
        text = "".join(replacement.text for replacement in candidate.replaced)
        if self._hit("lower", text):
            raise BadInput("that can't be launched")
        return Lowering(candidate=candidate.id, marker="_m", replaced=candidate.replaced)

    def compile(self, lowering: Lowering | None) -> StaticEvidence:
        text = "".join(replacement.text for replacement in lowering.replaced) if lowering else ""
        self.calls.append(f"compile {lowering.candidate if lowering else 'baseline'}")
        if self._hit("compile", text):
            raise CompileError("nvcc refused it", ("line 3: no such thing",))
        width = 128 if "vec_t" in text else 32
        kernel = KernelEvidence(symbol="k", name="k(float*)", registers=8, global_loads=((width, 1),))
        kernel = kernel.model_copy(update={"calls": 0 if "__fdividef" in text else 1})
        return StaticEvidence(arch="sm_90a", compiler="none", kernels=(kernel,))

    def check(self, lowering: Lowering | None, workloads: Sequence[Workload]) -> Correctness:
        text = "".join(replacement.text for replacement in lowering.replaced) if lowering else ""
        self.calls.append(f"check {lowering.candidate if lowering else 'baseline'} on {[w.id for w in workloads]}")
        if self._hit("check", text):
            return Correctness(verdict="wrong", detail="out is off by 7")
        return Correctness(verdict="correct under emulation")


def widest(baseline: StaticEvidence, measured: Sequence[Measured]) -> str | None:
    """A ranking that is easy to follow: wide loads first, then few slow paths."""

    def score(evidence: StaticEvidence | None) -> tuple[int, int]:
        assert evidence is not None
        return evidence.kernels[0].global_loads[0][0], -evidence.kernels[0].calls

    best = max(measured, key=lambda m: score(m[1].evidence), default=None)
    return best[0].id if best and score(best[1].evidence) > score(baseline) else None


@pytest.fixture
def slice_(sliced: Callable[..., Slice]) -> Slice:
    return sliced(KERNEL, instantiations=("k",))


def fenced(text: str) -> str:
    return f"```cuda\n{text}\n```"


def plans(count: int) -> list[str]:
    return [f'{{"strategy": "idea {i}", "reason": "because"}}' for i in range(count)]


def test_rules_try_each_strategy_then_both_and_stop_with_the_reasons(slice_: Slice, tools: Toolchain) -> None:
    outcome = optimise(slice_, WORKLOADS, RulesModel(tools), Bench().tools(), Memory(), widest)
    assert [candidate.strategy for candidate, _ in outcome.tried] == [
        "vectorised memory access",
        "fast math",
        "vectorised memory access + fast math",
    ]
    assert outcome.best == outcome.tried[2][0].id
    assert outcome.stopped == "every strategy that applies was tried"
    assert outcome.tests.workloads == ("a", "b", "zero rows")
    assert outcome.tests.oracle == "x / 3"
    assert "1 calls of out-of-line code" in "\n".join(outcome.profile.findings)
    assert outcome.rejected == ()


def test_rules_say_why_nothing_applies(sliced: Callable[..., Slice], tools: Toolchain) -> None:
    slice = sliced("__global__ void k(float4* x, int n) { if (threadIdx.x < n) x[threadIdx.x].x = 0.0f; }")
    outcome = optimise(slice, WORKLOADS, RulesModel(tools), Bench().tools(), Memory(), widest)
    assert outcome.tried == ()
    assert outcome.stopped == "no strategy applies"
    assert "fast math: k, line 1: no float division and no function with a fast form" in outcome.declined
    assert any(text.startswith("vectorised memory access: k, line 1: ") for text in outcome.declined)


def test_rules_do_not_repair_what_the_gate_refuses(slice_: Slice, tools: Toolchain) -> None:
    bench = Bench(check="__fdividef")
    outcome = optimise(slice_, WORKLOADS, RulesModel(tools), bench.tools(), Memory(), widest)
    assert [trial.correctness.verdict for _, trial in outcome.tried] == ["correct under emulation", "wrong", "wrong"]
    assert outcome.best == outcome.tried[0][0].id
    assert outcome.rejected[0] == "fast math: rules have no repair for what the gate refused"


@pytest.mark.parametrize(
    ("refuse", "words"),
    [
        ({"lower": "BAD"}, "that can't be launched"),
        ({"compile": "BAD"}, "nvcc refused it\nline 3: no such thing"),
        ({"check": "BAD"}, "wrong: out is off by 7"),
    ],
)
def test_a_refused_candidate_is_repaired_with_the_words_of_what_refused_it(
    slice_: Slice, refuse: dict[str, str], words: str
) -> None:
    asked: list[Request] = []

    class Listening(ScriptedModel):
        def answer(self, request: Request) -> Reply:
            asked.append(request)
            return super().answer(request)

    bad, good = KERNEL.replace("3.0f", "3.0f /* BAD */"), KERNEL.replace("3.0f", "4.0f - 1.0f")
    model = Listening({"planning": plans(1), "coding": [fenced(bad)], "repair": [fenced(good)]})
    outcome = optimise(slice_, WORKLOADS, model, Bench(**refuse).tools(), Memory(), widest)
    assert len(outcome.tried) == 2
    assert outcome.tried[1][1].correctness.verdict == "correct under emulation"
    assert words in next(request.prompt for request in asked if request.role == "repair")
    assert outcome.tried[0][0].author == "scripted"


def test_what_the_gate_cannot_judge_is_neither_repaired_nor_chosen(slice_: Slice) -> None:
    class Blind(Bench):
        def check(self, lowering: Lowering | None, workloads: Sequence[Workload]) -> Correctness:
            return Correctness(verdict="not run", detail="no such intrinsic")

    model = ScriptedModel({"planning": plans(1), "coding": [fenced(KERNEL.replace("3.0f", "x.vec_t"))]})
    outcome = optimise(slice_, WORKLOADS, model, Blind().tools(), Memory(), widest)
    assert [trial.correctness.verdict for _, trial in outcome.tried] == ["not run"]
    assert outcome.rejected == ()
    assert outcome.best is None


def test_an_unusable_answer_is_asked_for_again_and_counted(slice_: Slice) -> None:
    model = ScriptedModel(
        {"planning": plans(2), "coding": ["words", "I'm sorry, I can't.", fenced("int x"), "more words"]}
    )
    outcome = optimise(slice_, WORKLOADS, model, Bench().tools(), Memory(), widest, Limits(rounds=2, repairs=2))
    assert outcome.tried == ()
    assert outcome.rejected[:2] == ("idea 0: no code in reply", "idea 0: the model refused: I'm sorry, I can't.")
    assert len(outcome.rejected) == 6
    assert outcome.stopped == "all 2 rounds used"


def test_it_stops_after_rounds_without_gain(slice_: Slice) -> None:
    texts = [fenced(KERNEL.replace("3.0f", f"{i}.5f")) for i in range(9)]
    model = ScriptedModel({"planning": plans(9), "coding": texts})
    outcome = optimise(slice_, WORKLOADS, model, Bench().tools(), Memory(), widest, Limits(rounds=9, patience=2))
    assert outcome.stopped == "no gain in 2 rounds"
    assert len(outcome.tried) == 2
    assert outcome.best is None


def test_the_same_change_is_not_measured_twice(slice_: Slice) -> None:
    bench = Bench()
    text = fenced(KERNEL.replace("3.0f", "5.0f"))
    model = ScriptedModel({"planning": plans(2), "coding": [text, text]})
    outcome = optimise(slice_, WORKLOADS, model, bench.tools(), Memory(), widest)
    assert outcome.rejected == ("idea 1: the same change was tried before",)
    assert sum(call.startswith("check") for call in bench.calls) == 1


def test_a_model_may_choose_shapes_but_not_drop_edges(slice_: Slice) -> None:
    bench = Bench()
    model = ScriptedModel(
        {
            "testing": ['{"workloads": ["b"], "oracle": "mine", "reason": "b is what runs"}'],
            "planning": plans(1),
            "coding": [fenced(KERNEL.replace("3.0f", "5.0f"))],
        }
    )
    outcome = optimise(slice_, WORKLOADS, model, bench.tools(), Memory(), widest)
    assert outcome.tests.workloads == ("b", "zero rows")
    assert outcome.tests.oracle == "x / 3"
    assert bench.calls[-1].endswith("on ['b', 'zero rows']")


def scripted_run() -> ScriptedModel:
    texts = ["words", fenced(KERNEL.replace("3.0f", "BAD")), fenced(KERNEL.replace("3.0f", "__fdividef"))]
    return ScriptedModel({"planning": plans(2), "coding": texts, "repair": [fenced(KERNEL.replace("3.0f", "6.0f"))]})


@pytest.mark.parametrize("which", ["scripted", "rules"])
def test_a_run_killed_after_any_step_ends_as_if_it_had_not_been(slice_: Slice, tools: Toolchain, which: str) -> None:
    rules = RulesModel(tools)  # shared: it keeps what it read of the slice, which is most of the time

    def run(journal: Memory, bench: Bench) -> Outcome:
        model: Model = rules if which == "rules" else scripted_run()
        return optimise(slice_, WORKLOADS, model, bench.tools(), journal, widest)

    whole, calm = Memory(), Bench(compile="BAD")
    expected = run(whole, calm)
    assert len(whole.events) > 8
    for steps in range(len(whole.events)):
        journal, bench = Memory(), Bench(compile="BAD")
        journal.alive = steps
        with pytest.raises(Killed):
            run(journal, bench)
        assert len(journal.events) == steps
        journal.alive = None
        assert run(journal, bench) == expected
        assert journal.events.keys() == whole.events.keys()
        # Only the step that the kill cut off was done twice: it had not been recorded.
        assert len(bench.calls) <= len(calm.calls) + 1
    again = Bench()
    assert run(whole, again) == expected
    assert again.calls == []

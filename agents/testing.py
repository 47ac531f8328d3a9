"""Testing role: which workloads a candidate is run on, and what judges its outputs."""

from __future__ import annotations

from astra_integrate.agents.asking import Ask, ask
from astra_integrate.agents.messages import TestingInput, TestingOutput


def test(input: TestingInput, asking: Ask) -> TestingOutput:
    """Workloads and oracle for the run.

    Every edge workload stays, whatever the model leaves out: a model may add weight to shapes,
    it may not drop the ones that catch mistakes. An answer that can't be read means all of them.
    """
    answer = ask(asking, "testing", input, TestingOutput)
    if answer.output is None:
        return all_workloads(input).model_copy(update={"reason": f"all workloads: {answer.rejected}"})
    wanted = set(answer.output.workloads)
    kept = tuple(w.id for w in input.workloads if w.id in wanted or w.role == "edge")
    return answer.output.model_copy(
        update={"workloads": kept or all_workloads(input).workloads, "oracle": oracle(input)}
    )


def all_workloads(input: TestingInput) -> TestingOutput:
    """Every workload there is."""
    edges = sum(workload.role == "edge" for workload in input.workloads)
    count = len(input.workloads)
    return TestingOutput(
        workloads=tuple(workload.id for workload in input.workloads),
        oracle=oracle(input),
        reason=f"all {count} workloads, {edges} of them edge cases",
    )


def oracle(input: TestingInput) -> str:
    """The oracle's name: the op's own expression where the data has one, else the unmodified kernel."""
    named = dict.fromkeys(workload.oracle for workload in input.workloads if workload.oracle)
    return next(iter(named), "differential: the unmodified kernel")

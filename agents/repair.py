"""Repair role: a candidate that failed, once more, with the words of what refused it."""

from __future__ import annotations

from astra_integrate.agents.answers import read_answer
from astra_integrate.agents.asking import Ask, ask
from astra_integrate.agents.messages import CodingOutput, RepairInput


def repair(input: RepairInput, asking: Ask) -> CodingOutput:
    """New texts in place of the failed ones, or the reason why there are none."""
    answer = ask(asking, "repair", input, CodingOutput)
    if answer.output is not None:
        return answer.output.model_copy(update={"cost": answer.cost})
    return read_answer(answer.text, input.slice, input.candidate).model_copy(update={"cost": answer.cost})

"""Coding role: the planned strategy as new texts for declarations of the slice."""

from __future__ import annotations

from astra_integrate.agents.answers import read_answer
from astra_integrate.agents.asking import Ask, ask
from astra_integrate.agents.messages import CodingInput, CodingOutput


def code(input: CodingInput, asking: Ask) -> CodingOutput:
    """Changed declarations, or the reason why the answer can't be used."""
    answer = ask(asking, "coding", input, CodingOutput)
    if answer.output is not None:
        return answer.output.model_copy(update={"cost": answer.cost})
    return read_answer(answer.text, input.slice, input.best).model_copy(update={"cost": answer.cost})

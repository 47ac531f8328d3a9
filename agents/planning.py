"""Planning role: the strategy of the next round, with its reason and the expected gain."""

from __future__ import annotations

from astra_integrate.agents.asking import Ask, ask
from astra_integrate.agents.messages import PlanningInput, PlanningOutput

# A model that answers no plan is still asked for code: this is what Astra's planner would say first.
_UNREADABLE = PlanningOutput(strategy="free choice", reason="the plan could not be read")


def plan(input: PlanningInput, asking: Ask) -> PlanningOutput:
    """The next strategy; empty where nothing is left to try."""
    answer = ask(asking, "planning", input, PlanningOutput)
    return answer.output or _UNREADABLE.model_copy(update={"notes": (answer.rejected,)})

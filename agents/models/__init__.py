"""Who answers for the roles: the embedded rules, a recorded script, or a model behind an OpenAI-compatible address."""

from __future__ import annotations

from astra_integrate.agents.models.base import Model, Reply, Request
from astra_integrate.errors import BadInput
from astra_integrate.settings import Settings

__all__ = ["Model", "Reply", "Request", "open_model"]


def open_model(name: str, settings: Settings) -> Model:
    """The model called ``name``: ``rules``, ``scripted:FILE``, or ``openai:MODEL``.

    Raises:
        BadInput: no such model, an unreadable script, or no key where one is needed.
    """
    kind, _, rest = name.partition(":")
    if kind == "rules" and not rest:
        from astra_integrate.agents.models.rules import RulesModel
        from astra_integrate.toolchain.discovery import discover

        return RulesModel(discover(settings))
    if kind == "scripted" and rest:
        from astra_integrate.agents.models.scripted import ScriptedModel

        return ScriptedModel.from_file(rest)
    if kind == "openai" and rest:
        from astra_integrate.agents.models.openai_ import OpenAIModel

        return OpenAIModel(rest, settings)
    raise BadInput(f"There is no model {name!r}", "Use rules, scripted:FILE or openai:MODEL")

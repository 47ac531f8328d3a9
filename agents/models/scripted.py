"""A model that replays recorded answers: for tests, demonstrations and exact repetition. Always labelled."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import yaml

from astra_integrate.agents.models.base import Reply, Request
from astra_integrate.errors import BadInput


class ScriptedModel:
    """Answers the n-th request of a role with the n-th of that role's recorded texts, in a resumed run too.

    When a role's texts are used up it answers nothing: planning then ends the search, coding counts a rejection.
    """

    name = "scripted"

    def __init__(self, answers: Mapping[str, Iterable[str]]) -> None:
        self._answers = {role: tuple(texts) for role, texts in answers.items()}

    @classmethod
    def from_file(cls, path: str) -> ScriptedModel:
        """Read a YAML file of role → list of texts; raises :class:`BadInput` where it isn't one."""
        try:
            document = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
            raise BadInput(
                f"The script {path} can't be read: {error}", "Give a YAML file of role: [answers]"
            ) from error
        if not isinstance(document, dict) or not all(isinstance(texts, list) for texts in document.values()):
            raise BadInput(f"The script {path} isn't a table of role: [answers]", "See docs/ for an example")
        return cls({str(role): [str(text) for text in texts] for role, texts in document.items()})

    def answer(self, request: Request) -> Reply:
        """The recorded text for the request's role and turn."""
        texts = self._answers.get(request.role, ())
        if request.turn < len(texts):
            return Reply(text=texts[request.turn])
        return Reply(text='{"strategy": "", "reason": "the script has ended"}' if request.role == "planning" else "")

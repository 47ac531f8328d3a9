"""Put a role's question to the model, once per content, and read a structured answer where there is one."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from pydantic import ValidationError

from astra_integrate.agents.models.base import Reply, Request, Role
from astra_integrate.agents.prompts import render
from astra_integrate.records import Cost, Record

R = TypeVar("R", bound=Record)
# A reply with more braces before its JSON than this is code, not an answer in JSON.
_OPENINGS = 200
Ask = Callable[[Request], Reply]


@dataclass(frozen=True)
class Answer(Generic[R]):
    """The output where the text holds one, else ``rejected`` says why not; ``text`` is all that was answered."""

    output: R | None
    text: str
    rejected: str
    cost: Cost


def ask(asking: Ask, role: Role, input: Record, kind: type[R]) -> Answer[R]:
    """Ask for a ``kind``; anything may come back, none of it raises."""
    system, prompt = render(role, input, kind)
    reply = asking(Request(role=role, input=input, system=system, prompt=prompt))
    output, rejected = structured(reply.text, kind)
    return Answer(output, reply.text, rejected, reply.cost)


def structured(text: str, kind: type[R]) -> tuple[R | None, str]:
    """A record out of JSON, bare or with fences and words around it; else why it isn't one."""
    reason = "no JSON object in the reply"
    for start in [match.start() for match in re.finditer(r"\{", text)][:_OPENINGS]:
        try:
            document, _ = json.JSONDecoder().raw_decode(text[start:])
        except (ValueError, RecursionError):
            continue
        if not isinstance(document, dict):
            continue
        known = {name: value for name, value in document.items() if name in kind.model_fields}
        if not known:
            return None, f"the JSON object in the reply has none of {', '.join(kind.model_fields)}"
        try:
            return kind.model_validate(known), ""
        except (ValidationError, RecursionError) as error:
            first = error.errors()[0] if isinstance(error, ValidationError) else {"loc": (), "msg": "too deep"}
            where = ".".join(str(part) for part in first["loc"])
            return None, f"the JSON object in the reply is wrong at {where or 'its root'}: {first['msg']}"
    return None, reason

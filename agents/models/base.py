"""What a role asks of a model, and what it gets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

from astra_integrate.records import Cost, Record

Role = Literal["testing", "profiling", "planning", "coding", "repair"]


@dataclass(frozen=True)
class Request:
    """One question: the typed ``input`` for models that read records, ``system`` and ``prompt`` for the others.

    ``turn`` counts the requests of this role in the run, from 0, answered ones of a resumed run included.
    """

    role: Role
    input: Record
    system: str
    prompt: str
    turn: int = 0


class Reply(Record):
    """An answer as text: the JSON of the role's output record, or whatever a language model wrote."""

    text: str
    cost: Cost = Cost()


class Model(Protocol):
    """Answers for all roles. ``name`` is the author that candidates carry; equal requests should get equal replies."""

    name: str

    def answer(self, request: Request) -> Reply:
        """Answer one request; raises ``AstraError`` where no answer can be had at all."""
        ...

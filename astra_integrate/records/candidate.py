"""A proposed change to a slice."""

from __future__ import annotations

from typing import Literal

from .base import Record


class Replacement(Record):
    """New text for one declaration of the slice."""

    declaration: str
    text: str


class Addition(Record):
    """A new declaration, placed right before or after the declaration ``anchor``."""

    anchor: str
    where: Literal["before", "after"] = "before"
    name: str
    text: str


class LaunchStep(Record):
    """Launch ``kernel`` (name without template arguments) in place of the deployed launch.

    ``grid`` and ``block`` are C++-and-Python-neutral expressions for the x dimension, over the
    kernel's parameter names, ``sizeof(T)`` for its type template parameters, ``grid_x``,
    ``block_x`` (deployed geometry), ``min``, ``max``, ``ceil_div`` and + - * / %.
    Empty means: as deployed.
    """

    kind: Literal["launch"] = "launch"
    kernel: str
    grid: str = ""
    block: str = ""


class DeployedStep(Record):
    """Leave the framework's own launch as it is."""

    kind: Literal["deployed"] = "deployed"


class Variant(Record):
    """Steps taken when ``when`` holds; an empty guard always holds."""

    when: str = ""
    steps: tuple[LaunchStep | DeployedStep, ...]


class LaunchPlan(Record):
    """Variants in the order in which their guards are tried; the last one is the fallback."""

    variants: tuple[Variant, ...] = (Variant(steps=(DeployedStep(),)),)


class Cost(Record):
    """What a candidate took: model calls, tokens, money (unit: USD), seconds."""

    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    usd: float = 0.0
    seconds: float = 0.0


class Candidate(Record):
    """Replaced and added declarations of a slice, plus the launch plan. It holds no host code."""

    id: str
    parent: str | None = None
    slice_digest: str
    replaced: tuple[Replacement, ...] = ()
    added: tuple[Addition, ...] = ()
    plan: LaunchPlan = LaunchPlan()
    author: str
    strategy: str
    reasoning: str = ""
    expected: str = ""
    cost: Cost = Cost()


class Lowering(Record):
    """A candidate with its plan turned into C++: final texts for declarations, launcher included.

    ``marker`` is the suffix that every copied name carries, so that the new code is recognised
    in a built object. ``renamed`` maps old name → new name.
    """

    candidate: str
    marker: str
    replaced: tuple[Replacement, ...] = ()
    added: tuple[Addition, ...] = ()
    renamed: tuple[tuple[str, str], ...] = ()
    instantiations: tuple[str, ...] = ()

"""The stages in order: source → target → slice → loop → best → put back → proof."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from . import frameworks, targets
from .errors import NotMeasured
from .frameworks.base import Target
from .records import Record, RunResult, Slice, Source, Workload, digest_of
from .settings import Settings
from .store import Run

R = TypeVar("R", bound=Record)


@dataclass(frozen=True)
class Request:
    """What a run is asked to do. ``model`` is a name that ``agents.models`` knows."""

    spec: str
    kernel: str
    model: str = "rules"


def once(run: Run, stage: str, key: str, kind: type[R], effect: Callable[[], R]) -> R:
    """The record under ``key``, made by ``effect`` only where the run doesn't hold it yet."""
    event = run.find(key)
    if event is not None:
        return kind.from_json(event.payload)
    made = effect()
    run.record(stage, key, kind.__name__, made.to_json())
    return made

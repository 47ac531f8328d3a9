"""A run in hand: a stage whose record the run holds already is read back, not done again."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from .records import Record, digest_of
from .store import Run

R = TypeVar("R", bound=Record)


@dataclass
class Stages:
    """The run and the wall seconds of the stages that were really done in this process."""

    run: Run
    seconds: list[tuple[str, float]] = field(default_factory=list)
    held: int = field(init=False)

    def __post_init__(self) -> None:
        """Note how much the run holds already."""
        self.held = len(self.run.events())

    @property
    def idle(self) -> bool:
        """Whether nothing had to be done: everything was read back."""
        return len(self.run.events()) == self.held

    def once(self, stage: str, content: Sequence[str], kind: type[R], effect: Callable[[], R]) -> R:
        """The record for ``content``, made by ``effect`` only where the run doesn't hold it yet."""
        key = f"{stage}/{digest_of(chr(0).join(content))}"
        event = self.run.find(key)
        if event is not None:
            return kind.from_json(event.payload)
        made = self.timed(stage, effect)
        self.run.record(stage, key, kind.__name__, made.to_json())
        return made

    def timed(self, stage: str, effect: Callable[[], R]) -> R:
        """``effect``'s record, with its seconds noted."""
        begun = time.monotonic()
        made = effect()
        self.seconds.append((stage, round(time.monotonic() - begun, 3)))
        return made

    def keep(self, stage: str, records: Sequence[Record]) -> None:
        """Note records under their own content, for reports and later commands."""
        for record in records:
            self.run.record(stage, f"{stage}/{record.digest}", type(record).__name__, record.to_json())

"""What a pass answers: changed declarations with the reason for them, or named reasons why not."""

from __future__ import annotations

from astra_integrate.records import LaunchPlan, Record, Replacement


class Finding(Record):
    """Why a place was left as it is. ``line`` counts from 1 within the declaration that holds ``function``."""

    function: str
    line: int
    why: str

    def __str__(self) -> str:
        """One line."""
        return f"{self.function}, line {self.line}: {self.why}"


class Proposal(Record):
    """New texts for declarations; empty ``replaced`` means that the pass found nothing to change."""

    replaced: tuple[Replacement, ...] = ()
    plan: LaunchPlan = LaunchPlan()
    changes: tuple[str, ...] = ()
    declined: tuple[Finding, ...] = ()
    expected: str = ""

    @property
    def reasoning(self) -> str:
        """What was changed and what was left, in sentences."""
        left = [f"Left as it is: {finding}." for finding in self.declined]
        return " ".join([*(f"{change}." for change in self.changes), *left])


class NoMatch(Exception):
    """A place doesn't fit the pattern; the message is the reason, in the words of the report."""

    def __init__(self, why: str, offset: int) -> None:
        super().__init__(why)
        self.why = why
        self.offset = offset

"""From a host function to the kernels it reaches, over the references of all units."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence

from astra_integrate.extract.worker import UnitResult


class CallGraph:
    """Which of the framework's own functions and classes mention which, by qualified name.

    Units are joined by name, as the linker does: a function that one unit declares and another defines
    is one. Overloads share a name and so their references.
    """

    def __init__(self, results: Sequence[UnitResult], kernels: Collection[str]) -> None:
        self._kernels = kernels
        self._mentions: dict[str, set[str]] = defaultdict(set)
        self._files: dict[str, set[str]] = defaultdict(set)
        self._last: dict[str, set[str]] = defaultdict(set)
        for mention in (mention for result in results for mention in result.mentions):
            self._mentions[mention.name].update(mention.names)
            self._files[mention.name].add(mention.file)
            self._last[mention.name.split("::")[-1]].add(mention.name)

    def kernels(self, function: str, file: str | None) -> tuple[tuple[str, ...], bool]:
        """Kernels that ``function`` reaches, sorted, and whether it was clear which function is meant.

        ``function`` may lack leading namespaces; among several that fit, those in ``file`` are meant.
        """
        fitting = self._fitting(function) or self._through_alias(function)
        here = {name for name in fitting if file in self._files[name]}
        starts = here or fitting
        seen = set(starts)
        ring = list(starts)
        while ring:
            new = self._mentions.get(ring.pop(), set()) - seen
            seen |= new
            ring += [name for name in new if name not in self._kernels]
        return tuple(sorted(seen & set(self._kernels))), len(starts) <= 1

    def _fitting(self, function: str) -> set[str]:
        same = self._last.get(function.split("::")[-1], set())
        return {name for name in same if name == function or name.endswith(f"::{function}")}

    def _through_alias(self, function: str) -> set[str]:
        """``Alias::method`` for an alias of classes (a choice between two): the method of each."""
        owner, _, method = function.rpartition("::")
        classes = {name for alias in (self._fitting(owner) if owner else ()) for name in self._mentions[alias]}
        return {f"{name}::{method}" for name in classes if f"{name}::{method}" in self._mentions}

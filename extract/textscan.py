"""Is the index complete? Every ``__global__`` that the text holds is in it, or listed with the reason why not."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence

from astra_integrate.extract import cpp_text
from astra_integrate.extract.worker import UnitResult
from astra_integrate.records import Kernel, Unindexed

OTHER_DEVICE = "only a ROCm build compiles it"
OTHER_BRANCH = "only text for ROCm (#if USE_ROCM)"
NO_UNIT = "no unit of the CUDA build reads this file"
GENERATED = "only sources that the build generates read this file"
SKIPPED = "the preprocessor skips it for this architecture and these flags"
DECLARED = "declared here; no unit that is read defines it"
NOT_SEEN = "no unit's syntax tree holds it"


def unindexed(
    texts: Mapping[str, str],
    results: Sequence[UnitResult],
    kernels: Sequence[Kernel],
    other_device: Callable[[str], bool],
    generated: Callable[[str], bool],
) -> tuple[Unindexed, ...]:
    """Kernels in ``texts`` (path → text) that ``kernels`` lacks.

    Not counted: declarations of a kernel that is defined elsewhere, and ``__global__`` in a ``#define``
    (the kernels that a macro makes are found at its calls).

    Args:
        texts: the framework's own files.
        results: what the units told.
        kernels: the index.
        other_device: whether a file belongs to another device's build.
        generated: whether a file is one that only generated sources include.
    """
    names = {kernel.name.split("::")[-1] for kernel in kernels}
    known = _Places(kernels)
    why = _Reasons(results, other_device, generated)
    found: list[Unindexed] = []
    for path, text in texts.items():
        if "__global__" not in text:
            continue
        plain = cpp_text.blank(text, strings=True)
        active = cpp_text.without_rocm(plain)
        offsets = _Offsets(text)
        for mention in cpp_text.global_mentions(plain):
            at = offsets.bytes(mention.offset)
            declared = _declares(plain, mention.offset)
            if (declared and mention.name in names) or known.holds(path, at) or _in_define(plain, mention.offset):
                continue
            reason = OTHER_BRANCH if active[mention.offset] == " " else why.reason(path, at, declared)
            found.append(Unindexed(file=path, line=mention.line, name=mention.name or "(unnamed)", reason=reason))
    return tuple(sorted(found, key=lambda u: (u.file, u.line)))


class _Reasons:
    """Why a kernel of active text is not in any syntax tree."""

    def __init__(
        self, results: Sequence[UnitResult], other_device: Callable[[str], bool], generated: Callable[[str], bool]
    ) -> None:
        self._other_device = other_device
        self._generated = generated
        self._read = {file for result in results for file in _own(result)}
        self._failed = {file: result for result in results if result.fatal for file in _own(result)}
        self._skipped: dict[str, list[tuple[int, int]]] = defaultdict(list)
        for entry in (entry for result in results for entry in result.skipped):
            self._skipped[entry.file].append((entry.start, entry.end))

    def reason(self, path: str, at: int, declared: bool) -> str:
        """The reason for the byte ``at`` of ``path``; ``declared``: there is no body at that place."""
        if self._other_device(path):
            return OTHER_DEVICE
        if path not in self._read:
            return GENERATED if self._generated(path) else NO_UNIT
        if any(start <= at < end for start, end in self._skipped[path]):
            return SKIPPED
        if declared:
            return DECLARED
        if path in self._failed:
            return f"{self._failed[path].unit} could not be read: {self._failed[path].problems[0].text}"
        return NOT_SEEN


def _own(result: UnitResult) -> set[str]:
    return {name.removeprefix("@root/") for name in result.files if name.startswith("@root/")}


def _in_define(plain: str, offset: int) -> bool:
    start = offset
    while True:
        start = plain.rfind("\n", 0, start)
        if start < 0 or not re.search(r"\\\r?$", plain[max(0, start - 2) : start]):
            return re.compile(r"\s*#\s*define\b").match(plain, start + 1) is not None


def _declares(plain: str, offset: int) -> bool:
    """Whether the function from ``offset`` on has no body: a ``;`` comes before any brace."""
    position = offset
    while True:
        match = re.compile(r"[({;]").search(plain, position)
        if match is None or match[0] != "(":
            return match is None or match[0] == ";"
        position = cpp_text.closing(plain, match.start())


class _Places:
    """Extents of kernels, for "is this byte inside one?"."""

    def __init__(self, kernels: Sequence[Kernel]) -> None:
        self._by_file: dict[str, list[tuple[int, int]]] = defaultdict(list)
        for kernel in kernels:
            self._by_file[kernel.extent.file].append((kernel.extent.start, kernel.extent.end))
        for extents in self._by_file.values():
            extents.sort()

    def holds(self, file: str, offset: int) -> bool:
        extents = self._by_file.get(file, [])
        index = bisect_right(extents, (offset, 1 << 62)) - 1
        return index >= 0 and extents[index][0] <= offset < extents[index][1]


class _Offsets:
    """Offsets in characters into offsets in bytes."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._ascii = text.isascii()

    def bytes(self, offset: int) -> int:
        return offset if self._ascii else len(self._text[:offset].encode("utf-8", "surrogateescape"))

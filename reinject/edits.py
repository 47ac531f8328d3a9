"""A lowering as frozen edits of the framework's files, by the slice's source map."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from pathlib import Path

from astra_integrate.errors import BadInput, CheckFailed
from astra_integrate.records import Declaration, Edit, Extent, Lowering, Slice
from astra_integrate.reinject.apply import digest, patched

# Bytes on each side of an edit that must be as they were.
_NEAR = 64


def edits_for(slice: Slice, lowering: Lowering) -> tuple[Edit, ...]:
    """The edits that put ``lowering`` into the slice's source, in the order of files and places.

    A replaced declaration becomes edits of the lines that differ; an addition becomes an insertion
    after (or before) its anchor that needs the anchor's bytes unchanged.

    Raises:
        CheckFailed: the source's files are no longer those that the slice was cut from.
        BadInput: the slice has no host function, so nothing would launch the new code.
    """
    if slice.host_function is None:
        raise BadInput(
            f"{slice.kernel.name} was extracted without an op: no host function is known to launch it",
            "Name the op instead of the kernel",
        )
    files = _Files(Path(slice.source.root))
    edits: list[Edit] = []
    for replacement in lowering.replaced:
        declaration = slice.declaration(replacement.declaration)
        files.check(declaration)
        edits += _hunks(declaration, replacement.text)
    inserted: dict[tuple[str, int], list[tuple[str, Extent]]] = {}
    for addition in lowering.added:
        anchor = slice.declaration(addition.anchor)
        data = files.check(anchor)
        place, text = (
            _before(data, anchor, addition.text) if addition.where == "before" else _after(data, anchor, addition.text)
        )
        inserted.setdefault((anchor.extent.file, place), []).append((text, anchor.extent))
    for (file, place), parts in inserted.items():
        extent = Extent(file=file, start=place, end=place, bytes_digest=digest(b""))
        context = tuple(dict.fromkeys(anchor for _, anchor in parts))
        edits.append(Edit(extent=extent, text="".join(text for text, _ in parts), context=context))
    return sealed(Path(slice.source.root), edits)


def sealed(root: Path, edits: Iterable[Edit]) -> tuple[Edit, ...]:
    """``edits`` tied to the files under ``root``; sorted by place.

    Each gets the digests of its whole file before and after, and the bytes on both sides as context:
    these tell an edited file from an untouched one where the file has changed elsewhere.
    """
    by_file: dict[str, list[Edit]] = {}
    for edit in edits:
        by_file.setdefault(edit.extent.file, []).append(edit)
    done: list[Edit] = []
    for file in sorted(by_file):
        data = (root / file).read_bytes()
        own = sorted(by_file[file], key=lambda e: (e.extent.start, e.extent.end > e.extent.start))
        before, after = digest(data), digest(patched(data, own))
        for edit in own:
            context = dict.fromkeys([*edit.context, *_sides(data, edit.extent)])
            done.append(edit.model_copy(update={"before": before, "after": after, "context": tuple(context)}))
    return tuple(done)


def _sides(data: bytes, extent: Extent) -> list[Extent]:
    places = [(max(0, extent.start - _NEAR), extent.start), (extent.end, min(len(data), extent.end + _NEAR))]
    return [Extent(file=extent.file, start=a, end=b, bytes_digest=digest(data[a:b])) for a, b in places if a < b]


class _Files:
    """The bytes of each file, read once."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._read: dict[str, bytes] = {}

    def check(self, declaration: Declaration) -> bytes:
        """The file's bytes; raises where the declaration's are not those in the slice."""
        extent = declaration.extent
        if extent.file not in self._read:
            try:
                self._read[extent.file] = (self._root / extent.file).read_bytes()
            except FileNotFoundError as error:
                raise CheckFailed(
                    f"{extent.file} is gone from {self._root}", "Extract from this source again"
                ) from error
        data = self._read[extent.file]
        if data[extent.start : extent.end] != declaration.text.encode("utf-8", "surrogateescape"):
            raise CheckFailed(
                f"{extent.file} has changed: bytes {extent.start}–{extent.end} are not {declaration.id}",
                "Extract from this source again",
            )
        return data


def _hunks(declaration: Declaration, text: str) -> list[Edit]:
    """Edits of the lines of ``declaration`` that differ from ``text``, line ends aside."""
    old, new = _lines(declaration.text), _lines(text)
    matcher = difflib.SequenceMatcher(None, list(map(_bare, old)), list(map(_bare, new)), autojunk=False)
    starts = [declaration.extent.start]
    for line in old:
        starts.append(starts[-1] + len(line.encode("utf-8", "surrogateescape")))
    edits: list[Edit] = []
    for kind, a, b, c, d in matcher.get_opcodes():
        if kind == "equal":
            continue
        removed = "".join(old[a:b]).encode("utf-8", "surrogateescape")
        extent = Extent(file=declaration.extent.file, start=starts[a], end=starts[b], bytes_digest=digest(removed))
        edits.append(Edit(extent=extent, text="".join(new[c:d]), context=(declaration.extent,)))
    return edits


def _lines(text: str) -> list[str]:
    """Lines with their ends; only ``\\n`` ends a line (``splitlines`` knows many more)."""
    return re.findall(r"[^\n]*\n|[^\n]+", text)


def _bare(line: str) -> str:
    return line[:-2] + "\n" if line.endswith("\r\n") else line


def _after(data: bytes, anchor: Declaration, text: str) -> tuple[int, str]:
    """Where and how ``text`` stands after the anchor: a blank line, then the text."""
    end = anchor.extent.end
    line_end = _find(data, b"\n", end)
    rest = data[end:line_end].rstrip(b"\r")
    if re.fullmatch(rb"[ \t]*(//[^\n]*|/\*[^\n]*\*/[ \t]*)?", rest):
        following = data[line_end + 1 : _find(data, b"\n", line_end + 1)].strip()
        gap = "\n" if following and not following.startswith((b"#", b"}")) else ""
        return end + len(rest), "\n\n" + text.strip("\r\n") + gap
    return end, "\n\n" + text.strip("\r\n") + "\n\n"


def _before(data: bytes, anchor: Declaration, text: str) -> tuple[int, str]:
    """Where and how ``text`` stands before the anchor and the comment that belongs to it."""
    start = anchor.extent.start
    line = data.rfind(b"\n", 0, start) + 1
    if data[line:start].strip():
        return start, "\n" + text.strip("\r\n") + "\n\n"
    return _above_comment(data, line), text.strip("\r\n") + "\n\n"


def _above_comment(data: bytes, line: int) -> int:
    """Start of the comment lines right above the line that starts at ``line``."""
    while line > 0:
        previous = data.rfind(b"\n", 0, line - 1) + 1
        if not data[previous:line].lstrip().startswith(b"//"):
            break
        line = previous
    above = data[:line]
    if above.rstrip(b" \t\r").endswith(b"*/\n") or re.search(rb"\*/[ \t\r]*\n\Z", above):
        opening = above.rfind(b"/*")
        start = above.rfind(b"\n", 0, opening) + 1 if opening >= 0 else line
        if opening >= 0 and not above[start:opening].strip():
            return start
    return line


def _find(data: bytes, what: bytes, start: int) -> int:
    found = data.find(what, start)
    return len(data) if found < 0 else found

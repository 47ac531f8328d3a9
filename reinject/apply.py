"""The one applier of edits: everything is checked before anything is written, and it can be taken back.

Works on bytes. New text takes the line end of the lines around it, so a file keeps its own.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from astra_integrate.errors import BadInput, CheckFailed
from astra_integrate.records import Edit, Extent


@dataclass(frozen=True)
class Applied:
    """What :func:`apply` did. ``files`` were written; ``undo`` are exact edits that take all back.

    ``already`` are files that held the edits before; when all did, nothing was written.
    """

    files: tuple[str, ...]
    already: tuple[str, ...]
    undo: tuple[Edit, ...]

    @property
    def summary(self) -> str:
        """One line for a person."""
        if not self.files:
            return f"already applied: {', '.join(self.already) or 'there are no edits'}"
        kept = f"; already applied: {', '.join(self.already)}" if self.already else ""
        return f"applied to {', '.join(self.files)}{kept}"


def apply(root: Path, edits: Iterable[Edit], *, exact: bool = False, dry_run: bool = False) -> Applied:
    """Apply ``edits`` to the files under ``root``; a file that holds them already is left as it is.

    Args:
        root: the folder that the edits' files are relative to.
        edits: any number of edits of any number of files, not overlapping.
        exact: write the texts as they are, without fitting line ends (for ``undo``).
        dry_run: check only.

    Raises:
        CheckFailed: bytes are not those that an edit was made for; names file and byte range. Nothing is written.
        BadInput: a path that leads out of ``root``, a file that isn't there, or overlapping edits.
    """
    new: dict[str, bytes] = {}
    undo: list[Edit] = []
    already: list[str] = []
    old: dict[str, bytes] = {}
    for file, own in _by_file(edits).items():
        data = _read(root, file)
        if _holds(data, own, exact):
            already.append(file)
            continue
        _check_original(data, own)
        new[file], old[file] = patched(data, own, exact=exact), data
        undo += _inverse(file, data, own, exact)
    if not dry_run:
        _write(root, new, old)
    return Applied(tuple(new), tuple(already), tuple(undo))


def undo(root: Path, inverse: Iterable[Edit]) -> Applied:
    """Take back what :func:`apply` did, byte for byte, by the ``undo`` edits that it returned."""
    return apply(root, inverse, exact=True)


def patched(data: bytes, edits: Sequence[Edit], *, exact: bool = False) -> bytes:
    """``data`` with all ``edits`` (of one file); their digests are not looked at."""
    pieces: list[bytes] = []
    done = 0
    for edit in _sorted(edits):
        pieces += [data[done : edit.extent.start], _bytes(edit, data, exact)]
        done = edit.extent.end
    return b"".join([*pieces, data[done:]])


def line_end(data: bytes, start: int, end: int) -> bytes:
    r"""The line end around bytes ``start`` to ``end``: that of the line before, else of the next one, else ``\n``."""
    before = data.rfind(b"\n", 0, start)
    found = before if before >= 0 else data.find(b"\n", end)
    return b"\r\n" if found > 0 and data[found - 1 : found] == b"\r" else b"\n"


def digest(data: bytes) -> str:
    """SHA-256 (hex)."""
    return hashlib.sha256(data).hexdigest()


def _bytes(edit: Edit, data: bytes, exact: bool) -> bytes:
    new = edit.text.encode("utf-8", "surrogateescape")
    if exact:
        return new
    return _with_line_end(new, line_end(data, edit.extent.start, edit.extent.end))


def _with_line_end(text: bytes, end: bytes) -> bytes:
    return text.replace(b"\r\n", b"\n").replace(b"\n", end)


def _sorted(edits: Iterable[Edit]) -> list[Edit]:
    """By place; insertions at a place before a replacement that starts there, in the given order."""
    ordered = sorted(edits, key=lambda e: (e.extent.start, e.extent.end > e.extent.start))
    for before, after in pairwise(ordered):
        if after.extent.start < before.extent.end:
            raise BadInput(
                f"Two edits overlap in {after.extent.file}: bytes {_range(before.extent)} and {_range(after.extent)}"
            )
    return ordered


def _by_file(edits: Iterable[Edit]) -> dict[str, list[Edit]]:
    files: dict[str, list[Edit]] = {}
    for edit in edits:
        files.setdefault(edit.extent.file, []).append(edit)
    return {file: _sorted(own) for file, own in files.items()}


def _path(root: Path, file: str) -> Path:
    path = (root / file).resolve()
    if not path.is_relative_to(root.resolve()):
        raise BadInput(f"The edit of {file} leads out of {root}")
    return path


def _read(root: Path, file: str) -> bytes:
    try:
        return _path(root, file).read_bytes()
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError) as error:
        raise BadInput(
            f"{file}, which is to be edited, is not in {root}", "Take the source the edits were made for"
        ) from error


def _holds(data: bytes, edits: Sequence[Edit], exact: bool) -> bool:
    """Whether the file holds the edits already."""
    whole = digest(data)
    if edits[0].after and whole == edits[0].after:
        return True
    if edits[0].before and whole == edits[0].before:
        return False
    # The file differs elsewhere: what counts is the bytes at the edits' places.
    if all(_unchanged(data, extent, 0) for edit in edits for extent in (edit.extent, *edit.context)):
        return False
    return _found_applied(data, edits, exact)


def _found_applied(data: bytes, edits: Sequence[Edit], exact: bool) -> bool:
    shift = 0
    shifts: list[tuple[int, int]] = []
    for edit in edits:
        start = edit.extent.start + shift
        new = edit.text.encode("utf-8", "surrogateescape")
        forms = (new,) if exact else (_with_line_end(new, b"\n"), _with_line_end(new, b"\r\n"))
        held = next((form for form in forms if data[start : start + len(form)] == form), None)
        if held is None:
            return False
        shift += len(held) - (edit.extent.end - edit.extent.start)
        shifts.append((edit.extent.end, shift))
    for edit in edits:
        # A context that an edit changes can't be checked any more; one that merely moved can, and one is needed:
        # the new text alone may stand there by chance.
        moved = [extent for extent in edit.context if not any(_overlap(extent, other.extent) for other in edits)]
        if not moved or not all(_unchanged(data, extent, _shift_at(shifts, extent.start)) for extent in moved):
            return False
    return True


def _overlap(context: Extent, edited: Extent) -> bool:
    return edited.start < context.end and edited.end > context.start


def _shift_at(shifts: Sequence[tuple[int, int]], place: int) -> int:
    return next((shift for end, shift in reversed(shifts) if end <= place), 0)


def _unchanged(data: bytes, extent: Extent, shift: int) -> bool:
    return digest(data[extent.start + shift : extent.end + shift]) == extent.bytes_digest


def _check_original(data: bytes, edits: Sequence[Edit]) -> None:
    for edit in edits:
        for extent in (*edit.context, edit.extent):
            if extent.end > len(data) or not _unchanged(data, extent, 0):
                raise CheckFailed(
                    f"{extent.file} has changed: bytes {_range(extent)} are not those that the edit was made for",
                    "Nothing was written. Extract from this source again",
                )


def _range(extent: Extent) -> str:
    return f"{extent.start}–{extent.end}"


def _inverse(file: str, data: bytes, edits: Sequence[Edit], exact: bool) -> list[Edit]:
    """Exact edits of the edited file that bring ``data`` back."""
    before, after = digest(data), digest(patched(data, edits, exact=exact))
    inverse: list[Edit] = []
    shift = 0
    for edit in edits:
        new, start, end = _bytes(edit, data, exact), edit.extent.start, edit.extent.end
        place = Extent(file=file, start=start + shift, end=start + shift + len(new), bytes_digest=digest(new))
        text = data[start:end].decode("utf-8", "surrogateescape")
        inverse.append(Edit(extent=place, text=text, before=after, after=before))
        shift += len(new) - (end - start)
    return inverse


def _write(root: Path, new: Mapping[str, bytes], old: Mapping[str, bytes]) -> None:
    """All files beside their places first, then all renames; a failing rename takes the earlier ones back."""
    waiting: list[tuple[Path, Path, str]] = []
    try:
        for file, data in new.items():
            path = _path(root, file)
            waiting.append((_beside(path, data), path, file))
        renamed: list[tuple[Path, str]] = []
        try:
            for temporary, path, file in waiting:
                os.replace(temporary, path)
                renamed.append((path, file))
        except OSError:
            for path, file in renamed:
                os.replace(_beside(path, old[file]), path)
            raise
    finally:
        for temporary, _, _ in waiting:
            temporary.unlink(missing_ok=True)


def _beside(path: Path, data: bytes) -> Path:
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        shutil.copymode(path, name)
    except OSError:
        Path(name).unlink(missing_ok=True)
        raise
    return Path(name)

"""Disk space: asked for before a long write, and told in one line when it runs out."""

from __future__ import annotations

import errno
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ..errors import BadInput, FetchFailed

MARGIN = 64 << 20
FREE_SPACE = "Free some space (astra cache clear) or set ASTRA_HOME to a folder on another disk"
_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_FORBIDDEN = {errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.EEXIST}


def size_text(size: float) -> str:
    """``size`` bytes as a person reads them: ``12.8 MB``."""
    for unit in ("B", "kB", "MB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} GB"


def require_space(folder: Path, size: int, what: str) -> None:
    """Raise :class:`FetchFailed` where the disk of ``folder`` can't take ``size`` more bytes for ``what``."""
    free = shutil.disk_usage(folder).free
    if free < size + MARGIN:
        raise FetchFailed(
            f"No disk space for {what}: it needs {size_text(size)} and {folder} has {size_text(free)} free",
            FREE_SPACE,
        )


@contextmanager
def writing(folder: Path, what: str) -> Iterator[None]:
    """Turn a full, read-only or forbidden disk met while writing ``what`` to ``folder`` into one clear line."""
    try:
        yield
    except OSError as error:
        if error.errno in _FULL:
            raise FetchFailed(
                f"No disk space left in {folder} while writing {what} ({error.strerror})",
                FREE_SPACE,
            ) from error
        if error.errno in _FORBIDDEN:
            raise BadInput(
                f"{folder} can't be written while making {what} ({error.strerror})",
                "Set ASTRA_HOME to a folder that you may write",
            ) from error
        raise

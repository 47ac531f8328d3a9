"""One process at a time: a lock file that names its holder and that the kernel frees when the holder dies."""

from __future__ import annotations

import json
import os
import socket
from pathlib import Path
from types import TracebackType
from typing import Self

from filelock import FileLock, Timeout

from .errors import BadInput


class Exclusive:
    """Exclusive use of something on disk, for as long as this object (or its ``with`` block) holds it.

    A holder that was killed leaves nothing behind that has to be cleaned up: the lock is the
    operating system's, and the holder's name beside it is only read while the lock is taken.

    Args:
        path: the lock file; its folder exists.
        what: what is locked, for the message, for example ``"Run 20260101-x"``.
        wait: seconds to wait for another holder; 0 means give up at once.
    """

    def __init__(self, path: Path, what: str, wait: float = 0.0) -> None:
        self.what = what
        self._owner = path.with_name(path.name + ".owner")
        # Not bound to a thread: a run may be closed from another thread than the one that opened it.
        self._lock = FileLock(path, timeout=wait, thread_local=False)

    def acquire(self) -> Self:
        """Take the lock; raises :class:`BadInput` that names the process that has it."""
        try:
            self._lock.acquire()
        except Timeout:
            raise BadInput(
                f"{self.what} is in use by {self.holder()}", "Wait until that is done, or stop it, then try again"
            ) from None
        # Beside the lock and not in it: whoever tries for a lock empties the lock file first.
        try:
            self._owner.write_text(json.dumps({"pid": os.getpid(), "host": socket.gethostname()}), encoding="utf-8")
        except OSError:
            self._lock.release()
            raise
        return self

    def release(self) -> None:
        """Give the lock back; does nothing where it isn't held."""
        if self._lock.is_locked:
            self._owner.unlink(missing_ok=True)
            self._lock.release()

    def holder(self) -> str:
        """Who holds the lock, in words; only true while somebody does."""
        owner = self._read_owner()
        if owner is None:
            return "another process"
        pid, host = owner
        return f"process {pid}" if host == socket.gethostname() else f"process {pid} on {host}"

    def seen_holder(self) -> str | None:
        """Who seems to hold the lock, found without trying for it (a trial would get in the way of a taker)."""
        owner = self._read_owner()
        if owner is None or (owner[1] == socket.gethostname() and not _alive(owner[0])):
            return None
        return self.holder()

    def _read_owner(self) -> tuple[int, str] | None:
        try:
            owner = json.loads(self._owner.read_text(encoding="utf-8"))
            return int(owner["pid"]), str(owner["host"])
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def __enter__(self) -> Self:
        """Take the lock."""
        return self.acquire()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Give the lock back."""
        self.release()


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True

"""The few errors that astra raises; each message says what, where and the way out."""

from __future__ import annotations


class AstraError(Exception):
    """Base of every error a user may see.

    Args:
        message: one line that names the thing that is wrong.
        way_out: one line that tells how to mend it; may be empty where nothing can be done.
    """

    exit_code = 2

    def __init__(self, message: str, way_out: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.way_out = way_out

    def __str__(self) -> str:
        """Message and way out as one line."""
        return f"{self.message}. {self.way_out}" if self.way_out else self.message


class BadInput(AstraError):
    """The request, a source, an archive or a setting can't be used as given (exit 2)."""


class MissingTool(AstraError):
    """A compiler, header set or program is not there and couldn't be fetched (exit 2)."""


class FetchFailed(AstraError):
    """The package index or git remote didn't give what was asked for (exit 2)."""


class CheckFailed(AstraError):
    """Something was checked and did not hold (exit 1)."""

    exit_code = 1


class NotMeasured(AstraError):
    """Everything ran, but something asked for can't be measured on this machine (exit 3)."""

    exit_code = 3

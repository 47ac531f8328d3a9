"""What every record shares: frozen, no unknown fields, JSON round trip, digest by content."""

from __future__ import annotations

import hashlib
import json
from typing import Self

from pydantic import BaseModel, ConfigDict


class Record(BaseModel):
    """A frozen piece of data that one stage hands to the next."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    def to_json(self) -> str:
        """One line of JSON that :meth:`from_json` reads back to an equal record."""
        # Not pydantic's own writer: it makes null of NaN and infinity, and refuses the surrogates that stand for
        # bytes of a source that are no UTF-8.
        return json.dumps(self.model_dump(), ensure_ascii=True, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """Read what :meth:`to_json` wrote; raises pydantic's ``ValidationError`` on anything else."""
        try:
            document = json.loads(text)
        except ValueError:
            document = None  # which validation refuses, as it does anything else that is no object
        return cls.model_validate(document)

    @property
    def digest(self) -> str:
        """SHA-256 (hex) of the record's JSON: equal records have equal digests."""
        return digest_of(self.to_json())


def digest_of(text: str | bytes) -> str:
    """SHA-256 (hex) of ``text`` (UTF-8 with surrogateescape where it is a string)."""
    return hashlib.sha256(text.encode("utf-8", "surrogateescape") if isinstance(text, str) else text).hexdigest()

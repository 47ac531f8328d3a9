"""What every record shares: frozen, no unknown fields, JSON round trip, digest by content."""

from __future__ import annotations

import hashlib
from typing import Self

from pydantic import BaseModel, ConfigDict


class Record(BaseModel):
    """A frozen piece of data that one stage hands to the next."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    def to_json(self) -> str:
        """One line of JSON that :meth:`from_json` reads back to an equal record."""
        return self.model_dump_json()

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """Read what :meth:`to_json` wrote; raises pydantic's ``ValidationError`` on anything else."""
        return cls.model_validate_json(text)

    @property
    def digest(self) -> str:
        """SHA-256 (hex) of the record's JSON: equal records have equal digests."""
        return digest_of(self.to_json())


def digest_of(text: str | bytes) -> str:
    """SHA-256 (hex) of ``text`` (UTF-8 where it is a string)."""
    return hashlib.sha256(text.encode() if isinstance(text, str) else text).hexdigest()

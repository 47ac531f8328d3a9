"""One number for a kernel's code: what a person would call "the same text" has the same."""

from __future__ import annotations

import re

from astra_integrate.extract import cpp_text
from astra_integrate.records import digest_of


def body_hash(text: str) -> str:
    """SHA-256 of a declaration's text without comments and with every run of white space as one space."""
    plain = cpp_text.blank(text.replace("\\\r\n", " ").replace("\\\n", " "))
    return digest_of(re.sub(r"\s+", " ", plain).strip().encode("utf-8", "surrogateescape"))

"""What a user may write for SOURCE, taken apart; nothing is fetched or opened here."""

from __future__ import annotations

import difflib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from packaging.version import InvalidVersion, Version

from ..errors import BadInput

FORMS = "Write NAME==VERSION, NAME@GIT-REF, NAME (the newest release), installed:NAME, or a path such as ./checkout"
_COMPARISONS = (">=", "<=", "~=", "!=", "===", ">", "<")


@dataclass(frozen=True)
class Spec:
    """A source as asked for.

    ``version`` is None for the newest release, ``ref`` a git tag, branch or commit, ``python`` the
    interpreter whose installation is meant (None: this one). Fields that the kind doesn't use are None.
    """

    kind: Literal["release", "git", "path", "installed"]
    framework: str | None
    version: str | None = None
    ref: str | None = None
    path: Path | None = None
    python: Path | None = None

    def __str__(self) -> str:
        """The spelling that :func:`parse_spec` reads back to an equal spec."""
        if self.kind == "path":
            text = str(self.path)
            return text if text.startswith(("/", "../")) or text in (".", "..") else f"./{text}"
        if self.kind == "git":
            return f"{self.framework}@{self.ref}"
        if self.kind == "installed":
            return f"installed:{self.framework}" + (f":{self.python}" if self.python else "")
        return f"{self.framework}=={self.version}" if self.version else str(self.framework)


def parse_spec(text: str, names: Sequence[str]) -> Spec:
    """Read SOURCE; ``names`` are the known frameworks. Raises :class:`BadInput` with near names."""
    asked = text.strip()
    if not asked or "\0" in asked:
        raise BadInput("No source is given", FORMS)
    if asked.startswith("installed:"):
        name, _, python = asked.removeprefix("installed:").partition(":")
        return Spec("installed", _framework(name, names), python=Path(os.path.expanduser(python)) if python else None)
    if asked.startswith(("/", "./", "../", "~")) or asked in (".", ".."):
        return Spec("path", None, path=Path(os.path.expanduser(asked)))
    name, at, ref = asked.partition("@")
    if at and "=" not in name and "/" not in name:
        return Spec("git", _framework(name, names), ref=_ref(ref.strip(), asked))
    name, equals, version = asked.partition("==")
    if equals and not version.startswith("=") and "/" not in name:
        return Spec("release", _framework(name.strip(), names), version=_version(version.strip(), asked))
    for comparison in _COMPARISONS:
        if comparison in asked and asked.partition(comparison)[0].strip().lower() in names:
            raise BadInput(f"{asked!r} names no single version", FORMS)
    if asked.lower() in names:
        return Spec("release", asked.lower())
    if "/" in asked or os.path.exists(asked):
        return Spec("path", None, path=Path(asked))
    return Spec("release", _framework(asked, names))


def _framework(name: str, names: Sequence[str]) -> str:
    plain = name.strip().lower()
    if plain in names:
        return plain
    near = difflib.get_close_matches(plain, names, n=3, cutoff=0.4)
    hint = f"Did you mean {' or '.join(near)}? " if near else ""
    raise BadInput(f"{name!r} is no known framework", f"{hint}Known are: {', '.join(names)}. {FORMS}")


def _version(text: str, asked: str) -> str:
    try:
        return str(Version(text))
    except InvalidVersion as error:
        raise BadInput(f"{text!r} in {asked!r} is not a version", FORMS) from error


def _ref(text: str, asked: str) -> str:
    # Git's own rules forbid these in names; a leading dash would be read as an option.
    bad = (
        not text
        or text.startswith("-")
        or ".." in text
        or any(letter in " ~^:?*[\\\x7f" or letter < " " for letter in text)
    )
    if bad:
        raise BadInput(f"{text!r} in {asked!r} is not a git tag, branch or commit", FORMS)
    return text

"""Where packages come from: astra's own setting, else what pip is configured to use, else pip's default."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from urllib.parse import urlsplit, urlunsplit

from pypi_simple import PYPI_SIMPLE_ENDPOINT

from ..settings import Settings

_SECTIONS = ("global", "download", ":env:")


@dataclass(frozen=True)
class Configuration:
    """Index URLs in the order in which they are asked, and how to reach them.

    ``seconds`` is the time-out of one read, ``certificate`` a bundle file, ``trusted`` hosts
    whose certificate isn't checked.
    """

    indexes: tuple[str, ...]
    certificate: str | None = None
    client_certificate: str | None = None
    proxy: str | None = None
    trusted: frozenset[str] = frozenset()
    seconds: float = 60.0


def configuration(settings: Settings) -> Configuration:
    """The configuration in force; no index at all where pip is told ``no-index``."""
    pip = _pip_values()
    extra = tuple(pip.get("extra-index-url", "").split())
    if settings.index_url:
        indexes: tuple[str, ...] = (settings.index_url,)
    elif pip.get("no-index", "").lower() in ("1", "true", "yes", "on"):
        indexes = ()
    else:
        indexes = (pip.get("index-url") or PYPI_SIMPLE_ENDPOINT, *extra)
    return Configuration(
        indexes=indexes,
        certificate=pip.get("cert"),
        client_certificate=pip.get("client-cert"),
        proxy=pip.get("proxy"),
        trusted=frozenset(pip.get("trusted-host", "").split()),
        seconds=_seconds(pip),
    )


def _seconds(pip: dict[str, str]) -> float:
    try:
        return max(5.0, float(pip.get("timeout") or pip.get("default-timeout") or 60))
    except ValueError:
        return 60.0


def _pip_values() -> dict[str, str]:
    values = dict(_pip_files())
    for name, value in os.environ.items():
        if name.startswith("PIP_") and value:
            values[name[4:].lower().replace("_", "-")] = value
    return values


@cache
def _pip_files() -> tuple[tuple[str, str], ...]:
    """What pip's configuration files say, the stronger section last; empty where there is no pip."""
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "config", "list"]
    try:
        listed = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ()
    return parse_pip_list(listed.stdout) if listed.returncode == 0 else ()


def parse_pip_list(text: str) -> tuple[tuple[str, str], ...]:
    """Name and value of each line ``section.name='value'`` of ``pip config list`` that concerns downloads."""
    found: list[tuple[int, str, str]] = []
    for line in text.splitlines():
        key, equals, value = line.partition("=")
        section, dot, name = key.rpartition(".")
        if not equals or not dot or section not in _SECTIONS:
            continue
        try:
            read = ast.literal_eval(value)
        except (ValueError, SyntaxError):
            continue
        found.append((_SECTIONS.index(section), name, str(read)))
    return tuple((name, value) for _, name, value in sorted(found, key=lambda item: item[0]))


def without_secrets(url: str) -> str:
    """``url`` without user name, password, query and fragment, for messages."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    return urlunsplit((parts.scheme, host, parts.path, "", ""))

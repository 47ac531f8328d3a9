"""One program or header set that astra uses, and how its version is asked for."""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Tool:
    """One thing astra uses. ``path`` is None where it is missing; then ``mend`` is the one line that gets it."""

    name: str
    path: Path | None
    version: str = ""
    origin: str = ""
    mend: str = ""


def output(program: Path, *arguments: str, stdin: str = "", seconds: float = 30.0) -> str | None:
    """What ``program`` prints (stdout, then stderr); None where it can't be run, fails or takes too long."""
    try:
        done = subprocess.run(
            [str(program), *arguments], input=stdin, capture_output=True, text=True, timeout=seconds, errors="replace"
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout + done.stderr if done.returncode == 0 else None


def cuda_version(program: Path) -> str | None:
    """``13.0.88`` out of the ``--version`` of an NVIDIA tool; None where it doesn't run."""
    text = output(program, "--version")
    match = re.search(r"\bV(\d+(?:\.\d+)+)", text or "")
    return match.group(1) if match else None


def first_number(text: str) -> str:
    """The first dotted number in ``text``, or nothing."""
    match = re.search(r"\d+(?:\.\d+)+", text)
    return match.group(0) if match else ""

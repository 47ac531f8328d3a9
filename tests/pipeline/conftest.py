from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from astra_integrate.settings import Settings

ASTRA = [sys.executable, "-c", "from astra_integrate.cli import main; main()"]
ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Finished:
    code: int
    out: str
    err: str

    @property
    def document(self):
        return json.loads(self.out)


class Astra:
    """The command in a process of its own, as a user starts it."""

    def __init__(self, settings: Settings) -> None:
        self.home = settings.home
        self.environment = {
            **os.environ,
            "ASTRA_HOME": str(settings.home),
            "ASTRA_PATCHES": str(settings.home / "patches"),
            "PYTHONPATH": str(ROOT),
        }

    def __call__(self, *arguments: str, timeout: float = 900, **environment: str) -> Finished:
        done = subprocess.run(
            [*ASTRA, *arguments],
            env={**self.environment, **environment},
            capture_output=True,
            text=True,
            timeout=timeout,
            cwd=self.home,
        )
        return Finished(done.returncode, done.stdout, done.stderr)

    def start(self, *arguments: str) -> subprocess.Popen[bytes]:
        """Begin without waiting; the process leads a group of its own, so that a kill reaches its children."""
        return subprocess.Popen(
            [*ASTRA, *arguments],
            env=self.environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            cwd=self.home,
        )


@pytest.fixture(scope="session")
def astra(settings_: Settings) -> Astra:
    return Astra(settings_)

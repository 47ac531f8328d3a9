"""The project built as a user gets it, once per session, from a copy so that the checkout stays clean."""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
import tarfile
import venv
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LINKED = ("extract", "reinject", "agents", "patches")
_NOT_COPIED = shutil.ignore_patterns(
    ".git", ".venv*", "build", "dist", "out", "*.egg-info", "__pycache__", ".*_cache", ".hypothesis"
)


def copy_checkout(target: Path) -> Path:
    """What a clone holds, links as links."""
    shutil.copytree(ROOT, target, symlinks=True, ignore=_NOT_COPIED)
    return target


def run(*command: str | Path, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a command with nothing of this checkout on its path."""
    kept = {"PATH": "/usr/bin:/bin", "HOME": str(cwd), "ASTRA_HOME": str(cwd / "astra-home"), **environment}
    return subprocess.run([str(part) for part in command], cwd=cwd, env=kept, capture_output=True, text=True)


def succeed(*command: str | Path, cwd: Path) -> str:
    done = run(*command, cwd=cwd)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def build(what: str, source: Path, target: Path) -> Path:
    """``sdist`` or ``wheel`` of the tree ``source``; not isolated, so that no index is asked."""
    succeed(sys.executable, "-m", "build", "--no-isolation", f"--{what}", "--outdir", target, source, cwd=source.parent)
    (made,) = target.iterdir()
    return made


@dataclass(frozen=True)
class Environment:
    """A fresh virtual environment that sees this one's dependencies, and of the project only what is installed."""

    folder: Path

    @property
    def python(self) -> Path:
        return self.folder / "bin" / "python"

    @property
    def astra(self) -> Path:
        return self.folder / "bin" / "astra"

    def install(self, *what: str | Path) -> None:
        pip = [sys.executable, "-m", "pip", "--python", self.python, "--disable-pip-version-check"]
        succeed(*pip, "install", "--no-deps", "--no-index", "--no-build-isolation", *what, cwd=self.folder.parent)


@pytest.fixture
def environment(tmp_path: Path) -> Environment:
    folder = tmp_path / "venv"
    venv.create(folder, with_pip=False, symlinks=True)
    (site,) = (folder / "lib").glob("python*/site-packages")
    # A plain line adds the folder but runs none of its .pth files: an editable install of this checkout stays unseen.
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
    return Environment(folder)


@pytest.fixture(scope="session")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return copy_checkout(tmp_path_factory.mktemp("checkout") / "astra")


@pytest.fixture(scope="session")
def sdist(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build("sdist", checkout, tmp_path_factory.mktemp("sdist"))


@pytest.fixture(scope="session")
def unpacked_sdist(sdist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("unpacked")
    with tarfile.open(sdist) as archive:
        # The first 3.11 releases have no filters; the archive is our own.
        archive.extractall(folder, **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))
    (made,) = folder.iterdir()
    return made


@pytest.fixture(scope="session")
def wheel(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build("wheel", checkout, tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="session")
def wheel_of_sdist(unpacked_sdist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build("wheel", unpacked_sdist, tmp_path_factory.mktemp("wheel-of-sdist"))

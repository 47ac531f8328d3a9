"""``make setup`` on machines that lack something: one clear line, exit code 2, nothing half made."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from .conftest import ROOT

pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="no make here")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A checkout as far as ``make setup`` looks at it before pip runs."""
    for name in ("Makefile", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def setup(project: Path, **variables: str | Path) -> subprocess.CompletedProcess[str]:
    # The make that may run these tests hands its own VENV down in MAKEFLAGS.
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS", "PYTHON", "VENV"))
    }
    return subprocess.run(
        ["make", "-s", "setup", *(f"{name}={value}" for name, value in variables.items())],
        cwd=project,
        env=kept,
        capture_output=True,
        text=True,
    )


def interpreter(path: Path, script: str) -> Path:
    path.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    path.chmod(0o755)
    return path


def fake_environment(project: Path) -> Path:
    """An interpreter that takes the place of a made environment; it counts pip's installs in ``installs``."""
    (project / ".venv" / "bin").mkdir(parents=True)
    return interpreter(
        project / ".venv" / "bin" / "python",
        f'case "$*" in *"pip install"*) echo "$*" >> {project}/installs; exit 0;; esac\nexec {sys.executable} "$@"',
    )


def test_no_python_that_fits(project: Path) -> None:
    old = interpreter(project / "python3.10", "exit 1")
    done = setup(project, PYTHON=old)
    assert done.returncode != 0
    assert done.stderr.splitlines()[0].startswith("astra needs Python 3.11, 3.12 or 3.13, and none is on PATH.")


def test_a_python_without_venv(project: Path) -> None:
    python = interpreter(project / "python3", f'[ "$1" = -m ] && exit 1\nexec {sys.executable} "$@"')
    done = setup(project, PYTHON=python)
    assert done.returncode != 0
    assert "can't make a virtual environment (venv or ensurepip is missing)" in done.stderr.splitlines()[0]
    assert "apt-get install python3-venv" in done.stderr.splitlines()[0]
    assert not (project / ".venv").exists()


def test_installs_once_until_pyproject_changes(project: Path) -> None:
    fake_environment(project)
    assert setup(project).returncode == 0
    assert setup(project).returncode == 0
    assert len((project / "installs").read_text().splitlines()) == 1
    with (project / "pyproject.toml").open("a") as file:
        file.write("# changed\n")
    assert setup(project).returncode == 0
    assert len((project / "installs").read_text().splitlines()) == 2


def test_a_moved_checkout_is_installed_again(project: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    fake_environment(project)
    assert setup(project).returncode == 0
    moved = tmp_path_factory.mktemp("elsewhere") / "astra"
    shutil.copytree(project, moved)
    assert setup(moved).returncode == 0
    assert len((project / "installs").read_text().splitlines()) == 2


def test_a_failed_install_is_tried_again(project: Path) -> None:
    python = fake_environment(project)
    working = python.read_text()
    python.write_text(working.replace("exit 0", "exit 1"))
    done = setup(project)
    assert done.returncode != 0
    assert "check the package index and the network" in done.stderr
    python.write_text(working)
    assert setup(project).returncode == 0
    assert len((project / "installs").read_text().splitlines()) == 2

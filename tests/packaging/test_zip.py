"""A .zip of the source loses the links: one clear line says so, whatever became of them."""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from .conftest import LINKED, Environment, copy_checkout, run

LINE = (
    "ImportError: astra_integrate is incomplete: extract, reinject, agents, patches missing. "
    "A .zip of the source drops symbolic links; install from a git clone, a wheel or an sdist."
)


def last_line(done: subprocess.CompletedProcess[str]) -> str:
    assert done.returncode != 0, done.stdout
    return done.stderr.strip().splitlines()[-1]


def without_links(folder: Path) -> None:
    for name in LINKED:
        (folder / "astra_integrate" / name).unlink()


def links_as_text(folder: Path) -> None:
    for name in LINKED:
        path = folder / "astra_integrate" / name
        path.unlink()
        path.write_text(f"../{name}", encoding="utf-8")


@pytest.mark.parametrize("lose", [without_links, links_as_text])
def test_the_unpacked_tree_says_it(tmp_path: Path, lose) -> None:  # type: ignore[no-untyped-def]
    tree = copy_checkout(tmp_path / "astra")
    lose(tree)
    done = run(sys.executable, "-c", "import astra_integrate.extract", cwd=tree, PYTHONPATH=str(tree))
    assert last_line(done) == LINE


@pytest.mark.parametrize("lose", [without_links, links_as_text])
def test_what_was_installed_from_it_says_it(environment: Environment, tmp_path: Path, lose) -> None:  # type: ignore[no-untyped-def]
    tree = copy_checkout(tmp_path / "astra")
    lose(tree)
    environment.install(tree)
    assert last_line(run(environment.astra, "--help", cwd=tmp_path)) == LINE


def test_a_git_archive_unpacked_by_a_program_without_links(tmp_path: Path) -> None:
    git = shutil.which("git")
    if git is None:
        pytest.skip("no git here")
    tree = copy_checkout(tmp_path / "astra")
    for arguments in (
        ("init", "-q"),
        ("add", "-A"),
        ("-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "x"),
    ):
        subprocess.run([git, *arguments], cwd=tree, check=True)
    subprocess.run([git, "archive", "--format=zip", "-o", tmp_path / "source.zip", "HEAD"], cwd=tree, check=True)
    with zipfile.ZipFile(tmp_path / "source.zip") as archive:
        archive.extractall(tmp_path / "unpacked")
    done = run(sys.executable, "-c", "import astra_integrate", cwd=tmp_path / "unpacked")
    assert last_line(done) == LINE

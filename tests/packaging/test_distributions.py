"""A wheel, an sdist, ``pip install .`` and ``pip install -e .`` each give a working ``astra``."""

from __future__ import annotations

import stat
import sys
import zipfile
from pathlib import Path

import pytest

from .conftest import LINKED, ROOT, Environment, succeed

IMPORT_ALL = """
import importlib, pkgutil, sys
import astra_integrate
for module in pkgutil.walk_packages(astra_integrate.__path__, "astra_integrate."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)
doubled = [name for name in ("extract", "reinject", "agents", "patches") if name in sys.modules]
assert not doubled, doubled
print(astra_integrate.__file__)
"""


def files_of(folder: Path) -> set[str]:
    """Files of the package as they lie in a tree, through the links."""
    found = set()
    for part in (folder / "astra_integrate", *(folder / "astra_integrate" / name for name in LINKED)):
        for path in part.rglob("*"):
            if path.is_file() and not {"__pycache__"} & set(path.parts) and path.suffix not in (".pyc", ".so", ".o"):
                found.add(path.relative_to(folder).as_posix())
    return found


def members(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        assert not [info for info in archive.infolist() if stat.S_ISLNK(info.external_attr >> 16)]
        return {name for name in archive.namelist() if ".dist-info/" not in name}


def works(environment: Environment, folder: Path) -> str:
    """``astra`` runs from elsewhere, and every module can be imported; returns where the package lies."""
    assert "Usage: astra" in succeed(environment.astra, "--help", cwd=folder)
    assert succeed(environment.astra, "--version", cwd=folder).startswith("astra 0.")
    return succeed(environment.python, "-c", IMPORT_ALL, cwd=folder).strip()


def test_a_wheel_holds_every_file_of_the_package_and_nothing_else(checkout: Path, wheel: Path) -> None:
    assert members(wheel) == files_of(checkout)
    assert "astra_integrate/py.typed" in members(wheel)


def test_the_sdist_holds_real_folders_and_makes_the_same_wheel(
    unpacked_sdist: Path, wheel: Path, wheel_of_sdist: Path
) -> None:
    for name in LINKED:
        assert (unpacked_sdist / "astra_integrate" / name / "__init__.py").is_file()
        assert not (unpacked_sdist / "astra_integrate" / name).is_symlink()
    for name in ("LICENSE", "THIRD_PARTY_NOTICES.md", "SECURITY.md", "CHANGELOG.md", "Makefile", "pyproject.toml"):
        assert (unpacked_sdist / name).is_file()
    assert members(wheel_of_sdist) == members(wheel)


def test_an_installed_wheel_works(environment: Environment, wheel: Path, tmp_path: Path) -> None:
    environment.install(wheel)
    assert str(environment.folder) in works(environment, tmp_path)


def test_an_installed_sdist_works(environment: Environment, sdist: Path, tmp_path: Path) -> None:
    environment.install(sdist)
    assert str(environment.folder) in works(environment, tmp_path)


def test_pip_install_of_the_checkout_works(environment: Environment, checkout: Path, tmp_path: Path) -> None:
    environment.install(checkout)
    assert str(environment.folder) in works(environment, tmp_path)


def test_an_editable_install_runs_the_checkout_itself(environment: Environment, checkout: Path, tmp_path: Path) -> None:
    environment.install("-e", checkout)
    assert Path(works(environment, tmp_path)) == checkout / "astra_integrate" / "__init__.py"
    where = succeed(
        environment.python, "-c", "import astra_integrate.extract as m; print(m.__file__)", cwd=tmp_path
    ).strip()
    assert Path(where).resolve() == checkout / "extract" / "__init__.py"


@pytest.mark.skipif(not (ROOT / "extract").is_dir(), reason="not a checkout")
def test_the_links_of_the_checkout_lead_to_the_top_level_folders() -> None:
    for name in LINKED:
        link = ROOT / "astra_integrate" / name
        assert link.is_symlink()
        assert link.readlink() == Path("..") / name


def test_the_interpreter_that_runs_this_is_one_that_is_supported() -> None:
    assert (3, 11) <= sys.version_info[:2] <= (3, 13)

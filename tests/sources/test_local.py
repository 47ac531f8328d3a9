"""Trees and installations that the user already has."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from astra_integrate.errors import BadInput
from astra_integrate.sources.content import content_digest
from astra_integrate.sources.local import installed_source, path_source


@pytest.fixture
def checkout(tmp_path):
    root = tmp_path / "checkout"
    (root / "kernels").mkdir(parents=True)
    (root / "VERSION").write_text("1.5")
    (root / "kernels/scale.cu").write_text("__global__ void f() {}")
    (root / "kernels/scale.cuh").write_text("#pragma once")
    return root


def test_a_checkout(checkout, small, settings):
    source = path_source((small,), checkout, "./checkout", settings)
    assert (source.framework, source.version, source.kind) == ("small", "1.5", "path")
    assert source.root == str(checkout.resolve()) and source.spec == "./checkout"


def test_the_digest_follows_the_code_and_nothing_else(checkout, small):
    before = content_digest(small, checkout)
    (checkout / "notes.txt").write_text("x")
    (checkout / "kernels/build").mkdir()
    (checkout / "kernels/build/made.h").write_text("x")
    assert content_digest(small, checkout) == before
    (checkout / "kernels/scale.cuh").write_text("#pragma once\n#define N 4")
    changed = content_digest(small, checkout)
    assert changed != before
    (checkout / "CMakeLists.txt").write_text("-O3")
    assert content_digest(small, checkout) not in (before, changed)
    (checkout / "CMakeLists.txt").unlink()
    (checkout / "kernels/scale.cuh").rename(checkout / "kernels/scaled.cuh")
    assert content_digest(small, checkout) not in (before, changed)


def test_paths_that_are_no_source(checkout, small, settings, tmp_path):
    def refused(path: Path, message: str) -> None:
        with pytest.raises(BadInput, match=message):
            path_source((small,), path, str(path), settings)

    refused(tmp_path / "nowhere", "does not exist")
    refused(Path("x" * 5000), "does not exist")
    refused(checkout / "VERSION", "neither a folder nor a source archive")
    refused(checkout / "kernels", f"lies inside a small tree.*{checkout}")
    (tmp_path / "empty").mkdir()
    refused(tmp_path / "empty", "holds no CUDA source")
    (tmp_path / "foreign").mkdir()
    (tmp_path / "foreign/x.cu").write_text("x")
    refused(tmp_path / "foreign", "no source tree of a known framework")
    (checkout / "kernels/scale.cu").unlink()
    (checkout / "kernels/scale.cuh").unlink()
    refused(checkout, "holds no CUDA source of small")


def install(folder: Path, root: Path, editable: bool = False) -> None:
    """Lay an installation of ``small`` 1.5 into ``folder`` the way installers do."""
    info = folder / "small-1.5.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: small\nVersion: 1.5\n")
    if editable:
        (info / "direct_url.json").write_text(f'{{"url": "{root.as_uri()}", "dir_info": {{"editable": true}}}}')


@pytest.fixture
def environment(tmp_path):
    """Another Python environment: its interpreter and its site-packages."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "venv"], check=True)
    return tmp_path / "venv/bin/python", next((tmp_path / "venv/lib").glob("python3*")) / "site-packages"


def test_installed_in_another_environment(environment, small, checkout):
    python, packages = environment
    with pytest.raises(BadInput, match=r"small is not installed for .*installed:small:"):
        installed_source(small, python, "installed:small")
    install(packages, checkout)
    (packages / "VERSION").write_text("1.5")
    with pytest.raises(BadInput, match="holds no CUDA source of small"):
        installed_source(small, python, "installed:small")
    (packages / "kernels").mkdir()
    (packages / "kernels/x.cu").write_text("x")
    source = installed_source(small, python, f"installed:small:{python}")
    assert (source.kind, source.version, source.root) == ("installed", "1.5", str(packages.resolve()))


def test_an_editable_installation_means_its_checkout(environment, small, checkout):
    python, packages = environment
    install(packages, checkout, editable=True)
    assert installed_source(small, python, "installed:small").root == str(checkout.resolve())


def test_installed_here(tmp_path, monkeypatch, small, checkout):
    with pytest.raises(BadInput, match="not installed for the Python that runs astra"):
        installed_source(small, None, "installed:small")
    install(tmp_path / "site", checkout, editable=True)
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    assert installed_source(small, None, "installed:small").root == str(checkout.resolve())


@pytest.mark.parametrize("python", ["/no/such/python", "/bin/true", "/bin/false"])
def test_what_is_no_python(small, python):
    with pytest.raises(BadInput, match=python):
        installed_source(small, Path(python), "installed:small")

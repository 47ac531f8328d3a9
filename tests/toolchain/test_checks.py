from __future__ import annotations

import shutil
from collections import namedtuple
from collections.abc import Callable
from pathlib import Path

import pytest

from astra_integrate.settings import Settings
from astra_integrate.toolchain import checks as module
from astra_integrate.toolchain.checks import Check, checks, home, model, package_index
from astra_integrate.toolchain.discovery import Toolchain, discover

Make = Callable[..., Settings]


def by_name(settings: Settings, *, fetch: bool = True) -> dict[str, Check]:
    return {check.name: check for check in checks(settings, discover(settings, fetch=fetch), fetch=fetch)}


def test_a_bare_machine_misses_git_and_compiler_and_is_told_how_to_get_them(bare: Path, make_settings: Make) -> None:
    found = by_name(make_settings())
    assert {name for name, check in found.items() if check.state == "missing"} == {"git", "c++"}
    assert "apt-get install git" in found["git"].mend
    assert all(check.mend for check in found.values() if check.state != "ok")
    assert all("\n" not in check.mend for check in found.values())


def test_without_fetch_what_the_index_has_counts_as_there(bare: Path, make_settings: Make, index: Path) -> None:
    shutil.copytree(index / "nvidia-nvvm", index / "pypi-simple")
    wheel = next((index / "pypi-simple").glob("*.whl"))
    name = wheel.with_name("pypi_simple-1.8.0-py3-none-any.whl").name
    wheel.rename(wheel.with_name(name))
    (index / "pypi-simple" / "index.html").write_text(f'<a href="{name}">{name}</a>', encoding="utf-8")
    settings = make_settings()
    found = by_name(settings, fetch=False)
    assert found["package index"].state == "ok"
    assert (found["nvcc"].state, found["nvcc"].path) == ("ok", "")
    assert not list(settings.cache.rglob("nvcc"))


def test_without_fetch_and_index_the_compiler_is_missing(bare: Path, make_settings: Make) -> None:
    found = by_name(make_settings(index_url="file:///nowhere/simple"), fetch=False)
    assert found["package index"].state == "limited"
    assert found["nvcc"].state == "missing"


def test_no_secret_is_shown(bare: Path, make_settings: Make) -> None:
    settings = make_settings(
        api_key="sk-hidden",
        model="some-model",
        base_url="http://me:hidden@127.0.0.1:9/v1?token=hidden",
        index_url="file://me:hidden@localhost/nowhere/simple",
    )
    shown = repr(by_name(settings, fetch=False))
    assert "hidden" not in shown
    assert "API key is set" in shown
    assert "127.0.0.1:9/v1" in shown


@pytest.mark.parametrize(
    ("overrides", "state", "mend"),
    [
        ({}, "limited", "ASTRA_API_KEY"),
        ({"model": "some-model"}, "missing", "ASTRA_MODEL=rules"),
        ({"model": "some-model", "base_url": "http://127.0.0.1:8000/v1"}, "limited", "if the server wants one"),
        ({"model": "some-model", "api_key": "sk-1"}, "ok", ""),
    ],
)
def test_model_and_key(make_settings: Make, overrides: dict[str, object], state: str, mend: str) -> None:
    found = model(make_settings(**overrides))
    assert found.state == state
    assert mend in found.mend


def test_an_index_that_does_not_answer_is_named(make_settings: Make) -> None:
    found = package_index(make_settings(index_url="file:///nowhere/simple"))
    assert (found.state, found.path) == ("limited", "file:///nowhere/simple")


def test_a_home_that_is_a_file_and_a_full_disk(
    make_settings: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    assert home(make_settings(home=tmp_path / "file" / "home")).state == "missing"
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(module.shutil, "disk_usage", lambda path: usage(10**12, 10**12 - 5 * 10**8, 5 * 10**8))
    full = home(make_settings())
    assert (full.state, full.version) == ("limited", "500.0 MB free")


@pytest.mark.network
def test_what_nvcc_refuses_is_told_with_its_words(settings_: Settings, toolchain: Toolchain) -> None:
    assert module.compiling(settings_, toolchain).state == "ok"
    refused = module.compiling(settings_.model_copy(update={"arch": "sm_1"}), toolchain)
    assert refused.state == "missing"
    assert "sm_1" in refused.mend

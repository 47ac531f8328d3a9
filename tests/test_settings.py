from __future__ import annotations

from pathlib import Path

import pytest

from astra_integrate.errors import BadInput
from astra_integrate.settings import load


@pytest.fixture(autouse=True)
def empty(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    for name in ("ASTRA_ARCH", "ASTRA_JOBS", "ASTRA_HOME", "ASTRA_ROUNDS"):
        monkeypatch.delenv(name, raising=False)


def write(text: str, folder: Path = Path(".")) -> None:
    (folder / "astra.toml").write_text(text)


def test_the_file_wins_over_the_default_the_variable_over_the_file_the_option_over_all(monkeypatch):
    assert load().arch == "sm_90a"
    write('[astra]\narch = "sm_80"\n')
    assert load().arch == "sm_80"
    monkeypatch.setenv("ASTRA_ARCH", "sm_100a")
    assert load().arch == "sm_100a"
    assert load(arch="sm_90").arch == "sm_90"


def test_the_file_is_found_from_a_folder_below(monkeypatch, tmp_path):
    write("[astra]\njobs = 7\n")
    (tmp_path / "below" / "deep").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "below" / "deep")
    assert load().jobs == 7


@pytest.mark.parametrize(("text", "named"), [("[astra]\njobs = 0\n", "jobs"), ("[astra]\nnonsense = 1\n", "nonsense")])
def test_a_wrong_or_unknown_setting_is_named_with_its_variable(text, named):
    write(text)
    with pytest.raises(BadInput, match=f"ASTRA_{named.upper()}"):
        load()


def test_a_broken_file_is_named():
    write("[astra\n")
    with pytest.raises(BadInput, match=r"astra\.toml is not valid TOML"):
        load()


def test_a_key_is_not_shown(monkeypatch):
    monkeypatch.setenv("ASTRA_API_KEY", "very-secret")
    assert "very-secret" not in repr(load()) and "very-secret" not in load().model_dump_json()

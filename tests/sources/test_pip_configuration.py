"""Which index is asked: astra's setting, then pip's variables, then pip's files, then pip's default."""

from __future__ import annotations

import importlib.util
import os

import pytest
from pypi_simple import PYPI_SIMPLE_ENDPOINT

from astra_integrate.settings import load
from astra_integrate.sources import pip_configuration
from astra_integrate.sources.pip_configuration import configuration, parse_pip_list, without_secrets


@pytest.fixture
def pip(monkeypatch, tmp_path):
    """Pip as it is when nothing is configured; a function that writes its configuration file."""
    for name in list(os.environ):
        if name.startswith("PIP_"):
            monkeypatch.delenv(name)
    monkeypatch.setattr(pip_configuration, "_pip_files", lambda: ())
    return lambda *lines: monkeypatch.setattr(pip_configuration, "_pip_files", lambda: parse_pip_list("\n".join(lines)))


def test_nothing_configured_means_pips_default(pip, tmp_path):
    assert configuration(load(home=tmp_path)).indexes == (PYPI_SIMPLE_ENDPOINT,)


def test_files_then_variables_then_astras_own_setting(pip, tmp_path, monkeypatch):
    pip("global.index-url='http://file/simple'", "global.extra-index-url='file:///a http://b'", "global.timeout='7'")
    assert configuration(load(home=tmp_path)).indexes == ("http://file/simple", "file:///a", "http://b")
    assert configuration(load(home=tmp_path)).seconds == 7
    monkeypatch.setenv("PIP_INDEX_URL", "http://variable/simple")
    assert configuration(load(home=tmp_path)).indexes[0] == "http://variable/simple"
    monkeypatch.setenv("ASTRA_INDEX_URL", "http://own/simple")
    assert configuration(load(home=tmp_path)).indexes == ("http://own/simple",)


def test_no_index_is_obeyed(pip, tmp_path, monkeypatch):
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    assert configuration(load(home=tmp_path)).indexes == ()


def test_the_stronger_section_wins_and_other_commands_do_not_count():
    text = "download.index-url='d'\nglobal.index-url='g'\ninstall.index-url='i'\nnoise\nglobal.cert=broken'"
    assert dict(parse_pip_list(text)) == {"index-url": "d"}


@pytest.mark.skipif(importlib.util.find_spec("pip") is None, reason="this environment has no pip")
def test_pip_itself_is_asked(tmp_path, monkeypatch):
    (tmp_path / "pip.conf").write_text(
        "[global]\nindex-url = http://from-file/simple\nextra-index-url =\n  http://x\n  http://y\n"
    )
    monkeypatch.setenv("PIP_CONFIG_FILE", str(tmp_path / "pip.conf"))
    monkeypatch.delenv("PIP_INDEX_URL", raising=False)
    monkeypatch.delenv("PIP_EXTRA_INDEX_URL", raising=False)
    pip_configuration._pip_files.cache_clear()
    try:
        found = configuration(load(home=tmp_path, index_url=None)).indexes
    finally:
        pip_configuration._pip_files.cache_clear()
    assert found == ("http://from-file/simple", "http://x", "http://y")


def test_no_secret_is_shown():
    assert without_secrets("https://user:word@host:8/simple/?token=1#x") == "https://host:8/simple/"

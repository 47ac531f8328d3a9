"""SOURCE as users write it, and what they are told when it can't be read."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from astra_integrate.errors import BadInput
from astra_integrate.sources.spec import Spec, parse_spec

NAMES = ("vllm", "sglang")
names = st.sampled_from(NAMES)
versions = st.builds(
    lambda release, suffix: ".".join(map(str, release)) + suffix,
    st.lists(st.integers(0, 99), min_size=1, max_size=4),
    st.sampled_from(["", ".post1", "rc2", ".dev3", "+cu130"]),
)
refs = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9_./@+=-]{0,30}", fullmatch=True).filter(lambda text: ".." not in text)
parts = st.from_regex(r"[A-Za-z0-9@=:._-]{1,12}", fullmatch=True).filter(lambda text: text not in (".", ".."))
paths = st.builds(lambda root, rest: Path(root, *rest), st.sampled_from(["/", ".", ".."]), st.lists(parts, max_size=3))
specs = st.one_of(
    st.builds(Spec, st.just("release"), names, version=versions | st.none()),
    st.builds(Spec, st.just("git"), names, ref=refs),
    st.builds(Spec, st.just("path"), st.none(), path=paths),
    st.builds(Spec, st.just("installed"), names, python=st.none() | st.just(Path("/venv/bin/python"))),
)


@given(specs)
def test_a_spec_reads_back_from_its_text(spec):
    assert parse_spec(str(spec), NAMES) == spec


@given(
    st.text(max_size=40)
    | st.builds("".join, st.lists(st.sampled_from(["vllm", "==", "@", "installed:", "1.0", "/", " "])))
)
def test_any_text_gives_a_spec_or_one_clear_line(text):
    try:
        spec = parse_spec(text, NAMES)
    except BadInput as error:
        assert error.message and error.way_out
    else:
        assert (spec.framework in NAMES) == (spec.kind != "path")


@pytest.mark.parametrize(
    ("text", "spec"),
    [
        ("vllm", Spec("release", "vllm")),
        (" VLLM==0.12.0 ", Spec("release", "vllm", version="0.12.0")),
        ("sglang==0.5.10.post1", Spec("release", "sglang", version="0.5.10.post1")),
        ("vllm==0.12", Spec("release", "vllm", version="0.12")),
        ("vllm@main", Spec("git", "vllm", ref="main")),
        ("sglang@feature/a@b", Spec("git", "sglang", ref="feature/a@b")),
        ("./vllm", Spec("path", None, path=Path("vllm"))),
        ("some/where", Spec("path", None, path=Path("some/where"))),
        ("/a/b==c", Spec("path", None, path=Path("/a/b==c"))),
        (".", Spec("path", None, path=Path("."))),
        ("installed:sglang", Spec("installed", "sglang")),
        ("installed:vllm:/x/bin/python", Spec("installed", "vllm", python=Path("/x/bin/python"))),
    ],
)
def test_forms(text, spec):
    assert parse_spec(text, NAMES) == spec


def test_a_framework_name_wins_over_a_folder_of_that_name(tmp_path, monkeypatch):
    (tmp_path / "vllm").mkdir()
    (tmp_path / "mine").mkdir()
    monkeypatch.chdir(tmp_path)
    assert parse_spec("vllm", NAMES).kind == "release"
    assert parse_spec("mine", NAMES) == Spec("path", None, path=Path("mine"))


@pytest.mark.parametrize("text", ["vlm==1.0", "vlm", "vllm2@main", "installed:vlm", "Vlllm"])
def test_an_unknown_framework_is_told_the_near_ones(text):
    with pytest.raises(BadInput, match=r"no known framework.*Did you mean vllm"):
        parse_spec(text, NAMES)


@pytest.mark.parametrize(
    "text", ["vllm==latest", "vllm==", "vllm>=0.12", "vllm~=0.12", "vllm==0.12.*", "vllm@", "vllm@-x", "vllm@a..b", ""]
)
def test_what_names_no_single_source_is_refused(text):
    with pytest.raises(BadInput, match="Write NAME==VERSION"):
        parse_spec(text, NAMES)

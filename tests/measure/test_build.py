from __future__ import annotations

import dataclasses
import os

import pytest

from astra_integrate.errors import MissingTool, NotMeasured
from astra_integrate.measure.emulation.build import EmulationCompileError, build, first_error, unit_text
from tests.measure.own_ops import FLAGS, one_kernel

SIGNATURE = (("out", "torch::Tensor&"), ("input", "const torch::Tensor&"))


def test_same_text_is_built_once(host_toolchain, emulator_settings, tmp_path):
    text = one_kernel("out[0] = n;")
    first = build(text, "own", SIGNATURE, tmp_path, host_toolchain, emulator_settings, FLAGS)
    made = first.stat().st_mtime_ns
    assert build(text, "own", SIGNATURE, tmp_path, host_toolchain, emulator_settings, FLAGS) == first
    assert first.stat().st_mtime_ns == made
    other = build(text + "// changed", "own", SIGNATURE, tmp_path, host_toolchain, emulator_settings, FLAGS)
    assert other != first


def test_first_error_is_the_reason(host_toolchain, emulator_settings, tmp_path):
    with pytest.raises(EmulationCompileError, match=r"line 4: .*nonsense") as caught:
        build(one_kernel("nonsense();"), "own", SIGNATURE, tmp_path, host_toolchain, emulator_settings, FLAGS)
    assert caught.value.lacking == "nonsense"
    assert not list(tmp_path.glob("*.so"))


@pytest.mark.parametrize(
    ("output", "lacking"),
    [
        ("a.cpp:3:4: error: ‘foo’ was not declared in this scope\n", "foo"),
        ("a.cpp:3:4: error: 'foo' is not a member of 'cub'\n", "foo"),
        ("a.cpp:1:10: fatal error: nccl.h: No such file or directory\n", "nccl.h"),
        ("ld: a.o: undefined reference to `cudaEventCreate'\n", "cudaEventCreate"),
        ("a.cpp:3:4: error: expected ';'\n", ""),
    ],
)
def test_what_is_lacking(output, lacking):
    assert first_error(output)[1] == lacking


def test_missing_compiler_and_other_processors(host_toolchain, emulator_settings, tmp_path, monkeypatch):
    without = dataclasses.replace(host_toolchain, cxx=None)
    with pytest.raises(MissingTool, match="C\\+\\+ compiler"):
        build("", "own", SIGNATURE, tmp_path, without, emulator_settings, FLAGS)
    system = os.uname()
    monkeypatch.setattr(os, "uname", lambda: os.uname_result((*system[:4], "aarch64")))
    with pytest.raises(NotMeasured, match="aarch64"):
        build("", "own", SIGNATURE, tmp_path, host_toolchain, emulator_settings, FLAGS)


def test_unit_names_the_host_function_in_its_namespace():
    assert "&::ns::own" in unit_text("", "ns::own", 2)
    assert "&::own" in unit_text("", "::own", 2)

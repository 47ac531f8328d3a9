"""``astra index`` as a user runs it."""

from __future__ import annotations

import json

import pytest

from astra_integrate.cli import run


@pytest.fixture
def astra(settings_, monkeypatch, capsys, toolchain):
    """Run a command line; gives exit code, stdout, stderr."""
    monkeypatch.setenv("ASTRA_HOME", str(settings_.home))

    def command(*words):
        code = run(list(words))
        said = capsys.readouterr()
        return code, said.out, said.err

    return command


@pytest.mark.network
def test_an_ops_chain(astra, vllm_0_12):
    code, out, _ = astra("index", vllm_0_12.spec, "--op", "silu_and_mul")
    assert code == 0
    lines = [line.strip("│├└─ ") for line in out.splitlines()]
    assert lines[0] == "_C::silu_and_mul"
    order = [
        next(i for i, line in enumerate(lines) if line.startswith(start))
        for start in ("silu_and_mul(Tensor! result", "host function silu_and_mul", "kernel vllm::act_and_mul_kernel")
    ]
    assert order == sorted(order)
    assert any("vllm/model_executor/layers/activation.py" in line for line in lines)


@pytest.mark.network
def test_one_kernel_as_json(astra, vllm_0_12):
    code, out, _ = astra("index", vllm_0_12.spec, "--kernel", "act_and_mul_kernel", "--json")
    document = json.loads(out)
    assert code == 0
    assert [kernel["name"] for kernel in document["kernels"]] == ["vllm::act_and_mul_kernel"]
    assert {launch["kernel"] for launch in document["launches"]} == {"vllm::act_and_mul_kernel"}


@pytest.mark.network
def test_one_unit_gives_a_summary(astra, vllm_0_12):
    code, out, _ = astra("index", vllm_0_12.spec, "--unit", "csrc/activation_kernels.cu")
    assert code == 0
    assert "kernels" in out and "launch sites" in out


@pytest.mark.network
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--op", "silu_and_mull"), "silu_and_mul"),
        (("--kernel", "act_and_mul_kernal"), "act_and_mul_kernel"),
        (("--kernel", "silu_and_mul"), "--op silu_and_mul"),
        (("--unit", "csrc/none.cu"), "csrc/none.cu is no CUDA translation unit"),
        (("--arch", "hopper"), "hopper"),
    ],
)
def test_what_is_not_there_is_one_line_with_a_way_out(astra, vllm_0_12, words, said):
    code, out, err = astra("index", vllm_0_12.spec, *words)
    assert code == 2 and out == ""
    assert said in err.splitlines()[-1]


@pytest.mark.network
def test_a_unit_that_can_not_be_read_is_listed_and_makes_exit_code_three(astra, vllm_0_12, tmp_path):
    (tmp_path / "vllm").mkdir()
    (tmp_path / "vllm" / "__init__.py").write_text("")
    (tmp_path / "pyproject.toml").write_text('[build-system]\nrequires = [\n  "torch == 2.9.0",\n]\n')
    (tmp_path / "csrc").mkdir()
    (tmp_path / "csrc" / "whole.cu").write_text("__global__ void whole(float* x) { x[0] = 1; }\n")
    (tmp_path / "csrc" / "torn.cu").write_text('#include "missing.h"\n__global__ void torn(float* x) { x[0] = 1; }\n')
    code, out, _ = astra("index", str(tmp_path))
    assert code == 3
    assert "csrc/torn.cu" in out and "'missing.h' file not found" in out
    code, out, _ = astra("index", str(tmp_path), "--unit", "csrc/whole.cu", "--json")
    assert code == 0
    assert [kernel["name"] for kernel in json.loads(out)["kernels"]] == ["whole"]

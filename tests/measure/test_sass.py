"""Machine code as text, names, and the comparison of two kernels."""

from __future__ import annotations

from pathlib import Path

import pytest

from astra_integrate.errors import CheckFailed
from astra_integrate.measure.compile import cubin
from astra_integrate.measure.sass import (
    Instruction,
    demangle,
    disassemble,
    instructions,
    kernel_name,
    normalised,
    resource_usage,
    same_code,
)
from astra_integrate.records import CompileFlags
from astra_integrate.toolchain.discovery import Toolchain

FLAGS = CompileFlags(standard="c++17")
BODY = "{ for (int i = threadIdx.x; i < n; i += blockDim.x) p[i] = p[i] / q[i] + table[i & 3]; }\n"


def _code(text: str, toolchain: Toolchain, folder: Path) -> dict[str, tuple[Instruction, ...]]:
    return disassemble(cubin(text, FLAGS, "sm_90a", toolchain, folder), toolchain)


def _kernel(name: str, body: str = BODY) -> str:
    return f"__global__ void {name}(float* p, const float* q, int n) {body}"


def test_the_same_kernel_under_another_name_beside_other_code_is_the_same(toolchain: Toolchain, tmp_path: Path) -> None:
    table = "__constant__ float table[4];\n"
    alone = _code(table + _kernel("a"), toolchain, tmp_path)
    crowd = "__constant__ float other[64];\n__global__ void first(float* p) { p[0] = other[threadIdx.x]; }\n"
    among = _code(crowd + table + _kernel("b_marked"), toolchain, tmp_path)
    (one,), two = alone.values(), next(code for symbol, code in among.items() if "b_marked" in symbol)
    assert [i.text for i in one] != [i.text for i in two], "the table lies elsewhere: this is what is normalised"
    assert same_code(one, two)
    assert any("CALL" in i.opcode for i in one), "the division's slow path is part of what is compared"


@pytest.mark.parametrize(
    "body",
    [
        BODY.replace("+ table", "- table"),
        BODY.replace("i & 3", "i & 1"),
        BODY.replace("i < n", "i <= n"),
        BODY.replace("p[i] / q[i]", "__fdividef(p[i], q[i])"),
    ],
)
def test_another_computation_is_not_the_same(toolchain: Toolchain, tmp_path: Path, body: str) -> None:
    table = "__constant__ float table[4];\n"
    (one,) = _code(table + _kernel("a"), toolchain, tmp_path).values()
    (two,) = _code(table + _kernel("a", body), toolchain, tmp_path).values()
    assert not same_code(one, two)


def _listing(*texts: str) -> tuple[Instruction, ...]:
    return tuple(Instruction(16 * n, "", text.removeprefix("@P0 ").split()[0], text) for n, text in enumerate(texts))


def test_normalised_text_keeps_registers_and_drops_places() -> None:
    code = _listing(
        "MOV R8, 0x30", "CALL.REL.NOINC 0x40", "@P0 BRA 0x10", "LDC R1, c[0x3][0x20]", "BRA `(.L_x_1)", "EXIT"
    )
    assert normalised(code) == (
        "MOV R8, L3", "CALL.REL.NOINC L4", "@P0 BRA L1", "LDC R1, c[0x3][#0]", "BRA `(S)", "EXIT",
    )  # fmt: skip
    assert normalised(_listing("FADD R1, R2, 0x10", "EXIT"))[0] == "FADD R1, R2, 0x10"
    assert not same_code(_listing("MOV R1, R2", "EXIT"), _listing("MOV R1, R3", "EXIT"))
    assert not same_code(_listing("@P0 BRA 0x0"), _listing("BRA 0x0"))


def test_two_places_in_constant_memory_are_told_apart() -> None:
    twice = _listing("LDC R1, c[0x3][0x0]", "LDC R2, c[0x3][0x8]")
    assert not same_code(twice, _listing("LDC R1, c[0x3][0x0]", "LDC R2, c[0x3][0x0]"))
    assert not same_code(_listing("LDC R1, c[0x0][0x210]"), _listing("LDC R1, c[0x0][0x218]")), "parameters differ"


def test_instructions_have_offset_predicate_and_opcode(toolchain: Toolchain, tmp_path: Path) -> None:
    text = "__global__ void k(int* p, int n) { if (threadIdx.x < n) p[threadIdx.x] = 1; }"
    path = cubin(text, FLAGS, "sm_90a", toolchain, tmp_path)
    (code,) = disassemble(path, toolchain).values()
    assert [i.offset for i in code] == [16 * n for n in range(len(code))]
    assert any(i.opcode == "EXIT" and i.predicate for i in code)
    assert code[-1].opcode == "EXIT", "padding is gone"
    (symbol,) = disassemble(path, toolchain)
    assert instructions(path, symbol, toolchain)[-1] == "EXIT"
    with pytest.raises(KeyError):
        instructions(path, "other", toolchain)
    assert resource_usage(path, toolchain)[symbol]["REG"] > 0


def test_a_file_that_is_no_cubin(toolchain: Toolchain, tmp_path: Path) -> None:
    (tmp_path / "x.cubin").write_bytes(b"not an object")
    with pytest.raises(CheckFailed, match="cuobjdump"):
        disassemble(tmp_path / "x.cubin", toolchain)


def test_names_read_as_they_are_written() -> None:
    act = "_ZN4vllm18act_and_mul_kernelIfXadL_ZNS_11silu_kernelIfEET_RKS2_EELb1EEEvPS2_PS3_i"
    assert kernel_name(act) == "vllm::act_and_mul_kernel<float, vllm::silu_kernel<float>, true>"
    assert kernel_name("_Z1kPf") == "k"
    assert kernel_name("plain_c_name") == demangle("plain_c_name") == "plain_c_name"
    assert kernel_name("_ZNK_broken") == "_ZNK_broken"


def test_names_of_real_kernels(toolchain: Toolchain, tmp_path: Path) -> None:
    text = """
    #include <type_traits>
    namespace a { namespace { template <int N, bool B> __global__ void hidden(int*) {} } }
    template <typename T, int N> __global__ std::enable_if_t<(N > 1), void> gated(T*) {}
    template <typename T> struct Box { T x; };
    template <typename T> __global__ void boxed(Box<T> b, void (*)(int)) {}
    """
    wanted = ("a::hidden<-3, true>", "gated<unsigned int, 2>", "boxed<Box<Box<float>>>")
    path = cubin(text, FLAGS, "sm_90a", toolchain, tmp_path, instantiations=wanted)
    names = sorted(kernel_name(symbol) for symbol in disassemble(path, toolchain))
    assert names == ["a::(anonymous namespace)::hidden<-3, true>", "boxed<Box<Box<float>>>", "gated<unsigned int, 2>"]

"""nvcc runs: cubins, cache, errors, limits."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from astra_integrate.measure.compile import (
    CUBIN,
    CompileError,
    Limits,
    cubin,
    first_errors,
    nvcc_command,
    ptxas_log,
    run_compiler,
)
from astra_integrate.measure.sass import disassemble
from astra_integrate.records import CompileFlags
from astra_integrate.toolchain.discovery import Toolchain

FLAGS = CompileFlags(standard="c++17", defines=("SCALE=3",), nvcc=("-O2",))
KERNEL = "template <typename T> __global__ void k(T* p) { p[threadIdx.x] *= SCALE; }\n"


def test_only_the_named_instantiations_are_emitted(toolchain: Toolchain, tmp_path: Path) -> None:
    one = cubin(KERNEL, FLAGS, "sm_90a", toolchain, tmp_path, instantiations=("k<float>", "k<int>"))
    assert sorted(disassemble(one, toolchain)) == ["_Z1kIfEvPT_", "_Z1kIiEvPT_"]
    assert "Compiling entry function '_Z1kIfEvPT_' for 'sm_90a'" in ptxas_log(one)
    assert disassemble(cubin(KERNEL, FLAGS, "sm_90a", toolchain, tmp_path), toolchain) == {}


def test_the_same_text_is_compiled_once_and_flags_and_text_are_the_key(toolchain: Toolchain, tmp_path: Path) -> None:
    first = cubin(KERNEL, FLAGS, "sm_90a", toolchain, tmp_path)
    stamp = first.stat().st_mtime_ns
    assert cubin(KERNEL, FLAGS, "sm_90a", toolchain, tmp_path) == first and first.stat().st_mtime_ns == stamp
    others = [
        cubin(KERNEL + " ", FLAGS, "sm_90a", toolchain, tmp_path),
        cubin(KERNEL, FLAGS.model_copy(update={"defines": ("SCALE=4",)}), "sm_90a", toolchain, tmp_path),
        cubin(KERNEL, FLAGS, "sm_80", toolchain, tmp_path),
    ]
    assert len({first, *others}) == 4
    assert not list(tmp_path.glob("making-*"))


def test_a_changed_header_makes_it_compile_again(toolchain: Toolchain, tmp_path: Path) -> None:
    (tmp_path / "inc").mkdir()
    header = tmp_path / "inc" / "scale.h"
    header.write_text("#define FACTOR 2.0f\n")
    flags = CompileFlags(standard="c++17", include_dirs=("inc",))
    text = '#include "scale.h"\n__global__ void k(float* p) { p[0] *= FACTOR; }\n'
    first = cubin(text, flags, "sm_90a", toolchain, tmp_path / "cache", root=tmp_path)
    before = disassemble(first, toolchain)
    header.write_text("#define FACTOR 33.0f\n")
    again = cubin(text, flags, "sm_90a", toolchain, tmp_path / "cache", root=tmp_path)
    assert again == first and disassemble(again, toolchain) != before


def test_a_damaged_entry_is_made_anew(toolchain: Toolchain, tmp_path: Path) -> None:
    first = cubin(KERNEL, FLAGS, "sm_90a", toolchain, tmp_path)
    first.unlink()
    assert cubin(KERNEL, FLAGS, "sm_90a", toolchain, tmp_path).is_file()


def test_errors_come_with_their_line_of_the_text(toolchain: Toolchain, tmp_path: Path) -> None:
    text = "__global__ void k(float* p) {\n  p[0] = undefined_thing;\n  int y = ;\n}\n"
    with pytest.raises(CompileError) as caught:
        cubin(text, FLAGS, "sm_90a", toolchain, tmp_path)
    assert caught.value.errors == (
        'line 2: identifier "undefined_thing" is undefined | p[0] = undefined_thing;',
        "line 3: expected an expression | int y = ;",
    )
    assert caught.value.exit_code == 1
    assert not list(tmp_path.rglob(CUBIN)), "a failure is not cached"


def test_errors_of_the_assembler_are_errors_too(toolchain: Toolchain, tmp_path: Path) -> None:
    with pytest.raises(CompileError, match=r"ptxas: .*bogus"):
        cubin('__global__ void k() { asm("bogus;"); }', FLAGS, "sm_90a", toolchain, tmp_path)


def test_an_architecture_that_nvcc_does_not_know(toolchain: Toolchain, tmp_path: Path) -> None:
    with pytest.raises(CompileError, match="sm_17"):
        cubin(KERNEL, FLAGS, "sm_17", toolchain, tmp_path)


def test_first_errors_of_a_log_are_short_and_each_once() -> None:
    log = "\n".join(
        [
            "kernel.cu(2): warning #177-D: variable was declared but never referenced",
            "kernel.cu(3): error: no instance",
            "kernel.cu(3): error: no instance",
            "/x/y/z.h(7): error #20: identifier is undefined",
            "/x/y/w.h:9:12: fatal error: q.h: No such file or directory",
            *(f"kernel.cu({n}): error: number {n}" for n in range(10, 20)),
        ]
    )
    assert first_errors(log, "a\nb\n  c = d;\n") == (
        "line 3: no instance | c = d;",
        "z.h:7: identifier is undefined",
        "w.h:9: q.h: No such file or directory",
        "line 10: number 10",
        "line 11: number 11",
    )


def test_a_run_past_its_time_is_killed_with_its_children(tmp_path: Path) -> None:
    begun = time.monotonic()
    run = run_compiler(
        ["sh", "-c", "echo begun; (sleep 3; touch late) & sleep 60"], limits=Limits(seconds=0.5), cwd=tmp_path
    )
    assert run.code == 124 and "begun" in run.log and time.monotonic() - begun < 3
    time.sleep(3)
    assert not (tmp_path / "late").exists()


def test_a_compile_past_its_time_says_so(toolchain: Toolchain, tmp_path: Path) -> None:
    with pytest.raises(CompileError, match="stopped after 0 s") as caught:
        cubin(KERNEL, FLAGS, "sm_90a", toolchain, tmp_path, limits=Limits(seconds=0.01))
    assert "ASTRA_COMPILE_SECONDS" in caught.value.way_out


def test_memory_is_limited() -> None:
    code = "x = bytearray(1 << 30)"
    import sys

    run = run_compiler(
        [sys.executable, "-c", "import time; time.sleep(.2); " + code], limits=Limits(memory_bytes=1 << 29)
    )
    assert run.code != 0 and "MemoryError" in run.log


def test_the_command_has_the_frameworks_flags_in_order(toolchain: Toolchain) -> None:
    flags = CompileFlags(
        standard="c++20", defines=("A", "B=1"), include_dirs=("csrc",), system_include_dirs=("/h",), nvcc=("--x",)
    )
    command = nvcc_command(flags, "sm_100a", toolchain, root=Path("/src"))
    text = " ".join(command)
    assert "-std=c++20 -arch=sm_100a -cubin -Xptxas=-v -DA -DB=1 -I /src/csrc -isystem /h" in text
    assert command[-1] == "--x"

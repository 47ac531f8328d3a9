"""Slices made by hand out of a few declarations, and what reads, compiles and runs them."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from astra_integrate.agents.models.rules.reading import Reading, read
from astra_integrate.errors import MissingTool
from astra_integrate.extract.parsing import clang_arguments
from astra_integrate.extract.render import device_text
from astra_integrate.records import (
    CompileFlags,
    Declaration,
    Extent,
    Kernel,
    Lowering,
    Replacement,
    Slice,
    Source,
    digest_of,
)
from astra_integrate.settings import Settings
from astra_integrate.toolchain.discovery import Toolchain, discover

FLAGS = CompileFlags(standard="c++17")


def slice_of(*texts: str, instantiations: tuple[str, ...] = (), includes: tuple[str, ...] = ()) -> Slice:
    """A slice whose declarations are ``texts``, all at the top level; the first kernel is the slice's."""
    declarations, offset = [], 0
    for order, text in enumerate(texts):
        found = re.search(
            r"#define (\w+)|^(?:struct|using) (?:alignas\(\d+\) )?(\w+)|(\w+)\s*\((?!\*)(?=[^{;]*\{)", text
        )
        name = next(part for part in found.groups() if part) if found else f"declaration{order}"
        kernel = "__global__" in text
        role = "macro" if text.startswith("#") else "device" if kernel or "__device__" in text else "either"
        extent = Extent(file="a.cu", start=offset, end=offset + len(text.encode()), bytes_digest=digest_of(text))
        offset = extent.end + 1
        declarations.append(
            Declaration(
                id=f"{order}:{name}",
                names=(name,),
                kind="macro" if role == "macro" else "function",
                role=role,
                order=order,
                extent=extent,
                text=text,
                is_kernel=kernel,
            )
        )
    first = next((d for d in declarations if d.is_kernel), declarations[0])
    shown = Kernel(name=first.names[0], extent=first.extent, signature="", body_hash="")
    source = Source(framework="none", version="0", spec="none", kind="path", root=".", content="0")
    return Slice(
        source=source,
        unit="a.cu",
        arch="sm_90a",
        kernel=shown,
        declarations=tuple(declarations),
        includes=includes or ("<cstdint>", "<cuda_bf16.h>", "<cuda_fp16.h>"),
        instantiations=instantiations,
        flags=FLAGS,
    )


@pytest.fixture(scope="session")
def sliced() -> Callable[..., Slice]:
    return slice_of


@pytest.fixture(scope="session")
def tools() -> Toolchain:
    found = discover(Settings(), fetch=False)
    if not found.cuda_includes or found.clang_resource is None:
        pytest.skip("no CUDA headers: the passes can't be tried")
    return found


@pytest.fixture(scope="session")
def reader(tools: Toolchain) -> Callable[[Slice], Reading]:
    try:
        arguments = clang_arguments(tools, FLAGS, "sm_90a")
    except MissingTool as error:
        pytest.skip(f"can't parse CUDA: {error}")
    return lambda slice: read(slice, arguments)


@pytest.fixture
def compiles(tools: Toolchain, tmp_path: Path) -> Callable[[Slice, tuple[Replacement, ...]], str]:
    """Compile a slice with replacements by nvcc; returns its PTX, fails the test with nvcc's words."""
    if tools.nvcc is None:
        pytest.skip("no nvcc: the result's validity isn't tried")

    def compile(slice: Slice, replaced: tuple[Replacement, ...]) -> str:
        lowering = Lowering(candidate="x", marker="", replaced=replaced)
        text = device_text(slice, lowering, keep=slice.instantiations).text
        unit, ptx = tmp_path / "slice.cu", tmp_path / "slice.ptx"
        unit.write_text(text, encoding="utf-8")
        command = [str(tools.nvcc), *tools.ccbin, "-std=c++17", "-arch=sm_90a", "-ptx", "-o", str(ptx), str(unit)]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, f"{done.stderr}\n{text}"
        return ptx.read_text(encoding="utf-8")

    return compile


# One thread after the other: enough for kernels without barriers, in either order of the threads.
ONE_BY_ONE = """
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>
#define __global__
#define __device__
#define __shared__ static
#define __restrict__
struct Three { unsigned x, y, z; };
static Three threadIdx, blockIdx, blockDim, gridDim;
template <typename T> T __ldg(const T* p) { return *p; }
template <typename F> void run(unsigned grid, unsigned block, bool reverse, F f) {
  gridDim = {grid, 1, 1};
  blockDim = {block, 1, 1};
  for (unsigned b = 0; b < grid; ++b)
    for (unsigned t = 0; t < block; ++t) {
      blockIdx = {b, 0, 0};
      threadIdx = {reverse ? block - 1 - t : t, 0, 0};
      f();
    }
}
"""


@pytest.fixture
def outputs(tools: Toolchain, tmp_path: Path) -> Callable[[Slice, tuple[Replacement, ...], str], str]:
    """Build declarations and a ``main`` with the host compiler, misaligned accesses being fatal; returns its output."""
    if tools.cxx is None:
        pytest.skip("no C++ compiler: the result isn't run")

    def run(slice: Slice, replaced: tuple[Replacement, ...], main: str) -> str:
        texts = {replacement.declaration: replacement.text for replacement in replaced}
        body = "\n".join(texts.get(declaration.id, declaration.text) for declaration in slice.declarations)
        unit, program = tmp_path / "run.cpp", tmp_path / "run"
        unit.write_text(f"{ONE_BY_ONE}\n{body}\n{main}\n", encoding="utf-8")
        sanitised = ["-fsanitize=alignment,bounds", "-fno-sanitize-recover=all", "-fno-strict-aliasing"]
        command = [str(tools.cxx), "-std=c++17", "-O1", "-w", *sanitised, "-o", str(program), str(unit)]
        built = subprocess.run(command, capture_output=True, text=True)
        assert built.returncode == 0, built.stderr
        done = subprocess.run([str(program)], capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run

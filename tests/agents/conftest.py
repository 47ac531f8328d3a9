"""Slices made by hand out of a few declarations, and what reads, compiles and runs them."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from astra_integrate.agents.models.rules.reading import Reading, read
from astra_integrate.errors import MissingTool
from astra_integrate.extract.parsing import clang_arguments
from astra_integrate.extract.render import device_text
from astra_integrate.records import CompileFlags, Declaration, Extent, Kernel, Lowering, Replacement, Slice, Source
from astra_integrate.records import digest_of
from astra_integrate.settings import Settings
from astra_integrate.toolchain.discovery import Toolchain, discover

FLAGS = CompileFlags(standard="c++17")


def slice_of(*texts: str, instantiations: tuple[str, ...] = (), includes: tuple[str, ...] = ()) -> Slice:
    """A slice whose declarations are ``texts``, all at the top level; the first kernel is the slice's."""
    declarations, offset = [], 0
    for order, text in enumerate(texts):
        found = re.search(r"#define (\w+)|(\w+)\s*\((?!\*)(?=[^{;]*\{)|(?:struct|using)\s+(\w+)", text)
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
    kernel = Kernel(name=first.names[0], extent=first.extent, signature="", body_hash="")
    source = Source(framework="none", version="0", spec="none", kind="path", root=".", content="0")
    return Slice(
        source=source,
        unit="a.cu",
        arch="sm_90a",
        kernel=kernel,
        declarations=tuple(declarations),
        includes=includes or ("<cstdint>", "<cuda_bf16.h>", "<cuda_fp16.h>"),
        instantiations=instantiations,
        flags=FLAGS,
    )


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
    assert tools.nvcc is not None and shutil.which(str(tools.nvcc))

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

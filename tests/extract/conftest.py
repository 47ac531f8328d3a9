"""Small CUDA sources of our own, read as the framework's would be."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from astra_integrate.extract.slicing import Parsed, cut_slice, read_unit
from astra_integrate.frameworks.base import Target
from astra_integrate.records import CompileFlags, Slice, Source

Files = Mapping[str, str | bytes]


@pytest.fixture(scope="session")
def read_source(tmp_path_factory: pytest.TempPathFactory, toolchain) -> Callable[..., Parsed]:  # type: ignore[no-untyped-def]
    """``read_source({name: content, …}, unit="unit.cu")`` parses ``unit`` of a tree with those files."""

    def read(files: Files | str, unit: str = "unit.cu", arch: str = "sm_90a") -> Parsed:
        root = tmp_path_factory.mktemp("source")
        for name, content in ({unit: files} if isinstance(files, str) else files).items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
        source = Source(framework="own", version="0", spec="own", kind="path", root=str(root), content="0")
        flags = CompileFlags(standard="c++20", include_dirs=(".",))
        return read_unit(source, unit, arch, flags, toolchain)

    return read


@pytest.fixture(scope="session")
def slice_of(read_source: Callable[..., Parsed]) -> Callable[..., Slice]:
    """``slice_of(files, host="op")`` or ``slice_of(files, kernel="k")``: the slice of a small source."""

    def cut(files: Files | str, *, host: str | None = None, kernel: str | None = None, unit: str = "unit.cu") -> Slice:
        parsed = read_source(files, unit)
        return cut_slice(parsed, Target(kernel, host, host, (unit,)))

    return cut

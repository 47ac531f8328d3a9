"""Which outside headers a rendered slice keeps: a rule over header names, the same for every framework.

Standard and CUDA headers stay. A library's headers stay where its namespace is mentioned. Of the
tensor libraries only what is header-only stays (scalar types), since the rest needs their host side.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from astra_integrate.extract.lexing import identifiers

#: Namespaces that the headers kept here declare: ``using namespace`` of one of them may stay.
OUTSIDE_NAMESPACES = frozenset({"std", "cub", "cuda", "cute", "cutlass", "cooperative_groups", "nvcuda", "thrust"})

_SCALARS = ("Half", "BFloat16", "Float8_e4m3fn", "Float8_e4m3fnuz", "Float8_e5m2")
_HEADER_ONLY = re.compile(r"torch/headeronly/.+|c10/util/(?:Half|BFloat16|Float8_\w+|Float4_\w+|complex)\.h")
_TENSOR_LIBRARY = re.compile(r"(?:torch|ATen|c10|tvm|dlpack|pybind11|aten|caffe2)/.*|Python\.h")
_OTHER_HOST = re.compile(
    r"(?:hip|hipcub|rocm?\w*|nccl|rccl|cublas|cusparse|cusolver|cufft|cudnn|nvrtc|nvml|cupti|mpi)[^/]*(?:/.*|\.h)"
)
# A header whose name is not its namespace: words of which one must be mentioned.
_NEEDED_BY: tuple[tuple[re.Pattern[str], frozenset[str]], ...] = (
    (re.compile(r"torch/headeronly/core/ScalarType\.h"), frozenset({"ScalarType", "CppTypeToScalarType"})),
    (
        re.compile(r"torch/headeronly/util/(?:Exception|shim_utils)\.h"),
        frozenset({"STD_TORCH_CHECK", "TORCH_ERROR_CODE_CHECK"}),
    ),
    (re.compile(r"(?:torch|c10)/.*"), frozenset({"c10", "torch", "at", "C10_HOST_DEVICE", "C10_DEVICE"})),
    (re.compile(r"(?:cutlass|cute)/.*"), frozenset({"cutlass", "cute"})),
    (re.compile(r"cooperative_groups(?:\.h|/.*)"), frozenset({"cooperative_groups"})),
    (re.compile(r"mma\.h"), frozenset({"nvcuda"})),
    (re.compile(r"curand[\w.]*"), frozenset({"curand_init", "curandState", "curand_uniform", "curand"})),
)


def outside_includes(names: Iterable[str], header_folders: Sequence[Path]) -> tuple[str, ...]:
    """The headers that a slice may keep, as ``<name>``, out of those that the unit's own files include.

    Args:
        names: header names as included, in the order of the unit.
        header_folders: include folders of outside headers; where a tensor library's headers are
            among the names, its header-only scalar types that exist there are put first.
    """
    names = tuple(dict.fromkeys(names))
    scalars = _scalar_headers(header_folders) if any(_TENSOR_LIBRARY.fullmatch(name) for name in names) else ()
    stay = [name for name in names if _HEADER_ONLY.fullmatch(name) or not _is_host_library(name)]
    return tuple(f"<{name}>" for name in dict.fromkeys((*scalars, *stay)))


def device_includes(includes: Sequence[str], texts: Iterable[str]) -> tuple[str, ...]:
    """``#include`` lines for device code: standard and CUDA headers, and libraries that ``texts`` mention."""
    words = frozenset[str]().union(*(identifiers(text) for text in texts))
    return tuple(f"#include {include}" for include in includes if _is_needed(include[1:-1], words))


def op_includes(includes: Sequence[str]) -> tuple[str, ...]:
    """``#include`` lines for the whole op: as above without any header of a tensor library."""
    return tuple(f"#include {include}" for include in includes if not _TENSOR_LIBRARY.fullmatch(include[1:-1]))


def prologue(texts: Iterable[str]) -> tuple[str, ...]:
    """Lines that stand in for the two things of a tensor library's host side that device code may spell.

    ``at`` is another name of ``c10`` there; a check inside a ``constexpr`` host path has no effect on the device.
    """
    words = frozenset[str]().union(*(identifiers(text) for text in texts))
    lines: list[str] = []
    if "at" in words:
        lines.append("namespace c10 {}\nnamespace at { using namespace c10; }")
    if "TORCH_CHECK" in words:
        lines.append("#ifndef TORCH_CHECK\n#define TORCH_CHECK(...) ((void)0)\n#endif")
    return tuple(lines)


def _scalar_headers(folders: Sequence[Path]) -> tuple[str, ...]:
    found: list[str] = []
    for scalar in _SCALARS:
        for name in (f"torch/headeronly/util/{scalar}.h", f"c10/util/{scalar}.h"):
            if any((folder / name).is_file() for folder in folders):
                found.append(name)
                break
    return tuple(found)


def _is_host_library(name: str) -> bool:
    return _TENSOR_LIBRARY.fullmatch(name) is not None or _OTHER_HOST.fullmatch(name) is not None


def _is_needed(name: str, words: frozenset[str]) -> bool:
    for pattern, needed in _NEEDED_BY:
        if pattern.fullmatch(name):
            return bool(needed & words)
    folder, slash, _ = name.partition("/")
    # A library's folder is its namespace; a plain header is the standard's, the system's or CUDA's.
    return not slash or folder in {"sys", "nv", "bits"} or folder in words

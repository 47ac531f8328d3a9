"""A whole small framework of our own is indexed: units in processes, failures named, nothing missing in silence."""

from __future__ import annotations

import threading
from collections import Counter
from pathlib import Path

import pytest

from astra_integrate import frameworks
from astra_integrate.errors import BadInput
from astra_integrate.extract import textscan
from astra_integrate.extract.index import build_index
from astra_integrate.frameworks.base import Accounting
from astra_integrate.records import Binding, Caller, CompileFlags, KernelIndex, Source

FILES = {
    "src/plain.cu": """\
#include "shared.cuh"
__global__ void plain(float* x) { x[0] = 1; }
void run_plain(float* x) { plain<<<1, 32>>>(x); helper(x); }
#ifdef SOMETHING_ELSE
__global__ void hidden(float* x) { x[0] = 3; }
#endif
#ifdef USE_ROCM
__global__ void for_rocm(float* x) { x[0] = 4; }
#endif
""",
    "src/shared.cuh": """\
#pragma once
#define MAKE(NAME) __global__ void NAME(float* x) { x[0] = 2; }
MAKE(made)
__global__ void later(float* x);
inline void helper(float* x) { made<<<1, 1>>>(x); }
""",
    "src/later.cu": """\
#include "shared.cuh"
__global__ void later(float* x) { x[0] = 5; }
void run_later(float* x) { later<<<1, 1>>>(x); run_later_too(x); }
""",
    "src/flawed.cu": "__global__ void fine(float* x) { x[0] = 1; }\nvoid host() { undeclared(); }\n",
    "src/unused.cuh": "__global__ void unused(float* x) { x[0] = 1; }\n",
    "src/template_for_generator.cuh": "__global__ void generated(float* x) { x[0] = 1; }\n",
    "src/amd.cu": "__global__ void amd(float* x) { x[0] = 1; }\n",
}


class Tiny:
    """A framework that needs nothing from outside."""

    name = project = "tiny"
    artifact = "sdist"
    repository = ""
    op_data = Path()

    def own_folders(self, root):
        return ("src",)

    def units(self, root):
        found = sorted(path.relative_to(root).as_posix() for path in (root / "src").glob("*.cu"))
        return tuple(path for path in found if "amd" not in path)

    def flags(self, root, unit, arch):
        return CompileFlags(standard="c++17", include_dirs=("src",))

    def header_needs(self, root):
        return ()

    def bindings(self, root):
        return (
            Binding(op="plain", namespace="t", host_function="run_plain", host_file="src/plain.cu"),
            Binding(op="nothing", namespace="t", host_function="gone"),
        )

    def with_callers(self, root, bindings):
        caller = Caller(file="tiny.py", line=1, function="f")
        return tuple(b.model_copy(update={"callers": (caller,)}) for b in bindings)

    def accounting(self, root):
        texts = {p.relative_to(root).as_posix(): p.read_text() for p in sorted((root / "src").iterdir())}
        return Accounting(texts, lambda path: "amd" in path, lambda path: "generator" in path)


@pytest.fixture(scope="module", autouse=True)
def known():
    frameworks._FRAMEWORKS["tiny"] = Tiny()
    yield
    del frameworks._FRAMEWORKS["tiny"]


def written(folder):
    for name, text in FILES.items():
        path = folder / "tree" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return Source(framework="tiny", version="0", spec="tiny", kind="path", root=str(folder / "tree"), content="0")


@pytest.fixture
def tiny(tmp_path):
    return written(tmp_path)


@pytest.fixture(scope="module")
def index(settings_, toolchain, known, tmp_path_factory):
    folder = tmp_path_factory.mktemp("index")
    return build_index(written(folder), settings_.model_copy(update={"home": folder, "jobs": 2}), toolchain)


@pytest.fixture
def fresh(settings_, tmp_path):
    """Settings with a home of their own, so that a cache is cold."""
    return settings_.model_copy(update={"home": tmp_path / "home", "jobs": 2})


def test_the_index_of_a_small_framework(index):
    assert {k.name for k in index.kernels} == {"plain", "made", "later", "fine"}
    made = next(k for k in index.kernels if k.name == "made")
    assert made.units == ("src/later.cu", "src/plain.cu")
    plain = next(b for b in index.bindings if b.op == "plain")
    assert plain.kernels == ("made", "plain")
    assert plain.callers and not plain.ambiguous
    assert next(b for b in index.bindings if b.op == "nothing").kernels == ()
    assert KernelIndex.from_json(index.to_json()) == index


def test_every_kernel_of_the_text_is_indexed_or_has_a_reason(index):
    assert {entry.name: entry.reason for entry in index.unindexed} == {
        "hidden": textscan.SKIPPED,
        "for_rocm": textscan.OTHER_BRANCH,
        "unused": textscan.NO_UNIT,
        "generated": textscan.GENERATED,
        "amd": textscan.OTHER_DEVICE,
    }
    assert next(e.line for e in index.unindexed if e.name == "hidden") == 5


def test_errors_in_a_unit_are_reported_and_its_kernels_kept(index):
    failures = {f.unit: f for f in index.failures}
    assert failures["src/flawed.cu"].severity == "error"
    assert "undeclared" in failures["src/flawed.cu"].cause
    assert "src/flawed.cu:2" in failures["src/flawed.cu"].cause
    assert "src/plain.cu" not in failures


def test_a_missing_header_is_a_fatal_failure_that_names_it(tiny, fresh, toolchain):
    unit = Path(tiny.root) / "src" / "later.cu"
    unit.write_text('__global__ void before(float* x) { x[0] = 1; }\n#include "not_there.h"\n' + unit.read_text())
    index = build_index(tiny, fresh, toolchain, ["src/later.cu"])
    (failure,) = index.failures
    assert failure.severity == "fatal"
    assert "'not_there.h' file not found" in failure.cause
    assert {k.name for k in index.kernels} == {"before", "later", "made"}


def test_a_unit_that_takes_too_long_is_a_failure_and_the_others_are_read(tiny, fresh, toolchain):
    hurried = fresh.model_copy(update={"parse_seconds": 0.05})
    index = build_index(tiny, hurried, toolchain)
    assert Counter(f.severity for f in index.failures) == {"timeout": 3}
    # Nothing of it was remembered as a result.
    assert build_index(tiny, fresh, toolchain).kernels


def test_a_unit_that_is_not_there_and_a_source_without_cuda_are_refused(tiny, fresh, toolchain):
    with pytest.raises(BadInput, match=r"src/none\.cu is no CUDA translation unit"):
        build_index(tiny, fresh, toolchain, ["src/none.cu"])
    for path in Path(tiny.root, "src").glob("*.cu"):
        path.unlink()
    with pytest.raises(BadInput, match="holds no CUDA source"):
        build_index(tiny, fresh, toolchain)


def test_only_what_changed_is_read_again_headers_included(tiny, fresh, toolchain):
    build_index(tiny, fresh, toolchain)
    before = set((fresh.cache / "units").glob("*/*.json"))
    first = build_index(tiny, fresh, toolchain)
    assert set((fresh.cache / "units").glob("*/*.json")) == before

    header = Path(tiny.root) / "src" / "shared.cuh"
    text = header.read_text()
    header.write_text(text.replace("MAKE(made)", "MAKE(renamed)").replace("made<<<", "renamed<<<"))
    changed = build_index(tiny, fresh, toolchain)
    assert {k.name for k in changed.kernels} == {"plain", "renamed", "later", "fine"}
    assert len(set((fresh.cache / "units").glob("*/*.json")) - before) == 2

    header.write_text(text)
    again = set((fresh.cache / "units").glob("*/*.json"))
    assert build_index(tiny, fresh, toolchain) == first
    assert set((fresh.cache / "units").glob("*/*.json")) == again


def test_a_damaged_or_deleted_cache_costs_only_time(tiny, fresh, toolchain):
    first = build_index(tiny, fresh, toolchain, ["src/plain.cu"])
    for path in (fresh.cache / "units").glob("*/*.json"):
        path.write_text("{ not json")
    assert build_index(tiny, fresh, toolchain, ["src/plain.cu"]) == first


def test_two_at_once_share_the_cache(tiny, fresh, toolchain):
    results, units = [], ["src/plain.cu"]
    threads = [
        threading.Thread(target=lambda: results.append(build_index(tiny, fresh, toolchain, units))) for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 2 and results[0] == results[1]


@pytest.mark.network
def test_a_real_op_leads_to_its_kernel_and_its_python(vllm_0_33, settings_, toolchain):
    index = build_index(vllm_0_33, settings_, toolchain, ["csrc/activation_kernels.cu"])
    binding = next(b for b in index.bindings if b.op == "silu_and_mul" and b.namespace == "_C")
    assert binding.kernels == ("vllm::act_and_mul_kernel",)
    assert any(caller.file == "vllm/model_executor/layers/activation.py" for caller in binding.callers)
    own = [one for one in index.launches if one.host_function == "silu_and_mul"]
    assert len({one.offset for one in own}) == 3
    assert all(len(one.instantiations) == 3 for one in own)
    assert not index.failures


@pytest.mark.network
def test_a_real_jit_export_leads_to_its_kernels(sglang_0_5_23, settings_, toolchain):
    unit = "sglang/kernels/jit/csrc/elementwise/activation.cuh"
    index = build_index(sglang_0_5_23, settings_, toolchain, [unit])
    binding = next(b for b in index.bindings if b.op == "run_activation")
    assert binding.kernels == ("sglang::act_and_mul_kernel",)
    assert binding.callers
    assert {one.style for one in index.launches if one.kernel} == {"launch_object"}

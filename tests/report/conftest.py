"""A run of our own invention, with every record that a report shows."""

from __future__ import annotations

import pytest

from astra_integrate.records import (
    Addition,
    Candidate,
    CompileFlags,
    Correctness,
    Declaration,
    Edit,
    Event,
    Extent,
    Kernel,
    KernelEvidence,
    Machine,
    OutputError,
    Patch,
    Provenance,
    Record,
    Replacement,
    RunResult,
    Slice,
    Source,
    StaticEvidence,
    Timing,
    Trial,
    UnitCompile,
    WorkloadResult,
)

BEFORE = """template <typename T>
__global__ void scale_kernel(T* __restrict__ out, const T* __restrict__ in, const int d) {
  for (int i = threadIdx.x; i < d; i += blockDim.x) {
    out[blockIdx.x * d + i] = in[blockIdx.x * d + i] * T(2);  // one element at a time
  }
}"""
AFTER = BEFORE.replace("one element at a time", "sixteen bytes at a time").replace("i += blockDim.x", "i += VEC")
DIFF = """diff --git a/csrc/scale.cu b/csrc/scale.cu
index 1111111..2222222 100644
--- a/csrc/scale.cu
+++ b/csrc/scale.cu
@@ -1,4 +1,4 @@ namespace ns {
 template <typename T>
-  out[i] = in[i];  // a < b && c
+  out[i] = in[i] * 2;  // <script>alert(1)</script>
 }
"""
EXTENT = Extent(file="csrc/scale.cu", start=10, end=20, bytes_digest="0" * 64)
MACHINE = Machine(
    host="box", cpu="Some CPU", cores=2, memory_bytes=8 << 30, compiler="g++ 12.2", cuda="13.0", python="3.11.9"
)


def _evidence(name: str, width: int, registers: int) -> StaticEvidence:
    kernel = KernelEvidence(
        symbol="_Z",
        name=name,
        registers=registers,
        global_loads=((width, 2),),
        global_stores=((width, 1),),
        special=3,
        branches=4,
        instructions=120,
    )
    return StaticEvidence(arch="sm_90a", compiler="nvcc 13.0.88", kernels=(kernel,))


def _correctness(candidate: float, verdict: str = "correct under emulation") -> Correctness:
    results = tuple(
        WorkloadResult(
            workload=f"{rows} rows of {columns}, float16",
            order=order,
            verdict=verdict,
            oracle="expression",
            errors=(
                OutputError(output="out", candidate=candidate * rows, baseline=4e-4, limit=1e-3, mismatches=0),
                OutputError(output="scales", candidate=0.0, baseline=0.0, limit=0.0),
            ),
            seconds=0.2,
        )
        for rows, columns in ((1, 8), (2, 129))
        for order in ("forward", "reverse")
    )
    return Correctness(verdict=verdict, results=results)


NOT_TIMED = Timing(verdict="not timed", reason="no GPU")


def make_candidate(**changes: object) -> Candidate:
    values: dict[str, object] = {
        "id": "c1",
        "slice_digest": "s",
        "replaced": (Replacement(declaration="scale_kernel#1", text=AFTER),),
        "added": (Addition(anchor="scale_kernel#1", name="VEC", text="constexpr int VEC = 8;"),),
        "author": "rules",
        "strategy": "vectorised access",
        "reasoning": "128-bit loads and stores where both are aligned",
        "expected": "fewer memory instructions per byte",
    }
    return Candidate(**{**values, **changes})


@pytest.fixture
def slice_() -> Slice:
    source = Source(framework="vllm", version="1", spec="vllm==1", kind="sdist", root="x", content="f" * 64)
    declaration = Declaration(
        id="scale_kernel#1",
        names=("scale_kernel",),
        kind="function template",
        role="device",
        order=0,
        extent=EXTENT,
        text=BEFORE,
        is_kernel=True,
    )
    return Slice(
        source=source,
        unit="csrc/scale.cu",
        arch="sm_90a",
        kernel=Kernel(name="ns::scale_kernel", extent=EXTENT, signature="void (T*, const T*, int)", body_hash="b"),
        op="scale",
        declarations=(declaration,),
        flags=CompileFlags(standard="c++17", nvcc=("--expt-relaxed-constexpr",), assumed=("-O3",)),
    )


@pytest.fixture
def result() -> RunResult:
    return RunResult(
        run="20260101-scale-0123abcd",
        source="vllm==1",
        kernel="ns::scale_kernel",
        op="scale",
        arch="sm_90a",
        model="rules",
        outcome="patched",
        best=make_candidate(),
        correctness=_correctness(3e-4),
        timing=NOT_TIMED,
        chosen_by="static evidence, not timed",
        compile=UnitCompile(
            unit="csrc/scale.cu", ok=True, command=("nvcc", "-O3", "csrc/scale.cu"), seconds=12.3, same_sass=True
        ),
        tried=2,
        declined=("launch geometry: the block is fixed by a shared array",),
        stages=(("slice", 4.2), ("optimise", 70.0)),
        not_measured=("speed: this machine has no GPU", "end to end: no GPU"),
        report="/home/me/.local/share/astra-integrate/runs/20260101-scale-0123abcd/report.html",
        diff="/home/me/.local/share/astra-integrate/runs/20260101-scale-0123abcd/change.diff",
        seconds=75.0,
    )


def events_of(*found: Record) -> tuple[Event, ...]:
    return tuple(
        Event(sequence=number, stage="stage", key=f"k{number}", kind=type(record).__name__, payload=record.to_json())
        for number, record in enumerate(found, 1)
    )


@pytest.fixture
def events(slice_: Slice, result: RunResult) -> tuple[Event, ...]:
    bad = make_candidate(id="c2", strategy="fast math", author="rules", reasoning="__expf", added=(), replaced=())
    trials = (
        Trial(
            candidate="c1",
            correctness=_correctness(3e-4),
            timing=NOT_TIMED,
            evidence=_evidence("ns::scale_kernel_astra_0123abcd<half>", 128, 40),
            machine=MACHINE,
        ),
        Trial(
            candidate="c2",
            correctness=Correctness(verdict="wrong", detail="3 of 258 elements beyond the limit"),
            timing=NOT_TIMED,
            machine=MACHINE,
        ),
    )
    patch = Patch(
        framework="vllm",
        version="1",
        op="scale",
        edits=(Edit(extent=EXTENT, text=AFTER),),
        impact=("scale",),
        diff=DIFF,
        closure_hash="c",
        launcher_digest="l",
        marker="_astra_0123abcd",
        provenance=Provenance(
            candidate="c1",
            author="rules",
            strategy="vectorised access",
            chosen_by="static evidence, not timed",
            correctness="correct under emulation",
            timing="not timed: no GPU",
        ),
    )
    assert result.best is not None and result.compile is not None
    return events_of(
        slice_, _evidence("ns::scale_kernel<half>", 16, 32), result.best, bad, *trials, patch, result.compile, result
    )

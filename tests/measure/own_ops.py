"""Small ops of our own, as text and as workloads."""

from __future__ import annotations

from typing import Any

from astra_integrate.measure.gate import Op
from astra_integrate.records import Comparator, CompileFlags, ScalarArgument, TensorArgument, Workload

FLAGS = CompileFlags(standard="c++20")


def tensor(name: str, role: Any, *shape: int, dtype: Any = "float32", **more: Any) -> TensorArgument:
    return TensorArgument(name=name, role=role, shape=shape, dtype=dtype, **more)


def workload(*arguments: TensorArgument | ScalarArgument, oracle: str | None = None, **more: Any) -> Workload:
    outputs = [a for a in arguments if isinstance(a, TensorArgument) and a.role != "in"]
    comparators = tuple(
        Comparator(output=a.name, how="error" if a.dtype in ("float32", "float16", "bfloat16") else "bits")
        for a in outputs
    )
    fields: dict[str, Any] = {"id": "w", "op": "own", "role": "representative", "seed": 1} | more
    return Workload(arguments=arguments, comparators=comparators, oracle=oracle, **fields)


def op(text: str, parameters: int, host: str = "own") -> Op:
    return Op(text, host, parameters, FLAGS)


def scalar(name: str, value: float | int | bool | str | None) -> ScalarArgument:
    return ScalarArgument(name=name, value=value)


def one_kernel(body: str, launch: str = "1, 32", prologue: str = "") -> str:
    """An op ``own(out, input)`` over floats with one kernel ``k(float* out, const float* in, int n)``."""
    return f"""
{prologue}
__global__ void k(float* __restrict__ out, const float* __restrict__ in, int n) {{
{body}
}}
void own(torch::Tensor& out, const torch::Tensor& input) {{
  int n = input.numel();
  k<<<{launch}>>>(out.data_ptr<float>(), input.data_ptr<float>(), n);
}}
"""

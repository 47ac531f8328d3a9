from __future__ import annotations

import pytest

from astra_integrate.measure.emulation.launches import host_text, rewrite_launches, rewrite_shared
from astra_integrate.measure.emulation.ptx import rewrite_assembly

LAUNCHES = [
    ("k<<<1, 2>>>(a);", "k ->* ::emu::config(1, 2)(a);"),
    ("ns::k<T, 8><<<g, dim3(a >> 3, 2), 0, s>>>(x);", "ns::k<T, 8> ->* ::emu::config(g, dim3(a >> 3, 2), 0, s)(x);"),
    ("k<v<int>><<<g, b>>>();", "k<v<int>> ->* ::emu::config(g, b)();"),
    (
        "#define L(K) \\\n  K<T> \\\n    <<<g, b>>>( \\\n      x)",
        "#define L(K) \\\n  K<T> \\\n     ->* ::emu::config(g, b)( \\\n      x)",
    ),
    ("// k<<<1, 1>>>(a)", "// k<<<1, 1>>>(a)"),
    ('s = "<<<";', 's = "<<<";'),
    ("a << b; x <<< y;", "a << b; x <<< y;"),
]


@pytest.mark.parametrize(("before", "after"), LAUNCHES)
def test_launches(before, after):
    assert rewrite_launches(before) == after


@pytest.mark.parametrize(
    ("before", "name", "alignment"),
    [
        ("extern __shared__ float s[];", "float* const s = static_cast<float*>(::emu::dynamic_shared());", 16),
        ("extern __shared__ __align__(128) uint8_t smem[];", "uint8_t* const smem", 128),
        ("extern __shared__ alignas(1024) unsigned char q[];", "unsigned char* const q", 1024),
        ("static __shared__ int c;", "__shared__ int c;", 16),
        ("__shared__ alignas(16) float x[4];", "alignas(16) __shared__ float x[4];", 16),
        ("// extern __shared__ float s[];", "// extern __shared__ float s[];", 16),
    ],
)
def test_shared_memory(before, name, alignment):
    text, asked = rewrite_shared(before)
    assert name in text
    assert asked == alignment


@pytest.mark.parametrize(
    ("before", "holds"),
    [
        ('asm volatile("st.global.cs.b32 [%0], %1;" :: "l"(p), "r"(v));', "store<4>(::emu::ptx::pointer((p)), (v))"),
        ('asm("mov.b32 {%0, %1}, %2;" : "=h"(lo), "=h"(hi) : "r"(v));', "split((v), (lo), (hi))"),
        ('asm("mov.u32 %0, %%laneid;" : "=r"(l));', "assign((l), ::emu::lane())"),
        ('asm("cvt.rni.sat.s8.f32 %0, %1;" : "=r"(d) : "f"(x));', "to_integer<int8_t>((x), 'n')"),
        ('asm volatile("cp.async.wait_group %0;\\n" ::"n"(N));', "do { {  } } while (0)"),
        ('asm("mad %[d], %[a];" : [d] "=r"(x) : [a] "r"(y));', 'unknown("mad'),
        ('asm(TEXT : "=r"(x));', "unknown("),
    ],
)
def test_assembly(before, holds):
    assert holds in rewrite_assembly(before)


def test_lines_stay_where_they_are():
    text = 'int a;\nasm volatile(\n  "mov.u32 %0, 0;"\n  : "=r"(x));\nextern __shared__\n  float s[];\nint b;\n'
    made = host_text(text).text
    assert made.split("\n").index("int b;") == text.split("\n").index("int b;")

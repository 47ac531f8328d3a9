"""The patched translation unit through the framework's own flags, and the proof that it holds the candidate's code."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from astra_integrate.extract.render import keep_text
from astra_integrate.measure.compile import (
    LIMITS,
    CompileError,
    Limits,
    compile_error,
    nvcc_command,
    run_compiler,
)
from astra_integrate.measure.sass import Instruction, disassemble, kernel_name, same_code
from astra_integrate.records import CompileFlags, UnitCompile

if TYPE_CHECKING:
    from astra_integrate.toolchain.discovery import Toolchain

Kernels = Mapping[str, tuple[Instruction, ...]]


def compile_unit(
    root: Path,
    unit: str,
    flags: CompileFlags,
    arch: str,
    toolchain: Toolchain,
    folder: Path,
    *,
    marker: str,
    candidate: Path | None = None,
    instantiations: Sequence[str] = (),
    limits: Limits = LIMITS,
) -> UnitCompile:
    """Compile ``unit`` under ``root`` and look for the kernels that carry ``marker``.

    Args:
        root: the patched copy of the source; relative include folders are below it.
        unit: the file. A header, which by itself emits no template, is compiled with ``instantiations``.
        flags: the framework's flags for it, outside headers included.
        arch: for example ``sm_90a``.
        toolchain: nvcc and cuobjdump.
        folder: where the cubin goes (``unit.cubin``).
        marker: the suffix of the new names.
        candidate: the cubin of the candidate's slice; its kernels must be the same code as the unit's.
        instantiations: template-ids of the new kernels.
        limits: time and memory.

    What does not hold is in the record, not raised; only a missing tool is.
    """
    folder.mkdir(parents=True, exist_ok=True)
    cubin = folder / "unit.cubin"
    cubin.unlink(missing_ok=True)
    source = root / unit
    if source.suffix != ".cu":
        source = folder / "unit.cu"
        source.write_text(f'#include "{root / unit}"\n{keep_text(instantiations)}', encoding="utf-8")
    command = [*nvcc_command(flags, arch, toolchain, root=root), str(source), "-o", str(cubin)]
    begun = time.monotonic()
    run = run_compiler(command, limits=limits, cwd=root)
    seconds = time.monotonic() - begun
    if run.code != 0:
        error = compile_error(run, "", limits)
        return _failed(unit, command, seconds, error)
    built = disassemble(cubin, toolchain)
    marked = {symbol: code for symbol, code in built.items() if marker in symbol}
    names = tuple(sorted(kernel_name(symbol) for symbol in marked))
    result = UnitCompile(unit=unit, ok=True, command=tuple(command), seconds=seconds, marked_kernels=names)
    if not marked:
        error_text = f"{unit} compiles, but its object holds no kernel named *{marker}"
        return result.model_copy(update={"ok": False, "same_sass": False, "error": error_text})
    if candidate is None:
        return result.model_copy(update={"detail": "not compared with the candidate's own object"})
    own = {symbol: code for symbol, code in disassemble(candidate, toolchain).items() if marker in symbol}
    same, detail = compared(own, marked)
    return result.model_copy(update={"same_sass": same, "detail": detail})


def compared(candidate: Kernels, built: Kernels) -> tuple[bool, str]:
    """Whether all kernels that both objects hold are the same code, and one line about it.

    Kernels are matched by symbol, else by name and template arguments (an anonymous namespace's symbols
    differ from file to file). Nothing in common is no proof: False.
    """
    by_name = {kernel_name(symbol): code for symbol, code in built.items()}
    same: list[str] = []
    differ: list[str] = []
    missing: list[str] = []
    for symbol, code in candidate.items():
        name = kernel_name(symbol)
        other = built.get(symbol) or by_name.get(name)
        if other is None:
            missing.append(name)
        else:
            (same if same_code(code, other) else differ).append(name)
    parts = [f"{len(same)} of {len(same) + len(differ)} kernels are the same instructions as the candidate's"]
    if differ:
        parts.append(f"different: {', '.join(sorted(differ))}")
    if missing:
        parts.append(f"not in the unit: {', '.join(sorted(missing))}")
    only_built = len(built) - len(same) - len(differ)
    if only_built > 0:
        parts.append(f"{only_built} more instantiations only in the unit")
    return bool(same) and not differ and not missing, "; ".join(parts)


def _failed(unit: str, command: Sequence[str], seconds: float, error: CompileError) -> UnitCompile:
    words = "; ".join(error.errors) or error.message
    return UnitCompile(unit=unit, ok=False, command=tuple(command), seconds=seconds, error=words)

"""Static facts about compiled kernels: what ptxas reports and what the instructions show.

No timing follows from them.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from astra_integrate.measure.sass import Instruction, disassemble, kernel_name, resource_usage
from astra_integrate.records import KernelEvidence, StaticEvidence

if TYPE_CHECKING:
    from astra_integrate.toolchain.discovery import Toolchain

_PROPERTIES = re.compile(r"Function properties for '?(?P<symbol>[^\s']+)")
_ENTRY = re.compile(r"Compiling entry function '(?P<symbol>[^']+)'")
_FRAME = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_USED = re.compile(r"Used (\d+) registers")
_SHARED = re.compile(r"(\d+) bytes smem")

_GLOBAL_LOADS = {"LDG", "LD", "LDGSTS"}
_GLOBAL_STORES = {"STG", "ST"}
_SHARED_LOADS = {"LDS", "LDSM"}
_SHARED_STORES = {"STS", "STSM"}
_LOCAL = {"LDL", "STL"}
_ATOMICS = {"ATOM", "ATOMG", "ATOMS", "RED", "REDG", "REDS"}
_BARRIERS = {"BAR", "UCGABAR_ARV", "UCGABAR_WAIT"}
_BRANCHES = {"BRX", "BRXU", "JMX"}
# Bytes per block that ptxas adds to static shared memory for the system's own use; cubins count them, logs don't.
_RESERVED_SHARED = 1024


# What every copied name carries before eight hexadecimal digits of its candidate: new code is known by it.
MARKER = "_astra_"


def unmarked(name: str) -> str:
    """``name`` without any candidate's marker: the name that the framework's own kernel has."""
    return re.sub(rf"{MARKER}[0-9a-f]{{8}}", "", name)


def evidence(cubin: Path, ptxas_log: str, toolchain: Toolchain, arch: str) -> StaticEvidence:
    """Facts of every kernel in ``cubin``, in the cubin's order.

    Spills are in the log alone; for a kernel that ``ptxas_log`` (of ``-Xptxas -v``) doesn't name they
    are 0, and registers, stack and shared bytes come from the cubin.
    Raises ``MissingTool`` without cuobjdump, ``CheckFailed`` where it can't read the file.
    """
    begun = time.monotonic()
    reported = parse_ptxas(ptxas_log)
    recorded = resource_usage(cubin, toolchain)
    kernels = [
        _kernel(symbol, code, {**_from_cubin(recorded.get(symbol, {})), **reported.get(symbol, {})})
        for symbol, code in disassemble(cubin, toolchain).items()
        if symbol in recorded
    ]
    version = toolchain.tool("nvcc").version
    return StaticEvidence(
        arch=arch,
        compiler=f"nvcc {version}".strip(),
        kernels=tuple(kernels),
        seconds=time.monotonic() - begun,
    )


def parse_ptxas(log: str) -> dict[str, dict[str, int]]:
    """Per symbol the fields of :class:`KernelEvidence` that ``-Xptxas -v`` tells."""
    found: dict[str, dict[str, int]] = {}
    symbol = ""
    for line in log.splitlines():
        if match := _ENTRY.search(line) or _PROPERTIES.search(line):
            symbol = match["symbol"]
            found.setdefault(symbol, {})
        elif symbol and (match := _FRAME.search(line)):
            stack, stores, loads = map(int, match.groups())
            found[symbol].update(stack_bytes=stack, spill_store_bytes=stores, spill_load_bytes=loads)
        elif symbol and (match := _USED.search(line)):
            shared = _SHARED.search(line)
            found[symbol].update(registers=int(match[1]), shared_bytes=int(shared[1]) if shared else 0)
    return {name: facts for name, facts in found.items() if "registers" in facts}


def access_bits(instruction: Instruction) -> int:
    """Width in bits that one thread moves by a load or store."""
    for modifier in instruction.modifiers:
        if match := re.fullmatch(r"[US]?(8|16|64|128|256)", modifier):
            return int(match[1])
    return 32


def _from_cubin(usage: dict[str, int]) -> dict[str, int]:
    shared = usage.get("SHARED", 0)
    return {
        "registers": usage.get("REG", 0),
        "stack_bytes": usage.get("STACK", 0),
        "shared_bytes": shared - _RESERVED_SHARED if shared >= _RESERVED_SHARED else shared,
    }


def _kernel(symbol: str, code: Sequence[Instruction], sizes: dict[str, int]) -> KernelEvidence:
    counts = Counter(instruction.base for instruction in code)

    def total(names: Iterable[str]) -> int:
        return sum(counts[name] for name in names)

    return KernelEvidence(
        symbol=symbol,
        name=kernel_name(symbol),
        registers=sizes.get("registers", 0),
        stack_bytes=sizes.get("stack_bytes", 0),
        spill_store_bytes=sizes.get("spill_store_bytes", 0),
        spill_load_bytes=sizes.get("spill_load_bytes", 0),
        shared_bytes=sizes.get("shared_bytes", 0),
        global_loads=_widths(code, _GLOBAL_LOADS),
        global_stores=_widths(code, _GLOBAL_STORES),
        shared_loads=total(_SHARED_LOADS),
        shared_stores=total(_SHARED_STORES),
        local_accesses=total(_LOCAL),
        special=counts["MUFU"],
        calls=counts["CALL"],
        barriers=total(_BARRIERS),
        shuffles=counts["SHFL"],
        atomics=total(_ATOMICS),
        branches=total(_BRANCHES) + sum(1 for i in code if i.base == "BRA" and i.predicate),
        instructions=sum(1 for i in code if i.base != "NOP"),
    )


def _widths(code: Sequence[Instruction], opcodes: set[str]) -> tuple[tuple[int, int], ...]:
    return tuple(sorted(Counter(access_bits(i) for i in code if i.base in opcodes).items()))

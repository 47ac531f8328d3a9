"""The machine code of a cubin: instructions per kernel, demangled names, and when two kernels are the same code."""

from __future__ import annotations

import ctypes
import os
import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from astra_integrate.errors import CheckFailed, MissingTool

if TYPE_CHECKING:
    from astra_integrate.toolchain.discovery import Toolchain

_FUNCTION = re.compile(r"^\s+Function : (\S+)")
_INSTRUCTION = re.compile(r"^\s+/\*([0-9a-f]{4,})\*/\s+(.+?)\s*;?\s*/\*")
_OPCODE = re.compile(r"^(?:@(!?U?P\w+)\s+)?([A-Z][\w.]*)")
_TARGET = re.compile(r"\b0x[0-9a-f]+\b")
_SYMBOL = re.compile(r"`\([^)]*\)")
# Banks that hold the module's own data: where a kernel's part of it lies depends on its neighbours.
_MODULE_BANK = re.compile(r"\bc\[(?P<bank>0x[34])\]\[(?:(?P<register>U?R\w+)\+?)?(?P<offset>0x[0-9a-f]+)?\]")
_CONTROL_FLOW = {"BRA", "BRX", "BRXU", "BSSY", "CALL", "JMP", "JMX", "RET", "SSY", "PBK", "PCNT", "PRET", "WARPSYNC"}


@dataclass(frozen=True)
class Instruction:
    """One machine instruction: its byte ``offset`` in the kernel, ``predicate`` ("" for none), opcode, whole text."""

    offset: int
    predicate: str
    opcode: str
    text: str

    @property
    def base(self) -> str:
        """The opcode without its modifiers."""
        return self.opcode.partition(".")[0]

    @property
    def modifiers(self) -> tuple[str, ...]:
        """What follows the opcode, without the dots."""
        return tuple(self.opcode.split(".")[1:])


def disassemble(cubin: Path, toolchain: Toolchain, *, seconds: float = 120.0) -> dict[str, tuple[Instruction, ...]]:
    """Every kernel of ``cubin``: mangled symbol → its instructions, padding at the end left out.

    Raises :class:`MissingTool` without cuobjdump, :class:`CheckFailed` where it can't read the file.
    """
    text = _cuobjdump(toolchain, cubin, "-sass", seconds)
    kernels: dict[str, list[Instruction]] = {}
    current: list[Instruction] | None = None
    for line in text.splitlines():
        if match := _FUNCTION.match(line):
            current = kernels.setdefault(match[1], [])
        elif current is not None and (match := _INSTRUCTION.match(line)):
            body = re.sub(r"\s+", " ", match[2])
            opcode = _OPCODE.match(body)
            if opcode:
                current.append(Instruction(int(match[1], 16), opcode[1] or "", opcode[2], body))
    return {symbol: _unpadded(instructions) for symbol, instructions in kernels.items()}


def instructions(cubin: Path, symbol: str, toolchain: Toolchain) -> tuple[str, ...]:
    """The normalised instruction texts of one kernel; ``KeyError`` when ``cubin`` doesn't hold it."""
    return normalised(disassemble(cubin, toolchain)[symbol])


def normalised(code: Sequence[Instruction]) -> tuple[str, ...]:
    """Instruction texts that two builds of the same code share.

    Registers, immediates, predicates and address expressions stay. Branch targets become the index of
    the instruction they lead to, symbols become ``S``, offsets into the module's constant banks are
    numbered in order of appearance, so which element of a constant table is read first is not told.
    """
    index = {instruction.offset: number for number, instruction in enumerate(code)}
    module: dict[tuple[str, str], int] = {}

    def target(match: re.Match[str]) -> str:
        place = index.get(int(match[0], 16))
        return match[0] if place is None else f"L{place}"

    def bank(match: re.Match[str]) -> str:
        place = module.setdefault((match["bank"], match["offset"] or "0x0"), len(module))
        return f"c[{match['bank']}][{match['register'] or ''}#{place}]"

    lines: list[str] = []
    for instruction in code:
        text = _SYMBOL.sub("`(S)", _MODULE_BANK.sub(bank, instruction.text))
        if instruction.base in _CONTROL_FLOW or _is_return_address(instruction, index):
            text = _TARGET.sub(target, text)
        lines.append(text)
    return tuple(lines)


def same_code(a: Sequence[Instruction], b: Sequence[Instruction]) -> bool:
    """Whether two kernels are the same machine code, whatever their names and where they lie."""
    return len(a) == len(b) and normalised(a) == normalised(b)


def demangle(symbol: str) -> str:
    """The C++ name of a mangled symbol, parameters included; the symbol itself where it can't be read."""
    runtime = _cxx_runtime()
    if runtime is None or not symbol.startswith("_Z"):
        return symbol
    status = ctypes.c_int()
    result = runtime.__cxa_demangle(symbol.encode(), None, None, ctypes.byref(status))
    if status.value != 0 or not result:
        return symbol
    try:
        return ctypes.string_at(result).decode("utf-8", "replace")
    finally:
        _free()(result)


def kernel_name(symbol: str) -> str:
    """The template-id of a kernel's symbol as one writes it: ``ns::kernel<float, ns::f<float>, true>``."""
    return _template_id(demangle(symbol))


def _template_id(function: str) -> str:
    """Without return type, parameters, and the casts that a demangler puts before values."""
    depths = _depths(function)
    end = len(function)
    if function.endswith(")"):
        end = max(place for place in range(end) if function[place] == "(" and depths[place] == 0)
    start = max((place + 1 for place in range(end) if function[place] == " " and depths[place] == 0), default=0)
    name = function[start:end]
    if not name.endswith(">"):
        return name
    head, _, arguments = name[:-1].partition("<")
    depths = _depths(arguments)
    cuts = [-1, *(p for p, c in enumerate(arguments) if c == "," and depths[p] == 0), len(arguments)]
    items = [arguments[a + 1 : b].strip() for a, b in pairwise(cuts)]
    return f"{head}<{', '.join(map(_argument, items))}>"


def _argument(text: str) -> str:
    if text.startswith("&(") and text.endswith(")"):
        return _template_id(text[2:-1])
    if match := re.fullmatch(r"\(([^()]*)\)(-?\w+)", text):
        return {"0": "false", "1": "true"}.get(match[2], match[2]) if match[1] == "bool" else match[2]
    return _template_id(text) if text.endswith(">") and " " not in text.partition("<")[0] else text


def _depths(text: str) -> list[int]:
    """How many brackets are open before each character; a ``>`` inside round brackets may be an operator."""
    open_brackets: list[str] = []
    depths: list[int] = []
    for character in text:
        if character == ")" and "(" in open_brackets:
            while open_brackets.pop() != "(":
                pass
        elif character == ">" and open_brackets[-1:] == ["<"]:
            open_brackets.pop()
        depths.append(len(open_brackets))
        if character in "(<":
            open_brackets.append(character)
    return depths


def _is_return_address(instruction: Instruction, index: dict[int, int]) -> bool:
    """``MOV R8, 0x2c0`` before a CALL carries the return address; a plain constant that looks alike is harmless."""
    if instruction.base not in ("MOV", "UMOV") or not instruction.text.rpartition(" ")[2].startswith("0x"):
        return False
    return int(instruction.text.rpartition(" ")[2], 16) in index


def _unpadded(code: list[Instruction]) -> tuple[Instruction, ...]:
    """Without the NOPs and the branch to itself that fill a kernel up to its alignment."""
    end = len(code)
    while end and code[end - 1].base == "NOP":
        end -= 1
    if end and code[end - 1].base == "BRA" and f"0x{code[end - 1].offset:x}" in code[end - 1].text:
        end -= 1
    return tuple(code[:end])


def _cuobjdump(toolchain: Toolchain, cubin: Path, option: str, seconds: float) -> str:
    if toolchain.cuobjdump is None:
        raise MissingTool("cuobjdump is missing", toolchain.tool("cuobjdump").mend)
    command = [str(toolchain.cuobjdump), option, str(cubin)]
    environment = dict(os.environ)
    if toolchain.nvdisasm is not None:
        # cuobjdump calls nvdisasm by name: from wheels the two need not lie in one folder.
        environment["PATH"] = os.pathsep.join([str(toolchain.nvdisasm.parent), environment.get("PATH", "")])
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=seconds, env=environment, errors="replace"
        )
    except subprocess.TimeoutExpired as error:
        raise CheckFailed(f"cuobjdump {option} of {cubin.name} took more than {seconds:.0f} s") from error
    if done.returncode != 0:
        words = (done.stderr or done.stdout).strip().splitlines() or ["no message"]
        raise CheckFailed(f"cuobjdump can't read {cubin}: {words[-1]}", "Compile it again, or use a newer cuobjdump")
    return done.stdout


def resource_usage(cubin: Path, toolchain: Toolchain, *, seconds: float = 120.0) -> dict[str, dict[str, int]]:
    """Per symbol what the cubin itself records: ``REG``, ``STACK``, ``SHARED``, ``LOCAL`` (bytes but for REG)."""
    usage: dict[str, dict[str, int]] = {}
    symbol = ""
    for line in _cuobjdump(toolchain, cubin, "-res-usage", seconds).splitlines():
        if match := re.match(r"\s*Function (\S+):\s*$", line):
            symbol = match[1]
        elif symbol and "REG:" in line:
            usage[symbol] = {name: int(value) for name, value in re.findall(r"\b([A-Z]+):(\d+)", line)}
    return usage


@cache
def _cxx_runtime() -> ctypes.CDLL | None:
    """libstdc++ (or libc++abi): every machine with a C++ compiler has one, c++filt comes with binutils only."""
    for name in ("libstdc++.so.6", "libc++abi.so.1", "libc++abi.dylib"):
        try:
            runtime = ctypes.CDLL(name)
        except OSError:
            continue
        runtime.__cxa_demangle.restype = ctypes.c_void_p
        runtime.__cxa_demangle.argtypes = [ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p]
        return runtime
    return None


@cache
def _free() -> ctypes._NamedFuncPointer:
    free = ctypes.CDLL(None).free
    free.argtypes, free.restype = [ctypes.c_void_p], None
    return free

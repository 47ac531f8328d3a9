"""Inline PTX turned into C++: the instructions that kernels use most; any other stops the run when it is reached."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from astra_integrate.extract.lexing import blank, closing, split_list

_ASM = re.compile(r"\b(?:asm|__asm__|__asm)\s*(?:volatile|__volatile__)?\s*\(")
_STRING = re.compile(r'"((?:\\.|[^"\\])*)"')
_OPERAND = re.compile(r'^(?:\[(?P<name>\w+)\]\s*)?"(?P<constraint>[^"]*)"\s*\((?P<expression>.*)\)$', re.DOTALL)
_REGISTER = re.compile(r"^\.reg\s+\.(?P<type>\w+)\s+(?P<names>.+)$", re.DOTALL)
_REFERENCE = re.compile(r"%(?:(\d+)|\[(\w+)\])")
_TYPES = {8: "uint8_t", 16: "uint16_t", 32: "uint32_t", 64: "uint64_t"}
_SPECIAL = {
    "%laneid": "::emu::lane()",
    "%tid.x": "threadIdx.x",
    "%ctaid.x": "blockIdx.x",
    "%ntid.x": "blockDim.x",
    "%nctaid.x": "gridDim.x",
    "%smid": "0u",
}


@dataclass(frozen=True)
class _Operand:
    constraint: str
    expression: str


def rewrite_assembly(text: str) -> str:
    """Every ``asm(...)`` of ``text`` as C++; one that isn't known as a call that names it and ends the run."""
    plain = blank(text)
    pieces: list[str] = []
    done = 0
    for match in _ASM.finditer(plain):
        end = closing(plain, match.end() - 1)
        if match.start() < done or end is None:
            continue
        inside = text[match.end() : end - 1].replace("\\\n", " ")
        pieces += [text[done : match.start()], _statement(inside)]
        lost = text[match.start() : end].count("\n")
        if "\\\n" not in text[match.start() : end]:
            pieces.append("\n" * lost)
        done = end
    return "".join(pieces) + text[done:]


def _statement(inside: str) -> str:
    try:
        template, operands = _parse(inside)
        lines = [_instruction(part, operands) for part in _instructions(template)]
    except _Unknown as unknown:
        shown = re.sub(r"[^\w.,%\[\]{} :@]", " ", str(unknown)).strip()[:100]
        return f'::emu::ptx::unknown("{shown}")'
    return "do { " + " ".join(line for line in lines if line) + " } while (0)"


class _Unknown(Exception):
    """An instruction or form that has no translation."""


def _parse(inside: str) -> tuple[str, tuple[_Operand, ...]]:
    sections = _sections(inside)
    template = "".join(_STRING.findall(sections[0]))
    if not template:
        raise _Unknown("inline assembly whose text a macro makes")
    template = template.replace("\\n", "\n").replace("\\t", " ").replace('\\"', '"')
    operands: list[_Operand] = []
    for section in sections[1:3]:
        for item in split_list(section):
            found = _OPERAND.match(item)
            if found is None:
                raise _Unknown(template.strip().splitlines()[0])
            if found["name"]:
                template = template.replace(f"%[{found['name']}]", f"%{len(operands)}")
            operands.append(_Operand(found["constraint"], found["expression"]))
    return template, tuple(operands)


def _sections(inside: str) -> list[str]:
    plain = blank(inside).replace("::", " :") if re.search(r'"\s*::', blank(inside)) else blank(inside)
    source = inside
    if plain != blank(inside):
        # `"..." :: inputs`: an empty list of outputs.
        source = re.sub(r'("\s*)::', r"\1: :", inside, count=1)
        plain = blank(source)
    sections: list[str] = []
    depth = start = 0
    for index, character in enumerate(plain):
        if character in "([{":
            depth += 1
        elif character in ")]}":
            depth -= 1
        elif character == ":" and depth == 0 and ":" not in (plain[index - 1 : index], plain[index + 1 : index + 2]):
            sections.append(source[start:index])
            start = index + 1
    sections.append(source[start:])
    return sections


def _instructions(template: str) -> list[str]:
    template = re.sub(r"//[^\n]*", "", template).strip()
    if template.startswith("{") and template.rstrip("; \n").endswith("}"):
        template = template.rstrip("; \n")[1:-1]
    return [part.strip() for part in template.split(";") if part.strip()]


def _instruction(text: str, operands: tuple[_Operand, ...]) -> str:
    register = _REGISTER.match(text)
    if register is not None:
        kind = "bool" if register["type"] == "pred" else _TYPES.get(_bits(register["type"]), "")
        if not kind:
            raise _Unknown(text)
        return f"{kind} {register['names']};"
    guard = ""
    predicate = re.match(r"@(!?)(%?\w+)\s+", text)
    if predicate is not None:
        guard = f"if ({predicate[1]}{_value(predicate[2], operands)}) "
        text = text[predicate.end() :]
    opcode, _, rest = text.partition(" ")
    for pattern, translate in _TABLE:
        found = re.fullmatch(pattern, opcode.strip())
        if found is not None:
            arguments = [_trim(a) for a in split_list(rest.replace("\n", " "))]
            return guard + "{ " + translate(found, arguments, operands) + " }"
    raise _Unknown(text)


def _trim(argument: str) -> str:
    return argument.strip()


def _bits(kind: str) -> int:
    number = re.search(r"\d+", kind)
    return int(number[0]) if number else 0


def _value(token: str, operands: tuple[_Operand, ...]) -> str:
    token = token.replace("%%", "%").strip()
    if token in _SPECIAL:
        return _SPECIAL[token]
    found = re.fullmatch(r"%(\d+)", token)
    if found is not None:
        if int(found[1]) >= len(operands):
            raise _Unknown(token)
        return f"({operands[int(found[1])].expression})"
    if re.fullmatch(r"-?\d+|0[xX][0-9a-fA-F]+[uU]?|[A-Za-z_]\w*", token):
        return token
    raise _Unknown(token)


def _address(token: str, operands: tuple[_Operand, ...]) -> str:
    found = re.fullmatch(r"\[\s*(%?\w+)\s*(?:\+\s*(%?\w+)\s*)?\]", token)
    if found is None:
        raise _Unknown(token)
    base = f"::emu::ptx::pointer({_value(found[1], operands)})"
    return f"::emu::ptx::shift({base}, {_value(found[2], operands)})" if found[2] else base


def _vector(token: str) -> list[str]:
    return split_list(token[1:-1]) if token.startswith("{") else [token]  # type: ignore[return-value]


_Translate = Callable[[re.Match[str], list[str], tuple[_Operand, ...]], str]


def _load(found: re.Match[str], a: list[str], o: tuple[_Operand, ...]) -> str:
    out = ", ".join(_value(t, o) for t in _vector(a[0]))
    return f"::emu::ptx::load<{_bits(found['type']) // 8}>({_address(a[1], o)}, {out});"


def _store(found: re.Match[str], a: list[str], o: tuple[_Operand, ...]) -> str:
    values = ", ".join(_value(t, o) for t in _vector(a[1]))
    return f"::emu::ptx::store<{_bits(found['type']) // 8}>({_address(a[0], o)}, {values});"


def _move(found: re.Match[str], a: list[str], o: tuple[_Operand, ...]) -> str:
    to, source = _vector(a[0]), _vector(a[1])
    if len(to) == 1 and len(source) == 1:
        return f"::emu::ptx::assign({_value(to[0], o)}, {_value(source[0], o)});"
    if len(to) == 1:
        return f"::emu::ptx::join({', '.join(_value(t, o) for t in (*to, *source))});"
    return f"::emu::ptx::split({', '.join(_value(t, o) for t in (*source, *to))});"


def _call(name: str) -> _Translate:
    def translate(found: re.Match[str], a: list[str], o: tuple[_Operand, ...]) -> str:
        values = ", ".join(_value(t, o) for t in a[1:])
        return f"::emu::ptx::assign({_value(a[0], o)}, ::emu::ptx::{name}({values}));"

    return translate


def _to_integer(found: re.Match[str], a: list[str], o: tuple[_Operand, ...]) -> str:
    kind = {"s": "int", "u": "uint"}[found["sign"]] + found["bits"] + "_t"
    call = f"::emu::ptx::to_integer<{kind}>({_value(a[1], o)}, '{found['how']}')"
    return f"::emu::ptx::assign({_value(a[0], o)}, {call});"


def _nothing(found: re.Match[str], a: list[str], o: tuple[_Operand, ...]) -> str:
    return ""


def _copy(found: re.Match[str], a: list[str], o: tuple[_Operand, ...]) -> str:
    values = ", ".join(_value(t, o) for t in a[2:4])
    return f"::emu::ptx::copy({_address(a[0], o)}, {_address(a[1], o)}, {values});"


def _barrier(found: re.Match[str], a: list[str], o: tuple[_Operand, ...]) -> str:
    count = _value(a[1], o) if len(a) > 1 else "0"
    return f"::emu::barrier({_value(a[0], o)}, {count}, false);"


def _compare(found: re.Match[str], a: list[str], o: tuple[_Operand, ...]) -> str:
    sign = {"ne": "!=", "eq": "==", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}[found["how"]]
    return f"{_value(a[0], o)} = {_value(a[1], o)} {sign} {_value(a[2], o)};"


_SPACE = (
    r"(?:\.(?:volatile|relaxed|acquire|release|weak|gpu|cta|sys|global|shared|shared::cta"
    r"|nc|ca|cg|cs|lu|cv|wb|wt|L\w+::\w+))*"
)
_KIND = r"(?:\.v[248])?\.(?P<type>[busf]\d+)"
_TABLE: tuple[tuple[str, _Translate], ...] = (
    (r"ld" + _SPACE + _KIND, _load),
    (r"st" + _SPACE + _KIND, _store),
    (r"mov\.[busf]\d+", _move),
    (r"setp\.(?P<how>ne|eq|lt|le|gt|ge)\.[busf]\d+", _compare),
    (r"cvt\.r(?P<how>[nzmp])i(?:\.ftz)?(?:\.sat)?\.(?P<sign>[su])(?P<bits>8|16|32|64)\.f32", _to_integer),
    (r"cvt\.f32\.f16", _call("half_to_float")),
    (r"cvt\.rn\.f16\.f32", _call("float_to_half")),
    (r"cvt\.rn\.f16x2\.f32", _call("floats_to_half2")),
    (r"cvt\.rn\.bf16\.f32", _call("float_to_bfloat")),
    (r"cvt\.rn\.bf16x2\.f32", _call("floats_to_bfloat2")),
    (r"add(?:\.rn)?\.f16", _call("add_half")),
    (r"add(?:\.rn)?\.f16x2", _call("add_half2")),
    (r"mul(?:\.rn)?\.f16", _call("multiply_half")),
    (r"mul(?:\.rn)?\.f16x2", _call("multiply_half2")),
    (r"fma\.rn\.f16x2", _call("fma_half2")),
    (r"ex2\.approx(?:\.ftz)?\.f32", _call("exp2")),
    (r"lg2\.approx(?:\.ftz)?\.f32", _call("log2")),
    (r"rcp\.approx(?:\.ftz)?\.f32", _call("reciprocal")),
    (r"rsqrt\.approx(?:\.ftz)?\.f32", _call("reciprocal_root")),
    (r"sqrt\.approx(?:\.ftz)?\.f32", _call("root")),
    (r"tanh\.approx\.f32", _call("tanh")),
    (r"prmt\.b32", _call("permute")),
    (r"cp\.async\.(?:ca|cg)\.shared(?:::cta)?\.global(?:\.L2::\w+)*", _copy),
    (r"cp\.async\.(?:commit_group|wait_group|wait_all)", _nothing),
    (r"griddepcontrol\.\w+", _nothing),
    (r"(?:membar|fence)\..*", _nothing),
    (r"prefetch.*", _nothing),
    (r"(?:bar|barrier)(?:\.cta)?\.sync(?:\.aligned)?", _barrier),
)

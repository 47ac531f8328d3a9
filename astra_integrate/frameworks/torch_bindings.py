"""Op registrations with torch's dispatcher, read as text: TORCH_LIBRARY and its stable and expanding kin."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from astra_integrate.extract import cpp_text

_LIBRARY = re.compile(
    r"\b(?:STABLE_)?TORCH_LIBRARY(?P<kind>_FRAGMENT|_IMPL|_EXPAND|_IMPL_EXPAND|_FRAGMENT_EXPAND)?\s*\("
)
_LITERALS = re.compile(r'"((?:[^"\\]|\\.)*)"')


@dataclass
class Registration:
    """One op as registered: its schema and the C++ function for each dispatch key ("" for any)."""

    namespace: str
    op: str
    schema: str | None = None
    functions: dict[str, str] = field(default_factory=dict)
    files: list[str] = field(default_factory=list)

    @property
    def host_function(self) -> str | None:
        """The function a CUDA tensor reaches: the CUDA one, else the one for any key."""
        for key in ("CUDA", "", "CompositeExplicitAutograd", "CatchAll", "CompositeImplicitAutograd"):
            if key in self.functions:
                return self.functions[key]
        return None


def registrations(texts: Mapping[str, str], extension: Callable[[str], str]) -> list[Registration]:
    """All ops registered in ``texts`` (path → text), in order of namespace and name.

    ``extension`` tells what ``TORCH_EXTENSION_NAME`` is in a file.
    """
    found: dict[tuple[str, str], Registration] = {}
    for path, text in texts.items():
        if "TORCH_LIBRARY" not in text:
            continue
        plain = cpp_text.blank(cpp_text.without_rocm(text))
        shape = cpp_text.blank(plain, strings=True)
        for match in _LIBRARY.finditer(plain):
            if re.search(r"#\s*define[^\n]*$", plain[: match.start()]):
                continue
            end = cpp_text.closing(shape, match.end() - 1)
            opening = re.compile(r"\s*\{").match(shape, end)
            if opening is None:
                continue
            words = cpp_text.split_top(plain[match.end() : end - 1])
            body = (opening.end(), cpp_text.closing(shape, opening.end() - 1) - 1)
            key = words[1] if len(words) > 2 else ""
            namespace = _namespace(words[0], extension(path))
            _collect(found, (plain, shape), body, namespace, words[-1], key, path)
    return [found[key] for key in sorted(found)]


def _namespace(word: str, extension: str) -> str:
    parts = re.match(r"CONCAT\s*\(\s*(\w+)\s*,\s*(\w+)\s*\)", word)
    pieces = [parts[1], parts[2]] if parts else [word]
    return "".join(extension if piece == "TORCH_EXTENSION_NAME" else piece for piece in pieces)


def _collect(
    found: dict[tuple[str, str], Registration],
    texts: tuple[str, str],
    body: tuple[int, int],
    namespace: str,
    variable: str,
    key: str,
    path: str,
) -> None:
    plain, shape = texts
    calls = re.compile(rf"\b{re.escape(variable)}\s*\.\s*(def|impl)\s*\(")
    for call in calls.finditer(shape, *body):
        words = cpp_text.split_top(plain[call.end() : cpp_text.closing(shape, call.end() - 1) - 1])
        if not words:
            continue
        literal = "".join(_LITERALS.findall(words[0]))
        op = literal.split("(")[0].strip().split("::")[-1].split(".")[0]
        if not op:
            continue
        entry = found.setdefault((namespace, op), Registration(namespace, op))
        if path not in entry.files:
            entry.files.append(path)
        if call[1] == "def" and "(" in literal:
            entry.schema = re.sub(r"\s+", " ", literal).strip()
        function, own_key = _function(words[1:])
        if function:
            entry.functions[own_key or key] = function


def _function(words: list[str]) -> tuple[str | None, str]:
    key = ""
    for word in words:
        dispatch = re.fullmatch(r"(?:c10::DispatchKey::|torch::k|c10::k|at::k)(\w+)", word)
        if dispatch:
            key = dispatch[1]
            continue
        named = re.search(r"&\s*([A-Za-z_][\w:]*)", word) or re.fullmatch(r"([A-Za-z_][\w:]*)", word)
        if named:
            return named[1], key
    return None, key

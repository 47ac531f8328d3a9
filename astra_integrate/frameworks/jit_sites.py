"""SGLang's calls of its JIT loader, read from Python syntax: sources, exports, flags, callers."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from astra_integrate.records import Caller

from .python_calls import dotted, parsed

LOADER = "load_jit"


@dataclass(frozen=True)
class Export:
    """A name that Python calls and the C++ expression behind it; ``{…}`` is filled in at run time."""

    name: str
    expression: str

    @property
    def function(self) -> str:
        """The C++ function without template arguments: ``Class::method``."""
        out, depth = [], 0
        for character in self.expression:
            depth += character == "<"
            if depth == 0:
                out.append(character)
            depth -= character == ">"
        return "".join(out).strip("& ")


@dataclass(frozen=True)
class Site:
    """One call of the loader. What isn't literal in the Python is missing and makes ``literal`` false."""

    file: str
    line: int
    function: str
    cuda_files: tuple[str, ...]
    exports: tuple[Export, ...]
    cuda_flags: tuple[str, ...]
    literal: bool
    flags_literal: bool


@dataclass(frozen=True)
class Sites:
    """All sites of a package, the ``calls`` of each export, and per file: function → names that it calls."""

    sites: tuple[Site, ...]
    calls: dict[str, tuple[Caller, ...]]
    wrappers: dict[str, dict[str, set[str]]]


def scan(root: Path, package: Path) -> Sites:
    """Read every Python file of ``package`` that mentions the loader; paths are relative to ``root``."""
    sites: list[Site] = []
    calls: dict[str, list[Caller]] = defaultdict(list)
    wrappers: dict[str, dict[str, set[str]]] = {}
    trees = [
        (path.relative_to(root).as_posix(), tree) for path, tree in parsed(package, (LOADER, "_cflags", "_flags("))
    ]
    helpers = {name.split(".")[-1]: body for _file, tree in trees for name, body in _functions(tree)}
    for file, tree in trees:
        for function, body in _functions(tree):
            sites.extend(_site(file, function, call, Spelled(body, helpers)) for call in _loader_calls(body))
    exports = {export.name for site in sites for export in site.exports}
    for file, tree in trees:
        local: dict[str, set[str]] = defaultdict(set)
        for function, body in _functions(tree):
            for node in ast.walk(body):
                if isinstance(node, ast.Call):
                    name = node.func.attr if isinstance(node.func, ast.Attribute) else dotted(node.func) or ""
                    local[function].add(name)
                    if name in exports and isinstance(node.func, ast.Attribute):
                        calls[name].append(Caller(file=file, line=node.lineno, function=function))
        wrappers[file] = local
    return Sites(tuple(sites), {name: tuple(found) for name, found in calls.items()}, wrappers)


def _functions(tree: ast.Module) -> list[tuple[str, ast.AST]]:
    """Functions at module and class level with their qualified names, and the module's own statements."""
    found: list[tuple[str, ast.AST]] = []

    def visit(body: list[ast.stmt], prefix: str) -> None:
        rest: list[ast.stmt] = []
        for node in body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                found.append((prefix + node.name, node))
            elif isinstance(node, ast.ClassDef):
                visit(node.body, f"{prefix}{node.name}.")
            else:
                rest.append(node)
        found.append((prefix + "<module>", ast.Module(body=rest, type_ignores=[])))

    visit(tree.body, "")
    return found


def _loader_calls(body: ast.AST) -> list[ast.Call]:
    return [
        node
        for node in ast.walk(body)
        if isinstance(node, ast.Call) and (dotted(node.func) or "").split(".")[-1] == LOADER
    ]


def _site(file: str, function: str, call: ast.Call, spelled: Spelled) -> Site:
    given = {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg}
    files, files_ok = spelled.strings(given.get("cuda_files"), (".cuh", ".cu"))
    exports, exports_ok = _exports(given.get("cuda_wrappers"))
    flags, flags_ok = spelled.strings(given.get("extra_cuda_cflags"), ("-",))
    return Site(file, call.lineno, function, files, exports, flags, files_ok and exports_ok, flags_ok)


class Spelled:
    """Strings that an expression may give: its literals, those behind its local names and behind helper functions."""

    def __init__(self, scope: ast.AST, helpers: Mapping[str, ast.AST]) -> None:
        self._scope = scope
        self._helpers = helpers

    def strings(self, node: ast.expr | None, marks: tuple[str, ...]) -> tuple[tuple[str, ...], bool]:
        """The strings that start or end with one of ``marks``, and whether the expression is a plain literal list."""
        if node is None:
            return (), True
        if isinstance(node, ast.List | ast.Tuple):
            texts = [text(element) for element in node.elts]
            if None not in texts:
                return tuple(t for t in texts if t is not None), True
        found: list[str] = []
        self._gather(node, marks, found, 0)
        return tuple(dict.fromkeys(found)), False

    def _gather(self, node: ast.AST, marks: tuple[str, ...], found: list[str], depth: int) -> None:
        for inner in ast.walk(node):
            literal = text(inner) if isinstance(inner, ast.expr) else None
            if literal is not None and literal.startswith(marks) | literal.endswith(marks):
                found.append(literal)
            elif depth < 3 and isinstance(inner, ast.Name):
                for value in _assigned(self._scope, inner.id):
                    self._gather(value, marks, found, depth + 1)
            elif depth < 3 and isinstance(inner, ast.Call) and (dotted(inner.func) or "") in self._helpers:
                helper = self._helpers[dotted(inner.func) or ""]
                for value in (n.value for n in ast.walk(helper) if isinstance(n, ast.Return) and n.value):
                    Spelled(helper, self._helpers)._gather(value, marks, found, depth + 1)


def _assigned(scope: ast.AST, name: str) -> list[ast.expr]:
    values: list[ast.expr] = []
    for node in ast.walk(scope):
        targets: list[ast.expr] = []
        if isinstance(node, ast.Assign):
            targets = node.targets
        elif isinstance(node, ast.AnnAssign):
            targets = [node.target]
        if any(isinstance(target, ast.Name) and target.id == name for target in targets):
            value = getattr(node, "value", None)
            values += [value] if isinstance(value, ast.expr) else []
    return values


def _exports(node: ast.expr | None) -> tuple[tuple[Export, ...], bool]:
    if node is None:
        return (), True
    if not isinstance(node, ast.List | ast.Tuple):
        return (), False
    found: list[Export] = []
    complete = True
    for element in node.elts:
        pair = [text(part) for part in element.elts] if isinstance(element, ast.Tuple | ast.List) else []
        if len(pair) == 2 and pair[0] is not None and pair[1] is not None:
            found.append(Export(pair[0], pair[1]))
        else:
            complete = False
    return tuple(found), complete


def text(node: ast.expr) -> str | None:
    """A string literal, or an f-string with its expressions in braces; None for anything else."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(
            str(part.value) if isinstance(part, ast.Constant) else "{" + ast.unparse(part) + "}" for part in node.values
        )
    return None

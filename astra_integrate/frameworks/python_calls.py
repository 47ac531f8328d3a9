"""Where a framework's Python calls its ops: direct uses of ``torch.ops`` and calls of wrapper functions."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

from astra_integrate.records import Caller

_OP = re.compile(r"torch\.ops\.(\w+)\.(\w+)(?:\.default|\.out)?$")
_NAMESPACE = re.compile(r"torch\.ops\.(\w+)$")


def parsed(package: Path, words: Iterable[str]) -> Iterator[tuple[Path, ast.Module]]:
    """Syntax trees of the package's Python files that hold one of ``words``; a file that doesn't parse is skipped."""
    needles = [word.encode() for word in words]
    for path in sorted(package.rglob("*.py")):
        data = path.read_bytes()
        if not any(needle in data for needle in needles):
            continue
        try:
            tree = ast.parse(data)
        except SyntaxError:
            continue  # templates with a .py name; an op call in one can't be told from text
        yield path, tree


def torch_op_callers(root: Path, package: Path, wrapper_module: str) -> dict[tuple[str, str], tuple[Caller, ...]]:
    """(namespace, op) → callers in ``package``; calls of functions of ``wrapper_module`` count for the ops they use.

    ``wrapper_module`` is dotted, for example ``vllm._custom_ops``; paths in the result are relative to ``root``.
    """
    direct: dict[tuple[str, str], list[Caller]] = defaultdict(list)
    wraps: dict[str, set[tuple[str, str]]] = defaultdict(set)
    calls: dict[str, list[Caller]] = defaultdict(list)
    leaf = wrapper_module.rsplit(".", 1)[1]
    for path, tree in parsed(package, ("torch.ops", leaf)):
        file = path.relative_to(root).as_posix()
        wrapper = path.stem == leaf
        visitor = _Visitor(file, wrapper_module)
        visitor.visit(tree)
        for key, caller in visitor.ops:
            direct[key].append(caller)
            if wrapper:
                wraps[caller.function.split(".")[-1]].add(key)
        for name, caller in visitor.wrapper_calls:
            calls[name].append(caller)
    for function, keys in wraps.items():
        for key in keys:
            direct[key].extend(calls.get(function, ()))
    return {key: tuple(sorted(set(callers), key=lambda c: (c.file, c.line))) for key, callers in direct.items()}


class _Visitor(ast.NodeVisitor):
    """Uses of ops and calls of wrappers in one file; an import counts from its place on, as when Python runs."""

    def __init__(self, file: str, wrapper_module: str) -> None:
        self.ops: list[tuple[tuple[str, str], Caller]] = []
        self.wrapper_calls: list[tuple[str, Caller]] = []
        self._file = file
        self._module = wrapper_module
        self._parent, self._leaf = wrapper_module.rsplit(".", 1)
        self._aliases: set[str] = set()
        self._imported: dict[str, str] = {}
        self._scope: list[str] = []

    def _caller(self, node: ast.expr) -> Caller:
        return Caller(file=self._file, line=node.lineno, function=".".join(self._scope) or "<module>")

    def _scoped(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> None:
        self._scope.append(node.name)
        self.generic_visit(node)
        self._scope.pop()

    visit_FunctionDef = _scoped
    visit_AsyncFunctionDef = _scoped
    visit_ClassDef = _scoped

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        for alias in node.names:
            name = alias.asname or alias.name
            if node.module == self._parent and alias.name == self._leaf:
                self._aliases.add(name)
            elif node.module == self._module:
                self._imported[name] = alias.name

    def visit_Import(self, node: ast.Import) -> None:
        self._aliases.update(alias.asname for alias in node.names if alias.name == self._module and alias.asname)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        name = dotted(node)
        op = _OP.match(name or "")
        if op:
            self.ops.append(((op[1], op[2]), self._caller(node)))
            return
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        name = dotted(node.func) or ""
        first, _, rest = name.partition(".")
        if first in self._aliases and rest and "." not in rest:
            self.wrapper_calls.append((rest, self._caller(node)))
        elif name in self._imported:
            self.wrapper_calls.append((self._imported[name], self._caller(node)))
        elif name in ("hasattr", "getattr") and len(node.args) > 1 and isinstance(node.args[1], ast.Constant):
            namespace = _NAMESPACE.match(dotted(node.args[0]) or "")
            if namespace:
                self.ops.append(((namespace[1], str(node.args[1].value)), self._caller(node)))
        self.generic_visit(node)


def dotted(node: ast.expr) -> str | None:
    """``a.b.c`` of an attribute chain, None where it starts with anything but a name."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return None
    return ".".join(reversed([*parts, node.id]))
